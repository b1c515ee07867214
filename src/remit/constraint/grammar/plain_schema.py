"""Schemas made plain for a grammar: references followed, and what must hold together joined into one schema.

Rule 1: what comes out says the same or less, never more; where it says less, that is noted.
Rule 2: a plain schema has no reference, no allOf, no oneOf, no const, and lists in one notation; what it may be besides
        stands in one anyOf.
Rule 3: a reference that leads back to itself before anything was read adds nothing.
"""

from collections.abc import Callable, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, TypeAlias

from remit.constraint.reading.enums import schema_at
from remit.core.record import JsonObject

# Schemas that were made plain; a schema of any use takes some hundred, one that doubles itself any number.
STEPS_MAX = 5_000
# Two lists of alternatives that must both hold become all pairs of them, up to so many.
PAIRS_MAX = 32

# These say nothing about what fits.
REMARKS = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema"),
        *("$id", "id", "$anchor", "$defs", "definitions", "$vocabulary", "contentEncoding", "contentMediaType"),
        *("contentSchema", "then", "else", "$dynamicAnchor", "$recursiveAnchor"),
    }
)

Plain: TypeAlias = JsonObject | bool
Note: TypeAlias = Callable[[str], None]


class StepsSpentError(Exception):
    """A schema takes too many steps to be made plain."""


