"""Specs of OpenAI-compatible models: `MODEL?url=http://127.0.0.1:8080/v1&price=0.15/0.60&window=128000`.

Rule 1: what is written back opens the same again, on whatever machine: it always names the url, and never a key.
Rule 2: an unknown option, or one given twice, is refused, and its value is not repeated: it may be a key.
Rule 3: without encryption only the user's own machine is asked, unless the spec says that the network may be trusted.
Rule 4: the user's own machine is free unless a price is named; elsewhere a price that is not named is unknown, not 0.
"""

from collections.abc import Mapping
from decimal import Decimal
from ipaddress import ip_address
from typing import NamedTuple, NoReturn, TypeVar
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.regex import regex
from remit.core.run.inference import Price
from remit.inference.openai.dialects import Grammars, Schemas, Thinking

OPENAI = "openai"
# Where models of the vendor are served when no other url is named.
VENDOR_URL = "https://api.openai.com/v1"
VENDOR_HOST = "api.openai.com"

# What even small models behind such servers can see. Too small a window makes a conversation shorter than it could be,
# too large a one makes it fail.
CONTEXT_WINDOW_DEFAULT = 8192
# A hundred times the largest window there is.
CONTEXT_WINDOW_MAX = 100_000_000
# The names of models are paths at most; longer is a mistake.
MODEL_CHARS_MAX = 200
# What browsers and proxies take.
URL_CHARS_MAX = 2_000
# A million dollars for a million tokens: beyond any price, and in micro-dollars still within 64 bits.
PRICE_USD_MAX = 1_000_000
MICROUSD_PER_USD = 1_000_000

FREE = Price(0, 0)

# The option that allows a url without encryption, and the one value it takes.
PLAIN_HTTP = "plain_http"
ALLOWED = "allowed"

# The options that say what a server wants of schemas, where it looks for grammars, and what keeps it from thinking.
SCHEMAS = "schemas"
GRAMMARS = "grammars"
THINKING = "thinking"

_OPTIONS = ("url", "price", "window", PLAIN_HTTP, SCHEMAS, GRAMMARS, THINKING)

