"""Literals: true, false and null as models write them, where they can mean one value only.

Rule 1: how Python writes them, and those who like capitals, has one meaning. A word that is no value of JSON has none.
Rule 2: a literal that was cut is taken where what is left of it can be no other literal.
"""

from types import MappingProxyType

from remit.constraint.reading.repair_log import Reason, RepairCode, RepairLog, Unreadable

LITERALS = MappingProxyType({"true": True, "false": False, "null": None})

_OTHERS = MappingProxyType(
    {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "None": "null", "NULL": "null", "Null": "null"}
)
# Words that may mean null, or may not.
_NO_VALUES = frozenset({"NaN", "nan", "NAN", "Infinity", "infinity", "inf", "undefined"})
_CHARS_MIN = 2


def is_literal(word: str) -> bool:
    """Whether a word is a literal of JSON, or one as other languages write it."""
    return word in LITERALS or word in _OTHERS


def read_literal(word: str, at: int, log: RepairLog) -> bool | None:
    """The value of a literal."""
    name = _OTHERS.get(word, word)
    if name != word:
        log.note(RepairCode.LITERAL_REPLACED, at, word, name)
    return LITERALS[name]


def read_beginning(word: str, at: int, log: RepairLog) -> bool | None:
    """The value of the literal of which a text has the beginning and then ends."""
    fitting = [literal for literal in LITERALS if literal.startswith(word)]
    if len(word) < _CHARS_MIN or not fitting:
        raise Unreadable(Reason.CUT_OFF, at, "the text ends within a word")
    log.note(RepairCode.LITERAL_COMPLETED, at, word, fitting[0])
    return LITERALS[fitting[0]]


def refuse_no_value(word: str, at: int) -> None:
    """Refuse a word that stands for the absence of a value in other languages."""
    if word in _NO_VALUES:
        raise Unreadable(Reason.NO_NUMBER, at, f"{word} is no value of JSON; it may stand for null or for a mistake")
