"""Retention and redactions of a store in memory: the laws of their siblings in backend/embedded/, over dictionaries.

Rule 1: nothing here waits but for leases, so whatever is removed together is seen together.
Rule 2: a deletion is logged where the store has a key. Without one nothing is signed, and a log without signatures says nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.inbox import MemoryInbox
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.receipts import MemoryReceipts
from remit.backend.memory.seals import MemorySeals
from remit.backend.memory.snapshots import MemorySnapshots
from remit.backend.redacted_turns import FindSecrets, finder_of, holds_value, longest_first, without, words_to_redact
from remit.core.journal.codec import digests_in, encode_redacted, hash_turn
from remit.core.journal.ended import Belongings, ended_at_ms, is_child_of, is_over, parent_in
from remit.core.journal.signing import Signer, sign_deletion, sign_redaction
from remit.core.journal.storage import ANSWER_GRACE_MS, TEXT_GRACE_MS, ParentOpen, Redacted, Removed, StoreUnusable
from remit.core.journal.turn import RedactedTurn
from remit.core.run.person import check_person
from remit.core.secrets.secret_search import covered


class StoredParts(Protocol):
    """What a store in memory holds of its runs."""

    @property
    def journal(self) -> MemoryJournal:
        """Turns, and the index of them."""

    @property
    def blobs(self) -> MemoryBlobs:
        """Long texts."""

    @property
    def snapshots(self) -> MemorySnapshots:
        """States."""

    @property
    def inbox(self) -> MemoryInbox:
        """What people left for runs."""

    @property
    def receipts(self) -> MemoryReceipts:
        """What was done about the items of queues."""

    @property
    def seals(self) -> MemorySeals:
        """Values of secrets."""


class Holding(Protocol):
    """Who drives which run, for a caller that needs runs at rest."""

    async def take(self, run_id: str) -> int | None:
        """Take a run; None when it is held."""

    async def release(self, run_id: str, token: int) -> None:
        """Let a run go."""


class Driving(Holding, Protocol):
    """Retention where it is known whether any run is held."""

    @property
    def is_driving(self) -> bool:
        """Whether any run is held."""


# The first turns of runs; and the turns of one with the last one first, back to the one that ends it.
FirstsOf = Callable[[Sequence[str]], Awaitable[Sequence[bytes]]]
Backwards = Callable[[str], Awaitable[Iterable[bytes]]]


async def refuse_open_parent(journal: MemoryJournal, run_id: str, firsts_of: FirstsOf, backwards: Backwards) -> None:
    """Raise ParentOpen for a run whose parent still needs to know what became of it."""
    (first,) = await firsts_of([run_id])
    parent_id = parent_in(first, listed=journal.parent_of(run_id))
    if parent_id and journal.turns_of(parent_id) and ended_at_ms(await backwards(parent_id)) is None:
        raise ParentOpen(run_id, parent_id)


def readers(journal: MemoryJournal) -> tuple[FirstsOf, Backwards]:
    """What reads the turns of a store that has them at hand."""

    async def firsts_of(runs: Sequence[str]) -> Sequence[bytes]:
        return [journal.turns_of(run_id)[0] for run_id in runs]

    async def backwards(run_id: str) -> Iterable[bytes]:
        return reversed(journal.turns_of(run_id))

    return firsts_of, backwards


@asynccontextmanager
async def hold_family(
    journal: MemoryJournal, leases: Holding, run_id: str, firsts_of: FirstsOf, *, what: str
) -> AsyncIterator[tuple[str, ...]]:
    """Hold the leases of a run and of all beneath it; gives their names, the deepest first. STORE_BUSY where one is driven."""
    taken: dict[str, int] = {}
    try:
        # A run that is held begins no more children, so what is beneath those that are held is all there is.
        while new := [member for member in await _family(journal, run_id, firsts_of) if member not in taken]:
            for member in new:
                token = await leases.take(member)
                if token is None:
                    raise _driven(member, run_id, what)
                taken[member] = token
        yield tuple(reversed(taken))
    finally:
        for member, token in taken.items():
            await leases.release(member, token)


async def _family(journal: MemoryJournal, run_id: str, firsts_of: FirstsOf) -> list[str]:
    """The run and its descendants; a listed child whose first turn names another parent is left out."""
    found = [run_id] if journal.turns_of(run_id) else []
    for member in found:
        listed = [child for child in journal.children_of(member) if child not in found]
        firsts = await firsts_of(listed)
        found += [child for child, first in zip(listed, firsts, strict=True) if is_child_of(first, member)]
    return found


def collectable(journal: MemoryJournal, ended_before_ms: int) -> list[str]:
    """The runs that ended before a time and that will not be asked for."""
    entries = journal.listed()
    newest: dict[tuple[str, str], tuple[int, str]] = {}
    for entry in entries.values():
        if entry.listing.session_id:
            session, place = (entry.listing.tenant_id, entry.listing.session_id), (entry.listing.ordinal, entry.run_id)
            newest[session] = max(place, newest.get(session, place))
    needed = {run_id for _, run_id in newest.values()}
    opened = {entry.run_id for entry in entries.values() if not entry.ending}
    return [
        entry.run_id
        for entry in entries.values()
        if has_ended_before(journal, entry.run_id, ended_before_ms)
        and entry.listing.parent_id not in opened
        and needed.isdisjoint((entry.run_id, *entry.listing.lineage))
    ]


async def proven(
    journal: MemoryJournal, ended_before_ms: int, firsts_of: FirstsOf, backwards: Backwards
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The runs that may be collected by their own turns; and those of which only the list says so."""
    listed, ended, ill_listed = collectable(journal, ended_before_ms), list[str](), list[str]()
    every = journal.every_run() if listed else ()
    told = Belongings(zip(every, await firsts_of(every), strict=True))
    for run_id in listed:
        parent_id = told.parent_of(run_id, listed=journal.parent_of(run_id))
        if told.is_asked_for(run_id):
            continue
        if not is_over(await backwards(run_id), ended_before_ms):
            ill_listed.append(run_id)
        elif not journal.turns_of(parent_id) or ended_at_ms(await backwards(parent_id)) is not None:
            ended.append(run_id)
    return tuple(ended), tuple(ill_listed)


