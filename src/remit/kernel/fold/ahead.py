"""A state ahead of its journal: as it would be after a turn that is not written yet. The state itself stays as it is."""

from copy import copy
from dataclasses import fields, is_dataclass

from remit.core.journal.turn import Turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState


def state_after(state: RunState, turn: Turn) -> RunState:
    """The state after a turn; its hash is not known yet."""
    ahead = copy(state)
    for field in fields(RunState):
        value = getattr(state, field.name)
        if is_dataclass(value) and value is not state.derived:
            group = copy(value)
            for part in fields(value):
                _put_copy(group, part.name)
            setattr(ahead, field.name, group)
        else:
            _put_copy(ahead, field.name)
    # A call without an outcome is traced in place.
    for command_id in ahead.commands.open.keys() & ahead.calls.made.keys():
        ahead.calls.made[command_id] = copy(ahead.calls.made[command_id])
    apply(ahead, turn, b"")
    return ahead


def _put_copy(owner: object, name: str) -> None:
    """Give a group of a copied state a list or a dict of its own."""
    value = getattr(owner, name)
    if isinstance(value, list | dict):
        setattr(owner, name, value.copy())
