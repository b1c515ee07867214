"""A rule set as a whole: reports, results, confidence, and what is turned away."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.run.contract import ConfidenceSource, ValidationResult
from remit.orchestrate.setup.kit import Code
from remit.validate.breach import breach_text
from remit.validate.check import ANSWER_CHARS_MAX, Report, compile_rules, confidence_of, result_of
from remit.validate.rule_set import (
    AllowedValues,
    Length,
    MustMatch,
    MustMention,
    NotEmpty,
    NumberRange,
    RetryPolicy,
    Rule,
    RuleSet,
    SemanticCheck,
    Severity,
    rules_version,
)

PRICES = Rule("prices", NumberRange(least=0), at="/items/*/price")
RULES = RuleSet(
    "order",
    (
        Rule("present", NotEmpty()),
        Rule("short", Length(chars_max=60), severity=Severity.WARN),
        PRICES,
        Rule("note", MustMatch("^[A-Z]"), at="/note", optional=True),
    ),
)


def test_a_report_lists_what_passed_and_what_breaks_the_rest() -> None:
    report = compile_rules(RULES).check({"items": [{"price": 1}, {"price": -2}], "note": "Fine"})
    assert report.passed == ("present", "short", "note")
    assert [(breach.rule, breach.place, breach.value) for breach in report.breaches] == [
        ("prices", "/items/1/price", "-2")
    ]
    assert not report.is_passed


def test_a_warning_is_told_and_lets_the_answer_stand() -> None:
    report = compile_rules(RULES).check('{"items": []' + " " * 60 + "}")
    assert report.is_passed
    assert report.blocking == ()
    (warning,) = report.warnings
    assert warning.startswith("warning: rule 'short': the answer has 73 characters (chars_max=60, 13 fewer), found ")


def test_a_place_where_nothing_stands_breaks_a_rule_unless_it_is_optional() -> None:
    report = compile_rules(RULES).check({})
    assert [(breach.rule, breach.place) for breach in report.breaches] == [("prices", "/items")]


def test_a_rule_about_text_is_broken_by_what_is_none() -> None:
    (breach,) = compile_rules(RuleSet("s", (Rule("note", NotEmpty(), at="/note"),))).check({"note": 5}).breaches
    assert breach.problem == "must be a text"


def test_text_that_is_no_json_breaks_only_the_rules_that_look_into_it() -> None:
    report = compile_rules(RULES).check("Hello")
    assert report.passed == ("present", "short")
    assert {breach.rule for breach in report.breaches} == {"prices", "note"}


def test_a_rule_broken_in_many_places_is_told_by_the_first_few() -> None:
    report = compile_rules(RuleSet("s", (PRICES,))).check({"items": [{"price": -1}] * 100})
    assert [breach.place for breach in report.breaches] == [f"/items/{n}/price" for n in range(5)]
    assert result_of(report).checks_failed == 1


def test_an_answer_beyond_all_bounds_is_refused_unread() -> None:
    report = compile_rules(RULES).check("x" * (ANSWER_CHARS_MAX + 1))
    assert report.passed == ()
    assert all("chars_max=2000000" in breach.problem for breach in report.breaches)


@pytest.mark.req("0.8")
def test_confidence_is_the_share_of_rules_that_passed() -> None:
    result = result_of(compile_rules(RULES).check({"items": [{"price": -1}]}), repair_attempts=2)
    assert (result.checks_passed, result.checks_failed, result.repair_attempts) == (3, 1, 2)
    assert result.violations == ("rule 'prices': the answer at '/items/0/price' is out of range (least=0), found -1",)
    assert confidence_of(result) == (0.75, ConfidenceSource.VALIDATION)


@pytest.mark.req("0.8")
def test_nothing_checked_is_no_confidence() -> None:
    assert confidence_of(ValidationResult()) is None
    assert result_of(Report()) == ValidationResult()


def test_the_rules_are_a_validator_that_a_graph_can_name() -> None:
    validator: Code = compile_rules(RULES).validator()
    assert validator('{"items": []}').is_passed
    unread = "cannot be judged: it is not JSON: EOF while parsing a value at line 1, column 1"
    assert tuple(map(breach_text, validator("").blocking)) == (
        "rule 'present': the answer is empty (write something)",
        f"rule 'prices': the answer at '/items/*/price' {unread}",
        f"rule 'note': the answer at '/note' {unread}",
    )


def test_equal_rule_sets_have_equal_versions_and_others_do_not() -> None:
    assert compile_rules(RULES).version == rules_version(RULES)
    assert rules_version(RuleSet("s", (Rule("r", NumberRange(least=1)),))) == rules_version(
        RuleSet("s", (Rule("r", NumberRange(least=1.0)),))
    )
    assert rules_version(RuleSet("s", (Rule("r", NotEmpty()),))) != rules_version(RuleSet("s", (Rule("r", Length(1)),)))


@pytest.mark.parametrize(
    ("rule_set", "named"),
    [
        (RuleSet("s", (Rule(" ", NotEmpty()),)), "named ' '"),
        (RuleSet("s", (Rule("x" * 81, NotEmpty()),)), "1 to 80 characters"),
        (RuleSet("s", (Rule("a", NotEmpty()),), (SemanticCheck("a", "?"),)), "two rules are named 'a'"),
        (RuleSet("s", tuple(Rule(f"r{n}", NotEmpty()) for n in range(201))), "201 rules, rules_max=200"),
        (RuleSet("s", retry=RetryPolicy(reasks_max=-1)), "reasks_max=-1"),
        (RuleSet("s", (Rule("a", NotEmpty()),), retry=RetryPolicy(final_rules=("b",))), "final_rules names 'b'"),
        (RuleSet("s", (Rule("a", AllowedValues((2**60,))),)), "cannot be versioned"),
    ],
)
def test_a_rule_set_that_contradicts_itself_is_refused(rule_set: RuleSet, named: str) -> None:
    with pytest.raises(RequestRejected, match=named) as caught:
        compile_rules(rule_set)
    assert caught.value.code == "RULES_INVALID"


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (Rule("r", MustMatch("(?=a)")), "PATTERN_REFUSED"),
        (Rule("r", NotEmpty(), at="a"), "PLACE_REFUSED"),
        (Rule("r", MustMention(())), "LIMIT_REFUSED"),
    ],
)
def test_what_is_wrong_with_a_rule_is_told_with_its_name(rule: Rule, code: str) -> None:
    with pytest.raises(RequestRejected, match="rule 'r' of 's'") as caught:
        compile_rules(RuleSet("s", (rule,)))
    assert caught.value.code == code
    assert caught.value.details == {"rule": "r"}
