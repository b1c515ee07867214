"""A store over logs as several processes have it open: whatever one writes the others know, and a new one knows the same."""

import asyncio

import pytest

from remit.backend.folded.store import FoldedStore
from remit.backend.memory.seals import MemorySeals
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import Signer, sign_head
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    Derived,
    Losses,
    RunListing,
    SignedHead,
    StoreUnusable,
    Warrant,
)
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import Committed
from remit.core.record import replace
from remit.core.run.halt import HALTS
from tests.unit.backend.logs import Ground, begin, committed, end, exchange, go_on, spending

SIGNER = Signer.generate()


def head_of(run_id: str, seq: int, data: bytes) -> SignedHead:
    return sign_head(SIGNER, run_id=run_id, seq=seq, head=hash_turn(data), ending="")


def receipt(by: str, item: str = "item", kind: ReceiptKind = ReceiptKind.ACKNOWLEDGED) -> Receipt:
    return Receipt(kind, item, "run", by, 1)


def test_of_two_receipts_for_an_item_the_first_counts() -> None:
    async def scene() -> None:
        ground = Ground()
        one, other = ground.process(), ground.process()
        await one.receipts.keep(receipt("ada"))
        # This process has not seen the first one and writes behind it all the same.
        await other.receipts.keep(receipt("ben"))
        await other.receipts.keep(receipt("https://hook", kind=ReceiptKind.DELIVERED))
        for store in (one, other, ground.process()):
            assert await store.receipts.kept(ReceiptKind.ACKNOWLEDGED) == [receipt("ada")]
            assert [one.by for one in await store.receipts.kept(ReceiptKind.DELIVERED)] == ["https://hook"]

    asyncio.run(scene())


def test_a_receipt_that_always_comes_second_is_not_said_to_be_kept() -> None:
    async def scene() -> None:
        ground = Ground()
        ground.log.crowded = "receipts"
        with pytest.raises(AppendConflict):
            await ground.process().receipts.keep(receipt("ada"))

    asyncio.run(scene())


def test_a_halt_is_seen_by_another_process_once_it_looks() -> None:
    async def scene() -> None:
        ground = Ground()
        one, other = ground.process(), ground.process()
        await one.halts.append(b"halt", after=0, head=head_of(HALTS, 0, b"halt"))
        assert list(other.halts.since(0)) == []
        await other.halts.refresh()
        for store in (one, other):
            assert list(store.halts.since(0)) == list(store.halts.news(0)) == [b"halt"]
            assert store.halts.signed() == (1, hash_turn(b"halt"))
        await other.halts.append(b"lift", after=1)
        with pytest.raises(AppendConflict):
            await one.halts.append(b"late", after=1)
        assert list(one.halts.news(1)) == [b"lift"]

    asyncio.run(scene())


def test_a_process_that_writes_a_turn_knows_the_halts_before_it() -> None:
    async def scene() -> None:
        ground = Ground()
        store = ground.process()
        await ground.process().halts.append(b"halt", after=0)
        await begin(store, "run", RunListing(1))
        assert list(store.halts.news(0)) == [b"halt"]

    asyncio.run(scene())


def test_heads_that_came_with_turns_are_known_to_every_process() -> None:
    async def scene() -> None:
        ground = Ground()
        store, other = ground.process(), ground.process()
        heads = [head_of("run", seq, data) for seq, data in enumerate((b"first", b"next"))]
        await store.journal.append("run", b"first", START, Barrier(), RunListing(1), Warrant(head=heads[0]))
        await go_on(other, "run", Barrier(), Warrant(head=heads[1]))
        for process in (store, other, ground.process()):
            assert list(await process.catalogue.heads("run")) == list(await process.log.heads("run")) == heads
            assert await process.catalogue.last_head("run") == await process.log.last("run") == heads[1]
            assert await process.log.doubt("run", 1) == ""
            assert await process.log.losses() == Losses()
            assert await process.log.deletion("run") is None

    asyncio.run(scene())


def test_a_head_that_was_altered_is_doubted_in_a_process_that_has_just_begun() -> None:
    async def scene() -> None:
        ground = Ground()
        altered = replace(head_of("run", 0, b"first"), head=b"other")
        await ground.process().journal.append("run", b"first", START, None, RunListing(1), Warrant(head=altered))
        assert "not as it was signed" in await ground.process().log.doubt("run", 0)

    asyncio.run(scene())


def test_the_catalogue_of_one_process_lists_the_runs_of_all() -> None:
    async def scene() -> None:
        ground = Ground()
        await begin(ground.process(), "ended", RunListing(1, likeness="alike"))
        await go_on(ground.process(), "ended", Barrier("SUCCESS"))
        await begin(ground.process(), "waiting", replace(exchange(), likeness="alike"))
        await go_on(ground.process(), "waiting", Barrier(waiting_for="REVIEW_REQUIRED"))
        await begin(ground.process(), "open", exchange(1))

        async def listed(**asked: bool | int) -> list[str]:
            return [entry.run_id for entry in await ground.process().catalogue.entries(**asked)]  # type: ignore[arg-type]

        assert await listed() == ["open", "waiting", "ended"]
        assert await listed(open_only=True) == ["open", "waiting"]
        assert await listed(waiting_only=True) == ["waiting"]
        assert await listed(limit=1) == ["open"]
        catalogue = ground.process().catalogue
        assert [entry.run_id for entry in await catalogue.alike("alike", limit=9)] == ["ended"]
        assert [entry.run_id for entry in await ground.process().catalogue.session("session")] == ["waiting", "open"]
        entry = await ground.process().catalogue.entry("waiting")
        assert entry is not None
        assert (entry.turns, entry.waiting_for, entry.ending) == (2, "REVIEW_REQUIRED", "")
        assert await catalogue.entry("nobody") is None

    asyncio.run(scene())


