"""Steps of a plan: what a node is fed, and what it leaves for those that come after it.

Rule 1: a step works on the value that the plan gives it, or on the output of the step it names as its source.
Rule 2: an output is written once, with the outcome it came of; a resumed run finds it there.
Rule 3: a value of a kind that the step cannot work on ends the plan, before anything of the step was issued.
Rule 4: a tool step gives a result only when its call was committed, or returned and nothing could verify it, or a child
        that it asked for has answered. What was refused or failed gives nothing.
Rule 5: a validate step sends back what it objects to as long as its visits last, where an edge leads back at all and
        its validator does not call it final; else the plan fails.
"""

from typing import NamedTuple

from remit.core.failure import ANSWERED, REFUSALS, Ending, ErrorCode, Refusal
from remit.core.journal.arrivals import CodeReturned
from remit.core.journal.rulings import UNVERIFIED, CallSettled, CheckFailed, Rung, StepFinished, ToolCallRefused
from remit.core.record import Text
from remit.core.work.graph import Node, NodeOutcome
from remit.core.work.plan import MARK
from remit.core.work.values import Output, ValueKind, is_convertible
from remit.kernel.children import fail_as
from remit.kernel.results.endings import head_for
from remit.kernel.results.notices import correction_bound
from remit.kernel.tally import Tally

_KINDS = frozenset(ValueKind)


class Fed(NamedTuple):
    """What a step works on. One whose kind it cannot use has a `mismatch`, the outcome that ends the plan."""

    text: Text
    kind: str
    mismatch: str | None = None


def fed(tally: Tally, node: Node) -> Fed:
    """The input of a step of a plan, taken from the steps that feed it."""
    feed = node.feed
    assert feed is not None, "only a step of a plan is fed"
    text: Text = feed.value
    kind = feed.kind
    if feed.source:
        output = _output_of(tally, feed.source)
        if output is None:
            return _mismatched(tally, f"step {feed.source} gave nothing that step {step_name(node)} could work on")
        text, kind = output.text, output.kind.value
    if kind not in _KINDS or not is_convertible(kind, feed.takes):
        source = f"step {feed.source}" if feed.source else "the plan"
        message = (
            f"step {step_name(node)} takes {feed.takes or 'any kind of value'} and {source} gives it {kind or 'none'}"
        )
        return _mismatched(tally, message)
    return Fed(text, kind)


def step_name(node: Node) -> str:
    """The name of the step that a node belongs to."""
    return node.name.partition(MARK)[0]


def _mismatched(tally: Tally, message: str) -> Fed:
    return Fed("", "", head_for(tally, Ending.IMPOSSIBLE, ErrorCode.ORCHESTRATION_STEP_MISMATCH, message))


def _output_of(tally: Tally, step: str) -> Output | None:
    if tally.finished is not None and tally.finished[0] == step:
        return tally.finished[1]
    return tally.state.result.outputs.get(step)


def finish(tally: Tally, node: Node, kind: ValueKind, text: Text, command_id: str) -> None:
    """Keep the output of a step, which is the outcome of this command, and take it for the answer so far."""
    tally.rule(StepFinished(node.name, kind, command_id))
    tally.finished = (node.name, Output(kind, text, command_id))
    tally.answer, tally.answer_violations = text, ()
    tally.unsupported = ()


def take_value(tally: Tally, node: Node, said: CodeReturned) -> str | None:
    """Keep what the code of a step returned, or name the outcome that ends the plan where it is unreadable."""
    if said.kind not in _KINDS:
        message = (
            f"step {node.name} gave a value of kind {said.kind[:80]!r}, which is not one of {', '.join(ValueKind)}"
        )
        return head_for(tally, Ending.IMPOSSIBLE, ErrorCode.ORCHESTRATION_STEP_MISMATCH, message)
    finish(tally, node, ValueKind(said.kind), said.value, said.command_id)
    return None


def pass_on(tally: Tally, node: Node, command_id: str) -> None:
    """Let a step hand on what it was fed: it looked at it and found nothing wrong."""
    given = fed(tally, node)
    tally.rule(StepFinished(node.name, ValueKind(given.kind), command_id, is_passed_on=True))
    tally.finished = (node.name, Output(ValueKind(given.kind), given.text, command_id))
    tally.answer, tally.answer_violations = given.text, ()
    tally.unsupported = ()


def conclude_step(tally: Tally, node: Node) -> str:
    """Pass what a validate step looked at, send it back to where it was made, or fail the plan."""
    problems = (*tally.state.result.problems, *tally.problems)
    if not problems:
        pass_on(tally, node, tally.answering)
        return NodeOutcome.PASSED
    if _may_send_back(tally, node):
        bound = correction_bound(problems)
        tally.last_error = ErrorCode.VALIDATION_RULE_FAILED
        tally.rule(CheckFailed(problems, bound, ErrorCode.VALIDATION_RULE_FAILED))
        tally.say(bound)
        return NodeOutcome.REPAIRABLE
    message = f"step {node.name}: {'; '.join(problems)}"
    return head_for(tally, Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_RULE_FAILED, message)


def _may_send_back(tally: Tally, node: Node) -> bool:
    visits = tally.state.place.visits[tally.node] + tally.visits.count(tally.node)
    is_final = tally.is_final or tally.state.result.is_final
    is_used_up = node.visits_max and visits >= node.visits_max
    # Without an edge of its own the outcome would take the unconditional one, as if nothing were wrong.
    return not (is_final or is_used_up) and tally.graph.has_edge_for(tally.node, NodeOutcome.REPAIRABLE)


def conclude_call(tally: Tally, node: Node, content: Text = "") -> str:
    """Finish a tool step whose call was committed or whose child has answered; fail any other."""
    if tally.child is not None:
        if tally.child.ending not in ANSWERED:
            return fail_as(tally, tally.child)
        finish(tally, node, ValueKind.RESULT, tally.child.text, tally.child.command_id)
        return NodeOutcome.SETTLED
    for decision in reversed(tally.decisions):
        if isinstance(decision, CallSettled):
            if decision.rung is Rung.COMMITTED or decision.code == UNVERIFIED:
                finish(tally, node, ValueKind.RESULT, content, decision.command_id)
                return NodeOutcome.SETTLED
            code = ErrorCode(decision.code) if decision.code in set(ErrorCode) else ErrorCode.TOOL_EXECUTION_FAILED
            return head_for(tally, Ending.UNAVAILABLE_DEP, code, failed_call(node.name, decision.code or decision.rung))
        if isinstance(decision, ToolCallRefused):
            return _refused(tally, node, decision)
    message = f"step {node.name} was given no call to make"
    return head_for(tally, Ending.IMPOSSIBLE, ErrorCode.ORCHESTRATION_STEP_MISMATCH, message)


def failed_call(step: str, code: str) -> str:
    """What a ruling says of a tool step whose call failed; the words of the tool are kept with the call."""
    return f"step {step}: its call ended as {code}"


def _refused(tally: Tally, node: Node, refused: ToolCallRefused) -> str:
    """End the plan at a tool step whose call may not be made."""
    message = f"step {node.name}: {refused.reason}"
    if refused.code in set(Refusal):
        return head_for(tally, REFUSALS[Refusal(refused.code)].ending, message=message)
    return head_for(tally, Ending.VALIDATION_FAIL, ErrorCode(refused.code), message)
