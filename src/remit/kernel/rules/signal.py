"""Signals: a person or a program outside wants the run to stop, stand still, go on, hear something, or be tried again.

Rule 1: cancel takes effect at once; pause and feedback at the next checkpoint, which is the next turn.
Rule 2: a paused run issues nothing and records what returns; the resume goes where the run would have gone.
Rule 3: an ended run never reopens: retry issues a fork of it. A retry of a run that succeeded must say why.
Rule 4: a fork begins paused. What its origin had asked of its model was not asked in its name, so the model is asked
        anew when the fork goes on, and is told why there is a fork. What people were being asked they are asked again.
        What else was open is sent when the fork goes on, and not before. Its children are its own and have yet to
        begin, so none of them waits for a person.
Rule 5: a halt of dispatch pauses the run. What it withheld stays open, is in no doubt, and is sent by the resume.
Rule 6: a pause that no person asked for, of a halt or of a fork that is being made, is no reason not to hear one that
        a person asks for: it holds until the run is resumed.
Rule 7: an entry of the session decides nothing, so it is kept whether or not the run is over.
"""

from collections.abc import Iterable

from remit.core.failure import ArrivalFault, Ending, ErrorCode, IllegalArrival
from remit.core.journal.arrivals import (
    CancelRequested,
    FeedbackGiven,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    RunForked,
    RunHalted,
    RunTaken,
    SessionNoted,
    SourcesAccepted,
)
from remit.core.journal.commands import AskHuman, AskPurpose, CallModel, CallTool, ForkRun
from remit.core.journal.rulings import (
    AddendumNoted,
    ChildReleased,
    CommandsWithheld,
    FeedbackTaken,
    OutcomeParked,
    RunPaused,
    RunResumed,
    SessionEntryKept,
    SourcesReplaced,
)
from remit.core.record import replace
from remit.core.run.lineage import derived_id
from remit.core.run.manifest import SESSION_ENTRIES_MAX, Origin, Source
from remit.kernel.authority.authorize import was_not_done_before
from remit.kernel.authority.verdict import ALLOWED
from remit.kernel.budget.spend import settle_command
from remit.kernel.people.outdated import is_outdated, packet_now
from remit.kernel.people.questions import ask_anew
from remit.kernel.results.doubt import WITHHELD, doubt, inquire_all
from remit.kernel.results.endings import head_for
from remit.kernel.rules.human import RELEASED
from remit.kernel.state import is_safe_to_repeat, questions
from remit.kernel.tally import Tally

_SUCCEEDED = (Ending.SUCCESS, Ending.PARTIAL_SUCCESS)


def on_cancel(tally: Tally, arrival: CancelRequested) -> str:
    """End the run now."""
    if arrival.unbegun:
        tally.unbegun = arrival.unbegun
    message = f"cancelled by {arrival.by}" + (f": {arrival.reason}" if arrival.reason else "")
    return head_for(tally, Ending.USER_CANCEL, ErrorCode.CANCELLED_SIGNAL, message)


def on_pause(tally: Tally, arrival: PauseRequested) -> None:
    """Order nothing from here on, until a resume arrives."""
    if by := tally.state.place.paused_by:
        raise IllegalArrival(ArrivalFault.ALREADY_PAUSED, f"run {tally.state.run_id} is paused already, by {by}")
    tally.rule(RunPaused(arrival.by))
    tally.paused = True


def on_halted(tally: Tally, arrival: RunHalted) -> None:
    """Order nothing from here on, and keep what was withheld for the resume."""
    state = tally.state
    known = (*state.commands.withheld, *state.commands.doubted)
    withheld = tuple(name for name in arrival.withheld if name in state.commands.open and name not in known)
    if not withheld and (arrival.withheld or tally.paused):
        raise IllegalArrival(ArrivalFault.DUPLICATE, f"run {state.run_id} stands still for that already")
    if withheld:
        tally.rule(CommandsWithheld(withheld))
    if not tally.paused:
        tally.rule(RunPaused(arrival.by, arrival.number, arrival.what, arrival.why))
        tally.paused = True


def on_resume(tally: Tally, arrival: ResumeRequested) -> str | None:
    """Ask what was not asked while paused, and go where the run was going."""
    if not tally.paused:
        raise IllegalArrival(ArrivalFault.NOT_PAUSED, f"run {tally.state.run_id} is not paused")
    tally.rule(RunResumed(arrival.by))
    tally.paused = False
    # They were issued before, under the same ids: they are sent, and nothing is reserved for them a second time.
    tally.issued += [tally.state.commands.open[command_id] for command_id in tally.state.commands.withheld]
    if tally.state.place.is_copy:
        tally.issued += [
            command for command in tally.state.commands.open.values() if is_safe_to_repeat(tally.state, command)
        ]
    _ask_about_changes(tally, tally.state.sources.values())
    if (outcome := inquire_all(tally)) is not None:
        return outcome
    if tally.is_frozen and tally.state.place.parked is not None:
        # It still waits for steps or time, so where it was going stays kept.
        tally.rule(tally.state.place.parked)
        return None
    return unpark(tally)


def unpark(tally: Tally) -> str | None:
    """The outcome that was kept while the run stood still, with what it was heading for; None where nothing was."""
    parked = tally.state.place.parked
    if parked is None:
        return None
    tally.ending, tally.error, tally.message = parked.ending, parked.error, parked.message
    return parked.outcome


