"""A real server on this machine that says exactly what a test wants, byte for byte, and remembers what it was asked."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from threading import Event, Thread

from remit.tool.builtin.http_client import Reach
from remit.tool.builtin.targets import AllowedHost

Reply = bytes | Callable[[socket.socket, Event], None]

# Tests allow the tool to reach this machine, as an operator may in Python.
HERE = Reach((ip_network("127.0.0.0/8"),))


class Server:
    """Answers each connection with the next reply; the last one repeats."""

    def __init__(self, *replies: Reply, context: ssl.SSLContext | None = None) -> None:
        self._replies = list(replies)
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopping = Event()
        self.port = int(self._listener.getsockname()[1])
        self.asked: list[str] = []

    @property
    def hosts(self) -> list[AllowedHost]:
        return [AllowedHost("127.0.0.1", self.port), AllowedHost("pages.example.org", self.port)]

    def url(self, path: str = "/", *, scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def serve(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            # A client that goes away in the middle is what many of the tests are about.
            with suppress(OSError), self._secured(connection) as client:
                self._answer(client)

    def stop(self) -> None:
        self._stopping.set()
        # Closing a listener does not wake a thread that waits at it; shutting it down does.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _secured(self, connection: socket.socket) -> socket.socket:
        if self._context is None:
            return connection
        with connection:
            return self._context.wrap_socket(connection, server_side=True)

    def _answer(self, client: socket.socket) -> None:
        request = b""
        # What does not begin like a GET, a handshake for example, is answered at once.
        while request[:1] in b"G" and not request.endswith(b"\r\n\r\n") and (part := client.recv(4096)):
            request += part
        self.asked.append(request.decode("latin-1"))
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if callable(reply):
            reply(client, self._stopping)
        else:
            client.sendall(reply)


@contextmanager
def serving(*replies: Reply, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server for the time of a test."""
    server = Server(*replies, context=context)
    thread = Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def reply(body: bytes = b"hello", status: str = "200 OK", **headers: str) -> bytes:
    """A plain answer with its length; `content_type` and other headers may be given."""
    given = {"content_type": "text/plain", "content_length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1") + body


def moved(location: str, status: str = "302 Found") -> bytes:
    """A redirect."""
    return reply(b"", status, location=location)
