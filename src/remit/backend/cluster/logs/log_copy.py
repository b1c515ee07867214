"""What the logs of a cluster come to, as one process has folded them: an index. Turns and letters stay where they are kept.

Rule 1: it is a cache of the logs. A process that has none folds them from the first entry on, and knows the same.
Rule 2: a turn that was written anew stands where it stood before, also for a process that never saw the first.
"""

import asyncio
import logging
from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple

from remit.backend.clock import wall_clock_ms
from remit.backend.cluster.keys.believed_keys import SIGNER_REVOKED, SIGNER_UNKNOWN
from remit.backend.cluster.layout import log_subject
from remit.backend.cluster.logs.entries import (
    GONE,
    Cleared,
    Gone,
    Left,
    Mark,
    OfInbox,
    OfRun,
    Rewritten,
    Turned,
)
from remit.backend.cluster.logs.tail import UNREADABLE, HeardEntry
from remit.backend.cluster.server.jetstream import JetMessage
from remit.backend.cluster.server.link import Link
from remit.backend.cluster.server.link import entry as entry_of
from remit.backend.folded.log import (
    HALT_LOG,
    INBOX,
    RECEIPTS,
    RUN,
    SESSION,
    TENANT,
    TRIES_MAX,
    Charged,
    LogEntry,
    PlaceClaimed,
    Written,
)
from remit.backend.memory.halts import MemoryHalts
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.receipts import MemoryReceipts
from remit.core.durations import DAY_MS
from remit.core.failure import RemitError
from remit.core.journal.codec import decode_record, encode_record
from remit.core.journal.storage import START, AppendConflict, Place, Warrant
from remit.core.limits.queue import Receipt
from remit.core.limits.quota import Charge
from remit.core.record import Record, replace
from remit.wire.credentials import CAPABILITY_EXPIRED, CAPABILITY_LACKING

# A turn as the index knows it: the place of the message with its bytes, or the digest of the text that they are kept as.
_AT, _AS = b"@", b"#"
# A message whose entry cannot be read, or names another log, although its signature holds.
ENTRY_MISNAMED = "ENTRY_MISNAMED"
# At most REFUSED_MAX entries that count for nothing are remembered of one log; those older than ASIDE_MS are put aside.
REFUSED_MAX, ASIDE_MS = 100, DAY_MS
_log = logging.getLogger(__name__)
# At most so many texts of other processes are remembered; where there are more, this process removes none.
FOREIGN_TEXTS_MAX = 100_000
# The codes with which an entry is refused although its key is known here: it may not write this.
_NOT_THEIRS = (CAPABILITY_LACKING, CAPABILITY_EXPIRED, SIGNER_REVOKED)
# A number of a turn has fewer digits; what is longer is no id of a command.
_DIGITS_MAX = 12
_REWRITTEN = Rewritten.__name__.encode()


class TurnBytes(Record):
    """Where the bytes of a turn are: at a place of the stream, or kept as a text."""

    place: Place = 0
    digest: bytes = b""


def _reference(place: Place, turned: Turned) -> bytes:
    return _AS + turned.kept_as if turned.kept_as else _AT + b"%d" % place


def where(reference: bytes) -> TurnBytes:
    """What a reference in the index says."""
    if reference[:1] == _AS:
        return TurnBytes(digest=reference[1:])
    return TurnBytes(place=int(reference[1:]))


class RefusedEntry(NamedTuple):
    """Where a message stands that counts for nothing, and why."""

    place: Place
    code: str


class WaitingLetter:
    """An entry of an inbox: whose it is, where its bytes are, and what its sender is told."""

    __slots__ = ("kept_as", "outcome", "run_id", "settled_at_ms")

    def __init__(self, run_id: str, left: Left) -> None:
        self.run_id = run_id
        self.kept_as = left.kept_as
        self.outcome: tuple[str, str] | None = None
        self.settled_at_ms = 0


