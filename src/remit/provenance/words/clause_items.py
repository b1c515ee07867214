"""Clause items: the words and values of a clause in order, what was read out of them, and what leads each one in."""

from remit.core.record import Record
from remit.core.regex import regex
from remit.provenance.words.prepositions import CORRECTING, LEADS, PICKING, WHOLES
from remit.provenance.words.said_values import NUMBER, SaidValue

# Signs that part clauses.
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
        if word == "of" and at > 0 and (items[at - 1].text in WHOLES or _is_measured(items, at - 1)):
            return found
        last = word if word in LEADS else ""
        found = last if last and found in ("", "of") else found
    return found or ("," if CUT.search(items[at].gap) else "")


def _is_measured(items: list[Item], at: int) -> bool:
    """Whether a word is the unit of the number before it."""
    value = items[at - 1].value if at else None
    return value is not None and value.sort == NUMBER
