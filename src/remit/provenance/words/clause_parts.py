"""Clause parts: a stretch of a clause read word by word: the values in their roles, and the words that are left over.

Rule 1: a word is understood where it is an article, a preposition, a noun of the tools, or one of few that change nothing.
        Any other is a stray. No list says which words are dangerous.
Rule 2: a value has the role of the preposition before it, or is the direct object, and is called by the nouns beside it.
Rule 3: what is to be said to a person, what an order is good for, and what a pronoun tells, gives no value.
Rule 4: what stands before a verb is polite, is an order of its own, tells something of what the order points back to, or is
        left over.
Rule 5: a clause with a subject of its own, in brackets or behind a comma, a dash or a semicolon, is left over as a whole: it
        may take the order back, report it, or mean another thing.
"""

from collections.abc import Callable
from itertools import pairwise

from remit.core.record import replace
from remit.core.regex import regex
from remit.provenance.words.clause_items import CUT, Item, Slot, Stray, led_in_by
from remit.provenance.words.negation import NEGATING
from remit.provenance.words.prepositions import AIM, BEFORE_RANGES, BOUNDS, FOR, IN, OBJECT, ROLES, TO, WHOLES
from remit.provenance.words.said_values import MOMENT, NUMBER, SaidValue
from remit.provenance.words.tool_words import Lexicon
from remit.provenance.words.units import UNITS, kin_of
from remit.provenance.words.vocabulary import (
    ANNOUNCING,
    CURRENCIES,
    FUNCTION_WORDS,
    HAVING,
    MODALS,
    PAIRS,
    STATING,
    SUPERLATIVES,
    TIMES,
    UNIVERSALS,
    name_stems,
    stem,
)

