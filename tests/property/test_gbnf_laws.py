"""Laws of grammars made of schemas: what fits can be written, what can be written is JSON, and nothing more unless named."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from remit.constraint.gbnf_numbers import integer_between
from remit.constraint.gbnf_parts import written
from remit.constraint.gbnf_schema import GBNF_EMPTY, gbnf_of, schema_grammar
from remit.constraint.gbnf_texts import FORMATS
from remit.constraint.grammar.gbnf import read_gbnf
from remit.constraint.grammar.grammar_rules import ROOT, Chars, Rules, Symbol
from remit.constraint.grammar.lark import in_lark
from remit.constraint.grammar.matching import Fit, read_with
from remit.constraint.grammar.plain_schema import GBNF_TOO_LARGE
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject
from remit.core.schema.json_schema import CONFIG_SCHEMA_INVALID, compile_schema
from tests.depth import examples

# Together they take seconds.
pytestmark = pytest.mark.slow

# A schema, and how to draw values that probably fit it.
Shape = tuple[JsonObject, st.SearchStrategy[Any]]

letters = st.characters(exclude_categories=["Cs"])
texts = st.text(letters, max_size=6)
names = st.sampled_from(["a", "ab", "b", "na me", "é", 'q"', "z/~"])
# A whole number is written as digits where an integer is wanted, so what is drawn as a fraction is none.
fractions = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number % 1)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | fractions | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
# Expressions that are read, and others that are widened.
READ = (
    "^[a-c]+$",
    r"^\d{2,4}-\w*$",
    "^(ab|c)?d$",
    "x",
    "^[^a-y]$",
    r'^"\\.$',
    "^a|b$",
    r"^[\u00e9-\u00ff]{2}$",
    "^.{0,3}$",
)
UNREAD = ("^(?=a)a$", r"^(.)\1$", r"\bword", "(?i)a", r"^\p{L}$")


@st.composite
def integers(draw: st.DrawFn) -> Shape:
    low, high = sorted(draw(st.lists(st.integers(-1200, 12_000), min_size=2, max_size=2)))
    limits: JsonObject = draw(
        st.sampled_from(
            [{}, {"minimum": low}, {"maximum": high}, {"minimum": low, "maximum": high}, {"exclusiveMinimum": low}]
        )
    )
    return {"type": "integer", **limits}, st.integers(low - 2, high + 2) | st.integers()


@st.composite
def strings(draw: st.DrawFn) -> Shape:
    low, high = sorted(draw(st.lists(st.integers(0, 6), min_size=2, max_size=2)))
    limits: JsonObject = draw(
        st.sampled_from([{}, {"minLength": low}, {"maxLength": high}, {"minLength": low, "maxLength": high}])
    )
    if draw(st.booleans()):
        return {"type": "string", **limits}, texts
    pattern = draw(st.sampled_from([*READ, *UNREAD]))
    alphabet = st.text(st.sampled_from('abcdxz019-_"\\\n é√ÿ😀') | letters, max_size=6)
    fitting = st.from_regex(pattern) if pattern not in UNREAD else st.sampled_from(["a", "aa", "word", "A", "é"])
    return {"type": "string", "pattern": pattern, **limits}, fitting | alphabet


formats: st.SearchStrategy[Shape] = st.sampled_from(
    [
        ({"type": "string", "format": "date"}, st.dates().map(str)),
        ({"type": "string", "format": "uuid"}, st.uuids().map(str)),
        ({"type": "string", "format": "date-time"}, st.datetimes().map(lambda at: at.isoformat() + "+01:00")),
        ({"type": "string", "format": "time"}, st.times().map(lambda at: at.isoformat() + "Z")),
    ]
)
fixed: st.SearchStrategy[Shape] = st.lists(anything, min_size=1, max_size=3).map(
    lambda values: ({"enum": values}, st.sampled_from(values))
) | anything.map(lambda value: ({"const": value}, st.just(value)))
plain: st.SearchStrategy[Shape] = st.one_of(
    integers(),
    strings(),
    formats,
    fixed,
    st.sampled_from(
        [
            ({"type": "number"}, fractions | st.integers()),
            ({"type": "number", "minimum": 0}, fractions.map(abs)),
            ({"type": ["boolean", "null"]}, st.none() | st.booleans()),
            ({"type": ["string", "integer"], "maxLength": 2}, texts | st.integers()),
            ({}, anything),
            ({"maxLength": 3, "minimum": 3}, anything),
        ]
    ),
)


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Shape]) -> Shape:
    firsts, (rest, values) = draw(st.lists(inner, max_size=2)), draw(inner)
    schema: JsonObject = {"type": "array"}
    if firsts:
        schema["prefixItems"] = [first for first, _ in firsts]
    schema["items"] = draw(st.sampled_from([rest, True, False])) if firsts else rest
    low, high = sorted(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2)))
    schema |= draw(st.sampled_from([{}, {"minItems": low}, {"maxItems": high}, {"minItems": low, "maxItems": high}]))
    return schema, st.tuples(*(each for _, each in firsts), st.lists(values, max_size=3)).map(
        lambda parts: [*parts[:-1], *parts[-1]]
    ) | st.lists(values, max_size=2)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Shape]) -> Shape:
    # In one order everywhere, so that a value of one alternative is in the order of another.
    members = dict(sorted(draw(st.dictionaries(names, inner, max_size=3)).items()))
    rest, others = draw(inner)
    required = [name for name in members if draw(st.booleans())]
    schema: JsonObject = {
        "type": "object",
        "properties": {name: each for name, (each, _) in members.items()},
        "required": required,
    }
    closing: JsonObject = draw(st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": rest}]))
    more = (
        st.just({})
        if closing == {"additionalProperties": False}
        else st.dictionaries(texts.map("x{}".format), others, max_size=2)
    )
    declared = st.fixed_dictionaries(
        {name: values for name, (_, values) in members.items() if name in required},
        optional={name: values for name, (_, values) in members.items() if name not in required},
    )
    if not members:
        schema |= draw(st.sampled_from([{}, {"minProperties": 1}, {"maxProperties": 1}]))
    return schema | closing, st.tuples(declared, more).map(lambda parts: ordered(members, {**parts[1], **parts[0]}))


def ordered(members: Sequence[str] | dict[str, Any], value: JsonObject) -> JsonObject:
    """The declared properties in their order, then the others."""
    return {name: value[name] for name in [*members, *value] if name in value}


@st.composite
def combined(draw: st.DrawFn, inner: st.SearchStrategy[Shape]) -> Shape:
    (one, ones), (other, others) = draw(inner), draw(inner)
    match draw(st.sampled_from(["anyOf", "oneOf", "allOf", "$ref", "beside"])):
        case "allOf":
            assume(IN_PLACE.isdisjoint({*one, *other}))
            return {"allOf": [one, other]}, (ones | others).map(lambda value: reordered(one, value))
        case "$ref":
            # Definitions are found from the root, where `whole` puts them.
            return {"$ref": "#/$defs/leaf"}, texts | st.integers(0, 9)
        case "beside":
            assume(IN_PLACE.isdisjoint({*one, *other}))
            beside = {**one, "anyOf": [other, {"minLength": 1}, {"required": ["a"]}]}
            return beside, (ones | others).map(lambda value: reordered(one, value))
        case keyword:
            return {keyword: [one, other]}, ones | others


def reordered(schema: JsonObject, value: Any) -> Any:
    """What a schema declares first, in its order."""
    return ordered(schema.get("properties", {}), value) if isinstance(value, dict) else value


IN_PLACE = {"anyOf", "oneOf", "allOf", "$ref"}
LEAF: JsonObject = {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 0, "maximum": 9}]}
shapes: st.SearchStrategy[Shape] = st.recursive(
    plain, lambda inner: st.one_of(arrays(inner), objects(inner), combined(inner)), max_leaves=6
)


def whole(schema: JsonObject) -> JsonObject:
    return {**schema, "$defs": {"leaf": LEAF}}


def forms(value: Any) -> list[str]:
    return [json.dumps(value, separators=each, ensure_ascii=False) for each in ((",", ":"), (", ", ": "))]


def grammar_or_none(schema: JsonObject) -> str | None:
    """The grammar; none where no value fits, which a schema by chance may say."""
    try:
        return gbnf_of(schema)
    except RequestRejected as refused:
        if refused.code != GBNF_EMPTY:
            raise
        return None


def judged(schema: Any) -> Any:
    """The schema with patterns in place of formats, which are no more than remarks to the checker."""
    if isinstance(schema, list):
        return [judged(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: each if key in ("enum", "const") else judged(each) for key, each in schema.items()}
    return {"pattern": FORMATS[found["format"]], **found} if found.get("format") in FORMATS else found


def fits(schema: JsonObject, value: Any) -> bool:
    return compile_schema(judged(schema)).is_valid(value)


@settings(max_examples=examples(400))
@given(shapes, st.data())
def test_every_value_that_fits_can_be_written(shape: Shape, data: st.DataObject) -> None:
    schema = whole(shape[0])
    value = data.draw(shape[1])
    assume(fits(schema, value))
    grammar = gbnf_of(schema)
    for text in forms(value):
        assert read_with(grammar, text).fit is Fit.FITS, (text, grammar)


@settings(max_examples=60)
@given(shapes, st.data())
def test_llguidance_reads_the_same_grammar_alike(shape: Shape, data: st.DataObject) -> None:
    schema = whole(shape[0])
    value = data.draw(shape[1])
    assume(fits(schema, value))
    try:
        lark = in_lark(gbnf_of(schema))
    except RequestRejected as refused:
        # Grammars of many names have more rules than llguidance should be given.
        assume("levels_max" not in refused.message)
        raise
    for text in forms(value):
        assert read_with(lark, text).fit is Fit.FITS, text


class Derivation:
    """A text of a grammar by chance; the shortest ways are taken once it is long."""

    def __init__(self, rules: Rules, seed: int) -> None:
        self._rules = rules
        self._chance = random.Random(seed)
        self._costs: dict[str, int] = {}
        for _ in rules:
            found = {name: min(map(self._cost, ways)) + 1 for name, ways in rules.items()}
            if found == self._costs:
                break
            self._costs = found
        self.text = self._derived()

    def _cost(self, way: Sequence[Symbol]) -> int:
        return sum(1 if isinstance(each, Chars) else self._costs.get(each, 10**6) for each in way)

    def _derived(self) -> str:
        found: list[str] = []
        stack: list[Symbol] = [ROOT]
        steps = 0
        while stack:
            symbol = stack.pop()
            steps += 1
            if isinstance(symbol, Chars):
                found.append(self._letter(symbol))
                continue
            ways = self._rules[symbol]
            way = min(ways, key=self._cost) if steps > 400 else self._chance.choice(ways)
            stack += reversed(way)
        return "".join(found)

    def _letter(self, chars: Chars) -> str:
        first, last = self._chance.choice(chars.ranges)
        return chr(self._chance.choice([first, last, self._chance.randint(first, last)]))


def no_repeats(pairs: list[tuple[str, Any]]) -> JsonObject:
    if len({name for name, _ in pairs}) != len(pairs):
        raise LookupError
    return dict(pairs)


@settings(max_examples=examples(400))
@given(shapes, st.integers(0, 2**32))
def test_what_can_be_written_is_json_and_fits_unless_something_is_named(shape: Shape, seed: int) -> None:
    schema = whole(shape[0])
    assume(grammar_or_none(schema) is not None)
    made = schema_grammar(schema)
    text = Derivation(read_gbnf(made.text), seed).text
    json.loads(text)
    assert made.text.count("# not kept to: ") == len(made.widened)
    if made.widened:
        return
    try:
        value = json.loads(text, object_pairs_hook=no_repeats)
    except LookupError:
        # Names that the schema does not declare may repeat each other.
        return
    assume("inity" not in json.dumps(value))
    assert fits(schema, value), (text, made.text)


bounds = st.none() | st.integers(-1500, 1500) | st.integers(-(10**20), 10**20)


@settings(max_examples=examples(300))
@given(bounds, bounds, st.integers(-1600, 1600) | st.integers(-(10**20), 10**20))
def test_an_integer_is_written_exactly_when_it_lies_between(least: int | None, most: int | None, number: int) -> None:
    assume(least is None or most is None or least <= most)
    grammar = f"root ::= {written(integer_between(least, most))}"
    for candidate in {number, *(each for each in (least, most) if each is not None)}:
        lies_between = (least is None or least <= candidate) and (most is None or candidate <= most)
        assert (read_with(grammar, str(candidate)).fit is Fit.FITS) is lies_between
    assert read_with(grammar, f"0{abs(number)}").fit is not Fit.FITS


@settings(max_examples=examples(300))
@given(st.sampled_from(READ), st.text(st.sampled_from('abcdxz019-_"\\\n\t\x01\r\u2028éÿ😀') | letters, max_size=6))
def test_a_pattern_that_is_read_means_what_the_checker_means(pattern: str, text: str) -> None:
    schema: JsonObject = {"type": "string", "pattern": pattern}
    fits = read_with(gbnf_of(schema), json.dumps(text, ensure_ascii=False)).fit is Fit.FITS
    assert fits is compile_schema(schema).is_valid(text)


FAULTY: dict[str, Callable[[int], JsonObject]] = {
    "wide": lambda n: {"properties": {f"name {number}": {"minLength": number} for number in range(n)}},
    "deep": lambda n: {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{k}": {"items": {"$ref": f"#/$defs/d{k + 1}"}} for k in range(n)} | {f"d{n}": {}},
    },
    "joined": lambda n: {"allOf": [{"anyOf": [{"minLength": k}, {"maximum": k}]} for k in range(n)]},
    "crowded": lambda n: {"enum": list(range(n))},
}


@pytest.mark.parametrize("name", FAULTY)
@settings(max_examples=10)
@given(st.integers(1, 6000))
def test_a_schema_of_any_size_has_a_grammar_or_a_code(name: str, size: int) -> None:
    try:
        read_gbnf(gbnf_of(FAULTY[name](size)))
    except RequestRejected as refused:
        if refused.code not in {GBNF_TOO_LARGE, CONFIG_SCHEMA_INVALID} or "_max=" not in refused.message:
            raise
