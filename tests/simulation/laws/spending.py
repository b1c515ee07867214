"""Laws of spending: caps, gauges, leases, and the time that a run has beside the time in which it waited for a person.

Rule 1: who waited, and when, is read in the journal of the run that waited; what a child told its parent is not believed.
Rule 2: how long a child waited that was lost, or that is another run's, is unknown: it counts from the moment it was known to
        wait until then.
"""

from collections.abc import Iterator

from remit.core.journal import rulings
from remit.core.journal.arrivals import ChildEnded
from remit.core.journal.commands import COMMANDS, CallModel, StartChild
from remit.core.journal.rulings import ChildReleased
from remit.core.limits.budget import COUNTERS, FIELDS, Dimension
from remit.kernel.state import pinned
from remit.testing.runs import SimulatedRun
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.books import HARMLESS, Books, Waits, commands_of, deadlines_of, first_deadline_of

# From one moment to another.
Span = tuple[int, int]

# Later than any turn.
_NEVER_MS = 2**62


def no_budget_is_overshot(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """No counter ever holds more, spent and reserved together, than was assigned and released by people."""
    caps, books = list(pinned(run.state).caps), Books(pinned(run.state).graph)
    for turn in run.turns:
        for decision in turn.decisions:
            if isinstance(decision, rulings.UsageExceeded):
                return  # The world used more than it was allowed; that is charged, and stops the run.
            is_approved = isinstance(decision, rulings.QuestionSettled) and decision.answer is rulings.Answer.APPROVED
            if is_approved or isinstance(decision, rulings.CallNoted):
                for dimension, amount in decision.releases:  # type: ignore[union-attr]  # both kinds release
                    caps[dimension] += amount
            books.enter(decision)
        for dimension in COUNTERS:
            if books.held(dimension) > caps[dimension]:
                yield f"turn {turn.seq} holds {books.held(dimension)} {FIELDS[dimension]} of {caps[dimension]}"


def no_gauge_is_exceeded(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Context, retries and depth stay within their caps with every command."""
    caps = pinned(run.state).caps
    for turn, command in commands_of(run):
        if isinstance(command, CallModel):
            shown = dict(command.reserved).get(Dimension.INPUT_TOKENS, 0)
            if shown > caps[Dimension.CONTEXT_TOKENS]:
                yield f"turn {turn.seq} shows the model {shown} tokens of {caps[Dimension.CONTEXT_TOKENS]}"
            if command.attempt - 1 > caps[Dimension.RETRIES]:
                yield f"turn {turn.seq} is attempt {command.attempt} with {caps[Dimension.RETRIES]} retries"
        if isinstance(command, StartChild) and command.depth > max(caps[Dimension.DEPTH], pinned(run.state).depth):
            yield f"turn {turn.seq} starts a child at depth {command.depth} of {caps[Dimension.DEPTH]}"


def nothing_is_ordered_when_time_is_up(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """After the deadline, which stands still while people are waited for, a run orders nothing but to stop."""
    for turn, deadline in deadlines_of(run):
        ordered = [c for c in turn.decisions if type(c) in COMMANDS and not isinstance(c, HARMLESS)]
        if ordered and turn.at_ms >= deadline:
            yield f"turn {turn.seq} at {turn.at_ms} orders {type(ordered[0]).__name__} after the deadline {deadline}"


def leases_hold(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A child is given exactly its lease, and what it reports is what it used."""
    for turn, command in commands_of(run):
        if not isinstance(command, StartChild) or command.run_id not in world.run_ids():
            continue
        given = pinned(world.run(command.run_id).state).caps
        for dimension in COUNTERS:
            if given[dimension] != dict(command.lease).get(int(dimension), 0):
                yield f"turn {turn.seq} leases {command.lease} and the child has {given[dimension]} {FIELDS[dimension]}"


def children_inherit_the_deadline(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A child's deadline is its parent's, as it stands when the child is started, or sooner where its node says so."""
    timeouts = {node.name: node.timeout_ms for node in pinned(run.state).graph.nodes if node.timeout_ms}
    for turn, deadline in deadlines_of(run):
        for command in turn.decisions:
            if not isinstance(command, StartChild):
                continue
            expected = min(deadline, turn.at_ms + timeouts.get(command.node, deadline))
            if command.deadline_at_ms != expected:
                yield f"turn {turn.seq} gives a child the deadline {command.deadline_at_ms} in place of {expected}"


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
    """When children were known to wait of which it is unknown how long they did."""
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
