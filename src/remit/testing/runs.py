"""A finished run as tests look at it: its turns, its state, and the last or all of a kind of record."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from remit.core.failure import Ending
from remit.core.journal.codec import decode_turn, hash_turn
from remit.core.journal.turn import Turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState

K = TypeVar("K")


class LawBroken(AssertionError):
    """A run did what no run may do. The message says how to see it again."""

    def __init__(self, law: str, seed: int, run_id: str, what: str) -> None:
        super().__init__(f"law {law} is broken: {what} (run {run_id}; repeat it with seed {seed})")
        self.law = law
        self.seed = seed


class SimulatedRun:
    """One run of a simulated world, read from its journal."""

    def __init__(self, run_id: str, journal: Sequence[bytes]) -> None:
        self.run_id = run_id
        self.journal = tuple(journal)
        self.turns: tuple[Turn, ...] = tuple(decode_turn(data) for data in self.journal)
        self.state = fold_journal(self.journal)

    @property
    def ending(self) -> Ending | None:
        """How the run ended, or None while it is open."""
        return self.state.end.ending

    def all(self, kind: type[K]) -> list[K]:
        """Every arrival and decision of a kind, oldest first."""
        return [record for record in self._records() if isinstance(record, kind)]

    def last(self, kind: type[K]) -> K:
        """The latest arrival or decision of a kind; an AssertionError when there is none."""
        found = self.all(kind)
        assert found, f"run {self.run_id} has no {kind.__name__}"
        return found[-1]

    def _records(self) -> Iterator[object]:
        for turn in self.turns:
            yield turn.arrival
            yield from turn.decisions


def fold_journal(journal: Sequence[bytes]) -> RunState:
    """The state that the turns of a journal add up to."""
    state = RunState()
    for data in journal:
        apply(state, decode_turn(data), hash_turn(data))
    return state
