"""The constraint stack: each step only when it is needed, a code for whatever does not fit, and nothing guessed."""

import json
from typing import Any

import pytest

from remit.constraint.grammar import matching
from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.constraint.grammar.matching import GRAMMAR_UNDECIDED
from remit.constraint.reading import find_json
from remit.constraint.reading.repair_log import REPAIRS_LISTED_MAX, SHOWN_CHARS_MAX, Reason, RepairCode
from remit.constraint.stack import Constrained, Demand, constrain
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.schema.json_schema import CONFIG_SCHEMA_INVALID

ORDER = Demand(
    {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "state": {"enum": ["open", "closed"]}},
        "required": ["id", "state"],
    }
)
ANYTHING = Demand()
VERDICT = Demand(grammar='root ::= "yes" | "no"')


def reason(result: Constrained) -> str:
    return result.violations[0].keyword


def codes(result: Constrained) -> list[RepairCode]:
    return [repair.code for repair in result.repairs]


@pytest.mark.req("1.23")
def test_a_text_that_fits_is_neither_repaired_nor_matched() -> None:
    result = constrain('{"id": 1, "state": "open"}', ORDER)
    assert result == Constrained({"id": 1, "state": "open"})
    assert result.ok


@pytest.mark.req("1.23")
def test_the_steps_follow_each_other_as_far_as_they_are_needed() -> None:
    result = constrain("```\n{'id': 1, state: Open,}\n```", ORDER)
    assert result.value == {"id": 1, "state": "open"}
    assert codes(result) == [
        RepairCode.FENCE_REMOVED,
        RepairCode.QUOTES_REPLACED,
        RepairCode.KEY_QUOTED,
        RepairCode.COMMA_DROPPED,
        RepairCode.VALUE_QUOTED,
    ]


@pytest.mark.req("0.11")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"id": 1, "state": "Open"}', ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED),
        ('{"id": 1, "state": "open",}', ErrorCode.CONSTRAINT_JSON_INVALID),
        ('{"id": 1, "id": 1, "state": "open"}', ErrorCode.CONSTRAINT_JSON_INVALID),
        ('"{}"', ErrorCode.CONSTRAINT_SCHEMA_INVALID),
    ],
)
def test_without_repair_nothing_is_changed(text: str, code: ErrorCode) -> None:
    result = constrain(text, ORDER, repair=False)
    assert (result.ok, result.code, result.repairs) == (False, code, ())


@pytest.mark.req("0.11")
def test_strict_decides_whether_a_part_comes_along() -> None:
    text = '{"id": "1", "state": "open"}'
    loose, strict = constrain(text, ORDER), constrain(text, ORDER, strict=True)
    assert (loose.ok, loose.value) == (False, {"id": "1", "state": "open"})
    assert (strict.ok, strict.value) == (False, None)
    assert loose.violations == strict.violations
    assert constrain('{"id": 1, "state": "open"}', ORDER, strict=True).ok


@pytest.mark.req("0.11")
def test_a_text_that_was_cut_brings_what_was_whole() -> None:
    result = constrain('{"id": 1, "lines": [{"n": 1}, {"n": 2, "what": "bo', ORDER)
    assert (result.code, reason(result)) == (ErrorCode.CONSTRAINT_JSON_INVALID, Reason.CUT_OFF)
    assert result.value == {"id": 1, "lines": [{"n": 1}, {"n": 2}]}
    assert constrain('{"id": 1, "sta', ORDER, strict=True).value is None


def test_a_violation_names_the_path_the_keyword_and_what_stands_there() -> None:
    result = constrain('{"id": "one", "state": "open"}', ORDER)
    (breach,) = result.violations
    assert (breach.path, breach.keyword, breach.found) == ("/id", "type", '"one"')
    whole = constrain("[1, 2]", ORDER).violations[0]
    assert (whole.path, whole.found) == ("", "array of 2")
    named = Demand({"properties": {"a/b": {"items": {"type": "integer"}}}})
    assert constrain('{"a/b": [{}]}', named).violations[0].found == "object of 0"


def test_the_code_says_enum_only_where_nothing_else_is_wrong() -> None:
    assert constrain('{"id": 1, "state": "x"}', ORDER).code == ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED
    assert constrain('{"id": "", "state": "x"}', ORDER).code == ErrorCode.CONSTRAINT_SCHEMA_INVALID


