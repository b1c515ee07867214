"""Doubt: mutating calls whose outcome is unknown. They are never repeated and never assumed.

Rule 1: a call in doubt stays open until its late outcome, its tool's own account, or a person settles it.
Rule 2: its tool is asked first, if it can be; then a person. When neither can be asked, the run ends for review.
Rule 3: what was said not to have happened, by its tool, its performer or a person, and returns after all, is told: the call
        stays settled, and its effect may have happened twice.
Rule 4: a call of an agent elsewhere whose outcome it said it does not know is settled once more with what it tells later;
        after the ending that is an addendum.
Rule 5: while the run is paused nothing is asked; the resume asks.
"""

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import Arrival, ToolFailed, ToolReturned
from remit.core.journal.commands import AskPurpose, CallTool, Packet, ReconcileTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import (
    OUTCOME_UNKNOWN,
    UNVERIFIED,
    AddendumNoted,
    CallSettled,
    OutcomeContradicted,
    OutcomeDoubted,
    Rung,
)
from remit.core.limits.boundary import At
from remit.core.run.halt import HELD_BACK
from remit.kernel.authority.boundary_checks import condition_stop
from remit.kernel.authority.earlier_attempts import ARGUMENTS_CHARS_MAX, attempts_at
from remit.kernel.budget.spend import lacking
from remit.kernel.people.questions import REVIEW, open_question
from remit.kernel.results.endings import head_for
from remit.kernel.state import RunState, inquiries, pinned
from remit.kernel.tally import Tally
from remit.kernel.traces import CallTrace, LateOutcome

# The reason of a doubt that a crash left behind; a timeout or a cancel names its own code.
LOST = "OUTCOME_LOST"
# The reason of a fork's doubt about a call that a halt withheld: it was not sent, and the origin may yet send it.
WITHHELD = "CALL_WITHHELD"
# What a settled call says when it is known not to have happened: it failed, and the world is as it was.
NOT_DONE = ErrorCode.TOOL_EXECUTION_FAILED
# What calls are settled with that did not happen, as their tool, their performer or a person says.
_NOT_DONE = (NOT_DONE, ErrorCode.TOOL_UNAVAILABLE, ErrorCode.CANCELLED_SIGNAL)


def doubt(tally: Tally, command: CallTool, reason: str, said: str = "", raised: tuple[str, ...] = ()) -> str | None:
    """Put a call in doubt and ask about it, or name the outcome that ends the run.

    `said` are the words of its tool, and `raised` the flags that they raise.
    """
    tally.rule(OutcomeDoubted(command.id, reason, raised))
    tally.last_error = reason
    if raised:
        tally.raised = raised
        if why := condition_stop(tally, tally.state.derived.tools[command.tool], At.OBSERVATION):
            return head_for(tally, Ending.UNSAFE_DETECTION, message=f"{command.tool}: {why}")
    return None if tally.paused else inquire(tally, command, said)


def inquire(tally: Tally, command: CallTool, said: str = "") -> str | None:
    """Ask the tool, if it keeps accounts; else a person."""
    tool = tally.state.derived.tools[command.tool]
    if not tool.reconcilable:
        return ask_about(tally, command, said)
    tally.issue(
        ReconcileTool(
            id=tally.next_id(), about=command.id, tool=command.tool, key=command.key, timeout_ms=tool.timeout_ms
        )
    )
    return None


def ask_about(tally: Tally, command: CallTool, said: str = "") -> str | None:
    """Ask a person what became of a call, or end the run for review when no review is left."""
    if lacking(tally, REVIEW) is not None:
        return head_for(
            tally, Ending.REVIEW_REQUIRED, message=f"nobody knows what became of {command.tool} ({command.key})"
        )
    call = ProposedCall(command.call_id, command.tool, command.arguments, command.arguments_hash)
    reasons = [f"the outcome of {command.tool} ({command.key}) is not known"]
    if tally.state.commands.doubted.get(command.id) == WITHHELD:
        reasons = [
            f"{HELD_BACK} ({command.tool}, {command.key}); the run that this is a fork of may have made it since"
        ]
    if said := said or tally.state.calls.made[command.id].reason:
        reasons.append(f"it said: {said[:ARGUMENTS_CHARS_MAX]}")
    reasons += [*attempts_at(tally.state, call, command.id), *_told_by_the_origin(tally, command)]
    boundary = tally.manifest.versions.boundary
    packet = Packet(
        call=call, tool_version=command.version, boundary_version=boundary, reasons=tuple(reasons), about=command.id
    )
    open_question(tally, AskPurpose.OUTCOME, Ending.REVIEW_REQUIRED, packet=packet)
    return None


