"""Boundaries from YAML and JSON files and from Python mappings, in the shape docs/boundaries.md describes.

Rule 1: a file says how it differs from the boundary it extends; without a word about that, from the standard one.
Rule 2: an unknown key or value is refused by its place, never skipped.
Rule 3: what is written of a boundary reads back as an equal one.
Rule 4: a file groups what a run may do by the six dimensions of a boundary; SHAPE is the whole of it, every key with the field
        it fills, how it is read and how it is written.
Rule 5: a list replaces the list of the boundary that is extended. Mappings are merged key by key.
Rule 6: a file may not call itself by the name of a boundary of the house unless it is that one.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from remit.core.durations import said_duration
from remit.core.failure import RequestRejected
from remit.core.journal.codec import read_json, to_json
from remit.core.limits.authority import Authority, authority_json, authority_of
from remit.core.limits.boundary import (
    TIER_MAX,
    Boundary,
    BoundaryMode,
    DecisionRight,
    Demanding,
    Exhaustion,
    Unverified,
)
from remit.core.limits.budget import FIELDS, UNCHARGED, Budget, Dimension, uncharged, uncharged_in
from remit.core.limits.escalation import Trigger
from remit.core.limits.profiles import BOUNDARY_INVALID, KNOWN, STANDARD, boundary_named, declared_boundary
from remit.core.limits.tool_policy import StateWrite
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.record import JsonObject, replace
from remit.core.run.person import check_person
from remit.core.schema.strict_yaml import ValuePath, spelled_place, write_yaml
from remit.kernel.authority.conditions import check_conditions
from remit.kernel.budget.exhaustion import check_exhaustion
from remit.orchestrate.boundaries.condition_entries import (
    read_conditions,
    read_intake,
    read_rates,
    read_tasks,
    said_condition,
    said_intake,
    said_rate,
    said_task_rule,
)
from remit.orchestrate.boundaries.value_reader import ALL, JSON_SUFFIX, ValueReader, said_dollars, values_in

EXTENDS = "extends"
# How a file without a gate of provenance says so. YAML reads the bare word as false.
OFF = "off"
# How a file says that purchases have no limit.
NO_LIMIT = "none"
_NO_KEYS: Mapping[str, "BoundaryKey"] = MappingProxyType({})
_SUFFIXES = (".yaml", ".yml", JSON_SUFFIX)

# Reads a value at its place, given what the boundary has so far; gives what it has from now on.
_Read: TypeAlias = Callable[[ValueReader, Any, ValuePath, Any], Any]


class BoundaryKey(NamedTuple):
    """One key of a file: the field it fills, how it is read, and how the field is said. None is not said.

    Two spellings of one thing have one `slot`.
    """

    field: str
    read: _Read
    say: Callable[[Any], Any]
    slot: str = ""


def boundary_at(said: object) -> Boundary:
    """The boundary that is handed over, that has this name, or that stands in this file."""
    if isinstance(said, Boundary):
        return declared_boundary(said)
    if isinstance(said, Path) or (isinstance(said, str) and said not in KNOWN and _names_a_file(said)):
        return read_boundary(Path(said))
    if isinstance(said, dict):
        return boundary_of(said)
    return boundary_named(said if isinstance(said, str) else repr(said))


def read_boundary(path: Path) -> Boundary:
    """The boundary in a YAML or JSON file."""
    return _named(*values_in(path, BOUNDARY_INVALID, "boundary"))


def boundary_of(said: object) -> Boundary:
    """The boundary that a mapping describes, with the keys of a file."""
    return _named(ValueReader("boundary", {}, BOUNDARY_INVALID), said)


def boundary_from(said: object, *, base: Boundary, code: str, flat: Mapping[str, BoundaryKey] = _NO_KEYS) -> Boundary:
    """What a mapping says beyond a boundary; refused under another code, and with more keys at its head."""
    return _read_boundary(ValueReader("boundary", {}, code), said, base, flat)


def boundary_said(boundary: Boundary) -> JsonObject:
    """A boundary as its file says it: every key, those of caps that it leaves to the standard budget excepted.

    Where it has figures of a profile that no file may set, it extends that profile.
    """
    said: JsonObject = {}
    for name, entry in SHAPE.items():
        if isinstance(entry, BoundaryKey):
            said[name] = entry.say(getattr(boundary, entry.field))
        else:
            block = {key: one.say(getattr(boundary, one.field)) for key, one in entry.items()}
            said[name] = {key: value for key, value in block.items() if value is not None}
    found: JsonObject = read_json(to_json(said))
    if not uncharged_in(boundary.budget):
        return found
    name = found.pop("name")
    base = next((known for known in KNOWN if _is_said(boundary, name, found, known)), None)
    return {"name": name, **({} if base is None else {EXTENDS: base}), **found}


def _is_said(boundary: Boundary, name: str, said: JsonObject, base: str) -> bool:
    """Whether a file that extends this boundary of the house and says so much reads back as the boundary."""
    try:
        return boundary_from({"name": name, EXTENDS: base, **said}, base=STANDARD, code=BOUNDARY_INVALID) == boundary
    except RequestRejected:
        return False


def boundary_yaml(boundary: Boundary) -> str:
    """The text of a file that holds this boundary."""
    return write_yaml(boundary_said(boundary))


def _named(reader: ValueReader, said: object) -> Boundary:
    """A boundary that has a name of its own."""
    boundary = _read_boundary(reader, said, STANDARD, _NO_KEYS)
    if not isinstance(said, dict) or "name" not in said:
        raise reader.refusal((), "the boundary has no 'name'; name it, since every refusal will")
    if boundary.name in KNOWN and boundary != KNOWN[boundary.name]:
        problem = f"name={boundary.name!r} is that of a boundary of the house, and this one differs from it"
        raise reader.refusal(("name",), f"{problem}; give it another name, and say extends: {boundary.name}")
    return boundary


def _read_boundary(reader: ValueReader, said: object, base: Boundary, flat: Mapping[str, BoundaryKey]) -> Boundary:
    block = reader.block(said, (*SHAPE, EXTENDS, *flat), ())
    if EXTENDS in block:
        base = _extended(reader, block[EXTENDS])
    fields: dict[str, Any] = {}
    slots: dict[str, ValuePath] = {}
    for place, key, value in _entries(reader, block, flat):
        slot = key.slot or key.field
        if slot in slots:
            problem = f"{spelled_place(place)} says again what {spelled_place(slots[slot])} says; keep one of them"
            raise reader.refusal(place, problem)
        slots[slot] = place
        fields[key.field] = key.read(reader, value, place, fields.get(key.field, getattr(base, key.field)))
    # A field counts in the version unless it holds the default itself, and what equals that says nothing more.
    settled = {
        name: default if value == (default := getattr(STANDARD, name)) else value for name, value in fields.items()
    }
    boundary = replace(base, **settled)
    for check, place in ((check_exhaustion, ("budget", "exhaustion")), (check_conditions, ("conditions",))):
        try:
            check(boundary)
        except RequestRejected as error:
            raise reader.refusal(place, error.message, {"cause": str(error.code)}) from None
    return boundary


def _entries(
    reader: ValueReader, block: JsonObject, flat: Mapping[str, BoundaryKey]
) -> list[tuple[ValuePath, BoundaryKey, Any]]:
    """Every value of a file, with its place and its key."""
    found: list[tuple[ValuePath, BoundaryKey, Any]] = []
    for name, value in block.items():
        if name == EXTENDS:
            continue
        entry = flat[name] if name in flat else SHAPE[name]
        if isinstance(entry, BoundaryKey):
            found.append(((name,), entry, value))
        else:
            said = reader.block(value, tuple(entry), (name,))
            found += [((name, key), entry[key], one) for key, one in said.items()]
    return found


def _extended(reader: ValueReader, value: object) -> Boundary:
    if isinstance(value, str) and value in KNOWN:
        return KNOWN[value]
    raise reader.unfit((EXTENDS,), value, f"one of {', '.join(KNOWN)}")


def _names_a_file(text: str) -> bool:
    """Whether a text is meant as a path: it looks like one, or there is such a file."""
    if text.lower().endswith(_SUFFIXES):
        return True
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False  # A text that no file can be called by.


def _as_is(value: Any) -> Any:
    return value


def _or_all(value: Any) -> Any:
    return ALL if value is None else value


def _choices(field: str, kind: type[StrEnum]) -> BoundaryKey:
    return BoundaryKey(field, lambda read, value, place, _: read.choices(value, kind, place), _as_is)


def _choices_or_all(field: str, kind: type[StrEnum]) -> BoundaryKey:
    return BoundaryKey(field, lambda read, value, place, _: read.choices_or_all(value, kind, place), _or_all)


def _table(
    field: str, keys: type[StrEnum] | tuple[str, ...], read_one: Callable[[ValueReader, Any, ValuePath], str]
) -> BoundaryKey:
    """A mapping from known names, which replaces what the same names had."""

    def read(reader: ValueReader, value: Any, place: ValuePath, base: tuple[tuple[str, str], ...]) -> Any:
        said = reader.block(value, tuple(keys), place)
        return tuple({**dict(base), **{k: read_one(reader, v, (*place, k)) for k, v in said.items()}}.items())

    return BoundaryKey(field, read, dict)


def _cap(
    name: str, read_one: Callable[[ValueReader, Any, ValuePath], int], say: Callable[[int], Any], field: str = ""
) -> BoundaryKey:
    """A cap of the budget, under its own name or a friendlier one."""
    field = field or name

    def said(budget: Budget) -> Any:
        amount = getattr(budget, field)
        return None if amount is None else say(amount)

    return BoundaryKey("budget", lambda r, v, p, budget: replace(budget, **{field: read_one(r, v, p)}), said, field)


def _authority(reader: ValueReader, value: Any, place: ValuePath, base: Authority | None) -> Authority | None:
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
    reader: ValueReader, value: Any, place: ValuePath, base: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise reader.unfit(place, value, "a mapping from a name such as 'regulated' to a list of tools")
    said = {reader.text(name, place): reader.texts(tools, (*place, str(name))) for name, tools in value.items()}
    return tuple({**dict(base), **said}.items())


def _purchase_max(reader: ValueReader, value: Any, place: ValuePath, base: int | None) -> int | None:
    return None if value == NO_LIMIT else reader.whole(value, place)


def _people(reader: ValueReader, value: Any, place: ValuePath) -> tuple[str, ...]:
    """Names of people, none of which hides anything."""
    names = reader.texts(value, place)
    for number, name in enumerate(names):
        try:
            check_person(name, spelled_place((*place, number)))
        except RequestRejected as error:
            raise reader.refusal((*place, number), error.message, error.details) from None
    return names


_ALLOWED = BoundaryKey("allowed_tools", lambda read, value, place, _: read.texts_or_all(value, place), _or_all)
_EFFECTS = _choices("approval_effects", Effect)
_PERMISSIONS = BoundaryKey("permissions", lambda read, value, place, _: read.texts(value, place), _as_is)
_WAIT = BoundaryKey("approval_wait_ms_max", lambda read, value, place, _: read.duration_ms(value, place), said_duration)


def _figure(name: str) -> BoundaryKey:
    """A cap that nothing charges yet: 0, or what the boundary that is extended has."""

    def read(reader: ValueReader, value: Any, place: ValuePath, budget: Budget) -> Budget:
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
                lambda read, value, place, _: read_rates(read, value, place),
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
        "intake": BoundaryKey("intake", read_intake, lambda said: [said_intake(one) for one in said]),
        "tasks": BoundaryKey("tasks", read_tasks, lambda said: [said_task_rule(one) for one in said]),
        "conditions": BoundaryKey("conditions", read_conditions, lambda said: [said_condition(one) for one in said]),
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
