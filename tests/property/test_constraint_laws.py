"""Laws of the constraint stack, for any text: nothing valid is changed, nothing is made up, nothing hangs."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.constraint.reading.enums import the_one_meant
from remit.constraint.reading.lenient_json import same_json
from remit.constraint.reading.repair_log import RepairCode
from remit.constraint.stack import Constrained, Demand, constrain
from remit.constraint.strict_mode import StrictMode
from remit.core.record import JsonObject
from remit.core.schema.json_schema import compile_schema
from tests.depth import examples

# Together they take seconds.
pytestmark = pytest.mark.slow

ANYTHING = Demand()
# A megabyte takes up to two seconds on a machine that does nothing else.
SECONDS_MAX = 20
MEGABYTE = 1_000_000

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
containers = st.lists(values, max_size=4) | st.dictionaries(texts, values, min_size=1, max_size=4)
# Pieces of which broken JSON consists, so that chance finds the odd corners of the reader.
PIECES = (
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "'",
        "\u201c",
        "\u201d",
        '"""',
        "`",
        "```json\n",
        "```",
        "\n",
        " ",
        "\\",
        "\\u12",
    ),
    *(
        "//",
        "/*",
        "*/",
        "#",
        "...",
        "1",
        "-",
        "0x",
        "1.5e3",
        "007",
        "NaN",
        "true",
        "None",
        "tru",
        "word",
        "a b",
        "=",
        ";",
    ),
    *('"key":', "key:", '{"a": 1}', "[1]", "<think>", "</think>", "\ufeff", "\u00a0", "\x00", '{\\"', "\ud800"),
)
anything = st.lists(st.sampled_from(PIECES) | texts, max_size=20).map("".join)


def shown(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_valid_json_is_never_changed(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    result = constrain(json.dumps(value, indent=indent, ensure_ascii=ascii_only), ANYTHING)
    assert (result.ok, result.repairs, result.violations) == (True, (), ())
    assert shown(result.value) == shown(value)


@settings(max_examples=examples(500))
@given(anything, st.booleans(), st.booleans())
def test_any_text_has_a_result_and_a_value_that_is_json(text: str, repair: bool, strict: bool) -> None:
    result = constrain(text, ANYTHING, repair=repair, strict=strict)
    json.dumps(result.value, allow_nan=False)
    assert result.ok is (not result.violations)
    if result.ok:
        again = constrain(json.dumps(result.value), ANYTHING)
        assert again.ok
        assert same_json(again.value, result.value)
        assert not again.repairs
    elif strict:
        assert result.value is None


@settings(max_examples=examples(300))
@given(anything)
def test_what_is_ok_fits_its_schema(text: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"enum": ["Word", "a_b"]}}, "minProperties": 1}
    result = constrain(text, Demand(schema))
    if result.ok:
        assert compile_schema(schema).is_valid(result.value)


def in_python(value: Any) -> str:
    return repr(value)


def fenced(value: Any) -> str:
    return f"```json\n{json.dumps(value, indent=2)}\n```"


def in_words(value: Any) -> str:
    return f"Here it is: {json.dumps(value)} I hope that helps."


def with_commas_behind(value: Any) -> str:
    return json.dumps(value, indent=0).replace("\n}", ",\n}").replace("\n]", ",\n]")


def without_commas(value: Any) -> str:
    return json.dumps(value, indent=1).replace(",\n", "\n")


def begun_twice(value: Any) -> str:
    text = json.dumps(value, indent=2)
    return f"```json\n{text[:-1]}\n```\nAgain, and whole:\n```json\n{text}\n```\nDone."


def reasoned(value: Any) -> str:
    return f"<think>maybe {{}}</think>{json.dumps(value)}"


def twice_encoded(value: Any) -> str:
    return json.dumps(json.dumps(value))


@settings(max_examples=examples(300))
@given(
    containers,
    st.sampled_from(
        [in_python, fenced, in_words, with_commas_behind, reasoned, twice_encoded, without_commas, begun_twice]
    ),
)
def test_a_damaged_value_comes_back_as_it_was_or_not_at_all(value: Any, damage: Callable[[Any], str]) -> None:
    result = constrain(damage(value), Demand({"type": ["object", "array"]}))
    if result.ok:
        assert shown(result.value) == shown(value)
    elif damage in (fenced, reasoned, twice_encoded, begun_twice):
        pytest.fail(f"{damage(value)!r} was refused: {result.violations}")


@settings(max_examples=examples(300))
@given(containers, containers, st.data())
def test_of_a_fence_that_was_cut_and_a_whole_one_nothing_but_the_whole_one_is_taken(
    begun: Any, whole: Any, data: st.DataObject
) -> None:
    text = json.dumps(begun)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    result = constrain(f"```json\n{cut}\n```\nOnce more:\n```\n{json.dumps(whole)}\n```", ANYTHING)
    assert not result.ok or shown(result.value) == shown(whole)


