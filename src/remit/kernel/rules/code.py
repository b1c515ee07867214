"""Named code of the user, retrieval included: what a node asks of it, and what follows when it returns or fails.

Rule 1: the user's Python never runs in here; it is a command like any other and its result an arrival.
Rule 2: missing context degrades an exchange and never fails it; a validator that fails is a problem of the answer.
"""

from remit.core.arrivals import CodeFailed, CodeReturned, ContextFailed, ContextFound
from remit.core.commands import CallCode, Retrieve
from remit.core.failure import Ending, ErrorCode
from remit.core.graph import Node, NodeKind, NodeOutcome
from remit.core.manifest import CODE_TIMEOUT_MS
from remit.core.rulings import ValidatorHeard
from remit.kernel.acceptance import conclude
from remit.kernel.endings import head_for
from remit.kernel.join import joined
from remit.kernel.spend import settle
from remit.kernel.state import CONTEXT_FAILED
from remit.kernel.tally import Tally


def enter_retrieve(tally: Tally, node: Node) -> str | None:
    """Look for evidence, if the run has anything to look with."""
    if not tally.manifest.retrieves_context:
        return NodeOutcome.FOUND
    tally.order(Retrieve(tally.next_id(), CODE_TIMEOUT_MS))
    return None


def enter_code(tally: Tally, node: Node) -> str | None:
    """Run the code a rerank or decide node names; one that names none only has edges to choose from."""
    if not node.code:
        return NodeOutcome.RETURNED
    tally.order(CallCode(tally.next_id(), node.code, tally.answer, CODE_TIMEOUT_MS))
    return None


def enter_validate(tally: Tally, node: Node) -> str | None:
    """Hear the node's own validator and the goal's, then judge the answer."""
    goal = tally.manifest.goal
    named = [criterion.validator for criterion in goal.criteria if criterion.validator] if goal is not None else []
    for name in [node.code, *named] if node.code else named:
        tally.order(CallCode(tally.next_id(), name, tally.answer, CODE_TIMEOUT_MS))
    return None if tally.blocking else conclude(tally, node)


def on_code_returned(tally: Tally, arrival: CodeReturned) -> str | None:
    """Take a validator's opinion, or leave the node with what its code returned."""
    return _heard(tally, arrival.command_id, arrival.problems)


def on_code_failed(tally: Tally, arrival: CodeFailed) -> str | None:
    """A validator that failed did not agree; any other code that failed fails its node."""
    command = tally.state.open[arrival.command_id]
    assert isinstance(command, CallCode)
    if _is_validating(tally):
        return _heard(tally, command.id, (f"validator {command.name} failed",))
    settle(tally, command, ())
    return head_for(
        tally, Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_EXECUTION_FAILED, f"code {command.name} failed: {arrival.error}"
    )


def on_context_found(tally: Tally, arrival: ContextFound) -> str | None:
    """Keep the evidence for this exchange. It is no message of the history."""
    settle(tally, tally.state.open[arrival.command_id], ())
    tally.context_tokens += arrival.tokens_bound
    return NodeOutcome.FOUND


def on_context_failed(tally: Tally, arrival: ContextFailed) -> str | None:
    """Go on without evidence; the failure is on record."""
    tally.last_error = CONTEXT_FAILED
    settle(tally, tally.state.open[arrival.command_id], ())
    return NodeOutcome.FOUND


def _heard(tally: Tally, command_id: str, problems: tuple[str, ...]) -> str | None:
    command = tally.state.open[command_id]
    assert isinstance(command, CallCode)
    settle(tally, command, ())
    if not _is_validating(tally):
        return NodeOutcome.RETURNED
    tally.problems += problems
    tally.rule(ValidatorHeard(command.id, command.name, problems))
    return joined(tally)


def _is_validating(tally: Tally) -> bool:
    return tally.graph.nodes[tally.node].kind is NodeKind.VALIDATE
