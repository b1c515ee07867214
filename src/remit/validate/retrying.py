"""Retrying: whether an answer that broke its rules is asked for again.

Rule 1: an answer passes when nothing that blocks is broken, however many warnings there are.
Rule 2: an answer is worth another attempt while attempts are left and no broken rule is final.
Rule 3: what leads nowhere fails, and says for which code.
"""

from remit.core.failure import ErrorCode
from remit.core.graph import NodeOutcome
from remit.validate.breaches import breach_text
from remit.validate.checking import Report
from remit.validate.rules import RuleSet

# How a correction begins; the breaches follow, one a line.
_CORRECTION = "The answer breaks these rules. Write it again, complete, so that it keeps all of them:"


def outcome_of(report: Report, rule_set: RuleSet, *, reasks_made: int) -> NodeOutcome:
    """Passed, repairable or failed, after the answer was asked for again so often."""
    if report.is_passed:
        return NodeOutcome.PASSED
    policy = rule_set.retry
    is_final = any(breach.rule in policy.final_rules for breach in report.blocking)
    return NodeOutcome.FAILED if is_final or reasks_made >= policy.reasks_max else NodeOutcome.REPAIRABLE


def error_of(report: Report, rule_set: RuleSet) -> ErrorCode | None:
    """The code of the failure: semantic when nothing but questions of meaning is broken; None when all is well."""
    if report.is_passed:
        return None
    semantic = {check.name for check in rule_set.semantic}
    if all(breach.rule in semantic for breach in report.blocking):
        return ErrorCode.VALIDATION_SEMANTIC_FAILED
    return ErrorCode.VALIDATION_RULE_FAILED


def correction_of(report: Report) -> str:
    """What a model is told so that it can correct its answer; empty when there is nothing to correct."""
    lines = [f"- {breach_text(breach)}" for breach in report.blocking]
    return "\n".join((_CORRECTION, *lines)) if lines else ""
