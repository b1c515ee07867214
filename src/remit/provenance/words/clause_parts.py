"""Clause parts: a stretch of a clause read word by word: the values in their roles, and the words that are left over.

Rule 1: a word is understood where it is an article, a preposition, a noun of the tools, or one of few that change nothing.
        Any other is a stray. No list says which words are dangerous.
Rule 2: a value has the role of the preposition before it, or is the direct object, and is called by the nouns beside it.
Rule 3: what is to be said to a person, what an order is good for, and what a pronoun tells, gives no value.
Rule 4: what stands before a verb is polite, is an order of its own, tells something of what the order points back to, or is
        left over.
        What stands there behind a preposition is read like the clause: an argument takes it up, or the order asks.
Rule 5: a clause with a subject of its own, in brackets or behind a comma, a dash or a semicolon, is left over as a whole: it
        may take the order back, report it, or mean another thing.
"""

import re
from itertools import pairwise

from remit.core.record import replace
from remit.core.regex import regex
from remit.provenance.words.blocks import BLOCK
from remit.provenance.words.clause_items import (
    BESIDE,
    CUT,
    ORDINAL,
    QUOTE,
    Item,
    Slot,
    Stray,
    is_number,
    is_reporting,
    led_in_by,
    next_cut,
    word_before,
)
from remit.provenance.words.negation import NEGATING
from remit.provenance.words.prepositions import AIM, BEFORE_RANGES, BOUNDS, FOR, IN, OBJECT, ROLES, TO, WHOLES
from remit.provenance.words.remarks import REMARK_WORDS_MAX, REMARKING, THING, is_lead, is_remark_within
from remit.provenance.words.said_values import MOMENT, NAME, NUMBER, SaidValue
from remit.provenance.words.tool_words import Lexicon
from remit.provenance.words.units import UNITS, kin_of
from remit.provenance.words.vocabulary import (
    ANNOUNCING,
    ARTICLES,
    BACK,
    CURRENCIES,
    FUNCTION_WORDS,
    GREETING,
    HAVING,
    IDLE,
    LEADING_ON,
    NAMING,
    NUMBERING,
    OPENING,
    PARTICLES,
    PAYMENTS,
    REGARDING,
    REPORTING,
    REQUESTING,
    SAYABLE,
    STARTING,
    STATING,
    SUBJECTS,
    SUPERLATIVES,
    TELLING,
    TIMES,
    UNIVERSALS,
    WISHING,
    name_stems,
    stem,
)

# Signs that part words, or stand on a value; any other is left over.
_DASH = regex(r"\s?[-\u2013]\s?")
_DASHED = regex(r"[-\u2013\u2014]")
_CLOSING = r"[\"'\u201d\u2019\u00bb`)%$\u20ac\u00a3\u00a5]*"
_STOP = rf"{_CLOSING}\s*(?:(?:[.?]|!{{1,3}}){_CLOSING}|[,;:](?=\s|$|[\"'\u201d\u2019\u00bb]))?"
_SIGNS = regex(rf"{_STOP}(?:\s*[-\u2013\u2014])?\s*[\"'\u201c\u2018\u00ab`($\u20ac\u00a3\u00a5#@&%-]*\s*")
# What is idle behind an order is blanked out and leaves its own full stop: "… . Have a nice day!".
_END_SIGNS = regex(rf"{_STOP}\s*(?:(?<=\s\s)[.!]\s*)?")
# Before the verb of an order no sign of a number, a comment or a heading stands.
_FORE_SIGNS = regex(r"(?:[\s,.:!?()\"'\u201c\u2018\u00ab`*\u2022]|(?<!-)[-\u2013\u2014](?!-))*")
# Where something starts or ends.
_EDGES = frozenset(map(stem, ("start", "begin", "end")))
# More words behind "not" are a sentence.
_EXCLUDED_MAX = 5


