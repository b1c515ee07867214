"""The webhook channel and the file of permissions: signed messages in, signed replies out, and nothing else believed."""

import asyncio
import json
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from remit.backend.clock import WallClock, wall_clock_ms
from remit.core.failure import RequestRejected
from remit.core.journal.signing import Signer
from remit.core.journal.storage import StoreUnusable
from remit.orchestrate.gateway.clerk import read_channels
from remit.orchestrate.gateway.told_mark import ToldMark
from remit.orchestrate.gateway.webhook_channel import TRIES_MAX, WebhookChannel, inlet
from remit.orchestrate.people.webhook import signature_of
from remit.wire.channels import Permission, Permissions, may_do
from remit.wire.payloads import HandedMessage, PublishedMessage
from tests.unit.orchestrate.paper_broker import AT, MARK, PaperBroker

KEY = b"k" * 32
MESSAGE = {
    "message_id": "m1",
    "channel_type": "webhook",
    "channel_id": "W1",
    "user_id": "ann",
    "content": "Hello.",
    "timestamp": AT,
}
REPLY = {
    "response_id": "r1",
    "channel_type": "webhook",
    "channel_id": "W1",
    "user_id": "ann",
    "type": "result",
    "content": "Done.",
    "timestamp": AT,
}


def signed(value: object, *, at_ms: int = 0, key: bytes = KEY) -> tuple[bytes, dict[str, str]]:
    body, at_ms = json.dumps(value).encode(), at_ms or wall_clock_ms()
    return body, {"Remit-Time": str(at_ms), "Remit-Signature": signature_of(key, at_ms, body)}


def posted_to(port: int, body: bytes, headers: dict[str, str], path: str = "/messages") -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    value: dict[str, Any] = json.loads(answer.read())
    connection.close()
    return answer.status, value


class _Callback:
    """An address that takes replies, and says what it is told to say."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        callback = self

        class Request(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                callback.got.append((dict(self.headers.items()), body))
                self.send_response(callback.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Request)
        self.thread = Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/replies"

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.mark.req("3.18")
def test_a_signed_message_is_published_once_and_what_is_not_signed_or_not_of_this_channel_is_refused() -> None:
    async def main() -> None:
        broker = PaperBroker()
        channel = WebhookChannel(broker, KEY, "http://127.0.0.1:9/x", clock=WallClock(), check=MARK)
        with inlet(channel.hear, "127.0.0.1", 0) as port:

            async def sent(body: bytes, headers: dict[str, str], path: str = "/messages") -> tuple[int, dict[str, Any]]:
                return await asyncio.to_thread(posted_to, port, body, headers, path)

            assert await sent(*signed(MESSAGE)) == (202, {"message_id": "m1"})
            assert await sent(*signed(MESSAGE)) == (202, {"message_id": "m1"})
            assert broker.under("user.message.webhook.W1") == [MESSAGE]
            status, said = await sent(*signed(MESSAGE, key=b"x" * 32))
            assert (status, said["code"]) == (401, "CHANNEL_UNSIGNED")
            status, said = await sent(*signed(MESSAGE, at_ms=1_000))
            assert (status, said["code"]) == (401, "CHANNEL_UNSIGNED")
            assert (await sent(b"{}", {"Remit-Time": "now"}))[0] == 401
            status, said = await sent(*signed({**MESSAGE, "channel_type": "slack"}))
            assert (status, said["code"]) == (400, "CHANNEL_FOREIGN")
            assert (await sent(*signed({**MESSAGE, "user_id": ""})))[1]["code"] == "WIRE_RULE_BROKEN"
            assert (await sent(*signed(MESSAGE), path="/else"))[0] == 404
            status, said = await sent(b"", {"Content-Length": "2000000"})
            assert (status, said["code"]) == (413, "WIRE_TOO_LARGE")
            channel._broker = _Away()  # a server that went away
            assert (await sent(*signed(MESSAGE)))[0] == 503

    asyncio.run(main())


class _Away(PaperBroker):
    async def publish(self, *_: object, **__: object) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        raise StoreUnusable("STORE_UNREACHABLE", "away")


def test_replies_are_posted_signed_and_those_not_taken_are_tried_again_and_then_put_aside() -> None:
    async def main() -> None:
        broker, callback = PaperBroker(), _Callback()
        channel = WebhookChannel(broker, KEY, callback.url, clock=WallClock(), check=MARK)
        serving = asyncio.create_task(channel.run())
        try:
            first = broker.send("user.response.webhook.W1", REPLY, told=MARK)
            await broker.until(lambda: broker.ended.get(first) == "done")
            headers, body = callback.got[0]
            assert headers["Remit-Signature"] == signature_of(KEY, int(headers["Remit-Time"]), body)
            assert (headers["Remit-Item"], json.loads(body)["content"]) == ("r1", "Done.")
            callback.status = 500
            second = broker.send("user.response.webhook.W1", REPLY, told=MARK)
            await broker.until(lambda: broker.ended.get(second) == "later")
            third = broker.send("user.response.webhook.W1", REPLY, told=MARK, tries=TRIES_MAX)
            await broker.until(lambda: broker.dead.get(third) == "WEBHOOK_UNREACHABLE")
        finally:
            serving.cancel()
            callback.close()
        told = MARK.marked(PublishedMessage("user.response.webhook.W1", {}, json.dumps(REPLY).encode()))
        away = HandedMessage(subject=told.subject, headers=told.headers, data=told.data, place=9)
        await channel.deliver(away)
        assert broker.ended[9] == "later"

    asyncio.run(main())


def test_a_reply_that_no_gateway_told_is_signed_for_nobody_and_kept_with_its_code(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        broker, callback = PaperBroker(), _Callback()
        channel = WebhookChannel(broker, KEY, callback.url, clock=WallClock(), check=MARK)
        serving = asyncio.create_task(channel.run())
        try:
            forged = {
                broker.send("user.response.webhook.W1", REPLY): "MESSAGE_UNSIGNED",
                broker.send("user.response.webhook.W1", b"{nonsense"): "MESSAGE_UNSIGNED",
                broker.send("user.response.webhook.W1", REPLY, told=ToldMark(Signer.generate())): "SIGNER_UNKNOWN",
            }
            await broker.until(lambda: broker.dead == forged)
            true = broker.send("user.response.webhook.W1", REPLY, told=MARK)
            await broker.until(lambda: broker.ended.get(true) == "done")
            assert len(callback.got) == 1
        finally:
            serving.cancel()
            callback.close()

    asyncio.run(main())
    assert "MESSAGE_UNSIGNED: a reply under user.response.webhook.W1 is not delivered" in caplog.text


def test_a_file_says_who_may_do_what_and_names_the_line_where_it_cannot(tmp_path: Path) -> None:
    path = tmp_path / "channels.yaml"
    path.write_text(
        "permissions:\n  approve: [bob]\nchannels:\n  webhook:\n    submit_task: [desk]\ngroups:\n  desk: [dora]\n"
    )
    rules = read_channels(path)
    assert rules.permissions_in("cli") == Permissions(approve=("bob",))
    closed = rules.permissions_in("webhook")
    assert may_do(closed, Permission.SUBMIT, "dora", rules.groups_of("dora"))
    assert not may_do(closed, Permission.SUBMIT, "ann", rules.groups_of("ann"))
    for wrong in ("permission: {}\n", "permissions:\n  approve: bob\n", "groups:\n  desk: [1]\n", "channels: [x]\n"):
        path.write_text(wrong)
        with pytest.raises(RequestRejected, match=r"channels\.yaml"):
            read_channels(path)
