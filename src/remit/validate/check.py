"""Checking: hold an answer against a rule set and say which rules passed and what breaks the others.

Rule 1: judging changes nothing, asks no person and reads no clock; equal values get equal reports.
Rule 2: rules do not see each other: their order decides the order of the listing and nothing else.
Rule 3: a rule that cannot be judged is broken, never passed by accident.
Rule 4: a rule set is compiled once, which finds everything that is wrong with it, and used from any thread.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from remit.core.clipped import clipped
from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical
from remit.core.record import Record
from remit.core.run.contract import ConfidenceSource, ValidationResult
from remit.core.work.candidate import Candidate
from remit.validate.breach import BREACHES_PER_RULE_MAX, Breach, breach_text, shown_in_message
from remit.validate.json_pointers import CheckedValue, Missing, Stands, Unread, steps_of
from remit.validate.predicates import Predicate, Said, predicate_of
from remit.validate.rule_set import Rule, RuleSet, Severity, rules_version

RULES_INVALID = "RULES_INVALID"

# A rule set is written and read by people.
RULES_MAX = 200
NAME_CHARS_MAX = 80
# Far beyond any answer of a model; what is longer is refused unread, so that judging takes seconds at worst.
ANSWER_CHARS_MAX = 2_000_000


class Report(Record):
    """What came of judging: the names of the rules that passed, and every breach of the others.

    It is final when a rule is broken for which another attempt is not worth it.
    """

    passed: tuple[str, ...] = ()
    breaches: tuple[Breach, ...] = ()
    is_final: bool = False

    @property
    def is_passed(self) -> bool:
        """Whether the answer may stand: nothing that blocks is broken."""
        return not self.blocking

    @property
    def blocking(self) -> tuple[Breach, ...]:
        """The breaches for which the answer may not stand."""
        return tuple(breach for breach in self.breaches if breach.severity is Severity.BLOCK)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user although the answer stands."""
        return tuple(breach_text(breach) for breach in self.breaches if breach.severity is Severity.WARN)


class Rules:
    """A compiled rule set. It may be kept and used from any thread."""

    __slots__ = ("_compiled", "rule_set", "version")

    def __init__(self, rule_set: RuleSet, version: str, compiled: tuple["_Compiled", ...]) -> None:
        self.rule_set = rule_set
        self.version = version
        self._compiled = compiled

    def check(self, value: Any, *, evidence: Sequence[Candidate] = ()) -> Report:
        """Judge a text or a value; the evidence is what its citations may refer to."""
        subject = CheckedValue(value)
        passed: list[str] = []
        breaches: list[Breach] = []
        for compiled in self._compiled:
            found = compiled.breaches(subject, len(evidence))
            breaches += found
            if not found:
                passed.append(compiled.rule.name)
        final = self.rule_set.retry.final_rules
        is_final = any(breach.rule in final for breach in breaches if breach.severity is Severity.BLOCK)
        return Report(tuple(passed), tuple(breaches), is_final)

    def validator(self) -> Callable[[str], Report]:
        """The rules as named code of a run: what they say of a text, counted."""
        return self.check


