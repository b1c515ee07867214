"""Inboxes over logs.

Rule 1: an entry is answered by a turn of its run, or settled in the log of the inbox; never both. Before the turn is written,
        the log says under which lease, and from then on only a holder of the run may settle the entry otherwise.
Rule 2: an entry whose turn was announced and never came is pending, and answered by the next holder.
"""

from collections.abc import Sequence

from remit.backend.folded.log import INBOX, TRIES_MAX, Left, OfInbox, Settled, Taken
from remit.backend.folded.replica import Replica
from remit.core.journal.codec import encode_record
from remit.core.journal.storage import AppendConflict, EntrySettled, InboxEntry, Place


class FoldedInbox:
    """What people left for runs, over logs."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run; its number is where it stands."""
        return await self._write(run_id, Left(data))

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries after this number that nobody has settled."""
        await self._replica.refresh()
        return self._replica.pending(after)

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard or refused; where a turn is about to answer it, only a holder of its run can."""
        await self._replica.refresh()
        letter = self._replica.letters.get(number)
        if letter is not None and letter.outcome is None and letter.token <= token:
            await self._write(letter.run_id, Settled(number, code, message, token))
            await self._replica.refresh()

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        await self._replica.refresh()
        letter = self._replica.letters.get(number)
        return None if letter is None else letter.outcome

    async def take(self, run_id: str, number: int, token: int) -> None:
        """Announce that a turn answers an entry; raises EntrySettled where it is settled already."""
        for _ in range(TRIES_MAX):
            await self._replica.refresh()
            letter = self._replica.letters.get(number)
            if letter is None or letter.outcome is not None:
                raise EntrySettled(run_id, number)
            if token and letter.token == token:
                return
            try:
                place = self._replica.place(INBOX + run_id)
                await self._replica.log.append(INBOX + run_id, encode_record(Taken(number, token)), place)
            except AppendConflict:
                continue
            return
        raise AppendConflict(run_id)

    async def _write(self, run_id: str, said: OfInbox) -> Place:
        for _ in range(TRIES_MAX):
            try:
                name = INBOX + run_id
                return await self._replica.log.append(name, encode_record(said), self._replica.place(name))
            except AppendConflict:
                await self._replica.refresh()
        raise AppendConflict(run_id)
