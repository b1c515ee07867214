"""Leaves: the single values of a call's arguments, each with its path, its kind and what its schema says.

Rule 1: every value inside lists and objects is judged on its own, and so is every key that no schema names.
Rule 2: an argument is payload only when it is declared so and not declared control.
Rule 3: an argument that the schema lacks is reported; a tool without any schema knows none of its arguments.
"""

from collections.abc import Iterator
from typing import Any

from remit.core.record import JsonObject, Record
from remit.provenance.declarations import Declaration
from remit.provenance.kinds import ANY

# More values than a person could look at in one approval.
LEAVES_MAX = 1_000
DEPTH_MAX = 32
_FORMATS = {"email": "email", "uri": "url", "url": "url", "date": "date", "date-time": "datetime", "time": "time"}


class Leaf(Record):
    """One value of a call."""

    path: str
    argument: str
    value: Any
    kind: str = ANY
    schema: JsonObject = {}
    is_payload: bool = False
    is_required: bool = True
    is_known: bool = True
    is_key: bool = False


class Leaves:
    """Cuts the arguments of one tool's calls into leaves. Made once per tool."""

    def __init__(self, declaration: Declaration) -> None:
        schema = declaration.parameters
        properties = schema.get("properties")
        self._properties: JsonObject = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        names = required if isinstance(required, (list, tuple)) else ()
        self._required = frozenset(name for name in names if isinstance(name, str))
        self._kinds = dict(declaration.control_args)
        self._payload = frozenset(declaration.payload_args) - self._kinds.keys()

    def of(self, arguments: JsonObject) -> tuple[Leaf, ...]:
        """All leaves of these arguments, at most one more than LEAVES_MAX."""
        found: list[Leaf] = []
        for name, value in arguments.items():
            schema = self._properties.get(name)
            known = isinstance(schema, dict) or schema is True or not self._properties
            root = Leaf(
                path=name,
                argument=name,
                value=value,
                kind=self._kinds.get(name, ANY),
                schema=schema if isinstance(schema, dict) else {},
                is_payload=name in self._payload,
                is_required=name in self._required,
                is_known=known,
            )
            for leaf in self._cut(root, name, 0):
                found.append(leaf)
                if len(found) > LEAVES_MAX:
                    return tuple(found)
        return tuple(found)

    def _cut(self, leaf: Leaf, pattern: str, depth: int) -> Iterator[Leaf]:
        if depth > DEPTH_MAX or not isinstance(leaf.value, (dict, list, tuple)) or not leaf.value:
            yield leaf
        elif isinstance(leaf.value, dict):
            yield from self._cut_object(leaf, pattern, depth)
        else:
            items = leaf.schema.get("items")
            for place, value in enumerate(leaf.value):
                inner = self._inner(leaf, f"{leaf.path}[{place}]", f"{pattern}[]", value, items)
                yield from self._cut(inner, f"{pattern}[]", depth + 1)

    def _cut_object(self, leaf: Leaf, pattern: str, depth: int) -> Iterator[Leaf]:
        properties = leaf.schema.get("properties")
        for key, value in leaf.value.items():
            path, below = f"{leaf.path}.{key}", f"{pattern}.{key}"
            is_named = isinstance(properties, dict) and key in properties
            if not is_named:
                is_known = leaf.is_known and not isinstance(properties, dict)
                yield Leaf(path, leaf.argument, key, is_payload=leaf.is_payload, is_known=is_known, is_key=True)
            schema = properties.get(key) if is_named and isinstance(properties, dict) else None
            yield from self._cut(self._inner(leaf, path, below, value, schema), below, depth + 1)

    def _inner(self, outer: Leaf, path: str, pattern: str, value: Any, schema: Any) -> Leaf:
        name = path.rpartition(".")[2].partition("[")[0]
        return Leaf(
            path=path,
            argument=name,
            value=value,
            kind=self._kinds.get(pattern, outer.kind),
            schema=schema if isinstance(schema, dict) else {},
            is_payload=(outer.is_payload or pattern in self._payload) and pattern not in self._kinds,
            is_known=outer.is_known,
        )


def kind_of(leaf: Leaf) -> str:
    """The declared kind, or the one that the schema's format tells."""
    if leaf.kind and leaf.kind != "any":
        return leaf.kind
    told = leaf.schema.get("format")
    return _FORMATS.get(told, ANY) if isinstance(told, str) else ANY
