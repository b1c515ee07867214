"""Waits: for what a run waits now that its children ask people.

Rule 1: a parent's turns tell under which code a child waited first; what the child asks since, only its own turns tell.
Rule 2: a run waits for its own first question; where it asks nothing itself, for that of the first child that asks now.
"""

from collections.abc import Awaitable, Callable

from remit.core.contract import WaitingFor
from remit.core.failure import Ending
from remit.kernel.state import RunState, waiting_for

# The state of a run by its id; None where it cannot be read.
Load = Callable[[str], Awaitable[RunState | None]]


async def held_now(state: RunState, load: Load) -> dict[str, Ending]:
    """The children that a run is held by, and under which code each waits: those first that ask something now."""
    now: dict[str, Ending] = {}
    for command_id in state.held:
        child = await load(state.beneath[command_id])
        code = None if child is None else await _waits_under(child, load)
        if code is not None:
            now[command_id] = code
    return now | {command_id: code for command_id, code in state.held.items() if command_id not in now}


async def _waits_under(state: RunState, load: Load) -> Ending | None:
    if not state.held or state.asking or state.ending is not None:
        return waiting_for(state)
    return next(iter((await held_now(state, load)).values()))


def joined_with(own: WaitingFor, asked: list[WaitingFor], *, asks_itself: bool) -> WaitingFor:
    """What a run waits for, its own questions before those of its children; the first to expire says until when."""
    every = [own, *asked]
    first = own if asks_itself or not asked else asked[0]
    expiring = [one.expires_at_ms for one in every if one.expires_at_ms]
    packets = tuple([packet for one in every for packet in one.packet_ids])
    return WaitingFor(first.ending, packets, min(expiring, default=0))
