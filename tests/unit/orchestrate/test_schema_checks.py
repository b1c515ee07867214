"""Values are checked against schemas, and what cannot be checked is a violation."""

import sys
from threading import Thread

import pytest

from remit.core.journal.canonical import DEPTH_MAX
from remit.core.record import JsonObject
from remit.core.schema.json_schema import MESSAGE_CHARS_MAX
from remit.orchestrate.facts import schema_checks as checking
from remit.orchestrate.facts.schema_checks import COMPILED_MAX, Checks

OBJECT: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TEXT: JsonObject = {"type": "string"}
# More levels than any stack has.
DEEP = 100_000


@pytest.fixture
def checks() -> Checks:
    return Checks()


def test_a_value_that_fits_has_no_violations(checks: Checks) -> None:
    assert checks.violations(OBJECT, {"n": 1}) == ()


def test_a_violation_names_its_place_and_keyword(checks: Checks) -> None:
    (violation,) = checks.violations(OBJECT, {"n": "one"})
    assert (violation.path, violation.keyword) == ("/n", "type")


def test_a_schema_that_does_not_compile_is_broken_by_every_value(checks: Checks) -> None:
    (violation,) = checks.violations({"type": "no such type"}, {})
    assert violation.keyword == "schema"


def test_a_schema_that_does_not_compile_is_not_compiled_again(checks: Checks) -> None:
    bad: JsonObject = {"type": "no such type"}
    assert checks.violations(bad, 1) == checks.violations(bad, 2)


def test_equal_schemas_of_different_meaning_are_not_confused(checks: Checks) -> None:
    # To Python these two are equal.
    assert checks.violations({"const": 1}, 1) == ()
    assert checks.violations({"const": True}, 1) != ()


def test_the_compiled_schemas_never_exceed_their_limit(checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "COMPILED_MAX", 3)
    schemas: list[JsonObject] = [{"const": number} for number in range(5)]
    for number, schema in enumerate(schemas):
        assert checks.violations(schema, number) == ()
    assert len(checks._compiled) == 3


def test_a_schema_that_was_pushed_out_is_compiled_again(checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "COMPILED_MAX", 1)
    assert checks.violations(TEXT, "a") == checks.violations(OBJECT, {"n": 1}) == checks.violations(TEXT, "b") == ()


def test_the_limit_is_a_number_with_room_for_many_registries() -> None:
    assert COMPILED_MAX >= 100


def test_a_path_that_a_model_made_up_is_cut(checks: Checks) -> None:
    schema: JsonObject = {"additionalProperties": {"type": "integer"}}
    (violation,) = checks.violations(schema, {"k" * 10_000: "no integer"})
    assert len(violation.path) == MESSAGE_CHARS_MAX


def test_a_json_text_is_checked_by_its_value(checks: Checks) -> None:
    assert checks.violations_in_json(OBJECT, '{"n": 1}') == ()


@pytest.mark.parametrize("text", ["", "no json", '{"n": 1', "NaN", '"\\ud800"'])
def test_a_text_that_is_no_json_says_so(checks: Checks, text: str) -> None:
    (violation,) = checks.violations_in_json({}, text)
    assert violation.keyword == "json"


@pytest.mark.parametrize(
    "text",
    ["[" * DEEP, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP, '["\\"]]]", ' * DEEP, "[" * (DEPTH_MAX + 1) + "x"],
    ids=["opened", "closed", "objects", "strings between", "just too deep and malformed"],
)
def test_a_text_that_nests_too_deep_says_so(checks: Checks, text: str) -> None:
    (violation,) = checks.violations_in_json({}, text)
    assert "depth_max" in violation.message


@pytest.mark.parametrize("text", ["[" * DEPTH_MAX, "[] [] " * DEEP, '"[[[[', "]" * 500 + "["])
def test_a_malformed_text_that_is_not_deep_is_no_json(checks: Checks, text: str) -> None:
    (violation,) = checks.violations_in_json({}, text)
    assert violation.keyword == "json"


def test_an_unfinished_string_of_many_quotes_is_read_once() -> None:
    # Read anew from every quote, this would take minutes.
    assert not checking._is_deep('"' + '\\"' * 500_000)


@pytest.mark.req("1.20")
def test_a_deep_stack_changes_no_violation(checks: Checks) -> None:
    texts = ["[" * levels for levels in range(DEPTH_MAX - 2, 1000, 50)]
    shallow = [checks.violations_in_json({}, text) for text in texts]

    def descend(levels: int) -> None:
        if levels:
            descend(levels - 1)
        else:
            deep.extend(checks.violations_in_json({}, text) for text in texts)

    deep: list[object] = []
    # A thread begins with an empty stack, so how deep this goes does not depend on the test runner.
    thread = Thread(target=descend, args=(sys.getrecursionlimit() - 300,))
    thread.start()
    thread.join()
    assert deep == shallow


def test_a_plain_text_of_a_tool_is_a_json_string_to_its_schema(checks: Checks) -> None:
    assert checks.violations_in_result(TEXT, "it worked") == ()
    assert checks.violations_in_result(OBJECT, "it worked") != ()


def test_a_json_text_of_a_tool_is_checked_by_its_value(checks: Checks) -> None:
    assert checks.violations_in_result(OBJECT, '{"n": 1}') == ()
    assert checks.violations_in_result(TEXT, '{"n": 1}') != ()


def test_a_result_that_nests_too_deep_fits_no_schema(checks: Checks) -> None:
    assert checks.violations_in_result({}, "[" * DEEP) != ()


def test_arguments_that_the_checker_cannot_read_are_a_violation_the_second_time_too(checks: Checks) -> None:
    half: JsonObject = {"n": "\ud800"}
    first = checks.violations_in_arguments(OBJECT, half)
    assert [violation.keyword for violation in first] == ["value"]
    assert checks.violations_in_arguments(OBJECT, half) == first
