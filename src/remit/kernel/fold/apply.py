"""apply(): fold one turn into the state. Only it changes a RunState; decisions in fold_decisions.py and fold_calls.py.

Rule 1: applying never judges: what a turn says is taken as it stands, so old journals survive new rules. The few things
        it asks of the rules (`blocks`, `longer`, `stops_loop`, `is_denial`, `INVALID`) give words of old
        journals their meaning: a change to one of them changes how old runs fold.
Rule 2: an arrival leaves its words in the state, a ruling its judgement, a command that it is open.
Rule 3: folding the turns of a run from the first one gives exactly the live state.
"""

from collections.abc import Callable, Mapping
from typing import Any

from remit.core.failure import ANSWERED, Refusal
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival, RunStarted
from remit.core.journal.commands import AskHuman, StartChild
from remit.core.journal.rulings import OUTCOME_UNKNOWN, Rung
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Dimension
from remit.core.record import Text
from remit.core.run.messages import Message, tool_message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.goal import JUDGE_MARK
from remit.core.work.plan import PLAN_SAID
from remit.kernel.children import child_trace
from remit.kernel.fold.derived import derived_of
from remit.kernel.fold.fold_decisions import APPLIED
from remit.kernel.people.clock_stop import UNTOLD, proven_ms, standstill_after_child, standstill_after_turn, waited_ms
from remit.kernel.results import notices
from remit.kernel.results.doubt import LOST
from remit.kernel.results.proven_effects import unproven_in_child
from remit.kernel.rules.human import no_answer
from remit.kernel.state import (
    CONTEXT_FAILED,
    Counts,
    People,
    RunClock,
    RunPlace,
    RunState,
    Spending,
    Talk,
    pinned,
    waited_beyond,
)
from remit.kernel.traces import ChildTrace


def apply(state: RunState, turn: Turn, head: bytes) -> None:
    """Fold a turn; `head` is the hash of its bytes, which the next turn will carry."""
    arrival = turn.arrival
    state.seq, state.at_ms, state.head = turn.seq, turn.at_ms, head
    hear = HEARD.get(type(arrival))
    if hear is not None and state.end.ending is None:
        hear(state, arrival)
    for decision in turn.decisions:
        APPLIED[type(decision)](state, decision, arrival)
    if state.people.asking or state.place.paused or state.children.waiting or state.clock.is_standing:
        _wind_clock(state)


def opened_state(arrival: RunStarted, at_ms: int, into: RunState | None = None) -> RunState:
    """The state of a run that has just started, before anything was decided: a new one, or one to be filled."""
    manifest = arrival.manifest
    state = RunState.__new__(RunState) if into is None else into
    derived = derived_of(manifest)
    assert derived.graph is not None, "a manifest holds a graph"
    deadline = at_ms + manifest.caps[Dimension.WALL_CLOCK_MS]
    RunState.__init__(
        state,
        run_id=manifest.run_id,
        at_ms=at_ms,
        manifest=manifest,
        derived=derived,
        place=RunPlace(visits=[0] * len(derived.graph.nodes)),
        clock=RunClock(at_ms, min(deadline, manifest.deadline_at_ms or deadline)),
        spending=Spending(list(manifest.caps), list(manifest.caps)),
        people=People(rejections=manifest.denials.approvals, noes=manifest.denials.answers),
        talk=Talk(
            context=list(manifest.request.messages),
            context_tokens=arrival.messages_tokens_bound,
            offer_tokens=arrival.offer_tokens_bound,
        ),
        counts=Counts(denials=manifest.denials.by_boundary),
        session=dict(manifest.session.entries) if manifest.session is not None else {},
        sources={source.name: source for source in manifest.sources},
    )
    return state


def _hear_start(state: RunState, arrival: RunStarted) -> None:
    if state.manifest is not None:
        return  # It was opened to decide on its start.
    seq, head = state.seq, state.head
    opened_state(arrival, state.at_ms, into=state)
    state.seq, state.head = seq, head


