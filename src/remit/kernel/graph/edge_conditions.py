"""Edge conditions: written in CEL over a flat, typed view of the run.

Rule 1: a guard is checked when its graph is compiled.
Rule 2: a guard that cannot be decided is neither true nor false; the caller must object.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from remit.core.limits.budget import Dimension
from remit.core.record import Record
from remit.kernel.graph.expressions import GuardType, Program, compiled_condition, environment

if TYPE_CHECKING:
    from cel_expr_python import cel

# Programs are small; this holds every condition of a few large graphs.
_PROGRAMS_KEPT_MAX = 1024


class GuardName(Record, frozen=True):
    """One name that conditions may use."""

    name: str
    type: GuardType
    meaning: str


GUARD_NAMES: tuple[GuardName, ...] = (
    GuardName("outcome", GuardType.STRING, "what became of the visit that just ended"),
    GuardName("node", GuardType.STRING, "the node the run stands at"),
    GuardName("lifecycle", GuardType.STRING, "the node's lifecycle label, such as `EXECUTE`"),
    GuardName("loop_state", GuardType.STRING, "the node's loop state, such as `executing`"),
    GuardName("visits", GuardType.INT, "how often this node was entered, this time included"),
    GuardName("iterations", GuardType.INT, "model calls that answered"),
    GuardName("attempt", GuardType.INT, "which attempt at an acceptable answer this is, from 1"),
    GuardName("turns", GuardType.INT, "turns written so far"),
    GuardName("answer", GuardType.STRING, "the last answer; empty when it is longer than a kilobyte"),
    GuardName("answer_bytes", GuardType.INT, "size of the last answer in UTF-8 bytes"),
    GuardName("proposed_calls", GuardType.INT, "tool calls the last answer proposed"),
    GuardName("refused_calls", GuardType.INT, "tool calls refused in this run"),
    GuardName("failed_calls", GuardType.INT, "tool calls that failed in this run"),
    GuardName("committed_observations", GuardType.INT, "observations that were verified and committed"),
    GuardName("uncommitted_effects", GuardType.INT, "writes and external effects proposed but not committed"),
    GuardName("approvals_pending", GuardType.INT, "questions that wait for a person"),
    GuardName("children_open", GuardType.INT, "child runs that have not ended"),
    GuardName("children_failed", GuardType.INT, "child runs that ended without success"),
    GuardName("depth", GuardType.INT, "how many runs stand above this one"),
    GuardName("wall_clock_ms_used", GuardType.INT, "time used, without the time spent waiting for people"),
    GuardName("last_tool", GuardType.STRING, "the tool that was called last; empty before the first"),
    GuardName("last_error", GuardType.STRING, "code of the last failure; empty before the first"),
    GuardName("ending", GuardType.STRING, "the code under which the run is about to end; empty otherwise"),
    GuardName("repaired", GuardType.BOOL, "an answer of this run was sent back to be repaired"),
    GuardName("has_schema", GuardType.BOOL, "the request asks for output of a given shape"),
    *(
        GuardName(f"left_{dimension.name.lower()}", GuardType.INT, f"what is left of `{dimension.name.lower()}`")
        for dimension in Dimension
    ),
)

GUARD_VIEW: Mapping[str, GuardType] = MappingProxyType({entry.name: entry.type for entry in GUARD_NAMES})


# A pure memo: the same text always gives an equal program, and compiling one takes about 25 microseconds.
@lru_cache(maxsize=_PROGRAMS_KEPT_MAX)
def parse_guard(source: str) -> Program:
    """Check a condition and make it ready to evaluate, or raise GuardRefused."""
    return compiled_condition(source, GUARD_VIEW, _environment())


# One environment serves every guard; a graph without conditions never needs it.
@lru_cache(maxsize=1)
def _environment() -> "cel.Env":
    return environment(GUARD_VIEW)