# Digits as people write a price: an exponent could hide one that is rounded to nothing.
_DOLLARS = regex(r"[0-9]{1,7}(?:\.[0-9]{1,6})?|\.[0-9]{1,6}")
# A machine as every program reads it: a name, or an address. Letters outside ASCII have more than one reading.
_HOST = regex(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


T = TypeVar("T")


class Endpoint(NamedTuple):
    """A model and where it is served. A price that was not named is derived, so it is not written back."""

    model: str
    url: str
    window: int = CONTEXT_WINDOW_DEFAULT
    named_price: Price | None = None
    allows_plain_http: bool = False
    schemas: Schemas | None = None
    grammars: Grammars | None = None
    thinking: Thinking | None = None

    @property
    def host(self) -> str:
        """The machine that serves the model."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether that is this machine."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_private(self) -> bool:
        """Whether no third party reads what is sent, or the operator said that those who do may."""
        return self.is_loopback or self.allows_plain_http or urlsplit(self.url).scheme == "https"

    @property
    def is_strict(self) -> bool:
        """Whether the server holds a model to a schema in strict mode alone: the vendor's does, and any that is said to."""
        return self.schemas is Schemas.STRICT or self.host == VENDOR_HOST

    @property
    def price(self) -> Price | None:
        """What a token costs; None when that is unknown."""
        return FREE if self.named_price is None and self.is_loopback else self.named_price

    @property
    def spec(self) -> str:
        """What opens the same again."""
        options = [f"url={quote(self.url, safe=':/[]')}"]
        if self.named_price is not None:
            each = (self.named_price.input_microusd_per_mtok, self.named_price.output_microusd_per_mtok)
            options.append("price=" + "/".join(_usd(microusd) for microusd in each))
        if self.window != CONTEXT_WINDOW_DEFAULT:
            options.append(f"window={self.window}")
        if self.allows_plain_http:
            options.append(f"{PLAIN_HTTP}={ALLOWED}")
        named = ((SCHEMAS, self.schemas), (GRAMMARS, self.grammars), (THINKING, self.thinking))
        options += [f"{option}={value.value}" for option, value in named if value is not None]
        return f"{OPENAI}:{quote(self.model, safe=':/@')}?{'&'.join(options)}"


def read_endpoint(rest: str, *, url_default: str) -> Endpoint:
    """The model and the place that the part of a spec behind `openai:` names."""
    named, _, query = rest.partition("?")
    model = unquote(named)
    if not model or len(model) > MODEL_CHARS_MAX or not model.isprintable():
        _reject(named, f"a model has a name of 1 to {MODEL_CHARS_MAX} printable characters, before any '?'")
    options = _options(named, query)
    if options.get(SCHEMAS) == "grammar":
        problem = f"{SCHEMAS}=grammar is gone: servers take a schema as it is, as json_schema; leave the option out"
        _reject(named, f"{problem}, or write a grammar of your own as output.grammar")
    return Endpoint(
        model=model,
        url=_url(named, options.get("url") or url_default or VENDOR_URL),
        window=_window(named, options["window"]) if "window" in options else CONTEXT_WINDOW_DEFAULT,
        named_price=_price(named, options["price"]) if "price" in options else None,
        allows_plain_http=bool(_one_of(named, options, PLAIN_HTTP, {ALLOWED: ALLOWED})),
        schemas=_one_of(named, options, SCHEMAS, {value.value: value for value in Schemas}),
        grammars=_one_of(named, options, GRAMMARS, {value.value: value for value in Grammars}),
        thinking=_one_of(named, options, THINKING, {value.value: value for value in Thinking}),
    )


def _options(model: str, query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        _reject(model, f"its options are not of the form {'=…&'.join(_OPTIONS)}=…")
    options = dict(pairs)
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        _reject(
            model,
            f"has no option {unknown[0]!r:.40}; known are {', '.join(_OPTIONS)}, and a key is set as OPENAI_API_KEY",
        )
    if len(options) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        _reject(model, f"has the option {twice!r} more than once; keep one")
    return options


def _url(model: str, url: str) -> str:
    place = _split(url)
    if place is None or place.scheme not in ("http", "https") or len(url) > URL_CHARS_MAX:
        _reject(model, f"url={url!r:.120} is no address like http://127.0.0.1:8080/v1")
    if place.username is not None or place.password is not None:
        # Not shown: what stands there is a password.
        _reject(model, "its url holds a name or a password; leave them out, the key is taken from OPENAI_API_KEY")
    if place.query or place.fragment:
        _reject(model, f"url={url!r:.120} goes on behind a '?' or '#'; name the base alone, such as {VENDOR_URL}")
    return url.rstrip("/")


def _split(url: str) -> SplitResult | None:
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        place = urlsplit(url)
        # A port that is none raises when it is read, and not before.
        port = place.port
    except ValueError:
        return None
    return place if port != 0 and _HOST.fullmatch(place.hostname or "") else None


def _price(model: str, text: str) -> Price:
    figures = [_microusd(figure) for figure in text.split("/")]
    if len(figures) != 2 or figures[0] is None or figures[1] is None:
        _reject(
            model,
            f"price={text!r:.40} is not input/output in dollars per million tokens, such as 0.15/0.60, each from 0 to "
            f"{PRICE_USD_MAX} with 6 decimals at most",
        )
    return Price(figures[0], figures[1])


def _microusd(text: str) -> int | None:
    if not _DOLLARS.fullmatch(text):
        return None
    microusd = int(Decimal(text) * MICROUSD_PER_USD)
    return microusd if microusd <= PRICE_USD_MAX * MICROUSD_PER_USD else None


def _usd(microusd: int) -> str:
    return f"{Decimal(microusd) / MICROUSD_PER_USD:f}"


def _window(model: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not 1 <= int(text) <= CONTEXT_WINDOW_MAX:
        _reject(model, f"window={text!r:.40} is no whole number of tokens from 1 to {CONTEXT_WINDOW_MAX}")
    return int(text)


def _one_of(model: str, options: Mapping[str, str], option: str, values: Mapping[str, T]) -> T | None:
    """What an option says that takes one of some words; None where it is left out."""
    if option not in options:
        return None
    text = options[option]
    if text not in values:
        known = f"{option}=" + f" or {option}=".join(values)
        _reject(model, f"{option}={text!r:.40} is not known; write {known}, or leave it out")
    return values[text]


def _reject(model: str, problem: str) -> NoReturn:
    message = f"engine {f'{OPENAI}:{model}'!r:.120}: {problem}"
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