def is_begun_by(part: Any, whole: Any) -> bool:
    """Whether a part is the beginning of a whole: nothing in it that is not there, in the same order."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_begun_by(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and all(is_begun_by(*pair) for pair in zip(part, whole, strict=False))
    return same_json(part, whole)


@settings(max_examples=examples(300))
@given(containers, st.data())
def test_a_text_that_was_cut_yields_its_beginning_and_nothing_else(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text)))]
    result = constrain(cut, ANYTHING)
    if result.value is not None:
        assert is_begun_by(result.value, value)
    if result.ok and cut != text:
        assert any(repair.code is RepairCode.CLOSER_ADDED for repair in result.repairs)


def repeated(piece: str) -> str:
    return piece * (MEGABYTE // len(piece))


HEAVY = {
    "brackets": repeated("["),
    "braces": repeated("{"),
    "nested": repeated('{"a":['),
    "cut list": "[" + repeated("1,"),
    "unquoted keys": "{" + repeated("a:1 "),
    "quotes": '{"a": ' + repeated('"'),
    "inner quotes": '["' + repeated(' "x", y') + '"]',
    "possible ends": '{"a": "' + repeated('","'),
    "possible keys": '["a' + repeated('", "k'),
    "apostrophes": "['" + repeated("a's ") + "']",
    "control characters": '["' + repeated("a\n") + '"',
    "backslashes": '{"a": "' + repeated("\\"),
    "comments": "{" + repeated("/*x*/"),
    "open comment": "{/*" + repeated("*"),
    "commas": "{" + repeated(","),
    "digits": "[" + repeated("1"),
    "letters": "[" + repeated("a"),
    "words": "[" + ",".join(["abc"] * 200_000) + "]",
    "prose": repeated("[note] "),
    "fences": repeated("```json\n"),
    "reasoning": repeated("<think>"),
    "objects": repeated('{"a":1}\n'),
    "repeated keys": "{" + repeated("'a':[1],") + "}",
    "spaces": '{"a":' + repeated(" ") + "x",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_a_megabyte_of_anything_is_answered_within_seconds(name: str) -> None:
    began = time.process_time()
    result = constrain(HEAVY[name], ANYTHING)
    assert time.process_time() - began < SECONDS_MAX
    json.dumps(result.value)


GRAMMARS = {
    "options": "root ::= " + "[a]? " * 1900 + "[a]*",
    "repeats": "root ::= [a]{0,2000} [a]{0,2000} [a]{0,2000} [a]*",
    "doubling": 'root ::= "a" root "b" | "a" root "c" | "a"',
    "ambiguous": '%llguidance {}\nstart: s\ns: s s | "a" | ""\n',
    "palindromes": '%llguidance {}\nstart: s\ns: "a" s "a" | "b" s "b" | "a"\n',
    "expression": "%llguidance {}\nstart: /[a]{0,2000}[a]{0,2000}b/\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar_that_is_made_to_take_long_does_not(name: str) -> None:
    began = time.process_time()
    result: Constrained = constrain("a" * 150_000, Demand(grammar=GRAMMARS[name]))
    assert time.process_time() - began < 2 * SECONDS_MAX
    assert result.ok is (not result.violations)


@given(texts, st.lists(texts, max_size=5, unique=True))
def test_a_word_is_matched_only_to_one_of_the_words(text: str, words: list[str]) -> None:
    meant = the_one_meant(text, words)
    assert meant is None or meant in words
    assert the_one_meant(text, [*words, text.swapcase(), text.upper(), text.lower()]) in {None, *words, *_cases(text)}


def _cases(text: str) -> set[str]:
    return {text.swapcase(), text.upper(), text.lower()}


names = st.sampled_from(["a", "b", "c/d", "e f"])
plain = st.sampled_from([{"type": "integer"}, {"type": "string"}, {"type": "boolean"}, {"enum": ["x", "y"]}])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[JsonObject]) -> JsonObject:
    properties = draw(st.dictionaries(names, inner, max_size=3))
    required = [name for name in properties if draw(st.booleans())]
    return {"type": "object", "properties": properties, "required": required}


shapes: st.SearchStrategy[Any] = st.recursive(
    plain,
    lambda inner: (
        objects(inner)
        | inner.map(lambda items: {"type": "array", "items": items})
        | inner.map(lambda one: {"anyOf": [one, {"type": "array", "items": {"type": "null"}, "minItems": 1}]})
    ),
    max_leaves=6,
)


def made_for(schema: JsonObject) -> st.SearchStrategy[Any]:
    """Values that fit a schema of these shapes."""
    if "anyOf" in schema:
        return st.one_of([made_for(choice) for choice in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(made_for(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
    if schema["type"] == "object":
        members = {name: made_for(part) for name, part in schema["properties"].items()}
        required = {name: members.pop(name) for name in schema["required"]}
        return st.fixed_dictionaries(required, optional=members)
    return {"integer": st.integers(), "string": texts, "boolean": st.booleans(), "null": st.none()}[schema["type"]]


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_a_value_survives_strict_mode_there_and_back(data: st.DataObject) -> None:
    schema: JsonObject = data.draw(shapes)
    value = data.draw(made_for(schema))
    mode = StrictMode(schema)
    assert compile_schema(schema).is_valid(value)
    there = mode.filled(value)
    assert compile_schema(mode.schema).is_valid(there)
    assert same_json(mode.restored(there), value)


# Without quotes, which may end a text or stand inside it.
clear = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab c", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=6,
)
WORDS = ("", "\nSorry, let me do it again", "\nThat was cut off. Here is the complete JSON:")
marks = st.sampled_from([("```json", "```"), ("~~~json", "~~~"), ("```", "```"), ("````json5", "````")])
answers = st.dictionaries(st.sampled_from("abcd"), values, min_size=1, max_size=3) | st.lists(
    values, min_size=1, max_size=3
)


@given(data=st.data(), answer=answers, other=answers)
@settings(max_examples=examples(100))
def test_of_fences_begun_and_whole_the_whole_one_is_meant_or_none(data: st.DataObject, answer: Any, other: Any) -> None:
    """Whatever was begun before, the whole one is the answer; where two differ, or one is begun last, nothing is."""
    whole, cut = json.dumps(answer), json.dumps(answer)
    kinds = data.draw(st.lists(st.sampled_from(["cut", "prose"]), min_size=1, max_size=2))
    kinds = [*kinds, "whole", *data.draw(st.lists(st.sampled_from(["whole", "cut", "other"]), max_size=2))]
    said = []
    for kind in kinds:
        opening, closing = data.draw(marks)
        length = data.draw(st.integers(1, len(cut) - 1)) if kind in ("cut", "prose") else 0
        piece = {"whole": whole, "other": json.dumps(other)}.get(kind, cut[:length])
        piece += ", oh wait" if kind == "prose" else ""
        said.append(f"{opening}\n{piece}\n{closing}{data.draw(st.sampled_from(WORDS))}")
    # Behind the last one such words would announce another.
    said[-1] = said[-1].removesuffix(WORDS[1]).removesuffix(WORDS[2])
    found = constrain("\n".join(said), ANYTHING)
    if kinds[-1] == "cut":
        assert not found.ok
    elif "other" not in kinds or same_json(answer, other):
        assert same_json(found.value, answer), found.violations
    else:
        assert not found.ok or same_json(found.value, answer) is same_json(found.value, other)


@given(items=st.lists(clear, min_size=2, max_size=4), gap=st.sampled_from(["\n", "\r\n", "  \n\t", "\n\n"]))
@settings(max_examples=examples(100))
def test_commas_that_are_missing_between_lines_are_put_in(items: list[Any], gap: str) -> None:
    listed = gap.join(json.dumps(item) for item in items)
    assert same_json(constrain(f"[{listed}]", ANYTHING).value, items)
    keyed = gap.join(f'"k{place}": {json.dumps(item)}' for place, item in enumerate(items))
    named = {f"k{place}": item for place, item in enumerate(items)}
    assert same_json(constrain(f"{{{keyed}}}", ANYTHING).value, named)


@given(
    answer=st.lists(clear, min_size=1) | st.dictionaries(st.sampled_from("abcd"), clear, min_size=1),
    before=st.sampled_from(["Here it is: ", "Sure!\nHere's the JSON you asked for:\n"]),
    after=st.sampled_from([".", ". Is that ok?", "\n\nLet me know if you need anything else!"]),
)
@settings(max_examples=examples(100))
def test_prose_that_says_nothing_of_a_bare_value_is_passed_over(answer: Any, before: str, after: str) -> None:
    found = constrain(f"{before}{json.dumps(answer)}{after}", Demand({"type": ["object", "array"]}))
    assert same_json(found.value, answer)


@given(
    answer=st.lists(clear, min_size=1) | st.dictionaries(st.sampled_from("abcd"), clear, min_size=1),
    word=st.sampled_from(
        [
            "not",
            "no",
            "never",
            "wrong",
            "except",
            "without",
            "instead",
            "old",
            "previously",
            "example",
            "excluded",
            "unless",
            "maybe",
            "otherwise",
            "2",
        ]
    ),
    place=st.integers(0, 20),
    around=st.sampled_from(
        ["Here is the JSON: {}", "{} is the answer.", "The answer is {}", "```json\n{}\n```\nI hope this helps!"]
    ),
)
@settings(max_examples=examples(300))
def test_words_around_a_value_that_may_change_it_leave_none(answer: Any, word: str, place: int, around: str) -> None:
    """A word that rules out, corrects or limits, put anywhere among words that say nothing."""
    before, after = around.split("{}")
    words = [*before.split(" "), "{}", *after.split(" ")]
    at = place % len(words)
    said = " ".join([*words[:at], word, *words[at:]]).replace("{}", json.dumps(answer))
    found = constrain(said, Demand({"type": ["object", "array"]}))
    assert not found.ok, said
