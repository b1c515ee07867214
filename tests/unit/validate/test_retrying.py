"""Whether an answer is asked for again."""

import pytest

from remit.core.failure import ErrorCode
from remit.core.graph import NodeOutcome
from remit.validate.checking import Report, compile_rules
from remit.validate.retrying import correction_of, error_of, outcome_of
from remit.validate.rules import Length, NoSecrets, RetryPolicy, Rule, RuleSet, SemanticCheck, Severity
from remit.validate.semantic import with_verdict

TRUE = SemanticCheck("true", "Is it true?")
SET = RuleSet(
    "answers",
    (
        Rule("short", Length(chars_max=30)),
        Rule("long", Length(chars_min=2), severity=Severity.WARN),
        Rule("safe", NoSecrets()),
    ),
    (TRUE,),
    RetryPolicy(reasks_max=2, final_rules=("safe",)),
)
RULES = compile_rules(SET)


@pytest.mark.req("0.18")
@pytest.mark.parametrize(
    ("answer", "reasks_made", "outcome"),
    [
        ("fine", 0, NodeOutcome.PASSED),
        ("x", 9, NodeOutcome.PASSED),
        ("x" * 31, 0, NodeOutcome.REPAIRABLE),
        ("x" * 31, 1, NodeOutcome.REPAIRABLE),
        ("x" * 31, 2, NodeOutcome.FAILED),
        ("AKIA" + "ABCDEFGHIJKLMNOP", 0, NodeOutcome.FAILED),
    ],
    ids=["pass", "warned", "first", "second", "exhausted", "final"],
)
def test_an_answer_passes_is_repaired_or_fails(answer: str, reasks_made: int, outcome: NodeOutcome) -> None:
    assert outcome_of(RULES.check(answer), SET, reasks_made=reasks_made) is outcome


def test_a_failure_of_meaning_alone_has_a_code_of_its_own() -> None:
    fine, broken = RULES.check("fine"), RULES.check("x" * 31)
    said = '{"holds": false, "problems": ["no"]}'
    assert error_of(fine, SET) is None
    assert error_of(broken, SET) is ErrorCode.VALIDATION_RULE_FAILED
    assert error_of(with_verdict(fine, TRUE, said), SET) is ErrorCode.VALIDATION_SEMANTIC_FAILED
    assert error_of(with_verdict(broken, TRUE, said), SET) is ErrorCode.VALIDATION_RULE_FAILED


def test_a_correction_names_what_blocks_and_no_warnings() -> None:
    text = correction_of(RULES.check("x" * 31))
    assert text.splitlines()[1:] == [
        f"- rule 'short': the answer has 31 characters (chars_max=30, 1 fewer), found '{'x' * 31}'"
    ]
    assert correction_of(RULES.check("x")) == correction_of(Report()) == ""
