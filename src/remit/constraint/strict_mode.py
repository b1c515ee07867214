"""Strict mode: the schema that some providers demand, and its values brought back.

Such a provider wants every property required and no others allowed. What was optional becomes nullable there, and a null
that was only there for that is dropped on the way back.

Rule 1: what strict mode cannot say is refused before a model is asked: undeclared properties, and keywords that
        decide by the presence of a property.
Rule 2: what comes back fits the schema as it was given, or validation finds out; nothing is validated here.
Rule 3: a property that is optional and nullable comes back as null where it was left out: the two cannot be told apart.
"""

from typing import Any
from urllib.parse import quote

from remit.constraint.reading.enums import schema_at
from remit.constraint.reading.repair_log import NO_VALUE
from remit.core.failure import RequestRejected
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.record import JsonObject
from remit.core.schema.json_schema import Checker, compile_schema
from remit.core.schema.schema_work import pointer

STRICT_MODE_UNSUPPORTED = "STRICT_MODE_UNSUPPORTED"

# What cannot be said once every property is there.
_UNSAYABLE = (
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "allOf",
    "oneOf",
    "not",
    "if",
    "$dynamicRef",
    "$anchor",
)
# Where a schema holds schemas besides its properties: by name, in lists, alone.
_NAMED = ("$defs", "definitions")
_LISTED = ("anyOf", "prefixItems")
_ALONE = ("items", "contains")
_NULL: JsonObject = {"type": "null"}
_ORIGINAL, _STRICT = "urn:remit:original", "urn:remit:strict"


class StrictMode:
    """A schema as a strict provider wants it, and the way there and back for its values."""

    def __init__(self, schema: JsonObject) -> None:
        """Raises RequestRejected where strict mode cannot say what the schema says."""
        compile_schema(schema)
        self._original = schema
        # Where each schema of the original stands in either document; identities hold because the original is kept.
        self._places: dict[int, tuple[str, str]] = {}
        self._checkers: dict[tuple[str, str], Checker] = {}
        self.schema: JsonObject = self._strict(schema, "", "")

    def filled(self, value: Any) -> Any:
        """A value of the original schema as a strict provider would write it: what is left out is null."""
        return self._walked(value, self._original, _ORIGINAL)

    def restored(self, value: Any) -> Any:
        """A value that a strict provider wrote, without the nulls that only stand for what was left out."""
        return self._walked(value, self._original, _STRICT)

    def _strict(self, schema: Any, path: str, strict_path: str) -> Any:
        if not isinstance(schema, dict):
            return schema
        _check(schema, path)
        self._places[id(schema)] = (path, strict_path)
        found = dict(schema)
        for key in _NAMED:
            if key in found:
                found[key] = {
                    name: self._below(schema[key], name, f"{path}/{key}", f"{strict_path}/{key}") for name in found[key]
                }
        for key in _LISTED:
            if key in found:
                found[key] = [
                    self._below(schema[key], index, f"{path}/{key}", f"{strict_path}/{key}")
                    for index in range(len(found[key]))
                ]
        for key in _ALONE:
            if key in found:
                found[key] = self._below(schema, key, path, strict_path)
        if "properties" in found:
            optional = set(_optional(schema))
            found["properties"] = {
                name: self._property(schema, name, path, strict_path, is_optional=name in optional)
                for name in schema["properties"]
            }
            found["required"] = list(schema["properties"])
            found["additionalProperties"] = False
        return found

    def _property(self, schema: JsonObject, name: str, path: str, strict_path: str, *, is_optional: bool) -> Any:
        inner = f"{strict_path}/properties{pointer((name,))}"
        member = schema["properties"][name]
        path = f"{path}/properties{pointer((name,))}"
        if not is_optional:
            return self._strict(member, path, inner)
        return {"anyOf": [self._strict(member, path, f"{inner}/anyOf/0"), _NULL]}

    def _below(self, holder: Any, key: str | int, path: str, strict_path: str) -> Any:
        return self._strict(holder[key], path + pointer((key,)), strict_path + pointer((key,)))

    def _walked(self, value: Any, schema: Any, document: str) -> Any:
        schema = self._speaking(schema, value, document)
        if not isinstance(schema, dict):
            return value
        if isinstance(value, dict) and "properties" in schema:
            return self._members(value, schema, document)
        if isinstance(value, list):
            first = schema.get("prefixItems", [])
            rest = schema.get("items")
            return [
                self._walked(item, first[index] if index < len(first) else rest, document)
                for index, item in enumerate(value)
            ]
        return value

    def _members(self, value: JsonObject, schema: JsonObject, document: str) -> JsonObject:
        properties = schema["properties"]
        walked = {key: self._walked(member, properties.get(key), document) for key, member in value.items()}
        for key in _optional(schema):
            if document == _ORIGINAL:
                walked.setdefault(key, None)
            elif walked.get(key, NO_VALUE) is None and not self._fits(properties[key], None, _ORIGINAL):
                del walked[key]
        return walked

    def _speaking(self, schema: Any, value: Any, document: str) -> Any:
        """The schema that speaks of a value: references followed, and of alternatives the first that fits."""
        for _ in range(DEPTH_MAX):
            if not isinstance(schema, dict):
                return None
            if (reference := schema.get("$ref")) is not None:
                schema = schema_at(self._original, reference.removeprefix("#"))
            elif (choices := schema.get("anyOf")) is not None:
                schema = next((choice for choice in choices if self._fits(choice, value, document)), None)
            else:
                return schema
        return None

    def _fits(self, schema: Any, value: Any, document: str) -> bool:
        """Whether a value fits a part of the original, or of what strict mode made of it."""
        if not isinstance(schema, dict):
            return schema is not False
        place = self._places[id(schema)][document == _STRICT]
        key = (document, place)
        if key not in self._checkers:
            whole = self._original if document == _ORIGINAL else self.schema
            self._checkers[key] = compile_schema({"$ref": f"{document}#{quote(place)}"}, registry={document: whole})
        return self._checkers[key].is_valid(value)


def _check(schema: JsonObject, path: str) -> None:
    """Refuse what strict mode cannot say."""
    for keyword in _UNSAYABLE:
        if keyword in schema:
            raise _unsupported(
                path, f"{keyword} cannot be said in strict mode; leave it out, or do without strict mode"
            )
    if "$ref" in schema and ("properties" in schema or not str(schema["$ref"]).startswith("#")):
        raise _unsupported(path, "a reference stands alone in strict mode and leads to a definition; move it to $defs")
    kinds = schema.get("type")
    is_object = "object" in (kinds if isinstance(kinds, list) else [kinds])
    if is_object and "properties" not in schema and schema.get("additionalProperties") is not False:
        raise _unsupported(path, "an object declares no properties; name them, or take a list of pairs")
    if schema.get("additionalProperties", False) is not False:
        raise _unsupported(path, "properties that are not declared cannot be said in strict mode; declare them")


def _optional(schema: JsonObject) -> list[str]:
    required = set(schema.get("required", ()))
    return [name for name in schema["properties"] if name not in required]


def _unsupported(path: str, reason: str) -> RequestRejected:
    return RequestRejected(STRICT_MODE_UNSUPPORTED, f"schema at {path or '/'}: {reason}", {"path": path})
