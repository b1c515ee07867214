"""Rules: what an answer must be like, as data that can be hashed, shown, versioned and read from a file.

Rule 1: a rule has a name, a check with its limits, a place in the value, and a severity; it holds no code.
Rule 2: a rule that blocks sends the answer back or ends the run; one that warns is told and lets the answer pass.
Rule 3: equal rule sets have equal versions, wherever they were written.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from remit.core.journal.versions import content_version
from remit.core.record import MadeByHand, Record

# As often as an answer is asked for again by default.
REASKS_MAX_DEFAULT = 2


class Severity(StrEnum):
    """What a broken rule does."""

    BLOCK = "block"
    WARN = "warn"


class NotEmpty(Record, tag="not_empty"):
    """There is something other than white space."""


class Length(Record, tag="length"):
    """The text has at least and at most so many characters; 0 says nothing about that end."""

    chars_min: int = 0
    chars_max: int = 0


class MustMatch(Record, tag="must_match"):
    """A pattern occurs in the text."""

    pattern: str


class MustNotMatch(Record, tag="must_not_match"):
    """A pattern occurs nowhere in the text."""

    pattern: str


class MustMention(Record, tag="must_mention"):
    """Every one of these words or phrases occurs in the text, whatever its case."""

    words: tuple[str, ...]


class MustNotMention(Record, tag="must_not_mention"):
    """None of these words or phrases occurs in the text, whatever its case."""

    words: tuple[str, ...]


class RequiredFields(Record, tag="required_fields"):
    """An object has all of these fields, and none of them is null."""

    fields: tuple[str, ...]


class NumberRange(Record, tag="number_range"):
    """A number lies between two others, both included; None leaves an end open."""

    least: float | None = None
    most: float | None = None


class AllowedValues(Record, tag="allowed_values"):
    """A text, a number or a truth value is one of these."""

    values: tuple[str | int | float | bool, ...]


class Citations(Record, tag="citations"):
    """The text cites its evidence as [1], [2] and so on, and nothing that is not there."""

    citations_min: int = 1


class NoSecrets(Record, tag="no_secrets"):
    """The text holds nothing that looks like a key, a token or a password in an address."""


RuleCheck: TypeAlias = (
    NotEmpty
    | Length
    | MustMatch
    | MustNotMatch
    | MustMention
    | MustNotMention
    | RequiredFields
    | NumberRange
    | AllowedValues
    | Citations
    | NoSecrets
)

# Every check by the name it has in a file.
CHECKS: Mapping[str, type[RuleCheck]] = MappingProxyType(
    {
        "not_empty": NotEmpty,
        "length": Length,
        "must_match": MustMatch,
        "must_not_match": MustNotMatch,
        "must_mention": MustMention,
        "must_not_mention": MustNotMention,
        "required_fields": RequiredFields,
        "number_range": NumberRange,
        "allowed_values": AllowedValues,
        "citations": Citations,
        "no_secrets": NoSecrets,
    }
)


class Rule(MadeByHand):
    """A named check. `at` is a JSON pointer into the value, where `*` stands for every entry; empty is the whole.

    A rule about a place where nothing stands is broken, unless it is optional.
    """

    name: str
    check: RuleCheck
    at: str = ""
    severity: Severity = Severity.BLOCK
    optional: bool = False


class SemanticCheck(MadeByHand):
    """A question about the meaning of an answer, which only a judge can settle. A yes means that all is well."""

    name: str
    question: str
    severity: Severity = Severity.BLOCK


class RetryPolicy(Record):
    """How often an answer may be asked for again, and which rules, once broken, are not worth another attempt."""

    reasks_max: int = REASKS_MAX_DEFAULT
    final_rules: tuple[str, ...] = ()


class RuleSet(Record):
    """Rules that are judged together, the questions for a judge, and when to try again."""

    name: str
    rules: tuple[Rule, ...] = ()
    semantic: tuple[SemanticCheck, ...] = ()
    retry: RetryPolicy = RetryPolicy()


def rules_version(rules: RuleSet) -> str:
    """The content hash of a rule set."""
    return content_version(rules)
