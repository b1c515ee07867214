"""Children: a node that starts them, and what follows when one ends or is lost.

Rule 1: what a child spent settles its lease; a child that was lost spent all of it.
Rule 2: while a child waits for a person, so does its parent, and its clock stands still; for as long as the child
        waited, and no longer.
Rule 3: what a child says is a message like any other text from a model, and proves nothing. What it proposed to change
        and did not is its parent's to answer for, and so is what was delegated with side effects in its lease and failed.
"""

from collections.abc import Collection

from remit.core.failure import ANSWERED, ArrivalFault, Ending, IllegalArrival
from remit.core.journal.arrivals import ChildEnded, ChildLost, ChildSuspended
from remit.core.journal.commands import StartChild
from remit.core.journal.rulings import CheckFailed, ChildHeld, DelegationSettled
from remit.core.limits.budget import Charges, lease_of
from remit.core.work.goal import JUDGE_MARK
from remit.core.work.graph import Node
from remit.kernel.budget.spend import end_exhausted, lacking, settle_command
from remit.kernel.children import child_charges, child_trace, share_of, start_child
from remit.kernel.graph.join import join_outcome
from remit.kernel.graph.plan_steps import Fed, fed
from remit.kernel.results.doubt import LOST
from remit.kernel.results.judges import on_verdict, unpaid
from remit.kernel.results.notices import CHILD_LOST, tokens_bound
from remit.kernel.results.proven_effects import left_with, made_good_beneath, place_of_child, unproven_in_child
from remit.kernel.tally import Tally


def enter_child(tally: Tally, node: Node) -> str | None:
    """Start the children of a child or map node, all or none."""
    given = Fed(node.prompt, "") if node.feed is None else fed(tally, node)
    if given.mismatch is not None:
        return given.mismatch
    lease = share_of(tally, node) if node.inner is not None else lease_of(node.lease)
    reserved = child_charges(lease)
    children = max(node.children, 1)
    wanted = tuple((dimension, children * amount) for dimension, amount in reserved)
    if (dimension := lacking(tally, wanted)) is not None:
        return end_exhausted(tally, dimension, dict(wanted)[dimension])
    for _ in range(children):
        start_child(
            tally,
            prompt=given.text,
            lease=lease,
            reserved=reserved,
            depth=tally.manifest.depth,
            node=node,
            kind=given.kind,
            problems=_problems_now(tally),
        )
    return None


def _problems_now(tally: Tally) -> tuple[str, ...]:
    """What a validator has just found wrong, when the run comes back here because of it, perhaps after a pause."""
    found = (decision.problems for decision in tally.decisions if isinstance(decision, CheckFailed))
    return next(found, tally.state.result.sent_back)


def on_child_ended(tally: Tally, arrival: ChildEnded) -> str | None:
    """Settle the lease with what was spent; the child itself has cost one child run, and a call if it was one."""
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, StartChild)
    charged = dict(command.reserved)
    for dimension, amount in command.lease:
        charged[dimension] -= amount
    for dimension, amount in arrival.spent:
        charged[dimension] = charged.get(dimension, 0) + amount
    spent = tuple(sorted((dimension, amount) for dimension, amount in charged.items() if amount))
    failed = "" if arrival.ending in ANSWERED else arrival.ending
    tally.child, tally.child_stood_ms = child_trace(tally.state, arrival), arrival.stood_ms
    if arrival.observed:
        tally.observed_below = dict(arrival.observed)
    tally.denied_below = arrival.denials
    for (tool, place), code in unproven_in_child(arrival).items():
        tally.note_effect(tool, place, code)
    _answer_for(tally, command, arrival.ending, dict(arrival.observed))
    if command.kind.startswith(JUDGE_MARK):
        on_verdict(tally, command, arrival)
        return settle_command(tally, command, spent) or unpaid(arrival, tally) or join_outcome(tally)
    return _settle_child(tally, command, spent, failed=failed, bound=arrival.tokens_bound)


def on_child_suspended(tally: Tally, arrival: ChildSuspended) -> None:
    """Let the clock stand still: a person is waited for, although this run has asked no person."""
    if arrival.command_id in tally.state.children.waiting:
        message = f"child {arrival.command_id} of run {tally.state.run_id} is known to wait"
        raise IllegalArrival(ArrivalFault.DUPLICATE, message)
    tally.rule(ChildHeld(arrival.command_id, arrival.waiting_for))


def on_child_lost(tally: Tally, arrival: ChildLost) -> str | None:
    """Settle the lease in full: it is unknown what the child spent."""
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, StartChild)
    tally.child = child_trace(tally.state, arrival)
    _answer_for(tally, command, LOST, ())
    if command.kind.startswith(JUDGE_MARK):
        on_verdict(tally, command, arrival)
        return settle_command(tally, command, command.reserved) or join_outcome(tally)
    return _settle_child(tally, command, command.reserved, failed=LOST, bound=tokens_bound(CHILD_LOST))


def _answer_for(tally: Tally, command: StartChild, ending: str, observed: Collection[str]) -> None:
    """Count what the child was to change as left where it failed, and what it has made good of what was left before."""
    if command.kind.startswith(JUDGE_MARK):
        return
    node = tally.graph.nodes[tally.graph.index[command.node]] if command.node else None
    name, code = command.tool or command.node, left_with(command, node, ending)
    good = made_good_beneath(tally.state, command, observed, has_succeeded=ending == Ending.SUCCESS)
    if code:
        tally.note_effect(name, place_of_child(command.id), code)
    for tool, place in good:
        tally.note_effect(tool, place, None)
    if code or good:
        tally.rule(DelegationSettled(command.id, name, code, tuple(good)))


def _settle_child(tally: Tally, command: StartChild, spent: Charges, *, failed: str, bound: int) -> str | None:
    if failed:
        tally.children_failed += 1
        tally.last_error = failed
    tally.say(bound)
    return settle_command(tally, command, spent) or join_outcome(tally)