class ClausePart:
    """What was understood of one stretch of words."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self.slots: list[Slot] = []
        self.strays: list[Stray] = []
        self.things: list[str] = []
        self.told: list[tuple[int, int]] = []
        self.points_back = False
        self._role = OBJECT
        self._nouns: list[str] = []
        self._is_said = False
        # Whether what stands behind "for" tells what it is good for.
        self._is_aim = False
        # Whether a text is described that does not exist yet: "a short summary".
        self._is_indefinite = False
        # Whether what follows describes what a text is to say: "mail Ann the list of …".
        self._is_described = False
        # The strays from here on may be said again by a number in brackets.
        self._restated = 0

    def read(self, items: list[Item]) -> None:
        """Read on from a verb."""
        at = self._phrase(items)
        while at < len(items) - 1:
            at = self._step(items, at)
        self._sign(items[-1], _END_SIGNS)

    def lead_in(self, items: list[Item], *, points_back: bool) -> None:
        """Read what stands before the verb of an order."""
        for at, one in enumerate(items):
            self._sign(one, _SIGNS if at or one.value is not None else _FORE_SIGNS)
        cuts = [at for at, one in enumerate(items) if at and CUT.search(one.gap)]
        edges = [0, *cuts, *([len(items) - 1] if len(items) - 1 not in cuts else [])]
        for start, stop in pairwise(edges):
            part = items[start:stop]
            said = [one.text or (one.value.text.lower() if one.value is not None else "") for one in part]
            is_request = all(word in REQUESTING for word in said)
            if (is_request and (not CUT.search(items[stop].gap) or SUBJECTS.isdisjoint(said))) or (
                said[0] in GREETING and all(one.value is not None for one in part[1:])
            ):
                continue
            if is_lead(said, self._lexicon):
                self.told.append((part[0].start, part[-1].end))
                continue
            if ":" in items[stop].gap and all(word in ANNOUNCING | REQUESTING or word.isdecimal() for word in said):
                continue
            is_first = said[-1] in ("and", "then") and said[0] in OPENING and NEGATING.isdisjoint(said)
            if is_first and not points_back and FUNCTION_WORDS.issuperset(said[1:]):  # "look around and"
                continue
            if points_back or said[0] in ROLES or said[0] in BOUNDS:
                idle = REQUESTING | REGARDING if points_back else REQUESTING
                while len(part) > 1 and part[0].text in (idle - {"to"} if part[1].value is not None else idle):
                    part = part[1:]
                self.recall([*part, items[stop]], is_order=not points_back or not self._is_report(part))
                if not points_back:
                    self.slots = [replace(one, is_needed=True) for one in self.slots]
            elif self._is_report(part):
                self._wish(part, items[stop])
            else:
                self.strays += [_stray(one) for one in part if one.text not in REQUESTING]

    def _wish(self, part: list[Item], ahead: Item) -> None:
        """Read what the user wants in all before the order, "I need to get from A to B": the order takes up its values."""
        verb = next((at for at, one in enumerate(part) if one.text == "to" and part[at - 1].text in WISHING), -1)
        if verb < 0 or {one.text for one in part[:verb]} - REQUESTING or all(one.value is None for one in part):
            self.leave_over(part)
            return
        self.recall([*part[verb + 2 :], ahead], is_order=True)
        self.slots = [replace(slot, is_needed=True) for slot in self.slots]

    def recall(self, items: list[Item], *, is_order: bool) -> None:
        """Read what an order points back to; of a report, what is said of the thing is no matter."""
        if not is_order and len(items) > 1 and items[0].text in SUBJECTS:
            if items[0].text not in TELLING:
                self.leave_over(items[:-1])
                return
            items = items[2:]
        kept = -1
        for at, one in enumerate(items[:-1]):
            if kept < 0 and not is_order and self._is_verb(one):
                kept = len(self.strays)
            has_value, count = bool(self.slots), len(self.strays)
            self._step(items, at)
            if kept < 0 and not is_order and has_value and len(self.strays) > count:
                kept = count
        if kept >= 0:
            del self.strays[kept:]
        self.slots = [replace(slot, is_needed=False, is_object=False) for slot in self.slots]
        self._role, self._nouns = OBJECT, []

    def _is_report(self, part: list[Item]) -> bool:
        return part[0].text in SUBJECTS | {"need"} or any(map(self._is_verb, part[1:]))

    def _is_verb(self, item: Item) -> bool:
        word = item.text
        if word in HAVING or word in STATING:
            return True
        if not word.isalpha() or word in FUNCTION_WORDS or stem(word) in self._lexicon.nouns:
            return False
        return word.endswith(("ed", "s")) and not word.endswith("ss")

    def _phrase(self, items: list[Item]) -> int:
        """How many words behind the verb belong to what the tool is asked with: "set up", "check out"."""
        said = tuple([one.text for one in items])
        return max((len(rest) for rest in self._lexicon.rests if said[: len(rest)] == rest), default=0)

    def _step(self, items: list[Item], at: int) -> int:
        """Take in one item; gives back the number of the next one."""
        item = items[at]
        self._sign(item)
        is_cut = CUT.search(item.gap) is not None
        if is_cut:
            self._nouns = []
            self._is_said = self._is_said or (":" in item.gap and self._lexicon.is_telling)
        if until := self._aside(items, at, is_cut=is_cut):
            return until
        if item.value is not None:
            self._take(item.value, items, at)
            return at + 1
        if item.text == "not" and item.is_plain and is_cut and (until := self._excluded(items, at)):
            return self._tell(items, at, until)
        if item.text == "who" and items[at - 1].text in UNIVERSALS and items[at + 1].text.endswith("s"):
            return at + 2
        if (is_cut or (at and items[at - 1].text in ("and", "then"))) and is_reporting(items, at):
            return self._tell(items, at, len(items) - 1)
        is_further = item.text in REPORTING and items[at + 1].value is not None and self._lexicon.is_telling
        if is_further and (is_cut or items[at - 1].text == "and"):
            self._role, self._nouns = TO, []  # "and tell ann@…"
            return at + 1
        if item.text in LEADING_ON and self._lexicon.is_telling:
            return self._tell(items, at, len(items) - 1)
        if item.text in ("a", "an") or item.text in ROLES:
            self._is_indefinite = item.text not in ROLES
        if not self._is_understood(items, at):
            self._read_noun(items, at)
        return at + 1

    def _aside(self, items: list[Item], at: int, *, is_cut: bool) -> int:
        """Where a remark ends, or a clause with a subject of its own, which is left over; nothing where none begins."""
        word = items[at].text
        is_stated = word == "it's" or (word == "it" and items[at + 1].text in STATING)
        is_left = is_cut and at and (word in SUBJECTS - {"it"} or is_stated)
        if not is_left and word not in REMARKING:
            return 0
        until = next_cut(items, at)
        # A thing that a reason names is no value: "because F-3 is flooded".
        part = items[at : min(until, at + REMARK_WORDS_MAX + 1)]
        said = [one.text or (THING if one.value is not None and _is_identifier(one.value) else "?") for one in part]
        if word in REMARKING and is_remark_within(said, self._lexicon, is_cut=is_cut):
            return self._tell(items, at, until)
        if is_left:
            self.leave_over(items[at:until])
        return until if is_left else 0

    def _excluded(self, items: list[Item], at: int) -> int:
        """Where what is led in by "not" ends, if it is a name or a noun: ", not to Ann", "(not b.txt)"."""
        until = next_cut(items, at)
        part = items[at + 1 : until]
        is_plain = all(
            not (one.is_plain or one.text in FUNCTION_WORDS)
            or one.text in ROLES
            or one.text in ARTICLES
            or stem(one.text) in self._lexicon.nouns
            for one in part
        )
        return until if part and is_plain and len(part) <= _EXCLUDED_MAX else 0

    def _sign(self, item: Item, signs: re.Pattern[str] = _SIGNS) -> None:
        gap = item.gap.replace(BLOCK, "") if self._lexicon.is_telling else item.gap
        if signs.fullmatch(gap) is None:
            self.strays.append(Stray(item.gap.strip(), item.start - len(item.gap), item.start))

    def leave_over(self, part: list[Item]) -> None:
        """Take in a clause that is not understood: nothing in it is a value, and a text alone may say it."""
        is_sayable = self._lexicon.is_telling
        self.told.append((part[0].start, part[-1].end))
        self.strays += [replace(_stray(one), stems=frozenset(), is_sayable=is_sayable) for one in part]

    def _tell(self, items: list[Item], at: int, until: int) -> int:
        self.told.append((items[at].start, items[until].start))
        return until

    def _take(self, value: SaidValue, items: list[Item], at: int) -> None:
        lexicon, before, after, nouns = self._lexicon, items[at], items[at + 1], set(self._nouns)
        if self._is_described:
            self.told.append((value.start, value.end))
            return
        if value.number is not None:
            nouns |= value.number.names
        if after.text and not after.gap.strip(" \"'"):
            nouns |= {stem(after.text)} & lexicon.nouns
        if before.gap.endswith("(") and after.gap.startswith(
            ")"
        ):  # It says again what stands before: "half of it (5)".
            del self.strays[self._restated :]
        if value.sort != MOMENT and _DASHED.search(before.gap):  # It may be a minus, or take the value out.
            self.strays.append(Stray(before.gap.strip(), value.start - len(before.gap), value.start))
        kin = kin_of(value.number.unit) if value.number is not None else frozenset()
        is_purpose = self._role == FOR and bool(nouns or self._is_aim) and lexicon.own.isdisjoint(nouns | kin)
        is_count = (
            value.sort == NUMBER
            and not lexicon.takes_numbers
            and (after.text in SUPERLATIVES or (after.text.endswith("s") and stem(after.text) in lexicon.called))
        )
        is_idle = is_purpose or is_count or value.text.lower() in ("today", "tonight")
        role = AIM if self._is_aim and lexicon.own.isdisjoint(nouns) else self._role
        is_needed = not is_idle and role != AIM
        lead, gap, led = word_before(items, at), before.gap, led_in_by(items, at)
        if value.sort == MOMENT and self.slots and self.slots[-1].value.sort == MOMENT:
            is_open = self.slots[-1].before in BEFORE_RANGES
            is_range = is_open and _DASH.fullmatch(gap) is not None and items[at - 1].value is self.slots[-1].value
            if is_range or (lead == "and" and self.slots[-1].lead == "between"):
                self.slots[-1] = replace(self.slots[-1], lead="from", before="from")
                lead, gap, led = "to", " ", "to"
        called, is_object = frozenset(nouns), role == OBJECT
        self.slots.append(
            Slot(
                value,
                role,
                nouns=called,
                is_object=is_object,
                is_needed=is_needed,
                lead=lead,
                gap=gap,
                before=led,
            )
        )
        self._nouns, self._restated, self._is_indefinite = [], len(self.strays), False
        if self._role == FOR and self._is_measure(value):
            self._role = OBJECT  # What follows "for 30 min" says no more what for.

    def _is_understood(self, items: list[Item], at: int) -> bool:
        """Whether a word has its place in any order, whatever the tool."""
        word, ahead = items[at].text, items[at + 1]
        if word in BACK:
            self.points_back = True
        elif word in ROLES:
            ahead = items[at + 2] if ahead.text == "the" and at + 2 < len(items) else ahead
            if word != "with" or ahead.text not in NUMBERING:  # "the ticket with the id 17" is that ticket.
                self._lead(word, items[at - 1].text if at else "")
        elif word in PARTICLES:
            self._role = OBJECT if ahead.value is not None else self._role
            is_led = ahead.text == "to" and is_number(items[at + 2]) is (word == "down")
            is_led = is_led and (word != "down" or "set" in self._lexicon.called)
            return is_led or (word == "back" and ahead.value is not None)
        elif word in BOUNDS and word not in NAMING:
            return is_number(ahead) or (ahead.value is not None and ahead.value.sort == MOMENT)
        elif self._lexicon.is_final and TIMES.get(word, 1) > 1:
            return False
        elif word == "each" and self.slots and (not ahead.text or ahead.text in IDLE):  # What each of several gets.
            return len(self.slots) > 2 or not UNIVERSALS.isdisjoint(one.text for one in items[:at])
        elif word in BESIDE:
            return BESIDE[word](items, at)
        elif word in CURRENCIES:
            return is_number(ahead) or (at > 0 and is_number(items[at - 1]))
        else:
            # "starting at 40 EUR"
            is_bound = stem(word) in _EDGES and ahead.text in ROLES and _is_amount(items[at + 2])
            return word in IDLE or word in ARTICLES or (word in NAMING and not is_bound) or word == "and"
        return True

    def _lead(self, word: str, before: str) -> None:
        """Take in a preposition, and the role that it gives to what follows; "all of the files" are files."""
        if (word == "of" and before in WHOLES) or (word == "with" and before in STARTING):
            return
        self._role = ROLES[word]
        # "for the delivery to AC-2", where "to" has told already who is paid.
        self._is_aim = self._is_aim and (word == "of" or any(slot.role == self._role for slot in self.slots))
        self._is_described = self._is_described and word in ("of", "from", "about", "in")
        self._nouns = self._nouns[-1:] if word == "of" else []

    def _read_noun(self, items: list[Item], at: int) -> None:
        item, ahead = items[at], items[at + 1]
        stems = frozenset([stem(part) for part in item.text.split("-")])
        lexicon = self._lexicon
        is_last = at + 2 == len(items) or CUT.search(ahead.gap) is not None
        if is_last and at and item.text.endswith("ed") and stems <= lexicon.verbs:  # "Cancel it (cancelled)."
            self.strays.append(_stray(item))
            return
        if item.text in lexicon.names:
            self._nouns += name_stems(item.text)
            return
        if stems <= lexicon.nouns - lexicon.chosen:
            self._nouns.append(stem(item.text))
            if self._role == OBJECT and not self.slots:
                self.things.append(stem(item.text))
            return
        is_open = item.text.isalpha() and item.text not in FUNCTION_WORDS and stems.isdisjoint(lexicon.chosen)
        is_counted = at > 0 and is_number(items[at - 1]) and item.text.endswith("s") and not item.gap.strip()
        if self._is_sum(items, at) or (is_open and self._role == FOR and is_counted):  # "for 3 tickets"
            return
        if (
            is_open
            and not ORDINAL.fullmatch(item.text)
            and self._is_indefinite
            and (lexicon.is_telling or (lexicon.is_mild and self._role == OBJECT and not (self.things or self.slots)))
        ):
            return
        if is_open and self._is_placed(items, at):
            return
        if is_open and lexicon.is_telling and self.slots and not self._is_said and self._describes(items, at):
            self._is_described = True
            return
        if is_open and self._is_described:
            return
        if is_open and self._is_numbering(items, at):
            self._nouns.append(stem(item.text))
            return
        is_sayable = lexicon.is_telling and (self._is_said or item.text not in FUNCTION_WORDS or item.text in SAYABLE)
        # "for cinema", where the text of the call says so.
        is_sayable = is_sayable or (is_open and is_last and self._role == FOR and bool(self.slots))
        is_sayable = is_sayable or item.text in GREETING or (at > 0 and stem(items[at - 1].text) in lexicon.texts)
        beside = [one for one in (at - 1, at + 1) if one >= 0 and not items[max(at, one)].gap.strip()]
        self.strays.append(
            Stray(
                item.text,
                item.start,
                item.end,
                stems,
                is_sayable=is_sayable and stems.isdisjoint(lexicon.chosen),
                before=led_in_by(items, at),
                beside=frozenset([stem(items[one].text) for one in beside if items[one].text]),
            )
        )

    def _is_sum(self, items: list[Item], at: int) -> bool:
        """Whether a noun says what is paid: "a fee of 50 EUR"."""
        after = items[at + 1 : at + 3]
        is_of = len(after) > 1 and after[0].text == "of" and is_number(after[1])
        return is_of and items[at].text in PAYMENTS and led_in_by(items, at) == ""

    def _describes(self, items: list[Item], at: int) -> bool:
        """Whether a text is described behind the one who gets it: "mail Ann the words of the day"."""
        is_next = at > 1 and items[at - 2].value is not None
        return items[at - 1].text in ARTICLES and (self._is_described or self._role == OBJECT or is_next)

    def _is_numbering(self, items: list[Item], at: int) -> bool:
        """Whether a noun is given the number behind it, so that the number speaks for both: "invoice 77"."""
        value = items[at + 1 + (items[at + 1].text in NUMBERING)].value
        is_verb = at > 0 and (items[at - 1].text in ("and", "then") or CUT.search(items[at].gap) is not None)
        return (
            value is not None
            and value.number is not None
            and (not is_verb or value.number.caller in self._lexicon.nouns)  # "and deduct 10"
            and len(items[at].text) > 1  # "20 EUR x 2"
            and value.number.caller == stem(items[at].text)
            and value.number.unit.lower() not in CURRENCIES
            # Of an amount ("20 mg") the word before says something else ("nearly"), unless it is one of the tool's.
            and (value.number.caller in self._lexicon.nouns or not self._is_measure(value))
        )

    def _is_measure(self, value: SaidValue) -> bool:
        """Whether a number has a unit behind it: one that all know, or one of the tool's."""
        unit = value.number.unit.lower() if value.number is not None else ""
        return unit in UNITS or stem(unit) in self._lexicon.nouns

    def _is_placed(self, items: list[Item], at: int) -> bool:
        """Whether a word tells a place by what it is like: "in my home folder"."""
        before, after = items[at - 1].text if at else "", items[at + 1].text
        is_known = stem(after) in self._lexicon.nouns and not items[at + 1].gap.strip()
        value, is_plain = items[at + 1].value, ORDINAL.fullmatch(items[at].text) is None
        is_led = before in ARTICLES or (before in ROLES and value is not None and value.is_marked)
        if self._role == IN and is_led and value is not None and value.sort in (NAME, QUOTE) and is_plain:
            self._is_aim = True  # "on the shelf 'Blue'"
            return True
        return self._role == IN and before in ARTICLES and is_known and is_plain


def _is_amount(item: Item) -> bool:
    """Whether an item is a number with a unit or a currency, or a moment."""
    value = item.value
    return value is not None and (value.sort == MOMENT or (value.number is not None and bool(value.number.unit)))


def _is_identifier(value: SaidValue) -> bool:
    """Whether a value is a name that is shaped as one."""
    return value.sort == NAME and value.is_marked


def _stray(item: Item) -> Stray:
    text = item.text or (item.value.text if item.value is not None else "")
    return Stray(text, item.start, item.end, frozenset({stem(text)}))
