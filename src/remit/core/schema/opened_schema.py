"""Opened schemas: a JSON Schema with its references followed, so that every field is seen where it stands.

Rule 1: only shapes are opened: a reference within the schema, and a choice of which one way is left beside null. Nothing is
        decided here about values; json_schema.py checks those with the schema as it was given, and refuses references.
Rule 2: a schema that refers to itself is opened once along each way. One that would grow beyond a bound stays as it is.
"""

from typing import Any

from remit.core.record import JsonObject

# More fields than any tool has arguments; a few short definitions could name each other into millions.
NODES_MAX = 5_000
_LOCAL = "#/"
_CHOICES = ("anyOf", "oneOf", "allOf")
# Where schemas stand by name, in a list, and alone.
_NAMED, _LISTED, _ALONE = ("properties",), ("prefixItems", *_CHOICES), ("items", "additionalProperties")


class _TooLarge(Exception):
    """The schema would grow beyond its bound."""


def opened_schema(schema: JsonObject) -> JsonObject:
    """The schema with its references followed; as it is where that would be too much."""
    try:
        found: JsonObject = _Opener(schema).opened(schema, frozenset())
    except (_TooLarge, RecursionError):
        return schema
    return found


class _Opener:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0

    def opened(self, schema: Any, within: frozenset[str]) -> Any:
        if not isinstance(schema, dict):
            return schema
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise _TooLarge
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in within and (target := self._at(reference)) is not None:
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return self.opened({**target, **rest}, within | {reference})
        found: JsonObject = dict(schema)
        for key in _NAMED:
            if isinstance(inner := schema.get(key), dict):
                found[key] = {name: self.opened(one, within) for name, one in inner.items()}
        for key in _LISTED:
            if isinstance(inner := schema.get(key), (list, tuple)):
                found[key] = [self.opened(one, within) for one in inner]
        for key in _ALONE:
            if isinstance(inner := schema.get(key), dict):
                found[key] = self.opened(inner, within)
        return _with_only_way(found)

    def _at(self, reference: str) -> JsonObject | None:
        """What a reference within the schema names; None for any other."""
        if not reference.startswith(_LOCAL):
            return None
        found: Any = self._root
        for step in reference.removeprefix(_LOCAL).split("/"):
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else None


def _with_only_way(schema: JsonObject) -> JsonObject:
    """The schema with a choice in its place that leaves one way beside null, such as that of a value which may be left out."""
    for key in _CHOICES:
        ways = [way for way in schema.get(key) or () if way != {"type": "null"}]
        if len(ways) == 1 and isinstance(ways[0], dict):
            return {**ways[0], **{name: value for name, value in schema.items() if name != key}}
    return schema
