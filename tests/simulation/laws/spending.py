"""Laws of spending: caps, gauges, leases and the clock."""

from collections.abc import Iterator

from remit.core.journal import rulings
from remit.core.journal.commands import COMMANDS, CallModel, StartChild
from remit.core.limits.budget import COUNTERS, FIELDS, Dimension
from remit.kernel.state import pinned
from remit.testing.books import HARMLESS, Books, commands_of, deadlines_of
from remit.testing.runs import SimulatedRun
from remit.testing.world import SimulatedWorld


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
