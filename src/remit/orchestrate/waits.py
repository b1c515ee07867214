"""Waits: for what a run waits now that its children ask people.

Rule 1: a parent's turns tell under which code a child waited first; what the child asks since, only its own turns tell.
Rule 2: a run waits under the gravest of all codes: of its own questions and of what its children ask now, whoever asks first.
"""

from collections.abc import Awaitable, Callable

from remit.core.contract import WaitingFor
from remit.core.failure import Ending, gravest, stakes_of
from remit.kernel.state import RunState, questions, waiting_for

# The state of a run by its id; None where it cannot be read.
Load = Callable[[str], Awaitable[RunState | None]]


async def held_now(state: RunState, load: Load) -> dict[str, Ending]:
    """The children that a run is held by, and under which code each waits now.

    A child that asks nothing any more holds nothing up where somebody else asks; one that cannot be read stands as it was
    told.
    """
    now: dict[str, Ending] = {}
    for command_id, told in state.held.items():
        child = await load(state.beneath[command_id])
        code = told if child is None else await _waits_under(child, load)
        if code is not None:
            now[command_id] = code
    return now or ({} if state.asking else state.held)


async def _waits_under(state: RunState, load: Load) -> Ending | None:
    if state.ending is not None or not state.held:
        return waiting_for(state)
    asked = [question.ending for question in questions(state)]
    return gravest((*asked, *(await held_now(state, load)).values()))


def joined_with(own: WaitingFor, asked: list[WaitingFor]) -> WaitingFor:
    """What a run waits for with its children, the packets with most at stake first; the first to expire says until when."""
    every = [own, *asked]
    packets = [packet for one in every for packet in zip(one.endings, one.packet_ids, strict=True)]
    packets.sort(key=lambda packet: stakes_of(packet[0]))
    expiring = [one.expires_at_ms for one in every if one.expires_at_ms]
    return WaitingFor(
        # Where nobody asks anything now, the run waits as it was told last.
        ending=gravest([code for code, _ in packets] or [one.ending for one in asked]) or own.ending,
        packet_ids=tuple(packet for _, packet in packets),
        expires_at_ms=min(expiring, default=0),
        endings=tuple(code for code, _ in packets),
    )
