"""Waits: for what a run waits now that its children ask people.

Rule 1: a parent's turns tell under which code a child waited first; what the child asks since, only its own turns tell.
Rule 2: a run waits under the gravest of all codes: of its own questions and of what its children ask now, whoever asks first.
Rule 3: a child that somebody paused, or that heard a no and rests, asks nothing. Where nobody else asks, a run that such a
        child holds up waits under REVIEW_REQUIRED, and names the child: whoever resumes that lets both go on.
"""

from collections.abc import Awaitable, Callable

from remit.core.failure import Ending, gravest, stakes_of
from remit.core.run.contract import WaitingFor
from remit.kernel.state import RunState, questions

# Under which code a run waits for nothing but a child that somebody paused.
PAUSED_AS = Ending.REVIEW_REQUIRED
# The state of a run by its id; None where it cannot be read.
Load = Callable[[str], Awaitable[RunState | None]]


async def held_now(state: RunState, load: Load) -> dict[str, Ending]:
    """The children that a run is held by, and under which code each waits now.

    A child that asks nothing any more holds nothing up where somebody else asks; one that cannot be read stands as it was
    told.
    """
    now = {key: code for key in state.children.held if (code := await _asked_by(state, key, load)) is not None}
    if now or state.people.asking:
        return now
    return dict.fromkeys(state.children.held, PAUSED_AS) if await paused_beneath(state, load) else state.children.held


async def _asked_by(state: RunState, command_id: str, load: Load) -> Ending | None:
    """Under which code a child asks somebody something now, itself or by those beneath it."""
    child = await load(state.children.runs[command_id])
    if child is None:
        return state.children.held[command_id]
    if child.end.ending is not None:
        return None
    asked = [question.ending for question in questions(child)]
    below = [await _asked_by(child, key, load) for key in child.children.held]
    return gravest((*asked, *(code for code in below if code is not None)))


async def paused_beneath(state: RunState, load: Load) -> tuple[str, ...]:
    """The runs beneath one that is held which somebody has to resume before it can go on."""
    found: list[str] = []
    for command_id in state.children.held:
        child = await load(state.children.runs[command_id])
        if child is not None and child.end.ending is None:
            found += [child.run_id] if is_paused(child) else []
            found += await paused_beneath(child, load)
    return tuple(found)


def is_paused(state: RunState) -> bool:
    """Whether a run rests because somebody paused it or said no to it; a halt is lifted and not resumed."""
    return state.place.paused and state.place.halted is None


def joined_with(own: WaitingFor, asked: list[WaitingFor], paused: list[str]) -> WaitingFor:
    """What a run waits for with its children, the packets with most at stake first; the first to expire says until when."""
    every = [own, *asked]
    packets = [packet for one in every for packet in zip(one.endings, one.packet_ids, strict=True)]
    packets.sort(key=lambda packet: stakes_of(packet[0]))
    expiring = [one.expires_at_ms for one in every if one.expires_at_ms]
    return WaitingFor(
        # Where nobody asks anything now and no child is paused, the run waits as it was told last.
        ending=gravest([code for code, _ in packets] or [one.ending for one in asked])
        or (PAUSED_AS if paused else own.ending),
        packet_ids=tuple(packet for _, packet in packets),
        expires_at_ms=min(expiring, default=0),
        endings=tuple(code for code, _ in packets),
        paused=tuple(dict.fromkeys([*paused, *(run_id for one in asked for run_id in one.paused)])),
    )
