"""What runs needed from each of their model calls on, read off their turns, and what that says of runs like them.

Rule 1: a run is judged where it is about to ask its model, by what is left then, and nowhere else: one that has its answer
        needs no more of it. So what it needed is counted from the same moments. Of several calls between two answers,
        which are retries, the last one counts: what failed attempts cost is not needed.
Rule 2: what was needed at least is how much less was left at the ending than at that moment. Whatever open commands held
        and gave back, and whatever people released meanwhile, has lowered it already. So no run is ever stopped by what
        was learned from it: at its ending nothing was less than nothing.
Rule 3: what was needed at most is what was charged from the first of those calls on, what children spent included.
Rule 4: the words of a model or a tool are not read.
"""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from remit.core.failure import Ending
from remit.core.journal.commands import CallModel
from remit.core.journal.rulings import NodeEntered, StoppedEarly
from remit.core.journal.turn import Turn
from remit.core.limits.budget import COUNTERS, FIELDS, Charges, Dimension
from remit.core.limits.foresight import MILESTONES_MAX, RUNS_MIN, Foresight, Milestone, milestone_after, needed_after
from remit.core.record import BlobRef, Record, Text
from remit.core.run.manifest import Manifest
from remit.core.work.graph import NodeKind
from remit.kernel.state import RunState, pinned

_COUNTED = tuple(int(dimension) for dimension in COUNTERS)
_STEPS = int(Dimension.STEPS)
_MODEL = NodeKind.MODEL
# Kinds of tasks that one process has under way; an entry takes half a kilobyte.
LIKENESSES_KEPT_MAX = 1_024

# What one run still needed, by the number of answers from 0.
Course = tuple[Milestone, ...]


class Shortfall(Record):
    """A model call for which less was left than is needed at least: in which turn, after how many answers, of what."""

    seq: int
    answers: int
    dimension: Dimension
    left: int
    needed: int


class Stopped(Record):
    """Why a run was stopped early: of which dimension too little was left, what it needed at least, what that saved."""

    dimension: str
    left: int
    needed: int
    saved: tuple[tuple[str, int], ...] = ()


class Need(Record):
    """What a run still needs of a dimension, as far as runs like it tell."""

    dimension: str
    least: int
    most: int


class _Moment(NamedTuple):
    """A model call, as it was about to be ordered: what was left then, and what had been used."""

    seq: int
    answers: int
    left: tuple[int, ...]
    used: tuple[int, ...]


def likeness_of(manifest: Manifest) -> str:
    """What runs have in common that can be compared; empty for one that is neither foreseen nor learned from.

    Runs of other tenants are never alike. Of two requests, one is at most twice as long as the other.
    """
    if manifest.parent is not None or not manifest.boundary.stops_early:
        return ""
    if not manifest.models or not any(node.kind is _MODEL for node in manifest.graph.nodes):
        return ""
    request, versions = manifest.request, manifest.versions
    task_class = "" if manifest.goal is None or manifest.goal.task_class is None else manifest.goal.task_class.value
    length = sum(_length_bytes(message.content) for message in request.messages)
    parts = (versions.graph, versions.boundary, versions.tools, task_class, manifest.models[0].name, request.tenant_id)
    return _likeness(*parts, length.bit_length())


# A pure memo: runs that are alike come one after the other, and each is asked about twice.
@lru_cache(maxsize=LIKENESSES_KEPT_MAX)
def _likeness(*parts: str | int) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()


def course_of(steps: Iterable[tuple[Turn, RunState]]) -> Course:
    """What a run that succeeded needed, from its turns with the state after each; nothing of one that did not."""
    moments, ended = _moments(steps)
    if ended is None or ended.end.ending is not Ending.SUCCESS:
        return ()
    first: dict[int, _Moment] = {}
    last: dict[int, _Moment] = {}
    for moment in moments:
        first.setdefault(moment.answers, moment)
        last[moment.answers] = moment
    left, used = ended.spending.left, ended.used
    return tuple(
        [
            Milestone(
                least=_positive([(d, last[answers].left[d] - left[d]) for d in _COUNTED]),
                most=_positive([(d, used[d] - first[answers].used[d]) for d in _COUNTED]),
            )
            for answers in range(min(len(last), MILESTONES_MAX))
        ]
    )


