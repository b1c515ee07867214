"""Doubt: mutating calls whose outcome is unknown. They are never repeated and never assumed.

Rule 1: a call in doubt stays open until its late outcome, its tool's own account, or a person settles it.
Rule 2: its tool is asked first, if it can be; then a person. When neither can be asked, the run ends for review.
Rule 3: what was said not to have happened, by its tool, its performer or a person, and returns after all, is told: the call
        stays settled, and its effect may have happened twice.
Rule 4: while the run is paused nothing is asked; the resume asks.
"""

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import ToolReturned
from remit.core.journal.commands import AskPurpose, CallTool, Packet, ReconcileTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import OutcomeContradicted, OutcomeDoubted, Rung
from remit.core.limits.boundary import At
from remit.core.run.halt import HELD_BACK
from remit.kernel.authority.attempts import ARGUMENTS_CHARS_MAX, attempts_at
from remit.kernel.authority.policy import condition_stop
from remit.kernel.budget.spend import lacking
from remit.kernel.people.questions import REVIEW, open_question
from remit.kernel.results.endings import head_for
from remit.kernel.state import RunState, inquiries
from remit.kernel.tally import Tally

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
    """Whether a call that was settled as not done has returned after all, which was not told before."""
    trace = state.calls.made.get(arrival.command_id)
    if trace is None or not trace.mutating or trace.rung is not Rung.OBSERVED or trace.code not in _NOT_DONE:
        return False
    return arrival.command_id not in state.commands.open and arrival.command_id not in state.end.late


def note_contradiction(tally: Tally, arrival: ToolReturned) -> None:
    """Tell that a call which was said not to have happened has returned."""
    tally.rule(OutcomeContradicted(arrival.command_id))


def inquire_all(tally: Tally) -> str | None:
    """Ask about every call in doubt that is not being asked about yet."""
    for command_id in tally.state.commands.doubted:
        command = tally.state.commands.open[command_id]
        assert isinstance(command, CallTool)
        if not any(inquiries(tally.state, command_id)) and (outcome := inquire(tally, command)) is not None:
            return outcome
    return None
