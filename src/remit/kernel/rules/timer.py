"""A timer fires: to try again, to take silence for a no, or to stop because the time is up."""

from remit.core.journal.arrivals import TimerFired
from remit.core.journal.commands import AskHuman, SetTimer, TimerPurpose
from remit.kernel.budget.exhaustion import is_out_of_time
from remit.kernel.budget.spend import settle_command
from remit.kernel.budget.wall_clock import deadline_at_ms, is_past_deadline, stop_for_time
from remit.kernel.people.questions import has_next
from remit.kernel.rules.human import on_expired
from remit.kernel.tally import Tally

# The outcome of a pause between attempts, which no edge names: the model call is issued again, where the run stands.
AGAIN = "again"


def on_timer(tally: Tally, arrival: TimerFired) -> str | None:
    """Do what the timer was set for."""
    timer = tally.state.commands.open[arrival.command_id]
    assert isinstance(timer, SetTimer)
    settle_command(tally, timer, ())
    if arrival.unbegun:
        tally.unbegun = arrival.unbegun
    if timer.purpose is TimerPurpose.RETRY:
        return AGAIN
    if timer.purpose is TimerPurpose.APPROVAL:
        question = tally.state.commands.open[timer.about]
        assert isinstance(question, AskHuman)
        is_due = tally.at_ms >= timer.due_at_ms
        if is_due and not (tally.paused and has_next(tally, question)):
            return on_expired(tally, question)
        # A clock that was set back lets a timer fire too soon; the person asked keeps the time they were promised. And a
        # paused run asks no person: the next one is asked when it goes on, a wait later.
        due_at_ms = tally.at_ms + tally.manifest.boundary.approval_wait_ms_max if is_due else timer.due_at_ms
        tally.issue(SetTimer(tally.next_id(), due_at_ms, TimerPurpose.APPROVAL, question.id))
        return None
    if is_past_deadline(tally):
        # Where a person may give it more time, the run stands still when this turn is over.
        return None if is_out_of_time(tally) else stop_for_time(tally)
    if not tally.is_standing:
        tally.issue(SetTimer(tally.next_id(), deadline_at_ms(tally), TimerPurpose.DEADLINE))
    return None
