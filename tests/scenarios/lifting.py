"""Lifting: the same boundary without one of its dimensions, to find out whether that dimension is what decided.

Rule 1: a claim about a dimension is proved by playing the story again without it: if it goes the same way, something
        else decided.
Rule 2: what is lifted is lifted for this story's tools alone; nothing else of the boundary changes.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from remit.core.limits.boundary import TIER_MAX, Boundary, Then
from remit.core.limits.budget import UNCHARGED, Budget, Dimension
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import ToolDefinition
from remit.core.record import replace
from tests.scenarios.places import BoundaryDimension

# More than any story uses, and small enough that sums of it fit a record.
PLENTY = 2**40

# Conditions that are about what is looked at, not about what is done.
ABOUT_READING = frozenset(
    {
        *("source_policy_conflict", "paid_lookup", "identity_unknown"),
        *("security_incident", "security_incident_in_result"),
    }
)
# And those that are about where something is written.
ABOUT_WRITING = frozenset({"change_beyond_machine", "change_outside_workspace"})

Lift = Callable[[Boundary, Iterable[ToolDefinition]], Boundary]


def _observations(boundary: Boundary, tools: Iterable[ToolDefinition]) -> Boundary:
    reading = (tool for tool in tools if not tool.effect.is_mutating)
    kept = tuple(one for one in boundary.conditions if one.name not in ABOUT_READING)
    return replace(_permitting(boundary, reading), reads_max=Reads.SECRET, conditions=kept)


def _state_writes(boundary: Boundary, tools: Iterable[ToolDefinition]) -> Boundary:
    kept = tuple(one for one in boundary.conditions if one.name not in ABOUT_WRITING)
    return replace(boundary, writes=None, conditions=kept)


def _tools(boundary: Boundary, tools: Iterable[ToolDefinition]) -> Boundary:
    return replace(
        _permitting(boundary, tools),
        allowed_tools=None,
        approval_effects=(),
        approval_categories=(),
        four_eyes=(),
        rates=(),
    )


def _decisions(boundary: Boundary, tools: Iterable[ToolDefinition]) -> Boundary:
    return replace(boundary, decisions=None, tier_max=TIER_MAX)


def _budgets(boundary: Boundary, tools: Iterable[ToolDefinition]) -> Boundary:
    return replace(
        boundary, budget=Budget(*(0 if dimension in UNCHARGED else PLENTY for dimension in Dimension)), exhaustion=()
    )


def _escalation(boundary: Boundary, tools: Iterable[ToolDefinition]) -> Boundary:
    kept = tuple(one for one in boundary.conditions if one.then is not Then.STOP)
    return replace(boundary, queues=(), on_silence=(), conditions=kept)


def _permitting(boundary: Boundary, tools: Iterable[ToolDefinition]) -> Boundary:
    needed = (name for tool in tools for name in tool.permissions)
    return replace(boundary, permissions=tuple(dict.fromkeys((*boundary.permissions, *needed))))


LIFTS: Mapping[BoundaryDimension, Lift] = MappingProxyType(
    {
        BoundaryDimension.OBSERVATIONS: _observations,
        BoundaryDimension.STATE_WRITES: _state_writes,
        BoundaryDimension.TOOLS: _tools,
        BoundaryDimension.DECISIONS: _decisions,
        BoundaryDimension.BUDGETS: _budgets,
        BoundaryDimension.ESCALATION: _escalation,
    }
)


def lifted(boundary: Boundary, dimension: BoundaryDimension, tools: Iterable[ToolDefinition]) -> Boundary:
    """The boundary as it would be if it said nothing of this dimension."""
    return LIFTS[dimension](boundary, tuple(tools))
