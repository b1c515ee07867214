"""What a boundary file lists: conditions, conditions of the request, kinds of tasks and rates, as they are read and written.

Rule 1: conditions and kinds of tasks are merged name by name, so that adding one drops none of a profile.
Rule 2: an undecidable condition is refused when it is read.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from remit.core.durations import said_duration
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import CONDITIONS_MAX, At, Condition, Rate, TaskRule, Then, Whose
from remit.core.limits.tools import RATE_MAX, ToolCategory
from remit.core.record import JsonObject, replace
from remit.core.schema.strict_yaml import ValuePath, spelled_place
from remit.core.work.goal import TaskClass
from remit.kernel.authority.conditions import parse_condition
from remit.kernel.authority.intake import parse_intake
from remit.orchestrate.boundaries.value_reader import MESSAGE_CHARS_MAX, ValueReader

_CONDITION_KEYS = Condition.__struct_fields__
_TASK_KEYS = TaskRule.__struct_fields__
_INTAKE_KEYS = tuple(key for key in _CONDITION_KEYS if key not in ("then", "at"))
_RATE_KEYS = ("tool", "times", "per")
_WHOSE = "whose"

_Entry = TypeVar("_Entry", Condition, TaskRule)


def read_conditions(
    reader: ValueReader, value: Any, place: ValuePath, base: tuple[Condition, ...]
) -> tuple[Condition, ...]:
    """The conditions of a boundary with those that a file lists."""
    return _within_limit(reader, place, _merged(reader, value, place, base, _condition, "condition"))


def read_intake(
    reader: ValueReader, value: Any, place: ValuePath, base: tuple[Condition, ...]
) -> tuple[Condition, ...]:
    """The conditions of the request with those that a file lists."""
    return _within_limit(reader, place, _merged(reader, value, place, base, _intake_condition, "condition"))


def read_tasks(reader: ValueReader, value: Any, place: ValuePath, base: tuple[TaskRule, ...]) -> tuple[TaskRule, ...]:
    """What kind of task a request is; rules of the boundary that is extended come first, unless they are said anew."""
    return _merged(reader, value, place, base, _task_rule, "task rule")


def _merged(
    reader: ValueReader,
    value: Any,
    place: ValuePath,
    base: tuple[_Entry, ...],
    read_one: Callable[[ValueReader, Any, ValuePath], _Entry],
    noun: str,
) -> tuple[_Entry, ...]:
    kept, said = {one.name: one for one in base}, set[str]()
    for at, item in enumerate(reader.items(value, place, CONDITIONS_MAX)):
        entry = read_one(reader, item, (*place, at))
        if entry.name in said:
            raise reader.refusal((*place, at), f"{noun} {entry.name!r} is there twice; rename one of them")
        said.add(entry.name)
        kept[entry.name] = entry
    return tuple(kept.values())


def _within_limit(reader: ValueReader, place: ValuePath, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    if len(conditions) > CONDITIONS_MAX:
        problem = f"{len(conditions)} conditions, those it extends included, exceed conditions_max={CONDITIONS_MAX}"
        raise reader.refusal(place, f"{problem}; join some of them with ||")
    return conditions


def _condition(reader: ValueReader, value: Any, place: ValuePath) -> Condition:
    said = reader.block(value, _CONDITION_KEYS, place)
    then = reader.choice(said.get("then", Then.ASK), Then, (*place, "then"))
    at = reader.choice(said.get("at", At.CALL), At, (*place, "at"))
    if at is not At.CALL and then is not Then.STOP:
        raise reader.refusal(
            (*place, "then"), f"{spelled_place(place)} looks at an {at}, where it can only stop; use then: stop"
        )
    return replace(_read_condition(reader, said, place, then, parse_condition), at=at)


def _intake_condition(reader: ValueReader, value: Any, place: ValuePath) -> Condition:
    """What holds of a request turns it away; there is nothing else it could do."""
    return _read_condition(reader, reader.block(value, _INTAKE_KEYS, place), place, Then.REFUSE, parse_intake)


def _task_rule(reader: ValueReader, value: Any, place: ValuePath) -> TaskRule:
    said = reader.block(value, _TASK_KEYS, place)
    condition = _read_condition(
        reader, {key: said[key] for key in said if key in ("name", "when")}, place, Then.ASK, parse_intake
    )
    if "task_class" not in said:
        raise reader.refusal(place, f"{spelled_place(place)} has no 'task_class'; add one of {', '.join(TaskClass)}")
    task_class = reader.choice(said["task_class"], TaskClass, (*place, "task_class"))
    grounds = reader.choices(said.get("grounds", ()), ToolCategory, (*place, "grounds"))
    return TaskRule(condition.name, condition.when, task_class, grounds)


def said_task_rule(rule: TaskRule) -> JsonObject:
    """A kind of task as a file says it."""
    said = {key: getattr(rule, key) for key in _TASK_KEYS}
    return said if rule.grounds else {key: value for key, value in said.items() if key != "grounds"}


def _read_condition(
    reader: ValueReader, said: JsonObject, place: ValuePath, then: Then, parse: Callable[[str], object]
) -> Condition:
    for key in ("name", "when"):
        if key not in said:
            raise reader.refusal(place, f"{spelled_place(place)} has no {key!r}; add it")
    when = said["when"]
    if not isinstance(when, str):
        raise reader.unfit((*place, "when"), when, "an expression such as 'args.amount > 100'")
    try:
        parse(when)
    except RequestRejected as error:
        details = {**error.details, "cause": str(error.code)}
        raise reader.refusal((*place, "when"), f"{spelled_place((*place, 'when'))}: {error.message}", details) from None
    message = said.get("message", "")
    return Condition(
        reader.text(said["name"], (*place, "name")),
        when,
        then,
        message if message == "" else reader.text(message, (*place, "message"), MESSAGE_CHARS_MAX),
    )


def said_condition(condition: Condition) -> JsonObject:
    """A condition as a file says it."""
    said = {key: getattr(condition, key) for key in _CONDITION_KEYS}
    silent = {"message": "", "at": At.CALL}
    return {key: value for key, value in said.items() if key not in silent or value != silent[key]}


def said_intake(condition: Condition) -> JsonObject:
    """A condition of the request as a file says it."""
    return {key: value for key, value in said_condition(condition).items() if key != "then"}


def read_rates(reader: ValueReader, value: Any, place: ValuePath) -> tuple[Rate, ...]:
    """A list of rates."""
    return tuple(_rate(reader, item, (*place, at)) for at, item in enumerate(reader.items(value, place)))


def _rate(reader: ValueReader, value: Any, place: ValuePath) -> Rate:
    said = reader.block(value, (*_RATE_KEYS, _WHOSE), place)
    if missing := [key for key in _RATE_KEYS if key not in said]:
        raise reader.refusal(place, f"{spelled_place(place)} has no {missing[0]!r}; a rate has {', '.join(_RATE_KEYS)}")
    return Rate(
        reader.text(said["tool"], (*place, "tool")),
        reader.whole(said["times"], (*place, "times"), 1, RATE_MAX),
        reader.duration_ms(said["per"], (*place, "per"), 1),
        reader.choice(said.get(_WHOSE, Whose.RUN.value), Whose, (*place, _WHOSE)),
    )


def said_rate(rate: Rate) -> JsonObject:
    """A rate as a file says it."""
    whose = {_WHOSE: rate.whose.value} if rate.whose is not Whose.RUN else {}
    return {"tool": rate.tool, "times": rate.times_max, "per": said_duration(rate.per_ms), **whose}
