"""JSON Schema in GBNF, for engines that take nothing else.

Rule 1: every value that the schema admits can be written: compact or with one space behind commas and colons, declared
        properties in their order and before all others, integers as digits. Whatever the grammar admits is JSON.
Rule 2: what the schema says and a grammar cannot, or not within its size, is left out and named. The schema judges the
        answer afterwards in any case.
Rule 3: a format is kept to although drafts since 2019 call it a remark: date, time, date-time and uuid.
Rule 4: a schema that no value fits, and one whose grammar would be too large, is refused.
"""

import json
from collections.abc import Iterator
from math import ceil, floor, inf
from urllib.parse import quote

from remit.constraint.gbnf_json import NUMBER, UNSIGNED, value_part
from remit.constraint.gbnf_members import array_part, object_part
from remit.constraint.gbnf_numbers import LIMIT_DIGITS_MAX, integer_between
from remit.constraint.gbnf_parts import NOTHING, Literal, Named, Part, choice, completed, written
from remit.constraint.gbnf_rulebook import Rulebook, Widening
from remit.constraint.gbnf_texts import text_part
from remit.constraint.grammar.gbnf import GRAMMAR_CHARS_MAX
from remit.constraint.grammar.grammar_rules import ROOT
from remit.constraint.grammar.notation import check_grammar
from remit.constraint.grammar.plain_schema import GBNF_TOO_LARGE, joined
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, Record
from remit.core.schema.json_schema import CONFIG_SCHEMA_INVALID, compile_schema
from remit.core.schema.json_text import parse_json

GBNF_EMPTY = "GBNF_EMPTY"

_KINDS = ("object", "array", "string", "number", "boolean", "null")
# What a grammar cannot say, by the type of value it speaks of.
_UNSAID = {
    "object": ("dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
    "array": ("contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems"),
    "integer": ("multipleOf",),
    "number": ("multipleOf",),
}
_UNSAID_OF_ALL = ("not", "if", "$dynamicRef", "$recursiveRef")
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
# What a value that stands in a schema is checked against on the spot.
_CHECKED = frozenset(
    {
        *(*_LIMITS, "type", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
        *("required", "minProperties", "maxProperties"),
    }
)
_UNCHECKED = (
    *("format", "properties", "additionalProperties", "patternProperties", "propertyNames", "items", "prefixItems"),
    *(keyword for keywords in (*_UNSAID.values(), _UNSAID_OF_ALL) for keyword in keywords if keyword not in _CHECKED),
)


class SchemaGrammar(Record):
    """A grammar made of a schema, and where it admits more than the schema does."""

    text: str
    widened: tuple[Widening, ...] = ()


def gbnf_of(schema: JsonObject) -> str:
    """A GBNF grammar of the values that fit a schema. Comments at its head name what it does not keep to."""
    return schema_grammar(schema).text


def schema_grammar(schema: JsonObject) -> SchemaGrammar:
    """The same, with what it does not keep to as a list."""
    compile_schema(schema)
    try:
        root: JsonObject = parse_json(json.dumps(schema, allow_nan=False))
    except ValueError as error:
        raise RequestRejected(CONFIG_SCHEMA_INVALID, f"the schema is no JSON: {error}") from error
    book = Rulebook(root)
    book.rules[ROOT] = book.rule(root, "")
    while book.todo:
        # It counts as made from here on: it may lead back to itself.
        name, part, path = book.todo[0]
        made = _part(part, path, book)
        book.todo.popleft()
        book.rules[name] = made
    rules = completed(book.rules, ROOT)
    if not rules:
        raise RequestRejected(GBNF_EMPTY, "no value fits the schema, so there is no grammar of it; loosen it")
    text = _text(rules, book)
    check_grammar(text)
    return SchemaGrammar(text, tuple(book.widened))


def _text(rules: dict[str, Part], book: Rulebook) -> str:
    # The name of a property may hold anything; in a comment of one line it is percent-encoded.
    notes = [f"# not kept to: {each.keyword} at {quote(each.path) or '/'}" for each in book.widened]
    text = "\n".join([*notes, *(f"{name} ::= {written(part)}" for name, part in rules.items()), ""])
    if len(text) > GRAMMAR_CHARS_MAX:
        message = f"the grammar of the schema has {len(text)} characters, grammar_chars_max={GRAMMAR_CHARS_MAX}"
        raise RequestRejected(GBNF_TOO_LARGE, f"{message}; demand less", {"limit": GRAMMAR_CHARS_MAX})
    return text


def _part(schema: JsonObject, path: str, book: Rulebook) -> Part:
    """What reads the values of a schema that is no mere reference."""
    whole = book.plainer.plain(schema, book.noting(path))
    if not isinstance(whole, dict):
        return book.rule(whole, path)
    ways = whole.pop("anyOf", None)
    if ways is not None:
        # What came through a reference or allOf has no place of its own here.
        place = next((f"{path}/{keyword}" for keyword in ("anyOf", "oneOf") if keyword in schema), path)
        if whole:
            note = book.noting(path)
            ways = [joined(whole, book.plainer.plain(way, note), note) for way in ways]
        return choice(*(book.rule(way, f"{place}/{at}") for at, way in enumerate(ways)))
    if "enum" in whole:
        return choice(*map(value_part, _fitting(whole, path, book)))
    return choice(*(_of_kind(kind, whole, path, book) for kind in whole.get("type", _KINDS)))


def _fitting(schema: JsonObject, path: str, book: Rulebook) -> Iterator[object]:
    """The values of an enum that keep to what else the schema says of them by itself."""
    for keyword in _UNCHECKED:
        if keyword in schema:
            book.widen(path, keyword)
    checker = compile_schema({key: each for key, each in schema.items() if key in _CHECKED})
    return (value for value in schema["enum"] if checker.is_valid(value))


def _of_kind(kind: str, schema: JsonObject, path: str, book: Rulebook) -> Part:
    for keyword in (*_UNSAID.get(kind, ()), *_UNSAID_OF_ALL):
        if keyword in schema:
            book.widen(path, keyword)
    match kind:
        case "object":
            return object_part(schema, path, book)
        case "array":
            return array_part(schema, path, book)
        case "string":
            return text_part(schema, path, book)
        case "integer":
            return _integer(schema, path, book)
        case "number":
            return _number(schema, path, book)
        case "boolean":
            return choice(Literal("true"), Literal("false"))
        case _:
            return Literal("null")


def _integer(schema: JsonObject, path: str, book: Rulebook) -> Part:
    lows = [ceil(schema["minimum"])] if "minimum" in schema else []
    lows += [floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    highs = [floor(schema["maximum"])] if "maximum" in schema else []
    highs += [ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    least, most = max(lows, default=None), min(highs, default=None)
    if max((len(str(abs(limit))) for limit in (least, most) if limit is not None), default=0) > LIMIT_DIGITS_MAX:
        for keyword in _LIMITS:
            if keyword in schema:
                book.widen(path, keyword)
        least = most = None
    if least is not None and most is not None and most < least:
        return NOTHING
    return integer_between(least, most)


def _number(schema: JsonObject, path: str, book: Rulebook) -> Part:
    """Any number, or any without a sign; other limits are left to the schema."""
    least = max(schema.get("minimum", -inf), schema.get("exclusiveMinimum", -inf))
    for keyword in _LIMITS:
        if keyword in schema and (keyword, schema[keyword]) != ("minimum", 0):
            book.widen(path, keyword)
    return Named(UNSIGNED if least >= 0 else NUMBER)
