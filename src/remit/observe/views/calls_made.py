"""The log of tool calls that a caller is given: what was proposed, in its order, and what became of it.

Rule 1: a call says how far it got and no further; one whose outcome is unknown says that, and one whose outcome came
        after the ending says what it was, and that it came late.
Rule 2: calls stand in the order in which they were ordered or refused, those of children among them; those of one turn as the
        model proposed them. Where two began in the same millisecond, what a child called stands where the child was started.
Rule 3: a long text is given in full where it is at hand, else by its digest.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import arguments_in
from remit.core.journal.commands import place_in_journal
from remit.core.journal.rulings import OUTCOME_UNKNOWN, UNALLOWED, UNVERIFIED, Rung
from remit.core.record import BlobRef, Text
from remit.core.run.contract import CallStatus, ToolCallMade
from remit.kernel.authority.earlier_attempts import is_done_unseen
from remit.kernel.results.doubt import LOST, WITHHELD
from remit.kernel.results.notices import HAPPENED
from remit.kernel.results.proven_effects import cut_off_calls
from remit.kernel.state import RunState, pinned
from remit.kernel.traces import CallTrace, LateOutcome
from remit.observe.views.late_outcomes import late_outcome

# How far up the ladder a call got, in the words of the contract. Verified and committed are settled in one turn.
STATUS_OF: dict[Rung, CallStatus] = {
    Rung.INTENDED: CallStatus.REFUSED,
    Rung.ATTEMPTED: CallStatus.ATTEMPTED,
    Rung.OBSERVED: CallStatus.OBSERVED,
    Rung.VERIFIED: CallStatus.OBSERVED,
    Rung.COMMITTED: CallStatus.COMMITTED,
}
# Why the outcome of a call is unknown, where its tool said nothing.
_WHY_UNKNOWN: Mapping[str, str] = MappingProxyType(
    {
        ErrorCode.CANCELLED_SIGNAL: "the run ended while the call was under way",
        ErrorCode.TOOL_TIMEOUT: "the tool ran out of time while the call was under way",
        LOST: "the process that made the call was gone before the call came back",
        WITHHELD: "a halt held the call back, and the run that this is a fork of may have made it since",
    }
)
_ATTEMPTED = Rung.ATTEMPTED
_NO_TEXTS: Mapping[bytes, str] = MappingProxyType({})
_NO_TIMES: Mapping[int, int] = MappingProxyType({})

# The turn, the place among the calls of that turn or the commands of it, and a call before what its child did.
_Place = tuple[int, int, int]
_CALL, _OF_CHILD = 0, 1


class Begun(NamedTuple):
    """A call, and when it was ordered or refused; 0 where that was not looked up."""

    at_ms: int
    call: ToolCallMade


class CallsOfChild(NamedTuple):
    """What a child that this command started has called, and how long it took, where it has ended."""

    command_id: str
    calls: tuple[Begun, ...]
    duration_ms: int = 0


def long_texts(state: RunState) -> Iterator[BlobRef]:
    """The arguments and results of a run's calls that live in Blobs."""
    for trace in state.calls.made.values():
        # Most are short, and every response comes by here.
        if isinstance(trace.arguments, BlobRef):
            yield trace.arguments
        if isinstance(trace.content, BlobRef):
            yield trace.content
    yield from (late.content for late in state.end.late.values() if isinstance(late.content, BlobRef))
    if _never_made(state):
        told = (*_proposed(state).values(), *[trace.arguments for trace in state.calls.refused])
        yield from (text for text in told if isinstance(text, BlobRef))


def unallowed(state: RunState) -> tuple[str, ...]:
    """The effects that an agent elsewhere made without being allowed, as calls."""
    made = [trace for trace in state.calls.made.values() if trace.code == UNALLOWED]
    return tuple([f"{trace.reason}: find out what it changed" for trace in made])


def children_of(state: RunState) -> tuple[str, ...]:
    """The commands that started a child of this run: those of nodes and those of calls that delegate."""
    return tuple(sorted(state.children.runs, key=place_in_journal))


def calls_made(state: RunState) -> tuple[ToolCallMade, ...]:
    """Every call that was proposed in a run, without those of its children."""
    return tuple(begun.call for begun in calls_begun(state))


def calls_begun(
    state: RunState,
    texts: Mapping[bytes, str] = _NO_TEXTS,
    children: Sequence[CallsOfChild] = (),
    times: Mapping[int, int] = _NO_TIMES,
) -> tuple[Begun, ...]:
    """Every call that was proposed. `texts` are the long ones by their digest, `times` those of turns by their number."""
    never = _never_made(state)
    if not children and not never and not times:
        # Nothing stands between them: they were ordered as they were proposed.
        return tuple([Begun(0, _call_made(state, key, trace, texts, 0)) for key, trace in state.calls.made.items()])
    order, took = _order(state), {child.command_id: child.duration_ms for child in children}
    places = {key: (*_place(key, trace, order), _CALL) for key, trace in state.calls.made.items()}
    made: list[tuple[_Place, tuple[Begun, ...]]] = []
    for key, trace in state.calls.made.items():
        call = _call_made(state, key, trace, texts, took.get(key, 0))
        made.append((places[key], (Begun(times.get(places[key][0], 0), call),)))
    if never:
        proposed = _proposed(state)
        for trace in never:
            at = (trace.seq, order.get(_key(trace), 0), _CALL)
            made.append((at, (Begun(times.get(trace.seq, 0), _call_refused(trace, proposed, texts)),)))
    for child in children:
        turn, place, _ = places.get(child.command_id, (*place_in_journal(child.command_id), _CALL))
        made.append(((turn, place, _OF_CHILD), child.calls))
    made.sort(key=lambda entry: entry[0])
    # What has no time of its own is not moved.
    return tuple(sorted((begun for _, calls in made for begun in calls), key=lambda begun: begun.at_ms))


