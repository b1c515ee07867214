"""The view: what a condition in a graph or a goal may look at. Flat, typed, and named in kernel/guards.py."""

from remit.core.budget import FIELDS, Dimension
from remit.core.commands import AskHuman, StartChild
from remit.core.record import Text
from remit.kernel.grounding import unproven_effects
from remit.kernel.state import RunState
from remit.kernel.tally import Tally

_LEFT = tuple(f"left_{field}" for field in FIELDS)


def view_of(tally: Tally, outcome: str) -> dict[str, object]:
    """The names of GUARD_VIEW with their values at this moment of the turn."""
    state, node = tally.state, tally.graph.nodes[tally.node]
    view: dict[str, object] = {
        "outcome": outcome,
        "node": node.name,
        "lifecycle": node.lifecycle.value,
        "loop_state": node.loop_state.value,
        "visits": state.visits[tally.node] + tally.visits.get(tally.node, 0),
        "iterations": state.iterations,
        "attempt": state.repairs + 1,
        "turns": tally.seq,
        "answer_bytes": size_bytes(tally.answer),
        "proposed_calls": len(tally.calls),
        "refused_calls": len(state.refused),
        "failed_calls": state.calls_failed,
        "committed_observations": sum(state.committed.values()) + len(tally.committed),
        "uncommitted_effects": len(unproven_effects(tally)),
        "approvals_pending": sum(isinstance(command, AskHuman) for command in state.open.values()),
        "children_open": sum(isinstance(command, StartChild) for command in state.open.values()),
        "children_failed": state.children_failed + tally.children_failed,
        "depth": tally.manifest.depth,
        "wall_clock_ms_used": clock_ms_used(state, tally.at_ms),
        "last_tool": state.last_tool,
        "last_error": state.last_error,
        "ending": "" if tally.ending is None else tally.ending.value,
        "repaired": state.repairs > 0,
        "has_schema": tally.manifest.request.output.schema is not None,
    }
    view.update(zip(_LEFT, _left(tally), strict=True))
    return view


def size_bytes(text: Text) -> int:
    """The length of a text in UTF-8 bytes, wherever it lives."""
    return len(text.encode()) if isinstance(text, str) else text.size_bytes


def clock_ms_used(state: RunState, at_ms: int) -> int:
    """How much of the wall clock is used; it stands still while a person is waited for."""
    now = state.standing_since_ms if state.is_standing else at_ms
    return now - state.started_at_ms - state.stood_ms


def _left(tally: Tally) -> list[int]:
    state = tally.state
    amounts = [
        cap - used - reserved - promised
        for cap, used, reserved, promised in zip(state.caps, state.used, state.reserved, tally.promised, strict=True)
    ]
    clock = Dimension.WALL_CLOCK_MS
    amounts[clock] = state.caps[clock] - clock_ms_used(state, tally.at_ms)
    return amounts