class ClusterLogCopy:
    """The logs as one process has folded them."""

    def __init__(self, link: Link) -> None:
        self.log = link
        self._at_ms = 0
        self.journal = MemoryJournal(now_ms=lambda: self._at_ms)
        self.receipts = MemoryReceipts()
        self.halts = MemoryHalts()
        # Where the last entry of a log stands that counts, and the last message of its subject, no matter who wrote it.
        self._stands: dict[str, Place] = {}
        self._lasts: dict[str, Place] = {}
        # What is written of a run that was removed stands behind that word.
        self._floors: dict[str, Place] = {}
        link.floors = self._floors
        self._seen: Place = START
        # The question to the leader that is under way, and the one that comes behind it.
        self._asking: asyncio.Future[None] | None = None
        self._following: asyncio.Future[None] | None = None
        # Under which token which process holds a run.
        self.holders: dict[str, tuple[str, int]] = {}
        # Where the mark stands by which a run was taken last.
        self.taken: dict[str, Place] = {}
        self.inbox: dict[int, WaitingLetter] = {}
        # The texts that a run refers to, and those of its turns that refer to more than is known here.
        self.texts: dict[str, set[bytes]] = {}
        self.unread: dict[str, set[bytes]] = {}
        # Those of turns whose signers do not count here; and whether some of them refer to more than is known.
        self.foreign_texts: set[bytes] = set()
        self.has_foreign_unread = False
        # The places of entries that could not be read; and those of messages that count for nothing, by the log they stand in.
        self.unreadable: list[Place] = []
        self.refused: dict[str, list[RefusedEntry]] = {}
        # Where each turn of a run was written first, and where those stand that were written anew.
        self.places: dict[str, list[Place]] = {}
        self._anew: dict[tuple[str, int], Place] = {}
        # The places of entries that another one stands for, which may still be there.
        self.replaced: set[Place] = set()
        # The places of the turns of listed runs, and whose turn each is.
        self.order: list[Place] = []
        self.told: dict[Place, tuple[str, int]] = {}
        self.end: Place = START
        # Where the entry stands that says that a run was removed.
        self.gone: dict[str, Place] = {}
        # The runs that sessions, tenants and words that do not count name, whether they are there or not.
        self.named: set[str] = set()
        self._folds = {
            RUN: self._fold_run,
            SESSION: self._fold_session,
            TENANT: self._fold_tenant,
            INBOX: self._fold_inbox,
            GONE: self._fold_gone,
        }

    def place(self, name: str) -> Place:
        """Behind which message the next entry of a log is written, as far as it was folded; that one may count for nothing."""
        return self._lasts.get(log_subject(name), START)

    def stands(self, name: str) -> Place:
        """Where the last entry of a log stands that counts."""
        return self._stands.get(name, START)

    async def add(self, name: str, data: bytes, bulk: bytes = b"") -> Place:
        """Write an entry behind whatever is the last one of its log."""
        for _ in range(TRIES_MAX):
            try:
                return await self.write(entry_of(name, data, after=self.place(name), bulk=bulk))
            except AppendConflict:
                await self.refresh()
        raise AppendConflict(name)

    async def keep(self, charge: Charge, *, is_anew: bool = False) -> None:
        """Count a run so for its tenant from here on, whatever else is written of that."""
        await self.add(TENANT + charge.tenant_id, encode_record(Charged(charge, is_anew)))

    async def refresh(self, up_to: Place = 0) -> None:
        """Fold everything that was written by now, or up to a place.

        Callers that come while the leader is being asked share the next question: it is asked after all of them came.
        """
        if up_to:
            await self._fold(await self.log.news(max(self._seen, 0), up_to))
            return
        following = self._following
        if following is None or following.done():
            following = self._following = asyncio.ensure_future(self._ask(self._asking))
            following.add_done_callback(_seen_to)
        await asyncio.shield(following)

    async def _ask(self, before: "asyncio.Future[None] | None") -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._asking, self._following = self._following, None
        await self._fold(await self.log.news(max(self._seen, 0)))

    async def write(self, *messages: JetMessage, unheard: int = 0) -> Place:
        """Write entries together, and fold everything up to the last of them; gives the place of the first.

        `unheard` of them, the last ones, are of no log.
        """
        place, news = await self.log.write_and_hear(max(self._seen, 0), *messages, unheard=unheard)
        await self._fold(news)
        return place

    async def _fold(self, news: Sequence[HeardEntry]) -> None:
        fresh = [one for one in news if one.place > self._seen]
        if not fresh:
            return
        kept: list[LogEntry] = [one for one in fresh if self._counts(one)]
        if self._seen == START:
            self._tell_strange()
        for entry, stands in _in_their_order(kept) if self._seen == START else ((one, one.place) for one in kept):
            self._seen = max(self._seen, entry.place)
            try:
                await self._fold_one(entry, stands)
            except (RemitError, KeyError, IndexError) as error:
                # One that a later version wrote must not keep all others from being known.
                self.unreadable.append(entry.place)
                _log.warning("entry %d of %s cannot be read and is left out: %s", entry.place, entry.name[:80], error)
        self._seen = max(self._seen, fresh[-1].place)

    def _counts(self, heard: HeardEntry) -> bool:
        """Check that an entry is signed as the next one of its log; False for one that is not, which is put aside and ignored."""
        subject = heard.subject
        last = max(self._lasts.get(subject, 0), self._floors.get(subject, 0))
        self._lasts[subject] = heard.place
        code = self.log.signet.entry_objection(subject, heard.headers, place=heard.place, last=last, at_ms=heard.at_ms)
        if not code and heard.name.startswith(UNREADABLE):
            code = ENTRY_MISNAMED
        if code:
            self._put_aside(heard, code)
        elif heard.name.startswith(GONE):
            for log in (RUN, INBOX):
                removed = log_subject(log + heard.name.removeprefix(GONE))
                self._lasts.pop(removed, None)
                self._floors[removed] = heard.place
        return not code

    def _tell_strange(self) -> None:
        """Say once what was there before and is written with keys that do not count here: it may be a whole deployment."""
        every = [one for found in self.refused.values() for one in found]
        if strange := [one for one in every if one.code == SIGNER_UNKNOWN]:
            way_out = "name the fingerprints of its deployment in REMIT_TRUST, or work in its folder"
            _log.warning("%s: %s; %s", SIGNER_UNKNOWN, told_refused(strange), way_out)

    def _put_aside(self, heard: HeardEntry, code: str) -> None:
        if code in _NOT_THEIRS and heard.name.startswith(GONE):
            # Who may not remove a run says that it is gone; it may be true.
            self.named.add(heard.name.removeprefix(GONE))
        if code == SIGNER_UNKNOWN and heard.name.startswith(RUN):
            self._spare_texts(heard)
        known = self.refused.setdefault(heard.subject, [])
        if len(known) < REFUSED_MAX:
            known.append(RefusedEntry(heard.place, code))
        # What was there before this process was told when it came; a checkup names it.
        level = logging.DEBUG if self._seen == START else logging.WARNING
        _log.log(level, "%s: entry %d of %s counts for nothing", code, heard.place, heard.subject[:80])
        # The letters of older ones have expired.
        if heard.at_ms > wall_clock_ms() - ASIDE_MS:
            self.log.put_aside(heard.place, heard.subject, code, f"message {heard.place} counts for nothing in its log")

    def _spare_texts(self, heard: HeardEntry) -> None:
        """Note the texts of a turn that counts for others, who need them."""
        try:
            said = decode_record(heard.data, OfRun)
        except RemitError:
            return  # Another program wrote it.
        turned = said.turned if isinstance(said, Rewritten) else said
        if isinstance(turned, Turned):
            self.foreign_texts |= {*turned.texts, turned.kept_as}
            self.has_foreign_unread |= turned.has_more or len(self.foreign_texts) > FOREIGN_TEXTS_MAX

    async def _fold_one(self, entry: LogEntry, stands: Place) -> None:
        self._stands[entry.name] = entry.place
        kind, colon, name = entry.name.partition(":")
        if entry.name == RECEIPTS:
            await self.receipts.keep(decode_record(entry.data, Receipt))
        elif entry.name == HALT_LOG:
            halt = decode_record(entry.data, Written)
            await self.halts.append(halt.data, after=len(self.halts.since(0)), head=halt.head)
            if halt.head is not None:
                self.journal.log.append(halt.head)
        else:
            await self._folds[kind + colon](name, entry, stands)

    async def _fold_run(self, run_id: str, entry: LogEntry, stands: Place) -> None:
        if not entry.data:  # It stands where it stood before.
            return
        said = decode_record(entry.data, OfRun)
        if isinstance(said, Mark):
            if said.worker:
                self.holders[run_id] = (said.worker, entry.place)
                self.taken[run_id] = entry.place
            else:
                self.holders.pop(run_id, None)
        elif isinstance(said, Rewritten):
            self.replaced |= {said.place, self.stands_at(run_id, said.number)}
            self._anew[run_id, said.number] = entry.place
            self._know_texts(run_id, said.turned, entry.place)
            self.journal.rewrite(run_id, said.number, _reference(entry.place, said.turned))
        else:
            await self._fold_turn(run_id, entry.place, said, stands)

    async def _fold_turn(self, run_id: str, place: Place, turned: Turned, stands: Place) -> None:
        barrier, listing = turned.barrier, turned.listing
        self._at_ms = turned.at_ms
        # Settled in the log of the inbox, and reserved in that of the tenant, both together with the turn.
        if barrier is not None:
            barrier = replace(barrier, heard=0)
        if listing is not None:
            listing = replace(listing, reserves=None)
        number = len(self.journal.turns_of(run_id))
        if stands != place:
            self.replaced.add(place)
            self._anew[run_id, number] = stands
        reference = _reference(stands, turned)
        await self.journal.append(run_id, reference, number - 1, barrier, listing, Warrant(head=turned.head))
        self._know_texts(run_id, turned, place)
        self.places.setdefault(run_id, []).append(place)
        if run_id in self.journal.listed():
            insort(self.order, place)
            self.told[place] = (run_id, number)
            self.end = max(self.end, place)

    def _know_texts(self, run_id: str, turned: Turned, place: Place) -> None:
        known = self.texts.setdefault(run_id, set())
        known.update(turned.texts)
        if turned.kept_as:
            known.add(turned.kept_as)
        if turned.has_more:
            self.unread.setdefault(run_id, set()).add(_reference(place, turned))

    async def _fold_session(self, name: str, entry: LogEntry, stands: Place) -> None:
        """The place of a session is in the listing of its run; its log says who was first."""
        self.named.add(decode_record(entry.data, PlaceClaimed).run_id)

    async def _fold_tenant(self, tenant_id: str, entry: LogEntry, stands: Place) -> None:
        charged = decode_record(entry.data, Charged)
        self.named.add(charged.charge.run_id)
        self.journal.ledger.keep(charged.charge, is_anew=charged.is_anew)

    async def _fold_inbox(self, run_id: str, entry: LogEntry, stands: Place) -> None:
        said = decode_record(entry.data, OfInbox)
        if isinstance(said, Left):
            self.inbox[entry.place] = WaitingLetter(run_id, said)
        elif isinstance(said, Cleared):
            for number in said.numbers:
                self.inbox.pop(number, None)
        elif (letter := self.inbox.get(said.number)) is not None and letter.outcome is None:
            letter.outcome, letter.settled_at_ms = (said.code, said.message), said.at_ms

    async def _fold_gone(self, _: str, entry: LogEntry, stands: Place) -> None:
        gone = decode_record(entry.data, Gone)
        run_id = gone.run_id
        self.gone[run_id] = entry.place
        is_known = bool(self.journal.turns_of(run_id))
        if is_known:
            self.journal.remove(run_id)
        if gone.charge is not None:
            self.journal.ledger.keep(gone.charge, is_anew=True)
        if gone.last is not None and not is_known:
            self.journal.log.append(gone.last)
        if gone.deletion is not None:
            self.journal.log.append(gone.deletion)
        self.receipts.forget(run_id)
        self.inbox = {number: one for number, one in self.inbox.items() if one.run_id != run_id}
        for known in (self.texts, self.unread, self.holders, self.taken, self.places):
            known.pop(run_id, None)
        self._anew = {which: place for which, place in self._anew.items() if which[0] != run_id}
        for name in (RUN + run_id, INBOX + run_id):
            self._stands.pop(name, None)
        places = [place for place, (whose, _) in self.told.items() if whose == run_id]
        for place in places:
            del self.told[place]
        if places:
            self.order = [place for place in self.order if place in self.told]

    def held_under(self, run_id: str) -> int:
        """The token of the lease of a run; 0 where it was let go or never taken."""
        return self.holders.get(run_id, ("", 0))[1]

    def stands_at(self, run_id: str, number: int) -> Place:
        """Where the entry of a turn stands."""
        return self._anew.get((run_id, number), self.places[run_id][number])

    async def ordered_at(self, run_id: str, command_id: str) -> Place:
        """Where the turn was written first that orders a command: what stands before it was said of no such command.

        0 where that turn is not known here for certain, and of a run that is there again after it was removed: then every word
        counts, so that a call that may have begun begins no second time.
        """
        number = command_id.partition(".")[0]
        turn = int(number) if number.isdecimal() and len(number) <= _DIGITS_MAX else -1
        if turn >= len(self.places.get(run_id, ())):
            await self.refresh()
        places = self.places.get(run_id, ())
        is_known = 0 <= turn < len(places) and run_id not in self.gone and not self._may_lack_turns(run_id)
        return places[turn] if is_known else 0

    def _may_lack_turns(self, run_id: str) -> bool:
        """Whether turns of a run may stand in the stream that this process does not count, while others do."""
        refused = self.refused.get(log_subject(RUN + run_id), ())
        is_strange = any(one.code in (SIGNER_UNKNOWN, *_NOT_THEIRS) for one in refused)
        return is_strange or len(refused) >= REFUSED_MAX or bool(self.unreadable)

    def turns_behind(self, place: Place, limit: int) -> Sequence[tuple[Place, str, int, bytes]]:
        """The turns of listed runs behind a place, at most so many: where, whose, which number, and the reference to it."""
        begin = bisect_right(self.order, place)
        found = [(place, *self.told[place]) for place in self.order[begin : begin + limit]]
        return [(place, run_id, seq, self.journal.turns_of(run_id)[seq]) for place, run_id, seq in found]


