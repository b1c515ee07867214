"""What turns say of a run that may be removed: whatever removes a run for good asks them, not a list that was made from them.

Rule 1: a run that turns or the list say will be asked for stays. What the turns say of it cannot be read where its first one
        is damaged; then the list alone counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_turn, readable_turn
from remit.core.journal.rulings import RunEnded
from remit.core.run.manifest import lineage_of


class Belonging(NamedTuple):
    """Where a run belongs by its first turn: the run that started it, those that it came from, and its place in a session."""

    parent_id: str = ""
    lineage: tuple[str, ...] = ()
    # Tenant and name; none where the run has no place in a session.
    session: tuple[str, str] | None = None
    ordinal: int = 0


def _end(backwards: Iterable[bytes]) -> tuple[int, str] | None:
    """When and how a run ended by its turns, the last one first."""
    for data in backwards:
        try:
            turn = decode_turn(data)
        except InvariantBroken:
            return None
        # What came after the end is an addendum, and ends nothing itself.
        if ends := [decision for decision in turn.decisions if isinstance(decision, RunEnded)]:
            return turn.at_ms, ends[0].ending.value
    return None


def ended_at_ms(backwards: Iterable[bytes]) -> int | None:
    """When a run ended by its turns, the last one first; None where they do not end it, or cannot be read to their end."""
    found = _end(backwards)
    return None if found is None else found[0]


def ending_of(backwards: Iterable[bytes]) -> str:
    """How a run ended by its turns, the last one first; empty where they do not end it, or cannot be read to their end."""
    found = _end(backwards)
    return "" if found is None else found[1]


def is_over(backwards: Iterable[bytes], before_ms: int) -> bool:
    """Whether a run ended before a time, by its turns."""
    at_ms = ended_at_ms(backwards)
    return at_ms is not None and at_ms < before_ms


def belonging_of(first: bytes) -> Belonging | None:
    """Where a run belongs by its first turn; None where that cannot be read."""
    turn = readable_turn(first)
    if turn is None or not isinstance(turn.arrival, RunStarted):
        return None
    manifest = turn.arrival.manifest
    parent_id = "" if manifest.parent is None else manifest.parent.run_id
    if manifest.session is None:
        return Belonging(parent_id, lineage_of(manifest))
    session = (manifest.request.tenant_id, manifest.request.session_id)
    return Belonging(parent_id, lineage_of(manifest), session, manifest.session.ordinal)


class Belongings:
    """Where the runs of a store belong, by their first turns."""

    def __init__(self, firsts: Iterable[tuple[str, bytes]]) -> None:
        told = ((run_id, belonging_of(first)) for run_id, first in firsts)
        self._known = {run_id: own for run_id, own in told if own is not None}
        newest: dict[tuple[str, str], tuple[int, str]] = {}
        for run_id, own in self._known.items():
            if own.session is not None:
                newest[own.session] = max((own.ordinal, run_id), newest.get(own.session, (-1, "")))
        self._newest = {run_id for _, run_id in newest.values()}

    def is_asked_for(self, run_id: str) -> bool:
        """Whether a run is the newest of its session, or came from one that is."""
        own = self._known.get(run_id, Belonging())
        return not self._newest.isdisjoint((run_id, *own.lineage))

    def parent_of(self, run_id: str, listed: str) -> str:
        """The run that started one; what the list says where its own turn cannot be read."""
        own = self._known.get(run_id)
        return listed if own is None else own.parent_id


def is_child_of(first: bytes, parent_id: str) -> bool:
    """Whether a run that is listed beneath another is so by its first turn, or that cannot be read."""
    own = belonging_of(first)
    return own is None or own.parent_id == parent_id


def parent_in(first: bytes, listed: str) -> str:
    """The run that started one by its first turn; what the list says where that cannot be read."""
    own = belonging_of(first)
    return listed if own is None else own.parent_id
