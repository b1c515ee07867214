"""The log of signed heads and signed deletions in memory."""

from collections.abc import Mapping, Sequence
from operator import attrgetter

from remit.core.journal.signing import SignedDeletion, is_deletion_signed, is_head_signed
from remit.core.journal.storage import Losses, SignedHead
from remit.core.run.halt import HALTS


class MemoryHeadLog:
    """Keeps heads and deletions until the process ends; `runs` are the turns that there are."""

    def __init__(self, runs: Mapping[str, Sequence[bytes]]) -> None:
        self._runs = runs
        self._heads: dict[str, list[SignedHead]] = {}
        self._deletions: dict[str, SignedDeletion] = {}

    def append(self, entry: SignedHead | SignedDeletion) -> None:
        """Keep a signed head."""
        if isinstance(entry, SignedHead):
            self._heads.setdefault(entry.run_id, []).append(entry)
        else:
            self._deletions[entry.run_id] = entry

    async def last(self, run_id: str) -> SignedHead | None:
        """The head of the highest turn of a run that its signer signed."""
        return self._last(run_id)

    async def doubt(self, run_id: str, last: int) -> str:
        """Why the log may have known of a later turn: a head in it that says how far the run got is not as it was signed."""
        heads = self._heads.get(run_id, [])
        suspects = (*heads[-1:], *(() if not heads else (max(heads, key=attrgetter("seq")),)))
        altered = (head for head in suspects if not is_head_signed(head))
        return next((f"the head of turn {head.seq} of it in the log is not as it was signed" for head in altered), "")

    async def losses(self) -> Losses:
        """How the log and the journals differ."""
        stands = {run_id: len(turns) - 1 for run_id, turns in self._runs.items() if turns}
        signed = {run_id: head.seq for run_id in self._heads if (head := self._last(run_id)) is not None}
        # The journal of halts is no run.
        signed.pop(HALTS, None)
        behind = tuple(run_id for run_id, seq in signed.items() if run_id in stands and seq > stands[run_id])
        gone = (run_id for run_id in signed if run_id not in stands)
        return Losses(behind, tuple(run_id for run_id in gone if not self._was_deleted(run_id)))

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads of a run, in the order of their turns."""
        return sorted(self._heads.get(run_id, ()), key=attrgetter("seq"))

    async def deletion(self, run_id: str) -> SignedDeletion | None:
        """What the log says of the deletion of a run."""
        return self._deletions.get(run_id)

    def _last(self, run_id: str) -> SignedHead | None:
        # Of two heads of one turn the later one counts, as in a log on a disk.
        in_order = sorted(self._heads.get(run_id, ()), key=attrgetter("seq"))
        return next((head for head in reversed(in_order) if is_head_signed(head)), None)

    def _was_deleted(self, run_id: str) -> bool:
        deletion = self._deletions.get(run_id)
        return deletion is not None and is_deletion_signed(deletion)
