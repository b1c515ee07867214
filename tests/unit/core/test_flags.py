"""Flags: how declared fields of a result raise them, and which declarations cannot be read."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.flags import (
    OWN_FLAGS,
    flag_named,
    flag_problem,
    is_test_run,
    raised_by,
    says_tests_failed,
    values_under,
)
from remit.core.limits.tools import TOOL_INVALID, ToolDefinition, check_definition

CLEAR: list[Any] = [False, None, 0, 0.0, "", " Low ", "none", "OK", [], {}]
NOT_CLEAR: list[Any] = [True, 1, -1, "high", "medium", "unheard of", [1], {"a": 1}]
YES: list[Any] = [True, 1, 2.5, "yes", "Passed"]
NO: list[Any] = [False, 0, None, "", "no", "perhaps", []]
AT_LEAST_70: list[Any] = [70, 70.5, "71", None, "many", True, []]
READ: list[tuple[str, Any, bool]] = [
    *[("risk", value, False) for value in CLEAR],
    *[("risk", value, True) for value in NOT_CLEAR],
    *[("!fit", value, False) for value in YES],
    *[("!fit", value, True) for value in NO],
    *[("topic=credit|life insurance", value, True) for value in ("credit", " CREDIT ", "Life Insurance")],
    *[("topic=credit", value, False) for value in ("credits", "", 5, None)],
    ("topic=5|true", 5, True),
    ("topic=5|true", True, True),
    *[("score>=70", value, True) for value in AT_LEAST_70],
    *[("score>=70", value, False) for value in (69, "69.9", -100)],
    ("score>=-5", -5, True),
]


@pytest.mark.parametrize(("spec", "value", "is_raised"), READ)
def test_a_field_raises_its_flag_as_it_is_declared_to(spec: str, value: Any, is_raised: bool) -> None:
    name = flag_named(spec)
    assert raised_by((("field", spec),), {"field": value}) == ((name,) if is_raised else ())


@pytest.mark.parametrize("result", ["a text", None, 5, [], {}, {"other": 0}, {"a": 5}, {"a": {"c": 0}}])
@pytest.mark.parametrize("spec", ["risk", "!risk", "risk=x", "risk>=1"])
def test_a_field_that_is_not_there_raises_its_flag(spec: str, result: Any) -> None:
    assert raised_by((("a.b", spec),), result) == ("risk",)


def test_a_path_leads_through_records_and_lists_and_one_that_says_so_is_enough() -> None:
    result = {"vendors": [{"risk": {"level": "low"}}, {"risk": {"level": "high"}}]}
    assert values_under(result, "vendors[].risk.level") == ["low", "high"]
    assert raised_by((("vendors[].risk.level", "vendor_risk"), ("vendors", "many")), result) == ("vendor_risk", "many")
    assert values_under([1, 2], "[]") == [1, 2]
    assert values_under({"a": []}, "a[].b") == []
    assert values_under({"a": {}}, "a[].b") is None
    assert raised_by((("a[].b", "risk"),), {"a": []}) == ()
    assert raised_by((("a", "risk"), ("b", "risk")), {"a": 1, "b": 1}) == ("risk",)


@pytest.mark.parametrize("path", ["", ".", "a.", "a..b", "a[", "[0]", "a[x]"])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    assert "is no path" in flag_problem(path, "risk")


@pytest.mark.parametrize("spec", ["", "!", "Risk", "a b", "risk=", "risk>", "risk>=x", "!risk=x", "!risk>=3", "x" * 41])
def test_a_flag_that_cannot_be_read_is_refused(spec: str) -> None:
    assert flag_named(spec) == ""
    assert "cannot be read" in flag_problem("a", spec)


@pytest.mark.parametrize("name", OWN_FLAGS)
def test_no_tool_raises_a_flag_of_the_house(name: str) -> None:
    assert "raises itself" in flag_problem("a", name)


def test_a_definition_with_such_a_flag_is_refused() -> None:
    tool = ToolDefinition("t", "", {"type": "object"}, flags=(("a", "fine"), ("b", "Not")))
    with pytest.raises(RequestRejected) as refused:
        check_definition(tool)
    assert refused.value.code == TOOL_INVALID
    assert "'b'" in refused.value.message


@pytest.mark.parametrize("name", ["run_tests", "test", "pytest-all", "lint", "build_shop"])
def test_a_tool_of_the_sandbox_that_is_called_so_runs_tests(name: str) -> None:
    assert is_test_run(name, is_sandboxed=True)
    assert not is_test_run(name, is_sandboxed=False)


@pytest.mark.parametrize("name", ["calculator", "contest", "attestation"])
def test_any_other_does_not(name: str) -> None:
    assert not is_test_run(name, is_sandboxed=True)


@pytest.mark.parametrize(
    ("result", "has_failed"),
    [
        ({"exit_code": 1}, True),
        ({"returncode": "2"}, True),
        ({"failed": 3, "passed": 9}, True),
        ({"passed": False}, True),
        ({"ok": "no"}, True),
        ({"exit_code": 0, "passed": 12, "errors": []}, False),
        ({"log": "1 failed"}, True),
        ("1 failed", True),
        ("all is well", True),
        ([], True),
        (0, True),
        (None, True),
        (False, True),
        (True, False),
        ("passed", False),
    ],
)
def test_what_an_undeclared_test_run_came_to_is_read_by_the_usual_fields(result: Any, has_failed: bool) -> None:
    assert says_tests_failed(result) is has_failed
