"""A tool node: judge what the model proposed, and settle what comes back.

Rule 1: calls of one answer are judged one after the other; each sees what the ones before it were promised.
Rule 2: a refused call is told to the model; refusals that lead nowhere end the run.
Rule 3: an error is an observation. A mutating call whose outcome is unknown is never settled by guessing.
Rule 4: the node is left when every call has its outcome.
"""

from remit.core.failure import ArrivalFault, Ending, ErrorCode, IllegalArrival, Refusal
from remit.core.journal.arrivals import (
    CodeFailed,
    CodeReturned,
    Happened,
    ToolFailed,
    ToolOutcomeLost,
    ToolReconciled,
    ToolReturned,
)
from remit.core.journal.commands import CallCode, CallTool, ReconcileTool
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import (
    OUTCOME_UNKNOWN,
    RECONCILED,
    UNVERIFIED,
    CallsFiltered,
    FallbackChosen,
    Rung,
    ToolCallRefused,
)
from remit.core.limits.boundary import At, Exhaustion
from remit.core.limits.flags import TESTS_FAILED
from remit.core.limits.tools import ToolDefinition
from remit.core.record import replace
from remit.core.run.manifest import CODE_TIMEOUT_MS
from remit.core.work.graph import Node, NodeOutcome
from remit.kernel.authority.authorize import authorize
from remit.kernel.authority.boundary_checks import condition_stop
from remit.kernel.authority.call_flags import NO_FLAGS, Flags, declares_tests, settled_flags
from remit.kernel.authority.call_rulings import INVALID, hold_call, issue_call, refuse_call, settle_call
from remit.kernel.authority.verdict import ALLOWED, Judgement
from remit.kernel.budget.exhaustion import begin_wrap_up, policy_of
from remit.kernel.budget.spend import settle_command
from remit.kernel.graph.join import join_outcome
from remit.kernel.graph.plan_steps import conclude_call
from remit.kernel.results.doubt import LOST, NOT_DONE, ask_about, doubt
from remit.kernel.results.endings import DENIALS_MAX, head_for, times_denied
from remit.kernel.results.notices import NOT_HAPPENED, tokens_bound
from remit.kernel.results.proven_effects import contradicted_by, rung_reached, stops_loop, unfit_result
from remit.kernel.state import is_safe_to_repeat
from remit.kernel.tally import Tally

# A model that twice failed to repair its calls will not do it the third time.
ARGUMENT_REPAIRS_MAX = 2
# The repeat breaker blocks once; a model that runs into it again is stuck.
REPEATS_BLOCKED_MAX = 1

# Before the name of a filter, it says that the code looks at proposed calls.
FILTER_MARK = "filter:"
# The outcome of a filter's look, which no edge names: the calls are judged, or shown to the next filter.
FILTERED = "filtered"

_COMMITTED = Rung.COMMITTED


def enter_tool(tally: Tally, node: Node) -> str | None:
    """Show the proposed calls to the user's filters, one after the other; then judge what they let through."""
    is_unjudged, filters = tally.is_unjudged, tally.manifest.filters
    tally.is_unjudged = False
    if filters and is_unjudged and tally.filtered < len(filters):
        name = f"{FILTER_MARK}{filters[tally.filtered]}"
        tally.issue(CallCode(tally.next_id(), name, "", CODE_TIMEOUT_MS))
        return None
    codes: list[str] = []
    spent, spent_dimension = "", -1
    for call in tally.proposed if is_unjudged else ():
        verdict = authorize(call, tally)
        if verdict is ALLOWED:
            issue_call(tally, call)
        elif verdict.judgement is Judgement.ASK:
            codes.append(hold_call(tally, call))
        else:
            refuse_call(tally, call, verdict.code, verdict.reason)
            codes.append(verdict.code)
            # A cap of 0 forbids the call; only one that was spent can stop the run.
            if verdict.dimension >= 0 and tally.state.spending.caps[verdict.dimension] > 0:
                spent, spent_dimension = verdict.reason, verdict.dimension
    if codes and (outcome := _stop_after(tally, codes)) is not None:
        return outcome
    if tally.blocking:
        return None
    if spent and not _may_wrap_up(tally, spent_dimension):
        return head_for(tally, Ending.BUDGET_EXHAUSTED, message=spent)
    return NodeOutcome.REFUSED if node.feed is None else conclude_call(tally, node)


