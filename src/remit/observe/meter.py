"""The meter of a run: where it stands, what it waits for, and what it has used of each cap, after every turn.

Rule 1: everything is read off the state; a meter adds nothing up by itself.
"""

from remit.core.budget import FIELDS, Dimension
from remit.core.commands import AskHuman, CallCode, CallModel, CallTool, Command, ReconcileTool, Retrieve, StartChild
from remit.core.record import Record
from remit.kernel.state import RunState, pinned, standing_at
from remit.observe.calls_made import place_of
from remit.observe.explain import Spent, released
from remit.observe.places import places_of


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
    rows = zip(FIELDS, used, state.caps, state.reserved, released(state), strict=True)
    return Meter(
        node=standing_at(state).name if state.node >= 0 else "",
        doing=tuple(said for command in state.open.values() if (said := _doing(state, command))),
        spent=tuple([Spent(*row) for row in rows]),
    )


def _doing(state: RunState, command: Command) -> str:
    """What an open command means to whoever waits; empty for what nobody waits for."""
    match command:
        case CallModel():
            return f"asking {command.model}"
        case CallTool():
            return f"calling {command.tool}"
        case StartChild():
            return f"{_child(state, command)} is under way" if command.node else _works_for(command)
        case CallCode():
            return _code(state)
        case AskHuman():
            return "a person is asked"
        case ReconcileTool():
            return f"asking {command.tool} what became of a call"
        case Retrieve():
            return "looking for evidence"
        case _:
            return ""


def _works_for(command: StartChild) -> str:
    return f"a run beneath works for {command.tool or 'it'}"


def _child(state: RunState, command: StartChild) -> str:
    """What a child is called that a node declares: those before it have ended, or are under way as well."""
    beside = [c.id for c in state.open.values() if isinstance(c, StartChild) and c.node == command.node]
    ended = [child.command_id for child in state.children if child.node == command.node]
    order = sorted([*beside, *ended], key=place_of)
    return places_of(pinned(state).graph).child(command.node, order.index(command.id) + 1)


def _code(state: RunState) -> str:
    """What code of the user is doing where the run stands."""
    node = standing_at(state)
    if node.ballot is not None:
        return "counting votes"
    step = places_of(pinned(state).graph).step(node.name)
    return f"step {step} is under way" if step else ""
