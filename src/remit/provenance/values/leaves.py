"""Leaves: the single values of a call's arguments, each with its path, its kind and what its schema says.

Rule 1: every value inside lists and objects is judged on its own, and so is every key that no schema names.
Rule 2: an argument is payload only when it is declared so and not declared control.
Rule 3: an argument that the schema lacks is reported; a tool without any schema knows none of its arguments.
Rule 4: a path names one place: the signs of paths are escaped where a name or key has them.
"""

from typing import Any

from remit.core.record import JsonObject, Record
from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.kinds import ANY

# More values than a person could look at in one approval.
LEAVES_MAX = 1_000
DEPTH_MAX = 32
# What parts the steps of a path, and what takes that meaning away.
_SIGNS = regex(r"[.\[\]\\]")
_FORMATS = {"email": "email", "uri": "url", "url": "url", "date": "date", "date-time": "datetime", "time": "time"}


class Leaf(Record):
    """One value of a call; its kind is the declared one, or what the schema's format tells."""

    path: str
    argument: str
    value: Any
    kind: str = ANY
    schema: JsonObject = {}
    is_payload: bool = False
    is_required: bool = True
    is_known: bool = True
    is_key: bool = False


class _Place:
    """What is known of one place in the arguments, whatever its value: found once, for all calls of the tool."""

    __slots__ = (
        "argument",
        "each",
        "is_known",
        "is_payload",
        "is_required",
        "kind",
        "named",
        "pattern",
        "schema",
        "step",
        "told",
    )

    def __init__(
        self,
        pattern: str,
        argument: str,
        kind: str,
        schema: Any,
        *,
        is_payload: bool,
        is_required: bool,
        is_known: bool,
    ) -> None:
        self.pattern = pattern
        self.argument = argument
        # The argument as a step of a path.
        self.step = path_step(argument)
        self.kind = kind
        # The kind that declaration or schema gives this value. Values inside it inherit a declared kind, not one from `format`.
        self.told = told_kind(kind, schema)
        self.schema: JsonObject = schema if isinstance(schema, dict) else {}
        self.is_payload = is_payload
        self.is_required = is_required
        self.is_known = is_known
        # The place of each element, and those of the keys that the schema names.
        self.each: _Place | None = None
        self.named: dict[str, _Place] = {}

    def leaf(self, path: str, value: Any) -> Leaf:
        """The leaf that a value is at this place."""
        return Leaf(
            path, self.argument, value, self.told, self.schema, self.is_payload, self.is_required, self.is_known
        )


class Leaves:
    """Cuts the arguments of one tool's calls into leaves. Made once per tool."""

    def __init__(self, declaration: Declaration) -> None:
        schema = declaration.parameters
        properties = schema.get("properties")
        self._properties: JsonObject = properties if isinstance(properties, dict) else {}
        self._has_schema = isinstance(properties, dict)
        required = schema.get("required")
        names = required if isinstance(required, (list, tuple)) else ()
        self._required = frozenset(name for name in names if isinstance(name, str))
        self._kinds = dict(declaration.control_args)
        self._payload = frozenset(declaration.payload_args) - self._kinds.keys()
        self._places = {name: self._root(name) for name in self._properties}

    def of(self, arguments: JsonObject) -> tuple[Leaf, ...]:
        """All leaves of these arguments, at most one more than LEAVES_MAX."""
        found: list[Leaf] = []
        for name, value in arguments.items():
            place = self._places.get(name) or self._root(name)
            if isinstance(value, str):
                found.append(place.leaf(place.step, value))
            else:
                self._cut(place, place.step, value, 0, found)
            if len(found) > LEAVES_MAX:
                return tuple(found[: LEAVES_MAX + 1])
        return tuple(found)

    def _root(self, name: str) -> _Place:
        schema = self._properties.get(name)
        return _Place(
            name,
            name,
            self._kinds.get(name, ANY),
            schema,
            is_payload=name in self._payload,
            is_required=name in self._required,
            is_known=isinstance(schema, dict) or schema is True or not self._has_schema,
        )

    def _cut(self, place: _Place, path: str, value: Any, depth: int, found: list[Leaf]) -> None:
        if not isinstance(value, (dict, list, tuple)) or not value or depth > DEPTH_MAX:
            found.append(place.leaf(path, value))
        elif isinstance(value, dict):
            self._cut_object(place, path, value, depth, found)
        else:
            each = place.each
            if each is None:
                each = place.each = self._inner(place, f"{place.pattern}[]", place.schema.get("items"))
            for number, single in enumerate(value):
                if isinstance(single, str):
                    found.append(each.leaf(f"{path}[{number}]", single))
                else:
                    self._cut(each, f"{path}[{number}]", single, depth + 1, found)
                if len(found) > LEAVES_MAX:
                    return

    def _cut_object(self, place: _Place, path: str, value: JsonObject, depth: int, found: list[Leaf]) -> None:
        properties = place.schema.get("properties")
        for key, inner in value.items():
            below, inside = place.named.get(key), f"{path}.{path_step(key)}"
            if below is None:
                below = self._below(place, key, found, inside, properties)
            self._cut(below, inside, inner, depth + 1, found)
            if len(found) > LEAVES_MAX:
                return

    def _below(self, place: _Place, key: str, found: list[Leaf], path: str, properties: Any) -> _Place:
        """The place under a key. One that the schema names is kept; any other key is a value of its own."""
        is_named = isinstance(properties, dict) and key in properties
        below = self._inner(place, f"{place.pattern}.{path_step(key)}", properties[key] if is_named else None)
        if is_named:
            place.named[key] = below
        else:
            is_known = place.is_known and not isinstance(properties, dict)
            found.append(Leaf(path, place.argument, key, is_payload=place.is_payload, is_known=is_known, is_key=True))
        return below

    def _inner(self, outer: _Place, pattern: str, schema: Any) -> _Place:
        # A declaration escapes nothing. Where it could mean two places, both are control and neither is payload.
        kind = self._kinds.get(pattern.replace("\\", ""))
        return _Place(
            pattern,
            pattern.rpartition(".")[2].partition("[")[0],
            outer.kind if kind is None else kind,
            schema,
            is_payload=(outer.is_payload or pattern in self._payload) and kind is None,
            is_required=True,
            is_known=outer.is_known,
        )


def path_step(name: Any) -> str:
    """A name or key as a step of a path."""
    text = str(name)
    return text if text.isidentifier() else _SIGNS.sub(r"\\\g<0>", text)


def told_kind(kind: str, schema: Any) -> str:
    """The declared kind, or the one that the schema's format tells."""
    if kind and kind != "any":
        return kind
    told = schema.get("format") if isinstance(schema, dict) else None
    return _FORMATS.get(told, ANY) if isinstance(told, str) else ANY