def told_refused(refused: Sequence[RefusedEntry]) -> str:
    """Messages that count for nothing, in words; empty for none."""
    codes = ", ".join(sorted({one.code for one in refused}))
    more = "or more " if len(refused) >= REFUSED_MAX else ""
    first = min((one.place for one in refused), default=START)
    return (
        f"{len(refused)} {more}messages count for nothing ({codes}), the first at sequence {first}" if refused else ""
    )


def _seen_to(asked: "asyncio.Future[None]") -> None:
    """Callers that stopped waiting for a question need not be told how it went wrong."""
    if not asked.cancelled():
        asked.exception()


def _in_their_order(news: Sequence[LogEntry]) -> list[tuple[LogEntry, Place]]:
    """All entries from the first on, those that were written anew in the places of the first, with where they stand now."""
    anew: dict[Place, tuple[LogEntry, Place]] = {}
    others: list[tuple[LogEntry, Place]] = []
    for entry in news:
        # Few are, so only what has the word in it is read twice.
        may_be = _REWRITTEN in entry.data and entry.name.startswith(RUN)
        said = decode_record(entry.data, OfRun) if may_be else None
        if isinstance(said, Rewritten):
            anew[said.place] = LogEntry(said.place, entry.name, encode_record(said.turned)), entry.place
            entry = LogEntry(entry.place, entry.name, b"")
        others.append((entry, entry.place))
    if not anew:
        return others
    kept = [one for one in others if one[0].place not in anew]
    return sorted([*kept, *anew.values()], key=lambda one: one[0].place)
