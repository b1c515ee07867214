"""Models behind the Messages API of Anthropic: `anthropic:MODEL`, at any url."""

from remit.core.run.inference import SERVED_CALLS_AT_ONCE, TEMPLATE_TOKENS_MAX, ModelInfo, ModelRequest, ModelResult
from remit.inference.answers.speech import mixed_speech, plain_speech
from remit.inference.answers.vendor_names import VendorNames
from remit.inference.anthropic.answer import MessagesAnswer
from remit.inference.anthropic.request_body import body_of, sampling_of
from remit.inference.anthropic.spec import ANTHROPIC, KEY_VARIABLE, VENDOR_HOST, read_place, spec_of
from remit.inference.endpoint.faults import MESSAGES, EndpointPlace
from remit.inference.endpoint.serving import NO_KEY, Server, check_reach, sendable
from remit.inference.engine import Engine, StreamHandler
from remit.inference.openai.spec import Endpoint
from remit.inference.prices import price_of
from remit.inference.specs import EngineSettings

# The version of the API that is spoken here.
API_VERSION = "2026-10-21"


class AnthropicEngine:
    """Asks one model at one url. `spec` opens the same again; the key is never part of it."""

    def __init__(self, endpoint: Endpoint, *, key: str) -> None:
        self._endpoint = endpoint
        self._info = ModelInfo(
            f"{ANTHROPIC}:{endpoint.model}",
            endpoint.window,
            endpoint.price or price_of(ANTHROPIC, endpoint.model, endpoint.host),
            template_tokens=TEMPLATE_TOKENS_MAX,
            calls_at_once=SERVED_CALLS_AT_ONCE,
        )
        self._is_vendor = endpoint.host == VENDOR_HOST
        self._place = EndpointPlace(endpoint.model, endpoint.url, sendable(key, KEY_VARIABLE), MESSAGES)
        key = key or NO_KEY
        headers = {"anthropic-version": API_VERSION, "authorization": f"Bearer {key}"}
        # Where servers that speak like the vendor have looked for it longer.
        self._server = Server(endpoint, self._place, headers if self._is_vendor else {**headers, "x-api-key": key})
        self._speech_of = plain_speech if self._is_vendor else mixed_speech

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"AnthropicEngine({self.spec!r})"

    @property
    def spec(self) -> str:
        """What opens the same engine again."""
        return spec_of(self._endpoint)

    def model_info(self) -> ModelInfo:
        """The model as its spec describes it."""
        return self._info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the server, put together from its stream."""
        names = VendorNames(request)
        request = names.request
        answer = MessagesAnswer(request, self._info, self._place, self._speech_of(request, self._place.blotted))
        body = body_of(self._endpoint.model, request)
        if not self._is_vendor:
            body |= sampling_of(request)
        return names.restored(await self._server.answered(body, answer, on_chunk))


def open_anthropic(rest: str, settings: EngineSettings) -> Engine:
    """The engine that the part of a spec behind `anthropic:` names."""
    endpoint = read_place(rest, url_default=settings.anthropic_base_url)
    name, key = f"{ANTHROPIC}:{endpoint.model}", settings.anthropic_api_key
    check_reach(name, endpoint, key, variable=KEY_VARIABLE, own_url="http://127.0.0.1:8080")
    return AnthropicEngine(endpoint, key=key)