class Plainer:
    """Makes the parts of one schema plain."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        # In old drafts a reference stands alone, whatever stands beside it.
        self._is_old = "draft-0" in str(root.get("$schema", ""))
        # References are read against the nearest $id, and only that of the root is known here.
        self._has_inner_ids = _has_inner_id(root)
        self._steps = 0

    def target(self, reference: str) -> Plain | None:
        """What a reference leads to; None where that cannot be said."""
        if not reference.startswith("#") or self._has_inner_ids:
            return None
        found = schema_at(self._root, reference[1:])
        return found if isinstance(found, dict | bool) else None

    def plain(self, schema: Plain, note: Note, within: frozenset[str] = frozenset()) -> Plain:
        """A schema made plain; `note` hears of every keyword that is lost."""
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise StepsSpentError(f"making the schema plain takes over steps_max={STEPS_MAX} steps")
        if not isinstance(schema, dict):
            return schema
        found: Plain = {} if self._is_old and "$ref" in schema else _own(schema, note)
        others: list[tuple[Plain, frozenset[str]]] = [(each, within) for each in schema.get("allOf", ())]
        if isinstance(reference := schema.get("$ref"), str) and reference not in within:
            target = self.target(reference)
            if target is None:
                note("$ref")
            else:
                others.append((target, within | {reference}))
        for other, inner in others:
            found = joined_schemas(found, self.plain(other, note, inner), note)
        return found


def joined_schemas(one: Plain, other: Plain, note: Note) -> Plain:
    """Two plain schemas that must both hold, as one."""
    if one is False or other is False:
        return False
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one if isinstance(one, dict) else other
    found = {**other, **one}
    for key in one.keys() & other.keys():
        join = _JOINS.get(key)
        if join is not None:
            found[key] = join(one[key], other[key])
        elif one[key] != other[key]:
            note(key)
    if "anyOf" in one and "anyOf" in other:
        found["anyOf"] = _pairs(one["anyOf"], other["anyOf"], note)
    if _MEMBERS & one.keys() and _MEMBERS & other.keys():
        found.update(_members(one, other, note))
    if _ENTRIES & one.keys() and _ENTRIES & other.keys():
        found.update(_entries(one, other))
    return found


def both(one: Plain, other: Plain) -> Plain:
    """Two schemas that must both hold, to be made plain later."""
    if one is False or other is False:
        return False
    if one in (True, {}):
        return other
    return one if other in (True, {}) else {"allOf": [one, other]}


def _own(schema: JsonObject, note: Note) -> Plain:
    """What a schema says by itself, in one notation."""
    found = {key: value for key, value in schema.items() if key not in REMARKS and key not in ("$ref", "allOf")}
    if "const" in found:
        const = found.pop("const")
        found["enum"] = [each for each in found.get("enum", [const]) if is_same_value(each, const)]
    if isinstance(found.get("type"), str):
        found["type"] = [found["type"]]
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(found.get(exclusive), bool) and found.pop(exclusive) and limit in found:
            found[exclusive] = found.pop(limit)
    more = found.pop("additionalItems", True)
    if isinstance(found.get("items"), list):
        found["prefixItems"], found["items"] = found["items"], more
    if "oneOf" in found:
        note("oneOf")
        ways = found.pop("oneOf")
        found["anyOf"] = _pairs(found["anyOf"], ways, note) if "anyOf" in found else ways
    return found


def _pairs(ones: list[Plain], others: list[Plain], note: Note) -> list[Plain]:
    if len(ones) * len(others) > PAIRS_MAX:
        note("anyOf")
        return ones
    return [both(one, other) for one, other in product(ones, others)]


def _members(one: JsonObject, other: JsonObject, note: Note) -> JsonObject:
    """The properties of an object that must fit both."""
    names = dict.fromkeys([*one.get("properties", ()), *other.get("properties", ())])
    found: JsonObject = {
        "properties": {name: both(_member(one, name, note), _member(other, name, note)) for name in names},
    }
    if "additionalProperties" in one or "additionalProperties" in other:
        rests = (each.get("additionalProperties", True) for each in (one, other))
        found["additionalProperties"] = both(*rests)
    patterns = dict(one.get("patternProperties", {}))
    for pattern, schema in other.get("patternProperties", {}).items():
        patterns[pattern] = both(patterns.get(pattern, True), schema)
    if patterns:
        # A name that a pattern of the one speaks of is not additional there, though it may be in the other.
        note("patternProperties")
        found |= {"patternProperties": patterns, "additionalProperties": True}
    return found


def _member(schema: JsonObject, name: str, note: Note) -> Plain:
    known: Mapping[str, Plain] = schema.get("properties", {})
    if name in known:
        return known[name]
    if "patternProperties" in schema and "additionalProperties" in schema:
        note("additionalProperties")
        return True
    rest: Plain = schema.get("additionalProperties", True)
    return rest


def _entries(one: JsonObject, other: JsonObject) -> JsonObject:
    """The entries of an array that must fit both."""
    firsts = [one.get("prefixItems", []), other.get("prefixItems", [])]
    rests = [one.get("items", True), other.get("items", True)]
    count = max(map(len, firsts))
    found: JsonObject = {"items": both(*rests)}
    if count:
        found["prefixItems"] = [
            both(*(first[at] if at < len(first) else rest for first, rest in zip(firsts, rests, strict=True)))
            for at in range(count)
        ]
    return found


def is_same_value(one: Any, other: Any) -> bool:
    """Whether two values are equal to a schema: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same_value(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(is_same_value(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)


def _common_types(one: list[str], other: list[str]) -> list[str]:
    wide = [kind for kind in one if kind in other or (kind == "integer" and "number" in other)]
    return wide + [kind for kind in other if kind == "integer" and "number" in one and "integer" not in wide]


def _has_inner_id(root: JsonObject) -> bool:
    todo: list[Any] = [value for key, value in root.items() if key not in ("const", "enum", "default", "examples")]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            if isinstance(each.get("$id"), str):
                return True
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return False


_MEMBERS = frozenset({"properties", "additionalProperties", "patternProperties"})
_ENTRIES = frozenset({"items", "prefixItems"})
_JOINS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "type": _common_types,
        "enum": lambda one, other: [each for each in one if any(is_same_value(each, known) for known in other)],
        "required": lambda one, other: list(dict.fromkeys([*one, *other])),
        **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
        **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
        **dict.fromkeys(("anyOf", "properties", "additionalProperties", "patternProperties"), lambda one, _: one),
        **dict.fromkeys(("items", "prefixItems"), lambda one, _: one),
    }
)