def go_on_filtered(tally: Tally, node: Node) -> str | None:
    """Show the calls to the next filter, or judge them when every filter has looked at them."""
    tally.is_unjudged = True
    return enter_tool(tally, node)


def _may_wrap_up(tally: Tally, dimension: int) -> bool:
    """Whether the model is to have its last words now that a dimension which calls need is spent."""
    return policy_of(tally.manifest.boundary, dimension) is Exhaustion.WRAP_UP and begin_wrap_up(tally, dimension)


def on_filtered(tally: Tally, arrival: CodeReturned | CodeFailed) -> str:
    """Go on with the calls as a filter left them. One that failed has let nothing through."""
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, CallCode)
    settle_command(tally, command, ())
    name = command.name.removeprefix(FILTER_MARK)
    before = tally.state.calls.proposed
    if isinstance(arrival, CodeFailed):
        reason = f"filter {name} failed: {arrival.error}"
        after = tuple([replace(call, filtered=call.filtered or reason) for call in before])
    else:
        after = arrival.calls
    hashes = {call.call_id: call.arguments_hash for call in before}
    changed = sum(hashes.get(call.call_id) != call.arguments_hash for call in after)
    dropped = sum(bool(call.filtered) for call in after) - sum(bool(call.filtered) for call in before)
    tally.rule(CallsFiltered(command.id, name, changed, dropped))
    tally.proposed, tally.filtered = after, tally.filtered + 1
    return FILTERED


def refuse_proposals(tally: Tally) -> None:
    """Tell the model that none of its calls was made, since the run goes on elsewhere than to its tools."""
    code = Refusal.BUDGET_EXHAUSTED if tally.ending is Ending.BUDGET_EXHAUSTED else Refusal.NOT_OFFERED
    for call in tally.proposed:
        refuse_call(tally, call, code, tally.message or "no tool is called at this point of the run")
    tally.is_unjudged = False


def _stop_after(tally: Tally, codes: list[str]) -> str | None:
    """The outcome that ends the run when it was refused once too often."""
    state = tally.state
    if Refusal.UNSAFE in codes:
        refused = [d for d in tally.decisions if isinstance(d, ToolCallRefused) and d.code == Refusal.UNSAFE]
        return head_for(tally, Ending.UNSAFE_DETECTION, message=f"{refused[0].tool}: {refused[0].reason}")
    if (denials := times_denied(tally)) >= DENIALS_MAX:
        return head_for(
            tally, Ending.PERMISSION_DENIED, message=f"{denials} calls were denied, denials_max={DENIALS_MAX}"
        )
    invalid = [code for code in codes if code in INVALID]
    if invalid and state.counts.invalid_in_a_row + 1 > ARGUMENT_REPAIRS_MAX:
        message = f"the model could not repair its calls, argument_repairs_max={ARGUMENT_REPAIRS_MAX}"
        return head_for(tally, Ending.VALIDATION_FAIL, ErrorCode(invalid[0]), message)
    if Refusal.REPEATED_CALL in codes and state.counts.repeats_blocked + 1 > REPEATS_BLOCKED_MAX:
        message = f"the model repeats itself, repeats_blocked_max={REPEATS_BLOCKED_MAX}"
        return head_for(tally, Ending.REPEATED_FAILURE, ErrorCode.ORCHESTRATION_ITERATION_LIMIT, message)
    return None


