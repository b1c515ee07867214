"""Folding decisions: what each ruling and each command leaves in the state.

Rule 1: a command that is open holds what it reserved; its settlement releases that and charges what it cost. What
        calls of tools leave beyond that stands in fold_calls.py.
Rule 2: nothing here judges, compares anything with a limit, or looks at the clock.
"""

from collections.abc import Callable, Mapping
from typing import Any

from remit.core.failure import Ending, InvariantBroken
from remit.core.journal import arrivals, commands, rulings
from remit.core.journal.arrivals import Arrival, PauseRequested, RunForked
from remit.core.journal.commands import AskHuman, Command, SetTimer
from remit.core.journal.rulings import CommandSettled, Rung
from remit.core.journal.turn import Decision
from remit.core.limits.budget import Dimension
from remit.core.record import Text, replace
from remit.core.run.messages import Message, user_message
from remit.core.work.goal import JUDGE_MARK
from remit.core.work.graph import CHILD_KINDS, NodeKind
from remit.core.work.values import Output
from remit.kernel.fold.fold_calls import (
    call_noted,
    call_refused,
    call_settled,
    call_tool,
    calls_filtered,
    count_call,
    effect_unallowed,
    fallback_chosen,
    open_command,
    outcome_came_late,
    outcome_contradicted,
    outcome_doubted,
    recount,
)
from remit.kernel.people.clock_stop import UNTOLD, standstill_after_child
from remit.kernel.results import notices
from remit.kernel.results.proven_effects import NOT_ANSWERED, never_made, place_of_child
from remit.kernel.state import RunState, pinned, stood_by_now
from remit.kernel.tally import WAITED_FOR, blocks, freezes
from remit.kernel.traces import CallTrace

_STEPS, _CLOCK = int(Dimension.STEPS), int(Dimension.WALL_CLOCK_MS)
# Members needed every turn; looking one up in its enum costs as much as the rest of the line.
_TERMINAL, _TOOL = NodeKind.TERMINAL, NodeKind.TOOL
_ATTEMPTED = Rung.ATTEMPTED


def _open(state: RunState, command: Command, arrival: Arrival) -> None:
    open_command(state, command)
    if blocks(command):
        state.commands.blocking += 1


def _settle(state: RunState, ruling: CommandSettled, arrival: Arrival) -> None:
    """Release what a command reserved and charge what it cost."""
    under_way = state.commands
    command = under_way.open.pop(ruling.command_id)
    recount(state.spending.left, command.reserved, ruling.charged)
    if under_way.withheld:
        under_way.withheld.pop(ruling.command_id, None)
    if type(command) in WAITED_FOR or blocks(command):
        under_way.blocking -= 1


def _nothing(state: RunState, decision: Decision, arrival: Arrival) -> None:
    """The ruling says why; what follows from it stands in the decisions beside it."""


def _enter_node(state: RunState, ruling: rulings.NodeEntered, arrival: Arrival) -> None:
    graph = state.derived.graph
    assert graph is not None, "the first turn pins the graph"
    place = state.place
    place.node = index = graph.index[ruling.node]
    place.entered_at_ms = state.at_ms
    kind = graph.nodes[index].kind
    if kind is _TERMINAL:
        return
    place.visits[index] += 1
    state.spending.left[_STEPS] -= 1
    state.calls.is_unjudged = False
    state.result.sent_back = ()
    if kind is _TOOL:
        state.result.stopped = False
    elif state.children.failed and kind in CHILD_KINDS:
        state.children.failed = 0


def _count_approval(state: RunState, ruling: rulings.ApprovalCounted, arrival: Arrival) -> None:
    state.people.approvals[ruling.command_id] = (*state.people.approvals.get(ruling.command_id, ()), ruling.by)


def _settle_question(state: RunState, ruling: rulings.QuestionSettled, arrival: Arrival) -> None:
    question = state.commands.open[ruling.command_id]
    assert isinstance(question, AskHuman)
    _settle(state, CommandSettled(question.id, question.reserved), arrival)
    state.people.asking -= 1
    if state.people.approvals:
        state.people.approvals.pop(question.id, None)
    for dimension, amount in ruling.releases:
        state.spending.caps[dimension] += amount
        state.spending.left[dimension] += amount
        if dimension == _CLOCK:
            state.clock.deadline_at_ms += amount
    if ruling.releases and freezes(question):
        state.place.parked = None
    for timer in [c for c in state.commands.open.values() if isinstance(c, SetTimer) and c.about == question.id]:
        del state.commands.open[timer.id]
    if question.packet is not None and not question.packet.about:
        call = question.packet.call
        state.effects.uncommitted.pop((call.tool, call.arguments_hash), None)
        if ruling.answer is rulings.Answer.WITHDRAWN:
            state.calls.withdrawn.append(never_made(state, call, NOT_ANSWERED))
        elif ruling.answer is not rulings.Answer.APPROVED and pinned(state).host is not None:
            # An agent elsewhere proposes one call after the other, and this is the one that is turned away.
            state.calls.proposed = (call,)