@pytest.mark.req("0.11")
@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("y", "grammar_cut"),
        ("maybe", "grammar_broken"),
        ("", "grammar_cut"),
        (" maybe ", "grammar_broken"),
        ("yes no", "grammar_broken"),
    ],
)
def test_a_text_that_breaks_its_grammar_is_refused(text: str, keyword: str) -> None:
    result = constrain(text, VERDICT)
    assert (result.code, reason(result), result.value) == (ErrorCode.CONSTRAINT_GRAMMAR_REJECTED, keyword, None)


def test_a_text_of_which_nobody_knows_whether_it_fits_has_a_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "TEXT_CHARS_MAX", 5)
    for text in ("yes", "maybe"):
        assert constrain(text, VERDICT).code != GRAMMAR_UNDECIDED
    result = constrain("no" * 3, VERDICT)
    assert (result.ok, result.code, reason(result), result.value) == (
        False,
        GRAMMAR_UNDECIDED,
        "grammar_undecided",
        None,
    )


@pytest.mark.parametrize(
    ("text", "part"), [('{"price": 12', {}), ("[1,2", [1]), ('{"a": [{"b": 1}, {"c": -0.5', {"a": [{"b": 1}, {}]})]
)
def test_a_number_at_the_end_of_a_cut_text_may_have_lost_digits(text: str, part: Any) -> None:
    result = constrain(text, ANYTHING)
    assert (result.code, reason(result)) == (ErrorCode.CONSTRAINT_JSON_INVALID, Reason.CUT_OFF)
    assert result.value == part
    assert constrain(text, ANYTHING, strict=True).value is None


@pytest.mark.parametrize("behind", [" ", "\n", ",", ", ", "}", " //"])
def test_a_number_with_anything_behind_it_is_whole(behind: str) -> None:
    assert constrain('{"price": 12' + behind, ANYTHING).value == {"price": 12}


@pytest.mark.parametrize(
    ("text", "value"), [("12", 12), ("+12", 12), ("<think>hm</think>12", 12), ("```\n12\n```", 12)]
)
def test_a_number_that_is_all_there_is_stands(text: str, value: int) -> None:
    assert constrain(text, ANYTHING).value == value


@pytest.mark.parametrize(
    ("word", "became"),
    [("True", "true"), ("TRUE", "true"), ("False", "false"), ("FALSE", "false")]
    + [(word, "null") for word in ("None", "NULL", "Null")],
)
def test_the_record_of_a_literal_says_what_became_of_it(word: str, became: str) -> None:
    result = constrain(f'{{"a": {word}}}', ANYTHING)
    assert result.value == {"a": json.loads(became)}
    assert [(repair.was, repair.became) for repair in result.repairs] == [(word, became)]


@pytest.mark.parametrize("word", ["undefined", "NaN", "nan", "NAN", "Infinity", "-Infinity", "inf"])
def test_a_word_for_no_value_is_never_recorded_as_a_repair(word: str) -> None:
    result = constrain(f'{{"a": {word}}}', ANYTHING)
    assert (result.ok, reason(result), result.repairs) == (False, Reason.NO_NUMBER, ())


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ('{"a": 1,}', 8, "character 8: trailing comma"),
        ('{"é": "é",}', 10, "character 10: trailing comma"),
        ('{"é": 1,\n "b": é}', 15, "character 15: expected value"),
        ("[1", 2, "character 2: EOF while parsing a list"),
        ("", 0, "character 0: EOF while parsing a value"),
        ('["1e999", -1e999]', 10, "character 10: a number is beyond what a double holds"),
    ],
)
def test_without_repair_there_is_one_place_where_a_text_goes_wrong(text: str, at: int, message: str) -> None:
    (breach,) = constrain(text, ANYTHING, repair=False).violations
    assert breach.message == message
    assert breach.found.endswith(text[at:])


@pytest.mark.parametrize(
    ("schema", "text", "word"),
    [
        ({"type": "string", "enum": ["pos", "neg"]}, "pos", "pos"),
        ({"type": "string", "enum": ["pos", "neg"]}, " Pos.\n", "pos"),
        ({"anyOf": [{"const": "in_progress"}, {"const": "done"}]}, "In Progress", "in_progress"),
        ({"const": "pos"}, "pos", "pos"),
        ({"enum": ["tr", "en"]}, "tr", "tr"),
    ],
)
def test_a_text_that_is_a_word_of_the_schema_and_nothing_else_is_the_word(schema: Any, text: str, word: str) -> None:
    result = constrain(text, Demand(schema))
    assert (result.value, codes(result)) == (word, [RepairCode.VALUE_QUOTED])
    assert not constrain(text, Demand(schema), repair=False).ok


