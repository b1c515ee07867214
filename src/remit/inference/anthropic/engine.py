"""Models behind the Messages API of Anthropic: `anthropic:MODEL`, at any url, through the vendor's own package.

Rule 1: every answer is streamed, whether or not somebody listens: that is how a call is cancelled for real.
Rule 2: nothing is tried twice here; the run decides about that.
Rule 3: no connection outlives its call, so the engine has nothing to close and can be asked from one loop after another.
Rule 4: whatever a server sends is bounded before it is kept, and is data. Nothing is unpacked: a few bytes could become
        gigabytes.
Rule 5: what is sent is what stands here: headers, credentials and traces that the package finds in the environment stay
        at home.
"""

import ssl
from contextlib import aclosing
from types import ModuleType
from typing import TYPE_CHECKING

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import JsonObject
from remit.core.run.inference import (
    SERVED_CALLS_AT_ONCE,
    TEMPLATE_TOKENS_MAX,
    ModelInfo,
    ModelRequest,
    ModelResult,
    Price,
)
from remit.inference.answers.speech import mixed_speech, plain_speech
from remit.inference.answers.wire_names import Wire
from remit.inference.anthropic.answer import Answer
from remit.inference.anthropic.faults import fault_of_event, fault_of_status
from remit.inference.anthropic.spec import ANTHROPIC, KEY_VARIABLE, VENDOR_HOST, read_place, spec_of
from remit.inference.anthropic.wire import body_of, sampling_of
from remit.inference.endpoint.serving import (
    CONNECT_TIMEOUT_S,
    NO_KEY,
    SILENCE_TIMEOUT_S,
    Looks,
    Request,
    Response,
    answered,
    check_reach,
    pass_on,
    refuse_unanswered,
    sendable,
)
from remit.inference.engine import Engine, StreamHandler
from remit.inference.openai.faults import Place
from remit.inference.openai.server_events import EventReader
from remit.inference.openai.spec import Endpoint
from remit.inference.prices import price_of
from remit.inference.specs import EngineSettings

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

# What a server has to be told, in small letters. The package would add what the environment holds.
HEADERS = frozenset(
    {"accept", "accept-encoding", "anthropic-version", "authorization", "connection", "content-length", "content-type"}
    | {"host", "user-agent", "x-api-key"}
    # The package reads it again when the response comes.
    | {"x-stainless-raw-response"}
)


class AnthropicEngine:
    """Asks one model at one url. `spec` opens the same again; the key is never part of it."""

    def __init__(self, endpoint: Endpoint, *, key: str) -> None:
        self._package = _package()
        self._endpoint = endpoint
        self._info = ModelInfo(
            f"{ANTHROPIC}:{endpoint.model}",
            endpoint.window,
            _price(endpoint),
            template_tokens=TEMPLATE_TOKENS_MAX,
            calls_at_once=SERVED_CALLS_AT_ONCE,
        )
        self._place = Place(endpoint.model, endpoint.url, sendable(key, KEY_VARIABLE))
        self._client = _client(self._package, endpoint, key or NO_KEY, (self._restrict, self._refuse))
        self._speech_of = plain_speech if endpoint.host == VENDOR_HOST else mixed_speech

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
        wire = Wire(request)
        request = wire.request
        answer = Answer(request, self._info, self._place, self._speech_of(request, self._place.blotted))
        listened = self._listen(request, answer, on_chunk)
        return wire.restored(await answered(listened, answer, self._place, fault_of_event))

    async def _listen(self, request: ModelRequest, answer: Answer, on_chunk: StreamHandler | None) -> None:
        reader, kind = EventReader(), ""
        # All is in the body: the package walks through what it is given as an argument, and warns of names of models.
        call = self._client.messages.with_streaming_response.create(
            model="", messages=[], max_tokens=1, stream=True, extra_body=self._body(request)
        )
        async with call as response, aclosing(response.http_response.aiter_raw()) as stream:
            kind = response.headers.get("content-type", "")
            async for data in stream:
                for event in reader.feed(data):
                    pass_on(answer, event, on_chunk)
                    if answer.is_over:
                        return
        for event in reader.end():
            pass_on(answer, event, on_chunk)
        if reader.events == 0:
            answer.reject(f"it holds no event, and is said to be {self._place.said(kind)!r}; check the url")

    def _body(self, request: ModelRequest) -> JsonObject:
        body = body_of(self._endpoint.model, request, self._package.transform_schema)
        return body if self._endpoint.host == VENDOR_HOST else body | sampling_of(request)

    async def _restrict(self, request: Request) -> None:
        """Send what is needed and nothing else, with the key that was given and no other."""
        for name in [name for name in request.headers if name.lower() not in HEADERS]:
            del request.headers[name]
        key = self._place.key or NO_KEY
        request.headers["authorization"] = f"Bearer {key}"
        if self._endpoint.host == VENDOR_HOST:
            request.headers.pop("x-api-key", None)
        else:
            # Where servers that speak like the vendor have looked for it longer.
            request.headers["x-api-key"] = key

    async def _refuse(self, response: Response) -> None:
        """Turn whatever is no answer into a fault, before the package reads it to an end that may never come."""
        await refuse_unanswered(response, self._place, fault_of_status)


def open_anthropic(rest: str, settings: EngineSettings) -> Engine:
    """The engine that the part of a spec behind `anthropic:` names."""
    endpoint = read_place(rest, url_default=settings.anthropic_base_url)
    name, key = f"{ANTHROPIC}:{endpoint.model}", settings.anthropic_api_key
    check_reach(name, endpoint, key, variable=KEY_VARIABLE, own_url="http://127.0.0.1:8080")
    return AnthropicEngine(endpoint, key=key)


def _price(endpoint: Endpoint) -> Price | None:
    """What the spec says, or else what is known of the vendor's own models."""
    return endpoint.price or price_of(ANTHROPIC, endpoint.model, endpoint.host)


def _client(package: ModuleType, endpoint: Endpoint, key: str, looks: Looks) -> "AsyncAnthropic":
    """The package's client, which neither repeats a call nor follows where another server sends it."""
    # This machine is reached directly, and nobody has to be trusted for it.
    is_plain = endpoint.is_loopback and endpoint.url.startswith("http:")
    patience = package.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    # The package lays proxies of the environment over its own connections, whatever they are told.
    mounts = {"all://": None, "http://": None, "https://": None} if endpoint.is_loopback else {}
    connections = package.DefaultAsyncHttpxClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        trust_env=not endpoint.is_loopback,
        follow_redirects=False,
        timeout=patience,
        mounts=mounts,
        event_hooks={"request": [looks[0]], "response": [looks[1]]},
    )
    client: AsyncAnthropic = package.AsyncAnthropic(
        api_key=key,
        base_url=endpoint.url,
        max_retries=0,
        timeout=patience,
        http_client=connections,
        # Traces may hold the conversation, and whether they do is said by the environment.
        open_telemetry=False,
        # A connection that is kept belongs to the loop it was made in, and would have to be closed there.
        default_headers={"Connection": "close", "Accept-Encoding": "identity"},
    )
    return client


def _package() -> ModuleType:
    try:
        import anthropic
    except ImportError:
        message = "engines of the kind 'anthropic' need a package that is not here; pip install 'remit[anthropic]'"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message) from None
    return anthropic
