"""What a program that watches runs is told while they go on: each turn, and a meter of what the run waits for and has used.

Rule 1: everything is read off the state; a meter adds nothing up by itself.
"""

from typing import Protocol

from remit.core.journal.turn import Turn
from remit.core.limits.budget import FIELDS, GAUGES, Dimension
from remit.core.record import Record
from remit.core.run.contract import SystemRequest
from remit.core.run.recovery import Recovery
from remit.kernel.state import RunState
from remit.observe.node_names import Places
from remit.observe.reading import Reading
from remit.observe.steps import PerformedStep, StepKind
from remit.observe.views.explain import Spent, spent_of

# What the model would be shown now, which is no gauge: it may have been more before.
CONTEXT_NOW = "context_now"
_LARGEST = frozenset({FIELDS[gauge] for gauge in GAUGES})


class Meter(Record):
    """A run at one moment. `doing` says what is under way, oldest first.

    `spent` has every dimension that adds up, used or not, and what the model would be shown now, at its worst. How far a
    run went in its gauges is told by all of its turns, and not by a moment.
    """

    node: str
    doing: tuple[str, ...]
    spent: tuple[Spent, ...]


def metered(state: RunState) -> Meter:
    """The meter of a run that has started."""
    reading = Reading.of(state)
    context = Spent(CONTEXT_NOW, state.talk.context_tokens, state.spending.caps[Dimension.CONTEXT_TOKENS])
    return Meter(
        node=reading.node,
        doing=tuple(said for key in state.commands.open if (said := _doing(reading.places, reading.steps.get(key)))),
        spent=(*[one for one in spent_of(state, state.at_ms, {}) if one.dimension not in _LARGEST], context),
    )


_WORDS = {
    StepKind.MODEL: "asking {name}",
    StepKind.TOOL: "calling {name}",
    StepKind.QUESTION: "a person is asked",
    StepKind.INQUIRY: "asking {name} what became of a call",
    StepKind.CONTEXT: "looking for evidence",
}


def _doing(places: Places | None, step: PerformedStep | None) -> str:
    """What a step under way means to a waiting user; empty for what is not waited for."""
    if step is None or places is None:
        return ""
    if step.kind is StepKind.CHILD:
        return f"a run beneath works for {step.tool}" if step.tool else f"{step.name} is under way"
    if step.kind is StepKind.CODE:
        at = places.step(step.node)
        return "counting votes" if places.is_ballot(step.node) else f"step {at} is under way" if at else ""
    return _WORDS[step.kind].format(name=step.name)


class Watcher(Protocol):
    """Receives the events of the runs that are driven here, as they happen."""

    def turned(self, run_id: str, request: SystemRequest, turn: Turn) -> None:
        """A turn was written."""

    def measured(self, run_id: str, meter: Meter) -> None:
        """A turn leaves the run: where it stands and what it has used."""

    def said(self, run_id: str, text: str) -> None:
        """A model said something more; it is provisional until its turn is written."""

    def restarted(self, run_id: str) -> None:
        """What the model said since the last turn is void; it begins anew."""

    def recovered(self, run_id: str, recovery: Recovery) -> None:
        """A run was taken up again, and so many of its calls made anew."""

    def abandoned(self, run_id: str, tool: str) -> None:
        """The system was closed while a call went on that had been told to stop."""