def test_an_index_names_every_run_and_renews_those_that_have_not_gone_on() -> None:
    async def scene() -> None:
        ground = Ground()
        await begin(ground.process(), "b", RunListing(1))
        await ground.process().journal.append("a", b"unlisted", START)
        await go_on(ground.process(), "b", Barrier())
        index = ground.process().index
        assert await index.names() == ["b", "a"]
        made = [Derived("b", turns, RunListing(1), Barrier()) for turns in (1, 2)]
        assert len(await ground.process().index.renew(made)) == 1

    asyncio.run(scene())


def test_nothing_is_removed_from_logs_and_the_refusal_names_the_way_out() -> None:
    async def scene() -> None:
        store = Ground().process()
        await begin(store, "run", RunListing(1))
        for refused in (
            store.retention.delete("run"),
            store.retention.gc(ended_before_ms=9),
            store.redactions.redact("run", text="x", by="ada", why="w"),
        ):
            with pytest.raises(StoreUnusable, match=r"STORE_KEEPS_ALL.*have the backend of the logs remove") as caught:
                await refused
            assert not caught.value.may_pass
        assert list(await store.journal.read("run")) == [b"first"]
        await store.close()

    asyncio.run(scene())


def test_a_process_that_has_just_begun_looks_at_all_that_there_is() -> None:
    async def scene() -> None:
        ground = Ground()
        await begin(ground.process(), "run", RunListing(1))
        store, log, key = await ground.process().checkup.look()
        assert store.seen == "in logs: 1 runs, 1 open, 0 wait for a person; they keep every entry"
        assert log.seen == "the log of heads and the journals know the same turns"
        assert key.seen == "none: nothing is signed"

    asyncio.run(scene())


def test_readers_of_one_process_fold_every_entry_once() -> None:
    async def scene() -> None:
        ground = Ground()
        await begin(ground.process(), "run", RunListing(1))
        store = ground.process()
        found = await asyncio.gather(*(store.journal.read("run") for _ in range(3)))
        assert [list(turns) for turns in found] == [[b"first"]] * 3

    asyncio.run(scene())


def test_processes_share_the_sealed_values_that_they_are_given() -> None:
    ground, seals = Ground(), MemorySeals()
    one, other = (FoldedStore(ground.log, ground.leases, ground.blobs, seals) for _ in range(2))
    handle = one.seals.seal("run", "card", "4111")
    assert other.seals.values("run") == {handle: "4111"}


def test_a_process_that_folds_from_the_start_knows_the_same() -> None:
    async def scene() -> None:
        ground = Ground()
        await ground.cut_off(ground.process(), "dead", replace(spending(60), session_id="session"))
        store = ground.process()
        await begin(store, "run", replace(spending(80), session_id="session"))
        number = await store.inbox.put("run", b"word")
        await go_on(store, "run", Barrier(heard=number, answer="fork"))
        await store.receipts.keep(receipt("ada"))
        await store.halts.append(b"halt", after=0)
        await end(store, "run", 25)
        anew = ground.process()
        for process in (store, anew):
            assert [entry.run_id for entry in await process.catalogue.entries()] == ["run"]
            assert await committed(process) == Committed(25, 0)
            assert await process.inbox.outcome(number) == ("", "fork")
            assert await process.receipts.kept(ReceiptKind.ACKNOWLEDGED) == [receipt("ada")]
            assert list(process.halts.since(0)) == [b"halt"]
            assert list(await process.journal.read("dead")) == []
        turns, again = await store.journal.read("run"), await anew.journal.read("run")
        assert (list(turns), turns.place) == (list(again), again.place)

    asyncio.run(scene())


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x81\xa1a", b"{}"])
@pytest.mark.parametrize(
    "name", ["run:run", "run:other", "inbox:run", "tenant:local", "session:a/b", "receipts", "halts", "what"]
)
def test_an_entry_that_no_store_wrote_changes_nothing_of_what_is_read(name: str, data: bytes) -> None:
    async def scene() -> None:
        ground = Ground()
        store = ground.process()
        await store.journal.append("run", b"0", START, listing=RunListing(1))
        place = max((entry.place for entry in await ground.log.news(START) if entry.name == name), default=START)
        await ground.log.append(name, data, place)
        for one in (store, ground.process()):
            assert [entry.run_id for entry in await one.catalogue.entries()] == ["run"]
            assert list(await one.journal.read("run")) == [b"0"]
            assert await one.inbox.pending(after=0) == []

    asyncio.run(scene())
