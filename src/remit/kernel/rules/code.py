"""Named code of the user, retrieval included: what a node asks of it, and what follows when it returns or fails.

Rule 1: the user's Python never runs in here; it is a command like any other and its result an arrival.
Rule 2: missing context degrades an exchange and never fails it; a validator that fails is a problem of the answer.
"""

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import CodeFailed, CodeReturned, ContextFailed, ContextFound
from remit.core.journal.commands import CallCode, Retrieve
from remit.core.journal.rulings import ValidatorHeard
from remit.core.run.manifest import CODE_TIMEOUT_MS
from remit.core.work.graph import Node, NodeKind, NodeOutcome
from remit.core.work.plan import PLAN_SAID
from remit.kernel.budget.spend import settle_command
from remit.kernel.graph.join import join_outcome
from remit.kernel.graph.plan_steps import fed, take_value
from remit.kernel.results.acceptance import conclude_answer
from remit.kernel.results.endings import head_for
from remit.kernel.results.judges import start_judges
from remit.kernel.results.notices import whole_bound
from remit.kernel.results.votes import enter_vote, on_counted
from remit.kernel.rules.tool import on_filtered
from remit.kernel.state import CONTEXT_FAILED
from remit.kernel.tally import Tally


def enter_retrieve(tally: Tally, node: Node) -> str | None:
    """Look for evidence, if the run has anything to look with; a step of a plan has code of its own for that."""
    if node.feed is not None:
        return _enter_step(tally, node)
    if not tally.manifest.retrieves_context:
        return NodeOutcome.FOUND
    tally.issue(Retrieve(tally.next_id(), CODE_TIMEOUT_MS))
    return None


def enter_code(tally: Tally, node: Node) -> str | None:
    """Run the code a rerank or decide node names; one that names none only has edges to choose from."""
    if node.ballot is not None:
        return enter_vote(tally, node, node.ballot)
    if node.feed is not None:
        return _enter_step(tally, node)
    if not node.code:
        return NodeOutcome.RETURNED
    tally.issue(CallCode(tally.next_id(), node.code, tally.answer, CODE_TIMEOUT_MS))
    return None


def _enter_step(tally: Tally, node: Node) -> str | None:
    """Run the code of a step on what it is fed, if it can work on that at all."""
    given, feed = fed(tally, node), node.feed
    assert feed is not None, "only a step of a plan comes here"
    if given.mismatch is not None:
        return given.mismatch
    timeout_ms = node.timeout_ms or CODE_TIMEOUT_MS
    tally.issue(CallCode(tally.next_id(), node.code, given.text, timeout_ms, kind=given.kind, takes=feed.takes))
    return None


def enter_validate(tally: Tally, node: Node) -> str | None:
    """Hear the node's own validator and the goal's, then judge the answer; a step of a plan hears its own alone."""
    if node.feed is not None:
        return _enter_step(tally, node)
    goal = tally.manifest.goal
    named = [criterion.validator for criterion in goal.criteria if criterion.validator] if goal is not None else []
    for name in [node.code, *named] if node.code else named:
        tally.issue(CallCode(tally.next_id(), name, tally.answer, CODE_TIMEOUT_MS))
    if goal is not None and (outcome := start_judges(tally, node, goal)) is not None:
        return outcome
    return None if tally.blocking else conclude_answer(tally, node)


def on_code_returned(tally: Tally, arrival: CodeReturned) -> str | None:
    """Take a validator's opinion or the count of a vote, or leave the node with what its code returned."""
    node = tally.graph.nodes[tally.node]
    if node.kind is NodeKind.VALIDATE:
        return _heard(tally, arrival)
    if node.kind is NodeKind.TOOL:
        return on_filtered(tally, arrival)
    settle_command(tally, tally.state.commands.open[arrival.command_id], ())
    if node.ballot is not None:
        return on_counted(tally, node.ballot, arrival)
    if arrival.kind == PLAN_SAID:
        tally.say(whole_bound(arrival.value))
    elif arrival.calls:
        tally.proposed, tally.is_unjudged, tally.filtered = arrival.calls, True, 0
        if arrival.tokens_bound:
            tally.messages_count += 1
            tally.context_tokens += arrival.tokens_bound
    elif node.feed is not None and (mismatch := take_value(tally, node, arrival)) is not None:
        return mismatch
    return NodeOutcome.FOUND if node.kind is NodeKind.RETRIEVE else NodeOutcome.RETURNED


def on_code_failed(tally: Tally, arrival: CodeFailed) -> str | None:
    """A validator that failed did not agree; any other code that failed, and whatever is not there, fails its node."""
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, CallCode)
    # No answer can please a validator that is not there.
    is_missing = arrival.code is ErrorCode.CONFIG_PART_MISSING
    # A step of a plan that was too slow has not looked, and nothing that is sent back would help.
    is_slow = bool(command.kind) and arrival.code is ErrorCode.TOOL_TIMEOUT
    if tally.graph.nodes[tally.node].kind is NodeKind.VALIDATE and not is_missing and not is_slow:
        problem = arrival.error if command.kind else f"validator {command.name} failed"
        return _heard(tally, CodeReturned(command.id, problems=(problem,)))
    if tally.graph.nodes[tally.node].kind is NodeKind.TOOL:
        return on_filtered(tally, arrival)
    settle_command(tally, command, ())
    # What is said of a step names it already.
    message = arrival.error if command.kind else f"code {command.name} failed: {arrival.error}"
    ending = Ending.IMPOSSIBLE if arrival.code is ErrorCode.ORCHESTRATION_PLAN_FAILED else Ending.UNAVAILABLE_DEP
    return head_for(tally, ending, arrival.code, message)


def on_context_found(tally: Tally, arrival: ContextFound) -> str | None:
    """Keep the evidence for this exchange. It is no message of the history."""
    settle_command(tally, tally.state.commands.open[arrival.command_id], ())
    tally.context_tokens += arrival.tokens_bound
    return NodeOutcome.FOUND


def on_context_failed(tally: Tally, arrival: ContextFailed) -> str | None:
    """Go on without evidence; the failure is on record."""
    tally.last_error = CONTEXT_FAILED
    settle_command(tally, tally.state.commands.open[arrival.command_id], ())
    return NodeOutcome.FOUND


def _heard(tally: Tally, said: CodeReturned) -> str | None:
    command = tally.state.commands.open[said.command_id]
    assert isinstance(command, CallCode)
    settle_command(tally, command, ())
    tally.problems += said.problems
    tally.is_final = tally.is_final or said.is_final
    tally.rule(
        ValidatorHeard(
            command_id=command.id,
            name=command.name,
            problems=said.problems,
            checks_passed=said.checks_passed,
            checks_failed=said.checks_failed,
            warnings=said.warnings,
            is_final=said.is_final,
        )
    )
    return join_outcome(tally)
