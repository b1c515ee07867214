"""A check-up of a store in memory: what it holds, and whether its log and its journals know the same turns."""

from collections.abc import Awaitable, Callable, Sequence

from remit.backend.memory.journal import MemoryJournal
from remit.core.journal.signing import Signer
from remit.core.journal.storage import STORE_BEHIND_ITS_LOG, Losses
from remit.observe.checkup import Check, CheckState

# So many runs are named.
_SHOWN_MAX = 5


class MemoryCheckup:
    """Looks at one store; `kept` and `lasts` say where its runs are and for how long."""

    def __init__(
        self,
        journal: MemoryJournal,
        signer: Signer | None,
        *,
        kept: str = "in memory",
        lasts: str = "it ends with its process",
        losses: Callable[[], Awaitable[Losses]] | None = None,
        way_out: str = "nothing in memory can be put back: end the process, and begin these runs anew",
    ) -> None:
        self._losses, self._way_out = losses, way_out
        self._journal = journal
        self._signer = signer
        self._kept = kept
        self._lasts = lasts

    async def look(self) -> Sequence[Check]:
        """How the store is."""
        return self._contents(), await self._log(), self._key()

    def _contents(self) -> Check:
        opened = [entry for entry in self._journal.listed().values() if not entry.ending]
        waiting = sum(bool(entry.waiting_for) for entry in opened)
        runs = len(self._journal.every_run())
        seen = f"{self._kept}: {runs} runs, {len(opened)} open, {waiting} wait for a person; {self._lasts}"
        return Check("store", CheckState.OK, seen)

    async def _log(self) -> Check:
        lost = await (self._losses or self._journal.log.losses)()
        if lost.behind or lost.missing:
            seen = f"{len(lost.behind)} runs lack turns that were signed, {len(lost.missing)} are gone and were not deleted"
            if lost.missing:
                seen = f"{seen}: {', '.join(lost.missing[:_SHOWN_MAX])}{' …' if len(lost.missing) > _SHOWN_MAX else ''}"
            return Check("store.log", CheckState.PROBLEM, seen, self._way_out, STORE_BEHIND_ITS_LOG)
        return Check("store.log", CheckState.OK, "the log of heads and the journals know the same turns")

    def _key(self) -> Check:
        if self._signer is None:
            return Check("store.key", CheckState.MISSING, "none: nothing is signed", "open the store with a signer")
        return Check("store.key", CheckState.OK, self._signer.did)
