"""Judges: models that are asked whether an answer means what it should, each in a child run of its own.

Rule 1: a judge is a child like any other: it has a share of what is left, and what it says is recorded.
Rule 2: its verdict was read strictly before it came here; a judge that gave none has objected.
Rule 3: what a judge says is no message: the model hears the objection with all others, as a correction.
"""

from remit.core.failure import Ending
from remit.core.journal.arrivals import ChildEnded, ChildLost
from remit.core.journal.commands import StartChild
from remit.core.journal.rulings import ValidatorHeard
from remit.core.limits.budget import COUNTERS, Charges, Dimension
from remit.core.work.goal import JUDGE_MARK, Goal
from remit.core.work.graph import Node
from remit.kernel.budget.spend import end_exhausted, lacking
from remit.kernel.children import child_charges, start_child
from remit.kernel.results.endings import head_for
from remit.kernel.results.notices import unjudged
from remit.kernel.tally import Tally

# What a judge leaves its run with: as much again as it may take itself.
_SHARES_KEPT = 1


def start_judges(tally: Tally, node: Node, goal: Goal) -> str | None:
    """Start a judge for every criterion that asks for one, all or none; the outcome when there is no budget for them."""
    names = [criterion.name for criterion in goal.criteria if criterion.judge]
    if not names:
        return None
    lease = _share(tally, len(names))
    reserved = child_charges(lease)
    wanted = tuple((dimension, len(names) * amount) for dimension, amount in reserved)
    if (dimension := lacking(tally, wanted)) is not None:
        return end_exhausted(tally, dimension, dict(wanted)[dimension])
    for name in names:
        kind = f"{JUDGE_MARK}{name}"
        depth = tally.manifest.depth
        start_child(tally, prompt=tally.answer, lease=lease, reserved=reserved, depth=depth, node=node, kind=kind)
    return None


def _share(tally: Tally, judges: int) -> Charges:
    """What each judge may spend: an equal part of what is left, with one part kept for the run itself."""
    kept = {Dimension.CHILD_RUNS: judges}
    among = judges + _SHARES_KEPT
    shares = ((int(d), (tally.left[d] - kept.get(d, 0)) // among) for d in COUNTERS)
    return tuple((dimension, amount) for dimension, amount in shares if amount > 0)


def unpaid(arrival: ChildEnded, tally: Tally) -> str | None:
    """The outcome of a node whose judge ran out of budget: that is no verdict on the answer."""
    if arrival.ending is not Ending.BUDGET_EXHAUSTED:
        return None
    return head_for(tally, Ending.BUDGET_EXHAUSTED, arrival.error, f"a judge was not paid: {arrival.message}")


def on_verdict(tally: Tally, command: StartChild, arrival: ChildEnded | ChildLost) -> None:
    """Take the objections of a judge."""
    name = command.kind.removeprefix(JUDGE_MARK)
    problems = (unjudged(name),) if isinstance(arrival, ChildLost) else arrival.problems
    passed = not problems
    goal = tally.manifest.goal
    if goal is not None and any(criterion.only_warns for criterion in goal.criteria if criterion.name == name):
        tally.rule(
            ValidatorHeard(
                command_id=command.id,
                name=command.kind,
                problems=(),
                checks_passed=int(passed),
                checks_failed=int(not passed),
                warnings=problems,
            )
        )
        return
    tally.objections += problems
    tally.rule(
        ValidatorHeard(
            command_id=command.id,
            name=command.kind,
            problems=problems,
            checks_passed=int(passed),
            checks_failed=int(not passed),
        )
    )
