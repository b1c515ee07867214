"""Where a run stands, in the two vocabularies that callers know: the lifecycle and the loop state.

Rule 1: a run stands at one node of its graph; both words here are labels of that node, for display.
Rule 2: a lifecycle moves only along LIFECYCLE_TRANSITIONS; a loop state may move anywhere, backward too.
Rule 3: nothing leaves a terminal state.
Rule 4: paused and `awaiting_approval` lie over another state and keep it; no node carries them.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class LifecycleState(StrEnum):
    """The eight stations between receipt of a request and its response."""

    INIT = "INIT"
    PLAN = "PLAN"
    PREPARE = "PREPARE"
    EXECUTE = "EXECUTE"
    VALIDATE = "VALIDATE"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """Whether the run is over."""
        return not LIFECYCLE_TRANSITIONS[self]


class LoopState(StrEnum):
    """The ten states of an agent loop."""

    EXPLORING = "exploring"
    PLANNING = "planning"
    ARCHITECTING = "architecting"
    EXECUTING = "executing"
    REVIEWING = "reviewing"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    AWAITING_APPROVAL = "awaiting_approval"

    @property
    def is_terminal(self) -> bool:
        """Whether the loop is over."""
        return self in _LOOP_TERMINALS

    @property
    def is_overlay(self) -> bool:
        """Whether another state lies beneath and returns when this one is lifted."""
        return self in _LOOP_OVERLAYS


class AgentRole(StrEnum):
    """What an agent is there for. core/limits/roles.py says what that changes beside the names of states."""

    ARCHITECT = "architect"
    EDITOR = "editor"
    GENERAL = "general"
    QUALIFIER = "qualifier"
    DEVELOPER = "developer"
    REVIEWER = "reviewer"


class Outcome(StrEnum):
    """How a run that is over is counted."""

    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"


_LOOP_TERMINALS = frozenset({LoopState.COMPLETE, LoopState.FAILED, LoopState.CANCELLED})
_LOOP_OVERLAYS = frozenset({LoopState.PAUSED, LoopState.AWAITING_APPROVAL})

# Trouble and cancellation are possible wherever something is still going on.
_BROKEN_OFF = (LifecycleState.ERROR, LifecycleState.CANCELLED)

# EXECUTE never jumps to COMPLETE: every pattern passes VALIDATE, where there may be nothing to check.
# VALIDATE -> EXECUTE is the way of every repair and retry.
LIFECYCLE_TRANSITIONS: Mapping[LifecycleState, frozenset[LifecycleState]] = MappingProxyType(
    {
        LifecycleState.INIT: frozenset({LifecycleState.PLAN, LifecycleState.PREPARE, *_BROKEN_OFF}),
        LifecycleState.PLAN: frozenset({LifecycleState.PREPARE, *_BROKEN_OFF}),
        LifecycleState.PREPARE: frozenset({LifecycleState.EXECUTE, *_BROKEN_OFF}),
        LifecycleState.EXECUTE: frozenset({LifecycleState.VALIDATE, *_BROKEN_OFF}),
        LifecycleState.VALIDATE: frozenset({LifecycleState.COMPLETE, LifecycleState.EXECUTE, *_BROKEN_OFF}),
        LifecycleState.COMPLETE: frozenset(),
        LifecycleState.ERROR: frozenset(),
        LifecycleState.CANCELLED: frozenset(),
    }
)

_LOOP_STATE_OF: Mapping[LifecycleState, LoopState] = MappingProxyType(
    {
        LifecycleState.INIT: LoopState.EXPLORING,
        LifecycleState.PLAN: LoopState.PLANNING,
        LifecycleState.PREPARE: LoopState.EXPLORING,
        LifecycleState.EXECUTE: LoopState.EXECUTING,
        LifecycleState.VALIDATE: LoopState.REVIEWING,
        LifecycleState.COMPLETE: LoopState.COMPLETE,
        LifecycleState.ERROR: LoopState.FAILED,
        LifecycleState.CANCELLED: LoopState.CANCELLED,
    }
)


# What the work of a role is, where it is not to carry something out.
_WORKS_BY: Mapping[AgentRole, LoopState] = MappingProxyType(
    {
        AgentRole.ARCHITECT: LoopState.ARCHITECTING,
        AgentRole.QUALIFIER: LoopState.EXPLORING,
        AgentRole.REVIEWER: LoopState.REVIEWING,
    }
)


def is_loop_move(before: LoopState, after: LoopState) -> bool:
    """Whether a loop may change from one state to another: always, unless it is over."""
    return not before.is_terminal and before is not after


def default_loop_state(lifecycle: LifecycleState, role: AgentRole = AgentRole.GENERAL) -> LoopState:
    """The loop state of a node that names none, from its lifecycle and the agent's role."""
    if role is AgentRole.ARCHITECT and lifecycle is LifecycleState.PLAN:
        return LoopState.ARCHITECTING
    if lifecycle is LifecycleState.EXECUTE:
        return _WORKS_BY.get(role, LoopState.EXECUTING)
    return _LOOP_STATE_OF[lifecycle]
