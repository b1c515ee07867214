"""The outline of a run: its turns as a tree of visits and of what was done at each, and the loop states that it went through."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from remit.core.failure import ENDINGS, Ending, gravest
from remit.core.journal.turn import Turn
from remit.core.record import Record, Text
from remit.core.run.lifecycle import LoopState
from remit.core.run.manifest import Manifest
from remit.kernel.state import label_of
from remit.observe.fact import Fact, FactKind
from remit.observe.figures import readable
from remit.observe.reading import Reading, reading_of
from remit.observe.steps import PerformedStep, StepKind


class Visit(Record):
    """One stay at a node, and what was done there. `outcome` is what led to it; a run begins at no node."""

    node: str
    outcome: str
    seq: int
    began_ms: int
    duration_ms: int
    steps: tuple[PerformedStep, ...]


class Outline(Record):
    """A run as a tree."""

    run_id: str
    request: Text
    boundary: str
    user_id: str
    turns: int
    duration_ms: int
    visits: tuple[Visit, ...]
    ending: str = ""
    error: str = ""
    reason: str = ""
    # How many turns at the beginning are not told.
    left_out: int = 0


def outline(turns: Iterable[Turn]) -> Outline:
    """The tree of a run that has started."""
    return outline_of(reading_of(turns))


def outline_of(reading: Reading, *, last: int = 0) -> Outline:
    """The outline of a run that was read, closed where it has come to; `last` leaves all but so many turns out."""
    manifest, ended = reading.manifest, reading.ended
    assert manifest is not None, "the first turn pins the manifest"
    first = max(reading.turns - last, 0) if last > 0 else 0
    until_ms = reading.now_ms if ended is None else reading.ended_at_ms - reading.began_at_ms
    return Outline(
        run_id=manifest.run_id,
        request=manifest.request.messages[-1].content,
        boundary=manifest.boundary.name,
        user_id=manifest.request.user_id,
        turns=reading.turns,
        duration_ms=until_ms,
        visits=tuple(_visits(reading, first, until_ms)),
        ending="" if ended is None else ended.ending.value,
        error="" if ended is None or ended.error is None else ended.error.value,
        reason="" if ended is None else readable(ended.message),
        left_out=first,
    )


def steps_in(told: Outline) -> Iterator[PerformedStep]:
    """Every step, visit by visit, in the order in which each began."""
    return (step for visit in told.visits for step in visit.steps)


def _visits(reading: Reading, first: int, until_ms: int) -> Iterator[Visit]:
    """The visits that the turns from `first` on had a part in, each with its steps and as long as it took."""
    left_ms = [entered.began_ms for entered, _ in reading.visits[1:]] + [until_ms]
    for (entered, keys), left in zip(reading.visits, left_ms, strict=True):
        steps = tuple(step for key in keys if _is_recent(step := reading.steps[key], first))
        if steps or (entered.name and entered.seq >= first):
            # What arrives after the ending stretches nothing.
            took_ms = max(left - entered.began_ms, 0)
            yield Visit(
                node=entered.name,
                outcome=entered.status,
                seq=entered.seq,
                began_ms=entered.began_ms,
                duration_ms=took_ms,
                steps=steps,
            )


def _is_recent(step: PerformedStep, first: int) -> bool:
    """Whether a turn from this one on had a part in a step; one without an outcome is as recent as can be."""
    return step.until_seq < 0 or step.until_seq >= first


def loop_states(manifest: Manifest, facts: Iterable[Fact]) -> tuple[LoopState, ...]:
    """Each state once for as long as it lasted: where the run stood, that it waited or was paused, how it ended."""
    return tuple(state for state, _ in groupby(_labels(manifest, facts)))


def _labels(manifest: Manifest, facts: Iterable[Fact]) -> Iterator[LoopState]:
    """The nodes that were entered, and what lay over the last of them when a turn was over: never between its rulings."""
    beneath, is_paused = LoopState.EXPLORING, False
    labels = {node.name: label_of(manifest.role, node) for node in manifest.graph.nodes}
    # Under which code it waits, for each question and each child.
    waits: dict[str, Ending] = {}
    for _, turn in groupby(facts, key=lambda fact: fact.seq):
        is_told = False
        for fact in turn:
            match fact.kind, fact.step.kind:
                case FactKind.ENTERED, _:
                    beneath = labels[fact.step.name]
                    yield LoopState.PAUSED if is_paused else beneath
                    continue
                case FactKind.ENDED, _:
                    yield ENDINGS[Ending(fact.step.name)].loop_state
                    # What arrives after the ending changes nothing.
                    return
                case FactKind.PAUSED | FactKind.RESUMED, _:
                    is_paused = fact.kind is FactKind.PAUSED
                case (FactKind.BEGUN, StepKind.QUESTION) | (FactKind.HELD, _):
                    waits[fact.step.id] = Ending(fact.step.waiting_for)
                case FactKind.SETTLED, StepKind.QUESTION:
                    waits.pop(fact.step.id, None)
                case FactKind.HEARD | FactKind.RELEASED, StepKind.CHILD if waits.pop(fact.step.id, None) is not None:
                    pass
                case _:
                    continue
            is_told = True
        if is_told:
            yield LoopState.PAUSED if is_paused else _overlaid(beneath, waits)


def _overlaid(beneath: LoopState, waits: Mapping[str, Ending]) -> LoopState:
    """The state that a wait lays over the work, by the gravest code; the work's own where no person is waited for."""
    code = gravest(waits.values())
    return beneath if code is None else ENDINGS[code].waits_as or LoopState.AWAITING_APPROVAL
