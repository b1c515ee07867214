"""Runs beneath a run: what they ask people now, which effects they left in doubt, and which were left behind.

Rule 1: a parent's turns tell under which code a child waited first; what the child asks since, only its own turns tell.
Rule 2: a run waits under the gravest of all codes: of its own questions and of what its children ask now, in any order.
Rule 3: a child that a person paused, or that heard a no and rests, asks nothing. Where no other asks, a run that such a
        child holds up waits under REVIEW_REQUIRED, and names the child: resuming that lets both go on.
Rule 4: a child that has ended, is gone, goes on or stands still for a halt keeps no person waiting, whatever its parent was
        told: a run with nothing but such children is open, and goes on when it is resumed.
Rule 5: the effects that a child left in doubt are told by its parent's turns; what the child's tools told since, only by the
        child's own.
Rule 6: a run that ends tells its children. One that its process left open is an orphan: no run waits for what it does, so a
        process that meets it cancels it. What it asks is not shown as asked, and no answer to it is taken.
"""

from collections.abc import Awaitable, Callable

from remit.core.failure import Ending, RequestRejected, gravest, stakes_of
from remit.core.journal.commands import CallTool, place_in_journal
from remit.core.journal.rulings import RunPaused
from remit.core.journal.storage import RunEntry
from remit.core.run.contract import WaitingFor
from remit.kernel.results.proven_effects import child_effect_in_words, effects_in_doubt, place_of_child
from remit.kernel.state import RunState, pinned, questions
from remit.kernel.traces import LateOutcome
from remit.observe.views.calls_made import children_of
from remit.observe.views.late_outcomes import EffectsBeneath, FoundOutcome, joined_outcomes, late_told
from remit.orchestrate.ports import Catalogue

# Under which code a run waits for nothing but a child that a person paused.
PAUSED_AS = Ending.REVIEW_REQUIRED
# The state of a run by its id; None where it cannot be read.
Load = Callable[[str], Awaitable[RunState | None]]


async def held_now(state: RunState, load: Load) -> dict[str, Ending]:
    """The children for which a run waits for a person, and under which code each waits now.

    A child that asks nothing any more holds nothing up where another child asks; one that cannot be read stands as it was
    told.
    """
    held = state.children.waiting
    now = {key: code for key in held if (code := await _asked_by(state, key, load)) is not None}
    if now or state.people.asking:
        return now
    return {key: PAUSED_AS for key in held if any(map(is_paused, await _open_beneath(state, key, load)))}


async def _asked_by(state: RunState, command_id: str, load: Load) -> Ending | None:
    """Under which code a child asks a person something now, itself or by those beneath it."""
    child = await load(state.children.runs[command_id])
    if child is None:
        return state.children.waiting[command_id]
    if child.end.ending is not None:
        return None
    asked = [question.ending for question in questions(child)]
    below = [await _asked_by(child, key, load) for key in child.children.waiting]
    return gravest((*asked, *(code for code in below if code is not None)))


async def paused_beneath(state: RunState, load: Load) -> tuple[str, ...]:
    """The runs beneath one that is held which a person has to resume before it can go on."""
    found = [run for key in state.children.waiting for run in await _open_beneath(state, key, load)]
    return tuple([run.run_id for run in found if is_paused(run)])


async def halted_beneath(state: RunState, load: Load) -> RunPaused | None:
    """The halt that a run beneath one that is held stands still for."""
    found = [run for key in state.children.waiting for run in await _open_beneath(state, key, load)]
    return next((run.place.halted for run in found if run.place.halted is not None), None)


async def _open_beneath(state: RunState, command_id: str, load: Load) -> list[RunState]:
    """A child that holds a run up, and those that hold the child up, as far as they are open and can be read."""
    child = await load(state.children.runs[command_id])
    if child is None or child.end.ending is not None:
        return []
    return [child, *[run for key in child.children.waiting for run in await _open_beneath(child, key, load)]]


def is_paused(state: RunState) -> bool:
    """Whether a run rests because a person paused it or said no to it; a halt is lifted and not resumed."""
    return state.place.paused and state.place.halted is None


