"""Workers among hostile clients of their server: no message ends one, pays anything or keeps a run from its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest

from remit.backend.cluster.keys.signet import SIGNATURE, SIGNER
from remit.backend.cluster.layout import token
from remit.backend.cluster.store import ClusterStore
from remit.backend.cluster.work import errand_queue
from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.codec import encode_record, encode_signal
from remit.core.journal.queued import Came, ErrandName, Lane
from remit.core.journal.storage import StoreUnusable
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.executors.errands import encode_report
from remit.orchestrate.gateway.key_room import ROLES
from remit.orchestrate.workers import loop_worker
from remit.wire.credentials import KeyEntry, issue, revoke
from tests.e2e.house import asking, tell
from tests.nats_server import opened
from tests.workforce import Crew, Till, approved, crew, hurry, play, rested

BODIES = (
    b"",
    b"\x00\xff garbage",
    b'{"a": 1}',
    b"\x81\xa1a",
    b"[]",
    b"9" * 2_000,
    "\ud83d\ude00".encode(errors="replace"),
)
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"Remit-Entry": "?", "Remit-Errand": "gg==", "Remit-Digest": "00", "Remit-Came": "?"},
    {SIGNER: "did:key:z6Mk", SIGNATURE: "00", "Remit-Since": "x", "Remit-Until": "soon"},
    {"Remit-Chunks": "-1", "Remit-At-Ms": "never", "Nats-Msg-Id": "\u00e9"},
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(loop_worker, "PAUSE_S", 0.1)


async def publish(store: ClusterStore, subject: str, data: bytes, headers: dict[str, str] | None = None) -> None:
    """Publish as any client of the server can."""
    await store.link.call(store.link.jet.client.publish(subject, data, headers=headers or None))


def subjects_about(run_id: str, lane: Lane) -> list[str]:
    """A subject of every family that the stream has, about a run and about none."""
    whose = (token(run_id), "1m7zzzzzzzzzzzzz", "x=zz")
    kinds = ("run", "inbox", "gone", "session", "tenant")
    found = [f"agent.log.{kind}.{one}" for kind, one in product(kinds, whose)]
    found += ["agent.log.halts.=e", "agent.log.receipts.=e", "agent.log.halt", "agent.log.a.b.c.d"]
    for one in whose:
        found += [
            f"agent.due.{one}",
            f"agent.report.{one}.2=2e=1.1",
            f"agent.claim.{one}.2=2e=1",
            f"agent.late.{one}.2=2e=1",
        ]
        found.append(f"agent.errand.{token(lane.kind)}.{token(lane.name)}.{token(lane.version)}.{one}.2=2e=1.1")
    found += ["agent.due.a.b", "agent.late.a", "agent.dead.x.y", "agent.errand.x", "agent.report.x", "agent.claim.x"]
    found += [
        "remit.ring.stop",
        "remit.ring.turns",
        "remit.ring.post",
        f"remit.ring.report.{whose[0]}",
        "remit.bus.run.x",
    ]
    found += ["remit.alive.x", "remit.text.zz.0", f"remit.snapshot.{whose[0]}.0", "agent.task.x", "agent.signal.x"]
    return [*found, "user.message.x.y", "tool.execute.x", "tool.result.x", "agent.complete.x", "agent.request.x"]


@asynccontextmanager
async def waiting_to_pay(home: Path, till: Till) -> AsyncIterator[tuple[Crew, ClusterStore, str, str]]:
    """A crew whose run waits for a yes, a client of the server, the run, and the packet that it asks with."""
    till.may_pay.set()
    async with crew(home / "ours", till.kit()) as workers:
        await workers.drives()
        for part in ("model", "tool"):
            await workers.performs(part)
        program = await workers.program()
        response = await program.run(asking("Please pay."), workers.kit)
        assert response.waiting_for is not None
        client = await asyncio.to_thread(opened, home / "theirs")
        try:
            yield workers, client, response.run_id, response.waiting_for.packet_ids[0]
        finally:
            await client.close()


def test_no_message_on_any_subject_ends_a_worker_or_keeps_runs_from_their_ends(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        async with waiting_to_pay(tmp_path, till) as (workers, client, run_id, packet):
            lane = next(Lane("tool", one.name, one.version) for one in workers.kit.tools.definitions)
            for subject, body in product(subjects_about(run_id, lane), BODIES):
                for headers in HEADERS:
                    await publish(client, subject, body, headers)
            await client.link.call(client.link.jet.client.flush())
            program = await workers.program()
            await tell(program, Signal.APPROVE, run_id, {"packet_id": packet})
            assert (await rested(program, run_id)).content == "Paid."
            assert (await program.archive.verify(run_id)).ok
            again = await approved(program, await program.run(asking("Please pay."), till.kit()))
            assert (await rested(program, again)).content == "Paid."
            assert till.paid == 2

    play(story())


@pytest.mark.parametrize("way", ["no key", "a key of its own", "a copy of a yes to another run"])
def test_an_approval_that_none_gave_who_may_pays_nothing(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errand_queue, "STRANGE_TRIES_MAX", 2)

    async def story() -> None:
        till = Till()
        async with waiting_to_pay(tmp_path, till) as (workers, client, run_id, packet):
            payload = {"packet_id": packet}
            said = UserSignal(signal_id="made-up", type=Signal.APPROVE, run_id=run_id, user_id="bob", payload=payload)
            if way == "no key":
                number = await client.inbox.put("elsewhere", encode_signal(said))
                stored = await client.link.call(client.link.jet.at(number))
                assert stored is not None
                bare = {name: text for name, text in stored.headers.items() if name == "Remit-Entry"}
                await publish(client, f"agent.log.inbox.{run_id}", stored.data, bare)
            elif way == "a key of its own":
                await client.inbox.put(run_id, encode_signal(said))
            else:
                store = workers.stores[0]
                number = await store.inbox.put("another", encode_signal(said))
                stored = await client.link.call(client.link.jet.at(number))
                assert stored is not None
                ours = {name: text for name, text in stored.headers.items() if name.startswith("Remit-")}
                await publish(client, f"agent.log.inbox.{run_id}", stored.data, ours)
            await client.queue.due(run_id)
            store = workers.stores[-1]
            async with asyncio.timeout(10):
                for _ in range(500):
                    if any(letter.lane.name.startswith("agent.due.") for letter in await store.queue.letters.listed()):
                        break
                    await asyncio.sleep(0.02)
            assert [one for one in await store.inbox.pending(after=0) if one.run_id == run_id] == []
            assert store.log_copy.refused
            assert (till.begun, till.paid) == (0, 0)

    play(story())


def test_what_a_revoked_worker_says_is_believed_by_none_and_what_it_may_have_begun_is_in_doubt(tmp_path: Path) -> None:
    async def story() -> None:
        lane = Lane("tool", "pay", "1")
        root = await asyncio.to_thread(opened, tmp_path / "root")
        worker = await asyncio.to_thread(opened, tmp_path / "worker")
        root.signet.keyring.believe([worker.key.signer.did])
        before, after = ErrandName("run", "1.1"), ErrandName("run", "1.2")
        assert await worker.queue.report(before, Came.DONE, b"paid")
        assert (await root.queue.carried(before, lane, b"", is_new=False)).data == b"paid"
        said = revoke(root.key.signer, worker.key.signer.did, at_ms=1, why="stolen")
        root.signet.keyring.hear(encode_record(KeyEntry(revocation=said)))
        await worker.claims.claim("run", "1.2")
        assert await worker.queue.report(after, Came.DONE, b"paid")
        assert (await root.queue.carried(after, lane, b"", is_new=False)).came is Came.LOST
        assert not await root.claims.revoke("run", "1.2")
        for store in (root, worker):
            await store.close()

    play(story())


def test_a_worker_for_tools_answers_for_no_model_and_takes_no_call_back(tmp_path: Path) -> None:
    async def story() -> None:
        root = await asyncio.to_thread(opened, tmp_path / "root")
        worker = await asyncio.to_thread(opened, tmp_path / "worker")
        root.signet.keyring.believe([worker.key.signer.did])
        stated = issue(
            root.key.signer,
            worker.key.signer.did,
            capability_id="x",
            tenant="*",
            may=ROLES["tools"],
            not_before_ms=0,
            expires_at_ms=1 << 45,
        )
        root.signet.keyring.hear(encode_record(KeyEntry(statement=stated)))
        for number, lane in enumerate((Lane("tool", "pay", "1"), Lane("model", "scripted"))):
            name = ErrandName("run", f"1.{number}")
            assert await worker.queue.report(name, Came.DONE, b"said")
            came = (await root.queue.carried(name, lane, b"", is_new=False)).came
            assert came is (Came.DONE if lane.kind == "tool" else Came.LOST)
        # That a call will never be made, only its driver says.
        assert await worker.claims.revoke("run", "1.9")
        assert not await root.claims.revoke("run", "1.9")
        await root.queue.prepare_words()
        await worker.queue.late(ErrandName("run", "1.1"), b"told late")
        word = await root.queue.next_late()
        assert word is not None
        assert word.performs == frozenset({"tool"})
        for store in (root, worker):
            await store.close()

    play(story())


@pytest.mark.parametrize("part", ["loop", "tool"])
def test_a_worker_whose_key_was_revoked_ends_and_says_so(part: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with crew(tmp_path, Till().kit()) as workers:
            if part == "loop":
                await workers.drives()
            else:
                await workers.performs("tool")
            store = workers.stores[-1]
            serving = workers.serving.pop()
            said = revoke(store.key.signer, store.key.signer.did, at_ms=1, why="stolen")
            store.signet.keyring.hear(encode_record(KeyEntry(revocation=said)))
            with pytest.raises(StoreUnusable, match="SIGNER_REVOKED"):
                await serving

    play(story())


@pytest.mark.parametrize("word", ["a run is due", "a late outcome"])
def test_a_word_that_breaks_a_worker_is_a_dead_letter_and_the_worker_goes_on(word: str, tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        async with waiting_to_pay(tmp_path, till) as (workers, _, run_id, packet):
            system, store = workers.systems[0], workers.stores[0]
            hub, _ = system.driving()
            take_up, hear = hub.take_up, hub.hear

            async def breaks(*_: object, **__: object) -> None:
                raise ValueError("no code of ours foresaw this")

            hub.take_up = hub.hear = breaks  # type: ignore[method-assign,assignment]
            if word == "a run is due":
                await store.queue.due(run_id)
            else:
                failed = ModelFailed("9.9", ErrorCode.INFERENCE_ENGINE_ERROR, "")
                await store.queue.late(ErrandName(run_id, "9.9"), encode_report(failed))
            async with asyncio.timeout(20):
                while not (letters := await store.queue.letters.listed()):  # noqa: ASYNC110  # a worker brings it about
                    await asyncio.sleep(0.02)
            assert {letter.code for letter in letters} == {"WORKER_BROKE"}
            hub.take_up, hub.hear = take_up, hear  # type: ignore[method-assign]
            program = await workers.program()
            await tell(program, Signal.APPROVE, run_id, {"packet_id": packet})
            assert (await rested(program, run_id)).content == "Paid."

    play(story())


def test_what_came_late_is_told_by_those_who_perform_such_errands(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        async with waiting_to_pay(tmp_path, till) as (workers, _, run_id, _packet):
            store = workers.stores[0]
            performer = await asyncio.to_thread(opened, tmp_path / "performer")
            stated = issue(
                store.key.signer,
                performer.key.signer.did,
                capability_id="x",
                tenant="*",
                may=ROLES["tools"],
                not_before_ms=0,
                expires_at_ms=1 << 45,
            )
            for one in workers.stores:
                one.signet.keyring.believe([performer.key.signer.did])
                one.signet.keyring.hear(encode_record(KeyEntry(statement=stated)))
            failed = ModelFailed("2.0", ErrorCode.INFERENCE_ENGINE_ERROR, "made up")
            await performer.queue.late(ErrandName(run_id, "2.0"), encode_report(failed))
            async with asyncio.timeout(10):
                while not (letters := await store.queue.letters.listed()):  # noqa: ASYNC110  # another process writes it
                    await asyncio.sleep(0.02)
            assert {letter.code for letter in letters} == {"LATE_NOT_PERMITTED"}
            await performer.close()

    play(story())
