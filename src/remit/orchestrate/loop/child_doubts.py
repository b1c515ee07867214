"""Doubts beneath a run: effects of its children of which nobody knew what became of them, and what was found out since.

Rule 1: a parent's turns tell what a child left when it ended; what the child's tools told since, only its own turns tell.
"""

from remit.core.journal.commands import CallTool
from remit.kernel.results.grounding import child_claim, effects_in_doubt, place_of_child
from remit.kernel.state import LateOutcome, RunState
from remit.observe.views.calls_made import children_of
from remit.observe.views.late_outcomes import Below, Found, joined, late_told
from remit.orchestrate.loop.child_waits import Load


async def doubts_below(state: RunState, load: Load) -> Below:
    """The effects of runs beneath one that has ended: those still in doubt, and what was found out of others."""
    doubted: list[str] = []
    found: dict[str, Found] = {}
    for command_id in children_of(state):
        open_still, known = await _outcomes(state.children.runs[command_id], load)
        doubted += [child_claim(tool, command_id) for tool in sorted(open_still)]
        for tool, late in known:
            if tool not in open_still:
                claim = child_claim(tool, command_id)
                found[claim] = joined(found.get(claim), Found(late_told(claim, late), late.is_returned))
    return Below(tuple(doubted), found)


async def _outcomes(run_id: str, load: Load) -> tuple[set[str], list[tuple[str, LateOutcome]]]:
    """The tools of a run and of those beneath it that are in doubt, and the outcomes that came after an ending."""
    state = await load(run_id)
    if state is None:
        return set(), []
    tools: set[str] = set()
    known: list[tuple[str, LateOutcome]] = []
    for child_id in state.children.runs.values():
        open_still, found = await _outcomes(child_id, load)
        tools |= open_still
        known += found
    settled = {tool for tool, _ in known} - tools
    places = set(map(place_of_child, state.children.runs))
    left = effects_in_doubt(state)
    tools |= {tool for tool, digest in left if digest not in places or tool not in settled}
    # A run that was cut off with the one above it may not have ended yet: what it has under way is in doubt already.
    tools |= {one.tool for one in state.commands.open.values() if isinstance(one, CallTool) and one.mutating}
    return tools, known + [(state.calls.made[command_id].tool, late) for command_id, late in state.end.late.items()]
