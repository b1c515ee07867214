"""Signals: someone outside wants the run to stop, stand still, go on, hear something, or be tried again.

Rule 1: cancel takes effect at once; pause and feedback at the next checkpoint, which is the next turn.
Rule 2: a paused run orders nothing and records what returns; the resume goes where the run would have gone.
Rule 3: an ended run never reopens: retry orders a fork of it.
Rule 4: an entry of the session decides nothing, so it is kept whether or not the run is over.
"""

from collections.abc import Iterable

from remit.core.arrivals import (
    CancelRequested,
    FeedbackGiven,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    SessionNoted,
    SourcesAccepted,
)
from remit.core.commands import AskPurpose, ForkRun
from remit.core.failure import ArrivalFault, Ending, ErrorCode, IllegalArrival
from remit.core.manifest import Source
from remit.core.record import replace
from remit.core.rulings import (
    AddendumNoted,
    FeedbackTaken,
    RunPaused,
    RunResumed,
    SessionEntryKept,
    SourcesReplaced,
)
from remit.kernel.asking import ask_anew
from remit.kernel.doubt import inquire_all
from remit.kernel.endings import head_for
from remit.kernel.state import questions
from remit.kernel.tally import Tally

# Preferences and resolved names, not a database: every run of the session begins with all of them.
SESSION_ENTRIES_MAX = 256


def on_cancel(tally: Tally, arrival: CancelRequested) -> str:
    """End the run now."""
    message = f"cancelled by {arrival.by}" + (f": {arrival.reason}" if arrival.reason else "")
    return head_for(tally, Ending.USER_CANCEL, ErrorCode.CANCELLED_SIGNAL, message)


def on_pause(tally: Tally, arrival: PauseRequested) -> None:
    """Order nothing from here on."""
    if tally.paused:
        raise IllegalArrival(ArrivalFault.ALREADY_PAUSED, f"run {tally.state.run_id} is paused already")
    tally.rule(RunPaused(arrival.by))
    tally.paused = True


def on_resume(tally: Tally, arrival: ResumeRequested) -> str | None:
    """Ask what was not asked while paused, and go where the run was going."""
    if not tally.paused:
        raise IllegalArrival(ArrivalFault.NOT_PAUSED, f"run {tally.state.run_id} is not paused")
    tally.rule(RunResumed(arrival.by))
    tally.paused = False
    _ask_about_changes(tally, tally.state.sources.values())
    if (outcome := inquire_all(tally)) is not None:
        return outcome
    parked = tally.state.parked
    if parked is None:
        return None
    tally.ending, tally.error, tally.message = parked.ending, parked.error, parked.message
    return parked.outcome


def on_feedback(tally: Tally, arrival: FeedbackGiven) -> None:
    """Keep the words for the next model call."""
    tally.rule(FeedbackTaken(arrival.by))


def on_retry(tally: Tally, arrival: RetryRequested) -> None:
    """Order a fork of an ended run from its last turn before the ending."""
    state = tally.state
    if state.ending in (None, Ending.SUCCESS, Ending.PARTIAL_SUCCESS):
        how = "is still open" if state.ending is None else f"ended as {state.ending}"
        message = f"run {state.run_id} {how}; only a failed run can be tried again"
        raise IllegalArrival(ArrivalFault.NOT_RETRYABLE, message)
    if state.ended_seq == 0:
        message = f"run {state.run_id} ended in its first turn, so there is nothing to go on from; submit it anew"
        raise IllegalArrival(ArrivalFault.NOT_RETRYABLE, message)
    tally.rule(AddendumNoted(f"retry by {arrival.by}"))
    command_id = tally.next_id()
    tally.order(ForkRun(command_id, f"{state.run_id}.{command_id}", state.ended_seq - 1, arrival.by))


def on_session_noted(tally: Tally, arrival: SessionNoted) -> None:
    """Keep an entry for the session."""
    entries = tally.state.session
    if arrival.key not in entries and len(entries) >= SESSION_ENTRIES_MAX:
        message = f"session of run {tally.state.run_id} has {len(entries)} entries, entries_max={SESSION_ENTRIES_MAX}"
        raise IllegalArrival(ArrivalFault.SESSION_FULL, message)
    tally.rule(SessionEntryKept(arrival.key, arrival.value))


def on_sources_accepted(tally: Tally, arrival: SourcesAccepted) -> None:
    """Rely on code that has changed, since a person says so; whoever was asked about a call of it is asked anew.

    While the run is paused nobody is asked; the resume asks, and until then the old question cannot be approved.
    """
    tally.rule(SourcesReplaced(arrival.by, arrival.sources))
    if not tally.paused:
        _ask_about_changes(tally, arrival.sources)


def _ask_about_changes(tally: Tally, sources: Iterable[Source]) -> None:
    """Ask anew about every held call whose code is not what its packet shows."""
    digests = {source.name: source.digest for source in sources}
    for question in questions(tally.state):
        packet = question.packet
        if question.purpose is not AskPurpose.APPROVAL or packet is None:
            continue
        if (digest := digests.get(packet.call.tool, packet.source)) != packet.source:
            ask_anew(tally, question, replace(packet, source=digest))