def _wind_clock(state: RunState) -> None:
    """Let the deadline move along while a person is waited for.

    A standstill is counted by itself, as soon as its last child has ended: not all of it may have been waiting.
    """
    own = 0 if state.end.ending is not None else state.people.asking + state.place.paused
    is_standing, awaits_child = own > 0 or bool(state.children.waiting), bool(state.children.waiting)
    if is_standing != state.clock.is_standing or awaits_child != (state.clock.standstill is not None):
        if state.clock.is_standing:
            _count_standing(state)
        state.clock.is_standing, state.clock.standing_since_ms = is_standing, state.at_ms
    state.clock.standstill = standstill_after_turn(state.clock.standstill, state.at_ms, own) if awaits_child else None


def _count_standing(state: RunState) -> None:
    stood_ms = state.at_ms - state.clock.standing_since_ms
    if state.clock.standstill is not None:
        stood_ms = waited_ms(state.clock.standstill, state.at_ms)
        state.clock.supposed_ms += stood_ms - proven_ms(state.clock.standstill, state.at_ms)
    state.clock.stood_ms += stood_ms
    state.clock.deadline_at_ms += stood_ms


def _say(state: RunState, message: Message, tokens_bound: int) -> None:
    state.talk.context.append(message)
    state.talk.context_tokens += tokens_bound


def _hear_taken(state: RunState, arrival: arrivals.RunTaken) -> None:
    state.token = arrival.token


def _hear_answer(state: RunState, arrival: arrivals.ModelAnswered) -> None:
    text, proposed = arrival.text, arrival.calls
    talk, calls = state.talk, state.calls
    if proposed or text:
        # An answer that says nothing is tried again; no model wants to be shown an empty message.
        talk.context.append(arrival)
        talk.context_tokens += arrival.tokens_bound
    _hear_usage(talk, arrival.usage)
    state.counts.iterations += 1
    calls.proposed, calls.is_unjudged, calls.filtered = proposed, len(proposed) > 0, 0
    state.people.unreleased = ""
    if text:
        result = state.result
        result.answer, result.violations = text, arrival.violations
        result.unsupported, result.ungrounded = arrival.unsupported, arrival.ungrounded


def _hear_model_failure(state: RunState, arrival: arrivals.ModelFailed) -> None:
    _hear_usage(state.talk, arrival.usage)
    state.counts.last_error, state.end.is_final = arrival.code, arrival.is_final


def _hear_usage(talk: Talk, usage: TokenUsage) -> None:
    talk.prompt_tokens += usage.prompt_tokens
    talk.reasoning_tokens += usage.reasoning_tokens
    talk.output_tokens += usage.output_tokens


def _hear_code(state: RunState, arrival: arrivals.CodeReturned) -> None:
    if arrival.calls:
        state.calls.proposed, state.calls.is_unjudged, state.people.unreleased = arrival.calls, True, ""
        if not arrival.is_filtered:
            state.calls.filtered = 0
        if arrival.tokens_bound:
            # The model is shown look-ups that were made for its orders like calls of its own.
            state.talk.context.append(arrivals.ModelAnswered(arrival.command_id, calls=arrival.calls))
            state.talk.context_tokens += arrival.tokens_bound
    elif arrival.kind == PLAN_SAID:
        _say(state, user_message(arrival.value), notices.whole_bound(arrival.value))


def _hear_proposal(state: RunState, arrival: arrivals.CallProposed) -> None:
    state.calls.proposed, state.people.unreleased = (arrival.call,), ""


def _hear_context(state: RunState, arrival: arrivals.ContextFound) -> None:
    state.talk.ephemeral, state.talk.relevance_ppm = arrival.text, arrival.relevance_ppm
    state.talk.context_tokens += arrival.tokens_bound


def _hear_no_context(state: RunState, arrival: arrivals.ContextFailed) -> None:
    state.counts.last_error = CONTEXT_FAILED


def _hear_feedback(state: RunState, arrival: arrivals.FeedbackGiven) -> None:
    state.talk.pending.append(user_message(arrival.text))
    state.talk.pending_tokens += arrival.tokens_bound


def _hear_fork(state: RunState, arrival: arrivals.RunForked) -> None:
    """Let the model know why there is a fork, before it is asked again. A pause of its origin is none of its own."""
    state.place.is_copy, state.place.paused_by = True, ""
    origin = pinned(state).forked_from
    why = arrival.why if arrival.why is not None or origin is None else origin.why
    if why:
        state.talk.pending.append(user_message(why))
        state.talk.pending_tokens += notices.tokens_bound(why)


