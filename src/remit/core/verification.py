"""Verification: what could have said no to the result of a call.

Rule 1: a check counts when it could have refused what came back: a function that was declared for it, or a result schema
        that says more than of which type a result is.
Rule 2: a text, a bare object, a bare list, a truth value and nothing at all are no checks: an error message, an empty
        object, `false` and `null` would pass them.
Rule 3: a choice of schemas checks only what each of them checks; keywords that are not asserted here (`format`) count nothing.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from remit.core.record import JsonObject
from remit.core.schema import JsonSchema
from remit.core.tools import ToolDefinition

# The validator of a tool that declares no function: its result schema.
SCHEMA_VERIFIER = "schema"
# What stands in the place of a validator where a read returned and nothing could have refused it: it was seen, no more.
OBSERVED_ONLY = "observed"

_LOCAL = "#/"
# Patterns that refuse no text.
_EVERYTHING = frozenset({"", ".*", "^.*", ".*$", "^.*$", "^", "$", "(?s).*", "(?s)^.*$", "[\\s\\S]*", "^[\\s\\S]*$"})


def verifier_of(tool: ToolDefinition) -> str:
    """The name of what checks the results of a tool, or nothing where nothing could refuse one."""
    if tool.verifier != SCHEMA_VERIFIER:
        return tool.verifier
    return SCHEMA_VERIFIER if could_refuse(tool.result) else ""


def is_unverified(tool: ToolDefinition) -> bool:
    """Whether a tool changes something and nothing could ever refuse what it says of that."""
    return tool.effect.is_mutating and not verifier_of(tool)


def could_refuse(schema: JsonSchema) -> bool:
    """Whether a result schema refuses more than values of another type."""
    return _refuses(schema, _Root(schema, {}))


class _Root(NamedTuple):
    """A whole schema, and what is known of the places in it that it refers to; one that is being looked at refuses nothing."""

    schema: Any
    known: dict[str, bool]

    def refuses_at(self, reference: object) -> bool:
        """Whether the schema at this place of the root refuses something. What stands elsewhere counts nothing."""
        if not isinstance(reference, str) or not reference.startswith(_LOCAL):
            return False
        if reference not in self.known:
            self.known[reference] = False
            place = self.schema
            for step in reference.removeprefix(_LOCAL).split("/"):
                place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
            self.known[reference] = _refuses(place, self)
        return self.known[reference]


def _refuses(schema: Any, root: _Root) -> bool:
    if not isinstance(schema, dict):
        return schema is False
    if "enum" in schema or "const" in schema or root.refuses_at(schema.get("$ref")):
        return True
    if any(_refuses(part, root) for part in schema.get("allOf", ())):
        return True
    choices = (schema.get("anyOf"), schema.get("oneOf"))
    if any(choice and all(_refuses(part, root) for part in choice) for choice in choices):
        return True
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    return bool(kinds) and all(kind in _NARROWS and _NARROWS[kind](schema, root) for kind in kinds)


def _text(schema: JsonObject, root: _Root) -> bool:
    is_pattern = isinstance(schema.get("pattern"), str) and schema["pattern"] not in _EVERYTHING
    return is_pattern or bool(schema.get("minLength")) or "maxLength" in schema


def _object(schema: JsonObject, root: _Root) -> bool:
    if schema.get("required") or schema.get("minProperties") or "maxProperties" in schema:
        return True
    named = (*schema.get("properties", {}).values(), *schema.get("patternProperties", {}).values())
    others = (schema.get("additionalProperties", True), schema.get("propertyNames", True))
    return any(_refuses(part, root) for part in (*named, *others))


def _array(schema: JsonObject, root: _Root) -> bool:
    if schema.get("minItems") or "maxItems" in schema or "contains" in schema or schema.get("uniqueItems"):
        return True
    return any(_refuses(part, root) for part in (schema.get("items", True), *schema.get("prefixItems", ())))


def _always(schema: JsonObject, root: _Root) -> bool:
    return True


# By type: whether a schema refuses some values of that type. A number is a figure that no error message is.
_NARROWS: Mapping[str, Callable[[JsonObject, _Root], bool]] = MappingProxyType(
    {"string": _text, "object": _object, "array": _array, "number": _always, "integer": _always}
)
