"""A journal in memory: lists of bytes, one per run, with the catalogue, the feed and the index of them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, islice
from typing import Unpack

from remit.backend.clock import wall_clock_ms
from remit.backend.memory.bell import MemoryBell
from remit.backend.memory.head_log import MemoryHeadLog
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.leases import MemoryLeases
from remit.backend.memory.ledger import MemoryLedger
from remit.core.journal.commands import Command
from remit.core.journal.storage import (
    AppendConflict,
    Barrier,
    Derived,
    LeaseLost,
    Place,
    RunEntry,
    RunListing,
    RunQuery,
    SessionConflict,
    SignedHead,
    Stretch,
    Topic,
    Warrant,
    WrittenTurn,
)
from remit.core.limits.quota import Charge
from remit.core.record import replace

# Looking a member up in its enum takes longer than all the rest of writing a turn does here.
_TURNS = Topic.TURNS


class MemoryJournal:
    """Keeps turns until the process ends."""

    def __init__(
        self,
        leases: MemoryLeases | None = None,
        inbox: MemoryInbox | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
        bell: MemoryBell | None = None,
    ) -> None:
        self._leases = leases or MemoryLeases()
        self._bell = bell or MemoryBell()
        self._inbox = inbox
        self._runs: dict[str, list[bytes]] = {}
        # Every turn of a listed run in the order written: its place is its position here. Deleted ones leave a hole.
        self._order: list[tuple[str, int] | None] = []
        self._entries: dict[str, RunEntry] = {}
        # The runs of each session, by tenant and place there: two runs never share one.
        self._sessions: dict[str, dict[tuple[str, int], str]] = {}
        self._heads: dict[str, list[SignedHead]] = {}
        self._alike: dict[str, list[str]] = {}
        self._now_ms = now_ms
        self._ended_at_ms: dict[str, int] = {}
        self.ledger = MemoryLedger(self._entries)
        self.log = MemoryHeadLog(self._runs)

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
        """Write the next turn of a run that stands at `after`, or raise AppendConflict."""
        turns, place = self._runs.get(run_id), after + 1
        if turns is None:
            turns = self._runs[run_id] = []
        if len(turns) != place:
            raise AppendConflict(run_id)
        head = None
        if warrant is not None:
            head = warrant.head
            if warrant.token and not self._leases.is_current(run_id, warrant.token):
                raise LeaseLost(run_id)
        if barrier is not None and barrier.heard and self._inbox is not None:
            self._inbox.hear(run_id, barrier.heard, barrier.answer)
        if listing is not None:
            self._list(run_id, listing)
        turns.append(data)
        self._order.append((run_id, place) if run_id in self._entries else None)
        if head is not None:
            self._heads.setdefault(run_id, []).append(head)
            self.log.append(head)
        if barrier is not None:
            self._note(run_id, barrier)
        self._bell.ring(_TURNS)
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        turns = self._runs.get(run_id, [])
        return Stretch(turns[after + 1 :], len(turns) - 1)

    async def mend(self) -> int:
        """Nothing here can be damaged."""
        return 0

    async def since(self, place: Place, *, limit: int) -> Sequence[WrittenTurn]:
        """The turns of listed runs behind a place, oldest first, at most so many."""
        later = range(place + 1, len(self._order))
        found = ((number, at) for number in later if (at := self._order[number]) is not None)
        return [
            WrittenTurn(number, run_id, seq, self._runs[run_id][seq]) for number, (run_id, seq) in islice(found, limit)
        ]

    async def end(self) -> Place:
        """The place of the newest turn."""
        return len(self._order) - 1

    async def names(self) -> Sequence[str]:
        """Every run that has a turn, in the order they started."""
        return self.every_run()

    async def strike(self) -> Sequence[str]:
        """Nothing is listed but with its first turn."""
        return ()

    async def sum_up(self) -> None:
        """Nothing is kept as a sum."""

    async def renew(self, runs: Sequence[Derived]) -> Sequence[str]:
        """List these runs so, and settle what they heard; gives those that now are."""
        as_they_stand = [run for run in runs if len(self._runs.get(run.run_id, ())) == run.turns]
        for run in as_they_stand:
            listing = replace(run.listing, likeness="")
            self._entries[run.run_id] = RunEntry(run.run_id, listing, 0, run.standing.ending, run.standing.waiting_for)
            if listing.session_id:
                self._sessions.setdefault(listing.session_id, {})[_place_of(listing)] = run.run_id
            alike = self._alike.setdefault(run.listing.likeness, []) if run.listing.likeness else []
            if run.listing.likeness and run.run_id not in alike:
                alike.append(run.run_id)
            for number, answer in run.heard if self._inbox is not None else ():
                await self._inbox.settle(number, "", answer)  # type: ignore[union-attr]  # asked for above
        return [run.run_id for run in as_they_stand]

    async def entry(self, run_id: str) -> RunEntry | None:
        """One run, or None where it was not started here."""
        entry = self._entries.get(run_id)
        return None if entry is None else replace(entry, turns=len(self._runs[run_id]))

    async def entries(self, **query: Unpack[RunQuery]) -> Sequence[RunEntry]:
        """The runs that a query asks for, newest first."""
        before, begins = query.get("before", ""), query.get("begins", "")
        tenant_id, parent_id = query.get("tenant_id"), query.get("parent_id")
        open_only, waiting_only = query.get("open_only", False), query.get("waiting_only", False)
        every = reversed(self._entries.values())
        if before:
            every = dropwhile(lambda entry: entry.run_id != before, every)
            next(every, None)
        found = (
            replace(entry, turns=len(self._runs[entry.run_id]))
            for entry in every
            if tenant_id in (None, entry.listing.tenant_id)
            and parent_id in (None, entry.listing.parent_id)
            and entry.run_id.startswith(begins)
            and not (open_only and entry.ending)
            and not (waiting_only and not entry.waiting_for)
        )
        return list(islice(found, query.get("limit") or None))

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> Sequence[RunEntry]:
        """The runs of a session, in order; None is of every tenant."""
        places = sorted(self._sessions.get(session_id, {}).items())
        entries = [self._entries[run_id] for (tenant, _), run_id in places if tenant_id in (None, tenant)]
        return [replace(entry, turns=len(self._runs[entry.run_id])) for entry in entries]

    async def named(self, name: str, tenant_id: str) -> Sequence[RunEntry]:
        """The open runs of a tenant that agents elsewhere name so, newest first."""
        wanted = (name, tenant_id)
        entries = await self.entries(open_only=True) if name else ()
        return [one for one in entries if (one.listing.name, one.listing.tenant_id) == wanted]

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        """The newest runs of a likeness that succeeded, newest first, at most so many."""
        entries = (self._entries[run_id] for run_id in reversed(self._alike.get(likeness, [])))
        succeeded = (entry for entry in entries if entry.ending == "SUCCESS")
        return [replace(entry, turns=len(self._runs[entry.run_id])) for entry in islice(succeeded, limit)]

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads that came with the turns of a run, oldest first."""
        return tuple(self._heads.get(run_id, ()))

    async def last_head(self, run_id: str) -> SignedHead | None:
        """The last of them."""
        return next(reversed(self._heads.get(run_id, ())), None)

    def every_run(self) -> Sequence[str]:
        """Every run that has a turn, for those who wait for nothing."""
        return [run_id for run_id, turns in self._runs.items() if turns]

    def turns_of(self, run_id: str) -> Sequence[bytes]:
        """The turns of a run, oldest first; none for a run that was not started."""
        return tuple(self._runs.get(run_id, ()))

    def listed(self) -> Mapping[str, RunEntry]:
        """The runs that are listed, in the order they began."""
        return self._entries

    def parent_of(self, run_id: str) -> str:
        """The run that started this one; empty where none did."""
        entry = self._entries.get(run_id)
        return "" if entry is None else entry.listing.parent_id

    def is_place_taken(self, listing: RunListing) -> bool:
        """Whether another run has this place in its session."""
        return _place_of(listing) in self._sessions.get(listing.session_id, {})

    def children_of(self, run_id: str) -> Sequence[str]:
        """The runs that this one started, in the order they began."""
        return [entry.run_id for entry in self._entries.values() if entry.listing.parent_id == run_id]

    def remove(self, run_id: str) -> int:
        """Keep nothing of a run any more but what it counts and what was signed; gives the number of its turns."""
        self.ledger.close_deleted(run_id)
        entry = self._entries.pop(run_id, None)
        if entry is not None and (places := self._sessions.get(entry.listing.session_id)) is not None:
            places.pop(_place_of(entry.listing), None)
            if not places:
                del self._sessions[entry.listing.session_id]
        for run_ids in self._alike.values():
            run_ids[:] = [name for name in run_ids if name != run_id]
        self._heads.pop(run_id, None)
        self._ended_at_ms.pop(run_id, None)
        self._order = [None if at is not None and at[0] == run_id else at for at in self._order]
        return len(self._runs.pop(run_id))

    def rewrite(self, run_id: str, seq: int, data: bytes) -> None:
        """Put other bytes in the place of a turn."""
        self._runs[run_id][seq] = data

    def ended_at_ms(self, run_id: str) -> int | None:
        """When a run ended; None while it is open."""
        return self._ended_at_ms.get(run_id)

    def _note(self, run_id: str, barrier: Barrier) -> None:
        """List a run as its latest barrier says, and remember when it ended."""
        if (entry := self._entries.get(run_id)) is not None:
            self._entries[run_id] = replace(entry, ending=barrier.ending, waiting_for=barrier.waiting_for)
            if barrier.charge is not None:
                self.ledger.keep(barrier.charge)
        if barrier.ending:
            self._ended_at_ms[run_id] = self._now_ms()
        else:
            self._ended_at_ms.pop(run_id, None)

    def _list(self, run_id: str, listing: RunListing) -> None:
        reserves = listing.reserves
        if reserves is not None:
            self.ledger.check_room(listing.tenant_id, reserves)
        if listing.session_id:
            places = self._sessions.setdefault(listing.session_id, {})
            if self.is_place_taken(listing):
                raise SessionConflict(listing.session_id, listing.ordinal)
            places[_place_of(listing)] = run_id
        if reserves is not None:
            self.ledger.keep(Charge(run_id, listing.tenant_id, reserves.at_ms, reserves.amounts, is_open=True))
            listing = replace(listing, reserves=None)
        if listing.likeness:
            self._alike.setdefault(listing.likeness, []).append(run_id)
            listing = replace(listing, likeness="")
        self._entries[run_id] = RunEntry(run_id, listing, 0)


def _place_of(listing: RunListing) -> tuple[str, int]:
    """What two runs of a session never share: a place in that of a tenant."""
    return listing.tenant_id, listing.ordinal