def _plan_retry(state: RunState, ruling: rulings.RetryPlanned, arrival: Arrival) -> None:
    state.counts.last_error = ruling.code


def _begin_wrap_up(state: RunState, ruling: rulings.WrapUpBegun, arrival: Arrival) -> None:
    state.talk.is_wrapping = True
    state.talk.context.append(user_message(notices.WRAP_UP))
    state.talk.context_tokens += ruling.tokens_bound


def _downgrade(state: RunState, ruling: rulings.ModelDowngraded, arrival: Arrival) -> None:
    state.talk.model_index += 1


def _compress(state: RunState, ruling: rulings.ContextCompressed, arrival: Arrival) -> None:
    for place in ruling.messages:
        entry = state.talk.context[place]
        assert isinstance(entry, Message), "only results are compressed"
        state.talk.context[place] = replace(entry, content=notices.compressed_notice(entry.content))
    state.talk.context_tokens -= ruling.tokens_saved
    state.talk.compressions += 1


def _fail_check(state: RunState, ruling: rulings.CheckFailed, arrival: Arrival) -> None:
    state.talk.context.append(notices.correction(ruling.problems))
    state.talk.context_tokens += ruling.tokens_bound
    state.counts.repairs += 1
    # Rulings of earlier versions have no code; they leave the last error as it was.
    state.counts.last_error = ruling.code or state.counts.last_error
    state.result.sent_back = ruling.problems
    state.result.problems.clear()
    state.result.objections.clear()
    state.result.warnings.clear()
    # What was counted was the answer that goes back; the next one is counted anew.
    state.result.checks_passed = state.result.checks_failed = 0


def _hear_validator(state: RunState, ruling: rulings.ValidatorHeard, arrival: Arrival) -> None:
    heard = state.result.objections if ruling.name.startswith(JUDGE_MARK) else state.result.problems
    heard.extend(ruling.problems)
    state.result.warnings.extend(ruling.warnings)
    state.result.is_final = state.result.is_final or ruling.is_final
    state.result.checks_passed += ruling.checks_passed
    state.result.checks_failed += ruling.checks_failed


def _finish_step(state: RunState, ruling: rulings.StepFinished, arrival: Arrival) -> None:
    text = _passed_on(state, ruling.step) if ruling.is_passed_on else _output_in(arrival)
    state.result.outputs[ruling.step] = Output(ruling.kind, text, ruling.command_id)
    state.result.answer, state.result.violations = text, ()
    state.result.unsupported = ()


def _passed_on(state: RunState, step: str) -> Text:
    graph = state.derived.graph
    assert graph is not None, "the first turn pins the graph"
    feed = graph.nodes[graph.index[step]].feed
    assert feed is not None, "only a step of a plan hands on what it was fed"
    return state.result.outputs[feed.source].text if feed.source else feed.value


def _output_in(arrival: Arrival) -> Text:
    """The words of an outcome that a step of a plan gave."""
    if isinstance(arrival, arrivals.CodeReturned):
        return arrival.value
    if isinstance(arrival, arrivals.ChildEnded):
        return arrival.text
    if isinstance(arrival, arrivals.ToolReturned | arrivals.ToolReconciled):
        return arrival.content
    # A person knows that a call happened, and not what came of it.
    return notices.HAPPENED


def _count_vote(state: RunState, ruling: rulings.VoteCounted, arrival: Arrival) -> None:
    winner = next(child for child in state.children.ended if child.command_id == ruling.winner)
    state.result.answer, state.result.violations = winner.text, ()
    state.result.unsupported = ()
    state.result.confidence_ppm = ruling.confidence_ppm


def _park(state: RunState, ruling: rulings.OutcomeParked, arrival: Arrival) -> None:
    state.place.parked = ruling


def _pause(state: RunState, ruling: rulings.RunPaused, arrival: Arrival) -> None:
    state.place.paused = True
    # A pause that is asked for while a halt holds the run is to last longer than the halt.
    state.place.halted = ruling if ruling.what else None
    state.place.paused_by = ruling.by if type(arrival) is PauseRequested else ""


def _withhold(state: RunState, ruling: rulings.CommandsWithheld, arrival: Arrival) -> None:
    state.commands.withheld |= dict.fromkeys(ruling.command_ids, True)


