"""The inbox of a store over logs, whose entries the turns of runs answer.

Rule: an entry is answered by a turn of its run, or settled in the log of the inbox; never both. Before the turn is written,
the log says under which lease, and from then on only a holder of the run may settle the entry otherwise. An entry whose
turn was announced and never came is pending, and answered by the next holder.
"""

from collections.abc import Sequence

from remit.backend.folded.log import INBOX, TRIES_MAX, Left, OfInbox, Settled, Taken
from remit.backend.folded.log_copy import LogCopy
from remit.core.journal.codec import encode_record
from remit.core.journal.storage import AppendConflict, EntrySettled, InboxEntry, Place


class FoldedInbox:
    """What people left for runs, over logs."""

    def __init__(self, log_copy: LogCopy) -> None:
        self._log_copy = log_copy

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run; its number is where it stands."""
        return await self._write(run_id, Left(data))

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries after this number that are not settled."""
        await self._log_copy.refresh()
        return self._log_copy.pending(after)

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard or refused; where a turn is about to answer it, only a holder of its run can."""
        await self._log_copy.refresh()
        letter = self._log_copy.letters.get(number)
        if letter is not None and letter.outcome is None and letter.token <= token:
            await self._write(letter.run_id, Settled(number, code, message, token))
            await self._log_copy.refresh()

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        await self._log_copy.refresh()
        letter = self._log_copy.letters.get(number)
        return None if letter is None else letter.outcome

    async def take(self, run_id: str, number: int, token: int) -> None:
        """Announce that a turn answers an entry; raises EntrySettled where it is settled already."""
        for _ in range(TRIES_MAX):
            await self._log_copy.refresh()
            letter = self._log_copy.letters.get(number)
            if letter is None or letter.outcome is not None:
                raise EntrySettled(run_id, number)
            if token and letter.token == token:
                return
            try:
                place = self._log_copy.place(INBOX + run_id)
                await self._log_copy.log.append(INBOX + run_id, encode_record(Taken(number, token)), place)
            except AppendConflict:
                continue
            return
        raise AppendConflict(run_id)

    async def _write(self, run_id: str, said: OfInbox) -> Place:
        for _ in range(TRIES_MAX):
            try:
                name = INBOX + run_id
                return await self._log_copy.log.append(name, encode_record(said), self._log_copy.place(name))
            except AppendConflict:
                await self._log_copy.refresh()
        raise AppendConflict(run_id)
