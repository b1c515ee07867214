"""The log of tool calls that a caller is given: what was proposed, in its order, and what became of it.

Rule 1: a call says how far it got and no further; one whose outcome nobody knows says that.
"""

from collections.abc import Mapping

from remit.core.arrivals import ModelAnswered
from remit.core.codec import arguments_in
from remit.core.contract import CallStatus, ToolCallMade
from remit.core.record import Text
from remit.core.rulings import Rung
from remit.kernel.state import CallTrace, RunState

# How far up the ladder a call got, in the words of the contract. Verified and committed are settled in one turn.
STATUS_OF: dict[Rung, CallStatus] = {
    Rung.INTENDED: CallStatus.REFUSED,
    Rung.ATTEMPTED: CallStatus.ATTEMPTED,
    Rung.OBSERVED: CallStatus.OBSERVED,
    Rung.VERIFIED: CallStatus.OBSERVED,
    Rung.COMMITTED: CallStatus.COMMITTED,
}


def place_of(command_id: str) -> tuple[int, int]:
    """Where in its run a command was ordered: the turn, and the place in it."""
    turn, _, place = command_id.partition(".")
    return int(turn or 0), int(place or 0)


def calls_made(state: RunState) -> tuple[ToolCallMade, ...]:
    """Every call that was proposed, in the order in which it was ordered or refused."""
    made = [(place_of(key)[0], _call_made(state, key, trace)) for key, trace in state.calls.items()]
    if state.refused:
        proposed = {
            (call.tool, call.arguments_hash): call.arguments
            for entry in state.context
            if isinstance(entry, ModelAnswered)
            for call in entry.calls
        }
        # A step of a plan proposes its call itself.
        proposed |= {(call.tool, call.arguments_hash): call.arguments for call in state.proposed}
        made += [(trace.seq, _call_refused(trace, proposed)) for trace in state.refused]
        made.sort(key=lambda entry: entry[0])
    return tuple(call for _, call in made)


def _call_refused(trace: CallTrace, proposed: Mapping[tuple[str, bytes], Text]) -> ToolCallMade:
    arguments = arguments_in(proposed.get((trace.tool, trace.arguments_hash), ""))
    return ToolCallMade(trace.tool, arguments, trace.code, 0, trace.call_id, STATUS_OF[trace.rung])


def _call_made(state: RunState, command_id: str, trace: CallTrace) -> ToolCallMade:
    status = STATUS_OF[trace.rung]
    # A call that the ending cut off has no outcome either, whatever its effect.
    is_cut_off = trace.rung is Rung.ATTEMPTED and command_id not in state.open
    if is_cut_off or command_id in state.doubted:
        status = CallStatus.OUTCOME_UNKNOWN
    elif trace.rung is Rung.OBSERVED and trace.code:
        status = CallStatus.FAILED
    # What failed left no result, only a code; as with a call that was refused, that is what the caller is told.
    result = trace.content or trace.code
    return ToolCallMade(trace.tool, arguments_in(trace.arguments), result, trace.duration_ms, trace.call_id, status)
