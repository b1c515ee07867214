"""Words: what the user wrote themselves, cut into the atoms and phrases that may bind a value.

Rule 1: a value is bound by a whole atom (an identifier, number, address, link, path, name), by a quotation, by a
        whole capitalised phrase, or by an unbroken run of words. Never by a part of one of these.
Rule 2: case counts and nothing is folded: a look-alike never matches.
Rule 3: pasted blocks are data. A quotation binds as a whole, and nothing inside it binds.
Rule 4: function words bind nothing; a bare small number binds no identifier unless the words call it one.
Rule 5: what the words mention only under a negation binds nothing, names nothing and asks for nothing.
Rule 6: messages are read one by one, so that what was pasted into one swallows no other.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Set
from decimal import Decimal
from itertools import pairwise

from remit.core.record import Record
from remit.core.regex import regex
from remit.provenance.kinds import NUMBERS, UNSAYING, base_of, number_key, unit_of
from remit.provenance.words.atoms import (
    NumberSaid,
    Token,
    numbers_of,
    sentence_of,
    take_atoms,
    take_quotes,
    take_references,
    tokens_of,
)
from remit.provenance.words.blocks import blanked, own_words
from remit.provenance.words.moments import Moments, moments_in
from remit.provenance.words.money import SUMS_CALLED, Amount, amounts_in
from remit.provenance.words.negation import negated_in
from remit.provenance.words.references import references_in
from remit.provenance.words.remarks import without_idle
from remit.provenance.words.units import UNITS, unit_name
from remit.provenance.words.vocabulary import (
    CURRENCIES,
    DEFINITE,
    FUNCTION_WORDS,
    LEADS,
    NARROWING,
    PAIRS,
    PREPOSITIONS,
    TURNING,
    name_stems,
    name_words,
    stem,
)

# A prompt is typed or pasted by a person; a book is an attachment.
PROMPT_CHARS_MAX = 200_000
# How far the noun after "all" or "the latest" may reach: "all of the other unread messages from".
NOUN_WORDS_MAX = 6
_COORDINATED = regex(r"[\s,;'\"\u201c\u201d]*(?:(?:and|or|&)\s+(?:the\s+)?['\"\u201c]?)?")
_SENTENCE = regex(r"[.!?:;\n]")
_SIGIL = regex(r"[#@][\w-]+")
_CALLED = frozenset({"id", "number", "no", "#", "nr"})
_SUM_STEMS = frozenset(stem(word) for word in SUMS_CALLED)
_NAMING = frozenset({"called", "named"})
# What an argument is called that takes how many there shall be.
COUNTED = frozenset({"count", "quantity", "qty"})
# Plurals that last, and are no things.
_SPANS = frozenset({"nights", "months", "years"})
_ADDRESSING = PREPOSITIONS | PAIRS
_SPACE = regex(r"\s+")
_VISIBLE = regex(r"\S")


class Words(Record):
    """The user's own words, indexed. `bare` has quotations blanked out, `own` only what was pasted in."""

    own: str
    bare: str
    strings: dict[str, tuple[int, int]]
    names: frozenset[str]
    numbers: dict[str, tuple[NumberSaid, ...]]
    references: frozenset[str]
    moments: Moments
    tokens: tuple[Token, ...]
    stems: frozenset[str]
    lower: frozenset[str]
    orders: frozenset[str] = frozenset()
    # What was written, with one space for each gap; where each token stands; the first that has a stem; where each ends.
    spaced: str = ""
    places: dict[str, tuple[int, ...]] = {}
    first: dict[str, tuple[int, int]] = {}
    ends: tuple[int, ...] = ()
    # What may be an amount of money, and from where to where the words say what is not to be.
    amounts: tuple[Amount, ...] = ()
    negated: tuple[tuple[int, int], ...] = ()
    # The numbers in the order in which they stand, with their sizes.
    numbered: tuple[tuple[str, NumberSaid], ...] = ()

    def span_of(self, value: str) -> tuple[int, int] | None:
        """Where the words say this text as a whole, if they do."""
        found = self.strings.get(value)
        if found is not None or not value:
            return found
        if value[0] in "#@" and _SIGIL.fullmatch(value):
            return self.strings.get(value[1:])
        if "://" in value:
            scheme, _, host = value.partition("://")
            if scheme in ("https", "http") and host in self.references:
                return self.strings.get(host)
        return self.run_of(value) if " " in value else None

    def run_of(self, value: str) -> tuple[int, int] | None:
        """Where the value stands as an unbroken run of at least two whole words that cuts no name in two."""
        parts = value.split(" ")
        if len(parts) == 1 or parts[0].lower() in FUNCTION_WORDS or parts[-1].lower() in FUNCTION_WORDS:
            return None
        start = self.bare.find(value)
        while start >= 0:
            end = start + len(value)
            if _is_whole(self.bare, start, end) and not self._cuts_name(start, end, parts):
                return start, end
            start = self.bare.find(value, start + 1)
        return None

    def _cuts_name(self, start: int, end: int, parts: list[str]) -> bool:
        """Whether a capitalised neighbour belongs to the same name; the word that opens a sentence need not."""
        if parts[-1][:1].isupper() and self.bare[end : end + 1] == " ":
            after = _VISIBLE.search(self.bare, end)
            if after is not None and after[0].isupper():
                return True
        if not parts[0][:1].isupper() or self.bare[start - 1 : start] != " ":
            return False
        before = self.bare[:start].rsplit(None, 1)[-1:]
        if not before or not before[0][:1].isupper():
            return False
        place = bisect_left(self.ends, start - 1)
        return not (place < len(self.ends) and self.ends[place] == start - 1 and self.tokens[place].opens)

    def number_said(self, number: Decimal, kind: str, argument: str) -> tuple[int, int] | None:
        """Where the words give this number, in the unit that the kind demands; a percentage is no amount."""
        wants_percent = base_of(kind) == "percent" or bool(name_stems(argument) & {"percent", "percentag", "rat"})
        unit = unit_of(kind)
        for said in self.numbers.get(number_key(number), ()):
            if (
                said.percent == wants_percent
                and not said.is_part
                and (not unit or _is_in_unit(said, unit))
                and (is_called_for(said, kind, argument) if not unit else not _is_count_of(said, kind, argument))
            ):
                return said.start, said.end
        return None

    def has_unit(self, key: str, unit: str) -> bool:
        """Whether the words give a number in this unit."""
        return any(_is_in_unit(said, unit) for said in self.numbers.get(key, ()))

    def called(self, key: str, argument: str) -> tuple[int, int] | None:
        """Where the words call a number what an argument is called: "2 days", "account 77120"."""
        parts = name_words(argument)
        wanted = {stem(part) for part in (parts if _CALLED.intersection(parts) else parts[-1:])} - {""}
        for said in self.numbers.get(key, ()):
            if not said.percent and wanted.intersection(said.names) and not _is_count_of(said, "number", argument):
                return said.start, said.end
        return None

    def identifier_said(self, digits: str, hints: Iterable[str]) -> tuple[int, int] | None:
        """Where the words call this number an identifier: by a hinted noun, or by `id` or a sign without any noun."""
        wanted = set(hints)
        for said in self.numbers.get(digits, ()):
            is_bare = not said.names and bool(_CALLED.intersection(said.mentions))
            if said.unit in UNITS:
                continue  # A measure numbers nothing: "a row in 5 minutes".
            if said.caller in wanted or is_bare or _is_opened_by(said, wanted):
                return said.start, said.end
        return None

    def is_name(self, value: str, hints: Set[str] = frozenset()) -> bool:
        """Whether the words use a text as a name: written as one, or a plain word that is addressed."""
        if value in self.names or value.lstrip("#@") in self.names:
            return True
        if any(self._is_addressed(place, hints) for place in self.places.get(value, ())):
            return True
        return " " in value and self.run_of(value) is not None

    def is_called(self, value: str, nouns: Set[str]) -> bool:
        """Whether a noun stands right before plain words: "branch main", "a branch called main"; "the old branch" tells which."""
        parts = value.split(" ")
        for first in self.places.get(parts[0], ()):
            last = first + len(parts)
            if [token.text for token in self.tokens[first:last]] != parts:
                continue
            before = [stem(token.text) for token in self.tokens[max(first - 2, 0) : first] if token.text not in _NAMING]
            if not nouns.isdisjoint(before[-1:]):
                return True
        return False

    def _is_addressed(self, place: int, hints: Set[str]) -> bool:
        if self.tokens[place].text[:1].isupper():
            return True
        before = self.tokens[place - 1] if place else None
        near = {
            stem(token.text) for token in self.tokens[max(place - 1, 0) : place + 2] if token is not self.tokens[place]
        }
        return bool(near & hints) or (
            before is not None and (before.opens or before.text.lower() in _ADDRESSING | _NAMING)
        )

    def are_coordinated(self, names: list[str]) -> bool:
        """Whether names stand side by side in the words: "Ann, Bob and Carl"."""
        spans = sorted(self.strings[name] for name in names if name in self.strings)
        between = (self.own[left[1] : right[0]] for left, right in pairwise(spans))
        return len(spans) == len(names) > 0 and all(_COORDINATED.fullmatch(part) for part in between)

    def is_quoted(self, name: str) -> bool:
        """Whether the words say a name in quotation marks."""
        start = self.strings[name][0] if name in self.strings else 0
        return start > 0 and self.own[start - 1] != self.bare[start - 1]

    def nouns_of(self, name: str) -> frozenset[str]:
        """The stem of the word that stands before a name or a quotation, what introduces names left out."""
        place = bisect_right(self.ends, self.strings[name][0]) - 1
        while place > 0 and self.tokens[place].text in _NAMING:
            place -= 1
        return frozenset({stem(self.tokens[place].text)}) if place >= 0 else frozenset()

    def word_before_quote(self, name: str) -> str:
        """The word that introduces a quotation, in lower case; nothing where the name is not quoted."""
        if not self.is_quoted(name):
            return ""
        start = self.strings[name][0]
        place = bisect_right(self.ends, start) - 1
        return self.tokens[place].text.lower() if place >= 0 else ""

    def addresses(self, value: str, verbs: Collection[int] = ()) -> bool:
        """Whether the words turn to a person of this name: "to Ann", "mail Ann Lee", "Ann and Bob"; never in quotes.

        `verbs` are the places of the verbs that order something.
        """
        start = -1 if value in self.references else self.bare.find(value)
        while start >= 0:
            if _is_whole(self.bare, start, start + len(value)) and self._turns_to(start, verbs):
                return True
            start = self.bare.find(value, start + 1)
        return False

    def _turns_to(self, start: int, verbs: Collection[int]) -> bool:
        place = bisect_right(self.ends, start) - 1
        if (
            place < 0
            or self.tokens[place].end >= start + 1
            or _SENTENCE.search(self.bare[self.tokens[place].end : start])
        ):
            return False
        word = self.tokens[place].text.lower()
        if word in TURNING or place in verbs:
            return True
        return word not in FUNCTION_WORDS and self.is_order(place)

    def is_order(self, place: int) -> bool:
        """Whether a word stands where an order begins: at the start of a sentence, or after what leads into a verb."""
        return self.tokens[place].opens or self.tokens[place - 1].text.lower() in LEADS

    def reach_of(self, place: int) -> tuple[int, int]:
        """From where to where the noun after a place and what narrows it extend: a few words, within the sentence."""
        after = self.tokens[place + 1 : place + NOUN_WORDS_MAX]
        end = len(self.own) if len(after) < NOUN_WORDS_MAX - 1 else after[-1].end
        return self.tokens[place].end, next((token.start for token in after if token.opens), end)

    def rest_of(self, start: int) -> tuple[int, int]:
        """From a place to where its sentence ends, or goes on with something else."""
        for token in self.tokens[bisect_right(self.ends, start) :]:
            if token.start > start and (token.opens or token.text.lower() in ("and", "then")):
                return start, token.start
        return start, len(self.own)

    def stands_within(self, value: str, reach: tuple[int, int]) -> bool:
        """Whether a text stands somewhere between two places."""
        return bool(value) and self.own.find(value, reach[0], reach[1]) >= 0

    def has_name_behind(self, place: int) -> bool:
        """Whether a name, an identifier or a quotation stands right behind a word."""
        end = self.tokens[place].end
        start = next((at for at in range(end, len(self.own)) if not self.own[at].isspace()), end)
        return any(start <= begin <= start + 1 for name in self.names if (begin := self.strings[name][0]) > end)

    def names_within(self, reach: tuple[int, int]) -> list[str]:
        """The names that the words say between two places."""
        return [name for name in self.names if reach[0] <= self.strings[name][0] < reach[1]]

    def is_narrowed(self, place: int) -> bool:
        """Whether the noun after a place is narrowed: "all files from March" is not all files."""
        for token in self.tokens[place + 1 : place + 1 + NOUN_WORDS_MAX]:
            word = token.text.lower()
            if token.opens:
                return False
            # "all of the files" are all files.
            if word in NARROWING and (word != "of" or token is not self.tokens[place + 1]):
                return True
            if word in FUNCTION_WORDS and word not in DEFINITE:
                return False
        return False

    def is_negated(self, place: int) -> bool:
        """Whether a word stands where the words say what is not to be."""
        at = bisect_right(self.negated, self.tokens[place].start, key=_start_of)
        return at > 0 and self.tokens[place].start < self.negated[at - 1][1]

    def is_limited(self, place: int) -> bool:
        """Whether the sentence of a word takes something out again: "everybody except Ann", "all files, but not this"."""
        start, end = sentence_of(self.tokens, place)
        at = bisect_left(self.negated, start, key=_start_of)
        return at < len(self.negated) and self.negated[at][0] < end

    def owns(self, text: str) -> bool:
        """Whether a text is wholly the user's: empty, or an unbroken run of what they wrote, quotations included."""
        head = text.split(None, 2)
        if len(head) > 2 and f"{head[0]} {head[1]}" not in self.spaced:
            return False  # Most prose is known by its first two words.
        text = " ".join(text.split())
        if not text or text in self.strings:
            return True
        spaced = self.spaced
        start = spaced.find(text)
        while start >= 0:
            if _is_whole(spaced, start, start + len(text)):
                return True
            start = spaced.find(text, start + 1)
        return False


