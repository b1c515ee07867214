"""Predicates: for every check, the plain function that judges one value by it.

Rule 1: a predicate yields what is wrong, with the value, the limit and what would be right; nothing means that it holds.
Rule 2: limits are looked at when a predicate is made, so a rule that nothing could pass is refused before it runs.
Rule 3: a truth value is no number, and a number is no text.
"""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from math import isfinite
from typing import Any, NamedTuple

from remit.core.failure import RequestRejected
from remit.core.regex import regex
from remit.validate.breach import shown_in_message
from remit.validate.leaks import leaks_in
from remit.validate.rule_set import (
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
    RuleCheck,
)
from remit.validate.safe_regex import Pattern, compile_pattern

LIMIT_REFUSED = "LIMIT_REFUSED"

# Lists of words, fields and values are written by people.
LIST_ENTRIES_MAX = 500
# Citations stand in brackets, one or several: [1], [2, 3].
_citations = regex(r"\[(\d{1,4}(?:\s?,\s?\d{1,4}){0,20})\]")


class Said(NamedTuple):
    """What is wrong with a value: the problem, the value as it may be shown, and the limit with the way out."""

    problem: str
    value: str = ""
    limit: str = ""


# A value and the number of sources that there are to cite.
FindFaults = Callable[[Any, int], Iterator[Said]]


class Predicate(NamedTuple):
    """A function that finds what is wrong with a value, and whether it reads values of any kind or texts alone."""

    faults: FindFaults
    reads_values: bool = False


def predicate_of(check: RuleCheck) -> Predicate:
    """The predicate of a check; raises RequestRejected for limits that make no sense."""
    match check:
        case NotEmpty():
            return Predicate(_not_empty)
        case Length():
            return Predicate(_length(check))
        case MustMatch(pattern):
            return Predicate(_must_match(compile_pattern(pattern)))
        case MustNotMatch(pattern):
            return Predicate(_must_not_match(compile_pattern(pattern)))
        case MustMention(words):
            return Predicate(_must_mention(_listed("words", words)))
        case MustNotMention(words):
            return Predicate(_must_not_mention(_listed("words", words)))
        case RequiredFields(fields):
            return Predicate(_required_fields(_listed("fields", fields)), reads_values=True)
        case NumberRange():
            return Predicate(_number_range(check), reads_values=True)
        case AllowedValues():
            return Predicate(_allowed_values(check), reads_values=True)
        case Citations():
            return Predicate(_citing(check))
        case NoSecrets():
            return Predicate(_no_secrets)


def _not_empty(text: str, _: int) -> Iterator[Said]:
    if not text.strip():
        yield Said("is empty", "", "write something")


def _length(check: Length) -> FindFaults:
    least, most = check.chars_min, check.chars_max
    if least < 0 or most < 0 or (most and least > most) or not (least or most):
        raise _refused(f"chars_min={least} and chars_max={most} must be 0 or more, not both 0, and in order")

    def faults(text: str, _: int) -> Iterator[Said]:
        if len(text) < least:
            yield Said(
                f"has {len(text)} characters", shown_in_message(text), f"chars_min={least}, {least - len(text)} more"
            )
        if most and len(text) > most:
            yield Said(
                f"has {len(text)} characters", shown_in_message(text), f"chars_max={most}, {len(text) - most} fewer"
            )

    return faults


def _must_match(pattern: Pattern) -> FindFaults:
    def faults(text: str, _: int) -> Iterator[Said]:
        if len(text) > pattern.chars_max:
            yield _too_long(text, pattern)
        elif not pattern.occurs_in(text):
            yield Said("does not match the pattern", shown_in_message(text), f"pattern={pattern.source}")

    return faults


def _must_not_match(pattern: Pattern) -> FindFaults:
    def faults(text: str, _: int) -> Iterator[Said]:
        if len(text) > pattern.chars_max:
            yield _too_long(text, pattern)
        elif pattern.occurs_in(text):
            found = pattern.first_in(text)
            where = f" at character {found.start}" if found else ""
            problem = f"matches the forbidden pattern{where}; leave that out"
            yield Said(problem, shown_in_message(found.text if found else text), f"pattern={pattern.source}")

    return faults


def _too_long(text: str, pattern: Pattern) -> Said:
    limit = f"chars_max={pattern.chars_max} for pattern={pattern.source}"
    return Said(f"has {len(text)} characters, too many to be judged; shorten it", "", limit)


def _must_mention(words: tuple[str, ...]) -> FindFaults:
    def faults(text: str, _: int) -> Iterator[Said]:
        folded = _folded(text)
        for word in words:
            if _folded(word) not in folded:
                yield Said(f"does not mention {shown_in_message(word)}; add it")

    return faults


