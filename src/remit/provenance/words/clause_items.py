"""Clause items: the words and values of a clause in order, what is read out of them, and what they are understood by.

Rule 1: a value has what leads it in, which is the outer preposition before it, what picks it, a comma, or nothing.
Rule 2: some words are understood only by what stands beside them: "no" before a number, a unit behind one.
"""

from collections.abc import Callable

from remit.core.record import Record
from remit.core.regex import regex
from remit.provenance.words.prepositions import BOUNDS, CORRECTING, LEADS, PICKING, WHOLES
from remit.provenance.words.said_values import MOMENT, NUMBER, SaidValue
from remit.provenance.words.units import UNITS
from remit.provenance.words.vocabulary import (
    ARTICLES,
    CENTS,
    IDLE,
    LEADING_ON,
    NAMING,
    REPORTING,
    TIMES,
    UNIVERSALS,
)

QUOTE = "quote"
# What picks another one than the one that is named, or says how nearly.
ORDINAL = regex(
    r"\d+(?:st|nd|rd|th)|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|.*ly|.*est|half|twice|double"
    r"|next|other|previous|former|latter"
)
CUT = regex(r"[,;()\u2013\u2014]|\s-+\s|:(?=\s)")
# What leads a value in stands no further before it; beyond that it is not known.
_LEAD_WORDS_MAX = 12
UNKNOWN = "?"


class Slot(Record):
    """A value of a clause: its role, and the stems of the nouns beside it."""

    value: SaidValue
    role: str
    nouns: frozenset[str]
    is_object: bool = False
    # Whether the call has to take it up; what an order points back to may hold more.
    is_needed: bool = True
    # The word right before it, an article left out, and the signs between.
    lead: str = ""
    gap: str = ""
    # The preposition that leads it in, or what picks it.
    before: str = ""


class Stray(Record):
    """A word that is not understood by itself."""

    text: str
    start: int
    end: int
    stems: frozenset[str] = frozenset()
    # Whether a text may take it up, because it says nothing of the order itself.
    is_sayable: bool = False
    # Whether it stands before the order, so that no record is picked by it.
    is_fronted: bool = False
    # What leads it in, as a slot has it, and the stems of the words beside it.
    before: str = ""
    beside: frozenset[str] = frozenset()


class Item(Record):
    """A word or a value of a clause."""

    start: int
    end: int
    # A word, in lower case, or a value.
    text: str = ""
    place: int = -1
    value: SaidValue | None = None
    # Whether it is a word in small letters.
    is_plain: bool = False
    # The signs between it and the item before it.
    gap: str = ""


def led_in_by(items: list[Item], at: int) -> str:
    """What leads an item in: the outer preposition before it, what picks it, a comma, or nothing.

    "of" leads nothing in behind what it is a part of: "5 kg of malt", "all of A and B".
    """
    found, last, first = "", "", at - _LEAD_WORDS_MAX
    while at > 0 and items[at - 1].value is None:
        if CUT.search(items[at].gap):
            return found or ","
        if at <= first:
            return found or UNKNOWN
        at -= 1
        word = items[at].text
        is_sign = word == "no" and at > 0 and items[at - 1].text not in LEADS | {""}
        is_other = word in CORRECTING and at > 0 and items[at - 1].value is not None
        if (is_other or (word in PICKING and not is_sign)) and not found:
            return word
        if word in LEADS and last:
            return last if word == "in" else f"{word} {last}"  # "book it in on", "as on"
        if word == "of" and at > 0 and (items[at - 1].text in WHOLES or _follows_number(items, at - 1)):
            return found
        last = word if word in LEADS else ""
        found = last if last and found in ("", "of") else found
    return found or ("," if CUT.search(items[at].gap) else "")