# These say how or how soon, and change nothing.
_IDLE_SAID = """
    please pls plz kindly thanks now today immediately completely fully entirely promptly quickly directly
    also too then just again asap me us make use straight and & here new mode permission permissions right rights
    access
"""
_IDLE = frozenset(_IDLE_SAID.split())
_OPENING_SAID = "ok okay yes so hi hello hey finally next first go it's instead afterwards find look search locate take get see open"
_OPENING = frozenset(_OPENING_SAID.split())
_ARTICLES_SAID = "the a an this these those my your our his her its their all each every both any some another"
_ARTICLES = frozenset(_ARTICLES_SAID.split()) | PAIRS | UNIVERSALS
_BACK = frozenset({"it", "them", "him", "there"})
_NAMING_SAID = "called named titled labelled id ids number ending ends starting starts begin begins beginning whose is"
_NAMING = frozenset(_NAMING_SAID.split())
_STARTING = frozenset({"start", "starts", "starting", "begin", "begins", "beginning"})
_CENTS = frozenset({"cent", "cents", "ct", "pence", "pennies"})
# What is paid is called so.
_PAYMENTS = frozenset(
    [
        "fee",
        "fine",
        "charge",
        "payment",
        "amount",
        "sum",
        "price",
        "cost",
        "deposit",
        "rent",
        "toll",
        "tip",
        "bonus",
        "salary",
        "refund",
    ]
)
_PARTICLES = frozenset({"over", "back", "down"})
WISHING = frozenset({"want", "need", "like", "wish", "have"})
# Who tells something of the thing that an order points back to: the user, or the thing itself.
_TELLING = frozenset({"i", "we", "there", "it", "this", "that"})
# What leads to what is to be said.
LEADING_ON = frozenset({"that", "about", "saying", "how", "whether", "why", "what", "asking"})
_GREETING = frozenset({"hi", "hello", "hey", "dear", "ok", "thanks"})
SUBJECTS = frozenset({"i", "he", "she", "we", "they", "you", "this", "that", "there", "it"})
# Words that say something of others, and may well be said to a person: "the icons are great".
_SAYABLE = (
    HAVING
    | MODALS
    | STATING
    | SUBJECTS
    | {"be", "been", "my", "your", "do", "did", "does", "am", "i'm", "it's", "done", "doing"}
)
_REQUEST_SAID = """
    can could would will should must you u i we i'd we'd want need like have to help be sure that remember ahead let's wish
    let
"""
_REQUESTING = frozenset(_REQUEST_SAID.split()) | _IDLE | _OPENING
# The user is told of it: "and tell me when it is done".
_REPORTING = frozenset({"tell", "let", "summarise", "summarize", "report", "confirm", "notify", "inform", "show"})
# What picks another one than the one that is named, or says how nearly.
ORDINAL = regex(
    r"\d+(?:st|nd|rd|th)|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|.*ly|.*est|half|twice|double"
    r"|next|other|previous|former|latter"
)
# Signs that part words, or stand on a value; any other is left over.
_DASH = regex(r"\s?[-\u2013]\s?")
_SIGNS = regex(r"[\s,.;:!?()\u2013\u2014\"'\u201c\u201d\u2018\u2019\u00ab\u00bb`$\u20ac\u00a3\u00a5#@&%-]*")
QUOTE = "quote"
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
        self._sign(items[-1])

    def lead_in(self, items: list[Item], *, points_back: bool) -> None:
        """Read what stands before the verb of an order."""
        cuts = [at for at, one in enumerate(items) if at and CUT.search(one.gap)]
        edges = [0, *cuts, *([len(items) - 1] if len(items) - 1 not in cuts else [])]
        for start, stop in pairwise(edges):
            part = items[start:stop]
            said = [one.text or (one.value.text.lower() if one.value is not None else "") for one in part]
            is_request = all(word in _REQUESTING for word in said)
            if (is_request and (not CUT.search(items[stop].gap) or SUBJECTS.isdisjoint(said))) or (
                said[0] in _GREETING and all(one.value is not None for one in part[1:])
            ):
                continue
            if ":" in items[stop].gap and all(word in ANNOUNCING | _REQUESTING or word.isdecimal() for word in said):
                continue
            is_own = said[-1] in ("and", "then") and part[0].text not in FUNCTION_WORDS and NEGATING.isdisjoint(said)
            if is_own and not points_back:  # An order of its own, which no tool has: "look around and".
                self.told.append((part[0].start, part[-1].end))
                continue
            if points_back or said[0] in ROLES or said[0] in BOUNDS:
                while len(part) > 1 and part[0].text in _REQUESTING:
                    part = part[1:]
                self.recall([*part, items[stop]], is_order=not self._is_report(part))
            elif self._is_report(part):
                self._wish(part, items[stop])
            else:
                self.strays += [_stray(one) for one in part if one.text not in _REQUESTING]

    def _wish(self, part: list[Item], ahead: Item) -> None:
        """Read what the user wants in all before the order, "I need to get from A to B": the order takes up its values."""
        verb = next((at for at, one in enumerate(part) if one.text == "to" and part[at - 1].text in WISHING), -1)
        if verb < 0 or {one.text for one in part[:verb]} - _REQUESTING or all(one.value is None for one in part):
            self.leave_over(part)
            return
        self.recall([*part[verb + 2 :], ahead], is_order=True)
        self.slots = [replace(slot, is_needed=True) for slot in self.slots]

    def recall(self, items: list[Item], *, is_order: bool) -> None:
        """Read what an order points back to; of a report, what is said of the thing is no matter."""
        if not is_order and len(items) > 1 and items[0].text in SUBJECTS:
            if items[0].text not in _TELLING:
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
            if at and item.text in SUBJECTS - {"it"}:
                until = next_cut(items, at)
                self.leave_over(items[at:until])
                return until
        if item.value is not None:
            self._take(item.value, items, at)
            return at + 1
        if item.text == "not" and item.is_plain and is_cut and (until := self._excluded(items, at)):
            return self._tell(items, at, until)
        if item.text == "who" and items[at - 1].text in UNIVERSALS and items[at + 1].text.endswith("s"):
            return at + 2
        if (is_cut or (at and items[at - 1].text in ("and", "then"))) and _is_reporting(items, at):
            return self._tell(items, at, len(items) - 1)
        is_further = item.text in _REPORTING and items[at + 1].value is not None and self._lexicon.is_telling
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

    def _excluded(self, items: list[Item], at: int) -> int:
        """Where what is led in by "not" ends, if it is a name or a noun: ", not to Ann", "(not b.txt)"."""
        until = next_cut(items, at)
        part = items[at + 1 : until]
        is_plain = all(
            not (one.is_plain or one.text in FUNCTION_WORDS)
            or one.text in ROLES
            or one.text in _ARTICLES
            or stem(one.text) in self._lexicon.nouns
            for one in part
        )
        return until if part and is_plain and len(part) <= _EXCLUDED_MAX else 0

    def _sign(self, item: Item) -> None:
        if _SIGNS.fullmatch(item.gap) is None:
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
        lead, gap, led = _word_before(items, at), before.gap, led_in_by(items, at)
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

    def _is_understood(self, items: list[Item], at: int) -> bool:
        """Whether a word has its place in any order, whatever the tool."""
        word, ahead = items[at].text, items[at + 1]
        if word in _BACK:
            self.points_back = True
        elif word in ROLES:
            self._lead(word, items[at - 1].text if at else "")
        elif word in _PARTICLES:
            self._role = OBJECT if ahead.value is not None else self._role
            return ahead.text == "to" or (word == "back" and ahead.value is not None)
        elif word in BOUNDS and word not in _NAMING:
            return _is_number(ahead) or (ahead.value is not None and ahead.value.sort == MOMENT)
        elif word in _BESIDE:
            return _BESIDE[word](items, at)
        elif word in CURRENCIES:
            return _is_number(ahead) or (at > 0 and _is_number(items[at - 1]))
        else:
            return word in _IDLE or word in _ARTICLES or word in _NAMING or word == "and"
        return True

    def _lead(self, word: str, before: str) -> None:
        """Take in a preposition, and the role that it gives to what follows; "all of the files" are files."""
        if (word == "of" and before in WHOLES) or (word == "with" and before in _STARTING):
            return
        self._role = ROLES[word]
        # "for the delivery to AC-2", where "to" has told already who is paid.
        self._is_aim = self._is_aim and (word == "of" or any(slot.role == self._role for slot in self.slots))
        self._is_described = self._is_described and word in ("of", "from", "about", "in")
        self._nouns = self._nouns[-1:] if word == "of" else []

    def _read_noun(self, items: list[Item], at: int) -> None:
        item = items[at]
        stems = frozenset([stem(part) for part in item.text.split("-")])
        lexicon = self._lexicon
        if item.text in lexicon.names:
            self._nouns += name_stems(item.text)
            return
        if stems <= lexicon.nouns - lexicon.chosen:
            self._nouns.append(stem(item.text))
            if self._role == OBJECT and not self.slots:
                self.things.append(stem(item.text))
            return
        is_open = item.text.isalpha() and item.text not in FUNCTION_WORDS and stems.isdisjoint(lexicon.chosen)
        is_sum = item.text in _PAYMENTS and items[at + 1].text == "of" and _is_number(items[at + 2])
        if is_sum and led_in_by(items, at) == "":
            return  # "a fee of 50 EUR"
        if is_open and self._role == FOR and self.slots:
            self._is_aim = True
            return
        if (
            is_open
            and self._is_indefinite
            and (lexicon.is_telling or (lexicon.is_mild and self._role == OBJECT and not self.things))
        ):
            return
        if is_open and self._is_placed(items, at):
            return
        if is_open and lexicon.is_mild and self._is_calling(items, at):
            return
        if is_open and lexicon.is_telling and self.slots and not self._is_said and self._describes(items, at):
            self._is_described = True
            return
        if is_open and self._is_described:
            return
        if is_open and self._is_numbering(items, at):
            self._nouns.append(stem(item.text))
            return
        is_sayable = lexicon.is_telling and (self._is_said or item.text not in FUNCTION_WORDS or item.text in _SAYABLE)
        is_sayable = is_sayable or item.text in _GREETING or (at > 0 and stem(items[at - 1].text) in lexicon.texts)
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

    def _describes(self, items: list[Item], at: int) -> bool:
        """Whether a text is described behind the one who gets it: "mail Ann the words of the day"."""
        is_next = at > 1 and items[at - 2].value is not None
        return items[at - 1].text in _ARTICLES and (self._is_described or self._role == OBJECT or is_next)

    def _is_calling(self, items: list[Item], at: int) -> bool:
        """Whether a noun stands before the name of what an order falls on: "the cow Bella"."""
        after = items[at + 1]
        is_before_name = after.value is not None and not after.gap.strip(" \"'") and not self.slots
        return self._role == OBJECT and is_before_name and items[at - 1].text in ("the", "our", "my")

    def _is_numbering(self, items: list[Item], at: int) -> bool:
        """Whether a noun is given the number behind it, so that the number speaks for both: "invoice 77"."""
        value = items[at + 1].value
        return (
            value is not None
            and value.number is not None
            and value.number.caller == stem(items[at].text)
            and value.number.unit.lower() not in CURRENCIES
        )

    def _is_placed(self, items: list[Item], at: int) -> bool:
        """Whether a word tells a place by what it is like: "in my home folder"."""
        before, after = items[at - 1].text if at else "", items[at + 1].text
        is_known = stem(after) in self._lexicon.nouns and not items[at + 1].gap.strip()
        value = items[at + 1].value
        is_led = before in _ARTICLES or (before in ROLES and value is not None and value.is_marked)
        if self._role == IN and is_led and value is not None and not ORDINAL.fullmatch(items[at].text):
            self._is_aim = True  # "on the shelf 'Blue'"
            return True
        return self._role == IN and before in _ARTICLES and is_known and not ORDINAL.fullmatch(items[at].text)


