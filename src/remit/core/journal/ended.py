"""Whether turns end a run: whatever removes a run for good asks them, not a list that was made from them."""

from collections.abc import Iterable

from remit.core.failure import InvariantBroken
from remit.core.journal.codec import decode_turn
from remit.core.journal.rulings import RunEnded


def ended_at_ms(backwards: Iterable[bytes]) -> int | None:
    """When a run ended by its turns, the last one first; None where they do not end it, or cannot be read to their end."""
    for data in backwards:
        try:
            turn = decode_turn(data)
        except InvariantBroken:
            return None
        # What came after the end is an addendum, and ends nothing itself.
        if any(isinstance(decision, RunEnded) for decision in turn.decisions):
            return turn.at_ms
    return None


def is_over(backwards: Iterable[bytes], before_ms: int) -> bool:
    """Whether a run ended before a time, by its turns."""
    at_ms = ended_at_ms(backwards)
    return at_ms is not None and at_ms < before_ms
