"""Every check: what passes it, what breaks it, and in which words."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.validate.breach import breach_text
from remit.validate.check import compile_rules
from remit.validate.rule_set import (
    CHECKS,
    AllowedValues,
    Citations,
    Length,
    MustMatch,
    MustMention,
    MustNotMatch,
    MustNotMention,
    NoSecrets,
    NotEmpty,
    NumberRange,
    RequiredFields,
    Rule,
    RuleCheck,
    RuleSet,
)

PASSING: list[tuple[RuleCheck, Any]] = [
    (NotEmpty(), "x"),
    (Length(chars_min=2, chars_max=3), "abc"),
    (Length(chars_min=2), "a" * 1000),
    (MustMatch("^[A-Z]"), "Yes"),
    (MustNotMatch("(?i)as an ai"), "As a person"),
    (MustMention(("Order 42", "refund")), "The refund for ORDER-42 is done."),
    (MustNotMention(("ass",)), "Pass the class."),
    (RequiredFields(("a", "b")), {"a": 0, "b": ""}),
    (RequiredFields(("a",)), '{"a": false}'),
    (NumberRange(least=0, most=10), 10),
    (NumberRange(least=0.5), "0.5"),
    (NumberRange(most=3), -(10**400)),
    (AllowedValues(("yes", 1, True)), True),
    (AllowedValues((1,)), 1.0),
    (AllowedValues(("yes",)), '"yes"'),
    (Citations(2), "As [1] and [2, 3] say."),
    (Citations(0), "Nobody said so."),
    (NoSecrets(), "Nothing to see."),
]

BREAKING: list[tuple[RuleCheck, Any, str]] = [
    (NotEmpty(), " \n", "is empty (write something)"),
    (Length(chars_min=5), "abc", "has 3 characters (chars_min=5, 2 more), found 'abc'"),
    (Length(chars_max=2), "abc", "has 3 characters (chars_max=2, 1 fewer), found 'abc'"),
    (MustMatch("^[A-Z]"), "yes", "does not match the pattern (pattern=^[A-Z]), found 'yes'"),
    (
        MustNotMatch("(?i)as an ai"),
        "Well, as an AI I",
        "matches the forbidden pattern at character 6; leave that out (pattern=(?i)as an ai), found 'as an AI'",
    ),
    (MustMention(("refund",)), "No.", "does not mention 'refund'; add it"),
    (MustNotMention(("bad idea",)), "What a Bad\nIdea!", "mentions 'bad idea'; leave it out, found 'what a bad idea'"),
    (RequiredFields(("name",)), {"nam": 1}, "lacks the field 'name'; 'nam' may be meant (fields=name)"),
    (RequiredFields(("name",)), {"name": None}, "lacks the field 'name'; 'name' may be meant (fields=name)"),
    (RequiredFields(("name",)), {5: 1}, "lacks the field 'name' (fields=name)"),
    (RequiredFields(("name",)), [1], "must be an object (fields=name), found a list"),
    (NumberRange(least=0, most=10), 11, "is out of range (least=0, most=10), found 11"),
    (NumberRange(least=0), -1.5, "is out of range (least=0), found -1.5"),
    (NumberRange(least=0), True, "must be a number (least=0), found True"),
    (NumberRange(least=0), "7x", "cannot be judged: it is not JSON: trailing characters at line 1, column 2"),
    (NumberRange(least=0), float("nan"), "must be a number (least=0), found nan"),
    (AllowedValues(("yes", "no")), '"yess"', "is not one of the allowed values; 'yes' may be meant (values='yes', 'no'), found 'yess'"),
    (AllowedValues((1,)), True, "is not one of the allowed values (values=1), found True"),
    (AllowedValues(tuple(range(12))), [], "is not one of the allowed values (values=0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …), found a list"),
    (Citations(2), "As [1] says.", "cites 1 sources; cite them by number, as in [1] (citations_min=2)"),
    (
        NoSecrets(),
        "key AKIA" + "ABCDEFGHIJKLMNOP",
        "holds what looks like a secret (aws_access_key) at character 4; leave it out, found 20 characters",
    ),
]  # fmt: skip


def problems(check: RuleCheck, value: Any, sources: int = 0) -> list[str]:
    evidence = [Candidate("text", "source", 1.0, ScoreMaker.RETRIEVAL)] * sources
    report = compile_rules(RuleSet("set", (Rule("r", check),))).check(value, evidence=evidence)
    return [breach_text(breach).removeprefix("rule 'r': the answer ") for breach in report.breaches]


@pytest.mark.parametrize(("check", "value"), PASSING)
def test_a_value_that_keeps_the_rule_passes(check: RuleCheck, value: Any) -> None:
    assert problems(check, value) == []


@pytest.mark.parametrize(("check", "value", "said"), BREAKING)
def test_a_value_that_breaks_the_rule_is_told_what_would_be_right(check: RuleCheck, value: Any, said: str) -> None:
    assert problems(check, value) == [said]


def test_every_check_is_passed_and_broken_here_and_has_its_name_in_files() -> None:
    assert {type(check) for check, *_ in PASSING} == {type(check) for check, *_ in BREAKING} == set(CHECKS.values())
    assert [check.__struct_config__.tag for check in CHECKS.values()] == list(CHECKS)


def test_a_source_that_is_not_there_is_found_when_the_evidence_is_known() -> None:
    assert problems(Citations(), "See [1], [0] and [7].", sources=3) == [
        "cites a source that is not there (sources are [1] to [3]), found [0]",
        "cites a source that is not there (sources are [1] to [3]), found [7]",
    ]
    assert problems(Citations(), "See [7].") == []


@pytest.mark.parametrize("check", [MustMatch("(?:a.{9}){9}"), MustNotMatch("(?:a.{9}){9}")])
def test_a_text_too_long_for_a_pattern_was_not_judged_and_does_not_pass(check: RuleCheck) -> None:
    (said,) = problems(check, "x" * 1_000_000)
    assert "too many to be judged" in said


def test_a_match_without_a_short_place_is_told_all_the_same() -> None:
    (said,) = problems(MustNotMatch("(?s)^a.*b$"), "a" + "x" * 10_000 + "b")
    assert said.startswith("matches the forbidden pattern; leave that out")


@pytest.mark.parametrize(
    "check",
    [
        Length(),
        Length(chars_min=-1),
        Length(chars_max=-1),
        Length(chars_min=5, chars_max=4),
        MustMention(()),
        MustMention(("",)),
        MustNotMention(("?!",)),
        RequiredFields(()),
        RequiredFields(tuple(str(n) for n in range(501))),
        NumberRange(),
        NumberRange(least=5, most=4),
        NumberRange(least=float("nan")),
        AllowedValues(()),
        AllowedValues(tuple(range(501))),
        Citations(-1),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_before_anything_is_judged(check: RuleCheck) -> None:
    with pytest.raises(RequestRejected, match="rule 'r' of 'set'") as caught:
        problems(check, "")
    assert caught.value.code == "LIMIT_REFUSED"