def _numbers(items: list[Item], at: int) -> bool:
    """Whether "no" leads to a number; where that ends a sentence, its full stop does."""
    ahead = items[at + 1]
    if at + 2 == len(items):
        return at > 0 and not items[at].gap.strip()
    return not ahead.gap.strip(" .:") and ahead.value is not None and not items[at].gap.strip()


def _says_how_often(items: list[Item], at: int) -> bool:
    ahead = items[at + 1]
    return at + 2 == len(items) or CUT.search(ahead.gap) is not None or ahead.text in _IDLE | {"and"}


def _follows_number(items: list[Item], at: int) -> bool:
    return at > 0 and _is_number(items[at - 1])


def _word_before(items: list[Item], at: int) -> str:
    """The word right before an item, an article left out; none before a value or at the beginning."""
    while at > 0 and items[at - 1].text in _ARTICLES - UNIVERSALS:
        at -= 1
    return items[at - 1].text if at > 0 else ""


def next_cut(items: list[Item], at: int) -> int:
    """The number of the item behind the next sign that parts clauses."""
    return next((one for one in range(at + 1, len(items)) if CUT.search(items[one].gap)), len(items) - 1)


def _stray(item: Item) -> Stray:
    text = item.text or (item.value.text if item.value is not None else "")
    return Stray(text, item.start, item.end, frozenset({stem(text)}))


