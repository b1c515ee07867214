"""Outdated questions: what was told with them before an earlier attempt had its outcome, or before more was known of one.

Rule 1: a question whose packet gives other reasons than it would give now is withdrawn and asked anew. So what a person is shown
        is true, and a yes is to what was shown.
Rule 2: while the run is paused nothing is asked; the resume asks. Until then it is said with the question that more is known.
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import msgspec

from remit.core.failure import Ending
from remit.core.journal.arrivals import Arrival, OutcomeJudged, ToolFailed, ToolReconciled, ToolReturned
from remit.core.journal.commands import AskHuman, AskPurpose, Packet
from remit.core.journal.rulings import CallSettled, OutcomeContradicted, RunEnded
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.kernel.authority.call_rulings import call_packet
from remit.kernel.authority.earlier_attempts import told_anew
from remit.kernel.fold.apply import apply
from remit.kernel.people.questions import ask_anew
from remit.kernel.results.endings import has_outcome
from remit.kernel.state import RunState, questions
from remit.kernel.tally import Tally

# What is said with a question whose reasons are outdated, and which a pause keeps from being asked anew.
ASKED_ANEW_LATER = "more is known of an earlier attempt by now; this is asked anew with it when the run is resumed"
# What may settle a call of a tool.
SETTLING = frozenset({ToolReturned, ToolFailed, ToolReconciled, OutcomeJudged})


def packet_now(question: AskHuman, tally: Tally) -> Packet:
    """What a person would be shown with a question if it were asked now."""
    assert question.packet is not None, "the caller has looked"
    if question.purpose is AskPurpose.APPROVAL:
        return call_packet(tally, question.packet.call)
    return told_anew(tally.state, question.packet)


def is_outdated(question: AskHuman, tally: Tally) -> bool:
    """Whether a person who is asked about a call is given other reasons than hold now."""
    return question.packet is not None and packet_now(question, tally).reasons != question.packet.reasons


def reasons_shown(state: RunState, question: AskHuman) -> tuple[str, ...]:
    """Why a person is asked about a call; of a run that is paused, also that other reasons hold by now."""
    assert question.packet is not None, "the caller has looked"
    is_stale = state.place.paused and is_outdated(question, Tally(state, state.at_ms))
    return (*question.packet.reasons, ASKED_ANEW_LATER) if is_stale else question.packet.reasons


def ask_as_of_now(tally: Tally, arrival: Arrival) -> None:
    """Ask anew about whatever the calls that this turn settles, or tells of after all, are told of with."""
    state, decisions = tally.state, tuple(tally.decisions)
    if tally.paused or (decisions and type(decisions[-1]) is RunEnded):
        return
    settled = [state.calls.made[one.command_id] for one in decisions if type(one) is CallSettled]
    tools = {call.tool for call in settled if call.mutating}
    tools |= {state.calls.made[one.command_id].tool for one in decisions if type(one) is OutcomeContradicted}
    told = [one for one in questions(state) if one.packet is not None and one.packet.call.tool in tools]
    open_ones = [question for question in told if not has_outcome(tally, question.id)]
    if not open_ones:
        return
    turn = Turn(state.seq + 1, tally.at_ms, state.head, KERNEL_VERSION, arrival, decisions)
    now = Tally(state_after(state, turn), tally.at_ms)
    for question in [one for one in open_ones if is_outdated(one, now)]:
        packet = packet_now(question, now)
        ask_anew(tally, question, packet)
        if question.purpose is AskPurpose.APPROVAL and tally.state.derived.tools[packet.call.tool].effect.is_mutating:
            tally.note_effect(packet.call.tool, packet.call.arguments_hash, Ending.CONFIRM_REQUIRED)


def state_after(state: RunState, turn: Turn) -> RunState:
    """The state as it would be after a turn that is not written yet; the state itself stays as it is."""
    groups = [(field.name, getattr(state, field.name)) for field in fields(RunState)]
    ahead = replace(state, **{name: _copied(value) for name, value in groups if value is not state.derived})
    # A call without an outcome is traced in place.
    for command_id in ahead.commands.open.keys() & ahead.calls.made.keys():
        ahead.calls.made[command_id] = msgspec.structs.replace(ahead.calls.made[command_id])
    apply(ahead, turn, b"")
    return ahead


def _copied(value: Any) -> Any:
    """A group of a state with lists and dicts of its own; whatever else it holds never changes."""
    if isinstance(value, list | dict):
        return value.copy()
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{part.name: _copied(getattr(value, part.name)) for part in fields(value)})
