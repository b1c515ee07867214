"""Made-up calls: arguments that a tool's schema takes, with values that a request can name.

Rule 1: every value fits its schema as far as one was found; the schema's own examples come first. Where none fits, that is told.
Rule 2: of each value there are two: the one that a request names, and another, where the schema has room for two.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import canonical_json
from remit.core.record import JsonObject
from remit.core.schema.json_schema import compile_schema
from remit.core.schema.json_text import parse_json
from remit.provenance.declarations import Declaration
from remit.provenance.kinds import MOMENTS, NUMBERS
from remit.provenance.words.vocabulary import name_words

# What people nest.
DEPTH_MAX = 6
_NUMBERS = (17, 23, 1, 2, 0, 5, 7, 10, 50, 100, 500, 1_000, 10_000)
_DAYS = ("2030-01-15", "2030-02-20")
# Two values of each kind: the one that the request names, and another.
_OF_KIND: dict[str, tuple[object, ...]] = {
    "email": ("ann@corp.example", "eve@other.example"),
    "url": ("https://a.example/1", "https://b.example/2"),
    "path": ("docs/a-101.txt", "docs/b-202.txt"),
    "iban": ("DE89370400440532013000", "DE02500105170137075030"),
    "time": ("10:30", "16:45"),
    "datetime": ("2030-01-15T10:30:00Z", "2030-02-20T16:45:00Z"),
}
_OF_FORMAT: dict[str, tuple[object, ...]] = {
    "email": _OF_KIND["email"],
    "uri": _OF_KIND["url"],
    "date": _DAYS,
    "date-time": _OF_KIND["datetime"],
    "time": ("10:30:00Z", "16:45:00Z"),
    "uuid": ("0b4f5c1e-6d7a-4e0b-9c3d-2f1a8b7c6d5e", "5e6d7c8b-1a2f-4d3c-8b0e-7a6d1e5c4f0b"),
}
_NAMES = ("alpha-101", "omega-202", "A-101", "B-202", "alpha", "omega", "AB", "CD", "a", "b", "4711", "5822")
_TEXTS = ("All is well here.", "Well.", "ok")
_GUESSED = ("email", "url", "iban", "path", "date")


class NothingFits(Exception):
    """No value was found that the schema of an argument takes; its text is the path of the argument."""


def arguments_of(declaration: Declaration, number: int, *, is_whole: bool = False) -> JsonObject:
    """Made-up arguments: all that a call must have, and those that a kind is declared for; or all there are.

    Raises NothingFits where the schema takes none of the values that are known here; of a whole call each is then shown as any.
    """
    found = declaration.parameters.get("properties")
    properties: JsonObject = found if isinstance(found, dict) else {}
    declared = {
        path.partition(".")[0].partition("[")[0]
        for path in (*dict(declaration.control_args), *declaration.payload_args)
    }
    required = declaration.parameters.get("required") or ()
    wanted = [name for name in properties if is_whole or name in required or name in declared]
    made = _Maker(declaration, number, is_lenient=is_whole)
    return {name: made.value(properties[name], name, "", 0) for name in wanted}


def guessed_kind(name: str, schema: JsonObject) -> str:
    """The kind that the name and the type of an argument tell."""
    words = name_words(name)
    if words[-1:] in (("id",), ("ids",)) and len(words) > 1:
        return f"id:{words[-2]}"
    for word in words:
        if word.removesuffix("s") in _GUESSED:
            return word.removesuffix("s")
    return "number" if schema.get("type") in ("number", "integer") else ""


class _Maker:
    def __init__(self, declaration: Declaration, number: int, *, is_lenient: bool) -> None:
        self._kinds = dict(declaration.control_args)
        self._payload = frozenset(declaration.payload_args)
        self._number = number
        self._is_lenient = is_lenient

    def value(self, schema: Any, path: str, outer: str, depth: int) -> Any:
        schema = _one_way(schema)
        kind = self._kinds.get(path, self._kinds.get(path.removesuffix("[]"), outer))
        if depth < DEPTH_MAX and _type_of(schema) == "array" and "enum" not in schema:
            return self._items(schema, path, kind, depth)
        inner = schema.get("properties")
        if depth < DEPTH_MAX and isinstance(inner, dict):
            required = schema.get("required") or ()
            return {
                key: self.value(one, f"{path}.{key}", kind, depth + 1)
                for key, one in inner.items()
                if key in required or not _is_endless(one)
            }
        if _type_of(schema) == "object":
            return self._fitting(schema, path, [{}])
        if _type_of(schema) == "boolean" and "enum" not in schema:
            # A switch that was not asked for is off.
            return schema.get("const", False)
        return self._fitting(schema, path, [*_candidates(schema, path, kind, is_payload=path in self._payload)])

    def _items(self, schema: JsonObject, path: str, kind: str, depth: int) -> list[Any]:
        first = [self.value(one, f"{path}[]", kind, depth + 1) for one in schema.get("prefixItems") or ()]
        least = schema.get("minItems", 0)
        missing = max(1 if not first else 0, (least if isinstance(least, int) else 0) - len(first))
        more = self.value(schema.get("items"), f"{path}[]", kind, depth + 1) if missing else None
        made: list[Any] = self._fitting(schema, path, [[*first, *[more] * min(missing, len(_NAMES))]])
        return made

    def _fitting(self, schema: JsonObject, path: str, candidates: list[Any]) -> Any:
        fits = _checker_of(canonical_json(schema))
        fitting = [one for one in candidates if fits(one)]
        if not fitting and not self._is_lenient:
            raise NothingFits(path)
        found = fitting or candidates
        return found[self._number % min(2, len(found))]


def _one_way(schema: Any) -> JsonObject:
    """The schema, or the first way of one that leaves a choice."""
    schema = {} if not isinstance(schema, dict) else schema
    found: JsonObject = schema
    for key in ("anyOf", "oneOf"):
        ways = [way for way in schema.get(key) or () if isinstance(way, dict) and way.get("type") != "null"]
        if ways and "type" not in schema:
            found = {**{name: one for name, one in schema.items() if name != key}, **ways[0]}
            break
    return found


def _type_of(schema: JsonObject) -> str:
    said = schema.get("type")
    types = [said] if isinstance(said, str) else [one for one in said or () if one != "null"]
    return str(types[0]) if types else ""


def _is_endless(schema: Any) -> bool:
    """Whether a schema refers to one that it stands in."""
    return '"$ref"' in canonical_json(schema).decode()


def _candidates(schema: JsonObject, path: str, kind: str, *, is_payload: bool) -> Iterator[Any]:
    """Values that could fit, the likeliest first."""
    if "const" in schema:
        yield schema["const"]
    examples, choices = schema.get("examples"), schema.get("enum")
    yield from examples if isinstance(examples, (list, tuple)) else ()
    yield from choices if isinstance(choices, (list, tuple)) else ()
    if is_payload:
        yield from map(_sized(schema), _TEXTS)
    numbers = [*_bounds(schema), *_NUMBERS] if _has_bounds(schema) else [*_NUMBERS]
    texts = [*_of_kind(kind, path, schema), *_OF_FORMAT.get(str(schema.get("format")), ()), *_NAMES]
    if _type_of(schema) in ("number", "integer"):
        yield from numbers
    yield from texts
    yield from map(_sized(schema), map(str, texts))


def _of_kind(kind: str, path: str, schema: JsonObject) -> tuple[object, ...]:
    base, _, space = kind.partition(":")
    shape = space if base == "who" else base or guessed_kind(path.rpartition(".")[2].removesuffix("[]"), schema)
    if shape in NUMBERS:
        return (*_NUMBERS, *map(str, _NUMBERS))
    return _OF_KIND.get(shape, _DAYS if shape in MOMENTS else ())


def _has_bounds(schema: JsonObject) -> bool:
    return any(key in schema for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))


def _bounds(schema: JsonObject) -> Iterator[Any]:
    """Numbers at the bounds of a schema, the plain ones before them where they fit."""
    yield from _NUMBERS
    step = schema.get("multipleOf", 1)
    for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        if isinstance(bound := schema.get(key), (int, float)):
            yield from (bound, bound + step, bound - step)
    yield from (step, 2 * step) if "multipleOf" in schema else ()


def _sized(schema: JsonObject) -> Callable[[str], str]:
    """Makes a text as long as a schema wants it."""
    least, most = schema.get("minLength"), schema.get("maxLength")

    def sized(text: str) -> str:
        longer = text.ljust(min(least, 1_000), "7") if isinstance(least, int) else text
        return longer[:most] if isinstance(most, int) else longer

    return sized


@lru_cache(maxsize=256)
def _checker_of(schema: bytes) -> Callable[[Any], bool]:
    """Whether a value fits a schema; where that cannot be decided, it does."""
    try:
        return compile_schema(parse_json(schema.decode())).is_valid
    except RequestRejected:
        return lambda value: True
