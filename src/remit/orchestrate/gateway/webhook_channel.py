"""The webhook channel: messages of users come by signed HTTP requests, and replies go to an address as signed requests.

Rule 1: a request counts when it is signed with the key of the channel, over its time and its bytes, and no older than some
        minutes. A message that comes again means what it meant before: it is published under its own name.
Rule 2: a reply is delivered at least once, in the order of its loop; its id tells that it came before.
Rule 3: what no gateway of the deployment has told is no reply: it is not signed, and kept as a dead letter.
Rule 4: a holder of the key speaks for all users of the channel: it belongs to the program that knows them.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.codec import to_json
from remit.core.record import digest_of
from remit.observe.logs import NO_RUN
from remit.orchestrate.gateway.broker import Broker
from remit.orchestrate.gateway.told_mark import ToldCheck
from remit.orchestrate.people.webhook import (
    ITEM_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    WEBHOOK_UNREACHABLE,
    post,
    signature_of,
)
from remit.orchestrate.ports import Clock
from remit.wire.message_records import UserMessage, UserResponse
from remit.wire.payloads import MESSAGE_BYTES_MAX, HandedMessage, delivered, posted, read

CHANNEL_UNSIGNED = "CHANNEL_UNSIGNED"
CHANNEL_FOREIGN = "CHANNEL_FOREIGN"

WEBHOOK = "webhook"
# A request that took longer is signed anew.
AGE_MS_MAX = 300_000
# A message waits for a gateway for so long.
MESSAGE_KEPT_S = 24 * 3_600
# A reply that an address refused so often, or did not hear, is kept as a dead letter.
TRIES_MAX = 20
PAUSE_S = 1.0
_OK = range(200, 300)
_SUBJECT_CHARS_MAX = 200

PATH = "/messages"
TAKEN, WRONG, UNSIGNED, NOT_FOUND, TOO_LARGE, AWAY = 202, 400, 401, 404, 413, 503
# How long a client may take to send its message, and a server to take it.
ANSWER_S_MAX = 30.0

# Publishes a message from its bytes and headers; gives its id.
Hear = Callable[[bytes, dict[str, str]], Awaitable[str]]

_log = logging.getLogger(__name__)


class WebhookChannel:
    """One address that speaks for users."""

    def __init__(self, broker: Broker, key: bytes, callback: str, *, clock: Clock, check: ToldCheck) -> None:
        self._broker, self._key, self._callback, self._clock = broker, key, callback, clock
        self._check = check

    async def hear(self, body: bytes, headers: dict[str, str]) -> str:
        """Publish the message in a request; gives its id. Raises RequestRejected with a code."""
        said, signature = headers.get(TIME_HEADER, ""), headers.get(SIGNATURE_HEADER, "")
        at_ms = int(said) if said.isascii() and said.isdecimal() and len(said) < len(str(2**63)) else 0
        if not compare_digest(signature_of(self._key, at_ms, body).encode(), signature.encode("utf-8", "replace")):
            why = f"the request is not signed with the key of the channel; sign TIME.BODY in {SIGNATURE_HEADER}"
            raise RequestRejected(CHANNEL_UNSIGNED, why)
        if abs(self._clock.now_ms() - at_ms) > AGE_MS_MAX:
            raise RequestRejected(
                CHANNEL_UNSIGNED, f"{TIME_HEADER}={at_ms} is more than {AGE_MS_MAX} ms away; sign anew"
            )
        message = read(body, UserMessage)
        if message.channel_type != WEBHOOK:
            why = f"channel_type={message.channel_type[:80]!r} is not of this channel; say {WEBHOOK!r}"
            raise RequestRejected(CHANNEL_FOREIGN, why)
        key = digest_of(f"{message.channel_id}\n{message.message_id}".encode()).hex()
        await self._broker.publish(posted(message), key=key, keep_s=MESSAGE_KEPT_S)
        return message.message_id

    async def run(self) -> None:
        """Deliver replies until cancelled."""
        while True:
            try:
                for reply in await self._broker.take():
                    await self.deliver(reply)
            except RemitError as error:
                _log.warning("replies are asked for again: %s", error, extra=NO_RUN)
                await asyncio.sleep(PAUSE_S)

    async def deliver(self, reply: HandedMessage) -> None:
        """Send one reply to the address; one that is not taken is handed over again, and one that no gateway told is none."""
        if code := self._check.objection(reply):
            _log.warning(
                "%s: a reply under %s is not delivered", code, reply.subject[:_SUBJECT_CHARS_MAX], extra=NO_RUN
            )
            return await self._broker.refuse(reply, code, self._check.explained(code))
        response = delivered(reply.subject, reply.data, reply.headers)
        assert isinstance(response, UserResponse), "the subject carries nothing else"
        at_ms = self._clock.now_ms()
        headers = {
            TIME_HEADER: str(at_ms),
            SIGNATURE_HEADER: signature_of(self._key, at_ms, reply.data),
            ITEM_HEADER: response.response_id,
        }
        try:
            status = (await post(self._callback, reply.data, headers)).status
            why = f"it answered {status}"
        except RemitError as error:
            status, why = 0, error.message
        if status in _OK:
            return await self._broker.done(reply)
        if reply.tries >= TRIES_MAX:
            return await self._broker.refuse(reply, WEBHOOK_UNREACHABLE, why)
        return await self._broker.later(reply)


@contextmanager
def inlet(hear: Hear, host: str, port: int) -> Iterator[int]:
    """Listen while this is entered; gives the port. What comes is heard in the event loop of the caller."""
    loop = asyncio.get_running_loop()

    class Request(BaseHTTPRequestHandler):
        timeout = ANSWER_S_MAX

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path != PATH:
                return self._say(NOT_FOUND, {"code": "NOT_FOUND", "message": f"post a message to {PATH}"})
            if not length.isdecimal() or int(length) > MESSAGE_BYTES_MAX:
                message = f"Content-Length={length[:20]!r}; a message has at most {MESSAGE_BYTES_MAX} bytes"
                return self._say(TOO_LARGE, {"code": "WIRE_TOO_LARGE", "message": message})
            body = self.rfile.read(int(length))
            try:
                heard = asyncio.run_coroutine_threadsafe(_heard(hear, body, dict(self.headers.items())), loop)
                return self._say(TAKEN, {"message_id": heard.result(ANSWER_S_MAX)})
            except RemitError as error:
                status = {"CHANNEL_UNSIGNED": UNSIGNED, "STORE_UNREACHABLE": AWAY}.get(error.code, WRONG)
                return self._say(status, {"code": error.code, "message": error.message})
            except TimeoutError:
                return self._say(
                    AWAY, {"code": "STORE_UNREACHABLE", "message": "no server took it in time; send it again"}
                )

        def _say(self, status: int, value: dict[str, str]) -> None:
            body = to_json(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
            """Requests are no news; what is refused is told to its sender."""

    server = ThreadingHTTPServer((host, port), Request)
    thread = threading.Thread(target=server.serve_forever, name="remit-inlet", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def _heard(hear: Hear, body: bytes, headers: dict[str, str]) -> str:
    return await hear(body, headers)
