"""The wire on a real server: a program that knows NATS and the shapes of the messages, and nothing of remit, runs a loop."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from remit import Kit, System
from remit.assemble import system_in_memory, system_on
from remit.assemble_wire import key_room, sealed_line
from remit.backend.clock import WallClock
from remit.backend.cluster.layout import KEYS_BUCKET
from remit.backend.cluster.nats_broker import BUCKETS, NatsBroker
from remit.backend.cluster.server.connection import connect, server_answer
from remit.core.failure import RequestRejected
from remit.core.journal.storage import StoreUnusable
from remit.orchestrate.gateway.clerk import WireWork
from remit.orchestrate.gateway.gateway import Gateway
from remit.wire.payloads import HandedMessage
from remit.wire.subjects import TOLD, SubjectFamily
from tests.nats_server import clear, opened, server
from tests.unit.orchestrate.paper_broker import RULES, calls, kit_of

AT = "2026-03-13T10:11:12Z"
KEEP = (
    {"when": "Keep", **calls("keep", text="lamp")},
    {"when": "Quickly", "text": "It is kept."},
    {"text": "A lamp."},
)


@pytest.fixture(autouse=True)
def _empty() -> None:
    address = clear()

    async def cleared() -> None:
        client = await connect(address, name="test")
        for name in (*BUCKETS, KEYS_BUCKET):
            await server_answer(client, f"$JS.API.STREAM.DELETE.KV_{name}")
        await client.close()

    asyncio.run(cleared())


@asynccontextmanager
async def gateway_on(home: Path, kit: Kit) -> AsyncIterator[System]:
    store = opened(home)
    system = system_on(store, signer=lambda: store.key.signer)
    broker = await NatsBroker.open(server().address)
    gateway = Gateway(system, broker, WireWork(kit, rules=RULES), clock=WallClock())
    await gateway.start()
    try:
        yield system
    finally:
        await gateway.close()
        await system.close()


class BareClient:
    """Knows NATS and the shapes, and nothing else."""

    def __init__(self, client: Client) -> None:
        self.client, self.js = client, client.jetstream()
        self.heard: list[tuple[str, dict[str, Any]]] = []

    async def listen(self, *subjects: str) -> None:
        async def hear(message: Any) -> None:
            if message.data[:1] == b"{":
                self.heard.append((message.subject, json.loads(message.data)))

        for subject in subjects or ("agent.created.*", "agent.complete.*", "agent.response.*", "user.response.*.*"):
            await self.client.subscribe(subject, cb=hear)
        await self.client.flush()

    async def send(self, subject: str, **value: object) -> None:
        await self.js.publish(subject, json.dumps(value).encode())

    async def letters(self) -> dict[str, str]:
        """What was refused: the code of each, by the subject that it was sent under."""
        found = dict[str, str]()
        info = await self.js.stream_info("AGENT", subjects_filter="agent.dead.wire.>")
        for name in info.state.subjects or {}:
            headers = (await self.js.get_last_msg("AGENT", name)).headers or {}
            found[headers["Remit-Subject"]] = headers["Remit-Code"]
        return found

    async def signal(self, loop_id: str, kind: str, user_id: str, payload: object = None) -> None:
        value = {"signal_id": f"{kind}-{len(self.heard)}", "type": kind, "loop_id": loop_id, "user_id": user_id}
        await self.send(
            f"agent.signal.{loop_id}", **value, channel_type="", channel_id="", payload=payload, timestamp=AT
        )

    async def until(self, subject: str, **wanted: object) -> dict[str, Any]:
        async with asyncio.timeout(20):
            while True:
                for name, value in self.heard:
                    if name.startswith(subject) and all(value.get(key) == held for key, held in wanted.items()):
                        return value
                await asyncio.sleep(0.01)

    async def loop_in_state(self, loop_id: str, state: str) -> dict[str, Any]:
        bucket = await self.js.key_value("AGENT_LOOPS")
        async with asyncio.timeout(20):
            while True:
                entry = await bucket.get(loop_id)
                value: dict[str, Any] = json.loads(entry.value or b"{}")
                if value["state"] == state:
                    return value
                await asyncio.sleep(0.01)


@pytest.mark.req("3.1", "3.12", "3.20", "3.26")
def test_a_client_that_knows_nothing_but_nats_starts_steers_watches_and_finishes_a_run(tmp_path: Path) -> None:
    async def story() -> None:
        async with gateway_on(tmp_path, kit_of(*KEEP)) as system:
            client = BareClient(await nats.connect(server().address))
            await client.listen()
            task = {"task_id": "t1", "role": "general", "model": "scripted", "prompt": "Keep the word lamp."}
            await client.send("agent.task.t1", **task, user_id="ann", channel_type="cli", channel_id="c1")
            loop_id = (await client.until("agent.created."))["loop_id"]
            prompt = await client.until("user.response.cli.c1", type="prompt")
            assert (await client.loop_in_state(loop_id, "awaiting_approval"))["task_id"] == "t1"
            await client.signal(loop_id, "pause", "ann")
            assert (await client.loop_in_state(loop_id, "paused"))["pause_requested_by"] == "ann"
            await client.signal(loop_id, "resume", "ann")
            await client.loop_in_state(loop_id, "awaiting_approval")
            await client.signal(loop_id, "feedback", "ann", "Quickly, please.")
            await client.signal(loop_id, "approve", "bob", {"packet_id": prompt["actions"][0]["id"]})
            done = await client.until(f"agent.complete.{loop_id}")
            assert (done["outcome"], done["result"]) == ("success", "It is kept.")
            assert (await client.until("user.response.cli.c1", type="result"))["content"] == "It is kept."
            ways = await client.js.key_value("AGENT_TRAJECTORIES")
            await client.loop_in_state(loop_id, "complete")
            steps = json.loads((await ways.get(loop_id)).value or b"{}")["steps"]
            assert [step["step_type"] for step in steps][:2] == ["model_call", "tool_call"]
            await client.send("agent.task.t2", task_id="t2", prompt="What was it?", user_id="ann", loop_id=loop_id)
            assert (await client.until("agent.complete.", task_id="t2"))["result"] == "A lamp."
            # What was carried out is in the journal, and no longer in the queue.
            info = await client.js.stream_info("AGENT", subjects_filter="agent.task.>")
            assert not info.state.subjects
            # Removed is removed.
            await system.delete(loop_id)
            assert loop_id not in await (await client.js.key_value("AGENT_LOOPS")).keys()
            await client.client.close()

    asyncio.run(story())


@pytest.mark.req("3.2", "3.12")
def test_no_message_of_a_client_vanishes_and_what_a_gateway_told_stays(tmp_path: Path) -> None:
    async def story() -> None:
        # A consumer as an earlier version made it goes on with what it is asked for now.
        await earlier_consumer()
        async with gateway_on(tmp_path, kit_of(*KEEP)):
            client = BareClient(await nats.connect(server().address))
            await client.listen("agent.>", "tool.>", "user.>")
            await client.send("agent.task.t1", task_id="t1", prompt="Quickly.", user_id="ann")
            await client.until("agent.complete.", task_id="t1")
            families = [*SubjectFamily]
            sent = [
                subject
                for family in families
                for subject in (family.value, f"{family.value}.x", f"{family.value}.x.y.z")
            ]
            for subject in sent:
                await client.send(subject, anything=True)
            async with asyncio.timeout(20):
                while True:
                    letters = await client.letters()
                    if len(letters) == len(sent):
                        break
                    await asyncio.sleep(0.02)
            assert sorted(letters) == sorted(sent)
            assert {letters[f"{family.value}.x"] for family in TOLD} == {"WIRE_NOT_TAKEN"}
            assert letters["user.response.x.y.z"] == "WIRE_NOT_TAKEN"
            assert letters["agent.task.x.y.z"] == "WIRE_SUBJECT_INVALID"
            kept = await client.js.stream_info("AGENT", subjects_filter="agent.>")
            told = [
                name for name in kept.state.subjects or {} if name.split(".")[1] in ("request", "response", "complete")
            ]
            assert {name.split(".")[1] for name in told} == {"request", "response", "complete"}
            assert not [name for name in kept.state.subjects or {} if name in sent], "what was forged is removed"
            await client.client.close()

    asyncio.run(story())


async def earlier_consumer() -> None:
    broker = await NatsBroker.open(server().address, subjects=["agent.task.*", "agent.signal.*", "user.message.*.*"])
    await broker.close()


@pytest.mark.slow
def test_a_dead_letter_has_its_code_and_a_message_that_waits_is_handed_over_again(tmp_path: Path) -> None:
    async def story() -> None:
        broker = await NatsBroker.open(server().address)
        client = await nats.connect(server().address)
        await client.jetstream().publish("agent.task.t1", b"{}")
        (first,) = await broker.take()
        await broker.later(first)
        (second,) = await broker.take()
        assert (first.place, first.tries, second.tries) == (second.place, 1, 2)
        await broker.refuse(second, "WIRE_MALFORMED", "no\ntask at all")
        letter = await client.jetstream().get_last_msg("AGENT", "agent.dead.wire.*")
        assert letter.headers is not None
        assert (letter.headers["Remit-Code"], letter.headers["Remit-Subject"]) == ("WIRE_MALFORMED", "agent.task.t1")
        await client.jetstream().publish("agent.task.t2", b"{}")
        (left,) = await broker.take()
        await broker.close()
        other = await NatsBroker.open(server().address)
        (again,) = await other.take()
        assert again.place == left.place
        await other.done(again)
        assert await other.get("AGENT_LOOPS", "nothing") is None
        await other.close()
        await client.close()

    asyncio.run(story())


def test_a_server_that_went_away_is_told_with_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.backend.cluster.server.connection.WRITE_S_MAX", 0.05)

    async def story() -> None:
        broker = await NatsBroker.open(server().address)
        with pytest.raises(StoreUnusable, match="STORE_UNREACHABLE"):
            await broker.put("NO_BUCKET", "x", b"")
        await broker._client.close()  # as a connection ends that was cut
        with pytest.raises(StoreUnusable, match="STORE_UNREACHABLE"):
            await broker.take()

    asyncio.run(story())
    assert HandedMessage(subject="x", data=b"").tries == 1


@pytest.mark.req("3.27")
def test_keys_are_admitted_and_revoked_for_every_process_of_the_cluster(tmp_path: Path) -> None:
    async def story() -> None:
        one, other = opened(tmp_path / "a"), opened(tmp_path / "b")
        root, worker = (system_on(store, signer=lambda store=store: store.key.signer) for store in (one, other))  # type: ignore[misc]
        try:
            room, theirs = key_room(root), key_room(worker, root=one.key.signer.did)
            await room.admit(theirs.own, may=["agent.task.*"], name="far away")
            sealed = sealed_line(worker, root=room.root).sign("agent.task.t1", b"{}")
            assert (await sealed_line(root).check("agent.task.t1", b"{}", sealed)).seal.sender == theirs.own
            assert [key.name for key in await theirs.listed()] == ["far away"]
            await room.revoke(theirs.own, why="a test")
            with pytest.raises(RequestRejected, match="ENVELOPE_REVOKED"):
                await sealed_line(root).check("agent.task.t1", b"{}", sealed)
        finally:
            await root.close()
            await worker.close()
        in_memory = system_in_memory()
        with pytest.raises(RequestRejected, match="WIRE_NEEDS_SERVERS"):
            key_room(in_memory)
        await in_memory.close()

    asyncio.run(story())
