"""The client for HTTP: one request over a connection to an address that was checked, within a budget of time and bytes.

Rule 1: a name is resolved once. Every address it has must be reachable for us, and the connection goes to one of these
        very addresses: there is no second look-up that could answer otherwise.
Rule 2: the certificate is verified for the name, not for the address. Nothing is sent but the request itself: no cookies,
        no credentials, and no proxy of the environment is asked. No redirect is followed.
Rule 3: every byte is read under one deadline and one count, so that neither a slow nor an endless answer goes on.
Rule 4: nothing is decompressed. It is not asked for, and a page that is sent so all the same is refused.
"""

import http.client
import io
import os
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import ip_address
from time import monotonic
from typing import Any, NamedTuple

from remit.tool.builtin.addresses import IpAddress, Network, is_reachable
from remit.tool.builtin.refusal import ToolRefused, quoted_value
from remit.tool.builtin.targets import Target, refused_host
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.threads import Threads

HTTP_NOT_RESOLVED = "HTTP_NOT_RESOLVED"
HTTP_NOT_CONNECTED = "HTTP_NOT_CONNECTED"
HTTP_NOT_TRUSTED = "HTTP_NOT_TRUSTED"
HTTP_TOO_SLOW = "HTTP_TOO_SLOW"
HTTP_TOO_LARGE = "HTTP_TOO_LARGE"
HTTP_ANSWER_INVALID = "HTTP_ANSWER_INVALID"

# All of a fetch, redirects included. Whatever takes longer keeps a run waiting for a page it may not need.
FETCH_MS_MAX = 20_000
# A text of this size fills any prompt; what follows is cut off.
BODY_BYTES_MAX = 128 * 1024
# Status, headers and the marks between chunks, besides the body.
OVERHEAD_BYTES_MAX = 64 * 1024
# One read never waits longer than this, so that a cancelled call is noticed.
WAIT_MS_MAX = 250
# A host with more addresses than this is not tried at each of them.
ADDRESSES_MAX = 4
_READ_BYTES = 16_384

USER_AGENT = "remit"
ACCEPT = "text/*, application/json, application/xml;q=0.9, */*;q=0.1"


class HttpRequest(NamedTuple):
    """A request as it is sent, and how much of the answer is kept.

    `is_lenient` says that the status counts whatever becomes of the body: what cannot be read of it is left out.
    """

    target: Target
    method: str
    headers: Mapping[str, str]
    body: bytes = b""
    answer_bytes_max: int = BODY_BYTES_MAX
    is_lenient: bool = False

    @property
    def request(self) -> bytes:
        """What is sent."""
        target = self.target
        lines = (
            f"{self.method} {target.path} HTTP/1.1",
            f"Host: {target.authority}",
            f"User-Agent: {USER_AGENT}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            "Accept-Encoding: identity",
            "Connection: close",
        )
        return "\r\n".join((*lines, "", "")).encode("ascii") + self.body


class HttpAnswer(NamedTuple):
    """What a server said: the status, the headers of interest, and the beginning of the body."""

    status: int
    location: str
    content_type: str
    body: bytes
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Reach:
    """What an operator decided in Python: networks that may be reached although they are not public, and whom to trust."""

    networks: Sequence[Network] = ()
    trust: ssl.SSLContext | None = None


# What holds when the operator decided nothing.
INTERNET = Reach()


class Deadline:
    """How long a fetch may still take, and whether it is still wanted."""

    __slots__ = ("_ends_s", "_token", "fetch_ms_max")

    def __init__(self, token: CancelToken, fetch_ms_max: int = FETCH_MS_MAX) -> None:
        self.fetch_ms_max = fetch_ms_max
        self._ends_s = monotonic() + fetch_ms_max / 1000
        self._token = token

    def left_s(self) -> float:
        """The seconds that are left; raises when there are none, or the call was cancelled."""
        self._token.raise_if_cancelled()
        left = self._ends_s - monotonic()
        if left <= 0:
            message = f"the fetch took longer than fetch_ms_max={self.fetch_ms_max}; try a smaller or a faster page"
            raise ToolRefused(HTTP_TOO_SLOW, message)
        return left


