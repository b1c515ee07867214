"""What a plan and a vote came to: which steps are finished, which replicas answered, who won.

Rule 1: everything is read off the turns; a step counts as finished when the journal says so, and as nothing else.
Rule 2: texts stand here as they were said; whoever prints them makes them fit to print.
"""

from collections.abc import Sequence

from remit.core.arrivals import ChildEnded, ChildLost
from remit.core.commands import StartChild
from remit.core.events import Turn
from remit.core.failure import ANSWERED, ENDINGS
from remit.core.lifecycle import LifecycleState
from remit.core.record import Record, Text, replace
from remit.core.rulings import CheckFailed, NodeEntered, StepFinished, VoteCounted
from remit.kernel.state import RunState, pinned
from remit.observe.gave import beginning, gave
from remit.observe.places import Places, places_of
from remit.observe.steps import ANSWERED_STATUS, CUT_OFF, FAILED, LOST, UNDER_WAY

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
    """A vote: how many replicas were to be asked, those that were, who won (0 is nobody) and how surely."""

    wanted: int
    replicas: tuple[ReplicaTold, ...]
    winner: int = 0
    votes: int = 0
    confidence_ppm: int = -1


class ChildTold(Record):
    """A run beneath, by what it is to the run above: a step, a replica, a place of the graph."""

    run_id: str
    name: str


def steps_told(state: RunState, turns: Sequence[Turn]) -> tuple[StepTold, ...]:
    """The steps of a plan in their order, as far as it came; none of a run that is no plan."""
    places = places_of(pinned(state).graph)
    if not places.steps:
        return ()
    walk = _Walk(places)
    for turn in turns:
        walk.take(turn)
    return tuple(_step_told(state, places, walk, name) for name in places.steps)


def vote_told(state: RunState, turns: Sequence[Turn]) -> VoteTold | None:
    """The vote of a run that has one."""
    places = places_of(pinned(state).graph)
    if not places.ballots:
        return None
    told: dict[str, ReplicaTold] = {}
    counted: VoteCounted | None = None
    for turn in turns:
        arrival = turn.arrival
        if isinstance(arrival, ChildEnded | ChildLost) and arrival.command_id in told:
            told[arrival.command_id] = _replica(told[arrival.command_id], arrival)
        for decision in turn.decisions:
            if isinstance(decision, StartChild) and places.is_voter(decision.node):
                told[decision.id] = ReplicaTold(len(told) + 1, decision.run_id)
            elif isinstance(decision, VoteCounted):
                counted = decision
    wanted, replicas = places.ballots[0].replicas, tuple(told.values())
    if counted is None:
        return VoteTold(wanted, replicas)
    winner = told[counted.winner].number if counted.winner in told else 0
    return VoteTold(wanted, replicas, winner, counted.votes, counted.confidence_ppm)


def children_told(state: RunState, turns: Sequence[Turn]) -> tuple[ChildTold, ...]:
    """The runs that nodes of this run declared, in the order in which they were started."""
    places = places_of(pinned(state).graph)
    declared: dict[str, int] = {}
    told: list[ChildTold] = []
    for turn in turns:
        for decision in turn.decisions:
            if isinstance(decision, StartChild):
                number = declared[decision.node] = declared.get(decision.node, 0) + 1
                name = places.child(decision.node, number) if decision.node else decision.tool
                told.append(ChildTold(decision.run_id, name))
    return tuple(told)


class _Walk:
    """What the turns of a plan say of its steps."""

    def __init__(self, places: Places) -> None:
        self._places = places
        # How often each node was entered; a tool step has two of them.
        self._entered: dict[str, int] = {}
        self.begun: dict[str, int] = {}
        self.finished: set[str] = set()
        self.sent_back: dict[str, int] = {}
        # Where the run stands: a step, or nothing that belongs to one.
        self.at = self.last = ""

    def take(self, turn: Turn) -> None:
        """Add a turn."""
        for decision in turn.decisions:
            match decision:
                case NodeEntered(node=node):
                    self._enter(node)
                case StepFinished(step=step):
                    self.finished.add(step)
                case CheckFailed() if self.at:
                    self.sent_back[self.at] = self.sent_back.get(self.at, 0) + 1

    def _enter(self, node: str) -> None:
        step = self._places.step(node)
        if step:
            times = self._entered[node] = self._entered.get(node, 0) + 1
            self.begun[step] = max(self.begun.get(step, 0), times)
            self.finished.discard(step)
            self.last = step
        self.at = step


def _step_told(state: RunState, places: Places, walk: _Walk, name: str) -> StepTold:
    status, output = _status(state, walk, name), state.outputs.get(name)
    told = StepTold(
        name, places.type_of(name), status, begun=walk.begun.get(name, 0), sent_back=walk.sent_back.get(name, 0)
    )
    if output is None or status != FINISHED:
        return told
    return replace(told, gave=gave(output.kind, output.text), begins=beginning(output.kind, output.text))


def _status(state: RunState, walk: _Walk, name: str) -> str:
    if name in walk.finished:
        return FINISHED
    if name not in walk.begun:
        return NOT_BEGUN
    if name != walk.last:
        return SENT_BACK
    if state.ending is None:
        return UNDER_WAY
    return CUT_OFF if ENDINGS[state.ending].lifecycle is LifecycleState.CANCELLED else FAILED


def _replica(told: ReplicaTold, arrival: ChildEnded | ChildLost) -> ReplicaTold:
    number, run_id = told.number, told.run_id
    if isinstance(arrival, ChildLost):
        return ReplicaTold(number, run_id, LOST)
    if arrival.ending in ANSWERED:
        return ReplicaTold(number, run_id, ANSWERED_STATUS)
    code = arrival.ending.value if arrival.error is None else arrival.error.value
    return ReplicaTold(number, run_id, FAILED, code)
