"""The places that scenarios must reach: every row of the tables by which remit stops, asks and hands on.

Rule 1: the names are those of the house's own enums, so that a row added there is a place that is missing here.
Rule 2: a cell is a dimension of the boundary within one risk profile; each of them is a place of its own.
"""

from enum import StrEnum
from typing import NamedTuple

from remit.core.failure import Ending
from remit.core.limits.escalation import Trigger
from remit.core.limits.profiles import PROFILES
from remit.core.limits.tool_policy import POLICY
from remit.core.limits.tools import ToolCategory


class Control(StrEnum):
    """The seven runtime controls, each a guard that no word of the model switches off."""

    WALL_CLOCK_TIMEOUT = "wall_clock_timeout"
    REPEATED_TOOL_CALL = "repeated_tool_call"
    RETRY_STORM = "retry_storm"
    BUDGET_EXHAUSTION = "budget_exhaustion"
    CONTEXT_PRESSURE = "context_pressure"
    PRIVILEGED_ACTION = "privileged_action"
    SAFETY_BREAKER = "safety_breaker"


class BoundaryDimension(StrEnum):
    """The six things a boundary speaks of: what a run may see, write, call, decide and spend, and who comes next."""

    OBSERVATIONS = "observations"
    STATE_WRITES = "state_writes"
    TOOLS = "tools"
    DECISIONS = "decisions"
    BUDGETS = "budgets"
    ESCALATION = "escalation"


class PlaceKind(StrEnum):
    """Which table a place is a row of."""

    CODE = "code"
    ROW = "row"
    CONTROL = "control"
    CATEGORY = "category"
    CHECK = "check"
    CELL = "cell"


class ValuePath(NamedTuple):
    """One row of one table; of a cell, the name is PROFILE/DIMENSION."""

    kind: PlaceKind
    name: str

    def __str__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"{self.kind} {self.name}"


def cell(profile: str, dimension: str) -> ValuePath:
    """The place where a profile and a dimension of the boundary meet."""
    return ValuePath(PlaceKind.CELL, f"{profile}/{dimension}")


TABLES: dict[PlaceKind, str] = {
    PlaceKind.CODE: "Endings and waits: the termination codes",
    PlaceKind.ROW: "Escalation: the states of failure or risk",
    PlaceKind.CONTROL: "Runtime controls",
    PlaceKind.CATEGORY: "Tool policy: the categories of tools",
    PlaceKind.CHECK: "Tool policy: what a category demands of a tool, so that its calls can be checked",
    PlaceKind.CELL: "Boundary: its dimensions within each risk profile",
}

PLACES: tuple[ValuePath, ...] = (
    *(ValuePath(PlaceKind.CODE, code.value) for code in Ending),
    *(ValuePath(PlaceKind.ROW, trigger.value) for trigger in Trigger),
    *(ValuePath(PlaceKind.CONTROL, control.value) for control in Control),
    *(ValuePath(PlaceKind.CATEGORY, category.value) for category in ToolCategory),
    *(ValuePath(PlaceKind.CHECK, category.value) for category, row in POLICY.items() if row.changing_demands),
    *(cell(profile, dimension) for profile in PROFILES for dimension in BoundaryDimension),
)