def fetched(target: Target, reach: Reach, deadline: Deadline) -> HttpAnswer:
    """Ask for one target, and read what comes back. A redirect is an answer like any other."""
    addresses = checked_addresses(target, reach.networks, deadline)
    return exchanged(HttpRequest(target, "GET", {"Accept": ACCEPT}), addresses, deadline, reach.trust)


def exchanged(
    exchange: HttpRequest, addresses: Sequence[IpAddress], deadline: Deadline, trust: ssl.SSLContext | None = None
) -> HttpAnswer:
    """Send a request to one of these addresses, and read what comes back."""
    target = exchange.target
    with (
        _told(target, deadline),
        _connected(target, addresses, deadline) as plain,
        _secured(plain, target, trust, deadline) as connection,
    ):
        connection.settimeout(deadline.left_s())
        connection.sendall(exchange.request)
        return _answer(connection, exchange, deadline)


def checked_addresses(target: Target, networks: Sequence[Network], deadline: Deadline) -> list[IpAddress]:
    """Every address of the host, if each of them may be reached; one that may not spoils them all."""
    found = resolved(target, deadline)
    if not all(is_reachable(address, networks) for address in found):
        raise refused_host(target.host)
    return found[:ADDRESSES_MAX]


def resolved(target: Target, deadline: Deadline) -> list[IpAddress]:
    """Every address that the host has, whatever it leads to."""
    # A look-up cannot be interrupted, so it has a thread of its own, which is left behind if it takes too long.
    look_up = partial(socket.getaddrinfo, target.host, target.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    future = _resolvers(os.getpid()).submit(look_up)
    try:
        while not wait([future], min(deadline.left_s(), WAIT_MS_MAX / 1000)).done:
            pass
        rows = future.result()
    except (OSError, UnicodeError):
        message = f"host {quoted_value(target.host)} cannot be resolved; check its spelling"
        raise ToolRefused(HTTP_NOT_RESOLVED, message) from None
    finally:
        # A look-up that has not begun is not begun any more.
        future.cancel()
    # A scope behind the address is kept, so that it can be refused.
    found = list(dict.fromkeys(ip_address(row[4][0]) for row in rows))
    if not found:
        raise ToolRefused(HTTP_NOT_RESOLVED, f"host {quoted_value(target.host)} has no address; check its spelling")
    return found


@cache
def _resolvers(pid: int) -> Threads:
    """The threads that look names up. Those of the tools may all be taken, by fetches that wait for this very answer."""
    return Threads()


@contextmanager
def _connected(target: Target, addresses: Sequence[IpAddress], deadline: Deadline) -> Iterator[socket.socket]:
    """A connection to the first of these addresses that takes one."""
    for address in addresses:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left_s())
            connection.connect((str(address), target.port))
        except OSError:
            connection.close()
            continue
        except BaseException:
            connection.close()
            raise
        with connection:
            yield connection
        return
    raise ToolRefused(HTTP_NOT_CONNECTED, f"{quoted_value(target.authority)} does not take a connection; try later")


@contextmanager
def _secured(
    connection: socket.socket, target: Target, trust: ssl.SSLContext | None, deadline: Deadline
) -> Iterator[socket.socket]:
    if target.scheme != "https":
        yield connection
        return
    context = trust or trusted()
    connection.settimeout(deadline.left_s())
    with context.wrap_socket(connection, server_hostname=target.host) as secured:
        yield secured


