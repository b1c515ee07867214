"""Specs of models behind the Messages API of Anthropic: `MODEL?url=https://gateway.example&price=3/15&window=200000`.

Rule 1: the options are those of OpenAI-compatible models and are read by the same code; only the names differ, and there
        is no strict mode, no grammar and no dialect of either.
Rule 2: what is written back opens the same again: it always names the url, and never a key.
Rule 3: the vendor's own models see more than is assumed of a model behind any other url.
"""

from urllib.parse import parse_qsl

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.regex import regex
from remit.inference.openai.spec import (
    CONTEXT_WINDOW_DEFAULT,
    GRAMMARS,
    OPENAI,
    SCHEMAS,
    THINKING,
    Endpoint,
    read_endpoint,
)

ANTHROPIC = "anthropic"
# Where models of the vendor are served when no other url is named. The path of the API is added to it.
VENDOR_URL = "https://api.anthropic.com"
VENDOR_HOST = "api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"

# What every model sees that the vendor serves; some see more, and a spec says so.
WINDOW_OF_VENDOR = 200_000

_OPENAI_NAMED = regex(rf"""^engine (['"]){OPENAI}:""")


def read_place(rest: str, *, url_default: str) -> Endpoint:
    """The model and the place that the part of a spec behind `anthropic:` names."""
    try:
        place = read_endpoint(rest, url_default=url_default or VENDOR_URL)
    except RequestRejected as error:
        raise RequestRejected(error.code, refusal_of_kind(ANTHROPIC, error.message).replace("/v1", "")) from None
    foreign = {SCHEMAS: place.schemas, GRAMMARS: place.grammars, THINKING: place.thinking}
    if named := [option for option, value in foreign.items() if value is not None]:
        problem = f"has no option {named[0]!r}; its API takes schemas in one way and no grammars"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, f"engine {f'{ANTHROPIC}:{place.model}'!r:.120}: {problem}")
    is_named = "window" in dict(parse_qsl(rest.partition("?")[2], keep_blank_values=True))
    return place if is_named or place.host != VENDOR_HOST else place._replace(window=WINDOW_OF_VENDOR)


def spec_of(place: Endpoint) -> str:
    """What opens the same again."""
    spec = f"{ANTHROPIC}:{place.spec.removeprefix(f'{OPENAI}:')}"
    # Left out, it would be read as more.
    is_small = place.host == VENDOR_HOST and place.window == CONTEXT_WINDOW_DEFAULT
    return f"{spec}&window={place.window}" if is_small else spec


def refusal_of_kind(kind: str, message: str) -> str:
    """The message about a refused spec, with the kind of engine that the caller named instead of `openai:`."""
    message = _OPENAI_NAMED.sub(rf"engine \1{kind}:", message)
    return message.replace("OPENAI_API_KEY", KEY_VARIABLE) if kind == ANTHROPIC else message
