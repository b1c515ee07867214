"""The journal on JetStream: a turn is one message of the subject of its run, and what it decides besides goes in its batch.

Rule 1: a turn follows the last message of its run's subject, which may be the mark of a holder: a holder before it is overtaken.
Rule 2: the place in a session, what is reserved of a quota and the answer to an entry of the inbox are written with the turn,
        each behind the last entry of its own log, or nothing is written at all.
"""

from collections.abc import Callable, Iterable, Sequence

from remit.backend.cluster.keys.signet import is_as_signed
from remit.backend.cluster.layout import CHUNK_BYTES, ENTRY_BYTES_MAX, EVERY_LOG, log_subject
from remit.backend.cluster.logs.blobs import ClusterBlobs
from remit.backend.cluster.logs.entries import Answered, Turned
from remit.backend.cluster.logs.log_copy import ClusterLogCopy, where
from remit.backend.cluster.server.jetstream import JetMessage, Stored
from remit.backend.cluster.server.link import Link, entry
from remit.backend.folded.log import INBOX, RUN, TENANT, TRIES_MAX, Charged, PlaceClaimed, session_log
from remit.core.failure import InvariantBroken
from remit.core.journal.codec import digests_in, encode_record
from remit.core.journal.commands import Command
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    EntrySettled,
    LeaseLost,
    Place,
    RunListing,
    SessionConflict,
    SignedHead,
    Stretch,
    Warrant,
    WrittenTurn,
)
from remit.core.limits.quota import Charge
from remit.core.record import digest_of, replace

TURN_FOREIGN = "TURN_FOREIGN"

# What a turn orders, as messages for those who do it; written in the batch of the turn.
Errands = Callable[[str, Sequence[Command]], Iterable[JetMessage]]


