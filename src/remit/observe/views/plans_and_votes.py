"""What a plan and a vote came to: which steps are finished, which replicas answered, who won.

Rule 1: a step counts as finished when the journal says so, and as nothing else.
Rule 2: texts stand here as they were said; the caller makes them fit to print.
"""

from remit.core.failure import ENDINGS
from remit.core.record import Record, Text, replace
from remit.core.run.lifecycle import LifecycleState
from remit.observe.node_names import Places, beginning, gave
from remit.observe.reading import NOT_PASSED, Reading
from remit.observe.steps import ANSWERED_STATUS, CUT_OFF, FAILED, LOST, UNDER_WAY, PerformedStep, StepKind

FINISHED = "finished"
NOT_BEGUN = "not begun"
SENT_BACK = "sent back"


class StepTold(Record):
    """One step of a plan: how it stands, how often it was begun, what it gave, and how often it sent something back."""

    name: str
    type: str
    status: str
    begun: int = 0
    gave: str = ""
    begins: Text = ""
    sent_back: int = 0


class ReplicaTold(Record):
    """One replica of a vote: its number, the run that it is, how it stands, and why it has no vote."""

    number: int
    run_id: str
    status: str = UNDER_WAY
    code: str = ""


class VoteTold(Record):
    """A vote: how many replicas were to be asked, those that were, who won (0 is no replica) and how surely."""

    wanted: int
    replicas: tuple[ReplicaTold, ...]
    winner: int = 0
    votes: int = 0
    confidence_ppm: int = -1


class ChildTold(Record):
    """A run beneath, by what it is to the run above: a step, a replica, a place of the graph."""

    run_id: str
    name: str


_ENDS = (ANSWERED_STATUS, FAILED, LOST, CUT_OFF)


def steps_told(reading: Reading) -> tuple[StepTold, ...]:
    """The steps of a plan in their order, as far as it came; none of a run that is no plan."""
    places = reading.places
    if places is None or not places.steps:
        return ()
    walk = _Walk(reading, places)
    return tuple([_step_told(reading, places, walk, name) for name in places.steps])


def vote_told(reading: Reading) -> VoteTold | None:
    """The vote of a run that has one."""
    places, counted = reading.places, reading.counted
    if places is None or not places.ballots:
        return None
    replicas = tuple([_replica(number, reading.steps[key]) for number, key in enumerate(reading.replicas, 1)])
    told = VoteTold(places.ballots[0].replicas, replicas)
    if counted is None:
        return told
    winner = reading.replicas.index(counted.winner) + 1 if counted.winner in reading.replicas else 0
    return replace(told, winner=winner, votes=counted.votes, confidence_ppm=counted.confidence_ppm)


def children_told(reading: Reading) -> tuple[ChildTold, ...]:
    """The runs that this run started, in their order."""
    children = (step for step in reading.steps.values() if step.kind is StepKind.CHILD)
    return tuple([ChildTold(step.run_id, step.name) for step in children])


class _Walk:
    """Which way a plan went through its steps."""

    def __init__(self, reading: Reading, places: Places) -> None:
        # How often each node was entered; a tool step has two of them.
        entered: dict[str, int] = {}
        self.begun: dict[str, int] = {}
        self.finished: set[str] = set()
        self.sent_back: dict[str, int] = {}
        # The step that was begun last.
        self.last = ""
        for visit, keys in reading.visits:
            if at := places.step(visit.name):
                times = entered[visit.name] = entered.get(visit.name, 0) + 1
                self.begun[at] = max(self.begun.get(at, 0), times)
                self.finished.discard(at)
                self.last = at
            for done in (reading.steps[key] for key in keys):
                if done.kind is StepKind.STEP:
                    self.finished.add(done.name)
                elif at and done.kind is StepKind.NOTE and done.name == NOT_PASSED:
                    self.sent_back[at] = self.sent_back.get(at, 0) + 1


def _step_told(reading: Reading, places: Places, walk: _Walk, name: str) -> StepTold:
    status, type_ = _status(reading, walk, name), places.type_of(name)
    told = StepTold(name, type_, status, begun=walk.begun.get(name, 0), sent_back=walk.sent_back.get(name, 0))
    if status != FINISHED:
        return told
    kind, text = reading.outputs[name]
    return replace(told, gave=gave(kind, text), begins=beginning(kind, text))


def _status(reading: Reading, walk: _Walk, name: str) -> str:
    if name in walk.finished:
        return FINISHED
    if name not in walk.begun:
        return NOT_BEGUN
    if name != walk.last:
        return SENT_BACK
    if reading.ended is None:
        return UNDER_WAY
    return CUT_OFF if ENDINGS[reading.ended.ending].lifecycle is LifecycleState.CANCELLED else FAILED


def _replica(number: int, step: PerformedStep) -> ReplicaTold:
    status = step.status if step.status in _ENDS else UNDER_WAY
    return ReplicaTold(number, step.run_id, status, step.code if status == FAILED else "")