def has_ended_before(journal: MemoryJournal, run_id: str, at_ms: int) -> bool:
    """Whether a run ended before a time."""
    ended_at_ms = journal.ended_at_ms(run_id)
    return ended_at_ms is not None and ended_at_ms < at_ms


class MemoryRetention:
    """Removes runs and texts from one store."""

    def __init__(self, kept: StoredParts, leases: Driving, signer: Signer | None, now_ms: Callable[[], int]) -> None:
        self._kept = kept
        self._leases = leases
        self._signer = signer
        self._now_ms = now_ms

    async def delete(self, run_id: str) -> Removed:
        """Remove a run however it stands, the runs beneath it, and the texts that only they referred to."""
        journal = self._kept.journal
        if not journal.turns_of(run_id):
            return Removed()
        firsts_of, backwards = readers(journal)
        await refuse_open_parent(journal, run_id, firsts_of, backwards)
        async with hold_family(journal, self._leases, run_id, firsts_of, what="deleted") as runs:
            mentioned = {digest for member in runs for data in journal.turns_of(member) for digest in digests_in(data)}
            turns, entries = self._remove(runs)
        # No other process has this store open; a text that a run here may be about to refer to stays.
        until_ms = self._now_ms() - TEXT_GRACE_MS if self._leases.is_driving else self._now_ms() + 1
        unneeded = {digest for digest in mentioned if self._kept.blobs.found(digest) is not None} - self._referred()
        old = unneeded & self._kept.blobs.put_before(until_ms).keys()
        text_bytes = sum(self._kept.blobs.remove(digest) for digest in old)
        return Removed(
            runs=len(runs),
            turns=turns,
            texts=len(old),
            text_bytes=text_bytes,
            texts_spared=len(unneeded - old),
            inbox_entries=entries,
        )

    async def gc(self, *, ended_before_ms: int, dry_run: bool = False) -> Removed:
        """Remove the runs that ended before a time, texts that no turn refers to, and inbox entries long settled."""
        ended, ill_listed = await proven(self._kept.journal, ended_before_ms, *readers(self._kept.journal))
        if dry_run:
            return self._counted(ended, ill_listed)
        runs = turns = entries = 0
        for run_id in ended:
            token = await self._leases.take(run_id)
            # A caller may be writing an addendum to a run that cannot be taken; it will be as old tomorrow.
            if token is None:
                continue
            try:
                if has_ended_before(self._kept.journal, run_id, ended_before_ms):
                    removed = self._remove((run_id,))
                    runs, turns, entries = runs + 1, turns + removed[0], entries + removed[1]
            finally:
                await self._leases.release(run_id, token)
        unneeded = self._unneeded()
        for digest in unneeded:
            self._kept.blobs.remove(digest)
        entries += self._kept.inbox.remove(self._kept.inbox.settled_before(self._now_ms() - ANSWER_GRACE_MS))
        return Removed(
            runs=runs,
            turns=turns,
            texts=len(unneeded),
            text_bytes=sum(unneeded.values()),
            inbox_entries=entries,
            ill_listed=ill_listed,
        )

    def _counted(self, runs: Sequence[str], ill_listed: tuple[str, ...]) -> Removed:
        """What a collection would remove."""
        inbox = self._kept.inbox
        turns = sum(len(self._kept.journal.turns_of(run_id)) for run_id in runs)
        left = {entry.number for run_id in runs for entry in inbox.of_run(run_id)}
        settled = {entry.number for entry in inbox.settled_before(self._now_ms() - ANSWER_GRACE_MS)}
        unneeded = self._unneeded(besides=runs)
        return Removed(
            runs=len(runs),
            turns=turns,
            texts=len(unneeded),
            text_bytes=sum(unneeded.values()),
            inbox_entries=len(left | settled),
            ill_listed=ill_listed,
        )

    def _remove(self, runs: Iterable[str]) -> tuple[int, int]:
        """Remove runs, after having signed for them; gives the numbers of turns and of inbox entries."""
        kept, turns, entries = self._kept, 0, 0
        for run_id in runs:
            if self._signer is not None:
                data = kept.journal.turns_of(run_id)
                seq, head = len(data) - 1, hash_turn(data[-1])
                line = sign_deletion(self._signer, run_id=run_id, seq=seq, head=head, at_ms=self._now_ms())
                kept.journal.log.append(line)
            turns += kept.journal.remove(run_id)
            kept.snapshots.forget(run_id)
            kept.receipts.forget(run_id)
            entries += kept.inbox.remove(kept.inbox.of_run(run_id))
            kept.seals.forget(run_id)
        return turns, entries

    def _unneeded(self, besides: Iterable[str] = ()) -> Mapping[bytes, int]:
        """The texts that were put long ago and that no turn refers to, those of some runs excepted, with their sizes."""
        referred = self._referred(besides)
        old = self._kept.blobs.put_before(self._now_ms() - TEXT_GRACE_MS)
        return {digest: size_bytes for digest, size_bytes in old.items() if digest not in referred}

    def _referred(self, besides: Iterable[str] = ()) -> set[bytes]:
        journal, skipped = self._kept.journal, frozenset(besides)
        runs = (run_id for run_id in journal.every_run() if run_id not in skipped)
        return {digest for run_id in runs for data in journal.turns_of(run_id) for digest in digests_in(data)}


