"""Slots: which conversation each slot of a loaded model remembers, so that the next exchange reads only what is new.

Rule 1: a slot has one call at a time; whoever takes one gives it back.
Rule 2: a conversation goes on in the slot that remembers it, if that is free. Another takes the one that was used longest
        ago: the server would rather take the slot of a conversation that begins with the same instructions.
Rule 3: what is remembered here only guides the choice; a wrong choice costs time, never an answer.
"""

from collections.abc import Sequence
from itertools import takewhile
from threading import Lock

from remit.core.record import JsonObject

# All conversations of a program may begin with the same instructions; the second message tells them apart.
SHARED_MIN = 2


class Slots:
    """The slots of one model; as many threads as there are slots take them."""

    def __init__(self, count: int) -> None:
        self._lock = Lock()
        # Of the free ones, the one that was used longest ago comes first.
        self._free: dict[int, Sequence[JsonObject]] = dict.fromkeys(range(count), ())

    def take(self, turns: Sequence[JsonObject]) -> int:
        """The best free slot for a conversation."""
        with self._lock:
            assert self._free, "there are as many slots as threads that take them"
            shared, slot = max((_shared(turns, kept), slot) for slot, kept in self._free.items())
            if shared < SHARED_MIN:
                slot = next(iter(self._free))
            del self._free[slot]
            return slot

    def give_back(self, slot: int, turns: Sequence[JsonObject]) -> None:
        """The slot is free again, and remembers the conversation."""
        with self._lock:
            self._free[slot] = turns


def _shared(turns: Sequence[JsonObject], kept: Sequence[JsonObject]) -> int:
    """With how many equal messages two conversations begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(turns, kept, strict=False)))
