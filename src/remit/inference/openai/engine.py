"""Models behind an OpenAI-compatible server: `openai:MODEL`, at any url."""

from collections.abc import Mapping
from types import MappingProxyType

from remit.core.run.inference import SERVED_CALLS_AT_ONCE, TEMPLATE_TOKENS_MAX, ModelInfo, ModelRequest, ModelResult
from remit.inference.answers.speech import mixed_speech, plain_speech
from remit.inference.answers.vendor_names import VendorNames
from remit.inference.endpoint.faults import CHAT_COMPLETIONS, EndpointPlace
from remit.inference.endpoint.serving import NO_KEY, Server, check_reach, sendable
from remit.inference.engine import Engine, StreamHandler, StrictJudge
from remit.inference.openai.answer import ChatAnswer
from remit.inference.openai.dialects import ANY, VENDOR, Dialect, dialect_with
from remit.inference.openai.request_body import LIMIT, LIMIT_OF_VENDOR, body_of
from remit.inference.openai.request_schema import is_tellable, open_format, strict_format
from remit.inference.openai.spec import OPENAI, VENDOR_HOST, Endpoint, read_endpoint
from remit.inference.prices import price_of
from remit.inference.specs import EngineSettings

KEY_VARIABLE = CHAT_COMPLETIONS.key_variable


class OpenAIEngine:
    """Asks one model at one url. `spec` opens the same again; the key is never part of it.

    `account` are headers that tell the vendor on whose account it is asked; other servers are not sent them.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        key: str,
        known: Dialect | None = None,
        account: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._endpoint = endpoint
        self._info = ModelInfo(
            f"{OPENAI}:{endpoint.model}",
            endpoint.window,
            endpoint.price or price_of(OPENAI, endpoint.model, endpoint.host),
            template_tokens=TEMPLATE_TOKENS_MAX,
            calls_at_once=SERVED_CALLS_AT_ONCE,
        )
        is_vendor = endpoint.host == VENDOR_HOST
        self._place = EndpointPlace(endpoint.model, endpoint.url, sendable(key, KEY_VARIABLE), CHAT_COMPLETIONS)
        headers = {"authorization": f"Bearer {key or NO_KEY}", **(account if is_vendor else {})}
        self._server = Server(endpoint, self._place, headers)
        self._dialect = dialect_with(known or (VENDOR if is_vendor else ANY), endpoint.grammars, endpoint.thinking)
        self._limit = LIMIT_OF_VENDOR if is_vendor else LIMIT
        self._speech_of = plain_speech if is_vendor else mixed_speech
        self._format_of = strict_format if endpoint.is_strict else open_format

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"OpenAIEngine({self.spec!r})"

    @property
    def spec(self) -> str:
        """What opens the same engine again."""
        return self._endpoint.spec

    def model_info(self) -> ModelInfo:
        """The model as its spec describes it."""
        return self._info

    @property
    def strict_judge(self) -> StrictJudge | None:
        """Who says which schemas the server takes in strict mode, where it demands that."""
        return is_tellable if self._endpoint.is_strict else None

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the server, put together from its stream."""
        names = VendorNames(request)
        request = names.request
        answer = ChatAnswer(request, self._info, self._place, self._speech_of(request, self._place.blotted))
        model, told = self._endpoint.model, self._format_of
        body = body_of(model, request, limit=self._limit, format_of=told, dialect=self._dialect)
        return names.restored(await self._server.answered(body, answer, on_chunk))


def open_openai(rest: str, settings: EngineSettings, known: Dialect | None = None) -> Engine:
    """The engine that the part of a spec behind `openai:` names. `known` is the dialect of its server, where it is known."""
    endpoint = read_endpoint(rest, url_default=settings.openai_base_url)
    name, own_url = f"{OPENAI}:{endpoint.model}", "http://127.0.0.1:8080/v1"
    check_reach(name, endpoint, settings.openai_api_key, variable=KEY_VARIABLE, own_url=own_url)
    named = {"openai-organization": settings.openai_organization, "openai-project": settings.openai_project}
    account = {header: sendable(value, "the account") for header, value in named.items() if value}
    return OpenAIEngine(endpoint, key=settings.openai_api_key, known=known, account=account)
