"""The view: what a condition in a graph or a goal may look at. Flat, typed, and named in kernel/graph/edge_conditions.py.

Rule 1: a value is worked out when a condition asks for its name, and only then; most conditions use two or three.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from remit.core.journal.commands import StartChild
from remit.core.journal.rulings import UNVERIFIED, CallSettled, CommandSettled, Rung, ToolCallRefused
from remit.core.limits.budget import Dimension
from remit.core.record import size_bytes
from remit.core.work.graph import Node
from remit.kernel.graph.edge_conditions import GUARD_VIEW
from remit.kernel.results.proven_effects import unproven_effects
from remit.kernel.state import label_of
from remit.kernel.tally import Tally

# What a name stands for, given the tally of the turn and the outcome of the visit that just ended.
Value = Callable[[Tally, str], object]


def view_of(tally: Tally, outcome: str, names: Iterable[str] = GUARD_VIEW) -> dict[str, object]:
    """These names, or all of them, with their values at this moment of the turn."""
    return {name: VALUES[name](tally, outcome) for name in names}


def clock_ms_used(tally: Tally) -> int:
    """How much of the wall clock is used; it stands still while a person is waited for."""
    return tally.at_ms - tally.state.clock.started_at_ms - tally.state.clock.stood_ms - tally.standing_ms


def _node(tally: Tally) -> Node:
    return tally.graph.nodes[tally.node]


def _refused_now(tally: Tally) -> int:
    return sum(isinstance(decision, ToolCallRefused) for decision in tally.decisions)


def _failed_now(tally: Tally) -> int:
    settled = (decision for decision in tally.decisions if isinstance(decision, CallSettled))
    return sum(ruling.rung is not Rung.COMMITTED and ruling.code != UNVERIFIED for ruling in settled)


def _children_open(tally: Tally) -> int:
    ended = [decision.command_id for decision in tally.decisions if isinstance(decision, CommandSettled)]
    children = (c for c in (*tally.state.commands.open.values(), *tally.decisions) if isinstance(c, StartChild))
    return sum(child.id not in ended for child in children)


def _left_of(dimension: Dimension) -> Value:
    return lambda tally, _: tally.left[dimension]


VALUES: Mapping[str, Value] = MappingProxyType(
    {
        "outcome": lambda _, outcome: outcome,
        "node": lambda tally, _: _node(tally).name,
        "lifecycle": lambda tally, _: _node(tally).lifecycle.value,
        "loop_state": lambda tally, _: label_of(tally.manifest.role, _node(tally)).value,
        "visits": lambda tally, _: tally.state.place.visits[tally.node] + tally.visits.count(tally.node),
        "iterations": lambda tally, _: tally.state.counts.iterations + tally.answers,
        "attempt": lambda tally, _: tally.state.counts.repairs + 1,
        "turns": lambda tally, _: tally.state.seq + 1,
        "answer": lambda tally, _: tally.answer if isinstance(tally.answer, str) else "",
        "answer_bytes": lambda tally, _: size_bytes(tally.answer),
        "proposed_calls": lambda tally, _: len(tally.proposed),
        "refused_calls": lambda tally, _: len(tally.state.calls.refused) + _refused_now(tally),
        "failed_calls": lambda tally, _: tally.state.counts.calls_failed + _failed_now(tally),
        "committed_observations": lambda tally, _: sum(tally.state.effects.committed.values()) + len(tally.committed),
        "uncommitted_effects": lambda tally, _: len(unproven_effects(tally)),
        "approvals_pending": lambda tally, _: tally.asking,
        "children_open": lambda tally, _: _children_open(tally),
        "children_failed": lambda tally, _: tally.state.children.failed + tally.children_failed,
        "depth": lambda tally, _: tally.manifest.depth,
        "wall_clock_ms_used": lambda tally, _: clock_ms_used(tally),
        "last_tool": lambda tally, _: tally.state.calls.last_tool,
        "last_error": lambda tally, _: tally.last_error or tally.state.counts.last_error,
        "ending": lambda tally, _: "" if tally.ending is None else tally.ending.value,
        "repaired": lambda tally, _: tally.state.counts.repairs > 0,
        "has_schema": lambda tally, _: tally.manifest.request.output.schema is not None,
        **{f"left_{dimension.name.lower()}": _left_of(dimension) for dimension in Dimension},
        # The clock is not charged like the rest; it runs.
        "left_wall_clock_ms": lambda tally, _: (
            tally.state.spending.caps[Dimension.WALL_CLOCK_MS] - clock_ms_used(tally)
        ),
    }
)
