"""Endings: which code ends a run, whether SUCCESS was earned, and what is released.

Rule 1: every ending is reached through a terminal of the graph; head_for() names the outcome that leads there.
Rule 2: SUCCESS is earned: nothing the run proposed to change may be left uncommitted.
Rule 3: whatever is still open when a run ends is cancelled; a mutating call that was cut off stays in doubt.
Rule 4: an ending that leaves an effect in doubt names it and hands it to a person, whatever its code.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from remit.core.failure import NO_DENIALS, REFUSALS, Denials, Ending, ErrorCode, Refusal, denials_of
from remit.core.journal.commands import (
    AskHuman,
    CallTool,
    CancelCommand,
    Command,
    ReconcileTool,
    SetTimer,
    StartChild,
)
from remit.core.journal.rulings import (
    NOT_TAKEN,
    OUTCOME_UNKNOWN,
    UNVERIFIED,
    Answer,
    CallSettled,
    CommandSettled,
    GroundingViolated,
    OutcomeDoubted,
    QuestionSettled,
    RunEnded,
    Rung,
    ToolCallRefused,
)
from remit.core.limits.escalation import TRIGGER_OF, Trigger, escalation_of, trigger_of_call
from remit.core.limits.tools import ToolChoiceMode
from remit.core.work.graph import EndingClass, Node, NodeOutcome
from remit.kernel.results.proven_effects import (
    UNDONE,
    happened_calls,
    has_changed_anything,
    unknown_effects,
    unproven_effects,
    unproven_in_words,
)
from remit.kernel.state import CallKey, RunState, pinned
from remit.kernel.tally import Tally
from remit.kernel.traces import CallTrace

# One denial may be a slip; from the second on a person should look.
DENIALS_NOTED = 2
# Three refusals for want of permission, by the boundary or by people, look like an attack, not like a mistake.
DENIALS_MAX = 3
# What a message names of effects; of a name, more than any tool has with its digest.
NAMES_SHOWN_MAX = 10
NAME_CHARS_MAX = 80
# Refusals for want of authority.
DENIED = frozenset({Refusal.PERMISSION_DENIED, Refusal.NOT_OFFERED, Refusal.DEPTH_EXCEEDED})

CLASS_OF: Mapping[Ending, EndingClass] = MappingProxyType(
    {
        Ending.SUCCESS: EndingClass.SUCCESS,
        Ending.PARTIAL_SUCCESS: EndingClass.SUCCESS,
        Ending.IMPOSSIBLE: EndingClass.FAILURE,
        Ending.VALIDATION_FAIL: EndingClass.FAILURE,
        Ending.REPEATED_FAILURE: EndingClass.FAILURE,
        Ending.UNAVAILABLE_DEP: EndingClass.FAILURE,
        Ending.TIMEOUT: EndingClass.CANCELLATION,
        Ending.USER_CANCEL: EndingClass.CANCELLATION,
        Ending.BUDGET_EXHAUSTED: EndingClass.EXHAUSTION,
        Ending.MISSING_INFO: EndingClass.ESCALATION,
        Ending.AMBIGUOUS_INTENT: EndingClass.ESCALATION,
        Ending.CONFIRM_REQUIRED: EndingClass.ESCALATION,
        Ending.REVIEW_REQUIRED: EndingClass.ESCALATION,
        Ending.LOW_CONFIDENCE: EndingClass.ESCALATION,
        Ending.SOURCE_CONFLICT: EndingClass.ESCALATION,
        Ending.PERMISSION_DENIED: EndingClass.ESCALATION,
        Ending.UNSAFE_DETECTION: EndingClass.ESCALATION,
    }
)

_OUTCOME_OF_CLASS = {
    EndingClass.FAILURE: NodeOutcome.FAILED,
    EndingClass.CANCELLATION: NodeOutcome.CANCELLED,
    EndingClass.ESCALATION: NodeOutcome.ESCALATED,
    EndingClass.EXHAUSTION: NodeOutcome.EXHAUSTED,
}

# What a terminal means when nothing more exact was said on the way to it.
_DEFAULT_OF_CLASS = {
    EndingClass.SUCCESS: Ending.SUCCESS,
    EndingClass.FAILURE: Ending.IMPOSSIBLE,
    EndingClass.CANCELLATION: Ending.USER_CANCEL,
    EndingClass.ESCALATION: Ending.REVIEW_REQUIRED,
    EndingClass.EXHAUSTION: Ending.BUDGET_EXHAUSTED,
}


def head_for(tally: Tally, ending: Ending, error: ErrorCode | None = None, message: str = "") -> str:
    """Remember how the run is to end and name the outcome that leads to such a terminal."""
    tally.ending, tally.error, tally.message = ending, error, message
    return _OUTCOME_OF_CLASS[CLASS_OF[ending]]


def refuse_success(tally: Tally, node: Node) -> str | None:
    """The outcome that leads elsewhere when this is a success terminal and nothing the run proposed was done."""
    if node.ending is not EndingClass.SUCCESS or not (unproven := unproven_effects(tally)):
        return None
    # What no call was ever made of leaves something undone; only what was refused or attempted can be a false claim.
    decisive = {code for code in unproven.values() if code not in UNDONE}
    if unknown := {**unknown_effects(tally), **_under_way(tally)}:
        return head_for(
            tally,
            Ending.REVIEW_REQUIRED,
            message=f"nobody knows what became of {listed_names(listed_effects(unknown))}",
        )
    return _refuse_success(tally, unproven, decisive) if decisive and not has_changed_anything(tally) else None


def _under_way(tally: Tally) -> Mapping[CallKey, str]:
    """The effects whose calls are under way: where the run ends now, it is unknown whether they happen."""
    commands = [one for one in tally.state.commands.open.values() if isinstance(one, CallTool)]
    calls = [tally.state.calls.made[one.id] for one in commands if not has_outcome(tally, one.id)]
    return {(one.tool, one.arguments_hash): OUTCOME_UNKNOWN for one in calls if one.mutating}


def enter_terminal(tally: Tally, node: Node) -> None:
    """End the run here. A success with some effects left undone is a partial one."""
    assert node.ending is not None, "compile_graph() refuses a terminal without an ending"
    ending = _ending_at(tally, node.ending)
    if node.ending is EndingClass.SUCCESS and (unproven := unproven_effects(tally)):
        ending = Ending.PARTIAL_SUCCESS
        tally.message = _what_is_missing(unproven, happened_calls(tally.state))
    _leave_nothing_open(tally)
    doubted = listed_effects(_left_in_doubt(tally))
    # No question about them follows any more, so a person who is asked otherwise is told.
    trigger = _trigger_of(tally, ending) or (TRIGGER_OF[Ending.REVIEW_REQUIRED] if doubted else None)
    queues = tally.manifest.boundary.queues
    escalation = None if trigger is None else escalation_of(trigger, queues, is_grave=bool(doubted))
    tally.rule(RunEnded(ending, tally.error, tally.message, escalation, doubted))


def _what_is_missing(unproven: Mapping[CallKey, str], happened: Collection[CallTrace]) -> str:
    """What a run that answered has not done or not proven, in words for its user. What was done may be undone once more."""
    undone = {key: code for key, code in unproven.items() if code != UNVERIFIED}
    done = {(call.tool, call.arguments_hash) for call in happened}
    more = listed_effects({key: code for key, code in undone.items() if key in done})
    left = listed_effects({key: code for key, code in undone.items() if key not in done})
    unverified = {tool for (tool, _), code in unproven.items() if code == UNVERIFIED}
    unverified |= {call.tool for call in happened if call.rung is not Rung.COMMITTED}
    said = [f"not done: {listed_names([*left, *[f'{name} (once more)' for name in more]])}"] if undone else []
    if unverified:
        said.append(
            f"not verified: {listed_names(unverified)} returned, and nothing could have refused it; declare `verify`"
        )
    return "; ".join(said)


def listed_effects(unproven: Mapping[CallKey, str]) -> tuple[str, ...]:
    """Effects as messages name them, each once."""
    return tuple(
        sorted({unproven_in_words(tool[:NAME_CHARS_MAX], digest, code) for (tool, digest), code in unproven.items()})
    )


def listed_names(names: Collection[str]) -> str:
    """Names as a message lists them, in order; a model may make up as many as it likes, so the rest is counted."""
    shown = sorted(names)[:NAMES_SHOWN_MAX]
    more = len(names) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)


def _left_in_doubt(tally: Tally) -> Mapping[CallKey, str]:
    """The effects of which it is unknown whether they happened when the run ends here."""
    now = [ruling.command_id for ruling in tally.decisions if isinstance(ruling, OutcomeDoubted)]
    doubted = [command_id for command_id in (*tally.state.commands.doubted, *now) if not has_outcome(tally, command_id)]
    traces = [tally.state.calls.made[command_id] for command_id in doubted]
    keys = dict.fromkeys([(trace.tool, trace.arguments_hash) for trace in traces], OUTCOME_UNKNOWN)
    return {**keys, **unknown_effects(tally)}


def _trigger_of(tally: Tally, ending: Ending) -> Trigger | None:
    """What an ending hands on: a confirmation that never came is about its call, and one denial is no pattern yet."""
    if ending is Ending.CONFIRM_REQUIRED:
        tools = [tool for tool, _ in unproven_effects(tally) if tool in tally.state.derived.tools]
        return trigger_of_call(tally.state.derived.tools[tools[0]]) if tools else TRIGGER_OF[ending]
    if ending is Ending.PERMISSION_DENIED:
        denials = times_denied(tally) + times_turned_away(tally)
        return TRIGGER_OF[ending] if denials >= DENIALS_NOTED else None
    return TRIGGER_OF.get(ending)


def is_denial(refused: ToolCallRefused) -> bool:
    """Whether the boundary denied a call: for want of authority, or by a condition."""
    return refused.is_denial or refused.code in DENIED


def times_denied(tally: Tally) -> int:
    """How many calls the boundary has denied, this turn included: here, above and beneath."""
    now = sum(isinstance(ruling, ToolCallRefused) and is_denial(ruling) for ruling in tally.decisions)
    return tally.state.counts.denials + now + tally.denied_below.by_boundary


def times_turned_away(tally: Tally) -> int:
    """Of how many answers people have turned calls away, this turn included: here, above and beneath."""
    return tally.state.people.noes + tally.is_a_no + tally.denied_below.answers


def stop_for_denials(tally: Tally) -> str | None:
    """The outcome that ends a run which was denied authority once too often; None while it was not."""
    if (noes := times_turned_away(tally)) >= DENIALS_MAX:
        message = f"people said no to calls of {noes} answers, denials_max={DENIALS_MAX}"
        return head_for(tally, Ending.PERMISSION_DENIED, message=message)
    # In this turn at most so many were denied as were decided on; most turns need not look at them.
    denials_most = tally.state.counts.denials + len(tally.decisions) + tally.denied_below.by_boundary
    if denials_most >= DENIALS_MAX and (denials := times_denied(tally)) >= DENIALS_MAX:
        message = f"{denials} calls were denied, denials_max={DENIALS_MAX}"
        return head_for(tally, Ending.PERMISSION_DENIED, message=message)
    return None


def denied_by(state: RunState) -> Denials:
    """What a run and those beneath it were denied, for the run that started it.

    One that is offered no tools attempts nothing: what it proposes is refused, and told, and no more.
    """
    manifest = pinned(state)
    if manifest.request.tool_choice.mode is ToolChoiceMode.NONE:
        return NO_DENIALS
    above = manifest.denials
    return denials_of(
        state.counts.denials - above.by_boundary,
        state.people.noes - above.answers,
        state.people.rejections - above.approvals,
    )


def _ending_at(tally: Tally, terminal: EndingClass) -> Ending:
    if tally.ending is None:
        return _DEFAULT_OF_CLASS[terminal]
    if CLASS_OF[tally.ending] is terminal:
        return tally.ending
    # A graph may lead a failure to a success terminal: then something is missing, and the code says so.
    return Ending.PARTIAL_SUCCESS if terminal is EndingClass.SUCCESS else _DEFAULT_OF_CLASS[terminal]


def _refuse_success(tally: Tally, unproven: Mapping[CallKey, str], decisive: Collection[str]) -> str:
    claims = listed_effects(unproven)
    endings = {REFUSALS[Refusal(code)].ending for code in decisive if code in REFUSALS}
    if all(code in REFUSALS for code in decisive):
        # Refusals of several kinds: the strictest reading is that authority was missing.
        ending = endings.pop() if len(endings) == 1 else Ending.PERMISSION_DENIED
        return head_for(tally, ending, message=f"refused: {listed_names(claims)}{_why_refused(tally)}")
    tally.rule(GroundingViolated(claims[:NAMES_SHOWN_MAX]))
    message = f"answered although never observed to have happened: {listed_names(claims)}"
    return head_for(tally, Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_SEMANTIC_FAILED, message)


def _why_refused(tally: Tally) -> str:
    """The reason of the latest refusal of a call that would have changed something."""
    now = [ruling.reason for ruling in tally.decisions if isinstance(ruling, ToolCallRefused) and _is_decisive(ruling)]
    before = [trace.reason for trace in tally.state.calls.refused if _is_decisive(trace)]
    reasons = [*before, *now]
    return f" ({reasons[-1]})" if reasons else ""


def _is_decisive(refused: ToolCallRefused | CallTrace) -> bool:
    return refused.mutating and refused.code in REFUSALS


def _leave_nothing_open(tally: Tally) -> None:
    """Take back what this turn issued but no executor has been told, and cancel everything still open."""
    tally.take_back_issued()
    for command in tally.state.commands.open.values():
        if not has_outcome(tally, command.id):
            _cancel(tally, command)


def has_outcome(tally: Tally, command_id: str) -> bool:
    """Whether this turn has settled a command; the state holds it open until the turn is applied."""
    settled = CommandSettled | CallSettled | QuestionSettled
    return any(isinstance(decision, settled) and decision.command_id == command_id for decision in tally.decisions)


def _cancel(tally: Tally, command: Command) -> None:
    if isinstance(command, SetTimer | ReconcileTool):
        return
    if isinstance(command, AskHuman):
        tally.rule(QuestionSettled(command.id, Answer.WITHDRAWN))
        return
    child = command.run_id if isinstance(command, StartChild) else ""
    tally.issue(CancelCommand(tally.next_id(), command.id, run_id=child))
    if not isinstance(command, CallTool):
        # What was cut off may have cost all that was reserved for it.
        tally.rule(CommandSettled(command.id, command.reserved))
    elif command.id in tally.unbegun:
        # It is known not to have happened, and cost nothing.
        tally.rule(CallSettled(command.id, Rung.OBSERVED, code=ErrorCode.CANCELLED_SIGNAL))
    elif tally.manifest.host is not None and command.id in tally.state.commands.withheld:
        leave_untaken(tally, command)
    elif not command.mutating or command.id in tally.state.commands.withheld:
        tally.rule(CallSettled(command.id, Rung.ATTEMPTED, command.reserved, code=ErrorCode.CANCELLED_SIGNAL))
    elif not _is_doubted(tally, command.id):
        tally.rule(OutcomeDoubted(command.id, ErrorCode.CANCELLED_SIGNAL))


def leave_untaken(tally: Tally, command: CallTool) -> None:
    """Settle a call that a person approved and the agent elsewhere never came for: it was not made, and costs nothing."""
    tally.blocking -= 1
    tally.rule(CallSettled(command.id, Rung.INTENDED, code=NOT_TAKEN))
    tally.note_effect(command.tool, command.arguments_hash, NOT_TAKEN)


def _is_doubted(tally: Tally, command_id: str) -> bool:
    """Whether a call is in doubt already, since an earlier turn or this one."""
    doubted = (decision.command_id for decision in tally.decisions if isinstance(decision, OutcomeDoubted))
    return command_id in tally.state.commands.doubted or command_id in doubted