def _hear_question_answered(state: RunState, arrival: arrivals.QuestionAnswered) -> None:
    question = state.commands.open[arrival.command_id]
    assert isinstance(question, AskHuman)
    if not question.call_id:
        _say(state, user_message(arrival.text), arrival.tokens_bound)
        return
    trace = state.calls.made[question.id]
    trace.rung, trace.content = Rung.OBSERVED, arrival.text
    _say(state, tool_message(question.call_id, question.tool, arrival.text), arrival.tokens_bound)


def _hear_refusal(state: RunState, arrival: arrivals.ApprovalRefused) -> None:
    """Tell the model that a person does not answer what it asked; a held call is told about when it is refused."""
    question = state.commands.open[arrival.command_id]
    if isinstance(question, AskHuman) and question.call_id:
        message = no_answer(question, arrival.by, arrival.reason)
        state.calls.made[question.id].code = Refusal.APPROVAL_REJECTED
        _say(state, message, notices.whole_bound(message.content))


def _hear_child(state: RunState, arrival: arrivals.ChildEnded) -> None:
    is_failed = arrival.ending not in ANSWERED
    failed = arrival.ending if is_failed else ""
    _hear_from_child(state, arrival.command_id, arrival.text, arrival.tokens_bound, failed, arrival.stood_ms)
    _trace_child(state, child_trace(state, arrival))
    for tool, times in arrival.observed:
        state.effects.observed_below[tool] = state.effects.observed_below.get(tool, 0) + times
    state.counts.denials += arrival.denials.by_boundary
    state.people.noes += arrival.denials.answers
    state.people.rejections += arrival.denials.approvals
    if arrival.left or arrival.refused:
        claims = unproven_in_child(arrival)
        state.effects.uncommitted.update(claims)
        # No key: nothing that this run calls is another attempt at it.
        state.effects.unknown.update({key: "" for key, code in claims.items() if code == OUTCOME_UNKNOWN})


def _hear_lost_child(state: RunState, arrival: arrivals.ChildLost) -> None:
    bound = notices.tokens_bound(notices.CHILD_LOST)
    _hear_from_child(state, arrival.command_id, notices.CHILD_LOST, bound, LOST, UNTOLD)
    _trace_child(state, child_trace(state, arrival))


def _trace_child(state: RunState, trace: ChildTrace) -> None:
    if trace.node:
        state.children.ended.append(trace)


def _hear_from_child(
    state: RunState, command_id: str, text: Text, tokens_bound: int, failed: str, stood_ms: int
) -> None:
    command = state.commands.open[command_id]
    assert isinstance(command, StartChild)
    if state.children.waiting.pop(command_id, None) is not None and state.clock.standstill is not None:
        state.clock.standstill = standstill_after_child(
            state.clock.standstill, waited_beyond(state, command_id, stood_ms)
        )
    del state.children.stood_before[command_id]
    if command.kind.startswith(JUDGE_MARK):
        return
    if failed:
        state.children.failed += 1
        state.counts.last_error = failed
    if command.call_id:
        trace = state.calls.made[command_id]
        trace.rung, trace.content, trace.code = Rung.OBSERVED, text, failed
        _say(state, tool_message(command.call_id, command.tool, text), tokens_bound)
    else:
        _say(state, user_message(text), tokens_bound)


HEARD: Mapping[type[Arrival], Callable[[RunState, Any], None]] = {
    arrivals.RunStarted: _hear_start,
    arrivals.ModelAnswered: _hear_answer,
    arrivals.ModelFailed: _hear_model_failure,
    arrivals.CodeReturned: _hear_code,
    arrivals.ContextFound: _hear_context,
    arrivals.ContextFailed: _hear_no_context,
    arrivals.FeedbackGiven: _hear_feedback,
    arrivals.RunForked: _hear_fork,
    arrivals.RunTaken: _hear_taken,
    arrivals.QuestionAnswered: _hear_question_answered,
    arrivals.ApprovalRefused: _hear_refusal,
    arrivals.ChildEnded: _hear_child,
    arrivals.ChildLost: _hear_lost_child,
    arrivals.CallProposed: _hear_proposal,
}
