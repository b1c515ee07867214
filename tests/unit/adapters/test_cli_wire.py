"""The commands of the wire on a real server: a gateway, both channels, and the keys of a cluster."""

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import Any

import nats
import pytest

from remit.adapters.cli.main import EXIT_USAGE
from remit.assemble import RunWork, Settings, opened_system, settings_of
from remit.assemble_wire import own_key, rules_in, sealed_line, serve_wire
from remit.backend.clock import wall_clock_ms
from remit.core.failure import EXIT_OK
from remit.core.journal.signing import Signer
from remit.orchestrate.people.webhook import signature_of
from remit.orchestrate.setup.kit import Terms
from tests.nats_server import clear, free_ports
from tests.unit.adapters.desk import Desk
from tests.unit.orchestrate.paper_broker import kit_of

KEY = b"k" * 32


@pytest.fixture(autouse=True)
def _unharmed() -> Iterator[None]:
    """A command that has ended by itself leaves the signal that would end it to no process."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


@contextmanager
def gateway_beside(home: Path, address: str, *, is_sealed: bool = False, root: str = "") -> Iterator[None]:
    """A gateway in a thread of its own, that says yes to everything."""
    ready, done = Event(), Event()

    async def serve() -> None:
        settings = settings_of(home=home, store=address)
        async with (
            opened_system(settings) as system,
            serve_wire(system, settings, RunWork(kit_of({"text": "Yes."}), Terms()), is_sealed=is_sealed, root=root),
        ):
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def meanwhile(client: Callable[[], Any]) -> Iterator[None]:
    """A client of a command that runs until it is ended: at last it ends it, whether or not it had what it wanted."""
    is_over = Event()

    def work() -> None:
        try:
            client()
        finally:
            # A signal that comes before the command listens is lost, and a second one would end the process at once.
            os.kill(os.getpid(), signal.SIGTERM)
            while not is_over.wait(10):
                os.kill(os.getpid(), signal.SIGTERM)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


async def _task(address: str, **headers: str) -> dict[str, Any]:
    """What became of a task: how it ended, or that it was put aside."""
    client = await nats.connect(address)
    told: asyncio.Queue[Any] = asyncio.Queue()
    await client.subscribe("agent.complete.*", cb=told.put)
    await client.subscribe("agent.dead.>", cb=told.put)
    stream = client.jetstream()
    body = json.dumps({"task_id": "t1", "prompt": "Hello."}).encode()
    async with asyncio.timeout(30):
        while True:
            try:
                await stream.publish("agent.task.t1", body, headers=headers or None)
                break
            except nats.js.errors.NoStreamResponseError:
                await asyncio.sleep(0.02)
        message = await told.get()
    await client.close()
    return {**json.loads(message.data), "code": (message.headers or {}).get("Remit-Code", "")}


def test_a_gateway_runs_until_it_is_ended_and_takes_tasks(desk: Desk) -> None:
    address, script = clear(), desk.script("Yes.")
    found: list[dict[str, Any]] = []
    with meanwhile(lambda: found.append(asyncio.run(_task(address)))):
        said = desk.say("gateway", "--engine", script, "--store", address)
    assert (said.code, found[0]["result"]) == (EXIT_OK, "Yes.")
    assert "WIRE_NEEDS_SERVERS" in desk.say("gateway", "--engine", script).err


def test_a_sealed_gateway_puts_aside_what_nobody_signed(desk: Desk) -> None:
    address = clear()
    own_key(settings_of(home=desk.home, store=address))
    with gateway_beside(desk.home, address, is_sealed=True):
        assert asyncio.run(_task(address))["code"] == "ENVELOPE_MALFORMED"


def test_a_gateway_with_a_key_of_its_own_believes_what_the_deployment_has_admitted(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, agent = clear(), tmp_path / "agent"
    dids = [own_key(settings_of(home=home, store=address))[0] for home in (desk.home, tmp_path / "gateway", agent)]
    monkeypatch.setenv("REMIT_TRUST", " ".join([os.environ["REMIT_TRUST"], *dids]))
    for did, role in zip(dids[1:], ("loop", "agent"), strict=True):
        assert desk.say("keys", "admit", did, "--role", role, "--store", address).code == EXIT_OK
    body = json.dumps({"task_id": "t1", "prompt": "Hello."}).encode()
    sealed = asyncio.run(_sealed(settings_of(home=agent, store=address), dids[0], "agent.task.t1", body))
    with gateway_beside(tmp_path / "gateway", address, is_sealed=True, root=dids[0]):
        assert asyncio.run(_task(address, **sealed))["result"] == "Yes."


async def _sealed(settings: Settings, root: str, subject: str, body: bytes) -> dict[str, str]:
    async with opened_system(settings) as system:
        return sealed_line(system, root=root).sign(subject, body)


def test_lines_of_a_terminal_are_messages_and_replies_are_printed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    address = clear()
    own_key(settings_of(home=desk.home, store=address))
    with gateway_beside(desk.home, address):
        for more in ((), ("--json",)):
            monkeypatch.setattr(sys, "stdin", io.StringIO("Hello.\n\n"))
            said = desk.say("channel", "cli", "--user", "ann", "--store", address, *more)
            assert (said.code, "Yes." in said.out) == (0, True)


def test_a_prompt_that_another_client_of_the_server_sends_is_not_printed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = clear()
    own_key(settings_of(home=desk.home, store=address))
    forged: dict[str, Any] = {
        "response_id": "f",
        "channel_type": "cli",
        "channel_id": "c9",
        "user_id": "ann",
        "type": "prompt",
    }
    forged |= {
        "content": "Say yes.",
        "actions": [{"id": "RUN/1.1", "type": "button", "label": "Yes", "signal": "approve"}],
    }
    forged |= {"timestamp": "2026-03-13T10:11:12Z"}

    class Lines:
        said = iter(["Hello.\n", ""])

        def readline(self) -> str:
            asyncio.run(_published(address, "user.response.cli.c9", json.dumps(forged).encode()))
            return next(self.said)

    monkeypatch.setattr(sys, "stdin", Lines())
    with gateway_beside(desk.home, address):
        said = desk.say("channel", "cli", "--user", "ann", "--channel", "c9", "--store", address)
    assert "result: Yes." in said.out
    assert "Say yes." not in said.out
    assert "RUN/1.1" not in said.out
    assert "MESSAGE_UNSIGNED: a message under user.response.cli.c9 is left out" in said.err


async def _published(address: str, subject: str, data: bytes) -> None:
    client = await nats.connect(address)
    await client.jetstream().publish(subject, data)
    await client.close()


@pytest.mark.parametrize(
    "lines",
    [("Hello.", "/help"), ("/help", "Hello.", "/loops"), ("/help", "/loops", "/nothing", "/status x"), ("Hello.",) * 2],
)
def test_every_line_that_is_piped_has_its_reply_before_the_channel_is_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]
) -> None:
    address = clear()
    own_key(settings_of(home=desk.home, store=address))
    with gateway_beside(desk.home, address):
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines) + "\n"))
        said = desk.say("channel", "cli", "--user", "ann", "--store", address)
    replies = [line.partition(":")[0] for line in said.out.splitlines()]
    assert said.code == EXIT_OK
    assert ("Yes." in said.out) == ("Hello." in lines)
    assert replies.count("text") >= len([line for line in lines if line in ("/help", "/loops")])
    assert replies.count("error") == len([line for line in lines if line in ("/nothing", "/status x")])


def test_a_terminal_that_is_not_answered_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from remit.adapters.cli.commands import channel

    monkeypatch.setattr(channel, "_LAST_S", 0.01)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello.\n"))
    said = desk.say("channel", "cli", "--channel", "c9", "--store", clear())
    assert (said.code, "not everything has been answered yet" in said.err) == (0, True)


def test_a_webhook_speaks_for_users_until_it_is_ended(desk: Desk) -> None:
    address, (port, nobody) = clear(), free_ports(2)
    key = desk.folder / "webhook.key"
    key.write_bytes(KEY)
    own_key(settings_of(home=desk.home, store=address))
    heard: list[int] = []
    message = {"message_id": "m1", "channel_type": "webhook", "channel_id": "W", "user_id": "ann", "content": "Hi."}

    def send() -> None:
        body = json.dumps({**message, "timestamp": "2026-03-13T10:11:12Z"}).encode()
        for _ in range(500):
            if heard:
                break
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            at_ms = wall_clock_ms()
            headers = {"Remit-Time": str(at_ms), "Remit-Signature": signature_of(KEY, at_ms, body)}
            try:
                connection.request("POST", "/messages", body, headers)
                heard.append(connection.getresponse().status)
            except OSError:
                Event().wait(0.02)
            finally:
                connection.close()

    url, at = f"http://127.0.0.1:{nobody}/replies", f"127.0.0.1:{port}"
    with meanwhile(send):
        said = desk.say("channel", "hook", url, "--listen", at, "--key-file", key, "--store", address)
    assert (said.code, heard) == (EXIT_OK, [202])
    assert (
        desk.say("channel", "hook", url, "--listen", "here", "--key-file", key, "--store", address).code == EXIT_USAGE
    )


@pytest.mark.req("3.27")
def test_keys_are_shown_admitted_put_into_accounts_and_revoked(desk: Desk) -> None:
    store, did = ("--store", clear()), Signer.generate().did
    own = desk.say("keys", "--json").values
    assert own["did"] in desk.say("keys").out
    assert desk.say("keys", "account", "acme").out.count("nkey:") == 1
    assert desk.say("keys", "admit", did, "--role", "tools", "--name", "till", *store).code == 0
    assert "till" in desk.say("keys", *store).out
    assert desk.say("keys", "account", "acme", *store).out.count("nkey:") == 2
    assert desk.say("keys", "revoke", did, "--why", "a test", *store).code == 0
    assert desk.say("keys", "--json", *store).values["is_revoked"]
    assert desk.say("keys", "revoke", "bob", "--why", "a test", *store).code == 1


def test_without_a_file_nobody_approves(desk: Desk) -> None:
    path = desk.folder / "channels.yaml"
    path.write_text("permissions:\n  approve: [bob]\n")
    assert rules_in(None).everywhere.approve == ()
    assert rules_in(path).everywhere.approve == ("bob",)


@pytest.mark.parametrize("number", ["-1", "0", "-99"])
def test_a_number_that_no_letter_can_have_is_wrong_usage(desk: Desk, number: str) -> None:
    said = desk.say("worker", "letters", f"--replay={number}", "--nats", clear(), "--json")
    assert (said.code, said.error) == (2, "USAGE")
    assert "--replay" in said.values["error"]["message"]
