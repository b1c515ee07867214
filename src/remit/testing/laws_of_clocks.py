"""Laws of clocks: a run has the time it was given, and the time in which a person was waited for, by it or beneath it.

Rule 1: who waited, and when, is read in the journal of whoever waited; what a child told its parent is not believed.
Rule 2: of a child that was lost, or that is another run's, nobody knows how long it waited: it counts from the moment it was
        known to until then.
"""

from collections.abc import Iterator

from remit.core.journal.arrivals import ChildEnded
from remit.core.journal.commands import COMMANDS, StartChild
from remit.core.journal.rulings import ChildReleased
from remit.testing.books import HARMLESS, Waits, first_deadline_of
from remit.testing.runs import SimulatedRun
from remit.testing.world import SimulatedWorld

# From one moment to another.
Span = tuple[int, int]

# Later than any turn.
_NEVER_MS = 2**62


def no_clock_stands_for_work(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A run orders nothing once its time is up, and its clock stands only while a person is waited for in its tree."""
    if world.faults.clock_jump:
        return  # Runs of one tree may then disagree about what came first.
    waits = [*_waits_in(world, run), *_lost_in(world, run)]
    deadline = first_deadline_of(run)
    for turn in run.turns:
        ordered = [c for c in turn.decisions if type(c) in COMMANDS and not isinstance(c, HARMLESS)]
        if ordered and (late_ms := turn.at_ms - covered_ms(waits, turn.at_ms) - deadline) >= 0:
            yield f"turn {turn.seq} orders {type(ordered[0]).__name__} after {late_ms} ms too many of work"


def covered_ms(spans: list[Span], until_ms: int) -> int:
    """How much of the time until a moment lies in these spans, counted once where they overlap."""
    covered, reached = 0, 0
    for begin, end in sorted(spans):
        covered += max(min(end, until_ms) - max(begin, reached), 0)
        reached = max(reached, min(end, until_ms))
    return covered


def _waits_in(world: SimulatedWorld, run: SimulatedRun) -> Iterator[Span]:
    """When a run, or any run beneath it, waited for a person itself."""
    waits, since_ms = Waits(), -1
    for turn in run.turns:
        waits.enter(turn)
        if waits.is_own and since_ms < 0:
            since_ms = turn.at_ms
        elif since_ms >= 0 and not waits.is_own:
            yield since_ms, turn.at_ms
            since_ms = -1
    if since_ms >= 0:
        yield since_ms, _NEVER_MS
    for child in run.all(StartChild):
        if child.run_id in world.run_ids():
            yield from _waits_in(world, world.run(child.run_id))


def _lost_in(world: SimulatedWorld, run: SimulatedRun) -> Iterator[Span]:
    """When children were known to wait of which nobody can say how long they did."""
    ended = {arrival.command_id for arrival in run.all(ChildEnded)}
    known = {c.id for c in run.all(StartChild) if c.id in ended and c.run_id in world.run_ids()}
    waits, since_ms = Waits(), dict[str, int]()
    for turn in run.turns:
        before = set(waits.held)
        waits.enter(turn)
        since_ms |= dict.fromkeys(waits.held - before, turn.at_ms)
        released = {decision.command_id for decision in turn.decisions if isinstance(decision, ChildReleased)}
        yield from ((since_ms.pop(command_id), turn.at_ms) for command_id in before - waits.held - (known - released))
    yield from ((begin, _NEVER_MS) for command_id, begin in since_ms.items() if command_id in waits.held)
