"""Folding calls: what a tool call leaves in the state, from its order to its outcome.

Rule 1: a call that was issued is open and holds what it reserved; its settlement says what it cost and how far it got.
Rule 2: whatever came of a call is told to the model, in the words of the tool or the person who told it.
"""

import msgspec

from remit.core.failure import Refusal
from remit.core.journal import arrivals, commands, rulings
from remit.core.journal.arrivals import Arrival, OutcomeJudged, TextShown, ToolFailed, ToolReconciled, ToolReturned
from remit.core.journal.proposed_call import Provenance
from remit.core.journal.rulings import OUTCOME_UNKNOWN, UNALLOWED, UNVERIFIED, CallSettled, Rung
from remit.core.limits.budget import Charges
from remit.core.limits.queue import QUEUE_MARK
from remit.core.record import Text, replace
from remit.core.run.messages import tool_message
from remit.kernel.authority.call_rulings import INVALID, failed_as, refused_as
from remit.kernel.authority.earlier_attempts import is_done_unseen
from remit.kernel.results import notices
from remit.kernel.results.doubt import is_in_doubt_besides
from remit.kernel.results.endings import is_denial
from remit.kernel.results.proven_effects import contradicted_by, made_good, stops_loop, unfit_result
from remit.kernel.state import CallKey, RunState, pinned
from remit.kernel.traces import CallTrace, LateOutcome, longer

# Members needed every turn; looking one up in its enum costs as much as the rest of the line.
_ATTEMPTED, _COMMITTED = Rung.ATTEMPTED, Rung.COMMITTED
# Refusals that a person, or the silence of one, has caused.
REJECTED = frozenset({Refusal.APPROVAL_REJECTED, Refusal.APPROVAL_EXPIRED})
# What tells of everything that was done under one key, earlier attempts included.
_ACCOUNTS = (ToolReconciled, OutcomeJudged)


def open_command(state: RunState, command: commands.Command) -> None:
    """Keep a command until it has its outcome, and hold what it reserves."""
    state.commands.open[command.id] = command
    left = state.spending.left
    for dimension, amount in command.reserved:
        left[dimension] -= amount


def recount(left: list[int], reserved: Charges, charged: Charges) -> None:
    """Count what was charged in place of what was reserved."""
    for dimension, amount in reserved:
        left[dimension] += amount
    for dimension, amount in charged:
        left[dimension] -= amount


def call_settled(state: RunState, ruling: CallSettled, arrival: Arrival) -> None:
    """Give a call its outcome."""
    under_way, calls = state.commands, state.calls
    if ruling.command_id not in under_way.open:
        _settle_again(state, ruling, arrival)
        return
    command: commands.CallTool = under_way.open.pop(ruling.command_id)  # type: ignore[assignment]  # no other is settled so
    # As a rule it is charged what it reserved, and where this turn was just taken, that is even the same object.
    if ruling.charged is not command.reserved:
        recount(state.spending.left, command.reserved, ruling.charged)
    under_way.blocking -= 1
    if under_way.doubted:
        under_way.doubted.pop(command.id, None)
    if under_way.withheld:
        under_way.withheld.pop(command.id, None)
    tool, rung, before = command.tool, ruling.rung, calls.made[command.id].reason
    # To make it anew takes less time than to change five of its fields; names would take half as long again.
    calls.made[command.id] = trace = CallTrace(
        command.call_id,
        tool,
        command.arguments_hash,
        rung,
        command.mutating,
        command.arguments,
        "",
        ruling.code,
        ruling.verifier,
        ruling.evidence,
        state.seq,
    )
    if type(arrival) is not ToolReturned or rung is not _COMMITTED:
        trace.reason = _said_of(command.id, arrival, before)
    state.counts.invalid_in_a_row = 0
    if ruling.raised or ruling.lowered:
        _keep_flags(state, ruling, tool)
    if rung is _COMMITTED:
        _commit(state, command)
    elif ruling.code == UNVERIFIED:
        _leave_unverified(state, (tool, command.arguments_hash))
    else:
        _count_failure(state, command, ruling.code)
        if type(arrival) in _ACCOUNTS and command.mutating:
            state.effects.unknown.pop((tool, command.arguments_hash), None)
            state.effects.denied[tool, command.arguments_hash] = command.key
    if rung is not _ATTEMPTED and command.id not in calls.replaced:
        # A call that was cut off has no outcome; what arrived is about something else. Where another tool was called in
        # its place, that one's outcome is what the model hears.
        _hear_outcome(state, trace, arrival)
    if type(arrival) in _ACCOUNTS and is_done_unseen(trace):
        calls.unseen.setdefault((tool, command.arguments_hash), command.id)


