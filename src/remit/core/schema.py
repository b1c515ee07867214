"""JSON Schema: what a value must look like, and in which places it does not.

Rule 1: only this file knows the library that checks; it is loaded with the first schema that is compiled.
Rule 2: nothing is ever fetched. A reference that leads out of the schema and its registry is refused.
Rule 3: a value that cannot be checked is invalid, never valid by accident.
Rule 4: schemas come from strangers too, so their size, their depth and the work they can cause are bounded.
"""

import re
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, Record

if TYPE_CHECKING:
    import jsonschema_rs

# The schemas true and false admit everything and nothing.
JsonSchema: TypeAlias = JsonObject | bool

CONFIG_SCHEMA_INVALID = "CONFIG_SCHEMA_INVALID"

# Schemas of tools take kilobytes, the largest published ones some hundred; compiling this much takes about 20 ms.
SCHEMA_BYTES_MAX = 262_144

# How many subschemas one value can meet when every reference is followed. A kilobyte of references that each name the
# next one twice would meet a million, and report as many violations in half a minute.
SCHEMA_VISITS_MAX = 20_000

# The library recurses on the machine's stack and would take the process down at some ten thousand levels.
VALUE_DEPTH_MAX = 256

# Look-around and back references may backtrack; this many steps take about a millisecond. Then the text does not match.
PATTERN_BACKTRACKS_MAX = 100_000

# Enough for a model to correct itself, little enough to stand in a turn.
VIOLATIONS_MAX = 10
MESSAGE_CHARS_MAX = 200


class Schema(Record, forbid_unknown_fields=True):
    """The seven keywords that every engine understands; richer schemas stay plain JSON objects."""

    type: str = ""
    description: str = ""
    properties: dict[str, "Schema"] = {}
    required: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    items: "Schema | None" = None
    # UNSET because null is a default like any other.
    default: Any = msgspec.UNSET

    def to_json(self) -> JsonObject:
        """The schema as a JSON object, without the keywords that say nothing."""
        encoded: JsonObject = msgspec.to_builtins(self)
        return encoded


def schema_from_json(data: JsonObject) -> Schema:
    """Read the subset. A keyword beyond it is refused, because dropping it would weaken the check."""
    try:
        return msgspec.convert(data, Schema)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RequestRejected(
            CONFIG_SCHEMA_INVALID,
            f"schema is outside the subset of seven keywords: {error}; pass it as a plain JSON Schema instead",
        ) from error


class Violation(Record):
    """One place where a value breaks its schema: a JSON pointer, the keyword it breaks, and a short text."""

    path: str
    keyword: str
    message: str


class Checker:
    """A compiled schema. It may be kept and used from any thread."""

    __slots__ = ("_validator",)

    def __init__(self, validator: "jsonschema_rs.Validator") -> None:
        self._validator = validator

    def is_valid(self, value: Any) -> bool:
        """Whether the value fits; stops at the first violation."""
        try:
            return not _is_deep(value, VALUE_DEPTH_MAX) and self._validator.is_valid(value)
        except ValueError:
            return False

    def violations(self, value: Any, limit: int = VIOLATIONS_MAX) -> tuple[Violation, ...]:
        """The first violations by path, keyword and message; none means that the value fits."""
        if _is_deep(value, VALUE_DEPTH_MAX):
            return (Violation("", "json", f"value nests deeper than value_depth_max={VALUE_DEPTH_MAX}"),)
        try:
            # Most values fit, and finding that out costs a fraction of collecting what does not.
            if self._validator.is_valid(value):
                return ()
            found = (_violation(error) for error in self._validator.iter_errors(value))
            return tuple(nsmallest(limit, found, key=_place))
        except ValueError as error:
            return (Violation("", "json", _shortened(f"not a JSON value: {error}")),)


def compile_schema(schema: JsonSchema, *, registry: Mapping[str, JsonObject] | None = None) -> Checker:
    """Compile a schema of draft 2020-12, or of the draft its $schema names.

    `registry` holds further schemas by their URI; no other reference out of the schema is followed.
    """
    import jsonschema_rs

    try:
        _bound(schema, registry or {})
        return Checker(
            jsonschema_rs.validator_for(
                schema,
                retriever=_refuse,
                registry=jsonschema_rs.Registry(list((registry or {}).items()), retriever=_refuse),
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=PATTERN_BACKTRACKS_MAX),
            )
        )
    except jsonschema_rs.ValidationError as error:
        raise _rejected(_pointer(error.instance_path), error.message) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise _rejected("", str(error)) from error


def _bound(schema: JsonSchema, registry: Mapping[str, JsonObject]) -> None:
    """Refuse a schema that is too large, or that is small and still more work than SCHEMA_VISITS_MAX allows."""
    size_bytes = len(msgspec.json.encode((schema, registry)))
    if size_bytes > SCHEMA_BYTES_MAX:
        reason = f"schema_bytes={size_bytes} exceeds schema_bytes_max={SCHEMA_BYTES_MAX}; shorten or split it"
        raise _rejected("", reason)
    if _visits(schema, _References(schema, registry)) > SCHEMA_VISITS_MAX:
        reason = f"following its references takes more than schema_visits_max={SCHEMA_VISITS_MAX} visits for one value"
        raise _rejected("", f"{reason}; refer to each definition from fewer places")


