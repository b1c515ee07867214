"""A webhook on this machine, with a real server in a thread: it keeps what it gets, and answers what it was told to."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from remit.core.record import JsonObject
from remit.orchestrate.people.webhook import SIGNATURE_HEADER, TIME_HEADER, signature_of

KEY = b"k" * 32

# Gives status and body for the values that came in.
Answering = Callable[[JsonObject], tuple[int, bytes]]


def thanks(values: JsonObject) -> tuple[int, bytes]:
    """Takes everything and decides nothing."""
    return 200, b"thank you"


def deciding(decision: object, **more: Any) -> Answering:
    """Decides what it is sent, about the packet that it is sent."""

    def answer(values: JsonObject) -> tuple[int, bytes]:
        said = {"decision": decision, "by": "ann", "packet": values["packet"], **more}
        return 200, json.dumps(said).encode()

    return answer


class Hook:
    """What a webhook got, and where it is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.got: list[JsonObject] = []
        self.headers: list[dict[str, str]] = []
        # Whether each body was signed with the key.
        self.signed: list[bool] = []


@contextmanager
def hooked(answer: Answering = thanks) -> Iterator[Hook]:
    """A webhook that answers so, for as long as it is needed."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            expected = f"sha256={signature_of(KEY, int(self.headers[TIME_HEADER]), body)}"
            hook.signed.append(self.headers[SIGNATURE_HEADER] == expected)
            hook.got.append(json.loads(body))
            hook.headers.append(dict(self.headers.items()))
            status, said = answer(hook.got[-1])
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:  # type: ignore[explicit-override]  # noqa: A002
            """No reader looks at a log here."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook = Hook(f"http://127.0.0.1:{server.server_port}/hook?team=a")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
