"""Words that a run is due and that no worker has heeded: one that only takes words has taken them, or they were lost.

Rule 1: a word stays on the stream for a day, whoever was handed it. It was heeded where its run was taken after it.
Rule 2: a run is looked at that no process held at two looks, so that workers are handed its word first.
"""

from remit.backend.cluster.layout import DUE, token
from remit.backend.cluster.logs.leases import ClusterLeases
from remit.backend.cluster.server.link import Link
from remit.core.journal.storage import Place

# How many runs are asked about at a look, at most.
LOOKED_MAX = 100


class DueWords:
    """Looks for words that were not heeded."""

    def __init__(self, link: Link, leases: ClusterLeases) -> None:
        self._link, self._leases = link, leases
        # Where the runs stood at the last look that no process held, and those whose word was heeded.
        self._unheld: dict[str, Place] = {}
        self._heeded: dict[str, Place] = {}

    async def unheeded(self) -> list[str]:
        """The runs that are due and that no process drives, those that began first before the others."""
        before, unheld = self._unheld, await self._leases.unheld()
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
        word = await self._link.call(self._link.jet.last(DUE + token(run_id)))
        if word is None or word.seq <= self._leases.taken_at(run_id):
            return False
        return self._link.signet.is_believed(word.subject, word.data, word.headers)