def _settle_again(state: RunState, ruling: CallSettled, arrival: Arrival) -> None:
    """Give a call of unknown outcome the one that its agent tells later; it was charged before."""
    trace = msgspec.structs.replace(
        state.calls.made[ruling.command_id],
        rung=ruling.rung,
        code=ruling.code,
        evidence=ruling.evidence,
        seq=state.seq,
        reason=arrival.error if isinstance(arrival, ToolFailed) else "",
    )
    state.calls.made[ruling.command_id] = trace
    key, effects = (trace.tool, trace.arguments_hash), state.effects
    if ruling.code == UNVERIFIED:
        _leave_unverified(state, key)
    elif not is_in_doubt_besides(state, ruling.command_id):
        effects.uncommitted[key] = ruling.code
        effects.unknown.pop(key, None)
    _hear_outcome(state, trace, arrival)


def _said_of(command_id: str, arrival: Arrival, before: str) -> str:
    """What the tool, its check or its schema said of a call; where it was in doubt, what was said before it was known."""
    if type(arrival) in _ACCOUNTS:
        return before
    if type(arrival) is ToolFailed and arrival.command_id == command_id:
        return arrival.error
    if type(arrival) is ToolReturned and arrival.command_id == command_id:
        return arrival.refuted or unfit_result(arrival)
    return ""


def outcome_came_late(state: RunState, command_id: str, arrival: Arrival) -> None:
    """Keep what a tool told of its call after the run had ended: nothing is committed or counted any more.

    What an agent elsewhere tells of a call that was settled has no shape to keep.
    """
    is_checked = command_id in state.commands.open
    said = _said_of(command_id, arrival, "") if is_checked or isinstance(arrival, ToolFailed) else ""
    if isinstance(arrival, ToolReturned):
        code = contradicted_by(arrival) if is_checked else ""
        late = LateOutcome(
            seq=state.seq,
            code=code,
            reason=said,
            duration_ms=arrival.duration_ms,
            content=arrival.content,
            is_returned=True,
        )
    elif isinstance(arrival, ToolFailed):
        late = LateOutcome(seq=state.seq, code=arrival.code, reason=said, duration_ms=arrival.duration_ms)
    else:
        return  # Nothing else says more of a call in doubt than that it is unknown.
    state.end.late[command_id] = late
    if (trace := state.calls.made[command_id]).code == OUTCOME_UNKNOWN and not is_in_doubt_besides(state, command_id):
        state.effects.unknown.pop((trace.tool, trace.arguments_hash), None)


def outcome_contradicted(state: RunState, ruling: rulings.OutcomeContradicted, arrival: Arrival) -> None:
    """Keep what a call returned that was settled as not done: it is shown, and counts for nothing."""
    assert isinstance(arrival, ToolReturned), "only what returned contradicts that it was not done"
    state.end.addenda += state.end.ending is not None
    state.end.late[ruling.command_id] = LateOutcome(
        seq=state.seq,
        code=contradicted_by(arrival),
        reason=arrival.refuted or unfit_result(arrival),
        duration_ms=arrival.duration_ms,
        content=arrival.content,
        is_returned=True,
        was_denied=True,
    )


def _keep_flags(state: RunState, ruling: CallSettled, tool: str) -> None:
    for flag in ruling.lowered:
        state.calls.flags.pop(flag, None)
    for flag in ruling.raised:
        state.calls.flags.setdefault(flag, tool)


def _commit(state: RunState, command: commands.CallTool) -> None:
    """An observation became task state."""
    tool, effects = command.tool, state.effects
    effects.committed[tool] = effects.committed.get(tool, 0) + 1
    if effects.uncommitted:
        for key in made_good(state, command):
            del effects.uncommitted[key]
    if state.counts.failures_in_a_row:
        state.counts.failures_in_a_row.pop(tool, None)
    if command.mutating:
        _commit_effect(state, command)


def _count_failure(state: RunState, command: commands.CallTool, code: str) -> None:
    """A call failed; what it was to change is not changed, as far as is known."""
    tool = command.tool
    has_changed = state.effects.count > 0 or UNVERIFIED in state.effects.uncommitted.values()
    state.effects.failures_after_change += has_changed
    state.counts.failures_in_a_row[tool] = longer(
        state.counts.failures_in_a_row.get(tool), failed_as(code), state.counts.iterations
    )
    state.counts.calls_failed += 1
    state.counts.last_error = code
    if command.mutating:
        state.effects.uncommitted[tool, command.arguments_hash] = code
        if code == OUTCOME_UNKNOWN:
            state.effects.unknown[tool, command.arguments_hash] = command.key


def _commit_effect(state: RunState, command: commands.CallTool) -> None:
    state.effects.count += 1
    state.effects.failures_after_change = 0
    key = (command.tool, command.arguments_hash)
    for kept in (state.effects.uncommitted, state.effects.unknown, state.effects.denied):
        kept.pop(key, None)
    state.calls.repeats.clear()


