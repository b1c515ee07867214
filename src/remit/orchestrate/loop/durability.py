"""Which turns must survive a power loss before any component acts on them or hears of them, and how a run is listed.

Rule 1: a turn that orders a mutating call, asks or hears a person, or ends the run, is a barrier; so is one that begins or
        ends the waiting for a child, since the run is listed otherwise from there on.
Rule 2: so is every turn after the ending, since nothing follows that would sign it.
Rule 3: whatever else a turn orders is safe to repeat, so it may ride on the next barrier.
"""

from collections.abc import Iterable, Sequence
from typing import get_args

from remit.core.failure import Ending, gravest
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import AskHuman, ForkRun
from remit.core.journal.rulings import (
    ChildHeld,
    ChildReleased,
    QuestionSettled,
    RunEnded,
    RunPaused,
    RunResumed,
)
from remit.core.journal.storage import Barrier, RunEntry, RunListing
from remit.core.journal.turn import Decision, Turn
from remit.core.run.contract import GUARD_MODE
from remit.core.run.halt import HALTED
from remit.core.run.manifest import Manifest, lineage_of
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, questions
from remit.observe.cost.like_runs import likeness_of
from remit.observe.proof.verify import ACTED_ON, ANSWERED_BY_THE_WORLD, decides_any

# What people say. They are told that they were heard, so it has to last. Every kind of arrival counts as theirs that is not
# in ANSWERED_BY_THE_WORLD.
SAID_BY_PEOPLE: frozenset[type[Arrival]] = frozenset(get_args(Arrival)) - ANSWERED_BY_THE_WORLD
# After these a run may no longer be listed as waiting.
HEAVY = SAID_BY_PEOPLE | {arrivals.ChildEnded, arrivals.ChildLost}
# From which rules on a run is listed under the gravest code that it waits under.
LISTED_BY_STAKES_SINCE = 3
# Decisions that make their turn a barrier; of calls, the mutating ones. A hold is listed, and no one acts on it.
WEIGHTY: frozenset[type[Decision]] = ACTED_ON | {ChildHeld, ChildReleased}


def barrier_of(state: RunState, turn: Turn, entry: int = 0) -> Barrier | None:
    """The barrier that must be kept before this turn is acted on, given the state it was decided in; None where none must."""
    if state.end.ending is not None:
        return Barrier(state.end.ending.value, heard=entry, answer=answer_of(turn) if entry else "", seq=turn.seq)
    if not entry and type(turn.arrival) not in HEAVY and not decides_any(turn, WEIGHTY):
        return None
    weighty = [decision for decision in turn.decisions if type(decision) in WEIGHTY]
    for decision in weighty:
        if isinstance(decision, RunEnded):
            return Barrier(decision.ending.value, heard=entry, seq=turn.seq)
    return Barrier(waiting_for=_waiting_after(state, turn, weighty), heard=entry, seq=turn.seq)


def answer_of(turn: Turn) -> str:
    """What a sender that was heard is told: the fork that its retry ordered."""
    return next((decision.run_id for decision in turn.decisions if isinstance(decision, ForkRun)), "")


def _waiting_after(state: RunState, turn: Turn, weighty: Sequence[Decision]) -> str:
    """Under which code the run waits once the turn is folded; empty when it goes on."""
    if _is_halted_after(state, turn):
        return HALTED
    waiting: dict[str, Ending] = {question.id: question.ending for question in questions(state)}
    waiting |= {child: ending for child, ending in state.children.waiting.items() if child != _about(turn)}
    for decision in weighty:
        if isinstance(decision, AskHuman):
            waiting[decision.id] = decision.ending
        elif isinstance(decision, ChildHeld):
            waiting[decision.command_id] = decision.waiting_for
        elif isinstance(decision, QuestionSettled | ChildReleased):
            waiting.pop(decision.command_id, None)
    return gravest(waiting.values()) or ""


def _is_halted_after(state: RunState, turn: Turn) -> bool:
    """Whether a halt holds the run: then nothing that it asks can be answered."""
    is_halted = state.place.halted is not None
    for decision in turn.decisions:
        if isinstance(decision, RunPaused | RunResumed):
            is_halted = isinstance(decision, RunPaused) and decision.what != ""
    return is_halted


def _about(turn: Turn) -> str:
    command_id: str = getattr(turn.arrival, "command_id", "")
    return command_id


def standing_after(turns: Iterable[Turn]) -> Barrier:
    """How a run is listed once these turns are written: as its last barrier said."""
    state, standing = RunState(), Barrier()
    for turn in turns:
        standing = barrier_of(state, turn) or standing
        apply(state, turn, b"")
    return standing


def run_listing(manifest: Manifest, at_ms: int) -> RunListing:
    """How a run is listed from its first turn on."""
    request = manifest.request
    return RunListing(
        started_at_ms=at_ms,
        mode=request.mode.value if manifest.host is None else GUARD_MODE,
        tenant_id=request.tenant_id,
        # A child or a fork belongs to a session without taking a place in it.
        session_id="" if manifest.session is None else request.session_id,
        ordinal=0 if manifest.session is None else manifest.session.ordinal,
        parent_id="" if manifest.parent is None else manifest.parent.run_id,
        likeness=likeness_of(manifest),
        lineage=lineage_of(manifest),
        name="" if manifest.host is None else manifest.host.name,
    )


# What a list says of a run from its first turn on. What runs are alike by, and what they reserve, it does not tell.
_COLUMNS = ("started_at_ms", "mode", "tenant_id", "session_id", "ordinal", "parent_id", "lineage", "name")


def ill_listed(entry: RunEntry, data: Sequence[bytes]) -> str:
    """In what a run is listed otherwise than its turns say, and what mends it; empty where it is not.

    A reader who is misled by the list would overlook an open run.
    """
    # Another process may have written since the run was looked up, and then its entry speaks of fewer turns.
    wrong = _differences(entry, data) if data and entry.turns == len(data) else ""
    return (
        wrong and f"run {entry.run_id} is listed otherwise than its turns say: {wrong}; `remit rebuild` lists it anew"
    )


def _differences(entry: RunEntry, data: Sequence[bytes]) -> str:
    """What the list of runs says of a run and its turns do not, column by column; empty where it says the same."""
    turns = [decode_turn(stored) for stored in data]
    standing, began = standing_after(turns), turns[0]
    assert isinstance(began.arrival, arrivals.RunStarted), "a run that verifies begins with its start"
    listing = run_listing(began.arrival.manifest, began.at_ms)
    told = {column: (getattr(entry.listing, column), getattr(listing, column)) for column in _COLUMNS}
    told["ending"] = entry.ending, str(standing.ending)
    # Earlier versions listed a run under the code of its first question.
    is_by_the_first = began.kernel < LISTED_BY_STAKES_SINCE and HALTED not in (entry.waiting_for, standing.waiting_for)
    if not is_by_the_first or bool(entry.waiting_for) != bool(standing.waiting_for):
        told["waiting_for"] = entry.waiting_for, str(standing.waiting_for)
    wrong = [
        f"{column} is {listed!r}, and {true!r} by its turns"
        for column, (listed, true) in told.items()
        if listed != true
    ]
    return "; ".join(wrong)
