"""Which turns must survive a power loss before anyone acts on them or is told, and how a run is listed.

Rule 1: a turn that orders a mutating call, asks or hears a person, or ends the run, is a barrier.
Rule 2: whatever else a turn orders is safe to repeat, so it may ride on the next barrier.
"""

from remit.core import arrivals
from remit.core.arrivals import Arrival
from remit.core.commands import AskHuman, CallTool
from remit.core.events import Turn
from remit.core.manifest import Manifest
from remit.core.rulings import QuestionSettled, RunEnded
from remit.core.storage import Barrier, Listing
from remit.kernel.state import RunState, questions

# What people say. They are told that they were heard, so it has to last.
SAID_BY_PEOPLE: frozenset[type[Arrival]] = frozenset(
    {
        arrivals.ApprovalGiven,
        arrivals.ApprovalRefused,
        arrivals.OutcomeJudged,
        arrivals.QuestionAnswered,
        arrivals.CancelRequested,
        arrivals.PauseRequested,
        arrivals.ResumeRequested,
        arrivals.FeedbackGiven,
        arrivals.RetryRequested,
        arrivals.SessionNoted,
        arrivals.SourcesAccepted,
    }
)
# Decisions that make a turn a barrier, or may.
_WEIGHTY = frozenset({CallTool, AskHuman, QuestionSettled, RunEnded})


def barrier_of(state: RunState, turn: Turn, heard: int = 0) -> Barrier | None:
    """What must be kept before this turn is acted on, given the state it was decided in; None when nothing must."""
    is_barrier = heard != 0 or type(turn.arrival) in SAID_BY_PEOPLE
    ending = "" if state.ending is None else state.ending.value
    waiting: dict[str, AskHuman] | None = None
    for decision in turn.decisions:
        kind = type(decision)
        if kind not in _WEIGHTY:
            continue
        if isinstance(decision, CallTool):
            is_barrier = is_barrier or decision.mutating
            continue
        is_barrier = True
        if isinstance(decision, RunEnded):
            ending = decision.ending.value
            continue
        if waiting is None:
            waiting = {question.id: question for question in questions(state)}
        if isinstance(decision, AskHuman):
            waiting[decision.id] = decision
        elif isinstance(decision, QuestionSettled):
            waiting.pop(decision.command_id, None)
    if not is_barrier:
        return None
    if ending:
        return Barrier(ending, heard=heard)
    asked = questions(state) if waiting is None else iter(waiting.values())
    first = next(asked, None)
    return Barrier(waiting_for="" if first is None else first.ending.value, heard=heard)


def listing_of(manifest: Manifest, at_ms: int) -> Listing:
    """How a run is listed from its first turn on."""
    request = manifest.request
    return Listing(
        started_at_ms=at_ms,
        mode=request.mode.value,
        tenant_id=request.tenant_id,
        # A child or a fork belongs to a session without taking a place in it.
        session_id="" if manifest.session is None else request.session_id,
        ordinal=0 if manifest.session is None else manifest.session.ordinal,
        parent_id="" if manifest.parent is None else manifest.parent.run_id,
    )
