"""Attempts: what was tried before at the target of a call, for the person who is asked about it.

Rule 1: two calls have the same target when one tool is called with the same values in the arguments that steer it; of a tool
        that names none, with the same arguments.
"""

from remit.core.journal.commands import Packet
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import BY_PERSON, OUTCOME_UNKNOWN, RECONCILED, UNVERIFIED, Rung
from remit.core.limits.argument_paths import values_at
from remit.core.limits.tools import ToolDefinition
from remit.core.record import Text, replace, size_bytes
from remit.core.schema.json_text import kept_value
from remit.kernel.results.notices import HAPPENED
from remit.kernel.state import RunState
from remit.kernel.traces import CallTrace

# As many earlier attempts as a person reads before answering, and as much of what each was called with.
ATTEMPTS_SHOWN_MAX = 3
ARGUMENTS_CHARS_MAX = 300
# What is said of a call that happened and whose result is unknown.
HAPPENED_UNSEEN = "it happened, and its result is not known"
_TRIED = "tried before: "


def attempts_at(state: RunState, call: ProposedCall, besides: str = "") -> tuple[str, ...]:
    """The earlier attempts at the target of a call, for the person who is asked about it; the latest first."""
    tool = state.derived.tools[call.tool]
    if not tool.effect.is_mutating:
        return ()
    target = _target(tool, call.arguments, call.arguments_hash)
    same = [
        f"{_TRIED}{_told(trace)}, {_known(state, command_id, trace)}"
        for command_id, trace in state.calls.made.items()
        if trace.tool == call.tool
        and command_id != besides
        and _target(tool, trace.arguments, trace.arguments_hash) == target
    ]
    return tuple(same[::-1][:ATTEMPTS_SHOWN_MAX])


def told_anew(state: RunState, packet: Packet) -> Packet:
    """A packet with what is known by now of earlier attempts."""
    before = [reason for reason in packet.reasons if reason.startswith(_TRIED)]
    place = packet.reasons.index(before[0]) if before else len(packet.reasons)
    reasons = [reason for reason in packet.reasons if reason not in before]
    known = attempts_at(state, packet.call, packet.about)
    return replace(packet, reasons=(*reasons[:place], *known, *reasons[place:]))


def _target(tool: ToolDefinition, arguments: Text, arguments_hash: bytes) -> object:
    """What a call is aimed at: the arguments that steer it, where the tool names them; else all of them."""
    if not tool.control_args or not isinstance(arguments, str) or not arguments:
        return arguments_hash
    said = kept_value(arguments)
    return [[*values_at(said, path)] for path, _ in tool.control_args]


def done_unseen(state: RunState, call: ProposedCall) -> CallTrace | None:
    """An earlier call like this one that happened, as its tool or a person says, and whose result is unknown."""
    command_id = state.calls.unseen.get((call.tool, call.arguments_hash))
    return None if command_id is None else state.calls.made[command_id]


def is_done_unseen(trace: CallTrace) -> bool:
    """Whether a call happened, as its tool or a person says, and its result is not known."""
    if trace.rung is not Rung.COMMITTED or not (trace.verifier == RECONCILED or trace.verifier.startswith(BY_PERSON)):
        return False
    return not trace.content or (isinstance(trace.content, str) and trace.content.startswith(HAPPENED))


def _told(trace: CallTrace) -> str:
    said = trace.arguments if isinstance(trace.arguments, str) else f"({size_bytes(trace.arguments)} bytes)"
    when = f" settled by turn {trace.seq}" if trace.seq else ""
    return f"{trace.tool} {said[:ARGUMENTS_CHARS_MAX]}{when}"


def _known(state: RunState, command_id: str, trace: CallTrace) -> str:
    """How far an earlier attempt is known to have got."""
    if command_id in state.end.late:
        return "it was said not to have happened, and returned after all"
    if is_done_unseen(trace):
        return HAPPENED_UNSEEN
    if trace.rung is Rung.COMMITTED:
        return "committed"
    if trace.code == UNVERIFIED:
        return "returned and was not verified"
    if command_id in state.commands.open or trace.code == OUTCOME_UNKNOWN:
        return "its outcome is not known"
    return f"failed with {trace.code}"
