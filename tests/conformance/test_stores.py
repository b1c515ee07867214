"""Every store does what every store must: a table says which suites of checks each store is played, and what they are given."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.backend.clock import wall_clock_ms
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.folded.log import LogEntry
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.store import MemoryStore
from remit.core.journal.signing import Signer
from remit.core.journal.storage import START, Place, RunListing, StoreUnusable
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.orchestrate.ports import Feed, Journal, Store
from remit.testing.conformance.custody.checkup import CHECKUP_CHECKS
from remit.testing.conformance.custody.head_log import HEAD_LOG_CHECKS
from remit.testing.conformance.custody.redactions import REDACTIONS_CHECKS
from remit.testing.conformance.custody.retention import RETENTION_CHECKS
from remit.testing.conformance.custody.seals import SEALS_CHECKS
from remit.testing.conformance.custody.signing_key import KEY_CHECKS
from remit.testing.conformance.processes.bell import BELL_CHECKS
from remit.testing.conformance.processes.feed import FEED_CHECKS
from remit.testing.conformance.processes.halts import HALTS_CHECKS
from remit.testing.conformance.processes.inbox import INBOX_CHECKS
from remit.testing.conformance.processes.leases import LEASES_CHECKS
from remit.testing.conformance.processes.two_handles import TWO_HANDLES_CHECKS
from remit.testing.conformance.records.answers import ANSWERS_CHECKS
from remit.testing.conformance.records.blobs import BLOBS_CHECKS
from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS
from remit.testing.conformance.records.index import INDEX_CHECKS, KEPT_INDEX_CHECKS
from remit.testing.conformance.records.journal import JOURNAL_CHECKS, JournalCheck, OpenJournal
from remit.testing.conformance.records.ledger import LEDGER_CHECKS
from remit.testing.conformance.records.receipts import RECEIPTS_CHECKS
from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS
from remit.testing.scripts import in_turn, says
from remit.testing.world import SimulatedWorld
from tests import nats_server
from tests.simulation.shared_store import Ground, PoorLog, SharedStore

LEASE_MS = 600_000
# What a check is given: opens a store, two of them, or parts of one.
Open = Callable[..., AbstractAsyncContextManager[object]]
Check = Callable[[Any], Coroutine[Any, Any, None]]


class PagedLog(PoorLog):
    """A log that gives two entries at once, and more when it is asked again."""

    async def news(self, after: Place) -> list[LogEntry]:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """The next two."""
        return (await super().news(after))[:2]


def poor_store(ground: Ground | None = None, process: str = "process") -> SharedStore:
    """The poorest store: one entry of one log is written at a time, and leases expire."""
    return SharedStore(ground or Ground(), process, lambda: asyncio.sleep(0), LEASE_MS)


@cache
def documented() -> dict[str, Any]:
    """The names of the example in docs/testing.md that makes a store of a log."""
    blocks = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8").split("```python\n")
    (code,) = [code for code in (block.partition("```")[0] for block in blocks) if "class MyLog" in code]
    names: dict[str, Any] = {"asynccontextmanager": asynccontextmanager, "MemoryStore": MemoryStore, "pytest": pytest}
    exec(compile(code, "docs/testing.md", "exec"), names)
    return names


STORES: dict[str, Callable[[Path, Callable[[], int]], Store]] = {
    "memory": lambda _, now_ms: MemoryStore(Signer.generate(), now_ms=now_ms),
    "embedded": lambda home, now_ms: EmbeddedStore.open(home, now_ms=now_ms),
    "poor": lambda _, now_ms: poor_store(),
    "cluster": nats_server.opened,
}


@asynccontextmanager
async def opened(kind: str, home: Path, now_ms: Callable[[], int] = wall_clock_ms) -> AsyncIterator[Store]:
    """A store of this kind."""
    if kind == "documented":
        async with documented()["my_two_handles"]() as (store, _):
            yield store
        return
    store = STORES[kind](home, now_ms)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened_twice(kind: str, home: Path) -> AsyncIterator[tuple[Store, Store]]:
    """One store as two processes have it open; a store in memory is the same for both."""
    pair: tuple[Store, Store]
    if kind == "documented":
        async with documented()["my_two_handles"]() as pair:
            yield pair
        return
    if kind == "memory":
        pair = (store := MemoryStore()), store
    elif kind in ("poor", "paged"):
        ground = Ground()
        if kind == "paged":
            ground.log = PagedLog()
        pair = poor_store(ground, "one"), poor_store(ground, "two")
    else:
        pair = STORES[kind](home, wall_clock_ms), STORES[kind](home, wall_clock_ms)
    try:
        yield pair
    finally:
        for one in pair:
            await one.close()


def given(parts: Callable[[Store], object]) -> Callable[[str, Path], Open]:
    """Suites that are given these parts of a store."""

    def of(kind: str, home: Path) -> Open:
        @asynccontextmanager
        async def opening() -> AsyncIterator[object]:
            async with opened(kind, home) as store:
                yield parts(store)

        return opening

    return of


def whole(kind: str, home: Path) -> Open:
    """Suites that are given a store."""
    return lambda: opened(kind, home)


def timed(kind: str, home: Path) -> Open:
    """Suites that are given a store with a clock of theirs."""
    return lambda now_ms: opened(kind, home, now_ms)


def twice(kind: str, home: Path) -> Open:
    """Suites that are given a store as two processes have it open."""
    return lambda: opened_twice(kind, home)


def told_by_the_other(kind: str, home: Path) -> Open:
    """Suites that are given the journal of one process and the feed of the other."""

    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[Journal, Feed]]:
        async with opened_twice(kind, home) as (one, other):
            yield one.journal, other.feed

    return opening


class Suite(NamedTuple):
    """Checks, what they are given, and the stores that they are played."""

    checks: Sequence[Check]
    given: Callable[[str, Path], Open]
    kinds: tuple[str, ...]


EVERY = ("memory", "embedded", "poor", "documented", "cluster")
# The poor store has no key, and removes nothing.
RICH = ("memory", "embedded", "cluster")
# The one removes a run, and the other needs a key.
OF_A_RICH_STORE = ("a_store_that_is_well_has_no_problem", "signed_turns_that_are_missing_are_a_problem")
PAIRED = ("memory", "embedded", "poor", "paged", "documented", "cluster")
SUITES = (
    Suite(JOURNAL_CHECKS, given(lambda store: store.journal), ("embedded", "poor", "documented", "cluster")),
    Suite(BLOBS_CHECKS, given(lambda store: store.blobs), EVERY),
    Suite(CATALOGUE_CHECKS, given(lambda store: (store.journal, store.catalogue)), EVERY),
    Suite(LEDGER_CHECKS, given(lambda store: (store.journal, store.ledger)), EVERY),
    Suite(INBOX_CHECKS, given(lambda store: store.inbox), EVERY),
    Suite(ANSWERS_CHECKS, given(lambda store: (store.journal, store.inbox)), EVERY),
    Suite(LEASES_CHECKS, given(lambda store: (store.journal, store.leases)), EVERY),
    Suite(SNAPSHOTS_CHECKS, given(lambda store: (store.journal, store.snapshots)), EVERY),
    Suite(RECEIPTS_CHECKS, given(lambda store: (store.journal, store.receipts)), EVERY),
    Suite(HALTS_CHECKS, given(lambda store: store.halts), EVERY),
    Suite(SEALS_CHECKS, given(lambda store: store.seals), EVERY),
    Suite(HEAD_LOG_CHECKS, given(lambda store: (store.journal, store.log)), EVERY),
    Suite(KEY_CHECKS, given(lambda store: store.key), RICH),
    Suite(INDEX_CHECKS, whole, EVERY),
    # The others keep nothing beside their turns.
    Suite(KEPT_INDEX_CHECKS, whole, ("memory", "embedded")),
    Suite(RETENTION_CHECKS, timed, RICH),
    Suite(REDACTIONS_CHECKS, timed, RICH),
    Suite(CHECKUP_CHECKS, timed, RICH),
    Suite([check for check in CHECKUP_CHECKS if check.__name__ not in OF_A_RICH_STORE], timed, ("documented",)),
    Suite(FEED_CHECKS, told_by_the_other, PAIRED),
    Suite(BELL_CHECKS, twice, PAIRED),
    Suite(TWO_HANDLES_CHECKS, twice, PAIRED),
)


def name_of(check: Check) -> str:
    """The suite and the name of a check."""
    return f"{check.__module__.rpartition('.')[2]}-{check.__name__}"


@pytest.mark.parametrize(
    ("check", "kind", "suite"),
    [
        pytest.param(check, kind, suite, id=f"{name_of(check)}-{kind}")
        for suite in SUITES
        for check in suite.checks
        for kind in suite.kinds
    ],
)
def test_a_store_does_what_every_store_must(check: Check, kind: str, suite: Suite, tmp_path: Path) -> None:
    if kind == "cluster":
        nats_server.clear()
    asyncio.run(check(suite.given(kind, tmp_path)))


@asynccontextmanager
async def memory_journal() -> AsyncIterator[Journal]:
    yield MemoryJournal()


@asynccontextmanager
async def simulated_journal() -> AsyncIterator[Journal]:
    yield SimulatedWorld(model=in_turn(says("done"))).journal


@pytest.mark.req("3.30")
@pytest.mark.parametrize("open_journal", [memory_journal, simulated_journal], ids=["memory", "simulated"])
@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
def test_a_journal_does_what_every_journal_must(check: JournalCheck, open_journal: OpenJournal) -> None:
    asyncio.run(check(open_journal))


def test_a_poor_store_removes_nothing_and_says_so() -> None:
    async def scene() -> None:
        store = poor_store()
        await store.journal.append("run", b"turn", START, None, RunListing(1))
        for refused in (
            store.retention.delete("run"),
            store.retention.gc(ended_before_ms=9),
            store.redactions.redact("run", text="x", by="ada", why="w"),
        ):
            with pytest.raises(StoreUnusable, match="STORE_KEEPS_ALL"):
                await refused
        assert await store.journal.read("run") == [b"turn"]
        assert [check.name for check in await store.checkup.look()] == ["store", "store.log", "store.key"]

    asyncio.run(scene())


def test_receipts_are_there_for_the_next_process_that_opens_the_store(tmp_path: Path) -> None:
    async def by() -> list[str]:
        store = EmbeddedStore.open_to_read(tmp_path)
        try:
            return [receipt.by for receipt in await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)]
        finally:
            await store.close()

    asyncio.run(RECEIPTS_CHECKS[2](given(lambda store: (store.journal, store.receipts))("embedded", tmp_path)))  # type: ignore[arg-type]
    assert asyncio.run(by()) == ["ann"]


def test_receipts_go_with_their_run_and_none_is_kept_of_a_run_that_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened("embedded", tmp_path) as store:
            receipt = Receipt(ReceiptKind.ACKNOWLEDGED, "a", "a", "ann", 5)
            await store.receipts.keep(receipt)
            assert list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)) == []
            await store.journal.append("a", b"turn", after=-1, listing=RunListing(0))
            await store.receipts.keep(receipt)
            assert list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)) == [receipt]
            await store.retention.delete("a")
            assert list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)) == []

    asyncio.run(scene())


@pytest.mark.parametrize("kind", ["memory", "embedded"])
def test_a_place_is_not_given_again_when_the_newest_run_is_deleted(kind: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(kind, tmp_path) as store:
            for run_id in ("a", "b", "c"):
                await store.journal.append(run_id, run_id.encode(), START, listing=RunListing(1))
            end = await store.feed.end()
            for run_id in ("c", "b"):
                await store.retention.delete(run_id)
            assert await store.feed.end() == end
            await store.journal.append("d", b"d", START, listing=RunListing(1))
            assert [turn.data for turn in await store.feed.since(end, limit=9)] == [b"d"]
            assert [turn.data for turn in await store.feed.since(START, limit=9)] == [b"a", b"d"]

    asyncio.run(scene())
