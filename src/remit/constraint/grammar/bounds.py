"""Bounds for what a schema leaves open, so that a small model cannot run on until its tokens are gone.

Rule 1: bounds stand in the grammar alone. What a value must fit is the schema as it was given, and nothing here changes it.
Rule 2: a bound never contradicts the schema: whatever it says about a length itself is kept, and a least length wins.
Rule 3: a number of entries that no model reaches is lowered: the grammar would hold a part for each of them.
Rule 4: schemas that must hold together are joined before they are bounded: closed one by one, each would forbid what the
        other demands. Those that cannot be joined without loss stay as they are.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from remit.constraint.grammar.plain_schema import REMARKS, Plainer, StepsSpentError, joined_schemas
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.record import JsonObject

# A paragraph: about a hundred tokens, which a small model writes in a second.
TEXT_CHARS_BOUND = 400
# More entries than a small model keeps in mind.
ITEMS_BOUND = 16
PROPERTIES_BOUND = 16
# More entries than the answer of a small model has room for.
ITEMS_MAX = 1000
# Fifteen digits are what every JSON reader keeps exactly.
INTEGER_BOUND = 10**15 - 1
# Six places behind the point: amounts of money, coordinates to a hand's breadth.
FRACTION_STEP = 0.000001

# Where a schema holds schemas: one, a list of them, or some by name.
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_DEFINED = ("$defs", "definitions")
# What speaks of the same value as the schema beside it. A list of alternatives or a reference alone needs no joining.
_TOGETHER = frozenset({"allOf", "anyOf", "oneOf", "$ref"})
_ALONE = frozenset({"anyOf", "oneOf", "$ref"})
# A text that says by itself how it looks has its length from there.
_SHAPED = ("maxLength", "enum", "const", "pattern", "format")


def bounded(schema: JsonObject) -> JsonObject:
    """A copy of a schema for a grammar, with a bound wherever it has none."""
    copy = _Bounding(schema).of(schema, DEPTH_MAX, frozenset())
    assert isinstance(copy, dict)
    return copy


class _Bounding:
    """Bounds the parts of one schema."""

    def __init__(self, root: JsonObject) -> None:
        self._plainer = Plainer(root)
        # A reference into what is joined would lead to nothing afterwards.
        self._may_join = not _refers_into_ways(root)

    def of(self, schema: Any, levels_left: int, within: frozenset[int]) -> Any:
        if not isinstance(schema, dict) or not levels_left:
            return schema
        found = dict(schema)
        if any(key in schema for key in _TOGETHER) and schema.keys() - REMARKS - _ALONE:
            joined_up = None if id(schema) in within or not self._may_join else self._joined(schema)
            if joined_up is None:
                # Its definitions stand apart, and may be bounded all the same.
                return found | {key: self._named(found[key], levels_left, within) for key in _DEFINED if key in found}
            found, within = joined_up, within | {id(schema)}
        for key in _ONE:
            if key in found:
                found[key] = self.of(found[key], levels_left - 1, within)
        for key in _LISTED:
            if isinstance(found.get(key), list):
                found[key] = [self.of(each, levels_left - 1, within) for each in found[key]]
        for key in _NAMED:
            if key in found:
                found[key] = self._named(found[key], levels_left, within)
        _limit(found)
        return found

    def _named(self, schemas: Any, levels_left: int, within: frozenset[int]) -> Any:
        if not isinstance(schemas, dict):
            return schemas
        return {name: self.of(each, levels_left - 1, within) for name, each in schemas.items()}

    def _joined(self, schema: JsonObject) -> JsonObject | None:
        """What must hold together as one schema, or as one for each alternative; None where something would be lost."""
        lost: list[str] = []
        try:
            whole = self._plainer.plain(schema, lost.append)
            if not isinstance(whole, dict):
                return None
            ways = whole.pop("anyOf", None)
            if ways is not None and whole:
                ways = [joined_schemas(whole, self._plainer.plain(way, lost.append), lost.append) for way in ways]
        except StepsSpentError:
            return None
        if set(lost) - {"oneOf"}:
            return None
        remarks = {key: value for key, value in schema.items() if key in REMARKS}
        return remarks | (whole if ways is None else {"anyOf": ways})


def _refers_into_ways(root: JsonObject) -> bool:
    todo: list[Any] = [root]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str) and not _TOGETHER.isdisjoint(reference.split("/")):
                return True
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return False


def _limit(found: JsonObject) -> None:
    """Bound what a schema says by itself."""
    for key in ("minItems", "maxItems"):
        if isinstance(found.get(key), int | float):
            found[key] = min(found[key], ITEMS_MAX)
    kinds = found.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and (bound := _BOUND.get(kind)) is not None:
            bound(found)


def _bound_text(schema: JsonObject) -> None:
    if not any(key in schema for key in _SHAPED):
        schema["maxLength"] = max(TEXT_CHARS_BOUND, _least(schema, "minLength"))


def _bound_list(schema: JsonObject) -> None:
    if not any(key in schema for key in ("maxItems", "enum", "const")):
        fixed = schema.get("prefixItems")
        schema["maxItems"] = max(ITEMS_BOUND, _least(schema, "minItems"), len(fixed) if isinstance(fixed, list) else 0)


def _bound_object(schema: JsonObject) -> None:
    if any(key in schema for key in ("enum", "const")):
        return
    if "properties" in schema:
        # Undeclared properties are allowed, and a small model would make some up.
        schema.setdefault("additionalProperties", False)
    elif "maxProperties" not in schema and "patternProperties" not in schema:
        schema["maxProperties"] = max(PROPERTIES_BOUND, _least(schema, "minProperties"))


def _bound_integer(schema: JsonObject) -> None:
    if any(key in schema for key in ("enum", "const")):
        return
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMaximum" not in schema and most is None:
        schema["maximum"] = max(INTEGER_BOUND, least) if isinstance(least, int | float) else INTEGER_BOUND
    if "exclusiveMinimum" not in schema and least is None:
        schema["minimum"] = min(-INTEGER_BOUND, most) if isinstance(most, int | float) else -INTEGER_BOUND


def _bound_number(schema: JsonObject) -> None:
    _bound_integer(schema)
    limits = [schema.get(key) for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")]
    # Between limits that are finer than the step there might be no step at all.
    if not any(key in schema for key in ("enum", "const")) and not any(isinstance(limit, float) for limit in limits):
        schema.setdefault("multipleOf", FRACTION_STEP)


def _least(schema: JsonObject, key: str) -> int:
    value = schema.get(key, 0)
    return value if isinstance(value, int) else 0


_BOUND: Mapping[str, Callable[[JsonObject], None]] = MappingProxyType(
    {
        "string": _bound_text,
        "array": _bound_list,
        "object": _bound_object,
        "integer": _bound_integer,
        "number": _bound_number,
    }
)
