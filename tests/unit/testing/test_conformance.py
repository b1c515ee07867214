"""The conformance suites find a backend that does not do what every backend must."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeVar

import pytest

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.leases import MemoryLeases
from remit.core.journal.commands import Command
from remit.core.journal.storage import (
    AppendConflict,
    Barrier,
    BlobMissing,
    InboxEntry,
    LeaseLost,
    Place,
    RunEntry,
    RunListing,
    SessionConflict,
    SignedHead,
    Stretch,
    Warrant,
)
from remit.core.record import replace
from remit.orchestrate.ports import Blobs, Catalogue, Inbox, Journal, Leases
from remit.testing.conformance.processes.inbox import INBOX_CHECKS, OpenInbox
from remit.testing.conformance.processes.leases import LEASES_CHECKS, OpenLeases
from remit.testing.conformance.records.blobs import BLOBS_CHECKS, OpenBlobs
from remit.testing.conformance.records.catalogue import CATALOGUE_CHECKS, OpenCatalogue
from remit.testing.conformance.records.journal import JOURNAL_CHECKS, OpenJournal

Open = TypeVar("Open")


class BadJournal:
    """A journal in memory with one flaw."""

    def __init__(self, flaw: str) -> None:
        self._flaw = flaw
        self._runs: dict[str, Stretch] = {}

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        turns = self._runs.setdefault(self._key(run_id), Stretch())
        if self._flaw == "asks too late":
            stands_at = len(turns)
            await asyncio.sleep(0)
            is_conflict = stands_at != after + 1
        elif self._flaw == "allows gaps":
            is_conflict = len(turns) > after + 1
        else:
            is_conflict = len(turns) != after + 1
        if is_conflict and self._flaw == "takes equal for done" and turns[after + 1 : after + 2] == [data]:
            return after + 1
        if is_conflict and self._flaw == "stays locked":
            self._flaw = "locked"
        if self._flaw == "breaks when cancelled":
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                self._flaw = "locked"
                raise
        if self._flaw == "locked" or (is_conflict and self._flaw != "never objects"):
            raise AppendConflict(run_id)
        if self._flaw == "closes ended runs" and turns and turns[-1] == b"end":
            return after + 1
        turns.append(self._kept(data))
        if self._flaw == "marks barriers" and barrier is not None:
            turns[-1] += b"!"
        return after + 1

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        turns = self._runs.get(self._key(run_id), Stretch())
        if self._flaw == "lives on" and after < 0:
            return turns
        return Stretch(self._shown(turns, after), len(turns) - 1)

    def _shown(self, turns: list[bytes], after: int) -> list[bytes]:
        match self._flaw:
            case "newest first":
                return turns[::-1][: len(turns) - after - 1]
            case "off by one":
                return turns[after if after > 0 else after + 1 :]
            case "one page":
                return turns[after + 1 : after + 1001]
            case "invents a turn":
                return turns[after + 1 :] or [b""]
        return turns[after + 1 :]

    def _key(self, run_id: str) -> str:
        return run_id.lower().replace("/", ".") if self._flaw == "mixes runs" else run_id

    def _kept(self, data: bytes) -> bytes:
        if self._flaw == "stops at zero":
            return data.split(b"\0")[0]
        return data[:65536] if self._flaw == "cuts" else data


class BadBlobs:
    """Blobs in memory with one flaw."""

    def __init__(self, flaw: str) -> None:
        self._flaw = flaw
        self._kept: dict[bytes, bytes] = {}

    async def put(self, digest: bytes, data: bytes) -> None:
        if digest in self._kept and self._flaw == "objects":
            raise BlobMissing(digest)
        if digest in self._kept and self._flaw == "appends":
            data = self._kept[digest] + data
        if self._flaw == "cuts":
            data = data[:65536]
        if self._flaw == "loses":
            kept = dict(self._kept)
            await asyncio.sleep(0)
            self._kept = {**kept, digest: data}
            return
        self._kept[digest[:1] if self._flaw == "mixes" else digest] = data

    async def get(self, digest: bytes) -> bytes:
        key = digest[:1] if self._flaw == "mixes" else digest
        if key in self._kept:
            return self._kept[key]
        if self._flaw == "makes up":
            return b""
        raise BlobMissing(digest)


class BadCatalogue:
    """A journal in memory and its catalogue, with one flaw."""

    def __init__(self, flaw: str) -> None:
        self._flaw = flaw
        self._true = MemoryJournal()
        self.read = self._true.read

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        match self._flaw:
            case "shares places" if listing is not None:
                listing = replace(listing, session_id="")
            case "forgets the mode" if listing is not None:
                listing = replace(listing, mode="")
            case "misses early barriers" if after == -1:
                barrier = None
            case "never goes on" if barrier is not None and not (barrier.ending or barrier.waiting_for):
                barrier = None
            case "lists at once" if after == -1 and listing is not None and await self._true.entry(run_id) is not None:
                self._true._entries[run_id] = RunEntry(run_id, listing, 0)
            case "leaves runs behind" if listing is not None:
                self._true._runs.setdefault(run_id, [])
                self._true._entries.setdefault(run_id, RunEntry(run_id, listing, 0))
            case "knows one session" if listing is not None:
                listing = replace(listing, session_id="", ordinal=0)
            case "signs for nothing" if warrant is not None:
                self._true._heads.setdefault(run_id, []).append(SignedHead(run_id, 0, bytes(32), "", "did", b"s"))
            case "counts the empty session" if listing is not None and not listing.session_id:
                if await self._true.entries():
                    raise SessionConflict("", 0)
        return await self._true.append(run_id, data, after, barrier, listing, warrant)

    async def entry(self, run_id: str) -> RunEntry | None:
        entry = await self._true.entry(run_id)
        if entry is None and self._flaw == "makes up":
            return RunEntry(run_id, RunListing(1), 0)
        if entry is not None and self._flaw == "counts badly":
            return replace(entry, turns=entry.turns + 1)
        return entry

    async def entries(
        self,
        *,
        tenant_id: str | None = None,
        parent_id: str | None = None,
        begins: str = "",
        open_only: bool = False,
        waiting_only: bool = False,
        before: str = "",
        limit: int = 0,
    ) -> Sequence[RunEntry]:
        if self._flaw == "lists all":
            open_only = waiting_only = False
        entries = await self._true.entries(
            tenant_id=None if self._flaw == "shows others" else tenant_id,
            parent_id=None if self._flaw == "knows no parents" else parent_id,
            begins=begins[:1] if self._flaw == "looks at one letter" else begins,
            open_only=open_only,
            waiting_only=waiting_only,
            before="" if self._flaw == "begins anew" and before == "unknown" else before,
            limit=limit,
        )
        return entries[::-1] if self._flaw == "oldest first" else entries

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> Sequence[RunEntry]:
        entries = await self._true.session(session_id, tenant_id=None if self._flaw == "joins sessions" else tenant_id)
        return entries[::-1] if self._flaw == "ends first" else entries

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        entries = await self._true.alike(likeness, limit=9)
        return entries[::-1][:limit] if self._flaw == "likes old ones" else entries[:limit]

    async def named(self, name: str, tenant_id: str) -> Sequence[RunEntry]:
        entries = await self._true.named(name, tenant_id)
        return entries[::-1] if self._flaw == "names old ones" else entries

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        heads = await self._true.heads(run_id)
        return heads[-1:] if self._flaw == "keeps the last head" else heads

    async def last_head(self, run_id: str) -> SignedHead | None:
        return await self._true.last_head(run_id)


class BadInbox:
    """An inbox in memory with one flaw."""

    def __init__(self, flaw: str) -> None:
        self._flaw = flaw
        self._true = MemoryInbox()

    async def put(self, run_id: str, data: bytes) -> int:
        if self._flaw == "loses":
            size = len(self._true._entries)
            await asyncio.sleep(0)
            self._true._entries = self._true._entries[:size]
        number = await self._true.put(run_id, data.strip(b"\0") if self._flaw == "trims" else data)
        return number - 1 if self._flaw == "starts at zero" else number

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        if self._flaw == "shows all":
            return self._true._entries[after:]
        return await self._true.pending(after=0 if self._flaw == "begins anew" else after)

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        if self._flaw == "changes its mind":
            self._true._outcomes.pop(number, None)
        await self._true.settle(number, code, "" if self._flaw == "forgets why" else message)

    async def outcome(self, number: int) -> tuple[str, str] | None:
        return await self._true.outcome(number) or (("", "") if self._flaw == "heard it all" else None)


class BadLeases:
    """Leases in memory with one flaw."""

    lasts_ms = 0

    def __init__(self, flaw: str, true: MemoryLeases) -> None:
        self._flaw = flaw
        self._true = true

    async def take(self, run_id: str) -> int | None:
        run_id = run_id.lower() if self._flaw == "mixes" else run_id
        match self._flaw:
            case "lets all in":
                self._true._held.pop(run_id, None)
            case "holds few" if len(self._true._held) > 99:
                return None
            case "one token":
                self._true._numbers = count(1)
            case "asks too late":
                is_held = await self._true.is_held(run_id)
                await asyncio.sleep(0)
                if not is_held:
                    self._true._held.pop(run_id, None)
        return await self._true.take(run_id)

    async def renew(self, run_id: str, token: int) -> bool:
        return self._flaw == "renews anything" or await self._true.renew(run_id, token)

    async def release(self, run_id: str, token: int) -> None:
        if self._flaw == "lets anybody let go":
            token = self._true._held.get(run_id, 0)
        if self._flaw != "never lets go":
            await self._true.release(run_id, token)

    async def is_held(self, run_id: str) -> bool:
        if self._flaw == "takes to ask":
            return await self._true.take(run_id) is None
        return await self._true.is_held(run_id)


class CarelessJournal:
    """A journal in memory that looks at no token, or at every one wrongly."""

    def __init__(self, flaw: str) -> None:
        self._flaw = flaw
        self._true = MemoryJournal()
        self.read = self._true.read

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        if warrant is not None and self._flaw == "refuses holders":
            raise LeaseLost(run_id)
        if self._flaw == "writes what it refuses" and warrant is not None and len(await self._true.read(run_id)):
            await self._true.append(run_id, data, after, barrier, listing)
            raise LeaseLost(run_id)
        if self._flaw == "never fences":
            after = len(await self._true.read(run_id)) - 1
        return await self._true.append(run_id, data, after, barrier, listing)


def failed(checks: Sequence[Callable[[Open], Coroutine[Any, Any, None]]], opened: Open) -> set[str]:
    """The checks that a flawed part of a store does not pass."""
    found = set()
    for check in checks:
        try:
            asyncio.run(check(opened))
        except AssertionError:
            found.add(check.__name__)
    return found


def journals(flaw: str) -> OpenJournal:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Journal]:
        yield BadJournal(flaw) if flaw else MemoryJournal()

    return opened


def blobs(flaw: str) -> OpenBlobs:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Blobs]:
        yield BadBlobs(flaw) if flaw else MemoryBlobs()

    return opened


def catalogues(flaw: str) -> OpenCatalogue:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, Catalogue]]:
        both = BadCatalogue(flaw) if flaw else MemoryJournal()
        yield both, both

    return opened


def inboxes(flaw: str) -> OpenInbox:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Inbox]:
        yield BadInbox(flaw) if flaw else MemoryInbox()

    return opened


def failed_by_catalogue(flaw: str) -> set[str]:
    return failed(CATALOGUE_CHECKS, catalogues(flaw))


def failed_by_inbox(flaw: str) -> set[str]:
    return failed(INBOX_CHECKS, inboxes(flaw))


def leases(flaw: str) -> OpenLeases:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, Leases]]:
        true = MemoryLeases()
        is_careless = flaw in ("never fences", "refuses holders", "writes what it refuses")
        journal = CarelessJournal(flaw) if is_careless else MemoryJournal(true)
        yield journal, BadLeases(flaw, true) if flaw else true

    return opened


def failed_by_leases(flaw: str) -> set[str]:
    return failed(LEASES_CHECKS, leases(flaw))


def failed_by_journal(flaw: str) -> set[str]:
    return failed(JOURNAL_CHECKS, journals(flaw))


def failed_by_blobs(flaw: str) -> set[str]:
    return failed(BLOBS_CHECKS, blobs(flaw))


@pytest.mark.parametrize("flaw", ["", "none"])
def test_a_journal_without_flaw_passes_every_check(flaw: str) -> None:
    assert failed_by_journal(flaw) == set()


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("never objects", "a_turn_is_written_once"),
        ("allows gaps", "a_gap_is_refused"),
        ("asks too late", "one_of_many_rivals_wins"),
        ("stays locked", "a_run_goes_on_after_a_conflict"),
        ("newest first", "turns_come_back_in_order"),
        ("off by one", "reading_starts_after_the_turn_that_is_named"),
        ("one page", "many_turns_come_back"),
        ("lives on", "what_was_read_stays_as_it_was"),
        ("invents a turn", "an_unknown_run_reads_as_nothing"),
        ("mixes runs", "runs_do_not_mix"),
        ("stops at zero", "bytes_come_back_exactly"),
        ("cuts", "a_large_turn_comes_back"),
        ("newest first", "runs_are_written_beside_each_other"),
        ("marks barriers", "a_turn_with_a_barrier_is_written_like_any_other"),
        ("closes ended runs", "an_ended_run_takes_an_addendum"),
        ("asks too late", "rivals_with_barriers_are_told_apart"),
        ("breaks when cancelled", "a_cancelled_append_harms_nobody"),
        ("takes equal for done", "equal_bytes_are_another_turn"),
        ("asks too late", "equal_bytes_are_another_turn"),
    ],
)
def test_a_journal_with_a_flaw_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by_journal(flaw)


@pytest.mark.parametrize("flaw", ["", "none"])
def test_blobs_without_flaw_pass_every_check(flaw: str) -> None:
    assert failed_by_blobs(flaw) == set()


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("makes up", "a_missing_blob_is_said_to_be_missing"),
        ("appends", "keeping_twice_keeps_once"),
        ("objects", "keeping_twice_keeps_once"),
        ("cuts", "a_large_blob_comes_back"),
        ("mixes", "blobs_do_not_mix"),
        ("loses", "many_may_put_at_once"),
    ],
)
def test_blobs_with_a_flaw_fail_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by_blobs(flaw)


@pytest.mark.parametrize("flaw", ["", "none"])
def test_what_has_no_flaw_passes_every_check(flaw: str) -> None:
    assert failed_by_catalogue(flaw) | failed_by_inbox(flaw) | failed_by_leases(flaw) == set()


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("makes up", "an_unknown_run_has_no_entry"),
        ("forgets the mode", "an_entry_says_what_the_listing_said"),
        ("counts badly", "an_entry_counts_turns"),
        ("never goes on", "a_barrier_says_how_a_run_stands"),
        ("misses early barriers", "a_barrier_may_come_with_the_first_turn"),
        ("oldest first", "runs_are_listed_newest_first"),
        ("lists all", "runs_are_listed_by_how_they_stand"),
        ("shows others", "runs_are_listed_by_tenant"),
        ("knows no parents", "runs_are_listed_by_their_parent"),
        ("looks at one letter", "runs_are_found_by_how_their_ids_begin"),
        ("begins anew", "runs_are_listed_page_by_page"),
        ("joins sessions", "a_session_is_of_its_tenant"),
        ("likes old ones", "runs_are_found_by_their_likeness"),
        ("ends first", "a_session_is_listed_in_order"),
        ("knows one session", "a_session_is_listed_in_order"),
        ("shares places", "a_place_in_a_session_is_taken_once"),
        ("leaves runs behind", "a_place_in_a_session_is_taken_once"),
        ("counts the empty session", "runs_without_a_session_share_no_place"),
        ("keeps the last head", "heads_are_kept_with_their_turns"),
        ("signs for nothing", "a_refused_turn_leaves_no_head"),
        ("lists at once", "a_refused_first_turn_is_not_listed"),
    ],
)
def test_a_catalogue_with_a_flaw_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by_catalogue(flaw)


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("heard it all", "an_empty_inbox_holds_nothing"),
        ("trims", "what_was_left_is_found_in_order"),
        ("starts at zero", "what_was_left_is_found_in_order"),
        ("begins anew", "reading_goes_on_after_a_number"),
        ("shows all", "a_settled_entry_is_no_longer_pending"),
        ("forgets why", "a_settled_entry_is_no_longer_pending"),
        ("loses", "many_may_leave_something_at_once"),
        ("changes its mind", "an_entry_is_settled_once"),
    ],
)
def test_an_inbox_with_a_flaw_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by_inbox(flaw)


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("lets all in", "a_run_is_taken_once"),
        ("never lets go", "a_run_is_taken_once"),
        ("mixes", "runs_are_held_apart"),
        ("one token", "a_run_is_taken_once"),
        ("asks too late", "one_of_many_rivals_holds_a_run"),
        ("takes to ask", "who_asks_takes_nothing"),
        ("renews anything", "a_lease_is_renewed_by_its_holder_alone"),
        ("lets anybody let go", "a_lease_is_let_go_by_its_holder_alone"),
        ("holds few", "many_runs_may_be_held"),
        ("refuses holders", "a_holder_writes_under_its_token"),
        ("never fences", "a_stale_holder_writes_nothing"),
        ("never fences", "who_let_a_run_go_writes_nothing"),
        ("writes what it refuses", "who_let_a_run_go_writes_nothing"),
    ],
)
def test_leases_with_a_flaw_fail_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by_leases(flaw)


def test_every_check_finds_some_flaw() -> None:
    found = set().union(
        *(failed_by_journal(flaw) for flaw in ("never objects", "stays locked", "newest first", "cuts"))
    )
    assert {"a_turn_is_written_once", "a_run_goes_on_after_a_conflict"} <= found