def _never_made(state: RunState) -> Sequence[CallTrace]:
    """The calls that were proposed and refused, and those that the ending of the run cut off before they were made."""
    if state.end.ending is None:
        return state.calls.refused
    return [*state.calls.refused, *cut_off_calls(state)]


_Key = tuple[str, str, bytes]


def _key(trace: CallTrace) -> _Key:
    return trace.call_id, trace.tool, trace.arguments_hash


def _order(state: RunState) -> dict[_Key, int]:
    """The place of each call in the answer that proposed it."""
    answers = (entry.calls for entry in state.talk.context if isinstance(entry, ModelAnswered))
    return {(c.call_id, c.tool, c.arguments_hash): place for calls in answers for place, c in enumerate(calls)}


def _place(command_id: str, trace: CallTrace, order: Mapping[_Key, int]) -> tuple[int, int]:
    turn, place = place_in_journal(command_id)
    return turn, order.get(_key(trace), place)


def _proposed(state: RunState) -> dict[tuple[str, bytes], Text]:
    """The arguments of proposals, by the tool and their hash, and by the tool and the id of the call.

    Those of an agent elsewhere stand with each call.
    """
    if pinned(state).host is not None:
        return {}
    said = [call for entry in state.talk.context if isinstance(entry, ModelAnswered) for call in entry.calls]
    proposed = {(call.tool, call.call_id.encode()): call.arguments for call in said}
    proposed |= {(call.tool, call.arguments_hash): call.arguments for call in said}
    # A step of a plan proposes its call itself.
    own = [call for call in state.calls.proposed if (call.tool, call.call_id.encode()) not in proposed]
    return proposed | {(call.tool, call.arguments_hash): call.arguments for call in own}


def _in_full(text: Text, texts: Mapping[bytes, str]) -> Text:
    return text if isinstance(text, str) else texts.get(text.digest, text)


def _call_refused(
    trace: CallTrace, proposed: Mapping[tuple[str, bytes], Text], texts: Mapping[bytes, str]
) -> ToolCallMade:
    # Of a call that a filter had changed, what the model proposed is told.
    said = proposed.get((trace.tool, trace.arguments_hash)) or proposed.get((trace.tool, trace.call_id.encode()))
    said = said or trace.arguments
    arguments = arguments_in(_in_full(said, texts))
    status = STATUS_OF[trace.rung]
    return ToolCallMade(
        name=trace.tool,
        arguments=arguments,
        result=trace.code,
        duration_ms=0,
        call_id=trace.call_id,
        status=status,
        code=trace.code,
        error=trace.reason,
    )


def _call_made(
    state: RunState, command_id: str, trace: CallTrace, texts: Mapping[bytes, str], child_ms: int
) -> ToolCallMade:
    if (late := state.end.late.get(command_id)) is not None:
        return _call_told_late(trace, late, texts)
    rung, code, why = trace.rung, trace.code, trace.reason
    status = STATUS_OF[rung]
    # A call that the ending cut off has no outcome either, whatever its effect.
    is_cut_off = rung is _ATTEMPTED and command_id not in state.commands.open
    if is_cut_off or command_id in state.commands.doubted or code == OUTCOME_UNKNOWN:
        status = CallStatus.OUTCOME_UNKNOWN
        why = why or _WHY_UNKNOWN.get(code, "")
    elif code and rung is Rung.OBSERVED and code not in (UNVERIFIED, UNALLOWED):
        status = CallStatus.FAILED
    return ToolCallMade(
        name=trace.tool,
        arguments=arguments_in(_in_full(trace.arguments, texts)),
        result=_in_full(trace.content, texts) or _told(trace),
        duration_ms=trace.duration_ms or child_ms,
        call_id=trace.call_id,
        status=status,
        code=code,
        error=why,
    )


def _told(trace: CallTrace) -> str:
    """The text for a call that left no result: as the model was told, its code and the tool's own words."""
    if is_done_unseen(trace):
        return HAPPENED
    return f"{trace.code}: {trace.reason}" if trace.reason else trace.code


def _call_told_late(trace: CallTrace, late: LateOutcome, texts: Mapping[bytes, str]) -> ToolCallMade:
    """A call whose outcome came after the ending: what its tool told then. It was observed, and nothing is committed."""
    return ToolCallMade(
        name=trace.tool,
        arguments=arguments_in(_in_full(trace.arguments, texts)),
        result=_in_full(late.content, texts) or (f"{late.code}: {late.reason}" if late.reason else late.code),
        duration_ms=late.duration_ms,
        call_id=trace.call_id,
        status=CallStatus.FAILED if late.code else CallStatus.OBSERVED,
        code=late.code,
        error=f"it {late_outcome(late)}",
        is_late=True,
    )