def _take_call(state: RunState, ruling: rulings.CallTaken, arrival: Arrival) -> None:
    state.commands.withheld.pop(ruling.command_id, None)
    # The proposal is that call, and no other.
    state.calls.proposed = ()


def _resume(state: RunState, ruling: rulings.RunResumed, arrival: Arrival) -> None:
    place, children = state.place, state.children
    for command_id in children.stood_before:
        if place.is_copy or command_id in state.commands.withheld:
            # That child begins only now: it has waited for no person while the clock stood until here.
            children.stood_before[command_id] = stood_by_now(state)
    place.paused, place.parked, place.halted = False, None, None
    place.paused_by, place.is_copy = "", False
    if pinned(state).host is None:
        state.commands.withheld.clear()  # Else they wait for the agent that makes them elsewhere.


def _await_child(state: RunState, ruling: rulings.ChildHeld, arrival: Arrival) -> None:
    state.children.waiting[ruling.command_id] = ruling.waiting_for


def _release_child(state: RunState, ruling: rulings.ChildReleased, arrival: Arrival) -> None:
    state.children.waiting.pop(ruling.command_id, None)
    # The child of the run that this is a copy of does not say here how long it waited.
    state.clock.standstill = (
        None if state.clock.standstill is None else standstill_after_child(state.clock.standstill, UNTOLD)
    )


def _settle_delegation(state: RunState, ruling: rulings.DelegationSettled, arrival: Arrival) -> None:
    for key in ruling.made_good:
        state.effects.uncommitted.pop(key, None)
    if ruling.code:
        key = (ruling.name, place_of_child(ruling.command_id))
        state.effects.uncommitted[key] = ruling.code
        if ruling.code == rulings.OUTCOME_UNKNOWN:
            # No key: nothing that this run calls is another attempt at it.
            state.effects.unknown[key] = ""


def _keep_entry(state: RunState, ruling: rulings.SessionEntryKept, arrival: Arrival) -> None:
    state.session[ruling.key] = ruling.value
    if state.end.ending is not None:
        state.end.addenda += 1


def _replace_sources(state: RunState, ruling: rulings.SourcesReplaced, arrival: Arrival) -> None:
    state.sources |= {source.name: source for source in ruling.sources}


def _note_addendum(state: RunState, ruling: rulings.AddendumNoted, arrival: Arrival) -> None:
    """The outcome of a call in doubt came after the ending: it is no longer open, it is kept, and nothing else changes.

    A call that was settled as of unknown outcome is in doubt, too.
    """
    state.end.addenda += 1
    if ruling.about in state.commands.doubted:
        del state.commands.doubted[ruling.about]
        command = state.commands.open[ruling.about]
        outcome_came_late(state, command.id, arrival)
        _settle(state, CommandSettled(ruling.about, command.reserved), arrival)
    elif ruling.about in state.calls.made:
        outcome_came_late(state, ruling.about, arrival)


def _end(state: RunState, ruling: rulings.RunEnded, arrival: Arrival) -> None:
    state.end.ending, state.end.error, state.end.message = ruling.ending, ruling.error, ruling.message
    state.end.seq, state.end.doubted = state.seq, ruling.doubted
    state.place.paused, state.place.parked, state.people.asking, state.place.halted = False, None, 0, None
    state.place.paused_by, state.place.is_copy = "", False
    # Where a question was asked anew before, its call was held on.
    state.calls.withdrawn = [trace for trace in state.calls.withdrawn if trace.seq == state.seq]
    state.commands.withheld.clear()
    if state.children.waiting and state.clock.standstill is not None:
        # A child that is cut off does not say how long it waited.
        state.clock.standstill = standstill_after_child(state.clock.standstill, UNTOLD)
    state.children.waiting.clear()
    state.children.stood_before.clear()
    for command_id in [command_id for command_id in state.commands.open if command_id not in state.commands.doubted]:
        _settle(state, CommandSettled(command_id), arrival)


def _call_model(state: RunState, command: commands.CallModel, arrival: Arrival) -> None:
    talk = state.talk
    if talk.pending:
        talk.context.extend(talk.pending)
        talk.context_tokens += talk.pending_tokens
        talk.pending.clear()
        talk.pending_tokens = 0
    if len(talk.context) != command.messages_count:
        message = f"command {command.id} shows {command.messages_count} messages and the run has {len(talk.context)}"
        raise InvariantBroken("CONTEXT_MISCOUNTED", message)
    state.counts.attempt = command.attempt
    state.commands.blocking += 1
    open_command(state, command)