def joined_with(own: WaitingFor, asked: list[WaitingFor], paused: list[str]) -> WaitingFor | None:
    """What a run waits for with its children, the packets with most at stake first; the first to expire says until when.

    None where no person is waited for: those children that held the run up have ended, or go on.
    """
    if not own.packet_ids and not asked and not paused:
        return None
    every = [own, *asked]
    packets = [packet for one in every for packet in zip(one.endings, one.packet_ids, strict=True)]
    packets.sort(key=lambda packet: stakes_of(packet[0]))
    expiring = [one.expires_at_ms for one in every if one.expires_at_ms]
    return WaitingFor(
        ending=gravest([code for code, _ in packets] or [one.ending for one in asked]) or PAUSED_AS,
        packet_ids=tuple(packet for _, packet in packets),
        expires_at_ms=min(expiring, default=0),
        endings=tuple(code for code, _ in packets),
        packets=tuple(
            sorted([packet for one in every for packet in one.packets], key=lambda one: stakes_of(one.ending))
        ),
        paused=tuple(dict.fromkeys([*paused, *(run_id for one in asked for run_id in one.paused)])),
    )


async def run_beneath(state: RunState, command_id: str, load: Load) -> RunState | None:
    """The child that a command of a run started; None where it cannot be read, or has no turn.

    A fork copies that a child has ended, and not the child: what that did stands with the run that it was copied from.
    """
    child = await load(state.children.runs[command_id])
    if child is not None and child.seq >= 0:
        return child
    origin = pinned(state).forked_from
    is_copied = origin is not None and place_in_journal(command_id)[0] <= origin.seq
    if origin is None or not is_copied or command_id in state.commands.open:
        return None
    copied = await load(origin.run_id)
    if copied is None or command_id not in copied.children.runs:
        return None
    return await run_beneath(copied, command_id, load)


async def doubts_below(state: RunState, load: Load) -> EffectsBeneath:
    """The effects of runs beneath one that has ended: those still in doubt, and what was found out of others."""
    doubted: list[str] = []
    found: dict[str, FoundOutcome] = {}
    for command_id in children_of(state):
        open_still, known = await _outcomes(await run_beneath(state, command_id, load), load)
        doubted += [child_effect_in_words(tool, command_id) for tool in sorted(open_still)]
        for tool, late in known:
            if tool not in open_still:
                claim = child_effect_in_words(tool, command_id)
                found[claim] = joined_outcomes(found.get(claim), FoundOutcome(late_told(claim, late), late.is_returned))
    return EffectsBeneath(tuple(doubted), found)


async def _outcomes(state: RunState | None, load: Load) -> tuple[set[str], list[tuple[str, LateOutcome]]]:
    """The tools of a run and of those beneath it that are in doubt, and the outcomes that came after an ending."""
    if state is None:
        return set(), []
    tools: set[str] = set()
    known: list[tuple[str, LateOutcome]] = []
    for command_id in state.children.runs:
        open_still, found = await _outcomes(await run_beneath(state, command_id, load), load)
        tools |= open_still
        known += found
    settled = {tool for tool, _ in known} - tools
    places = set(map(place_of_child, state.children.runs))
    left = effects_in_doubt(state)
    tools |= {tool for tool, digest in left if digest not in places or tool not in settled}
    # A run that was cut off with the one above it may not have ended yet: what it has under way is in doubt already.
    tools |= {one.tool for one in state.commands.open.values() if isinstance(one, CallTool) and one.mutating}
    return tools, known + [(state.calls.made[command_id].tool, late) for command_id, late in state.end.late.items()]


PARENT_ENDED = "PARENT_ENDED"


async def orphan_above(catalogue: Catalogue, entry: RunEntry) -> RunEntry | None:
    """The nearest open run, from this one upwards, whose parent has ended or is missing; None if there is none."""
    while not entry.ending and entry.listing.parent_id:
        parent = await catalogue.entry(entry.listing.parent_id)
        if parent is None or parent.ending:
            return entry
        entry = parent
    return None


async def orphans(catalogue: Catalogue) -> list[RunEntry]:
    """The runs that were left behind, newest first; what is beneath them ends with them."""
    found = [(entry, await orphan_above(catalogue, entry)) for entry in await catalogue.entries(open_only=True)]
    return [entry for entry, orphan in found if orphan is not None and orphan.run_id == entry.run_id]


def left_behind(run_id: str, orphan: RunEntry) -> RequestRejected:
    """Why a run hears no signal any more."""
    parent_id = orphan.listing.parent_id
    message = (
        f"run {parent_id}, for which run {run_id} worked, has ended; so run {run_id} is cancelled and nothing more is "
        f"done in it; start anew what is still wanted, or try run {parent_id} again"
    )
    return RequestRejected(PARENT_ENDED, message, {"run_id": run_id, "parent_id": parent_id})