def on_feedback(tally: Tally, arrival: FeedbackGiven) -> None:
    """Keep the words for the next model call."""
    tally.rule(FeedbackTaken(arrival.by))


def on_retry(tally: Tally, arrival: RetryRequested) -> None:
    """Order a fork of an ended run from its last turn before the ending. To doubt a success takes a reason."""
    state = tally.state
    if state.end.ending is None:
        message = f"run {state.run_id} is still open; only an ended run can be tried again, an open one can be forked"
        raise IllegalArrival(ArrivalFault.NOT_RETRYABLE, message)
    if tally.manifest.host is not None:
        message = f"the calls of run {state.run_id} are made elsewhere; only who makes them can try again, in a new run"
        raise IllegalArrival(ArrivalFault.NOT_RETRYABLE, message)
    if state.end.ending in _SUCCEEDED and not arrival.reason.strip():
        message = f"run {state.run_id} ended as {state.end.ending}; say why it is to be tried again all the same"
        raise IllegalArrival(ArrivalFault.NOT_RETRYABLE, message)
    if state.end.seq == 0:
        message = f"run {state.run_id} ended in its first turn, so there is nothing to go on from; submit it anew"
        raise IllegalArrival(ArrivalFault.NOT_RETRYABLE, message)
    told = derived_id(state.run_id, arrival.key) if arrival.key else ""
    if any(isinstance(command, ForkRun) and command.run_id == told for command in state.commands.parting):
        message = f"run {state.run_id} has heard this retry; its fork is {told}"
        raise IllegalArrival(ArrivalFault.DUPLICATE, message)
    tally.rule(AddendumNoted(f"retry by {arrival.by}"))
    command_id, at_seq = tally.next_id(), state.end.seq - 1
    fork_id = told or derived_id(state.run_id, command_id)
    tally.issue(ForkRun(command_id, fork_id, at_seq, arrival.by, why=arrival.reason))


def on_forked(tally: Tally, arrival: RunForked) -> None:
    """Stand still where the origin was left, and take back what was asked of a model and not answered."""
    state, origin = tally.state, tally.manifest.forked_from
    if origin is None or state.seq != origin.seq:
        message = f"run {state.run_id} has {state.seq + 1} turns and was not copied up to here"
        raise IllegalArrival(ArrivalFault.ALREADY_STARTED, message)
    if not tally.paused:
        tally.rule(RunPaused(arrival.by))
        tally.paused = True
    for command in [command for command in state.commands.open.values() if isinstance(command, CallModel)]:
        settle_command(tally, command, ())
        tally.rule(OutcomeParked(RELEASED))
    for withheld in [state.commands.open[command_id] for command_id in state.commands.withheld]:
        if isinstance(withheld, CallTool) and withheld.mutating:
            # It was not sent. The origin may make it once the halt is lifted, and then the fork must not.
            doubt(tally, withheld, WITHHELD)
    for command_id in state.children.waiting:
        tally.rule(ChildReleased(command_id))
    for question in list(questions(state)):
        _ask_in_the_fork(tally, question, origin)


def _ask_in_the_fork(tally: Tally, question: AskHuman, origin: Origin) -> None:
    """Ask again what the origin was asking: with what it did since, and for as long as any question may wait."""
    packet = question.packet
    if packet is not None and question.purpose is AskPurpose.APPROVAL:
        before = was_not_done_before(packet.call, tally)
        packet = packet if before is ALLOWED else replace(packet, reasons=(before.reason, *packet.reasons))
    ask_anew(tally, question, packet, origin.at_ms + tally.manifest.boundary.approval_wait_ms_max)


def on_taken(tally: Tally, arrival: RunTaken) -> None:
    """Decide nothing: that the turn stands there is enough to refuse the next turn of the driver before."""


def on_session_noted(tally: Tally, arrival: SessionNoted) -> None:
    """Keep an entry for the session."""
    entries = tally.state.session
    if arrival.key not in entries and len(entries) >= SESSION_ENTRIES_MAX:
        message = f"session of run {tally.state.run_id} has {len(entries)} entries, entries_max={SESSION_ENTRIES_MAX}"
        raise IllegalArrival(ArrivalFault.SESSION_FULL, message)
    tally.rule(SessionEntryKept(arrival.key, arrival.value))


def on_sources_accepted(tally: Tally, arrival: SourcesAccepted) -> None:
    """Rely on code that has changed, since a person says so; a person who was asked about a call of it is asked anew.

    While the run is paused no person is asked; the resume asks, and until then the old question cannot be approved.
    """
    tally.rule(SourcesReplaced(arrival.by, arrival.sources))
    if not tally.paused:
        _ask_about_changes(tally, arrival.sources)


def _ask_about_changes(tally: Tally, sources: Iterable[Source]) -> None:
    """Ask anew about every held call whose code is not what its packet shows, or of which more is known by now."""
    digests = {source.name: source.digest for source in sources}
    for question in list(questions(tally.state)):
        if (packet := question.packet) is None:
            continue
        digest = (
            digests.get(packet.call.tool, packet.source) if question.purpose is AskPurpose.APPROVAL else packet.source
        )
        if digest != packet.source or is_outdated(question, tally):
            ask_anew(tally, question, replace(packet_now(question, tally), source=digest))