def _is_in_unit(said: NumberSaid, unit: str) -> bool:
    """Whether a number is said in a unit, however that is spelled; what is no measure may number a thing: "ticket 31"."""
    name = stem(unit_name(unit))
    return name in (stem(said.unit), stem(unit_name(said.unit))) or (unit not in UNITS and said.caller == name)


def _is_opened_by(said: NumberSaid, nouns: Set[str]) -> bool:
    """Whether a noun right before a number begins a sentence, where it looks like a verb: "Order 42 arrived"."""
    return not said.caller and said.mentions[-1:] != () and said.mentions[-1] in nouns


def _is_count_of(said: NumberSaid, kind: str, argument: str) -> bool:
    """Whether a number counts what an argument names one of: "3 rows" is no `row`, and is the number of `rows`."""
    unit, parts = said.unit.lower(), [part for part in name_words(argument) if stem(part) not in UNSAYING]
    if said.caller and parts and parts[-1].endswith("s") and stem(parts[-1]) == said.caller:
        return unit_of(kind) == "" and base_of(kind) in NUMBERS  # "seat 4" is no number of `seats`
    if unit == "of" and not said.caller:
        return True  # "5 of the rows"
    if said.caller or not unit.endswith("s") or unit in CURRENCIES or not parts or unit in parts:
        return False
    return stem(parts[-1]) == stem(unit)