def test_words_that_are_something_else_in_json_stay_that() -> None:
    assert constrain("True", Demand({"enum": ["True", True]})).value is True
    assert constrain("1", Demand({"enum": ["1", "2"]})).value == 1
    assert reason(constrain("pos", ANYTHING)) == Reason.NO_JSON
    assert reason(constrain("po", Demand({"enum": ["pos", "neg"]}))) == Reason.NO_JSON


def test_none_of_the_words_that_alternatives_list_is_an_enum_like_any_other() -> None:
    result = constrain('"x"', Demand({"anyOf": [{"const": "a"}, {"const": "b"}]}))
    assert (result.code, reason(result)) == (ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED, "enum")


def test_a_text_that_follows_its_grammar_is_the_value() -> None:
    assert constrain("yes", VERDICT) == Constrained("yes")
    trimmed = constrain("no\n", VERDICT)
    assert (trimmed.value, codes(trimmed)) == ("no", [RepairCode.SPACE_TRIMMED])
    assert not constrain("no\n", VERDICT, repair=False).ok


def test_a_grammar_and_a_schema_must_both_be_kept() -> None:
    both = Demand({"type": "integer", "maximum": 50}, grammar="root ::= [0-9]+")
    assert constrain("42", both).value == 42
    assert constrain("99", both).code == ErrorCode.CONSTRAINT_SCHEMA_INVALID
    assert constrain("4.2", both).code == ErrorCode.CONSTRAINT_GRAMMAR_REJECTED


def test_a_demand_that_nothing_could_be_checked_with_is_refused() -> None:
    with pytest.raises(RequestRejected) as raised:
        Demand({"type": "sentence"})
    assert raised.value.code == CONFIG_SCHEMA_INVALID
    with pytest.raises(RequestRejected) as raised:
        Demand(grammar="root ::= x")
    assert raised.value.code == GRAMMAR_INVALID


def test_references_lead_to_resources_that_come_along_and_nowhere_else() -> None:
    schema = {"$ref": "https://example.org/state"}
    known = Demand(schema, resources={"https://example.org/state": {"enum": ["open"]}})
    assert constrain('"open"', known).ok
    assert constrain('"OPEN"', known).value == "open"
    with pytest.raises(RequestRejected):
        Demand(schema)


@pytest.mark.parametrize("levels", [DEPTH_MAX + 1, 250, 5_000])
def test_a_value_that_nests_too_deep_is_no_json(levels: int) -> None:
    for repair in (True, False):
        result = constrain("[" * levels + "]" * levels, ANYTHING, repair=repair, strict=True)
        assert (result.code, result.value) == (ErrorCode.CONSTRAINT_JSON_INVALID, None)


def test_a_text_that_is_too_long_to_repair_is_still_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_json, "REPAIR_CHARS_MAX", 10)
    assert reason(constrain("[1, 2, 3, 4,]", ANYTHING)) == Reason.TOO_LONG
    assert constrain("[1, 2, 3, 4]", ANYTHING).ok


def test_a_number_that_nobody_could_mean_is_too_long() -> None:
    assert reason(constrain("[" + "1" * 2000 + ",]", ANYTHING)) == Reason.TOO_LONG


def test_a_root_that_refers_to_itself_says_nothing_about_its_type() -> None:
    assert constrain("{'a': 1}", Demand({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})).value == {"a": 1}


def test_of_many_repairs_the_first_are_listed_and_the_rest_is_counted() -> None:
    result = constrain(str(["x" * (SHOWN_CHARS_MAX + 1)] * 200), ANYTHING)
    assert len(result.repairs) == REPAIRS_LISTED_MAX + 1
    assert (result.repairs[-1].code, result.repairs[-1].was) == (RepairCode.NOT_LISTED, "150 more repairs")
    long = constrain("x" * 100 + "{}", ANYTHING).repairs[0]
    assert long.was == "x" * SHOWN_CHARS_MAX + "..."


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "array"}}},
            "{}\n{'a': 1}",
            [{}, {"a": 1}],
        ),
    ],
)
def test_the_type_of_the_root_tells_the_value_from_the_rest(schema: Any, text: str, value: Any) -> None:
    assert constrain(text, Demand(schema)).value == value


