"""The store on JetStream: what a later process folds, what happens in doubt, who is fenced, what survives its server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from remit.backend.cluster.checkup import AddressCheckup
from remit.backend.cluster.layout import CHUNK_BYTES
from remit.backend.cluster.logs.tail import in_header
from remit.backend.cluster.server.jetstream import JetMessage, JetStream, Overtaken
from remit.backend.cluster.server.link import entry
from remit.backend.cluster.server.nats_server import NatsServer
from remit.backend.cluster.store import ClusterStore
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import sign_head
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    EntrySettled,
    LeaseLost,
    RunListing,
    SessionConflict,
    StoreUnusable,
    Topic,
    Warrant,
)
from remit.core.limits.budget import Dimension
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import NEVER_MS, Charge, Limit, Period, Reservation
from remit.core.record import digest_of
from remit.observe.checkup import CheckState
from remit.testing.conformance.custody.redactions import REDACTIONS_CHECKS
from remit.testing.conformance.custody.retention import RETENTION_CHECKS, RetentionCheck
from remit.testing.conformance.processes.bell import BELL_CHECKS
from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS
from remit.testing.conformance.sample_turns import add
from remit.wire.subjects import STREAM
from tests.nats_server import clear, fall_silent, opened

TOKENS = int(Dimension.OUTPUT_TOKENS)
LIMIT = Limit(Period.TOTAL, TOKENS, 100, 0, NEVER_MS)
LONG = b"long " * (CHUNK_BYTES // 4)


@pytest.fixture(autouse=True)
def _empty() -> None:
    clear()


@asynccontextmanager
async def stores(home: Path, count: int = 1, **options: Any) -> AsyncIterator[list[ClusterStore]]:
    found = [opened(home, **options) for _ in range(count)]
    try:
        yield found
    finally:
        for store in found:
            await store.close()


async def known(store: ClusterStore) -> list[object]:
    """Everything that a store says of its runs."""
    entries = list(await store.catalogue.entries())
    run_ids = [entry.run_id for entry in entries] + ["gone", "unlisted"]
    return [
        entries,
        [list(await store.journal.read(run_id)) for run_id in run_ids],
        [list(await store.log.heads(run_id)) for run_id in run_ids],
        [await store.log.last(run_id) for run_id in run_ids],
        await store.log.losses(),
        await store.log.deletion("gone"),
        [turn.data for turn in await store.feed.since(START, limit=99)],
        [turn.place for turn in await store.feed.since(START, limit=99)],
        list(await store.ledger.committed("tenant", (LIMIT,))),
        list(await store.ledger.tenants()),
        list(await store.inbox.pending(after=0)),
        list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)),
        list(store.halts.since(0)),
        store.halts.signed(),
        list(await store.index.names()),
        [await store.leases.is_held(run_id) for run_id in run_ids],
    ]


async def _turn(store: ClusterStore, run_id: str, data: bytes, barrier: Barrier, listing: RunListing | None) -> None:
    seq = len(await store.journal.read(run_id))
    head = sign_head(store.key.signer, run_id=run_id, seq=seq, head=hash_turn(data), ending=barrier.ending)
    await add(store.journal, run_id, data, barrier, listing, Warrant(head=head))


def test_a_process_that_comes_later_knows_what_the_others_know(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path, 2) as (store, other):
            wanted = Reservation(1, ((TOKENS, 60),), (LIMIT,))
            first = RunListing(1, tenant_id="tenant", session_id="s", reserves=wanted, likeness="like")
            await _turn(store, "gone", b"0", Barrier(), first)
            await _turn(
                store, "gone", LONG, Barrier("SUCCESS", charge=Charge("gone", "tenant", 1, ((TOKENS, 7),))), None
            )
            await _turn(
                store, "secret", b"a word", Barrier(), RunListing(1, tenant_id="tenant", session_id="s", ordinal=1)
            )
            await _turn(other, "after", LONG, Barrier(waiting_for="MISSING_INFO"), RunListing(2))
            await add(other.journal, "unlisted", b"u")
            for run_id in ("gone", "after"):
                await store.inbox.put(run_id, b"short")
                await store.receipts.keep(Receipt(ReceiptKind.ACKNOWLEDGED, run_id, run_id, "ann", 5))
            await store.inbox.settle(await store.inbox.put("after", LONG), "", "heard")
            waiting = await store.inbox.put("after", LONG + b"waits")
            await other.halts.append(
                b"halt", after=0, head=sign_head(other.key.signer, run_id="halts", seq=0, head=b"h", ending="")
            )
            assert (await store.inbox.pending(after=waiting - 1))[0].data == LONG + b"waits"
            assert (await other.retention.delete("gone")).turns == 2
            token = await store.leases.take("after")
            await store.halts.refresh()
            await other.halts.refresh()
            assert token
            async with stores(tmp_path) as (later,):
                told = await known(store)
                assert await known(other) == told
                await later.halts.refresh()
                assert await known(later) == told
                assert not (await later.journal.read("gone"))
                assert await later.leases.take("after") is None

    asyncio.run(scene())


def test_a_turn_is_fenced_by_the_next_holder_of_its_run(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path, 2) as (first, second):
            token = await first.leases.take("run") or 0
            place = await first.journal.append("run", b"0", START, listing=RunListing(1), warrant=Warrant(token))
            assert await second.leases.take("run") is None
            await first.leases.release("run", token)
            other = await second.leases.take("run") or 0
            assert other > token
            # Its mark alone is enough, before it has written anything.
            with pytest.raises((LeaseLost, AppendConflict)):
                await first.journal.append("run", b"late", place, warrant=Warrant(token))
            # Having caught up, the holder before is told the same.
            caught_up = (await first.journal.read("run")).place
            with pytest.raises(LeaseLost):
                await first.journal.append("run", b"late", caught_up, warrant=Warrant(token))
            assert not await first.leases.renew("run", token)
            await second.journal.append("run", b"1", (await second.journal.read("run")).place, warrant=Warrant(other))
            assert list(await first.journal.read("run")) == [b"0", b"1"]

    asyncio.run(scene())


@pytest.mark.slow
def test_a_process_that_falls_silent_loses_its_runs_and_changes_nothing_when_it_wakes_up(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path, 2, lease_ms=1_000) as (silent, next_one):
            token = await silent.leases.take("run") or 0
            place = await silent.journal.append("run", b"0", START, listing=RunListing(1), warrant=Warrant(token))
            fall_silent(silent.link)
            assert await next_one.leases.is_held("run")
            async with asyncio.timeout(20):
                while (taken := await next_one.leases.take("run")) is None:
                    pass
            with pytest.raises((LeaseLost, AppendConflict)):
                await silent.journal.append("run", b"stale", place, Barrier("SUCCESS"), None, Warrant(token))
            here = (await next_one.journal.read("run")).place
            await next_one.journal.append("run", b"1", here, warrant=Warrant(taken))
            assert list(await silent.journal.read("run")) == [b"0", b"1"]

    asyncio.run(scene())


def test_a_store_that_is_closed_lets_its_runs_go_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            leaving = opened(tmp_path)
            assert await leaving.leases.take("run")
            await leaving.close()
            await leaving.close()
            with pytest.raises(StoreUnusable, match="STORE_CLOSED"):
                await leaving.journal.read("run")
            leaving.bell.ring(Topic.CHUNKS, b"nothing")
            assert not leaving.bell.is_heard(Topic.CHUNKS)
            assert not await store.leases.is_held("run")
            assert await store.leases.take("run")

    asyncio.run(scene())


class Lossy:
    """Loses the answers to some writes: the server has them, and the writer does not know."""

    def __init__(self, jet: JetStream, lost: int, meanwhile: Callable[[], Any] | None = None) -> None:
        self._send = jet._last_word
        self._lost = lost
        self._meanwhile = meanwhile
        jet._last_word = self  # type: ignore[method-assign]

    async def __call__(self, message: JetMessage, headers: dict[str, str], answer_s: float) -> dict[str, Any]:
        answer = await self._send(message, headers, answer_s)
        if self._lost:
            self._lost -= 1
            if self._meanwhile is not None:
                await self._meanwhile()
            raise TimeoutError
        return answer


@pytest.mark.parametrize("listing", [RunListing(1), RunListing(1, session_id="s")], ids=["single", "batch"])
def test_a_turn_whose_acknowledgement_was_lost_is_written_once_and_told_as_written(
    listing: RunListing, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            Lossy(store.link.jet, 1)
            place = await store.journal.append("run", b"0", START, listing=listing)
            found = await store.journal.read("run")
            assert (list(found), found.place) == ([b"0"], place)
            Lossy(store.link.jet, 2)
            number = await store.inbox.put("run", b"letter")
            assert [one.number for one in await store.inbox.pending(after=0)] == [number]

    asyncio.run(scene())


def test_a_turn_whose_acknowledgement_was_lost_is_found_behind_the_mark_of_the_next_holder(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            place = await store.journal.append("run", b"0", START, listing=RunListing(1))
            mark = entry("run:run", b"\x82\xa4type\xa4Mark\xa6worker\xa1x", after=START)
            jet = store.link.jet

            async def meanwhile() -> None:
                last = await jet.last(mark.subject)
                assert last is not None
                headers = store.link.signet.signed_entry(mark.subject, b"", mark.headers, last.seq)
                await jet.client.publish(mark.subject, b"", headers=headers)
                await jet.client.flush()

            Lossy(jet, 1, meanwhile)
            assert await store.journal.append("run", b"1", place) == place + 1
            assert list(await store.journal.read("run")) == [b"0", b"1"]

    asyncio.run(scene())


def test_a_batch_of_which_one_part_is_stale_leaves_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            jet = store.link.jet
            first = await store.link.write(entry("run:a", b"", after=START))
            parts = [JetMessage("agent.log.run.a", b"", {}, first), JetMessage("agent.log.run.b", b"", {}, 9)]
            with pytest.raises(Overtaken) as stale:
                await store.link.call(jet.write(*parts))
            assert stale.value.subject == "agent.log.run.b"
            last = await store.link.call(jet.last("agent.log.run.a"))
            assert last is not None
            assert last.seq == first
            assert await store.link.call(jet.last("agent.log.run.b")) is None

    asyncio.run(scene())


def test_rivals_for_a_session_and_for_an_entry_of_the_inbox_are_told_what_was_taken(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path, 2) as (one, other):
            begun = await asyncio.gather(
                *(
                    store.journal.append(f"run{number}", b"0", START, listing=RunListing(1, session_id="s"))
                    for number, store in enumerate((one, other) * 3)
                ),
                return_exceptions=True,
            )
            assert sum(isinstance(said, SessionConflict) for said in begun) == 5
            (run_id,) = [entry.run_id for entry in await one.catalogue.session("s")]
            number = await one.inbox.put(run_id, b"letter")
            place = (await other.journal.read(run_id)).place
            answer = Barrier(heard=number, answer="told")
            await other.journal.append(run_id, b"1", place, answer)
            assert await one.inbox.outcome(number) == ("", "told")
            with pytest.raises(EntrySettled):
                await one.journal.append(run_id, b"2", (await one.journal.read(run_id)).place, answer)
            with pytest.raises(AppendConflict):
                await one.journal.append(run_id, b"2", place)

    asyncio.run(scene())


def test_turns_of_many_runs_go_in_one_batch_and_a_stale_one_takes_no_other_along(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            jet, sent = store.link.jet, []
            send = jet._sent

            async def counted(parts: Any, answer_s: float) -> dict[str, Any]:
                sent.append(len(parts))
                return await send(parts, answer_s)

            jet._sent = counted  # type: ignore[method-assign]
            listings = [RunListing(1, session_id=f"s{number}") for number in range(20)]
            writes = [store.journal.append(f"run{n}", b"%d" % n, START, listing=one) for n, one in enumerate(listings)]
            places = await asyncio.gather(*writes)
            assert len(set(places)) == 20
            assert sum(sent) == 40
            assert len(sent) < 20, f"twenty runs that began at once took {len(sent)} batches"
            for number, place in enumerate(places):
                found = await store.journal.read(f"run{number}")
                assert (list(found), found.place) == ([b"%d" % number], place)
            # Three writes that would go together, and the second follows what is not there.
            parts = [
                (entry(f"run:{name}", b"", after=after), entry(f"session:{name}", b"", after=START))
                for name, after in (("a", START), ("b", 1), ("c", START))
            ]
            told = await asyncio.gather(*(store.link.call(jet.write(*part)) for part in parts), return_exceptions=True)
            assert [isinstance(one, Overtaken) for one in told] == [False, True, False]
            assert await store.link.call(jet.last("agent.log.session.b")) is None

    asyncio.run(scene())


def test_what_a_turn_orders_goes_in_its_batch(tmp_path: Path) -> None:
    from remit.core.journal.commands import CancelCommand

    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            orders = (CancelCommand("run/1", about="run/0"),)
            store.journal.errands = lambda run_id, some: [JetMessage(f"agent.request.{run_id}", b"%d" % len(some))]
            place = await store.journal.append("run", b"0", START, listing=RunListing(1), orders=orders)
            found = await store.link.call(store.link.jet.last("agent.request.run"))
            assert found is not None
            assert (found.seq, found.data) == (place + 1, b"1")
            with pytest.raises(AppendConflict):
                await store.journal.append("run", b"late", START, orders=orders)
            assert await store.link.call(store.link.jet.following("agent.request.run", found.seq)) is None

    asyncio.run(scene())


def test_a_store_goes_on_when_its_server_was_restarted(tmp_path: Path) -> None:
    async def scene(server: NatsServer) -> None:
        store = ClusterStore.open(server.address, tmp_path / "home")
        try:
            place = await store.journal.append("run", b"0", START, listing=RunListing(1))
            await asyncio.to_thread(server.stop)
            going_on = asyncio.ensure_future(store.journal.append("run", b"1", place))
            await asyncio.to_thread(server.start)
            await going_on
            assert list(await store.journal.read("run")) == [b"0", b"1"]
        finally:
            await store.close()

    with NatsServer(tmp_path / "server") as found:
        port = int(found.address.rpartition(":")[2])
        found.stop()
        again = NatsServer(tmp_path / "server", port=port)
        try:
            asyncio.run(scene(again))
        finally:
            again.stop()


@pytest.mark.slow
def test_a_tail_that_lost_its_consumer_begins_behind_what_it_has_seen(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path, 2) as (store, writer):
            await writer.journal.append("a", b"0", START, listing=RunListing(1))
            assert len(await store.catalogue.entries()) == 1
            jet = store.link.jet
            names = await store.link.call(jet.asked(f"$JS.API.CONSUMER.NAMES.{STREAM}"))
            for name in names["consumers"]:
                await store.link.call(jet.asked(f"$JS.API.CONSUMER.DELETE.{STREAM}.{name}"))
            await writer.journal.append("b", b"0", START, listing=RunListing(1))
            assert [entry.run_id for entry in await store.catalogue.entries()] == ["b", "a"]

    asyncio.run(scene())


@pytest.mark.slow
def test_an_entry_that_was_removed_while_it_was_waited_for_holds_up_nobody(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            place = await store.journal.append("run", b"0", START, listing=RunListing(1))
            await asyncio.wait_for(store.log_copy.refresh(place + 7), 5)
            assert len(await store.catalogue.entries()) == 1

    asyncio.run(scene())


def test_a_text_of_which_a_chunk_is_missing_is_not_given(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            await store.blobs.put(digest_of(LONG), LONG)
            assert await store.blobs.get(digest_of(LONG)) == LONG
            await store.link.call(store.link.jet.purge(f"remit.text.{digest_of(LONG).hex()}.1", stream="AGENT_TEXTS"))
            assert await store.blobs.found(digest_of(LONG)) is None

    asyncio.run(scene())


def test_a_store_that_cannot_be_reached_is_looked_at_too(tmp_path: Path) -> None:
    async def scene() -> None:
        checks = await AddressCheckup(lambda: ClusterStore.open("nats://127.0.0.1:1", tmp_path)).look()
        assert [(check.state, check.code) for check in checks] == [(CheckState.PROBLEM, "STORE_UNREACHABLE")]
        assert checks[0].way_out
        found = await AddressCheckup(lambda: opened(tmp_path)).look()
        assert [check.name for check in found] == ["store", "store.log", "store.key", "store.nodes", "store.entries"]

    asyncio.run(scene())


@pytest.mark.parametrize("check", [*SNAPSHOTS_CHECKS[1:3], *BELL_CHECKS[:3]], ids=lambda check: str(check.__name__))
def test_caches_and_bells_of_a_cluster_do_what_all_must(check: Any, tmp_path: Path) -> None:
    @asynccontextmanager
    async def snapshots() -> AsyncIterator[tuple[Any, Any]]:
        async with stores(tmp_path) as (store,):
            yield store.journal, store.snapshots

    @asynccontextmanager
    async def twice() -> AsyncIterator[Any]:
        async with stores(tmp_path, 2) as found:
            yield found

    asyncio.run(check(snapshots if check in SNAPSHOTS_CHECKS else twice))


@pytest.mark.parametrize("check", [*RETENTION_CHECKS, REDACTIONS_CHECKS[3]], ids=lambda check: str(check.__name__))
@pytest.mark.slow
def test_a_cluster_removes_what_every_store_must(check: RetentionCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def one(now_ms: Callable[[], int]) -> AsyncIterator[ClusterStore]:
        async with stores(tmp_path, now_ms=now_ms) as (store,):
            yield store

    asyncio.run(check(one))


def test_what_a_process_that_was_cut_off_left_of_a_run_is_purged_by_the_next_collection(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            await _turn(store, "run", b"0", Barrier("SUCCESS"), RunListing(1))

            async def cut_off(*_: object, **__: object) -> None:
                raise StoreUnusable("STORE_UNREACHABLE", "cut off")

            purge, store.link.jet.purge = store.link.jet.purge, cut_off  # type: ignore[method-assign]
            with pytest.raises(StoreUnusable):
                await store.retention.delete("run")
            store.link.jet.purge = purge  # type: ignore[method-assign]
            assert await store.catalogue.entry("run") is None
            assert await store.link.call(store.link.jet.following("agent.log.run.run", 0)) is not None
            await store.retention.gc(ended_before_ms=0)
            assert await store.link.call(store.link.jet.following("agent.log.run.run", 0)) is None
            # The name is free for another run.
            await _turn(store, "run", b"anew", Barrier(), RunListing(1))
            assert len(await store.log.heads("run")) == 2

    asyncio.run(scene())


def test_a_turn_that_names_more_texts_than_a_header_holds_keeps_them_all(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            digests = [digest_of(b"%d" % number) for number in range(1500)]
            data = b"".join(b"\xc4\x20" + digest for digest in digests)
            await store.blobs.put(digests[-1], b"1499")
            await _turn(store, "run", data, Barrier("SUCCESS"), RunListing(1))
            assert store.log_copy.unread["run"]
            removed = await store.retention.delete("run")
            assert (removed.texts, removed.text_bytes) == (1, 4)

    asyncio.run(scene())


def test_a_server_that_says_no_for_another_reason_is_told_as_it_is(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            jet = store.link.jet

            async def full(*_: object) -> dict[str, Any]:
                return {"error": {"err_code": 10077, "description": "maximum bytes exceeded"}}

            jet._last_word = full  # type: ignore[method-assign,assignment]
            with pytest.raises(StoreUnusable, match=r"STORE_FULL.*maximum bytes exceeded"):
                await store.journal.append("run", b"0", START)

    asyncio.run(scene())


def test_what_any_node_lacks_is_read_from_the_leader(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            place = await store.journal.append("run", b"0", START)
            jet = store.link.jet

            async def nothing(*_: object) -> dict[int, Any]:
                return {}

            jet._piece = nothing  # type: ignore[method-assign,assignment]
            assert list(await store.journal.read("run")) == [b"0"]
            assert await store.link.call(jet.many([place, place + 9], "agent.log.>")) == {
                place: await store.link.call(jet.at(place))
            }

    asyncio.run(scene())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Remit-Entry": "?"},
        {"Remit-Entry": "gg=="},
        {"Remit-Entry": in_header("run:foreign", b"no record")},
        {"Remit-Entry": in_header("run:before", b"")},
    ],
    ids=["none", "no base64", "no entry", "no record", "another log"],
)
def test_an_entry_of_another_writer_is_left_out_and_told_by_a_checkup(headers: dict[str, str], tmp_path: Path) -> None:
    async def scene() -> None:
        async with stores(tmp_path) as (store,):
            await store.journal.append("before", b"0", START, listing=RunListing(1))
            await store.link.call(store.link.jet.write(JetMessage("agent.log.run.foreign", b"", headers)))
            await store.journal.append("after", b"0", START, listing=RunListing(1))
            # Whatever stands in its subject, the run goes on behind it.
            await store.journal.append("foreign", b"0", START)
            async with stores(tmp_path) as (later,):
                for one in (store, later):
                    assert [entry.run_id for entry in await one.catalogue.entries()] == ["after", "before"]
                    (problem,) = [check for check in await one.checkup.look() if check.state is CheckState.PROBLEM]
                    assert problem.code == "STORE_ENTRIES_REFUSED"

    asyncio.run(scene())