def _leave_unverified(state: RunState, key: CallKey) -> None:
    """Something has changed as far as is known: others may be called again, and this call stays counted."""
    state.effects.uncommitted[key] = UNVERIFIED
    state.effects.unknown.pop(key, None)
    state.effects.denied.pop(key, None)
    state.effects.failures_after_change = 0
    state.counts.failures_in_a_row.pop(key[0], None)
    state.calls.repeats = {key: state.calls.repeats[key]} if key in state.calls.repeats else {}


def _hear_outcome(state: RunState, trace: CallTrace, arrival: Arrival) -> None:
    """Put the outcome of a call into the context, in the words of the tool or the person who told it."""
    if type(arrival) is ToolReturned:
        trace.content, trace.duration_ms = arrival.content, arrival.duration_ms
        message, bound = tool_message(trace.call_id, trace.tool, arrival.content), arrival.tokens_bound
        if arrival.critical and trace.rung is _COMMITTED:
            for name, value in arrival.critical:
                state.effects.critical.setdefault(name, (value, trace.tool))
        is_uncontradicted = trace.rung is _COMMITTED or trace.code == UNVERIFIED
        if arrival.stop_loop and is_uncontradicted and stops_loop(arrival, state.derived.tools[trace.tool]):
            state.result.stopped, state.result.answer, state.result.unsupported = True, arrival.content, ()
            state.result.violations = arrival.answer_violations
    elif type(arrival) is ToolFailed:
        trace.duration_ms = arrival.duration_ms
        message, bound = (
            notices.failure_notice(trace.call_id, trace.tool, arrival.code, arrival.error),
            arrival.tokens_bound,
        )
    elif isinstance(arrival, arrivals.ToolReconciled) and arrival.happened is arrivals.Happened.YES:
        trace.content = arrival.content
        message, bound = tool_message(trace.call_id, trace.tool, arrival.content), arrival.tokens_bound
    elif isinstance(arrival, arrivals.ToolReconciled | arrivals.OutcomeJudged):
        text = notices.HAPPENED if arrival.happened is arrivals.Happened.YES else notices.NOT_HAPPENED
        message, bound = tool_message(trace.call_id, trace.tool, text), notices.tokens_bound(text)
    else:
        return
    state.talk.context.append(message)
    state.talk.context_tokens += bound


def call_refused(state: RunState, ruling: rulings.ToolCallRefused, arrival: Arrival) -> None:
    """A proposal that was not issued, and what the model is told of it."""
    trace = CallTrace(
        ruling.call_id,
        ruling.tool,
        ruling.arguments_hash,
        Rung.INTENDED,
        ruling.mutating,
        arguments=_told_here_alone(state, ruling),
        code=ruling.code,
        seq=state.seq,
        reason=ruling.reason,
    )
    state.calls.refused.append(trace)
    state.calls.tried[ruling.tool] = True
    state.talk.context.append(notices.refusal_notice(ruling.call_id, ruling.tool, ruling.code, ruling.reason))
    state.talk.context_tokens += ruling.tokens_bound
    state.counts.last_error = ruling.code
    if isinstance(arrival, arrivals.ApprovalRefused) and _is_a_persons(state, arrival):
        state.people.turned_away[ruling.tool, ruling.arguments_hash] = arrival.by
    if ruling.is_a_no:
        state.people.noes += 1
        state.people.no_to = state.counts.iterations
    if ruling.unreleased:
        state.people.unreleased = ruling.unreleased
    if ruling.code in REJECTED:
        state.people.rejections += 1
    if is_denial(ruling):
        state.counts.denials += 1
    elif ruling.code in INVALID and state.counts.invalid_seq != state.seq:
        state.counts.invalid_in_a_row += 1
        state.counts.invalid_seq = state.seq
    elif ruling.code == Refusal.REPEATED_CALL:
        state.counts.repeats_blocked += 1
    key = (ruling.tool, ruling.arguments_hash)
    if ruling.mutating and state.effects.uncommitted.get(key) != UNVERIFIED:
        state.effects.uncommitted[key] = refused_as(state, ruling.tool, ruling.code)


def _told_here_alone(state: RunState, refused: rulings.ToolCallRefused) -> Text:
    """The arguments of a call that an agent elsewhere proposed; what a model proposed stands in the conversation."""
    if pinned(state).host is None:
        return ""
    return next((call.arguments for call in state.calls.proposed if call.arguments_hash == refused.arguments_hash), "")


def _is_a_persons(state: RunState, refused: arrivals.ApprovalRefused) -> bool:
    """Whether a no holds for the rest of the run: to an agent elsewhere it does, unless only a queue was full."""
    return pinned(state).host is not None and not refused.by.startswith(QUEUE_MARK)


