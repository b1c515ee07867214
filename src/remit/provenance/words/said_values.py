"""Said values: what the clauses that order a tool give, value by value, whatever its arguments are called.

Rule 1: a clause goes from its verb to the next order or the end of the sentence, and begins with the sentence where that
        begins with what is said of the order: "On table t-1, delete row 17".
Rule 2: a value is a name, a number or a moment, with the nouns that it is called by. What is negated gives none.
Rule 3: values of one sort side by side are a list, of which one call takes one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from remit.core.record import Record, replace
from remit.core.regex import regex
from remit.provenance.words.asked_effects import Plan
from remit.provenance.words.atoms import NumberSaid
from remit.provenance.words.moments import OFFSETS, WEEKDAYS, Moments, moments_in
from remit.provenance.words.tool_clauses import ToolClauses
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import (
    COUNTS,
    CURRENCIES,
    FUNCTION_WORDS,
    INQUIRING,
    NARROWING,
    PREPOSITIONS,
    SELF,
    is_plain_word,
    name_words,
    stem,
)

NAME, NUMBER, MOMENT = "name", "number", "moment"
# More names than a clause has; what stands behind them is a listing.
NAMES_MAX = 64
_FORE = PREPOSITIONS | NARROWING | {"until", "till", "into", "as"}
_NAMING = frozenset({"called", "named", "id", "no", "nr", "number", "with", "the"})
_LISTING = frozenset({"and", "or", "then", "plus", "the", "also"})
_LEADING_ON = INQUIRING | {"that", "about", "saying", "if", "because"}
_OF_IT = frozenset({"of", "in", "on", "from", "by", "at"})
_DAYS = OFFSETS.keys() | frozenset(WEEKDAYS)
_UNITS = CURRENCIES | _DAYS
_WORD = regex(r"[\w-]+")
# What may be a pattern of names, if it has a star; its plain part alone says nothing.
_PATTERN = regex(r"[\w./*-]+")


class SaidValue(Record):
    """One value of a clause: its sort, its text, where it stands, what it is called, and the list that it belongs to."""

    sort: str
    text: str
    start: int
    end: int
    nouns: frozenset[str] = frozenset()
    number: NumberSaid | None = None
    # What a moment tells, read once.
    told: Moments = Moments()
    # Whether it is shaped or written as a value, and not merely a word with a capital letter.
    is_marked: bool = True
    # Whether it stands behind what leads to what is to be said: "that", "how", "about".
    is_aside: bool = False
    listed: int = 0

    @property
    def key(self) -> str:
        """The number as the index spells it."""
        return self.text if self.sort == NUMBER else ""


class SaidClause(Record):
    """One clause: from where to where it goes, its values, and the stems of its other words."""

    start: int
    end: int
    values: tuple[SaidValue, ...]
    stems: frozenset[str]
    # What it says is not to be.
    denied: frozenset[str]
    # The things that it tells by what they are like: "the old rows", "my rows".
    described: frozenset[str] = frozenset()


def clauses_of(tool: str, words: Words, plan: Plan, ordering: ToolClauses) -> tuple[SaidClause, ...]:
    """The clauses that order a tool, with what they give."""
    found = []
    for clause in ordering.clauses(tool):
        first = _fore_part(clause.start, words, plan)
        stop = words.tokens[clause.stop].start if clause.stop < len(words.tokens) else len(words.own) + 1
        start = words.tokens[first].start
        values = _listed(values_between(words, plan, start, stop), words)
        places = [place for place in range(first, clause.stop) if place not in plan.heads]
        stems: dict[bool, set[str]] = {False: set(), True: set()}
        for place in (*places, *_rest(clause.stop, words, plan)):
            stems[words.is_negated(place)].update(_stems(words.tokens[place].text))
        stems[False].update(stem(one.number.unit) for one in values if one.number is not None and one.number.unit)
        described = frozenset(_described(words, plan, places))
        found.append(
            SaidClause(
                start=start,
                end=stop,
                values=values,
                stems=frozenset(stems[False]),
                denied=frozenset(stems[True]),
                described=described,
            )
        )
    return tuple(found)


def _fore_part(place: int, words: Words, plan: Plan) -> int:
    """Where what is said of an order begins: with its verb, or with a sentence that leads to it."""
    first = place
    while first > 0 and not words.tokens[first].opens and first - 1 not in plan.heads:
        first -= 1
    return first if words.tokens[first].opens and words.tokens[first].text.lower() in _FORE else place


def _rest(stop: int, words: Words, plan: Plan) -> Iterator[int]:
    """What a sentence goes on with that orders no tool: "delete it, dry run only"."""
    acting = {place for asked in plan.asked.values() for place in asked.places}
    while stop < len(words.tokens) and not words.tokens[stop].opens and stop not in acting:
        yield stop
        stop += 1


def _described(words: Words, plan: Plan, places: list[int]) -> Iterator[str]:
    for place in places:
        before = words.tokens[place - 1].text if place and place - 1 not in plan.heads else ""
        if is_plain_word(words.tokens[place].text) and (is_plain_word(before) or before.lower() in SELF):
            yield stem(words.tokens[place].text)


def _word_before(words: Words, start: int) -> str:
    """The word right before a place, an article left out."""
    place = bisect_left(words.ends, start + 1) - 1
    while place > 0 and words.tokens[place].text.lower() in ("the", "a", "an", "my"):
        place -= 1
    return words.tokens[place].text.lower() if place >= 0 else ""


def _stems(text: str) -> Iterator[str]:
    yield stem(text)
    yield from (stem(part) for part in name_words(text))


def values_between(words: Words, plan: Plan, start: int, stop: int) -> list[SaidValue]:
    """The values that a stretch of the words gives, in order; what is denied is none of them."""
    # Only what stands in the stretch is looked at: a message of many sentences is read once, not once for each of them.
    tokens = words.tokens[bisect_left(words.ends, start) : bisect_left(words.ends, stop) + 1]
    tokens = tuple([token for token in tokens if start <= token.start < stop])
    found = [_moment(words, left, right) for left, right in words.moments.spans if start <= left < stop]
    found += [_moment(words, token.start, token.end) for token in tokens if token.text.lower() in _DAYS]
    first = bisect_left(words.numbered, start, key=_place_of)
    numbers = words.numbered[first : bisect_left(words.numbered, stop, key=_place_of)]
    found += [value for key, said in numbers if (value := _number(key, said, words)) is not None]
    units = {(one.number.unit, one.end) for one in found if one.number is not None}
    names = list(_names(words, start, stop))
    for left, right in names[:NAMES_MAX]:
        text = words.own[left:right]
        is_unit = any(text == unit and 0 <= left - end <= 1 for unit, end in units)
        if not is_unit and text.lower() not in _UNITS:
            is_marked = not text.replace(" ", "").isalpha() or words.own[left - 1] != words.bare[left - 1]
            nouns = frozenset[str]() if "*" in text else _nouns(words, plan, left, right)
            found.append(SaidValue(NAME, text, left, right, nouns, is_marked=is_marked))
    leads = [token.end for token in tokens if token.text.lower() in _LEADING_ON]
    return sorted(
        [
            replace(one, is_aside=(bool(leads) and leads[0] <= one.start) or _word_before(words, one.start) in _OF_IT)
            for one in found
            if not _is_denied(one, words)
        ],
        key=lambda one: (one.start, -one.end),
    )


def _place_of(numbered: tuple[str, NumberSaid]) -> int:
    return numbered[1].start


def _moment(words: Words, start: int, end: int) -> SaidValue:
    text = words.own[start:end]
    return SaidValue(MOMENT, text, start, end, told=moments_in(text))


def _number(key: str, said: NumberSaid, words: Words) -> SaidValue | None:
    """A number; one in words is called by the word behind it, and "one" is mostly no number."""
    text = words.own[said.start : said.end].lower()
    if text not in COUNTS:
        return SaidValue(NUMBER, key, said.start, said.end, said.names, said)
    behind = _WORD.search(words.own, said.end)
    if text == "one" or behind is None or behind[0].lower() in FUNCTION_WORDS:
        return None
    said = replace(said, unit=behind[0])
    return SaidValue(NUMBER, key, said.start, said.end, said.names, said)


def _names(words: Words, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where names stand in a stretch, the longest of those that overlap."""
    stretch = _PATTERN.finditer(words.bare, start, min(stop, len(words.bare)))
    spans = [found.span() for found in stretch if "*" in found[0] and found[0] != "*"]
    for name in words.names:
        at = words.own.find(name, start, stop)
        while at >= 0:
            around = words.own[at - 1 : at] + words.own[at + len(name) : at + len(name) + 1]
            if at > 0 and not any(sign.isalnum() for sign in around):
                spans.append((at, at + len(name)))
            at = words.own.find(name, at + len(name), stop)
    last = 0
    for left, right in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        if left >= last:
            yield left, right
            last = right


