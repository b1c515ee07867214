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
import time
from contextlib import aclosing
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.record import JsonObject
from remit.inference.anthropic_answer import Answer
from remit.inference.anthropic_faults import fault_of_event, fault_of_status
from remit.inference.anthropic_spec import ANTHROPIC, KEY_VARIABLE, VENDOR_HOST, read_place, spec_of
from remit.inference.anthropic_wire import body_of, sampling_of
from remit.inference.engine import Engine, EngineFault, StreamHandler
from remit.inference.openai_answer import ServerFailed
from remit.inference.openai_events import EventReader, StreamTooLong
from remit.inference.openai_faults import REFUSAL_BYTES_MAX, Place, fault_of_exception
from remit.inference.openai_spec import ALLOWED, PLAIN_HTTP, Endpoint
from remit.inference.prices import price_of
from remit.inference.specs import EngineSettings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping

    from anthropic import AsyncAnthropic

# Whoever does not pick up by then is not there.
CONNECT_TIMEOUT_S = 10.0
# The run has a deadline of its own; without one, no silence is waited out for longer than this.
SILENCE_TIMEOUT_S = 600.0

# Servers on one's own machine ask for no key, and the package insists on one.
NO_KEY = "none"

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
        self._info = ModelInfo(f"{ANTHROPIC}:{endpoint.model}", endpoint.window, _price(endpoint))
        self._place = Place(endpoint.model, endpoint.url, _sendable(key))
        self._client = _client(self._package, endpoint, key or NO_KEY, (self._restrict, self._refuse))

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
        began_s = time.monotonic()
        answer = Answer(request, self._info, self._place)
        try:
            await self._listen(request, answer, on_chunk)
        except StreamTooLong as error:
            answer.reject(str(error))
        except ServerFailed as error:
            raise fault_of_event(self._place, error.error) from error
        except EngineFault:
            raise
        except Exception as error:
            fault = fault_of_exception(self._place, error)
            if fault is None:
                raise
            raise fault from error
        return answer.result(int((time.monotonic() - began_s) * 1000))

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
                    _pass_on(answer, event, on_chunk)
                    if answer.is_over:
                        return
        for event in reader.end():
            _pass_on(answer, event, on_chunk)
        if reader.events == 0:
            answer.reject(f"it holds no event, and is said to be {self._place.said(kind)!r}; check the url")

    def _body(self, request: ModelRequest) -> JsonObject:
        body = body_of(self._endpoint.model, request, self._package.transform_schema)
        return body if self._endpoint.host == VENDOR_HOST else body | sampling_of(request)

    async def _restrict(self, request: "_Request") -> None:
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

    async def _refuse(self, response: "_Response") -> None:
        """Turn whatever is no answer into a fault, before the package reads it to an end that may never come."""
        if 200 <= response.status_code < 300:
            if (packing := response.headers.get("content-encoding", "").strip().lower()) not in ("", "identity"):
                url, said = self._place.url, self._place.said(packing)
                message = f"{url} packed its answer as {said!r}, though nobody asked for it; it is not unpacked"
                raise EngineFault(ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, was_cut=True)
            return
        body = bytearray()
        async with aclosing(response.aiter_raw()) as stream:
            async for data in stream:
                body += data
                if len(body) > REFUSAL_BYTES_MAX:
                    break
        raise fault_of_status(self._place, response.status_code, response.headers, bytes(body))


def open_anthropic(rest: str, settings: EngineSettings) -> Engine:
    """The engine that the part of a spec behind `anthropic:` names."""
    endpoint = read_place(rest, url_default=settings.anthropic_base_url)
    name = f"{ANTHROPIC}:{endpoint.model}"
    if not settings.anthropic_api_key and not endpoint.is_loopback:
        message = (
            f"engine {name!r} asks {endpoint.url}, which needs a key; set {KEY_VARIABLE}, or name a server of your own "
            "as ?url=http://127.0.0.1:8080"
        )
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    if not endpoint.is_private:
        message = (
            f"engine {name!r} asks {endpoint.url}, where anybody on the way reads the key and the conversation; name an "
            f"https url, or add {PLAIN_HTTP}={ALLOWED} to the spec if you trust the network"
        )
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    return AnthropicEngine(endpoint, key=settings.anthropic_api_key)


def _price(endpoint: Endpoint) -> Price | None:
    """What the spec says, or else what is known of the vendor's own models."""
    return endpoint.price or price_of(ANTHROPIC, endpoint.model, endpoint.host)


def _sendable(key: str) -> str:
    """The key, if it can stand in a header; a line end that came along with it would be told in errors of the package."""
    if key.isascii() and key.isprintable() and " " not in key:
        return key
    message = f"{KEY_VARIABLE} holds a space, a line end or a letter that no key has; set it again, without them"
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)


class _Request(Protocol):
    """What is needed of a request before it is sent."""

    @property
    def headers(self) -> "MutableMapping[str, str]": ...


class _Response(Protocol):
    """What is needed of a response before the package has read it."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> "Mapping[str, str]": ...
    def aiter_raw(self) -> "AsyncGenerator[bytes]": ...


def _pass_on(answer: Answer, event: bytes, on_chunk: StreamHandler | None) -> None:
    chunk = answer.take(event)
    if chunk is not None and on_chunk is not None:
        on_chunk(chunk)


_Looks: TypeAlias = "tuple[Callable[[_Request], Awaitable[None]], Callable[[_Response], Awaitable[None]]]"


def _client(package: ModuleType, endpoint: Endpoint, key: str, looks: _Looks) -> "AsyncAnthropic":
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
