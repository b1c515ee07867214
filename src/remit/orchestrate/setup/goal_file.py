"""Goals from YAML and JSON files and from Python mappings, in the shape docs/goals.md describes.

Rule 1: an unknown key or value is refused by its place, never skipped.
Rule 2: what no code could verify is refused when the file is read, not when the run has answered.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remit.core.clipped import clipped
from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolCategory
from remit.core.schema.strict_yaml import ValuePath, spelled_place
from remit.core.work.goal import PPM, Criterion, Goal, RequiredAction, TaskClass
from remit.kernel.results.acceptance import GOAL_INVALID, check_goal
from remit.orchestrate.boundaries.value_reader import MESSAGE_CHARS_MAX, ValueReader, values_in

_KEYS = ("statement", "task_class", "grounds", "required_actions", "criteria", "critical", "confidence")
_CRITERION_KEYS = ("name", "guard", "judge", "only_warns")
_ACTION_KEYS = ("tool", "times_min")
# More than any run does in a day.
TIMES_MAX = 10_000
STATEMENT_DEFAULT = "the goal in the file"


def goal_at(said: object) -> Goal | None:
    """The goal that is handed over, that a mapping describes, or that stands in this file; None for none."""
    if said is None:
        return None
    if isinstance(said, Goal):
        goal = as_declared(said, Goal, "goal", GOAL_INVALID)
        check_goal(goal)
        return goal
    if isinstance(said, Mapping):
        return _goal(ValueReader("goal", {}, GOAL_INVALID, "goal"), dict(said))
    if isinstance(said, str | Path) and str(said):
        return read_goal(Path(said))
    raise RequestRejected(
        GOAL_INVALID, f"goal={clipped(said)} is no goal; give a Goal, a mapping, or the path of a file"
    )


def read_goal(path: Path) -> Goal:
    """The goal in a YAML or JSON file."""
    return _goal(*values_in(path, GOAL_INVALID, "goal"))


def _goal(reader: ValueReader, said: object) -> Goal:
    block = reader.block(said, _KEYS, ())
    if not block:
        raise reader.refusal((), f"the goal says nothing; give it one of {', '.join(_KEYS)}")
    statement = reader.text(block.get("statement", STATEMENT_DEFAULT), ("statement",), MESSAGE_CHARS_MAX)
    task_class = block.get("task_class")
    goal = Goal(
        statement=statement,
        criteria=_criteria(reader, block.get("criteria", [])),
        required_actions=_actions(reader, block.get("required_actions", [])),
        task_class=None if task_class is None else reader.choice(task_class, TaskClass, ("task_class",)),
        critical=reader.texts(block.get("critical", []), ("critical",)),
        confidence_ppm_min=_confidence(reader, block.get("confidence", 0)),
        grounds=reader.choices(block.get("grounds", []), ToolCategory, ("grounds",)),
    )
    try:
        check_goal(goal)
    except RequestRejected as error:
        raise reader.refusal(("criteria",), error.message, {"cause": str(error.code)}) from None
    return goal


def _criteria(reader: ValueReader, value: Any) -> tuple[Criterion, ...]:
    found: list[Criterion] = []
    for at, item in enumerate(reader.items(value, ("criteria",))):
        place: ValuePath = ("criteria", at)
        block = reader.block(item, _CRITERION_KEYS, place)
        if "name" not in block:
            raise reader.refusal(place, f"{spelled_place(place)} has no 'name'; add it")
        name = reader.text(block["name"], (*place, "name"))
        if any(other.name == name for other in found):
            raise reader.refusal((*place, "name"), f"criterion {name!r} is there twice; rename one of them")
        texts = {
            key: reader.text(block[key], (*place, key), MESSAGE_CHARS_MAX) for key in ("guard", "judge") if key in block
        }
        only_warns = reader.flag(block.get("only_warns", False), (*place, "only_warns"))
        if only_warns and "guard" in texts:
            raise reader.refusal(
                (*place, "only_warns"), f"criterion {name!r} has a guard, which decides; only a judge may warn"
            )
        found.append(Criterion(name, **texts, only_warns=only_warns))
    return tuple(found)


def _actions(reader: ValueReader, value: Any) -> tuple[RequiredAction, ...]:
    found: list[RequiredAction] = []
    for at, item in enumerate(reader.items(value, ("required_actions",))):
        place: ValuePath = ("required_actions", at)
        block = {"tool": item} if isinstance(item, str) else reader.block(item, _ACTION_KEYS, place)
        tool = reader.text(block.get("tool"), (*place, "tool"))
        times = reader.whole(block.get("times_min", 1), (*place, "times_min"), 1, TIMES_MAX)
        if any(other.tool == tool for other in found):
            raise reader.refusal(place, f"action {tool!r} is required twice; say times_min instead")
        found.append(RequiredAction(tool, times))
    return tuple(found)


def _confidence(reader: ValueReader, value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return round(value * PPM)
    raise reader.unfit(("confidence",), value, "a number from 0 to 1")