def _numbers(items: list[Item], at: int) -> bool:
    """Whether "no." leads to a number: "ticket no. 17"; without its full stop it takes out: "all hives no HV-12"."""
    ahead = items[at + 1]
    is_short = items[at].text == "nr" or ahead.gap.startswith(".")
    is_short = is_short and not (items[at - 1].text in UNIVERSALS or items[at - 1].text.endswith("s"))
    return is_short and not ahead.gap.strip(" .:") and ahead.value is not None and not items[at].gap.strip()


def _says_how_often(items: list[Item], at: int) -> bool:
    """Whether a word says how often, right behind what it is said of; one that stands apart may say anything."""
    ahead = items[at + 1]
    if at == 0 or items[at].gap.strip():
        return False
    return at + 2 == len(items) or CUT.search(ahead.gap) is not None or ahead.text in IDLE | {"and"}


def _follows_number(items: list[Item], at: int) -> bool:
    return at > 0 and is_number(items[at - 1])


def word_before(items: list[Item], at: int) -> str:
    """The word right before an item, an article left out; none before a value or at the beginning."""
    while at > 0 and items[at - 1].text in ARTICLES - UNIVERSALS:
        at -= 1
    return items[at - 1].text if at > 0 else ""


def _is_announced(items: list[Item], at: int) -> bool:
    """Whether "the following" leads to a list behind a colon."""
    ahead = items[at + 1 : at + 4]
    return at > 0 and items[at - 1].text == "the" and any(":" in one.gap and one.value is not None for one in ahead)


def next_cut(items: list[Item], at: int) -> int:
    """The number of the item behind the next sign that parts clauses."""
    return next((one for one in range(at + 1, len(items)) if CUT.search(items[one].gap)), len(items) - 1)


def is_number(item: Item) -> bool:
    """Whether an item is a number."""
    return item.value is not None and item.value.sort == NUMBER


def _counts(item: Item) -> bool:
    """Whether an item is a number that counts things and measures nothing: "the first 3 rows", not "the first 20 mg"."""
    return item.value is not None and item.value.number is not None and item.value.number.unit not in UNITS


def _is_moment(item: Item) -> bool:
    return item.value is not None and item.value.sort == MOMENT


def _is_quote(item: Item) -> bool:
    return item.value is not None and item.value.sort == QUOTE


def is_reporting(items: list[Item], at: int) -> bool:
    """Whether the user is to be told of it; what is to be told first, or before something, holds the order back."""
    is_led = items[at].text in REPORTING and items[at + 1].text in ("me", "us", "what")
    return is_led and not any(ORDINAL.fullmatch(one.text) or one.text in BOUNDS | {"first"} for one in items[at:])


# Words that are understood by what stands beside them.
BESIDE: dict[str, Callable[[list[Item], int], bool]] = {
    **dict.fromkeys(TIMES, _says_how_often),
    **dict.fromkeys((*CENTS, "percent", *UNITS), _follows_number),
    **dict.fromkeys(("no", "nr"), _numbers),
    **dict.fromkeys(("first", "top"), lambda items, at: _counts(items[at + 1])),
    # "with the text 'Hi'"
    **dict.fromkeys(("text", "words", "line", "content", "message"), lambda items, at: _is_quote(items[at + 1])),
    "between": lambda items, at: [_is_moment(one) for one in items[at + 1 : at + 4]] == [True, False, True],
    # "30 min from now", "for now"
    **dict.fromkeys(("now", "then", "here"), lambda items, at: at == 0 or items[at - 1].text not in LEADS),
    "that": lambda items, at: items[at + 1].text in NAMING,
    "following": _is_announced,
    "one": lambda items, at: items[at + 1].text != "of",
    "thank": lambda items, at: items[at + 1].text == "you",
    "you": lambda items, at: items[at - 1].text == "thank",
    # "write to her that …", not "to her sister"
    "her": lambda items, at: items[at - 1].text in LEADS and items[at + 1].text in LEADING_ON | {""},
    "up": lambda items, at: at == 0 and items[1].text != "to",
}
