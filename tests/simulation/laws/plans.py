"""Laws of plans and votes: what is done once, whose words win, and what replicas may spend together."""

from collections.abc import Iterator
from itertools import chain

from remit.core.failure import ANSWERED
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import CallCode, CallTool, StartChild
from remit.core.limits.budget import COUNTERS, FIELDS, Charges
from remit.core.record import Text
from remit.core.work.graph import Graph, NodeOutcome
from remit.kernel.state import pinned
from remit.testing.runs import SimulatedRun
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.books import Books

# The outcomes by which a graph may lead back to what was done before.
_AGAIN = (NodeOutcome.FAILED, NodeOutcome.REPAIRABLE)


def no_finished_step_is_done_again(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A step that has its output is ordered again only after an edge for a retry or a repair has led back to it."""
    graph = pinned(run.state).graph
    finished: set[str] = set()
    here = ""
    for turn in run.turns:
        for decision in turn.decisions:
            if isinstance(decision, rulings.NodeEntered):
                if decision.outcome in _AGAIN and (here, decision.node, decision.outcome) in _edges(graph):
                    finished -= _reached(graph, decision.node)
                here = decision.node
            elif isinstance(decision, rulings.StepFinished):
                finished.add(decision.step)
            if here in finished and isinstance(decision, CallCode | CallTool | StartChild):
                yield f"turn {turn.seq} orders {type(decision).__name__} for step {here}, which is finished"


def _edges(graph: Graph) -> set[tuple[str, str, str]]:
    return {(edge.source, edge.target, edge.outcome) for edge in graph.edges}


def _reached(graph: Graph, start: str) -> set[str]:
    """Every node that edges lead to from this one."""
    found, fringe = {start}, [start]
    while fringe:
        here = fringe.pop()
        ahead = {edge.target for edge in graph.edges if edge.source == here} - found
        found |= ahead
        fringe.extend(ahead)
    return found


def the_answer_is_the_winners(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Who won a vote is a child that answered, and unless something was said after it, its words are the answer."""
    said: dict[str, arrivals.ChildEnded] = {}
    expected: Text | None = None
    for turn in run.turns:
        if isinstance(turn.arrival, arrivals.ChildEnded):
            said[turn.arrival.command_id] = turn.arrival
        if isinstance(turn.arrival, arrivals.ModelAnswered | arrivals.ToolReturned):
            expected = None
        for decision in turn.decisions:
            if isinstance(decision, rulings.StepFinished):
                expected = None
            if not isinstance(decision, rulings.VoteCounted):
                continue
            winner = said.get(decision.winner)
            if winner is None or winner.ending not in ANSWERED:
                yield f"turn {turn.seq} names command {decision.winner} the winner, which did not answer"
            else:
                expected = winner.text
    if expected is not None and run.state.result.answer != expected:
        yield "its answer is not what the winner of its vote said"


def replicas_stay_within_their_parent(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """What the children of nodes hold and have spent, together, is never more than their parent was given.

    And none of them really used more than its lease, whether or not its parent has heard of it.
    """
    caps = list(pinned(run.state).caps)
    held: dict[str, dict[int, int]] = {}
    for turn in run.turns:
        for decision in turn.decisions:
            if isinstance(decision, rulings.UsageExceeded):
                return  # The world used more than it was allowed; that is charged, and stops the run.
            if isinstance(decision, rulings.QuestionSettled | rulings.CallNoted):
                for dimension, amount in decision.releases:
                    caps[dimension] += amount
            elif isinstance(decision, StartChild) and decision.node:
                held[decision.id] = dict(decision.reserved)
                yield from _overspent(world, decision)
            elif isinstance(decision, rulings.CommandSettled) and decision.command_id in held:
                held[decision.command_id] = dict(decision.charged)
        for dimension in COUNTERS:
            total = sum(charges.get(int(dimension), 0) for charges in held.values())
            if total > caps[dimension]:
                yield f"turn {turn.seq} has {total} {FIELDS[dimension]} with its children and {caps[dimension]} itself"


def _overspent(world: SimulatedWorld, command: StartChild) -> Iterator[str]:
    if command.run_id not in world.run_ids():
        return
    child = world.run(command.run_id)
    if child.all(rulings.UsageExceeded):
        return
    books, released = Books(pinned(child.state).graph), _released(child)
    for turn in child.turns:
        for decision in turn.decisions:
            books.enter(decision)
    lease = dict(command.lease)
    for dimension in COUNTERS:
        used = books.held(dimension) - dict(released).get(int(dimension), 0)
        if used > lease.get(int(dimension), 0):
            yield f"child {command.run_id} used {used} {FIELDS[dimension]} of {lease.get(int(dimension), 0)}"


def _released(run: SimulatedRun) -> Charges:
    totals: dict[int, int] = {}
    released = [ruling.releases for ruling in run.all(rulings.QuestionSettled)]
    # A boundary that only audits widens caps where a person would have been asked to.
    released += [ruling.releases for ruling in run.all(rulings.CallNoted)]
    for dimension, amount in chain.from_iterable(released):
        totals[dimension] = totals.get(dimension, 0) + amount
    return tuple(totals.items())