def _ask_human(state: RunState, command: AskHuman, arrival: Arrival) -> None:
    state.people.asking += 1
    if command.packet is not None and not command.packet.about:
        call = command.packet.call
        if state.derived.tools[call.tool].effect.is_mutating:
            state.effects.uncommitted[call.tool, call.arguments_hash] = Ending.CONFIRM_REQUIRED
    if command.call_id:
        _trace_question(state, command, is_asked_again=command.silences > 0 or type(arrival) is RunForked)
    _open(state, command, arrival)


def _trace_question(state: RunState, command: AskHuman, *, is_asked_again: bool) -> None:
    """A call of a tool that asks a person is traced under its question, and under the next one where that had no answer."""
    if is_asked_again:
        before = next(key for key, trace in state.calls.made.items() if _is_unanswered(state, key, trace, command))
        state.calls.made[command.id] = state.calls.made.pop(before)
        return
    # Other arguments than were proposed are a person's, who stands in the arrival; they are not repeated here.
    arguments = (call.arguments for call in state.calls.proposed if call.arguments_hash == command.arguments_hash)
    count_call(state, command.tool, command.arguments_hash)
    state.calls.made[command.id] = CallTrace(
        command.call_id, command.tool, command.arguments_hash, _ATTEMPTED, arguments=next(arguments, "")
    )


def _is_unanswered(state: RunState, key: str, trace: CallTrace, command: AskHuman) -> bool:
    """Whether a trace is of the question that is passed on: providers repeat their call ids, so more than that must fit."""
    is_same = (trace.call_id, trace.tool, trace.arguments_hash) == (
        command.call_id,
        command.tool,
        command.arguments_hash,
    )
    return is_same and trace.rung is _ATTEMPTED and not trace.code and key not in state.commands.open


def _warn_of_grounding(state: RunState, ruling: rulings.GroundingViolated, arrival: Arrival) -> None:
    if ruling.only_warns:
        state.result.warnings.extend(ruling.claims)


def _start_child(state: RunState, command: commands.StartChild, arrival: Arrival) -> None:
    if command.call_id:
        count_call(state, command.tool, command.arguments_hash)
        state.calls.made[command.id] = CallTrace(
            command.call_id, command.tool, command.arguments_hash, _ATTEMPTED, arguments=command.prompt
        )
    state.children.stood_before[command.id] = stood_by_now(state)
    state.children.runs[command.id] = command.run_id
    _open(state, command, arrival)


def _part(state: RunState, command: Command, arrival: Arrival) -> None:
    state.commands.parting.append(command)


APPLIED: Mapping[type[Decision], Callable[[RunState, Any, Arrival], object]] = {
    rulings.RunAccepted: _nothing,
    rulings.NodeEntered: _enter_node,
    rulings.CommandSettled: _settle,
    rulings.CallSettled: call_settled,
    rulings.ToolCallRefused: call_refused,
    rulings.CallNoted: call_noted,
    rulings.CallsFiltered: calls_filtered,
    rulings.FallbackChosen: fallback_chosen,
    rulings.ApprovalCounted: _count_approval,
    rulings.OutcomeContradicted: outcome_contradicted,
    rulings.OutcomeDoubted: outcome_doubted,
    rulings.QuestionSettled: _settle_question,
    rulings.ChildHeld: _await_child,
    rulings.ChildReleased: _release_child,
    rulings.DelegationSettled: _settle_delegation,
    rulings.RetryPlanned: _plan_retry,
    rulings.UsageExceeded: _nothing,
    rulings.StoppedEarly: _nothing,
    rulings.WrapUpBegun: _begin_wrap_up,
    rulings.ModelDowngraded: _downgrade,
    rulings.ContextCompressed: _compress,
    rulings.CheckFailed: _fail_check,
    rulings.ValidatorHeard: _hear_validator,
    rulings.StepFinished: _finish_step,
    rulings.VoteCounted: _count_vote,
    rulings.GroundingViolated: _warn_of_grounding,
    rulings.OutcomeParked: _park,
    rulings.RunPaused: _pause,
    rulings.CommandsWithheld: _withhold,
    rulings.RunResumed: _resume,
    rulings.FeedbackTaken: _nothing,
    rulings.SessionEntryKept: _keep_entry,
    rulings.SourcesReplaced: _replace_sources,
    rulings.CallTaken: _take_call,
    rulings.EffectUnallowed: effect_unallowed,
    rulings.AddendumNoted: _note_addendum,
    rulings.RunEnded: _end,
    commands.CallModel: _call_model,
    commands.CallTool: call_tool,
    commands.ReconcileTool: _open,
    commands.CallCode: _open,
    commands.Retrieve: _open,
    commands.AskHuman: _ask_human,
    commands.SetTimer: _open,
    commands.StartChild: _start_child,
    commands.CancelCommand: _part,
    commands.ForkRun: _part,
}
