"""The meter of a run: where it stands, what it waits for, and what it has used of each cap, after every turn.

Rule 1: everything is read off the state; a meter adds nothing up by itself.
"""

from remit.core.record import Record
from remit.kernel.state import RunState
from remit.observe.places import Places
from remit.observe.reading import Reading
from remit.observe.steps import Step, StepKind
from remit.observe.views.explain import Spent, spent_of


class Meter(Record):
    """A run at one moment. `doing` says what is under way, oldest first; `spent` has every dimension, used or not."""

    node: str
    doing: tuple[str, ...]
    spent: tuple[Spent, ...]


def metered(state: RunState) -> Meter:
    """The meter of a run that has started."""
    reading = Reading.of(state)
    return Meter(
        node=reading.node,
        doing=tuple(said for key in state.commands.open if (said := _doing(reading.places, reading.steps.get(key)))),
        spent=tuple(spent_of(state, state.at_ms)),
    )


_WORDS = {
    StepKind.MODEL: "asking {name}",
    StepKind.TOOL: "calling {name}",
    StepKind.QUESTION: "a person is asked",
    StepKind.INQUIRY: "asking {name} what became of a call",
    StepKind.CONTEXT: "looking for evidence",
}


def _doing(places: Places | None, step: Step | None) -> str:
    """What a step under way means to whoever waits; empty for what nobody waits for."""
    if step is None or places is None:
        return ""
    if step.kind is StepKind.CHILD:
        return f"a run beneath works for {step.tool}" if step.tool else f"{step.name} is under way"
    if step.kind is StepKind.CODE:
        at = places.step(step.node)
        return "counting votes" if places.is_ballot(step.node) else f"step {at} is under way" if at else ""
    return _WORDS[step.kind].format(name=step.name)