def foresight_of(courses: Iterable[Course], *, runs_min: int = RUNS_MIN) -> Foresight | None:
    """What these runs say of the next one like them; None where they are too few to say anything."""
    counted = [course for course in courses if course]
    milestones: list[Milestone] = []
    for answers in range(MILESTONES_MAX):
        came = [course[answers] for course in counted if answers < len(course)]
        if len(came) < runs_min:
            break
        milestones.append(_together(came))
    return Foresight(len(counted), tuple(milestones)) if milestones else None


def needs_of(state: RunState) -> tuple[Need, ...]:
    """The interval of what an open run still needs, per counter; none where too little is known.

    Like runs say both ends of it; the maker of the plan may widen the upper one, and nothing else.
    """
    manifest = pinned(state)
    if state.end.ending is not None:
        return ()
    milestone = None if manifest.foresight is None else milestone_after(manifest.foresight, state.counts.iterations)
    least, most = (dict(milestone.least), dict(milestone.most)) if milestone is not None else ({}, {})
    for name, amount in manifest.plan.estimate if manifest.plan is not None else ():
        dimension = FIELDS.index(name)
        most[dimension] = max(most.get(dimension, 0), amount - state.used[dimension])
    return tuple(Need(FIELDS[d], least.get(d, 0), amount) for d, amount in sorted(most.items()) if amount)


def early_stop(stopped: StoppedEarly | None) -> Stopped | None:
    """Why a run was stopped early, in names; None of one that was not."""
    if stopped is None:
        return None
    saved = tuple((FIELDS[dimension], amount) for dimension, amount in stopped.saved)
    return Stopped(FIELDS[stopped.dimension], stopped.left, stopped.needed, saved)


def shortfall_in(steps: Iterable[tuple[Turn, RunState]], foresight: Foresight) -> Shortfall | None:
    """The first model call of a recorded run at which this foresight would have stopped it."""
    for moment in _moments(steps)[0]:
        for dimension, needed in needed_after(foresight, moment.answers):
            if moment.left[dimension] < needed:
                left = moment.left[dimension]
                return Shortfall(moment.seq, moment.answers, Dimension(dimension), left, needed)
    return None


def _length_bytes(text: Text) -> int:
    """The length of a text as it is stored, also of one that was not made fit for that yet."""
    return text.size_bytes if isinstance(text, BlobRef) else len(text.encode("utf-8", "replace"))


def _moments(steps: Iterable[tuple[Turn, RunState]]) -> tuple[list[_Moment], RunState | None]:
    """Every model call of a run up to its ending, and the state it ended in."""
    moments: list[_Moment] = []
    for turn, state in steps:
        for place, decision in enumerate(turn.decisions):
            if isinstance(decision, CallModel):
                moments.append(_moment(turn, state, place, decision))
        if state.end.ending is not None:
            # What comes after an ending changes nothing, and is none of its cost.
            return moments, state
    return moments, None


def _moment(turn: Turn, state: RunState, place: int, call: CallModel) -> _Moment:
    left = list(state.spending.left)
    # It was judged before it entered the node that asks, unless it tries again there.
    left[_STEPS] += any(type(decision) is NodeEntered for decision in turn.decisions[:place])
    for dimension, amount in call.reserved:
        left[dimension] += amount
    return _Moment(turn.seq, state.counts.iterations, tuple(left), tuple(state.used))


def _positive(amounts: Iterable[tuple[int, int]]) -> Charges:
    return tuple([(dimension, amount) for dimension, amount in amounts if amount > 0])


def _together(milestones: Sequence[Milestone]) -> Milestone:
    """The least of what was needed at least, and the most of what was needed at most."""
    least, most = dict(milestones[0].least), dict(milestones[0].most)
    for milestone in milestones[1:]:
        amounts = dict(milestone.least)
        least = {d: min(amount, amounts[d]) for d, amount in least.items() if d in amounts}
        for dimension, amount in milestone.most:
            if amount > most.get(dimension, 0):
                most[dimension] = amount
    return Milestone(tuple(least.items()), tuple(sorted(most.items())))
