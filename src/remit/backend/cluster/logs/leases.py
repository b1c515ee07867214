"""Who drives which run. A lease is the last mark on the subject of the run; it lasts as long as its process is heard of.

Rule 1: taking a run appends a mark behind everything that was written to it, so whatever a holder before it writes is too late.
Rule 2: a run that is due is driven although the word that says so was taken, or lost: whether a process has heeded it, the mark
        behind it tells.
Rule 3: the server says whether a process is alive: its heartbeat is there, or has expired. No clock of a process counts.
"""

from remit.backend.cluster.layout import DUE, token
from remit.backend.cluster.logs.entries import Mark
from remit.backend.cluster.logs.log_copy import ClusterLogCopy
from remit.backend.cluster.server.link import Link, entry
from remit.backend.folded.log import RUN, TRIES_MAX
from remit.core.journal.codec import encode_record
from remit.core.journal.storage import AppendConflict, Place

# About how many runs it is asked at a look whether they are due, at most.
LOOKED_MAX = 100


class ClusterLeases:
    """Leases of one process."""

    def __init__(self, link: Link, log_copy: ClusterLogCopy) -> None:
        self._link = link
        self._log_copy = log_copy
        self.lasts_ms = link.lease_ms
        # Where the runs stood at the last look that no process held, and those among them that are not due.
        self._unheld: dict[str, Place] = {}
        self._heeded: dict[str, Place] = {}

    async def take(self, run_id: str) -> int | None:
        """Take a run; its token is the place of the mark. None where a process that is alive holds it."""
        for _ in range(TRIES_MAX):
            if await self.is_held(run_id):
                return None
            try:
                return await self._mark(run_id, self._link.worker)
            except AppendConflict:
                continue
        return None

    async def renew(self, run_id: str, token: int) -> bool:
        """Whether the run is still held under this token; the heartbeat of the process is what holds it."""
        await self._log_copy.refresh()
        return token > 0 and self._log_copy.held_under(run_id) == token

    async def release(self, run_id: str, token: int) -> None:
        """Let a run go, where it is held under this token."""
        while await self.renew(run_id, token):
            try:
                await self._mark(run_id, "")
            except AppendConflict:
                continue  # A turn of its own was under way.
            return

    async def is_held(self, run_id: str) -> bool:
        """Whether a process that is alive holds a run."""
        await self._log_copy.refresh()
        worker, _ = self._log_copy.holders.get(run_id, ("", 0))
        if not worker:
            return False
        return worker == self._link.worker or await self._link.is_alive(worker)

    async def is_there(self, run_id: str) -> bool:
        """Whether a run has turns, and was not removed."""
        await self._log_copy.refresh()
        return bool(self._log_copy.journal.turns_of(run_id))

    async def is_gone(self, run_id: str) -> bool:
        """Whether a run was deleted."""
        await self._log_copy.refresh()
        return run_id in self._log_copy.gone and not self._log_copy.journal.turns_of(run_id)

    async def orphans(self) -> list[str]:
        """The runs that a process holds which is gone, those that were taken first before the others."""
        await self._log_copy.refresh()
        held = sorted(self._log_copy.holders.items(), key=lambda one: one[1][1])
        workers = {worker for _, (worker, _) in held if worker != self._link.worker}
        gone = {worker for worker in workers if not await self._link.is_alive(worker)}
        return [run_id for run_id, (worker, _) in held if worker in gone]

    async def unheld(self) -> dict[str, Place]:
        """The open runs that no process holds and that wait for nothing that is not there, with where each stands."""
        await self._log_copy.refresh()
        answered = {letter.run_id for letter in self._log_copy.inbox.values() if letter.outcome is None}
        return {
            run_id: self._log_copy.place(RUN + run_id)
            for run_id, entry in self._log_copy.journal.listed().items()
            if not entry.ending
            and run_id not in self._log_copy.holders
            and (not entry.waiting_for or run_id in answered)
        }

    async def unheeded(self) -> list[str]:
        """The runs that are due and that no process drives, those that began first before the others.

        A run is looked at that no process held at two looks: workers are handed its word first.
        """
        before, unheld = self._unheld, await self.unheld()
        self._unheld = unheld
        self._heeded = {run_id: place for run_id, place in self._heeded.items() if unheld.get(run_id) == place}
        still = [run_id for run_id, place in unheld.items() if before.get(run_id) == place]
        found = list[str]()
        for run_id in [run_id for run_id in still if run_id not in self._heeded][:LOOKED_MAX]:
            if await self._is_unheeded(run_id):
                found.append(run_id)
            else:
                self._heeded[run_id] = unheld[run_id]
        return found

    async def _is_unheeded(self, run_id: str) -> bool:
        """Whether it was said that a run is due, and it was taken by no process since: that word stays for a day."""
        word = await self._link.call(self._link.jet.last(DUE + token(run_id)))
        if word is None or word.seq <= self._log_copy.taken.get(run_id, 0):
            return False
        return self._link.signet.is_believed(word.subject, word.data, word.headers)

    async def is_driving(self) -> bool:
        """Whether any run is held."""
        await self._log_copy.refresh()
        workers = {worker for worker, _ in self._log_copy.holders.values() if worker}
        return self._link.worker in workers or any([await self._link.is_alive(worker) for worker in workers])

    async def _mark(self, run_id: str, worker: str) -> int:
        name = RUN + run_id
        return await self._log_copy.write(entry(name, encode_record(Mark(worker)), after=self._log_copy.place(name)))