def trusted() -> ssl.SSLContext:
    """The certificates of this machine, and no exception from them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    return context


def _answer(connection: socket.socket, exchange: HttpRequest, deadline: Deadline) -> HttpAnswer:
    wire = _Wire(connection, deadline, exchange.answer_bytes_max + OVERHEAD_BYTES_MAX)
    # The reader of the standard library asks a socket for a file, and so gets ours.
    with http.client.HTTPResponse(_Lent(wire), method=exchange.method) as response:  # type: ignore[arg-type]
        response.begin()
        if not exchange.is_lenient:
            _check_encodings(response, exchange.target)
        body, is_whole = bytearray(), True
        try:
            # One byte more than is kept tells whether there is more.
            while room := exchange.answer_bytes_max + 1 - len(body):
                part = response.read(min(room, _READ_BYTES))
                if not part:
                    break
                body += part
        except http.client.IncompleteRead as error:
            if not exchange.is_lenient:
                raise
            body, is_whole = body + error.partial, False
        return HttpAnswer(
            status=response.status,
            location=response.getheader("Location", ""),
            content_type=response.getheader("Content-Type", ""),
            body=bytes(body[: exchange.answer_bytes_max]),
            # What a length promised and the connection did not bring is missing, too.
            is_complete=is_whole and len(body) <= exchange.answer_bytes_max and not response.length,
        )


def _check_encodings(response: http.client.HTTPResponse, target: Target) -> None:
    content = response.getheader("Content-Encoding", "identity").strip().lower()
    transfer = response.getheader("Transfer-Encoding", "chunked").strip().lower()
    if content not in ("", "identity") or transfer not in ("chunked", "identity"):
        message = (
            f"{quoted_value(target.authority)} sent an encoded body, though it was asked not to; it is not decoded"
        )
        raise ToolRefused(HTTP_ANSWER_INVALID, message)


class _Wire(io.RawIOBase):
    """Bytes as they arrive: each read waits no longer than the deadline, and all of them are counted."""

    def __init__(self, connection: socket.socket, deadline: Deadline, bytes_max: int) -> None:
        self._connection = connection
        self._deadline = deadline
        self._bytes_max = self._bytes_left = bytes_max

    def readable(self) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """It can be read, and nothing else."""
        return True

    def readinto(self, buffer: Any) -> int:  # type: ignore[explicit-override]
        """The next bytes, as many as there are; none at the end."""
        if self._bytes_left <= 0:
            message = f"the answer has more than {self._bytes_max} bytes; ask for a smaller page"
            raise ToolRefused(HTTP_TOO_LARGE, message)
        room = memoryview(buffer)[: self._bytes_left]
        while True:
            self._connection.settimeout(min(self._deadline.left_s(), WAIT_MS_MAX / 1000))
            try:
                count = self._connection.recv_into(room)
            except TimeoutError:
                continue
            self._bytes_left -= count
            return count


class _Lent:
    """Passes for a socket where only its file is asked for."""

    __slots__ = ("_wire",)

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def makefile(self, mode: str) -> Any:
        """The file to read from."""
        return io.BufferedReader(self._wire)


@contextmanager
def _told(target: Target, deadline: Deadline) -> Iterator[None]:
    """Errors of the network in our words: the host as it was named, and no address."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        message = (
            f"the certificate of {quoted_value(target.host)} is not valid ({error.verify_message}); use another host"
        )
        raise ToolRefused(HTTP_NOT_TRUSTED, message) from error
    except TimeoutError as error:
        message = f"{quoted_value(target.authority)} took longer than fetch_ms_max={deadline.fetch_ms_max}; try later"
        raise ToolRefused(HTTP_TOO_SLOW, message) from error
    except OSError as error:
        message = f"the connection to {quoted_value(target.authority)} broke ({type(error).__name__}); try later"
        raise ToolRefused(HTTP_NOT_CONNECTED, message) from error
    except (http.client.HTTPException, ValueError) as error:
        message = (
            f"{quoted_value(target.authority)} answered with no proper HTTP ({type(error).__name__}); use another host"
        )
        raise ToolRefused(HTTP_ANSWER_INVALID, message) from error
