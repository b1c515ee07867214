"""The work that a JSON Schema can cause, counted before it is done.

A kilobyte of schema can name the next definition twice, twenty times over, and so be met a million times by one value.
A recursive schema with alternatives does the same for a deep value. Checking stays fast where the checker remembers
what it has seen; listing violations does not remember, and each alternative that fails multiplies what is below it.

Rule 1: a reference that leads to nothing at hand is refused; nothing is ever fetched.
Rule 2: counts are upper bounds. What is not understood counts as met.
Rule 3: counting itself is bounded: a schema is met once per value, however many ways lead there.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from remit.core.record import JsonObject
from remit.core.regex import regex

CONTAINERS = (dict, list, tuple)

# Resources share the name of a dynamic anchor on purpose, some dozens at the most. A reference counts them all.
NAMESAKES_MAX = 64

# Pairs of a schema and a part of a value that are looked at for one count; so many take half a second.
PAIRS_MAX = 200_000


class ReferenceLost(ValueError):
    """A reference leads to nothing at hand; `path` is the JSON pointer of the reference itself."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class References:
    """Where the references of a schema and its registry lead: resources by URI, anchors by URI and name."""

    def __init__(self, schema: Any, registry: Mapping[str, JsonObject], *, namesakes_max: int = NAMESAKES_MAX) -> None:
        self._namesakes_max = namesakes_max
        self._origins: dict[int, tuple[str, str]] = {}
        self._named: dict[str, list[Any]] = {}
        # Definitions are met through references only. At the root they cannot be mistaken for properties of that name.
        self._definitions: set[int] = set()
        # Where each node leads that refers to something: every value that meets it asks anew.
        self._led_to: dict[int, list[Any]] = {}
        for uri, resource in (("", schema), *registry.items()):
            self._name(uri.rstrip("#"), resource)
            self._index(uri, resource)
            if isinstance(resource, dict):
                self._definitions |= {id(resource[key]) for key in ("$defs", "definitions") if key in resource}

    def targets(self, node: JsonObject) -> list[Any]:
        """The schemas a node refers to."""
        known = self._led_to.get(id(node))
        if known is not None:
            return known
        found: list[Any] = []
        for keyword in _REFERRING:
            reference = node.get(keyword)
            if isinstance(reference, str):
                found += self._targets(*self._origins[id(node)], keyword, reference)
        self._led_to[id(node)] = found
        return found

    def reached(self, root: Any) -> set[int]:
        """The identities of all schemas that a value may meet, by whatever way.

        A dynamic reference leads to schemas that were entered before, so its namesakes elsewhere are not reached by it.
        A reference that leads to nothing is reported by the code that follows it.
        """
        found: set[int] = set()
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if id(node) in found or not isinstance(node, CONTAINERS):
                continue
            found.add(id(node))
            waiting += children(node)
            if isinstance(node, dict):
                waiting += self._own_targets(node)
        return found

    def _own_targets(self, node: JsonObject) -> Iterator[Any]:
        base, _ = self._origins[id(node)]
        for keyword in _REFERRING:
            reference = node.get(keyword)
            if isinstance(reference, str):
                yield from self._named_by(base, reference)[0]

    def below(self, node: Any) -> list[Any]:
        """The objects and arrays inside a node, and those it refers to."""
        below = [child for child in children(node) if id(child) not in self._definitions]
        if isinstance(node, dict):
            below += self.targets(node)
        return [child for child in below if isinstance(child, CONTAINERS)]

    def _index(self, base: str, resource: Any) -> None:
        stack = [(base, "", resource)]
        while stack:
            base, path, node = stack.pop()
            if isinstance(node, dict):
                base = self._name_itself(base, node)
                self._origins[id(node)] = base, path
            stack.extend((base, path + pointer((token,)), child) for token, child in _members(node))

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
        namesakes = self._named.setdefault(name, [])
        if len(namesakes) == self._namesakes_max:
            raise ValueError(
                f"more than namesakes_max={self._namesakes_max} schemas are called {name[:80]!r}; rename some"
            )
        namesakes.append(node)

    def _targets(self, base: str, path: str, keyword: str, reference: str) -> list[Any]:
        found, uri, fragment = self._named_by(base, reference)
        if not found and not _META_SCHEMA.fullmatch(uri) and _DATA.isdisjoint(path.split("/")):
            message = f"{keyword} {reference[:80]!r} leads to nothing here, and nothing is fetched"
            way_out = "name draft 4 to 2020-12" if keyword == "$schema" else "put its target under $defs"
            raise ReferenceLost(f"{path}/{keyword}", f"{message}; {way_out}, or use the registry")
        return found + self._named.get(f"*#{fragment}", []) if keyword in _DYNAMIC else found

    def _named_by(self, base: str, reference: str) -> tuple[list[Any], str, str]:
        """What a reference names by itself, its URI, and the fragment."""
        from urllib.parse import unquote

        uri, _, fragment = _joined(base, reference).partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._named.get(f"{uri}#{fragment}", []), uri, fragment
        found = self._named.get(uri, [])
        for token in fragment.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            found = [child for node in found for child in _member(node, name)]
        return found, uri, fragment


def used_resources(schema: Any, registry: Mapping[str, Any]) -> dict[str, Any]:
    """The resources that references of the schema lead into, directly or through one another; the rest says nothing."""
    if not registry:
        return {}
    reached = References(schema, registry, namesakes_max=sys.maxsize).reached(schema)
    return {
        uri: resource
        for uri, resource in registry.items()
        # True and false are schemas that nothing can be wrong with.
        if isinstance(resource, bool) or not reached.isdisjoint(_identities(resource))
    }


