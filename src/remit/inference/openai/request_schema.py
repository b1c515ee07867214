"""Schemas as OpenAI-compatible servers take them: as they are, or in the strict mode of the vendor.

Rule 1: in strict mode every object is closed and needs all of its members; the caller has made the schema so. Asked to
        be strict with any other schema, the vendor refuses the call; without it, the model does what it can.
Rule 2: of a strict schema the vendor gets the parts that it can hold a model to. What it would refuse, such as a default or a
        length, is left out: that only widens the schema, and the answer is validated against the whole one.
Rule 3: what cannot be told in that way is asked for without strict mode.
"""

from typing import Any

from remit.core.record import JsonObject
from remit.core.regex import regex

# A schema has to be called something; the name is not read.
SCHEMA_NAME = "answer"

# What the vendor knows in strict mode.
_KNOWN = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
    | {"definitions", "description", "title", "pattern", "format", "minItems", "maxItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
)
# What decides; left out, a schema would allow what it was made to forbid, and not only a little more.
_DECISIVE = frozenset({"allOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "prefixItems"})
# Looking ahead, behind, or back at what was matched.
_LOOKS_AROUND = regex(r"\\[1-9]|\(\?(?:[=!]|<[=!])")


def open_format(schema: JsonObject) -> JsonObject:
    """What a server is told that takes any schema; strict where the schema happens to be."""
    return {"name": SCHEMA_NAME, "schema": schema, "strict": is_strict(schema)}


def strict_format(schema: JsonObject) -> JsonObject:
    """What a server is told that holds a model to strict schemas alone."""
    told = told_strictly(schema)
    return {"name": SCHEMA_NAME, "schema": schema if told is None else told, "strict": told is not None}


def is_tellable(schema: JsonObject) -> bool:
    """Whether the vendor takes a schema in strict mode."""
    return told_strictly(schema) is not None


def told_strictly(schema: JsonObject) -> JsonObject | None:
    """A schema as the vendor takes it in strict mode; None where it takes none that says the same."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return None
    try:
        return _told(schema, _definitions(schema)) if is_strict(schema) else None
    except (_Untellable, RecursionError):
        return None


def is_strict(schema: Any) -> bool:
    """Whether the vendor can hold a model to this schema: every object is closed and needs all of its members.

    Asked to be strict with any other schema, the vendor refuses the call; without it, the model does what it can.
    """
    if isinstance(schema, list):
        return all(is_strict(each) for each in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        closed = schema.get("additionalProperties") is False
        if not closed or not isinstance(properties, dict) or sorted(properties) != sorted(schema.get("required", ())):
            return False
        schema = {**schema, "properties": list(properties.values())}
    return all(is_strict(each) for each in schema.values())


class _Untellable(Exception):
    """There is a part that strict mode has no words for."""


def _definitions(schema: JsonObject) -> frozenset[str]:
    """What a reference may lead to."""
    places = ("$defs", "definitions")
    return frozenset({"#", *(f"#/{place}/{name}" for place in places for name in schema.get(place, ()))})


def _told(schema: Any, definitions: frozenset[str]) -> JsonObject:
    if not isinstance(schema, dict) or _DECISIVE & schema.keys():
        raise _Untellable
    if "$ref" in schema:
        if schema["$ref"] not in definitions:
            raise _Untellable
        # It stands alone; what stood beside it only described it.
        return {"$ref": schema["$ref"]}
    kinds = schema.get("type", ())
    is_open = "object" in kinds and schema.get("additionalProperties") is not False
    is_endless = "array" in kinds and "items" not in schema
    if is_open or is_endless or not (kinds or "anyOf" in schema):
        raise _Untellable
    told = {key: value for key, value in schema.items() if key in _KNOWN}
    if told.get("format") not in _FORMATS:
        told.pop("format", None)
    if _LOOKS_AROUND.search(str(told.get("pattern", ""))):
        del told["pattern"]
    for key in ("properties", "$defs", "definitions"):
        if key in told:
            told[key] = {name: _told(member, definitions) for name, member in told[key].items()}
    if "anyOf" in told:
        told["anyOf"] = [_told(choice, definitions) for choice in told["anyOf"]]
    if "items" in told:
        told["items"] = _told(told["items"], definitions)
    return told