def _must_not_mention(words: tuple[str, ...]) -> FindFaults:
    def faults(text: str, _: int) -> Iterator[Said]:
        folded = _folded(text)
        for word in words:
            if (start := folded.find(_folded(word))) >= 0:
                around = folded[max(0, start - 20) : start + len(word) + 20].strip()
                yield Said(f"mentions {shown_in_message(word)}; leave it out", shown_in_message(around))

    return faults


def _folded(text: str) -> str:
    """A text without case, as words between single blanks, so that a word is not found inside another."""
    return f" {' '.join(_spoken.findall(text.casefold()))} "


_spoken = regex(r"\w+")


def _required_fields(fields: tuple[str, ...]) -> FindFaults:
    def faults(value: Any, _: int) -> Iterator[Said]:
        if not isinstance(value, dict):
            yield Said("must be an object", shown_in_message(value), f"fields={', '.join(fields)}")
            return
        for field in fields:
            if value.get(field) is None:
                near = get_close_matches(
                    field, [key for key in list(value)[:LIST_ENTRIES_MAX] if isinstance(key, str)], n=1
                )
                hint = f"; {shown_in_message(near[0])} may be meant" if near else ""
                yield Said(f"lacks the field {shown_in_message(field)}{hint}", "", f"fields={', '.join(fields)}")

    return faults


def _number_range(check: NumberRange) -> FindFaults:
    least, most = check.least, check.most
    ends = [end for end in (least, most) if end is not None]
    if not ends or not all(isfinite(end) for end in ends) or ends != sorted(ends):
        raise _refused(f"least={least} and most={most} must be numbers, not both absent, and in order")
    limit = ", ".join(f"{name}={end!r}" for name, end in (("least", least), ("most", most)) if end is not None)

    def faults(value: Any, _: int) -> Iterator[Said]:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # NaN
            yield Said("must be a number", shown_in_message(value), limit)
        elif (least is not None and value < least) or (most is not None and value > most):
            yield Said("is out of range", shown_in_message(value), limit)

    return faults


def _allowed_values(check: AllowedValues) -> FindFaults:
    values = check.values
    if not 0 < len(values) <= LIST_ENTRIES_MAX:
        raise _refused(f"values has {len(values)} entries; give 1 to {LIST_ENTRIES_MAX}")
    allowed = {_kind_and_value(value) for value in values}
    texts = [value for value in values if isinstance(value, str)]
    limit = f"values={', '.join(shown_in_message(value) for value in values[:10])}{', …' if len(values) > 10 else ''}"

    def faults(value: Any, _: int) -> Iterator[Said]:
        if not isinstance(value, str | int | float) or _kind_and_value(value) not in allowed:
            near = get_close_matches(value[:200], texts, n=1) if isinstance(value, str) else []
            hint = f"; {shown_in_message(near[0])} may be meant" if near else ""
            yield Said(f"is not one of the allowed values{hint}", shown_in_message(value), limit)

    return faults


def _kind_and_value(value: str | float) -> tuple[bool, str | float]:
    """True is not 1, while 1 and 1.0 are the same number."""
    return isinstance(value, bool), value


def _citing(check: Citations) -> FindFaults:
    if check.citations_min < 0:
        raise _refused(f"citations_min={check.citations_min} must be 0 or more")

    def faults(text: str, sources: int) -> Iterator[Said]:
        cited = {int(number) for found in _citations.finditer(text) for number in found[1].split(",")}
        if len(cited) < check.citations_min:
            limit = f"citations_min={check.citations_min}"
            yield Said(f"cites {len(cited)} sources; cite them by number, as in [1]", "", limit)
        for number in sorted(cited) if sources else ():
            if not 1 <= number <= sources:
                yield Said("cites a source that is not there", f"[{number}]", f"sources are [1] to [{sources}]")

    return faults


def _no_secrets(text: str, _: int) -> Iterator[Said]:
    for leak in leaks_in(text):
        yield Said(
            f"holds what looks like a secret ({leak.kind}) at character {leak.start}; leave it out",
            f"{leak.chars} characters",
        )


def _listed(name: str, entries: tuple[str, ...]) -> tuple[str, ...]:
    if not 0 < len(entries) <= LIST_ENTRIES_MAX or not all(_folded(entry).strip() for entry in entries):
        raise _refused(f"{name} has {len(entries)} entries; give 1 to {LIST_ENTRIES_MAX}, each with a letter or digit")
    return entries


def _refused(reason: str) -> RequestRejected:
    return RequestRejected(LIMIT_REFUSED, reason)
