"""Guarding agents that run elsewhere, in memory: for programs in Python that want neither an event loop nor a store.

Rule 1: every conversation is a run all the same, and forgotten as it ends.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from remit.assemble import new_run_id
from remit.backend.clock import WallClock
from remit.backend.memory.store import MemoryStore
from remit.core.declared_arguments import checks_arguments
from remit.core.failure import InvariantBroken
from remit.core.record import JsonObject
from remit.core.run.halt import NOTHING_HALTED, HaltStanding
from remit.orchestrate.guard.guard import Guard
from remit.orchestrate.guard.guard_parts import GuardParts
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.run_leases import RunLeases
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.ports import Clock

T = TypeVar("T")


def guard_in_memory(halts: Callable[[], HaltStanding] = lambda: NOTHING_HALTED, clock: Clock | None = None) -> Guard:
    """Judges the calls of agents that run elsewhere and never waits; `halts` says what is halted."""
    store, clock = MemoryStore(), clock or WallClock()
    runner = Runner(journal=store.journal, blobs=store.blobs, clock=clock, dispatch=InProcessDispatch({}, clock))
    run_leases = RunLeases(store.leases, lambda run_id: None)
    return Guard(GuardParts(runner, run_leases, new_run_id, halts, forget=store.retention.delete))


@checks_arguments("operation")
class GuardInMemory:
    """A guard in memory for programs without an event loop. It is used from one thread at a time."""

    def __init__(self, halts: Callable[[], HaltStanding] = lambda: NOTHING_HALTED, clock: Clock | None = None) -> None:
        self._guard = guard_in_memory(halts, clock)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are open, as their hosts name them."""
        return self._guard.runs

    def answer(self, operation: JsonObject) -> JsonObject | None:
        """The answer to one operation of the protocol; None where it has none."""
        return at_once(self._guard.answer(operation))

    def line(self, data: bytes) -> JsonObject | None:
        """The answer to one line of the protocol; None where it has none."""
        return at_once(self._guard.line(data))

    def too_long(self, beginning: bytes) -> JsonObject:
        """The answer to a line that is too long to be read."""
        return at_once(self._guard.too_long(beginning))


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing and give its result; one that waits all the same is a bug."""
    try:
        work.send(None)
    except StopIteration as done:
        given: T = done.value
        return given
    work.close()
    raise InvariantBroken("GUARD_WAITED", "a ground in memory made the guard wait; use the guard in an event loop")
