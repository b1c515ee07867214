"""Intake: conditions of a boundary over the request itself, before a run begins.

Rule 1: a condition that holds turns the request away, and so does one that cannot be decided; nothing has begun then.
Rule 2: it sees what was asked, by whom, for whom and when, and what kind of task the caller says it is.
Rule 3: where the caller does not say that, the boundary may.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from remit.core.failure import RequestRejected
from remit.core.run.manifest import Manifest
from remit.core.run.messages import Role
from remit.core.work.goal import Task, TaskSource
from remit.kernel.authority.conditions import hour_of, weekday_of
from remit.kernel.graph.expressions import GuardType, Program, compiled_condition, condition_holds, environment

if TYPE_CHECKING:
    from cel_expr_python import cel

GOAL_REFUSED = "GOAL_REFUSED"
_PROGRAMS_KEPT_MAX = 1024

Value = Callable[[Manifest, int], object]


def prompt_of(manifest: Manifest) -> str:
    """The last words of the user; empty where they are kept elsewhere, as those of a run that has begun may be."""
    said = [message.content for message in manifest.request.messages if message.role is Role.USER]
    return said[-1] if said and isinstance(said[-1], str) else ""


def _task_class(manifest: Manifest, at_ms: int) -> str:
    goal = manifest.goal
    return "" if goal is None or goal.task_class is None else goal.task_class.value


# Name, type, meaning, value.
INTAKE_NAMES: Mapping[str, tuple[GuardType, str, Value]] = MappingProxyType(
    {
        "prompt": (GuardType.STRING, "the last words of the user", lambda m, at: prompt_of(m)),
        "prompt_chars": (GuardType.INT, "how many characters they have", lambda m, at: len(prompt_of(m))),
        "mode": (GuardType.STRING, "chat, structured, plan or redundant", lambda m, at: m.request.mode.value),
        "task_class": (GuardType.STRING, "the class of the goal's task, empty without one", _task_class),
        "tools": (GuardType.TEXTS, "the tools that the run would have", lambda m, at: [tool.name for tool in m.tools]),
        "user": (GuardType.STRING, "who asks, empty when not said", lambda m, at: m.request.user_id),
        "tenant": (GuardType.STRING, "for whom, empty when not said", lambda m, at: m.request.tenant_id),
        "role": (GuardType.STRING, "the role of the run", lambda m, at: m.role.value),
        "hour": (GuardType.INT, "0 to 23, UTC", lambda m, at: hour_of(at)),
        "weekday": (GuardType.INT, "1 Monday to 7 Sunday, UTC", lambda m, at: weekday_of(at)),
    }
)
INTAKE_VIEW: Mapping[str, GuardType] = MappingProxyType({name: entry[0] for name, entry in INTAKE_NAMES.items()})


def check_intake(manifest: Manifest, at_ms: int) -> None:
    """Turn a request away that the boundary does not want to be worked on."""
    boundary = manifest.boundary
    for condition in boundary.intake:
        program = parse_intake(condition.when)
        says = condition_holds(program, {name: INTAKE_NAMES[name][2](manifest, at_ms) for name in program.names})
        if says is not False:
            undecided = "" if says else " (it could not be decided, which counts as if it held)"
            why = f": {condition.message}" if condition.message else ""
            message = f"boundary {boundary.name} turns the request away by {condition.name}{why}{undecided}"
            raise RequestRejected(GOAL_REFUSED, message, {"boundary": boundary.name, "condition": condition.name})


def task_named(manifest: Manifest, at_ms: int) -> Task | None:
    """What kind of task the boundary says a request is; a rule that cannot be decided counts as if it held."""
    for rule in manifest.boundary.tasks:
        program = parse_intake(rule.when)
        if (
            condition_holds(program, {name: INTAKE_NAMES[name][2](manifest, at_ms) for name in program.names})
            is not False
        ):
            return Task(rule.task_class, TaskSource.BOUNDARY, rule.name, rule.grounds)
    return None


# A pure memo: the same text always gives an equal program.
@lru_cache(maxsize=_PROGRAMS_KEPT_MAX)
def parse_intake(source: str) -> Program:
    """Check a condition over a request and make it ready to evaluate, or raise GuardRefused."""
    return compiled_condition(source, INTAKE_VIEW, _environment())


@lru_cache(maxsize=1)
def _environment() -> "cel.Env":
    return environment(INTAKE_VIEW)