def _driven(run_id: str, root_id: str, what: str) -> StoreUnusable:
    which = "it" if run_id == root_id else f"run {root_id} above it"
    message = f"run {run_id} is being driven, so {which} cannot be {what}; wait until it rests, or cancel it"
    return StoreUnusable("STORE_BUSY", message, {"run_id": run_id})


class MemoryRedactions:
    """Redacts runs of one store, where it has a key: what is left of a turn is signed."""

    def __init__(self, kept: StoredParts, leases: Holding, signer: Signer | None, now_ms: Callable[[], int]) -> None:
        self._kept = kept
        self._leases = leases
        self._signer = signer
        self._now_ms = now_ms

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        """Take a text in each of its forms, or every secret of a kind, out of a run and those beneath it."""
        find, by, why = finder_of(text, kind), check_person(by), covered(why)
        if self._signer is None:
            message = (
                f"run {run_id} cannot be redacted: what is left of a turn is signed, and this store in memory has no key; "
                "open it with a signer"
            )
            raise StoreUnusable("STORE_KEY_MISSING", message, {"run_id": run_id})
        firsts_of, _ = readers(self._kept.journal)
        async with hold_family(self._kept.journal, self._leases, run_id, firsts_of, what="redacted") as runs:
            values = self._found(runs, find)
            if not values:
                return Redacted(len(runs))
            said = RedactedTurn(link=b"", data=b"", by=by, why=why, at_ms=self._now_ms(), signer="", signature=b"")
            done = [self._redact_run(member, values, said, self._signer) for member in runs]
        return Redacted(len(runs), sum(turns for turns, _ in done), sum(texts for _, texts in done))

    def _found(self, runs: Iterable[str], find: FindSecrets) -> tuple[str, ...]:
        values: dict[str, None] = {}
        for run_id in runs:
            for data in self._kept.journal.turns_of(run_id):
                values |= words_to_redact(find, data, (blob for _, blob in self._texts_of(data)))
        return longest_first(values)

    def _redact_run(self, run_id: str, values: tuple[str, ...], said: RedactedTurn, signer: Signer) -> tuple[int, int]:
        """Redact one run; gives the numbers of turns that were written anew and of texts that were removed."""
        kept, turns, removed = self._kept, 0, set[bytes]()
        for seq, data in enumerate(kept.journal.turns_of(run_id)):
            held = {digest for digest, blob in self._texts_of(data) if holds_value(blob, values)}
            for digest in held:
                kept.blobs.remove(digest)
            removed |= held
            left = without(values, data, removed, said)
            if left is not None:
                kept.journal.rewrite(run_id, seq, encode_redacted(sign_redaction(signer, run_id, seq, left)))
                turns += 1
        kept.snapshots.forget(run_id)
        kept.inbox.remove([entry for entry in kept.inbox.of_run(run_id) if holds_value(entry.data, values)])
        return turns, len(removed)

    def _texts_of(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The long texts that a turn refers to, as far as they are kept."""
        for digest in dict.fromkeys(digests_in(data)):
            if (blob := self._kept.blobs.found(digest)) is not None:
                yield digest, blob
