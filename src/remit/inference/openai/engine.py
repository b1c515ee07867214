"""Models behind an OpenAI-compatible server: `openai:MODEL`, at any url, through the vendor's own package.

Rule 1: every answer is streamed, whether or not somebody listens: that is how a call is cancelled for real.
Rule 2: nothing is tried twice here; the run decides about that.
Rule 3: no connection outlives its call, so the engine has nothing to close and can be asked from one loop after another.
Rule 4: whatever a server sends is bounded before it is kept, and is data. Nothing is unpacked: a few bytes could become
        gigabytes.
Rule 5: what is sent is what stands here: headers that the package finds in the environment stay at home.
"""

import ssl
from contextlib import aclosing
from types import ModuleType
from typing import TYPE_CHECKING

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import SERVED_CALLS_AT_ONCE, TEMPLATE_TOKENS_MAX, ModelInfo, ModelRequest, ModelResult
from remit.inference.answers.speech import mixed_speech, plain_speech
from remit.inference.answers.wire_names import Wire
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
from remit.inference.engine import Engine, StreamHandler, StrictJudge
from remit.inference.openai.answer import Answer
from remit.inference.openai.dialects import ANY, VENDOR, Dialect, Grammars, dialect_with
from remit.inference.openai.faults import (
    Place,
    fault_of_event,
    fault_of_status,
)
from remit.inference.openai.server_events import DONE, EventReader
from remit.inference.openai.spec import OPENAI, VENDOR_HOST, Endpoint, read_endpoint
from remit.inference.openai.wire import LIMIT, LIMIT_OF_VENDOR, body_of
from remit.inference.openai.wire_schema import is_tellable, open_format, strict_format
from remit.inference.prices import price_of
from remit.inference.specs import EngineSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

KEY_VARIABLE = "OPENAI_API_KEY"

# What a server has to be told, in small letters. The package would add more: names of accounts, and whatever else the
# environment holds for servers of its vendor.
HEADERS = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "user-agent"}
    # The package reads it again when the response comes.
    | {"x-stainless-raw-response"}
)
HEADERS_OF_VENDOR = HEADERS | {"openai-organization", "openai-project"}


class OpenAIEngine:
    """Asks one model at one url. `spec` opens the same again; the key is never part of it."""

    def __init__(self, endpoint: Endpoint, *, key: str, known: Dialect | None = None) -> None:
        self._endpoint = endpoint
        self._info = ModelInfo(
            f"{OPENAI}:{endpoint.model}",
            endpoint.window,
            endpoint.price or price_of(OPENAI, endpoint.model, endpoint.host),
            template_tokens=TEMPLATE_TOKENS_MAX,
            calls_at_once=SERVED_CALLS_AT_ONCE,
        )
        self._place = Place(endpoint.model, endpoint.url, sendable(key, KEY_VARIABLE))
        self._client = _client(endpoint, key or NO_KEY, (self._restrict, self._refuse))
        is_vendor = endpoint.host == VENDOR_HOST
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

    @property
    def takes_grammars(self) -> bool:
        """Whether the server can hold a model to a grammar."""
        return self._dialect.grammars is not Grammars.NONE

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the server, put together from its stream."""
        wire = Wire(request)
        request = wire.request
        answer = Answer(request, self._info, self._place, self._speech_of(request, self._place.blotted))
        listened = self._listen(request, answer, on_chunk)
        return wire.restored(await answered(listened, answer, self._place, fault_of_event))

    async def _listen(self, request: ModelRequest, answer: Answer, on_chunk: StreamHandler | None) -> None:
        reader, kind = EventReader(), ""
        completions = self._client.chat.completions.with_streaming_response
        model, told = self._endpoint.model, self._format_of
        body = body_of(model, request, limit=self._limit, format_of=told, dialect=self._dialect)
        # All is in the body: messages that are given as an argument are walked through by the package, one by one.
        call = completions.create(model=model, messages=[], stream=True, extra_body=body)
        async with call as response, aclosing(response.http_response.aiter_raw()) as stream:
            kind = response.headers.get("content-type", "")
            async for data in stream:
                for event in reader.feed(data):
                    if event == DONE:
                        return
                    pass_on(answer, event, on_chunk)
        for event in reader.end():
            if event != DONE:
                pass_on(answer, event, on_chunk)
        if reader.events == 0:
            answer.reject(f"it holds no event, and is said to be {self._place.said(kind)!r}; check the url")

    async def _restrict(self, request: Request) -> None:
        """Send what is needed and nothing else, with the key that was given and no other."""
        sent = HEADERS_OF_VENDOR if self._endpoint.host == VENDOR_HOST else HEADERS
        for name in [name for name in request.headers if name.lower() not in sent]:
            del request.headers[name]
        request.headers["authorization"] = f"Bearer {self._place.key or NO_KEY}"

    async def _refuse(self, response: Response) -> None:
        """Turn whatever is no answer into a fault, before the package reads it to an end that may never come."""
        await refuse_unanswered(response, self._place, fault_of_status)


def open_openai(rest: str, settings: EngineSettings, known: Dialect | None = None) -> Engine:
    """The engine that the part of a spec behind `openai:` names. `known` is how its server is spoken to, if anybody knows."""
    endpoint = read_endpoint(rest, url_default=settings.openai_base_url)
    name, own_url = f"{OPENAI}:{endpoint.model}", "http://127.0.0.1:8080/v1"
    check_reach(name, endpoint, settings.openai_api_key, variable=KEY_VARIABLE, own_url=own_url)
    return OpenAIEngine(endpoint, key=settings.openai_api_key, known=known)


def _client(endpoint: Endpoint, key: str, looks: Looks) -> "AsyncOpenAI":
    """The package's client, which neither repeats a call nor follows where another server sends it."""
    package = _package()
    # This machine is reached directly, and nobody has to be trusted for it.
    is_plain = endpoint.is_loopback and endpoint.url.startswith("http:")
    connections = package.DefaultAsyncHttpxClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        trust_env=not endpoint.is_loopback,
        follow_redirects=False,
        timeout=package.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
        event_hooks={"request": [looks[0]], "response": [looks[1]]},
    )
    client: AsyncOpenAI = package.AsyncOpenAI(
        api_key=key,
        base_url=endpoint.url,
        max_retries=0,
        timeout=package.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
        http_client=connections,
        # A connection that is kept belongs to the loop it was made in, and would have to be closed there.
        default_headers={"Connection": "close", "Accept-Encoding": "identity"},
    )
    return client


def _package() -> ModuleType:
    try:
        import openai
    except ImportError:
        message = "engines of the kind 'openai' need a package that is not here; pip install 'remit[openai]'"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message) from None
    return openai
