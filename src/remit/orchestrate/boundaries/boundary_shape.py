"""The shape of a boundary file: every key, the field it fills, how it is read and how it is written.

Rule 1: a file groups what a run may do by the six dimensions of a boundary; SHAPE is the whole of it.
Rule 2: a list replaces the list of the boundary that is extended. Mappings are merged key by key, and conditions name by
        name, so that adding a condition drops none of a profile.
Rule 3: an undecidable condition is refused when it is read.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from remit.core.durations import said_duration
from remit.core.failure import RequestRejected
from remit.core.limits.authority import Authority, authority_json, authority_of
from remit.core.limits.boundary import (
    CONDITIONS_MAX,
    TIER_MAX,
    At,
    BoundaryMode,
    Condition,
    DecisionRight,
    Demanding,
    Exhaustion,
    TaskRule,
    Then,
    Unverified,
)
from remit.core.limits.budget import FIELDS, UNCHARGED, Budget, Dimension, uncharged
from remit.core.limits.escalation import Trigger
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.limits.trust import Reads
from remit.core.record import JsonObject, replace
from remit.core.run.person import check_person
from remit.core.schema.strict_yaml import Place, spelled_place
from remit.core.work.goal import TaskClass
from remit.kernel.authority.conditions import parse_condition
from remit.kernel.authority.intake import parse_intake
from remit.orchestrate.boundaries.boundary_values import (
    ALL,
    MESSAGE_CHARS_MAX,
    ValueReader,
    said_dollars,
    said_rate,
)

# How a file without a gate of provenance says so. YAML reads the bare word as false.
OFF = "off"
# How a file says that purchases have no limit.
NO_LIMIT = "none"
_CONDITION_KEYS = Condition.__struct_fields__
_TASK_KEYS = TaskRule.__struct_fields__
_INTAKE_KEYS = tuple(key for key in _CONDITION_KEYS if key not in ("then", "at"))

# Reads a value at its place, given what the boundary has so far; gives what it has from now on.
_Read: TypeAlias = Callable[[ValueReader, Any, Place, Any], Any]


class BoundaryKey(NamedTuple):
    """One key of a file: the field it fills, how it is read, and how the field is said. None is not said.

    Two spellings of one thing have one `slot`.
    """

    field: str
    read: _Read
    say: Callable[[Any], Any]
    slot: str = ""


def _as_is(value: Any) -> Any:
    return value


def _or_all(value: Any) -> Any:
    return ALL if value is None else value


def _choices(field: str, kind: type[StrEnum]) -> BoundaryKey:
    return BoundaryKey(field, lambda read, value, place, _: read.choices(value, kind, place), _as_is)


def _choices_or_all(field: str, kind: type[StrEnum]) -> BoundaryKey:
    return BoundaryKey(field, lambda read, value, place, _: read.choices_or_all(value, kind, place), _or_all)


def _table(
    field: str, keys: type[StrEnum] | tuple[str, ...], read_one: Callable[[ValueReader, Any, Place], str]
) -> BoundaryKey:
    """A mapping from known names, which replaces what the same names had."""

    def read(reader: ValueReader, value: Any, place: Place, base: tuple[tuple[str, str], ...]) -> Any:
        said = reader.block(value, tuple(keys), place)
        return tuple({**dict(base), **{k: read_one(reader, v, (*place, k)) for k, v in said.items()}}.items())

    return BoundaryKey(field, read, dict)


def _cap(
    name: str, read_one: Callable[[ValueReader, Any, Place], int], say: Callable[[int], Any], field: str = ""
) -> BoundaryKey:
    """A cap of the budget, under its own name or a friendlier one."""
    field = field or name

    def said(budget: Budget) -> Any:
        amount = getattr(budget, field)
        return None if amount is None else say(amount)

    return BoundaryKey("budget", lambda r, v, p, budget: replace(budget, **{field: read_one(r, v, p)}), said, field)


def _authority(reader: ValueReader, value: Any, place: Place, base: Authority | None) -> Authority | None:
    if value is False or value == OFF:
        return None
    if not isinstance(value, dict):
        raise reader.unfit(place, value, f"off, or a mapping with {', '.join(Authority.__struct_fields__)}")
    said = reader.block(value, Authority.__struct_fields__, place)
    inherited = authority_json(base or Authority())
    if "orders" in said:
        # `plan` is what `orders` was called before: who says one of them says both.
        del inherited["plan"]
    try:
        return authority_of({**inherited, **said})
    except RequestRejected as error:
        raise reader.refusal((*place, str(error.details["key"])), error.message, {"cause": str(error.code)}) from None


def _concerns(
    reader: ValueReader, value: Any, place: Place, base: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise reader.unfit(place, value, "a mapping from a name such as 'regulated' to a list of tools")
    said = {reader.text(name, place): reader.texts(tools, (*place, str(name))) for name, tools in value.items()}
    return tuple({**dict(base), **said}.items())


def _purchase_max(reader: ValueReader, value: Any, place: Place, base: int | None) -> int | None:
    return None if value == NO_LIMIT else reader.whole(value, place)


def _conditions(reader: ValueReader, value: Any, place: Place, base: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return _merged(reader, value, place, base, _condition)


def _intake(reader: ValueReader, value: Any, place: Place, base: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return _merged(reader, value, place, base, _intake_condition)


def _merged(
    reader: ValueReader,
    value: Any,
    place: Place,
    base: tuple[Condition, ...],
    read_one: Callable[[ValueReader, Any, Place], Condition],
) -> tuple[Condition, ...]:
    kept, said = {one.name: one for one in base}, set[str]()
    for at, item in enumerate(reader.items(value, place, CONDITIONS_MAX)):
        condition = read_one(reader, item, (*place, at))
        if condition.name in said:
            raise reader.refusal((*place, at), f"condition {condition.name!r} is there twice; rename one of them")
        said.add(condition.name)
        kept[condition.name] = condition
    if len(kept) > CONDITIONS_MAX:
        problem = f"{len(kept)} conditions, those it extends included, exceed conditions_max={CONDITIONS_MAX}"
        raise reader.refusal(place, f"{problem}; join some of them with ||")
    return tuple(kept.values())


def _condition(reader: ValueReader, value: Any, place: Place) -> Condition:
    said = reader.block(value, _CONDITION_KEYS, place)
    then = reader.choice(said.get("then", Then.ASK), Then, (*place, "then"))
    at = reader.choice(said.get("at", At.CALL), At, (*place, "at"))
    if at is not At.CALL and then is not Then.STOP:
        raise reader.refusal(
            (*place, "then"), f"{spelled_place(place)} looks at an {at}, where it can only stop; use then: stop"
        )
    return replace(_read_condition(reader, said, place, then, parse_condition), at=at)


def _intake_condition(reader: ValueReader, value: Any, place: Place) -> Condition:
    """What holds of a request turns it away; there is nothing else it could do."""
    return _read_condition(reader, reader.block(value, _INTAKE_KEYS, place), place, Then.REFUSE, parse_intake)


def _tasks(reader: ValueReader, value: Any, place: Place, base: tuple[TaskRule, ...]) -> tuple[TaskRule, ...]:
    """What kind of task a request is; rules of the boundary that is extended come first, unless they are said anew."""
    kept, said = {one.name: one for one in base}, set[str]()
    for at, item in enumerate(reader.items(value, place, CONDITIONS_MAX)):
        rule = _task_rule(reader, item, (*place, at))
        if rule.name in said:
            raise reader.refusal((*place, at), f"task rule {rule.name!r} is there twice; rename one of them")
        said.add(rule.name)
        kept[rule.name] = rule
    return tuple(kept.values())


def _task_rule(reader: ValueReader, value: Any, place: Place) -> TaskRule:
    said = reader.block(value, _TASK_KEYS, place)
    condition = _read_condition(
        reader, {key: said[key] for key in said if key in ("name", "when")}, place, Then.ASK, parse_intake
    )
    if "task_class" not in said:
        raise reader.refusal(place, f"{spelled_place(place)} has no 'task_class'; add one of {', '.join(TaskClass)}")
    task_class = reader.choice(said["task_class"], TaskClass, (*place, "task_class"))
    grounds = reader.choices(said.get("grounds", ()), ToolCategory, (*place, "grounds"))
    return TaskRule(condition.name, condition.when, task_class, grounds)


def _said_task(rule: TaskRule) -> JsonObject:
    said = {key: getattr(rule, key) for key in _TASK_KEYS}
    return said if rule.grounds else {key: value for key, value in said.items() if key != "grounds"}


def _read_condition(
    reader: ValueReader, said: JsonObject, place: Place, then: Then, parse: Callable[[str], object]
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


def _people(reader: ValueReader, value: Any, place: Place) -> tuple[str, ...]:
    """Names of people, none of which hides anything."""
    names = reader.texts(value, place)
    for number, name in enumerate(names):
        try:
            check_person(name, spelled_place((*place, number)))
        except RequestRejected as error:
            raise reader.refusal((*place, number), error.message, error.details) from None
    return names


def _said_condition(condition: Condition) -> JsonObject:
    said = {key: getattr(condition, key) for key in _CONDITION_KEYS}
    silent = {"message": "", "at": At.CALL}
    return {key: value for key, value in said.items() if key not in silent or value != silent[key]}


def _said_intake(condition: Condition) -> JsonObject:
    return {key: value for key, value in _said_condition(condition).items() if key != "then"}


_ALLOWED = BoundaryKey("allowed_tools", lambda read, value, place, _: read.texts_or_all(value, place), _or_all)
_EFFECTS = _choices("approval_effects", Effect)
_PERMISSIONS = BoundaryKey("permissions", lambda read, value, place, _: read.texts(value, place), _as_is)
_WAIT = BoundaryKey("approval_wait_ms_max", lambda read, value, place, _: read.duration_ms(value, place), said_duration)


def _figure(name: str) -> BoundaryKey:
    """A cap that nothing charges yet: 0, or what the boundary that is extended has."""

    def read(reader: ValueReader, value: Any, place: Place, budget: Budget) -> Budget:
        amount = reader.whole(value, place)
        if amount and amount != getattr(budget, name):
            raise reader.coded(place, uncharged(Dimension[name.upper()], spelled_place(place)))
        return replace(budget, **{name: amount})

    return BoundaryKey("budget", read, lambda budget: getattr(budget, name), name)


_CLOCK, _MONEY = "wall_clock_ms", "inference_cost_microusd"
_FIGURES = tuple(FIELDS[dimension] for dimension in UNCHARGED)
_CAPS: Mapping[str, BoundaryKey] = {
    **{name: _cap(name, ValueReader.whole, _as_is) for name in FIELDS if name not in (_CLOCK, _MONEY)},
    **{name: _figure(name) for name in _FIGURES},
    "wall_clock": _cap("wall_clock", ValueReader.duration_ms, said_duration, _CLOCK),
    _CLOCK: _cap(_CLOCK, ValueReader.whole, lambda _: None),
    "inference_cost_usd": _cap("inference_cost_usd", ValueReader.dollars, said_dollars, _MONEY),
    _MONEY: _cap(_MONEY, ValueReader.whole, lambda amount: amount if said_dollars(amount) is None else None),
}

# Every key of a file, in the order in which files are written: the six dimensions of a boundary, and the gate.
SHAPE: Mapping[str, BoundaryKey | Mapping[str, BoundaryKey]] = MappingProxyType(
    {
        "name": BoundaryKey("name", lambda read, value, place, _: read.text(value, place), _as_is),
        "mode": BoundaryKey("mode", lambda read, value, place, _: read.choice(value, BoundaryMode, place), _as_is),
        "self_approval": BoundaryKey(
            "self_approval", lambda read, value, place, _: None if value is None else read.flag(value, place), _as_is
        ),
        "observations": {
            "reads_max": BoundaryKey(
                "reads_max", lambda read, value, place, _: read.choice(value, Reads, place), _as_is
            ),
            "trusted_hosts": BoundaryKey(
                "trusted_hosts", lambda read, value, place, _: read.hosts(value, place), _as_is
            ),
            "identities": BoundaryKey("identities", lambda read, value, place, _: read.texts(value, place), _as_is),
        },
        "writes": _choices_or_all("writes", StateWrite),
        "tools": {
            "allowed": _ALLOWED,
            "approval_effects": _EFFECTS,
            "approval_categories": _choices("approval_categories", ToolCategory),
            "four_eyes": _choices("four_eyes", ToolCategory),
            "permissions": _PERMISSIONS,
            "concerns": BoundaryKey("concerns", _concerns, lambda said: {name: list(tools) for name, tools in said}),
            "purchase_max": BoundaryKey("purchase_max", _purchase_max, lambda said: NO_LIMIT if said is None else said),
            "rates": BoundaryKey(
                "rates",
                lambda read, value, place, _: read.rates(value, place),
                lambda rates: [said_rate(rate) for rate in rates],
            ),
            "unverified": BoundaryKey(
                "unverified", lambda read, value, place, _: read.choice(value, Unverified, place), _as_is
            ),
            "demands": BoundaryKey(
                "demands", lambda read, value, place, _: read.choice(value, Demanding, place), _as_is
            ),
        },
        "decisions": {
            "rights": _choices_or_all("decisions", DecisionRight),
            "tier_max": BoundaryKey(
                "tier_max", lambda read, value, place, _: read.whole(value, place, 1, TIER_MAX), _as_is
            ),
        },
        "budget": {
            **_CAPS,
            "exhaustion": _table("exhaustion", FIELDS, lambda read, value, at: read.choice(value, Exhaustion, at)),
            "wrap_up_tokens": BoundaryKey(
                "wrap_up_tokens", lambda read, value, place, _: read.whole(value, place), _as_is
            ),
            "stops_early": BoundaryKey("stops_early", lambda read, value, place, _: read.flag(value, place), _as_is),
            "release_by": BoundaryKey("release_by", lambda read, value, place, _: _people(read, value, place), _as_is),
        },
        "escalation": {
            "queues": _table("queues", Trigger, lambda read, value, place: read.text(value, place)),
            "on_silence": BoundaryKey("on_silence", lambda read, value, place, _: read.texts(value, place), _as_is),
            "approval_wait": _WAIT,
        },
        "authority": BoundaryKey("authority", _authority, lambda said: OFF if said is None else authority_json(said)),
        "intake": BoundaryKey("intake", _intake, lambda said: [_said_intake(one) for one in said]),
        "tasks": BoundaryKey("tasks", _tasks, lambda said: [_said_task(one) for one in said]),
        "conditions": BoundaryKey("conditions", _conditions, lambda said: [_said_condition(one) for one in said]),
    }
)
# How the guard's objects say some of it without the groups.
FLAT: Mapping[str, BoundaryKey] = MappingProxyType(
    {
        "allowed_tools": _ALLOWED,
        "approval_effects": _EFFECTS,
        "permissions": _PERMISSIONS,
        "approval_wait_ms_max": _WAIT,
    }
)