class _Compiled:
    """A rule, the steps to its place and the predicate that judges what stands there."""

    __slots__ = ("_predicate", "_steps", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._steps = steps_of(rule.at)
        self._predicate: Predicate = predicate_of(rule.check)

    def breaches(self, subject: CheckedValue, sources: int) -> tuple[Breach, ...]:
        """Everything that breaks this rule, up to a bound."""
        found: list[Breach] = []
        for stands in self._where(subject):
            for place, said in self._said(stands, sources):
                if len(found) == BREACHES_PER_RULE_MAX:
                    return tuple(found)
                found.append(
                    Breach(
                        rule=self.rule.name,
                        severity=self.rule.severity,
                        place=place,
                        value=said.value,
                        limit=said.limit,
                        problem=said.problem,
                    )
                )
        return tuple(found)

    def _where(self, subject: CheckedValue) -> Iterable[Stands | Missing | Unread]:
        if len(subject.text) > ANSWER_CHARS_MAX:
            return (Unread(f"it has {len(subject.text)} characters, chars_max={ANSWER_CHARS_MAX}; shorten it"),)
        if self._steps or self._predicate.reads_values:
            return subject.at(self._steps)
        return (Stands("", subject.text),)

    def _said(self, stands: Stands | Missing | Unread, sources: int) -> Iterable[tuple[str, Said]]:
        match stands:
            case Unread(reason):
                return ((self.rule.at, Said(f"cannot be judged: {reason}")),)
            case Missing(place):
                return () if self.rule.optional else ((place, Said("is missing; add it")),)
            case Stands(place, value):
                if not self._predicate.reads_values and not isinstance(value, str):
                    return ((place, Said("must be a text", shown_in_message(value))),)
                return ((place, said) for said in self._predicate.faults(value, sources))


def compile_rules(rule_set: RuleSet) -> Rules:
    """The rule set, ready to judge; raises RequestRejected for what could not be judged."""
    rule_set = as_declared(rule_set, RuleSet, "rules", RULES_INVALID)
    if len(rule_set.rules) + len(rule_set.semantic) > RULES_MAX:
        count = len(rule_set.rules) + len(rule_set.semantic)
        raise _invalid(rule_set.name, f"it has {count} rules, rules_max={RULES_MAX}; split it")
    _check_names(rule_set)
    compiled = []
    for rule in rule_set.rules:
        try:
            compiled.append(_Compiled(rule))
        except RequestRejected as error:
            raise RequestRejected(
                error.code,
                f"rule {shown_in_message(rule.name)} of {shown_in_message(rule_set.name)}: {error.message}",
                {"rule": rule.name},
            ) from None
    try:
        return Rules(rule_set, rules_version(rule_set), tuple(compiled))
    except NotCanonical as error:
        raise _invalid(rule_set.name, f"it cannot be versioned: {error.message}") from None


def result_of(report: Report, *, repair_attempts: int = 0) -> ValidationResult:
    """The report as it leaves the house, with how often the answer was asked for again."""
    failed = {breach.rule for breach in report.breaches}
    return ValidationResult(
        checks_passed=len(report.passed),
        checks_failed=len(failed),
        repair_attempts=repair_attempts,
        violations=tuple(breach_text(breach) for breach in report.breaches),
    )


def confidence_of(result: ValidationResult) -> tuple[float, ConfidenceSource] | None:
    """The share of the checks that passed, and where that comes from; None where nothing was checked."""
    checks = result.checks_passed + result.checks_failed
    return (result.checks_passed / checks, ConfidenceSource.VALIDATION) if checks else None


def _check_names(rule_set: RuleSet) -> None:
    names = [rule.name for rule in rule_set.rules] + [check.name for check in rule_set.semantic]
    for name in names:
        if not name.strip() or len(name) > NAME_CHARS_MAX:
            raise _invalid(
                rule_set.name, f"a rule is named {shown_in_message(name)}; give it 1 to {NAME_CHARS_MAX} characters"
            )
        if names.count(name) > 1:
            raise _invalid(rule_set.name, f"two rules are named {shown_in_message(name)}; a breach must say which")
    for check in rule_set.semantic:
        asked: object = check.question
        if not isinstance(asked, str) or not asked.strip():
            raise _invalid(
                rule_set.name,
                f"check {shown_in_message(check.name)} asks {clipped(asked)}; give it a question in words",
            )
    if rule_set.retry.reasks_max < 0:
        raise _invalid(rule_set.name, f"reasks_max={rule_set.retry.reasks_max} must be 0 or more")
    for name in rule_set.retry.final_rules:
        if name not in names:
            raise _invalid(
                rule_set.name, f"final_rules names {shown_in_message(name)}, which is none of {', '.join(names)}"
            )


def _invalid(name: str, reason: str) -> RequestRejected:
    return RequestRejected(
        RULES_INVALID, f"rule set {shown_in_message(name)}: {reason}", {"rules": name[:NAME_CHARS_MAX]}
    )