def call_noted(state: RunState, ruling: rulings.CallNoted, arrival: Arrival) -> None:
    """Keep a note of a call that a boundary which only audits let pass."""
    for dimension, amount in ruling.releases:
        state.spending.caps[dimension] += amount
        state.spending.left[dimension] += amount


def calls_filtered(state: RunState, ruling: rulings.CallsFiltered, arrival: Arrival) -> None:
    """The calls as a filter left them."""
    if isinstance(arrival, arrivals.CodeFailed):
        reason = f"filter {ruling.name} failed: {arrival.error}"
        state.calls.proposed = tuple([replace(call, filtered=call.filtered or reason) for call in state.calls.proposed])
    state.calls.is_unjudged = False
    state.calls.filtered += 1


def fallback_chosen(state: RunState, ruling: rulings.FallbackChosen, arrival: Arrival) -> None:
    """Another tool is called in place of this one."""
    state.calls.replaced[ruling.command_id] = ruling.tool


def outcome_doubted(state: RunState, ruling: rulings.OutcomeDoubted, arrival: Arrival) -> None:
    """It is unknown what became of a call."""
    trace = state.calls.made[ruling.command_id]
    state.commands.doubted[ruling.command_id] = trace.code = ruling.reason
    state.commands.withheld.pop(ruling.command_id, None)
    if type(arrival) is ToolFailed and arrival.command_id == ruling.command_id:
        trace.reason = arrival.error
    elif type(arrival) is ToolReturned and arrival.command_id == ruling.command_id:
        trace.reason, trace.content, trace.duration_ms = unfit_result(arrival), arrival.content, arrival.duration_ms
    for flag in ruling.raised:
        state.calls.flags.setdefault(flag, trace.tool)
    state.counts.last_error = ruling.reason


def effect_unallowed(state: RunState, ruling: rulings.EffectUnallowed, arrival: Arrival) -> None:
    """A call was made that was not allowed: it counts as having happened, like an allowed call."""
    assert isinstance(arrival, TextShown), "an agent elsewhere tells of it"
    assert arrival.made is not None, "it says which call it made"
    call = arrival.made
    recount(state.spending.left, (), ruling.charged)
    state.calls.made[ruling.id] = CallTrace(
        call.call_id,
        call.tool,
        call.arguments_hash,
        Rung.OBSERVED,
        mutating=True,
        arguments=call.arguments,
        content=arrival.text,
        code=UNALLOWED,
        seq=state.seq,
        reason=ruling.reason,
    )
    state.effects.uncommitted[call.tool, call.arguments_hash] = UNALLOWED
    count_call(state, call.tool, call.arguments_hash)


def call_tool(state: RunState, command: commands.CallTool, arrival: Arrival) -> None:
    """A call was issued."""
    tool, arguments_hash, mutating = command.tool, command.arguments_hash, command.mutating
    count_call(state, tool, arguments_hash)
    if state.people.turned_away:
        state.people.turned_away.pop((tool, arguments_hash), None)
    # Without names, which take half as long again.
    state.calls.made[command.id] = CallTrace(
        command.call_id, tool, arguments_hash, _ATTEMPTED, mutating, command.arguments
    )
    if mutating:
        state.effects.uncommitted[tool, arguments_hash] = Rung.ATTEMPTED
    if command.amount:
        state.effects.purchased += command.amount
    if state.derived.tools[tool].fallback:
        state.calls.provenances[command.id] = _provenance_of(state, command)
    state.commands.blocking += 1
    open_command(state, command)


def count_call(state: RunState, tool: str, arguments_hash: bytes) -> None:
    """Count a call that was issued, whether the tool performs it, a child does, or a person is asked."""
    key, calls = (tool, arguments_hash), state.calls
    calls.repeats[key] = calls.repeats.get(key, 0) + 1
    calls.last_tool = tool
    calls.tried[tool] = True
    if tool in state.derived.rated:
        _keep_moment(state, tool)


def _keep_moment(state: RunState, tool: str) -> None:
    """Remember when a tool was called that has a rate, as far back as the rate counts."""
    for name, kept in state.derived.rated[tool]:
        moments = state.calls.called_at.setdefault(name, [])
        moments.append(state.at_ms)
        del moments[:-kept]


def _provenance_of(state: RunState, command: commands.CallTool) -> Provenance:
    """What the gate found about exactly this call; of another under the same id it says nothing."""
    is_like = (command.call_id, command.tool, command.arguments_hash)
    found = (c.provenance for c in state.calls.proposed if (c.call_id, c.tool, c.arguments_hash) == is_like)
    return next(found, Provenance.UNTRACED)