def _nouns(words: Words, plan: Plan, start: int, end: int) -> frozenset[str]:
    """What a name is called: by the plain word before it, or by the one behind it where there is none."""
    place = bisect_left(words.ends, start + 1) - 1
    while place >= 0 and words.tokens[place].text.lower() in _NAMING and place not in plan.heads:
        place -= 1
    if place >= 0 and place not in plan.heads and is_plain_word(words.tokens[place].text):
        return frozenset({stem(words.tokens[place].text)})
    behind = _WORD.match(words.own, end + 1)
    return frozenset({stem(behind[0])}) if behind is not None and is_plain_word(behind[0]) else frozenset()


def _is_denied(value: SaidValue, words: Words) -> bool:
    at = bisect_right(words.negated, (value.start, len(words.own))) - 1
    return at >= 0 and value.start < words.negated[at][1]


def _listed(values: list[SaidValue], words: Words) -> tuple[SaidValue, ...]:
    """The values, each with the number of the list that it belongs to."""
    if not values:
        return ()
    made = [replace(values[0], listed=1)]
    for left, right in pairwise(values):
        between = [word.lower() for word in _WORD.findall(words.own, left.end, right.start)]
        before = {word.lower() for word in _WORD.findall(words.own, max(left.start - 40, 0), left.start)[-3:]}
        joins = left.sort == right.sort and set(between) <= _LISTING | (before - FUNCTION_WORDS)
        made.append(replace(right, listed=made[-1].listed + (not joins)))
    return tuple(made)