def _is_number(item: Item) -> bool:
    return item.value is not None and item.value.sort == NUMBER


def _is_moment(item: Item) -> bool:
    return item.value is not None and item.value.sort == MOMENT


def _is_quote(item: Item) -> bool:
    return item.value is not None and item.value.sort == QUOTE


def _is_reporting(items: list[Item], at: int) -> bool:
    """Whether the user is to be told of it; what is to be told first, or before something, holds the order back."""
    is_led = items[at].text in _REPORTING and items[at + 1].text in ("me", "us", "what")
    return is_led and not any(ORDINAL.fullmatch(one.text) or one.text in BOUNDS | {"first"} for one in items[at:])


_NOTHING = Item(-1, -1)
# Words that are understood by what stands beside them.
_BESIDE: dict[str, Callable[[list[Item], int], bool]] = {
    **dict.fromkeys(TIMES, _says_how_often),
    **dict.fromkeys((*_CENTS, "percent", *UNITS), _follows_number),
    **dict.fromkeys(("no", "nr"), _numbers),
    **dict.fromkeys(("first", "top"), lambda items, at: _is_number(items[at + 1])),
    # "with the text 'Hi'"
    **dict.fromkeys(("text", "words", "line", "content", "message"), lambda items, at: _is_quote(items[at + 1])),
    "between": lambda items, at: [_is_moment(one) for one in items[at + 1 : at + 4]] == [True, False, True],
    "that": lambda items, at: items[at + 1].text in _NAMING,
    "one": lambda items, at: items[at + 1].text != "of",
    "thank": lambda items, at: items[at + 1].text == "you",
    "you": lambda items, at: items[at - 1].text == "thank",
    "up": lambda items, at: at == 0 and items[1].text != "to",
}