def _identities(resource: Any) -> Iterator[int]:
    waiting = [resource]
    while waiting:
        node = waiting.pop()
        if isinstance(node, CONTAINERS):
            yield id(node)
            waiting += children(node)


def _one(_: Any) -> int:
    return 1


def visits_of(root: Any, references: References, most: int, weight: Callable[[Any], int] = _one) -> int:
    """How many subschemas one value can meet below this one, or what they weigh together; or one more than `most`.

    Where a schema contains itself the count stops: how often that one is met is up to the value. Walked without
    recursion, so that a long chain of references cannot exhaust the stack.
    """
    counts: dict[int, int] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        below = references.below(node)
        if id(node) in counts:
            counts[id(node)] = min(most + 1, weight(node) + sum(counts[id(child)] for child in below))
            stack.pop()
        else:
            counts[id(node)] = weight(node)
            stack.extend(child for child in below if id(child) not in counts)
    return counts[id(root)]


def parts_of(schema: Any, references: References) -> int:
    """How many parts a schema has once its references are followed, each of which meets a part of a value at most once.

    0 where a part contains itself: how often that one is met is up to the value. Walked without recursion.
    """
    counts: dict[int, int] = {}
    # The nodes above the one that is looked at.
    above: set[int] = set()
    stack = [schema]
    while stack:
        node = stack[-1]
        below = references.below(node)
        if id(node) in above:
            above.remove(id(node))
            plain = sum(not isinstance(child, CONTAINERS) for child in children(node))
            counts[id(node)] = 1 + plain + sum(counts[id(child)] for child in below)
        if id(node) in counts:
            stack.pop()
            continue
        above.add(id(node))
        if not above.isdisjoint(map(id, below)):
            return 0
        stack.extend(child for child in below if id(child) not in counts)
    return counts[id(schema)]


class ViolationListing:
    """The work of listing the violations of one value: how many schemas its parts meet, by every way there is."""

    def __init__(
        self, references: References, most: int, cost: Callable[[JsonObject, Any], int] = lambda schema, value: 0
    ) -> None:
        self._references = references
        self._most = most
        # What a schema costs a value beside being met.
        self._cost = cost
        self._counts: dict[tuple[int, int], int] = {}

    def visits(self, schema: Any, value: Any, levels_left: int) -> int:
        """The count, or one more than `most`."""
        if not isinstance(schema, dict):
            return 1
        key = (id(schema), id(value))
        if key not in self._counts:
            if levels_left == 0 or len(self._counts) > min(self._most, PAIRS_MAX):
                return self._most + 1
            # A schema that meets the same value again through itself is met once.
            self._counts[key] = 1
            pairs = chain(_pairs(schema, value), ((target, value) for target in self._references.targets(schema)))
            total = 1 + self._cost(schema, value)
            for subschema, part in pairs:
                total += self.visits(subschema, part, levels_left - 1)
                if total > self._most:
                    break
            self._counts[key] = min(total, self._most + 1)
        return self._counts[key]


def _pairs(schema: JsonObject, value: Any) -> Iterator[tuple[Any, Any]]:
    """Which subschema meets which part of the value; a keyword that is not known meets every part."""
    for keyword, subschema in schema.items():
        if keyword in _IN_PLACE:
            yield from ((each, value) for each in _listed(keyword, subschema))
        elif keyword == "propertyNames":
            yield from ((subschema, name) for name in (value if isinstance(value, dict) else ()))
        elif keyword == "properties" and isinstance(subschema, dict) and isinstance(value, dict):
            yield from ((each, value[name]) for name, each in subschema.items() if name in value)
        elif isinstance(subschema, _SUBSCHEMAS) and keyword not in _APART:
            yield from ((each, part) for part in children(value) for each in _listed(keyword, subschema))


def _listed(keyword: str, subschema: Any) -> Iterable[Any]:
    return children(subschema) if keyword in _MAPS or isinstance(subschema, list) else (subschema,)


# The library brings these along.
_META_SCHEMA = regex(r"https?://json-schema\.org/(draft/(2019-09|2020-12)/(schema|meta/[a-z-]+)|draft-0[467]/schema)")
_REFERRING = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")
# True and false are schemas too, and false objects to every part it meets.
_SUBSCHEMAS = (dict, list, bool)
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
# What stands under these is data and may look like a reference.
_DATA = frozenset({"const", "enum", "default", "examples"})
_APART = _DATA | {"$defs", "definitions", "properties", "required", "type"}
_MAPS = frozenset({"dependentSchemas", "dependencies", "patternProperties"})
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})


def pointer(path: Iterable[str | int]) -> str:
    """A path as a JSON pointer."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def children(node: Any) -> Collection[Any]:
    """The members of an object or array; nothing of anything else."""
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, CONTAINERS) else ()


def is_deeper(value: Any, levels: int) -> bool:
    """Whether a value nests deeper than so many levels."""
    if levels == 0:
        return isinstance(value, CONTAINERS)
    # Most members are no containers; sorting those out first spares a call each.
    nested = [child for child in children(value) if isinstance(child, CONTAINERS)]
    return bool(nested) and any(is_deeper(child, levels - 1) for child in nested)


def _members(node: Any) -> Iterable[tuple[str | int, Any]]:
    return node.items() if isinstance(node, dict) else enumerate(children(node))


def _member(node: Any, name: str) -> Iterable[Any]:
    if isinstance(node, dict):
        return (node[name],) if name in node else ()
    return [child for index, child in enumerate(children(node)) if str(index) == name]


def _joined(base: str, reference: str) -> str:
    from urllib.parse import urljoin

    # Joined by hand where possible, because urljoin knows no fragments of a URN.
    return base + reference if reference.startswith("#") else urljoin(base, reference)
