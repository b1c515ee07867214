"""Removing runs from JetStream, and taking words out of them.

Rule 1: a run is gone with one entry, which keeps what was signed of it and what it counts; only then are its messages purged.
        If a process is cut off in between, the next collection finds the entry and purges what is left. The same holds
        for a turn that is written anew.
Rule 2: a turn that is written anew is a message of its run that stands for the first, which is removed and overwritten.
Rule 3: a run is held while anything of it is removed, so its holder before can write nothing more.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from remit.backend.cluster.keys.signet import is_as_signed
from remit.backend.cluster.layout import (
    CHUNK_BYTES,
    DUE,
    SNAPSHOT,
    TEXTS,
    errands_of,
    log_subject,
    streams_told_of,
    token,
)
from remit.backend.cluster.logs.blobs import ClusterBlobs, ClusterSnapshots
from remit.backend.cluster.logs.entries import GONE, Cleared, Gone, OfRun, Rewritten, Turned
from remit.backend.cluster.logs.journal import ClusterJournal
from remit.backend.cluster.logs.leases import ClusterLeases
from remit.backend.cluster.logs.log_copy import ClusterLogCopy, told_refused, where
from remit.backend.cluster.logs.tail import from_header
from remit.backend.cluster.server.connection import STREAM_NOT_FOUND, unreachable
from remit.backend.cluster.server.link import Link, entry
from remit.backend.cluster.work.letters import ClusterInbox
from remit.backend.embedded.owner.key_file import FileKey
from remit.backend.embedded.seals import FileSeals
from remit.backend.folded.log import INBOX, RUN
from remit.backend.folded.store import FoldedHeadLog
from remit.backend.memory.retention import has_ended_before, hold_family, proven, refuse_open_parent
from remit.backend.redacted_turns import FindSecrets, finder_of, holds_value, longest_first, without, words_to_redact
from remit.core.journal.codec import decode_record, digests_in, encode_record, encode_redacted, hash_turn
from remit.core.journal.ended import ended_at_ms
from remit.core.journal.signing import SignedDeletion, sign_deletion, sign_redaction
from remit.core.journal.storage import (
    ANSWER_GRACE_MS,
    TEXT_GRACE_MS,
    Losses,
    Place,
    Redacted,
    Removed,
    SignedHead,
)
from remit.core.journal.turn import RedactedTurn
from remit.core.record import Record, digest_of, replace
from remit.core.regex import regex
from remit.core.run.person import check_person
from remit.core.secrets.secret_search import covered
from remit.wire.subjects import LOOPS_BUCKET

# Names that stand in a subject as they are, which those of runs do.
_NAME = regex(r"[A-Za-z0-9_-]+")
_BUCKET = f"$KV.{LOOPS_BUCKET}."


class Heads(Record):
    """What was signed of a run that is gone."""

    heads: tuple[SignedHead, ...]


class ClusterHeadLog(FoldedHeadLog):
    """The heads that came with turns, and what was said of runs that are gone."""

    def __init__(self, log_copy: ClusterLogCopy, link: Link) -> None:
        super().__init__(log_copy)
        self._ours = log_copy
        self._gone = log_copy.gone
        self._refused = log_copy.refused
        self._link = link

    async def heads(self, run_id: str) -> Sequence[SignedHead]:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """The heads of a run, in the order of their turns; those of one that is gone are kept with that word."""
        await self._log_copy.refresh()
        place = self._gone.get(run_id)
        if place is None:
            return await self._heads.heads(run_id)
        stored = await self._link.call(self._link.jet.at(place))
        is_kept = stored is not None and is_as_signed(stored.data, stored.headers)
        gone = decode_record(stored.data, Heads).heads if stored is not None and is_kept else ()
        later = [head for head in await self._heads.heads(run_id) if head not in gone]
        return [*gone, *later]

    async def refused(self, run_id: str) -> str:
        """What stands in the logs of a run and counts for nothing, in words."""
        await self._log_copy.refresh()
        return told_refused([one for name in (RUN, INBOX) for one in self._refused.get(log_subject(name + run_id), ())])

    async def losses(self) -> Losses:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """How heads and turns differ, and which runs are named on the servers and gone."""
        gone = await vanished(self._link, self._ours)
        lost = await super().losses()
        return replace(lost, missing=tuple(dict.fromkeys((*lost.missing, *gone))))

    async def deletion(self, run_id: str) -> SignedDeletion | None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """What was said of the deletion of a run."""
        await self._log_copy.refresh()
        return await self._heads.deletion(run_id)


class StoredParts(Protocol):
    """What a store on JetStream holds of its runs."""

    link: Link
    log_copy: ClusterLogCopy
    journal: ClusterJournal
    blobs: ClusterBlobs
    snapshots: ClusterSnapshots
    inbox: ClusterInbox
    leases: ClusterLeases
    log: ClusterHeadLog
    seals: FileSeals
    key: FileKey


class ClusterRetention:
    """Removes runs and texts."""

    def __init__(self, kept: StoredParts, now_ms: Callable[[], int]) -> None:
        self._kept = kept
        self._now_ms = now_ms

    async def delete(self, run_id: str) -> Removed:
        """Remove a run however it stands, the runs beneath it, and the texts that only they referred to."""
        self._kept.link.expect_may_remove()
        kept, journal = self._kept, self._kept.log_copy.journal
        await kept.log_copy.refresh()
        if not journal.turns_of(run_id):
            return Removed()
        await refuse_open_parent(journal, run_id, kept.journal.firsts_of, self._last_turns)
        async with hold_family(journal, kept.leases, run_id, kept.journal.firsts_of, what="deleted") as runs:
            mentioned = await self._mentioned_by(runs)
            counted = [await self._remove(member) for member in runs if journal.turns_of(member)]
        unneeded = self._spared(mentioned - await self._mentioned_by(journal.every_run()))
        is_driving = await kept.leases.is_driving()
        until_ms = self._now_ms() - TEXT_GRACE_MS if is_driving else self._now_ms() + 1
        sizes = await kept.blobs.put_before(self._now_ms() + 1, among=unneeded)
        old = await kept.blobs.put_before(until_ms, among=unneeded)
        for digest in old:
            await kept.blobs.remove(digest)
        return Removed(
            runs=len(counted),
            turns=sum(turns for turns, _ in counted),
            texts=len(old),
            text_bytes=sum(old.values()),
            texts_spared=len(sizes) - len(old),
            inbox_entries=sum(entries for _, entries in counted),
        )

    async def gc(self, *, ended_before_ms: int, dry_run: bool = False) -> Removed:
        """Remove the runs that ended before a time, texts that no turn refers to, and inbox entries long settled."""
        self._kept.link.expect_may_remove()
        kept, journal = self._kept, self._kept.log_copy.journal
        await kept.log_copy.refresh()
        ended, ill_listed = await proven(journal, ended_before_ms, kept.journal.firsts_of, self._last_turns)
        if dry_run:
            return await self._counted(ended, ill_listed)
        counted = []
        for run_id in ended:
            # A caller may be writing an addendum to a run that cannot be taken; it will be as old tomorrow.
            if (token := await kept.leases.take(run_id)) is None:
                continue
            try:
                if has_ended_before(journal, run_id, ended_before_ms):
                    counted.append(await self._remove(run_id))
            finally:
                await kept.leases.release(run_id, token)
        unneeded = await self._unneeded(journal.every_run())
        for digest in unneeded:
            await kept.blobs.remove(digest)
        settled = self._long_settled()
        await self.clear_entries(settled)
        await self._purge_leftovers()
        return Removed(
            runs=len(counted),
            turns=sum(turns for turns, _ in counted),
            texts=len(unneeded),
            text_bytes=sum(unneeded.values()),
            inbox_entries=sum(entries for _, entries in counted) + len(settled),
            ill_listed=ill_listed,
        )

    async def _last_turns(self, run_id: str) -> list[bytes]:
        """The turns of a run, the last one first, back to the one that ends it; all of them where none does."""
        found: list[bytes] = []
        for reference in reversed(self._kept.log_copy.journal.turns_of(run_id)):
            found += await self._kept.journal.resolved([reference])
            if ended_at_ms(found[-1:]) is not None:
                break
        return found

    async def clear_entries(self, numbers: Collection[int]) -> None:
        """Keep these entries of inboxes no longer."""
        kept = self._kept
        by_run: dict[str, list[int]] = {}
        long = {kept.log_copy.inbox[number].kept_as for number in numbers}
        for number in numbers:
            by_run.setdefault(kept.log_copy.inbox[number].run_id, []).append(number)
        for run_id, own in by_run.items():
            await kept.log_copy.add(INBOX + run_id, encode_record(Cleared(tuple(own))))
            for number in own:
                await kept.link.finish(kept.link.jet.remove(number))
        await kept.log_copy.refresh()
        await self.drop(long)

    async def drop(self, digests: Collection[bytes]) -> None:
        """Remove what turns and letters were kept as that were too long for a message, where no other one is."""
        log_copy = self._kept.log_copy
        needed = {letter.kept_as for letter in log_copy.inbox.values()}.union(*log_copy.texts.values())
        for digest in set(digests) - needed - {b""}:
            await self._kept.blobs.remove(digest)

    async def _remove(self, run_id: str) -> tuple[int, int]:
        """Remove a run that is held, after having signed for it; gives the numbers of turns and of inbox entries."""
        kept, log_copy = self._kept, self._kept.log_copy
        references = log_copy.journal.turns_of(run_id)
        entries = sum(one.run_id == run_id for one in log_copy.inbox.values())
        (last,) = await kept.journal.resolved(references[-1:])
        deletion = sign_deletion(
            kept.key.signer, run_id=run_id, seq=len(references) - 1, head=hash_turn(last), at_ms=self._now_ms()
        )
        heads = tuple(await kept.log.heads(run_id))
        charge = log_copy.journal.ledger.charge_of(run_id)
        gone = Gone(
            run_id,
            await kept.log.last(run_id),
            deletion,
            None if charge is None else replace(charge, is_open=False),
        )
        long = {where(reference).digest for reference in references}
        long |= {letter.kept_as for letter in log_copy.inbox.values() if letter.run_id == run_id}
        place = await kept.log_copy.add(GONE + run_id, encode_record(gone), encode_record(Heads(heads)))
        await self._purge(run_id, place)
        await self.untell(run_id)
        await _erase_errands(kept.link, run_id)
        await kept.link.finish(kept.link.jet.purge(DUE + token(run_id)))
        await self.drop(long)
        kept.seals.forget(run_id)
        return len(references), entries

    async def _purge(self, run_id: str, place: Place) -> None:
        kept = self._kept
        for log in (RUN, INBOX):
            await kept.link.finish(kept.link.jet.purge(log_subject(log + run_id), before=place))
        await kept.snapshots.forget(run_id)

    async def untell(self, run_id: str) -> None:
        """Have nothing of what the wire tells of a run stand any more, as far as it is named by the run."""
        for stream, subject in streams_told_of(run_id):
            await self._kept.link.finish(self._kept.link.jet.purge(subject, stream=stream))

    async def _purge_leftovers(self) -> None:
        """Purge what a process that was cut off left of runs that are gone, and of turns that were written anew."""
        kept = self._kept
        for run_id, place in kept.log_copy.gone.items():
            await self._purge(run_id, place)
        for place in kept.log_copy.replaced:
            await kept.link.finish(kept.link.jet.remove(place))

    async def _counted(self, runs: Sequence[str], ill_listed: tuple[str, ...]) -> Removed:
        """What a collection would remove."""
        log_copy, skipped = self._kept.log_copy, frozenset(runs)
        left = {number for number, one in log_copy.inbox.items() if one.run_id in skipped}
        unneeded = await self._unneeded([name for name in log_copy.journal.every_run() if name not in skipped])
        return Removed(
            runs=len(runs),
            turns=sum(len(log_copy.journal.turns_of(run_id)) for run_id in runs),
            texts=len(unneeded),
            text_bytes=sum(unneeded.values()),
            inbox_entries=len(left | self._long_settled()),
            ill_listed=ill_listed,
        )

    def _long_settled(self) -> set[int]:
        until_ms = self._now_ms() - ANSWER_GRACE_MS
        letters = self._kept.log_copy.inbox.items()
        return {number for number, one in letters if one.outcome is not None and one.settled_at_ms < until_ms}

    async def _unneeded(self, runs: Iterable[str]) -> dict[bytes, int]:
        """The texts that were put long ago and that no turn of these runs refers to, nor a letter, with their sizes."""
        needed = await self._mentioned_by(runs)
        needed |= {letter.kept_as for letter in self._kept.log_copy.inbox.values()}
        old = await self._kept.blobs.put_before(self._now_ms() - TEXT_GRACE_MS)
        return {digest: old[digest] for digest in self._spared(old.keys() - needed)}

    def _spared(self, unneeded: Collection[bytes]) -> set[bytes]:
        """Of texts that no turn needs that counts here, those that none of a deployment elsewhere needs either."""
        log_copy = self._kept.log_copy
        return set() if log_copy.has_foreign_unread else set(unneeded) - log_copy.foreign_texts

    async def _mentioned_by(self, runs: Iterable[str]) -> set[bytes]:
        log_copy, found = self._kept.log_copy, set[bytes]()
        for run_id in runs:
            found |= log_copy.texts.get(run_id, set())
            for data in await self._kept.journal.resolved(sorted(log_copy.unread.get(run_id, ()))):
                found |= set(digests_in(data))
        return found


class ClusterRedactions:
    """Takes words out of runs."""

    def __init__(self, kept: StoredParts, retention: ClusterRetention, now_ms: Callable[[], int]) -> None:
        self._kept = kept
        self._retention = retention
        self._now_ms = now_ms

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        """Take a text in each of its forms, or every secret of a kind, out of a run and those beneath it."""
        find, by, why = finder_of(text, kind), check_person(by), covered(why)
        kept = self._kept
        kept.link.expect_may_remove()
        await kept.log_copy.refresh()
        journal, firsts_of = kept.log_copy.journal, kept.journal.firsts_of
        async with hold_family(journal, kept.leases, run_id, firsts_of, what="redacted") as runs:
            values = await self._found(runs, find)
            if not values:
                return Redacted(len(runs))
            said = RedactedTurn(link=b"", data=b"", by=by, why=why, at_ms=self._now_ms(), signer="", signature=b"")
            done = [await self._redact_run(member, values, said) for member in runs]
        return Redacted(len(runs), sum(turns for turns, _ in done), sum(texts for _, texts in done))

    async def _found(self, runs: Iterable[str], find: FindSecrets) -> tuple[str, ...]:
        values: dict[str, None] = {}
        for run_id in runs:
            for data in await self._kept.journal.read(run_id):
                values |= words_to_redact(find, data, [blob async for _, blob in self._texts_of(data)])
        return longest_first(values)

    async def _redact_run(self, run_id: str, values: tuple[str, ...], said: RedactedTurn) -> tuple[int, int]:
        """Redact one run; gives the numbers of turns that were written anew and of texts that were removed."""
        kept, turns, removed = self._kept, 0, set[bytes]()
        for number, data in enumerate(await kept.journal.read(run_id)):
            held = {digest async for digest, blob in self._texts_of(data) if holds_value(blob, values)}
            for digest in held:
                await kept.blobs.remove(digest)
            removed |= held
            left = without(values, data, removed, said)
            if left is not None:
                signed = encode_redacted(sign_redaction(kept.key.signer, run_id, number, left))
                await self._rewrite(run_id, number, signed)
                turns += 1
        await kept.snapshots.forget(run_id)
        await self._retention.untell(run_id)
        await _erase_errands(kept.link, run_id)
        own = [number for number, one in kept.log_copy.inbox.items() if one.run_id == run_id]
        letters = await kept.inbox.entries(own)
        await self._retention.clear_entries({one.number for one in letters if holds_value(one.data, values)})
        return turns, len(removed)

    async def _rewrite(self, run_id: str, number: int, data: bytes) -> None:
        """Have these bytes stand for a turn, and the first removed."""
        kept, name = self._kept, RUN + run_id
        original = kept.log_copy.places[run_id][number]
        before = where(kept.log_copy.journal.turns_of(run_id)[number])
        message = await self._message_of(run_id, number)
        turned = replace(message[1], kept_as=b"")
        if len(data) > CHUNK_BYTES:
            turned = replace(turned, kept_as=digest_of(data))
            await kept.blobs.put(turned.kept_as, data)
            data = b""
        anew = Rewritten(number, original, turned)
        await kept.log_copy.write(entry(name, encode_record(anew), after=kept.log_copy.place(name), bulk=data))
        await kept.link.finish(kept.link.jet.remove(message[0]))
        kept.log_copy.texts[run_id].discard(before.digest)
        await self._retention.drop({before.digest})

    async def _message_of(self, run_id: str, number: int) -> tuple[Place, Turned]:
        """Where the entry of a turn stands, and what it says."""
        kept = self._kept
        place = kept.log_copy.stands_at(run_id, number)
        stored = await kept.link.call(kept.link.jet.at(place))
        assert stored is not None, f"turn {number} of run {run_id} is in the index and not in the stream"
        said = decode_record(from_header(place, stored.subject, stored.headers).data, OfRun)
        return place, said.turned if isinstance(said, Rewritten) else said

    async def _texts_of(self, data: bytes) -> AsyncIterator[tuple[bytes, bytes]]:
        """The long texts that a turn refers to, as far as they are kept."""
        for digest in dict.fromkeys(digests_in(data)):
            if (blob := await self._kept.blobs.found(digest)) is not None:
                yield digest, blob


async def vanished(link: Link, log_copy: ClusterLogCopy) -> tuple[str, ...]:
    """The runs that something on the servers names and of which no turn is left, although no word says that they were removed.

    Named are they by their place in a session, by what they count for a tenant, by the word of one who may not remove them,
    by what the wire told of them, and by their snapshots. One whose messages are there and do not count here is not gone.
    """
    told = await link.call(_told(link))
    # Whatever was named by now and is there is known by now.
    await log_copy.refresh()
    return tuple(sorted(run_id for run_id in told | log_copy.named if _is_gone(run_id, log_copy)))


def _is_gone(run_id: str, log_copy: ClusterLogCopy) -> bool:
    if log_copy.journal.turns_of(run_id) or run_id in log_copy.gone:
        return False
    return log_subject(RUN + run_id) not in log_copy.refused


async def _told(link: Link) -> set[str]:
    found = set[str]()
    for stream, prefix in ((f"KV_{LOOPS_BUCKET}", _BUCKET), (TEXTS, SNAPSHOT)):
        subjects = await _subjects(link, stream, prefix + ">")
        found |= {name for name in _names(subjects, prefix) if _NAME.fullmatch(name)}
    return found


def _names(subjects: set[str], prefix: str) -> Iterator[str]:
    return (subject.removeprefix(prefix).partition(".")[0] for subject in subjects)


async def _subjects(link: Link, stream: str, pattern: str) -> set[str]:
    """The subjects of a stream that something stands under; none of one that was never made."""
    found = set[str]()
    while True:
        question = {"subjects_filter": pattern, "offset": len(found)}
        info = await link.jet.asked(f"$JS.API.STREAM.INFO.{stream}", question)
        if (error := info.get("error")) is not None:
            if error.get("err_code") == STREAM_NOT_FOUND:
                return found
            raise unreachable(link.address, str(error.get("description")))
        page = set(info["state"].get("subjects") or {})
        if page <= found:
            return found
        found |= page


async def _erase_errands(link: Link, run_id: str) -> None:
    """Remove the errands of a run, what came of them and what came late, and overwrite what still stands there."""
    for pattern in errands_of(run_id):
        last = 0
        while (stored := await link.call(link.jet.following(pattern, last))) is not None:
            last = stored.seq
            await link.finish(link.jet.remove(last))
        await link.finish(link.jet.purge(pattern))
