"""The history of a run: its stored bytes read as turns, each linked to the one before, and folded.

Rule 1: a turn is taken only where it follows: the next number, and the hash of the bytes before it.
Rule 2: nothing is folded before every link holds: a turn is vouched for by the one that follows it.
Rule 3: reading never writes.
"""

from collections.abc import Iterable, Iterator

from remit.core.failure import InvariantBroken
from remit.core.journal.codec import NO_HASH, decode_turn, hash_turn, redacted_in
from remit.core.journal.signing import is_redaction_signed
from remit.core.journal.turn import Turn
from remit.core.record import BlobRef, Record
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState

JOURNAL_CHAIN_BROKEN = "JOURNAL_CHAIN_BROKEN"


class Linked(Record):
    """A turn and the hash of its bytes, which the next turn carries."""

    turn: Turn
    link: bytes


class History(Record):
    """The turns of a run from the first one on, every link of which holds."""

    run_id: str
    steps: tuple[Linked, ...]

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns alone."""
        return tuple(step.turn for step in self.steps)

    @property
    def head(self) -> bytes:
        """The hash of the last turn; nothing before the first."""
        return self.steps[-1].link if self.steps else NO_HASH


def linked_turns(run_id: str, data: Iterable[bytes], *, after: int = -1, head: bytes = NO_HASH) -> list[Linked]:
    """The turns in these bytes, which follow turn number `after` with this hash; raises InvariantBroken if they do not."""
    steps: list[Linked] = []
    for stored in data:
        turn = decode_turn(stored)
        if turn.seq != after + 1 or turn.previous != head:
            message = f"turn {turn.seq} of run {run_id} does not follow turn {after}"
            raise InvariantBroken(JOURNAL_CHAIN_BROKEN, message)
        redacted = redacted_in(stored)
        if redacted is not None and not is_redaction_signed(run_id, turn.seq, redacted):
            message = f"turn {turn.seq} of run {run_id} was redacted, and no signature says so"
            raise InvariantBroken(JOURNAL_CHAIN_BROKEN, message)
        after, head = turn.seq, hash_turn(stored)
        steps.append(Linked(turn, head))
    return steps


def read_history(run_id: str, data: Iterable[bytes]) -> History:
    """The history in these bytes; raises InvariantBroken where they are no history."""
    return History(run_id, tuple(linked_turns(run_id, data)))


def fold(history: History) -> RunState:
    """The state the run has come to."""
    state = RunState()
    for step in history.steps:
        apply(state, step.turn, step.link)
    return state


def states(history: History) -> Iterator[tuple[Turn, RunState]]:
    """Each turn with the state after it. It is one state that goes on changing; copy what must last."""
    state = RunState()
    for step in history.steps:
        apply(state, step.turn, step.link)
        yield step.turn, state


def references(value: object) -> Iterator[BlobRef]:
    """Every long text that a turn, or any part of one, names by its digest."""
    if isinstance(value, BlobRef):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from references(part)
    elif isinstance(value, Record):
        for field in value.__struct_fields__:
            yield from references(getattr(value, field))