def _counts(said: NumberSaid, argument: str) -> bool:
    """Whether a number counts things, for an argument that is called a count: "4 seats" for `count`."""
    unit = said.unit.lower()
    is_plural = unit.endswith("s") and unit not in CURRENCIES and unit not in UNITS and unit not in _SPANS
    return is_plural and not said.caller and not COUNTED.isdisjoint(name_words(argument))


def is_called_for(said: NumberSaid, kind: str, argument: str) -> bool:
    """Whether a number may be an argument: it is called nothing, or what the argument or its kind is called."""
    names = said.names
    if _is_count_of(said, kind, argument):
        return False
    if not names or _counts(said, argument):
        return True
    base, _, space = kind.partition(":")
    nouns = name_stems(argument) | name_stems(space)
    nouns |= {stem(unit_name(word)) for word in (*name_words(argument), space)}
    if not names.isdisjoint(nouns) or ("id" in name_words(argument) and _is_opened_by(said, nouns)):
        return True
    is_money = base in ("amount", "money", "price") or not SUMS_CALLED.isdisjoint(name_words(argument))
    return is_money and (said.unit.lower() in CURRENCIES or said.caller in _SUM_STEMS)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a place begins and ends at the edge of whole words, with no sign of a longer atom around it."""
    before, after = text[start - 1 : start], text[end : end + 2]
    if before and not (before.isspace() or before in "\"'“\u2018«`("):
        return False
    return (
        not after
        or after[0].isspace()
        or (after[0] in ".,;:!?)'\"”\u2019»`" and (len(after) == 1 or not after[1].isalnum()))
    )


def words_of_user(
    prompts: Iterable[str],
    *,
    silent: Collection[int] = (),
    verbs: frozenset[str] = frozenset(),
    effects: frozenset[str] = frozenset(),
) -> Words:
    """The words of all messages that the user wrote, one after the other; the silent ones, by number, say nothing.

    `verbs` are the stems of what tools are asked with, `effects` those of the ones that change something.
    """
    read = [
        blanked(text) if number in silent else own_words(text, effects, verbs) for number, text in enumerate(prompts)
    ]
    written = "\n\n".join(read)[:PROMPT_CHARS_MAX]
    strings: dict[str, tuple[int, int]] = {}
    own, bare = without_idle(written, take_quotes(written, {}))
    tokens = tokens_of(take_references(bare, {}))
    negated = negated_in(bare, tokens)
    said, bare = _without(own, negated), _without(bare, negated)
    take_quotes(said, strings)
    plain = take_references(bare, strings)
    names = set(strings)
    moments = moments_in(plain)
    kept = _outside(tokens, negated)
    said_tokens = tuple([tokens[place] for place in kept])
    names |= take_atoms(plain, said_tokens, moments, strings)
    numbers = numbers_of(plain, said_tokens, moments, verbs)
    lowered = [tokens[place].text.lower() for place in kept]
    ordered = {place for place in kept if tokens[place].opens or tokens[place - 1].text.lower() in LEADS}
    elsewhere = {tokens[place].text for place in kept if place not in ordered}
    return Words(
        own=own,
        bare=bare,
        strings=strings,
        names=frozenset(names),
        numbers=numbers,
        references=frozenset(form for found in references_in(said) for form in (found.text, found.compact)),
        moments=moments,
        tokens=tokens,
        stems=frozenset(stem(part) for word in lowered for part in (word, *word.split("-"))),
        orders=frozenset(tokens[place].text for place in ordered) - elsewhere - names,
        lower=frozenset(part for word in lowered for part in (word, *word.split("-"))),
        spaced=_SPACE.sub(" ", written),
        places=_places_of(tokens, kept),
        ends=tuple([token.end for token in tokens]),
        first={stem(tokens[place].text): (tokens[place].start, tokens[place].end) for place in reversed(kept)},
        amounts=amounts_in(plain, tokens, numbers),
        negated=negated,
        numbered=tuple(
            sorted(
                ((key, said) for key, uses in numbers.items() for said in uses if not said.is_converted),
                key=lambda one: one[1].start,
            )
        ),
    )


def _start_of(stretch: tuple[int, int]) -> int:
    return stretch[0]


def _without(text: str, stretches: Iterable[tuple[int, int]]) -> str:
    """The text with these stretches, which come in order, blanked out."""
    parts: list[str] = []
    last = 0
    for start, end in stretches:
        parts += [text[last:start], blanked(text[start:end])]
        last = end
    return "".join((*parts, text[last:]))


def _outside(tokens: tuple[Token, ...], stretches: tuple[tuple[int, int], ...]) -> list[int]:
    """The places of the tokens that stand in none of these stretches."""
    if not stretches:
        return list(range(len(tokens)))
    edges = [edge for stretch in stretches for edge in stretch]
    return [place for place, token in enumerate(tokens) if bisect_right(edges, token.start) % 2 == 0]


def _places_of(tokens: tuple[Token, ...], kept: list[int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for place in kept:
        found.setdefault(tokens[place].text, []).append(place)
    return {text: tuple(places) for text, places in found.items()}
