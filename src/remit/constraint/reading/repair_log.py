"""Repairs: what was changed to make a text readable, and why a text is not readable.

Rule 1: a repair is a change that leaves one meaning. Where there are two, the text is refused with a reason.
Rule 2: every change is written down with its place; only the listing is bounded, never the counting.
"""

from enum import StrEnum
from typing import Any

from remit.core.record import Record

# Enough to see what kind of text it was; a Python dict of some hundred texts has a repair for every quote.
REPAIRS_LISTED_MAX = 50
# What is shown of the text that was changed.
SHOWN_CHARS_MAX = 60


class RepairCode(StrEnum):
    """What was done to a text."""

    BOM_REMOVED = "bom_removed"
    SPACE_REPLACED = "space_replaced"
    REASONING_REMOVED = "reasoning_removed"
    FENCE_REMOVED = "fence_removed"
    PROSE_REMOVED = "prose_removed"
    COMMENT_REMOVED = "comment_removed"
    ESCAPING_UNDONE = "escaping_undone"
    STRING_UNWRAPPED = "string_unwrapped"
    OPENER_ADDED = "opener_added"
    CLOSER_ADDED = "closer_added"
    CLOSER_DROPPED = "closer_dropped"
    COMMA_ADDED = "comma_added"
    COMMA_DROPPED = "comma_dropped"
    COLON_ADDED = "colon_added"
    SEPARATOR_REPLACED = "separator_replaced"
    KEY_QUOTED = "key_quoted"
    VALUE_QUOTED = "value_quoted"
    QUOTES_REPLACED = "quotes_replaced"
    QUOTE_ESCAPED = "quote_escaped"
    CONTROL_ESCAPED = "control_escaped"
    ESCAPE_REPLACED = "escape_replaced"
    LITERAL_REPLACED = "literal_replaced"
    LITERAL_COMPLETED = "literal_completed"
    NUMBER_REWRITTEN = "number_rewritten"
    KEY_REPEAT_DROPPED = "key_repeat_dropped"
    VALUE_REPEAT_DROPPED = "value_repeat_dropped"
    VALUES_LISTED = "values_listed"
    ENUM_MATCHED = "enum_matched"
    SPACE_TRIMMED = "space_trimmed"
    # The last of a long list: how many more there were.
    NOT_LISTED = "not_listed"


class Reason(StrEnum):
    """Why a text has no one meaning."""

    EMPTY = "empty"
    NO_JSON = "no_json"
    UNEXPECTED = "unexpected"
    SEVERAL_VALUES = "several_values"
    PROSE_UNCLEAR = "prose_unclear"
    CUT_OFF = "cut_off"
    KEY_REPEATED = "key_repeated"
    BARE_WORD = "bare_word"
    VALUE_MISSING = "value_missing"
    ELIDED = "elided"
    NO_NUMBER = "no_number"
    NUMBER_UNCLEAR = "number_unclear"
    QUOTES_UNCLEAR = "quotes_unclear"
    COMMENT_UNCLEAR = "comment_unclear"
    ESCAPE_UNCLEAR = "escape_unclear"
    TOO_DEEP = "too_deep"
    TOO_LONG = "too_long"


class Repair(Record):
    """One change: at which character of the text, or at which path of the value, from what to what."""

    code: RepairCode
    at: int = 0
    path: str = ""
    was: str = ""
    became: str = ""


class NoValue:
    """Stands for a value that is not there, since null is one."""


NO_VALUE = NoValue()


class Unreadable(ValueError):
    """A text without one meaning: the reason, its place, and what was read whole before it."""

    def __init__(self, reason: Reason, at: int, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.at = at
        self.message = message
        self.partial: Any = NO_VALUE
        self.repairs: tuple[Repair, ...] = ()


class RepairLog:
    """The repairs of one text, in the order in which they were made."""

    def __init__(self) -> None:
        self.listed: list[Repair] = []
        self.codes: set[RepairCode] = set()
        self.count = 0

    def note(self, code: RepairCode, at: int, was: str = "", became: str = "", *, path: str = "") -> None:
        """Write one change down."""
        self.count += 1
        self.codes.add(code)
        if len(self.listed) < REPAIRS_LISTED_MAX:
            self.listed.append(Repair(code, at, path, repair_excerpt(was), repair_excerpt(became)))

    def extend(self, other: "RepairLog") -> None:
        """Take over what another reading wrote down."""
        room = REPAIRS_LISTED_MAX - len(self.listed)
        self.listed += other.listed[:room]
        self.codes |= other.codes
        self.count += other.count

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The changes; of a long list the first ones, and how many more there were."""
        unlisted = self.count - len(self.listed)
        if not unlisted:
            return tuple(self.listed)
        return (*self.listed, Repair(RepairCode.NOT_LISTED, was=f"{unlisted} more repairs"))


def repair_excerpt(text: str) -> str:
    """As much of a text as a record of a repair holds."""
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."


def repair_line(repair: Repair) -> str:
    """A repair in one line, for readers of the run."""
    where = repair.path or f"character {repair.at}"
    change = f": {repair.was!r}" if repair.was else ""
    return f"{repair.code} at {where}{change}{f' became {repair.became!r}' if repair.became else ''}"
