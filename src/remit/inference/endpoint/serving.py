"""Asking a server for an answer: what is the same whoever its vendor is.

Rule 1: whatever goes wrong on the way is a fault with a code; what is no failure of a connection is a bug and passes.
Rule 2: what is no answer becomes a fault before the vendor's package reads it to an end that may never come.
Rule 3: a key goes nowhere in the clear unless its owner said so, and is never repeated.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from typing import Any, NoReturn, Protocol, TypeAlias

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import ModelResult
from remit.inference.engine import EngineFault, StreamChunk, StreamHandler
from remit.inference.openai.answer import ServerFailed
from remit.inference.openai.faults import REFUSAL_BYTES_MAX, Place, fault_of_exception
from remit.inference.openai.server_events import StreamTooLong
from remit.inference.openai.spec import ALLOWED, PLAIN_HTTP, Endpoint

# Whoever does not pick up by then is not there.
CONNECT_TIMEOUT_S = 10.0
# The run has a deadline of its own; without one, no silence is waited out for longer than this.
SILENCE_TIMEOUT_S = 600.0

# Servers on one's own machine ask for no key, and the packages insist on one.
NO_KEY = "none"


class Request(Protocol):
    """What is needed of a request before it is sent."""

    @property
    def headers(self) -> MutableMapping[str, str]:
        """What goes along with it."""


class Response(Protocol):
    """What is needed of a response before the package has read it."""

    @property
    def status_code(self) -> int:
        """How the server took it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What came along with it."""

    def aiter_raw(self) -> AsyncGenerator[bytes]:
        """The body as it comes, packed as it was sent."""


class Heard(Protocol):
    """An answer that is put together from the events of a stream."""

    def take(self, event: bytes) -> StreamChunk | None:
        """What an event adds to what is heard, if it adds something."""

    def result(self, duration_ms: int) -> ModelResult:
        """The whole answer, now that no more events come."""

    def reject(self, problem: str) -> NoReturn:
        """Give the answer up as one that nobody can read."""


# Who looks at every request before it is sent, and at every response before it is read.
Looks: TypeAlias = tuple[Callable[[Request], Awaitable[None]], Callable[[Response], Awaitable[None]]]
FaultOfEvent: TypeAlias = Callable[[Place, Any], EngineFault]
FaultOfStatus: TypeAlias = Callable[[Place, int, Mapping[str, str], bytes], EngineFault]


async def answered(
    listening: Awaitable[None], answer: Heard, place: Place, fault_of_event: FaultOfEvent
) -> ModelResult:
    """The whole answer, once the stream was listened to; or EngineFault."""
    began_s = time.monotonic()
    try:
        await listening
    except StreamTooLong as error:
        answer.reject(str(error))
    except ServerFailed as error:
        raise fault_of_event(place, error.error) from error
    except EngineFault:
        raise
    except Exception as error:
        fault = fault_of_exception(place, error)
        if fault is None:
            raise
        raise fault from error
    return answer.result(int((time.monotonic() - began_s) * 1000))


async def refuse_unanswered(response: Response, place: Place, fault_of_status: FaultOfStatus) -> None:
    """Let an answer through that can be read as it comes, and turn anything else into a fault."""
    if 200 <= response.status_code < 300:
        if (packing := response.headers.get("content-encoding", "").strip().lower()) not in ("", "identity"):
            said = place.said(packing)
            message = f"{place.url} packed its answer as {said!r}, though nobody asked for it; it is not unpacked"
            raise EngineFault(ErrorCode.INFERENCE_MALFORMED_RESPONSE, message, was_cut=True)
        return
    body = bytearray()
    async with aclosing(response.aiter_raw()) as stream:
        async for data in stream:
            body += data
            if len(body) > REFUSAL_BYTES_MAX:
                break
    raise fault_of_status(place, response.status_code, response.headers, bytes(body))


def pass_on(answer: Heard, event: bytes, on_chunk: StreamHandler | None) -> None:
    """Add an event to an answer, and tell whoever listens what it added."""
    chunk = answer.take(event)
    if chunk is not None and on_chunk is not None:
        on_chunk(chunk)


def check_reach(name: str, endpoint: Endpoint, key: str, *, variable: str, own_url: str) -> None:
    """Refuse to ask a server without the key that it needs, or where anybody could read it on the way."""
    if not key and not endpoint.is_loopback:
        message = (
            f"engine {name!r} asks {endpoint.url}, which needs a key; set {variable}, or name a server of your own as "
            f"?url={own_url}"
        )
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    if not endpoint.is_private:
        message = (
            f"engine {name!r} asks {endpoint.url}, where anybody on the way reads the key and the conversation; name an "
            f"https url, or add {PLAIN_HTTP}={ALLOWED} to the spec if you trust the network"
        )
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)


def sendable(key: str, variable: str) -> str:
    """The key, if it can stand in a header; a line end that came along with it would be told in errors of the package."""
    if key.isascii() and key.isprintable() and " " not in key:
        return key
    message = f"{variable} holds a space, a line end or a letter that no key has; set it again, without them"
    raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
