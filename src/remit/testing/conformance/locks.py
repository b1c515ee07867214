"""What Locks of every backend must do within one process.

A check is a function. It opens locks of which none is held with the function it is given, uses them, and raises
AssertionError with a sentence when they do not do what is relied on. Run each of LOCKS_CHECKS against your locks, with
any test runner. That a lock dies with its process can only be seen with processes of your own.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from remit.orchestrate.ports import Locks

# Opens locks of which none is held, and lets go of them afterwards.
OpenLocks = Callable[[], AbstractContextManager[Locks]]
LocksCheck = Callable[[OpenLocks], None]

MANY_RUNS = 1_000
ODD_IDS = ("", "a", "A", "a/b", "../a", "a\x00b", "ä", "a" * 5000)


def a_run_is_taken_once(open_locks: OpenLocks) -> None:
    """Whoever comes second is told so, until the first lets go."""
    with open_locks() as locks:
        assert locks.take("run"), "a run that nobody holds cannot be taken"
        assert not locks.take("run"), "a run was taken twice"
        locks.release("run")
        assert locks.take("run"), "a run that was let go cannot be taken"


def runs_are_held_apart(open_locks: OpenLocks) -> None:
    """Holding one says nothing of any other, however alike their ids are."""
    with open_locks() as locks:
        for run_id in ODD_IDS:
            assert locks.take(run_id), f"run {run_id[:20]!r} is held by nobody and cannot be taken"
        locks.release("a")
        held = [run_id for run_id in ODD_IDS if not locks.take(run_id)]
        assert held == [run_id for run_id in ODD_IDS if run_id != "a"], f"after one was let go, {held} are held"


def a_run_may_be_let_go_without_being_held(open_locks: OpenLocks) -> None:
    """Letting go twice, or of what was never taken, is no error."""
    with open_locks() as locks:
        locks.release("run")
        assert locks.take("run"), "a run that nobody holds cannot be taken"
        locks.release("run")
        locks.release("run")


def many_runs_may_be_held(open_locks: OpenLocks) -> None:
    """One process drives many runs."""
    with open_locks() as locks:
        taken = sum(locks.take(f"run{number}") for number in range(MANY_RUNS))
        assert taken == MANY_RUNS, f"of {MANY_RUNS} runs that nobody holds, {taken} could be taken"


LOCKS_CHECKS: Sequence[LocksCheck] = (
    a_run_is_taken_once,
    runs_are_held_apart,
    a_run_may_be_let_go_without_being_held,
    many_runs_may_be_held,
)
