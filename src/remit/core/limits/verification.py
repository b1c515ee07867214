"""Verification: what could have said no to the result of a call.

Rule 1: a check counts when it could have refused what came back: a function that was declared for it, or a result schema
        that says more than of which type a result is.
Rule 2: what an error message, the object of an error (`{"error": …}`), an empty object, `false` or `null` would pass is no
        check: a text of any length, an object none of whose members has to be there, a list that may be
        empty, a truth value.
Rule 3: a choice of schemas checks only what each of them checks; keywords that are not asserted here (`format`) count nothing.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject
from remit.core.schema.json_schema import JsonSchema

# The validator of a tool that declares no function: its result schema.
SCHEMA_VERIFIER = "schema"
# What stands in the place of a validator where a read returned and nothing could have refused it: it was seen, no more.
OBSERVED_ONLY = "observed"

_LOCAL = "#/"
# How tools say no in words; a pattern that one of them fits refuses nothing.
_REFUSALS = (
    "",
    "error",
    "ERROR: card declined",
    "Error 402: payment required",
    "failed",
    "no",
    "null",
    "None",
    "false",
)
# Members that say either way how it went; they check something only where they say what they have to be.
_SAYS_EITHER = frozenset({"ok", "success", "successful", "status", "code", "error", "errors", "message"})


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
    if _is_chosen(schema) or root.refuses_at(schema.get("$ref")):
        return True
    if any(_refuses(part, root) for part in schema.get("allOf", ())):
        return True
    choices = (schema.get("anyOf"), schema.get("oneOf"))
    if any(choice and all(_refuses(part, root) for part in choice) for choice in choices):
        return True
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    return bool(kinds) and all(kind in _NARROWS and _NARROWS[kind](schema, root) for kind in kinds)


def _is_chosen(schema: JsonObject) -> bool:
    """Whether a value has to be one of a few, none of which is a bare no."""
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else []
    return bool(values) and not any(value is None or value is False for value in values)


def _text(schema: JsonObject, root: _Root) -> bool:
    """Whether a pattern refuses what an error message looks like; how long a text is says nothing of what it says."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return False
    try:
        found = re.compile(pattern).search
    except re.error:
        return True  # Another dialect than ours: its author wanted to refuse something.
    return not any(found(said) for said in _REFUSALS)


def _object(schema: JsonObject, root: _Root) -> bool:
    """Whether something has to be there that neither nothing at all nor the object of an error has."""
    named = schema.get("properties", {})
    return any(_is_telling(name, named.get(name, True), root) for name in schema.get("required", ()))


def _is_telling(name: str, schema: Any, root: _Root) -> bool:
    """Whether a member that has to be there tells a success from a failure."""
    is_flag = isinstance(schema, dict) and schema.get("type") == "boolean"
    if name.lower() not in _SAYS_EITHER and not is_flag:
        return True
    return isinstance(schema, dict) and (_is_chosen(schema) or _text(schema, root))


def _array(schema: JsonObject, root: _Root) -> bool:
    if _refuses(schema.get("contains", True), root):
        return True
    parts = (schema.get("items", True), *schema.get("prefixItems", ()))
    return bool(schema.get("minItems")) and any(_refuses(part, root) for part in parts)


def _always(schema: JsonObject, root: _Root) -> bool:
    return True


# By type: whether a schema refuses some values of that type. A number is a figure that no error message is.
_NARROWS: Mapping[str, Callable[[JsonObject, _Root], bool]] = MappingProxyType(
    {"string": _text, "object": _object, "array": _array, "number": _always, "integer": _always}
)
