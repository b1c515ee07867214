"""The meter of a run: where it stands, what it waits for, and what it has used of each cap, after every turn.

Rule 1: everything is read off the state; a meter adds nothing up by itself.
"""

from remit.core.budget import FIELDS, Dimension
from remit.core.commands import AskHuman, CallModel, CallTool, Command, ReconcileTool, Retrieve, StartChild
from remit.core.record import Record
from remit.kernel.state import RunState, pinned, standing_at
from remit.observe.explain import Spent


class Meter(Record):
    """A run at one moment. `doing` says what is under way, oldest first; `spent` has every dimension, used or not."""

    node: str
    doing: tuple[str, ...]
    spent: tuple[Spent, ...]


def metered(state: RunState) -> Meter:
    """The meter of a run that has started."""
    used = list(state.used)
    stood_ms = state.stood_ms + (state.at_ms - state.standing_since_ms if state.is_standing else 0)
    used[Dimension.WALL_CLOCK_MS] = state.at_ms - state.started_at_ms - stood_ms
    used[Dimension.CONTEXT_TOKENS] = state.context_tokens
    used[Dimension.DEPTH] = pinned(state).depth
    rows = zip(FIELDS, used, state.caps, state.reserved, strict=True)
    return Meter(
        node=standing_at(state).name if state.node >= 0 else "",
        doing=tuple(said for command in state.open.values() if (said := _doing(command))),
        spent=tuple([Spent(*row) for row in rows]),
    )


def _doing(command: Command) -> str:
    """What an open command means to whoever waits; empty for what nobody waits for."""
    match command:
        case CallModel():
            return f"asking {command.model}"
        case CallTool():
            return f"calling {command.tool}"
        case StartChild():
            return f"a run beneath works for {command.tool or 'it'}"
        case AskHuman():
            return "a person is asked"
        case ReconcileTool():
            return f"asking {command.tool} what became of a call"
        case Retrieve():
            return "looking for evidence"
        case _:
            return ""