def test_a_text_within_a_text_is_unwrapped_only_where_no_text_is_wanted() -> None:
    wrapped = '"{\\"id\\": 1, \\"state\\": \\"open\\"}"'
    assert codes(constrain(wrapped, ORDER)) == [RepairCode.STRING_UNWRAPPED]
    assert constrain(wrapped, Demand({"type": "string"})).value == '{"id": 1, "state": "open"}'
    assert constrain(wrapped, ANYTHING).value == '{"id": 1, "state": "open"}'
    assert not constrain('"5"', ORDER).ok
    assert not constrain('"five"', ORDER).ok


def test_more_values_than_a_list_in_lines_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_json, "VALUES_MAX", 3)
    rows = Demand({"type": "array"})
    assert constrain("{} {'a': 1} {}", rows).ok
    assert reason(constrain("{} {} {} {}", rows)) == Reason.SEVERAL_VALUES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('1, {"a": 1}', Reason.UNEXPECTED),
        ("{a: 1, {b: 2}", Reason.UNEXPECTED),
        ("{/x}", Reason.UNEXPECTED),
        ('{"a": 1 / 2}', Reason.UNEXPECTED),
        ('{"a": 1]', Reason.UNEXPECTED),
        ('{"a"}', Reason.UNEXPECTED),
        ('{"a": 1, "b"; 2}', Reason.UNEXPECTED),
        ('{\\"a\\": 1', Reason.UNEXPECTED),
        ('{"a": in the "x"}', Reason.UNEXPECTED),
        ("{null: 1}", Reason.UNEXPECTED),
        ('["a", b c "d"]', Reason.QUOTES_UNCLEAR),
        ('{"a": nope', Reason.CUT_OFF),
        ('"a": "x', Reason.CUT_OFF),
        ("'abc' and 'def'", Reason.QUOTES_UNCLEAR),
        ("True or False", Reason.NO_JSON),
        ("+", Reason.NO_JSON),
        ("\\", Reason.NO_JSON),
        ("{…}", Reason.ELIDED),
        ('["\\q"]', Reason.ESCAPE_UNCLEAR),
        ('["\\xg1"]', Reason.ESCAPE_UNCLEAR),
        ("{'a': 'x' 'b'}", Reason.QUOTES_UNCLEAR),
    ],
)
def test_what_has_no_one_meaning_is_refused(text: str, expected: Reason) -> None:
    result = constrain(text, ANYTHING)
    assert not result.ok, result.value
    assert reason(result) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "x", }', {"a": "x"}),
        ("[1, 2, #\n 3]", [1, 2, 3]),
        ('{"a": "x" //\n}', {"a": "x"}),
        ('["x", // ---\n "y"]', ["x", "y"]),
        ('["x" /* */]', ["x"]),
        ("[.5, -0x10, +0]", [0.5, -16, 0]),
        ("{'a': ['b'\n{'c': 1}]}", {"a": ["b", {"c": 1}]}),
        ("['\\u00e9\\n']", ["é\n"]),
        ("{\u200b'a': 1}", {"a": 1}),
        ("`yes`", "yes"),
        ('{"a": 1}```', {"a": 1}),
        ('{"k": ["a", "b"```', {"k": ["a", "b"]}),
        ('{"a": "", "b": "x" ; "c": ""}', {"a": "", "b": "x", "c": ""}),
    ],
)
def test_what_has_one_meaning_is_read(text: str, value: Any) -> None:
    result = constrain(text, ANYTHING)
    assert result.ok, result.violations
    assert result.value == value


def test_every_kind_of_repair_is_made_by_some_text() -> None:
    listed = Demand({"type": "array", "items": {"enum": ["a_b"]}})
    texts = {
        ANYTHING: [
            "\ufeff<think>x</think>```\n{}\n```",
            'JSON: {\'a\' 1, b=2; "c": \'it\\\'s\', /**/ "d": True, "a": 1,, "e":\u00a0+1, "f": tru',
            '{"a": "a "b" c" "d": "\t"}',
            '"a": 1}}',
            '{\\"a\\": 1}',
            "{} {}",
        ],
        Demand({"type": "object"}): ['"{}"'],
        Demand({"type": "array"}): ["{}{'a': 1}"],
        listed: ["[a b, 'A-B']"],
        VERDICT: [" yes"],
    }
    seen = {RepairCode.NOT_LISTED}
    for demand, said in texts.items():
        for text in said:
            seen |= set(codes(constrain(text, demand)))
    assert seen == set(RepairCode)