def _visits(root: Any, references: "_References") -> int:
    """How many subschemas one value can meet below this one.

    Where a schema contains itself the count stops: how often that one is met is up to the value, and its depth is
    bounded. Walked without recursion, so that a long chain of references cannot exhaust the stack.
    """
    counts: dict[int, int] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        below = references.below(node)
        if id(node) in counts:
            counts[id(node)] = min(SCHEMA_VISITS_MAX + 1, 1 + sum(counts[id(child)] for child in below))
            stack.pop()
        else:
            counts[id(node)] = 1
            stack.extend(child for child in below if id(child) not in counts)
    return counts[id(root)]


class _References:
    """Where the references of a schema and its registry lead: resources by URI, anchors by URI and name."""

    def __init__(self, schema: Any, registry: Mapping[str, JsonObject]) -> None:
        self._origins: dict[int, tuple[str, str]] = {}
        self._named: dict[str, list[Any]] = {}
        for uri, resource in (("", schema), *registry.items()):
            self._name(uri.rstrip("#"), resource)
            self._index(uri, resource)

    def below(self, node: Any) -> list[Any]:
        """The objects and arrays inside a node, and those it refers to."""
        below = list(_children(node))
        if isinstance(node, dict):
            for keyword in _KEYWORDS:
                reference = node.get(keyword)
                if isinstance(reference, str):
                    below += self._targets(*self._origins[id(node)], keyword, reference)
        return [child for child in below if isinstance(child, _CONTAINERS)]

    def _index(self, base: str, resource: Any) -> None:
        stack = [(base, "", resource)]
        while stack:
            base, pointer, node = stack.pop()
            if isinstance(node, dict):
                base = self._name_itself(base, node)
                self._origins[id(node)] = base, pointer
            stack.extend((base, pointer + _pointer((token,)), child) for token, child in _members(node))

    def _name_itself(self, base: str, node: JsonObject) -> str:
        """Note the names a schema gives itself; the URI against which its references are read."""
        identity, anchor, dynamic = node.get("$id"), node.get("$anchor"), node.get("$dynamicAnchor")
        if isinstance(identity, str):
            uri = _joined(base, identity)
            self._name(uri.rstrip("#"), node)
            base = uri.partition("#")[0]
        if isinstance(anchor, str):
            self._name(f"{base}#{anchor}", node)
        # A dynamic reference may lead to any schema that bears its name, in whatever resource; "*" stands for all.
        if isinstance(dynamic, str):
            self._name(f"{base}#{dynamic}", node)
            self._name(f"*#{dynamic}", node)
        elif node.get("$recursiveAnchor") is True:
            self._name("*#", node)
        return base

    def _name(self, name: str, node: Any) -> None:
        self._named.setdefault(name, []).append(node)

    def _targets(self, base: str, pointer: str, keyword: str, reference: str) -> list[Any]:
        from urllib.parse import unquote

        uri, _, fragment = _joined(base, reference).partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            found = self._named.get(f"{uri}#{fragment}", [])
        else:
            found = self._named.get(uri, [])
            for token in fragment.split("/")[1:]:
                name = token.replace("~1", "/").replace("~0", "~")
                found = [child for node in found for key, child in _members(node) if str(key) == name]
        if not found and not _META_SCHEMA.fullmatch(uri):
            reason = f"{keyword} {reference!r} leads to nothing here, and nothing is fetched"
            raise _rejected(f"{pointer}/{keyword}", f"{reason}; put its target under $defs or into the registry")
        return found + self._named.get(f"*#{fragment}", []) if keyword in _DYNAMIC else found


# The library brings these along.
_META_SCHEMA = re.compile(
    r"https?://json-schema\.org/(draft/(2019-09|2020-12)/(schema|meta/[a-z-]+)|draft-0[467]/schema)"
)
_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
_CONTAINERS = (dict, list, tuple)


def _joined(base: str, reference: str) -> str:
    from urllib.parse import urljoin

    # Joined by hand where possible, because urljoin knows no fragments of a URN.
    return base + reference if reference.startswith("#") else urljoin(base, reference)


def _members(node: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(node, dict):
        return node.items()
    return enumerate(node) if isinstance(node, _CONTAINERS) else ()


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, _CONTAINERS) else ()


def _is_deep(value: Any, levels_left: int) -> bool:
    if levels_left == 0:
        return isinstance(value, _CONTAINERS)
    # Most members are no containers; sorting those out first spares a call each.
    nested = [child for child in _children(value) if isinstance(child, _CONTAINERS)]
    return bool(nested) and any(_is_deep(child, levels_left - 1) for child in nested)


def _refuse(uri: str) -> JsonObject:
    raise LookupError(f"{uri} is not in the registry, and nothing is fetched")


def _violation(error: "jsonschema_rs.ValidationError") -> Violation:
    return Violation(_pointer(error.instance_path), error.kind.name, _shortened(error.message))


def _place(violation: Violation) -> tuple[str, str, str]:
    return violation.path, violation.keyword, violation.message


def _pointer(path: Iterable[str | int]) -> str:
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def _shortened(message: str) -> str:
    """Cut from the middle: messages begin with the value, which may be long, and end with what is wrong."""
    if len(message) <= MESSAGE_CHARS_MAX:
        return message
    half = MESSAGE_CHARS_MAX // 2
    return f"{message[: half - 3]} ... {message[-(half - 2) :]}"


def _rejected(path: str, reason: str) -> RequestRejected:
    return RequestRejected(CONFIG_SCHEMA_INVALID, f"schema at {path or '/'}: {_shortened(reason)}", {"path": path})