def on_returned(tally: Tally, arrival: ToolReturned) -> str | None:
    """Keep the observation; commit it when it is verified. A change that nothing could refute stays observed."""
    command: CallTool = tally.state.commands.open[arrival.command_id]  # type: ignore[assignment]  # weigh() has looked
    tool = tally.state.derived.tools[command.tool]
    rung, code, verifier = rung_reached(arrival), "", tally.state.derived.verifiers[command.tool]
    if rung is not _COMMITTED:
        code = contradicted_by(arrival)
        if command.mutating and not arrival.refuted:
            # It was called, and what it returned says nothing that can be relied on.
            if tool.reconcilable or not tool.idempotent:
                return doubt(tally, command, code, unfit_result(arrival), _flags(tally, tool, arrival)[0])
            code = OUTCOME_UNKNOWN
    elif arrival.stop_loop and stops_loop(arrival, tool):
        tally.stopped, tally.answer = True, arrival.content
        tally.unsupported = ()
        tally.answer_violations = arrival.answer_violations
    if rung is _COMMITTED and not verifier:
        # Nothing contradicts it, and nothing could have.
        rung, code = Rung.OBSERVED, UNVERIFIED
    may_flag = arrival.flags or (command.tool in tally.state.derived.flagging and declares_tests(tool))
    flags = settled_flags(tally, tool, arrival.flags) if may_flag else NO_FLAGS
    settle_call(tally, command, rung, code, arrival.evidence, verifier, flags=flags)
    tally.messages_count += 1
    tally.context_tokens += arrival.tokens_bound
    if tally.raised and (why := condition_stop(tally, tool, At.OBSERVATION)):
        return head_for(tally, Ending.UNSAFE_DETECTION, message=f"{tool.name}: {why}")
    if arrival.critical and rung is _COMMITTED and (conflict := _conflict(tally, command.tool, arrival.critical)):
        return head_for(tally, Ending.SOURCE_CONFLICT, message=conflict)
    return join_outcome(tally, arrival.content)


def _conflict(tally: Tally, tool: str, critical: tuple[tuple[str, str], ...]) -> str:
    """What an observation contradicts of what was observed before; empty when they agree."""
    for name, value in critical:
        before, source = tally.state.effects.critical.get(name, (value, tool))
        if before != value:
            return f"sources conflict on {name}: {source} says {before}, {tool} says {value}"
    return ""


def on_tool_failed(tally: Tally, arrival: ToolFailed) -> str | None:
    """Keep the failure as an observation; a mutating call that ran out of time, or broke within, is in doubt instead."""
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, CallTool)
    tool = tally.state.derived.tools[command.tool]
    if tally.manifest.host is not None:
        # It cannot be reconciled here, nor another tool called; a caller that wants it again reads that it may have happened.
        return settle_failed(tally, command, arrival)
    is_open = command.mutating and leaves_open(arrival)
    if is_open and (arrival.code is ErrorCode.TOOL_TIMEOUT or tool.reconcilable or not tool.idempotent):
        return doubt(tally, command, arrival.code, arrival.error, _flags(tally, tool, arrival)[0])
    if not is_open and (instead := _fallback(tally, command, arrival)) is not None:
        # Before its settlement, so that the fold tells the model nothing of a call that another one stands in for.
        tally.rule(FallbackChosen(command.id, instead.tool))
        settle_call(tally, command, Rung.OBSERVED, arrival.code, arrival.evidence)
        issue_call(tally, instead)
        return None
    return settle_failed(tally, command, arrival)


def settle_failed(tally: Tally, command: CallTool, arrival: ToolFailed) -> str | None:
    """Settle a call that failed. One whose effect is open goes on as such: its tool may be called again with the same key."""
    tool = tally.state.derived.tools[command.tool]
    code = OUTCOME_UNKNOWN if command.mutating and leaves_open(arrival) else arrival.code
    flags = _flags(tally, tool, arrival)
    settle_call(tally, command, Rung.OBSERVED, code, arrival.evidence, flags=flags)
    tally.say(arrival.tokens_bound)
    if arrival.exposed:
        return head_for(tally, Ending.UNSAFE_DETECTION, arrival.code, arrival.error)
    if tally.raised and (why := condition_stop(tally, tool, At.OBSERVATION)):
        return head_for(tally, Ending.UNSAFE_DETECTION, message=f"{tool.name}: {why}")
    return join_outcome(tally)