class ClusterJournal:
    """Turns on JetStream."""

    def __init__(self, link: Link, log_copy: ClusterLogCopy, blobs: ClusterBlobs, now_ms: Callable[[], int]) -> None:
        self._link = link
        self._log_copy = log_copy
        self._blobs = blobs
        self._now_ms = now_ms
        # Set by a dispatch that carries what turns order to other processes.
        self.errands: Errands | None = None

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
        turned, bulk = await self._turned(run_id, data, barrier, listing, None if warrant is None else warrant.head)
        errands = tuple(self.errands(run_id, orders)) if self.errands is not None and orders else ()
        for _ in range(TRIES_MAX):
            stood = self._log_copy.stands(RUN + run_id)
            expected = await self._expected(run_id, after, 0 if warrant is None else warrant.token)
            # What a run may spend stands before what it spent.
            claims, answers = self._claims(run_id, listing), self._answer(run_id, barrier)
            turn = entry(RUN + run_id, encode_record(turned), after=expected, bulk=bulk)
            try:
                # Whatever was written before is known before this turn is acted on: halts among it.
                written = await self._log_copy.write(*claims, turn, *answers, *errands, unheard=len(errands))
            except AppendConflict as error:
                await self._log_copy.refresh()
                if error.details["run_id"] == turn.subject and not self._is_only_in_the_way(run_id, stood, expected):
                    raise AppendConflict(run_id) from None
                # Another wrote to a session, a tenant or an inbox: whether that was in the way is asked again.
                continue
            return written + len(claims)
        raise AppendConflict(run_id)

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        await self._log_copy.refresh()
        references = self._log_copy.journal.turns_of(run_id)
        place = self._log_copy.stands(RUN + run_id) if references else START
        return Stretch(await self.resolved(references[after + 1 :], log_subject(RUN + run_id)), place)

    async def firsts_of(self, runs: Sequence[str]) -> Sequence[bytes]:
        """The first turns of runs."""
        return await self.resolved([self._log_copy.journal.turns_of(run_id)[0] for run_id in runs])

    async def resolved(self, references: Sequence[bytes], pattern: str = EVERY_LOG) -> list[bytes]:
        """The bytes of turns that an index refers to."""
        found = [where(reference) for reference in references]
        places = sorted({one.place for one in found if one.place})
        stored = await self._link.call(self._link.jet.many(places, pattern)) if places else {}
        return [_bytes_of(stored[one.place]) if one.place else await self._blobs.get(one.digest) for one in found]

    def _is_only_in_the_way(self, run_id: str, stood: Place, expected: Place) -> bool:
        """Whether what follows the last entry of a run is nothing but messages that count for nothing."""
        name = RUN + run_id
        return self._log_copy.stands(name) == stood and self._log_copy.place(name) > max(expected, START)

    async def _turned(
        self, run_id: str, data: bytes, barrier: Barrier | None, listing: RunListing | None, head: SignedHead | None
    ) -> tuple[Turned, bytes]:
        """The entry of a turn, and the bytes that go with it; those that are too long are kept as a text before."""
        known = self._log_copy.texts.get(run_id, set())
        texts = tuple(dict.fromkeys(digest for digest in digests_in(data) if digest not in known))
        turned = Turned(self._now_ms(), barrier, listing, head, texts)
        if len(data) > CHUNK_BYTES:
            turned = replace(turned, kept_as=digest_of(data))
            await self._blobs.put(turned.kept_as, data)
            data = b""
        if len(encode_record(turned)) > ENTRY_BYTES_MAX:
            turned = replace(turned, texts=(), has_more=True)
        return turned, data

    async def _expected(self, run_id: str, after: Place, token: int) -> Place:
        """The last message that the subject of a run must have for this turn to be the next; raises LeaseLost."""
        log_copy = self._log_copy
        if token and log_copy.held_under(run_id) != token:
            await log_copy.refresh()
            if log_copy.held_under(run_id) != token:
                raise LeaseLost(run_id)
        last = log_copy.place(RUN + run_id)
        if after == START and not log_copy.journal.turns_of(run_id):
            # Before its first turn a run has marks at most.
            return max(token, last)
        if log_copy.stands(RUN + run_id) > after:  # Places only grow.
            raise AppendConflict(run_id)
        return max(after, last)

    def _claims(self, run_id: str, listing: RunListing | None) -> list[JetMessage]:
        """Make what takes the place and the quota of a run with its first turn; raises SessionConflict or QuotaConflict."""
        if listing is None:
            return []
        log_copy, claims = self._log_copy, []
        if listing.session_id:
            if log_copy.journal.is_place_taken(listing):
                raise SessionConflict(listing.session_id, listing.ordinal)
            name = session_log(listing.tenant_id, listing.session_id)
            claims.append(entry(name, encode_record(PlaceClaimed(listing.ordinal, run_id)), after=log_copy.place(name)))
        if (wanted := listing.reserves) is not None:
            name = TENANT + listing.tenant_id
            log_copy.journal.ledger.check_room(listing.tenant_id, wanted, but=run_id)
            charge = Charge(run_id, listing.tenant_id, wanted.at_ms, wanted.amounts, is_open=True)
            claims.append(entry(name, encode_record(Charged(charge)), after=log_copy.place(name)))
        return claims

    def _answer(self, run_id: str, barrier: Barrier | None) -> list[JetMessage]:
        """The settlement of the entry of the inbox that a turn answers; raises EntrySettled where it was settled."""
        if barrier is None or not barrier.heard:
            return []
        letter = self._log_copy.inbox.get(barrier.heard)
        if letter is None or letter.outcome is not None:
            raise EntrySettled(run_id, barrier.heard)
        name = INBOX + run_id
        said = Answered(barrier.heard, "", barrier.answer, self._now_ms())
        return [entry(name, encode_record(said), after=self._log_copy.place(name))]


def _bytes_of(stored: Stored) -> bytes:
    if not is_as_signed(stored.data, stored.headers):
        raise InvariantBroken(
            TURN_FOREIGN, f"the bytes at {stored.seq} of {stored.subject} are not those of their entry"
        )
    return stored.data


class ClusterFeed:
    """Turns of all listed runs in the order of the stream: a place is a sequence of it."""

    def __init__(self, log_copy: ClusterLogCopy, journal: ClusterJournal) -> None:
        self._log_copy = log_copy
        self._journal = journal

    async def since(self, place: Place, *, limit: int) -> Sequence[WrittenTurn]:
        """The turns behind a place, oldest first, at most so many."""
        await self._log_copy.refresh()
        found = self._log_copy.turns_behind(place, limit)
        turns = await self._journal.resolved([reference for *_, reference in found])
        return [
            WrittenTurn(where, run_id, seq, data) for (where, run_id, seq, _), data in zip(found, turns, strict=True)
        ]

    async def end(self) -> Place:
        """The place of the newest turn."""
        await self._log_copy.refresh()
        return self._log_copy.end
