"""A server that streams its answers: how it is called, how its events are read, and what becomes of a failure.

Rule 1: every answer is streamed, whether or not the caller listens: that is how a call is cancelled for real.
Rule 2: nothing is tried twice here and no redirect is followed; the run decides about that.
Rule 3: no connection outlives its call, so there is nothing to close, and a server can be asked from one loop after another.
Rule 4: bytes may be cut anywhere; an event is what stands between two empty lines. A line, an event and a stream have an
        end: what goes on and on is given up before it fills the memory. All bytes count, those around the data too.
Rule 5: nothing is unpacked: a few bytes could become gigabytes.
Rule 6: whatever goes wrong on the way is a fault with a code; what is no failure of a connection is a bug and passes.
Rule 7: a key goes nowhere in the clear unless its owner said so, and is never repeated. No header comes from the environment.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.installing import install_command
from remit.core.record import JsonObject
from remit.core.run.inference import ModelResult
from remit.inference.answers.streamed_answer import ServerFailed, StreamedAnswer
from remit.inference.endpoint.faults import (
    REFUSAL_BYTES_MAX,
    EndpointPlace,
    fault_of_event,
    fault_of_exception,
    fault_of_status,
)
from remit.inference.engine import EngineFault, StreamHandler
from remit.inference.openai.spec import ALLOWED, PLAIN_HTTP, Endpoint

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

# A server that does not pick up by then is not there.
CONNECT_TIMEOUT_S = 10.0
# The run has a deadline of its own; without one, no silence is waited out for longer than this.
SILENCE_TIMEOUT_S = 600.0

# What a server on the user's own machine is sent in the place of a key: some ask for any.
NO_KEY = "none"

# A whole answer in one event is under this; a line without an end is not.
EVENT_BYTES_MAX = 4 * 1024 * 1024
# A million pieces of a token each, with everything that servers put around one.
STREAM_BYTES_MAX = 512 * 1024 * 1024

# What some servers put before the first letter; it means nothing.
_BOM = b"\xef\xbb\xbf"
# Some servers announce a failure under a field of its own.
_FIELDS = (b"data", b"error")


# What every server is sent, whatever its API.
_HEADERS: Mapping[str, str] = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "connection": "close",
    "user-agent": "remit",
}


class Server:
    """One server, asked by POST at one path. `headers` are those of its API, the key among them."""

    def __init__(self, endpoint: Endpoint, place: EndpointPlace, headers: Mapping[str, str]) -> None:
        self._place = place
        self._url = f"{endpoint.url}{place.api.path}"
        self._headers = {**_HEADERS, **headers}
        self._client = _client(endpoint, _package(place))

    async def answered(
        self, body: JsonObject, answer: StreamedAnswer, on_chunk: StreamHandler | None = None
    ) -> ModelResult:
        """The whole answer to a body, once its stream was listened to; or EngineFault."""
        began_s = time.monotonic()
        try:
            await self._listen(body, answer, on_chunk)
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

    async def _listen(self, body: JsonObject, answer: StreamedAnswer, on_chunk: StreamHandler | None) -> None:
        reader = EventReader()
        async with self._client.stream("POST", self._url, json=body, headers=self._headers) as response:
            await _refuse_unanswered(response, self._place)
            async with aclosing(response.aiter_raw()) as stream:
                async for data in stream:
                    for event in reader.feed(data):
                        _pass_on(answer, event, on_chunk)
                        if answer.is_over:
                            return
            for event in reader.end():
                _pass_on(answer, event, on_chunk)
            if reader.events == 0:
                kind = self._place.said(response.headers.get("content-type", ""))
                answer.reject(f"it holds no event, and is said to be {kind!r}; check the url", is_final=True)


def _client(endpoint: Endpoint, package: ModuleType) -> "AsyncClient":
    """What makes connections: one for each call, and none that is kept."""
    # This machine is reached directly, without a proxy and without certificates.
    is_plain = endpoint.is_loopback and endpoint.url.startswith("http:")
    client: AsyncClient = package.AsyncClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        trust_env=not endpoint.is_loopback,
        follow_redirects=False,
        timeout=package.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
        # A connection that is kept belongs to the loop it was made in, and would have to be closed there.
        limits=package.Limits(max_connections=None, max_keepalive_connections=0),
    )
    return client


def _package(place: EndpointPlace) -> ModuleType:
    try:
        import httpx2
    except ImportError:
        extra = place.api.extra
        message = f"engines of the kind {extra!r} need the package httpx2; install it with: {install_command(extra)}"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message) from None
    return httpx2


async def _refuse_unanswered(response: "Response", place: EndpointPlace) -> None:
    """Let an answer through that can be read as it comes, and turn anything else into a fault."""
    if 200 <= response.status_code < 300:
        if (packing := response.headers.get("content-encoding", "").strip().lower()) not in ("", "identity"):
            said = place.said(packing)
            message = f"{place.url} packed its answer as {said!r}, though it was asked not to; it is not unpacked"
            raise EngineFault(ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, was_cut=True, is_final=True)
        return
    body = bytearray()
    async with aclosing(response.aiter_raw()) as stream:
        async for data in stream:
            body += data
            if len(body) > REFUSAL_BYTES_MAX:
                break
    raise fault_of_status(place, response.status_code, response.headers, bytes(body))


def _pass_on(answer: StreamedAnswer, event: bytes, on_chunk: StreamHandler | None) -> None:
    """Add an event to an answer, and hand what it added to the listener."""
    chunk = answer.take(event)
    if chunk is not None and on_chunk is not None:
        on_chunk(chunk)


class StreamTooLong(Exception):
    """A line, an event or a stream did not end. The text says which, and its limit."""


class EventReader:
    """Takes bytes as they come and gives events as they are whole; `events` is how many there were."""

    __slots__ = ("_data", "_data_bytes", "_has_begun", "_pending", "_read_bytes", "events")

    def __init__(self) -> None:
        self.events = 0
        self._pending = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._has_begun = False
        self._read_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events that these bytes complete."""
        self._read_bytes += len(data)
        if self._read_bytes > STREAM_BYTES_MAX:
            raise StreamTooLong(f"the stream goes on behind stream_bytes_max={STREAM_BYTES_MAX}")
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._pending:
                line = bytes(self._pending) + line
                self._pending.clear()
            yield from self._take(line)
        self._pending += rest
        if len(self._pending) > EVENT_BYTES_MAX:
            raise StreamTooLong(f"a line goes on behind event_bytes_max={EVENT_BYTES_MAX}")

    def end(self) -> Iterator[bytes]:
        """Give what is left when no more bytes come, and keep nothing: servers leave out the last empty line."""
        if self._pending:
            line = bytes(self._pending)
            self._pending.clear()
            yield from self._take(line)
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun, line = True, line.removeprefix(_BOM)
        line = line.removesuffix(b"\r")
        if not line:
            if self._data:
                event = b"\n".join(self._data)
                self._data, self._data_bytes = [], 0
                self.events += 1
                yield event
            return
        field, _, value = line.partition(b":")
        if field in _FIELDS:
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(line)
            if self._data_bytes > EVENT_BYTES_MAX:
                raise StreamTooLong(f"an event goes on behind event_bytes_max={EVENT_BYTES_MAX}")


def check_reach(name: str, endpoint: Endpoint, key: str, *, variable: str, own_url: str) -> None:
    """Refuse to ask a server without the key that it needs, or where it could be read on the way."""
    if not key and not endpoint.is_loopback:
        message = (
            f"engine {name!r} asks {endpoint.url}, which needs a key; set {variable}, or name a server of your own as "
            f"?url={own_url}"
        )
        if find_spec("httpx2") is None:
            # Both at once: who sets the key would only then hear of the package.
            extra = name.partition(":")[0]
            message = f"{message}; the package httpx2 is missing, too; install it with: {install_command(extra)}"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    if not endpoint.is_private:
        message = (
            f"engine {name!r} asks {endpoint.url}, where every machine on the way reads the key and the conversation; name an "
            f"https url, or add {PLAIN_HTTP}={ALLOWED} to the spec if you trust the network"
        )
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)


def sendable(key: str, variable: str) -> str:
    """The key, if it can stand in a header; a line end that came along with it would stand in errors of the package."""
    if key.isascii() and key.isprintable() and " " not in key:
        return key
    message = f"{variable} holds a space, a line end or a letter that no key has; set it again, without them"
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