def _flags(tally: Tally, tool: ToolDefinition, arrival: ToolFailed | ToolReturned) -> Flags:
    """The flags that a failure raises: those of its words, and that tests did not pass."""
    raised = (*arrival.flags, TESTS_FAILED) if declares_tests(tool) else arrival.flags
    return settled_flags(tally, tool, raised) if raised else NO_FLAGS


def leaves_open(arrival: ToolFailed) -> bool:
    """Whether it is unknown what a call has changed before it failed."""
    return arrival.code is ErrorCode.TOOL_TIMEOUT or arrival.is_unknown


def _fallback(tally: Tally, command: CallTool, arrival: ToolFailed) -> ProposedCall | None:
    """The call of an equivalent tool, where its own is unavailable and the other may be called as it is.

    What was approved was approved for this tool; where its equivalent needs a person too, none is chosen.
    """
    tool = tally.state.derived.tools[command.tool]
    if arrival.code is not ErrorCode.TOOL_UNAVAILABLE or not tool.fallback or tally.paused or arrival.exposed:
        return None
    call = _instead(tally, command, tool.fallback)
    return call if authorize(call, tally) is ALLOWED else None


def _instead(tally: Tally, command: CallTool, tool: str) -> ProposedCall:
    """The call as another tool would get it: what was read before it and what is known of its arguments stay the same."""
    known = [call for call in tally.state.calls.proposed if call.call_id == command.call_id]
    same = [call for call in known if (call.tool, call.arguments_hash) == (command.tool, command.arguments_hash)]
    return ProposedCall(
        command.call_id,
        tool,
        command.arguments,
        command.arguments_hash,
        provenance=tally.state.calls.provenances.get(command.id, Provenance.UNTRACED),
        labels=tuple(dict.fromkeys(label for call in known for label in call.labels)),
        abridged=same[0].abridged if same else "",
    )


def on_outcome_lost(tally: Tally, arrival: ToolOutcomeLost) -> str | None:
    """A crash left a mutating call without an outcome: it is in doubt. What may be repeated is no loss."""
    command = tally.state.commands.open[arrival.command_id]
    assert isinstance(command, CallTool)
    if is_safe_to_repeat(tally.state, command):
        message = f"command {command.id} may be performed again, so its outcome cannot be lost"
        raise IllegalArrival(ArrivalFault.NOT_WAITING, message)
    return doubt(tally, command, LOST)


def on_reconciled(tally: Tally, arrival: ToolReconciled) -> str | None:
    """Settle a call in doubt with what its tool says became of it, or ask a person when the tool cannot say."""
    inquiry = tally.state.commands.open[arrival.command_id]
    assert isinstance(inquiry, ReconcileTool)
    settle_command(tally, inquiry, inquiry.reserved)
    command = tally.state.commands.open[inquiry.about]
    assert isinstance(command, CallTool)
    if arrival.happened is Happened.YES:
        # A tool that keeps accounts could have said no. That its result is not known, or does not fit, undoes nothing.
        settle_call(tally, command, Rung.COMMITTED, "", arrival.evidence, RECONCILED)
        tally.say(arrival.tokens_bound)
    elif arrival.happened is Happened.NO:
        settle_call(tally, command, Rung.OBSERVED, NOT_DONE)
        tally.say(tokens_bound(NOT_HAPPENED))
    else:
        said = "; ".join(text for text in (tally.state.calls.made[command.id].reason, arrival.why) if text)
        return None if tally.paused else ask_about(tally, command, said)
    return join_outcome(tally, arrival.content)