def _told_by_the_origin(tally: Tally, command: CallTool) -> tuple[str, ...]:
    """What the run that this one was forked from knows of the same call, which was under way when it was copied."""
    key = (command.tool, command.arguments_hash)
    earlier = [effect for effect in tally.manifest.earlier if (effect.tool, effect.arguments_hash) == key]
    return tuple([f"run {effect.run_id} says of it in turn {effect.seq}: {effect.how}" for effect in earlier])


def contradicts(state: RunState, arrival: ToolReturned) -> bool:
    """Whether a call returned after all that was settled as not done, or told so after the end; and that was not told before."""
    trace, late = state.calls.made.get(arrival.command_id), state.end.late.get(arrival.command_id)
    if trace is None or not trace.mutating or arrival.command_id in state.commands.open:
        return False
    if late is not None:
        return not late.is_returned
    return trace.rung is Rung.OBSERVED and trace.code in _NOT_DONE


def clears(state: RunState, arrival: Arrival) -> bool:
    """Whether an agent elsewhere tells what became of a call that was settled as of unknown outcome."""
    if isinstance(arrival, ToolFailed):
        knows = not arrival.is_unknown and arrival.code is not ErrorCode.TOOL_TIMEOUT
    elif isinstance(arrival, ToolReturned):
        knows = True
    else:
        return False
    trace = state.calls.made.get(arrival.command_id)
    if not knows or trace is None or arrival.command_id in state.end.late:
        return False
    return trace.mutating and trace.code == OUTCOME_UNKNOWN and pinned(state).host is not None


def may_be_told_again(trace: CallTrace, late: LateOutcome | None) -> bool:
    """Whether more may be told of a settled call: that its outcome is known by now, or was another one."""
    is_open = trace.rung is Rung.OBSERVED and trace.code in (OUTCOME_UNKNOWN, *_NOT_DONE)
    return trace.mutating and (late is not None or is_open)


def hear_again(tally: Tally, arrival: ToolReturned | ToolFailed) -> None:
    """Take in what an agent or a tool says of a settled call: it ends the doubt about it, or contradicts what was said before.

    Of a run that has ended it changes nothing, and is shown.
    """
    if not clears(tally.state, arrival):
        tally.rule(OutcomeContradicted(arrival.command_id))
        return
    if tally.state.end.ending is not None:
        tally.rule(AddendumNoted(arrival.command_id))
        return
    trace = tally.state.calls.made[arrival.command_id]
    code = UNVERIFIED if isinstance(arrival, ToolReturned) else arrival.code
    if code == UNVERIFIED:
        tally.fail(trace.tool, None)
    if code == UNVERIFIED or not is_in_doubt_besides(tally.state, arrival.command_id):
        tally.note_effect(trace.tool, trace.arguments_hash, code)
    tally.say(arrival.tokens_bound)
    tally.rule(CallSettled(arrival.command_id, Rung.OBSERVED, (), "", arrival.evidence, code))


def is_in_doubt_besides(state: RunState, command_id: str) -> bool:
    """Whether another call like this one is of unknown outcome, too."""
    like, known = state.calls.made[command_id], (command_id, *state.end.late)
    same = [trace for name, trace in state.calls.made.items() if name not in known and trace.code == OUTCOME_UNKNOWN]
    return any((trace.tool, trace.arguments_hash) == (like.tool, like.arguments_hash) for trace in same)


def inquire_all(tally: Tally) -> str | None:
    """Ask about every call in doubt that is not being asked about yet."""
    for command_id in tally.state.commands.doubted:
        command = tally.state.commands.open[command_id]
        assert isinstance(command, CallTool)
        if not any(inquiries(tally.state, command_id)) and (outcome := inquire(tally, command)) is not None:
            return outcome
    return None
