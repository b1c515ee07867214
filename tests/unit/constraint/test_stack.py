"""The constraint stack: each step only when it is needed, a code for whatever does not fit, and nothing guessed."""

from typing import Any

import pytest

from remit.constraint import finding
from remit.constraint.gbnf import GRAMMAR_INVALID
from remit.constraint.repairs import REPAIRS_LISTED_MAX, SHOWN_CHARS_MAX, Reason, RepairCode
from remit.constraint.stack import Constrained, Demand, constrain
from remit.core.canonical import DEPTH_MAX
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.schema import CONFIG_SCHEMA_INVALID

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
    monkeypatch.setattr(finding, "REPAIR_CHARS_MAX", 10)
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
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}, '[1] {"a": 1}', {"a": 1}),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "array"}}},
            "{}\n{'a': 1}",
            [{}, {"a": 1}],
        ),
        ({"type": ["array", "null"]}, '[1, {}] {"a": 1}', [1, {}]),
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
    monkeypatch.setattr(finding, "VALUES_MAX", 3)
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
        ("[1, 2, # two\n 3]", [1, 2, 3]),
        ('{"a": "x" // note\n}', {"a": "x"}),
        ('["x", // note\n "y"]', ["x", "y"]),
        ('["x" /* note */]', ["x"]),
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
            'x {\'a\' 1, b=2; "c": \'it\\\'s\', /**/ "d": True, "a": 1,, "e":\u00a0+1, "f": tru',
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
