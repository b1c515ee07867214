"""Understood clauses: a clause that orders a tool, read word by word. What is understood has a place; what is left over is named.

Rule 1: a clause is its verb, the nouns of the tools, values, articles, prepositions, and few words that change nothing. Each
        other word is a stray: the clause may mean anything, until the call itself accounts for the word.
Rule 2: a value has a role: that of the direct object, or of the preposition that leads it in, with the nouns beside it.
Rule 3: what is to be said to a person begins with what leads to it, and ends with the sentence. Nothing in it is a value.
Rule 4: what a pronoun says of the matter, behind a cut or before the order, is a report. Nothing in it is a value either.
Rule 5: a sentence without an order of its own, right before an order or behind it, is read in the same way. It is harmless
        where it is polite, asks what something is, rules a name out, or leads to data; else the order asks.
Rule 6: an order that says "it" or "there" is read together with what stands before it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Set
from functools import cached_property

from remit.core.record import Record, replace
from remit.core.regex import regex
from remit.provenance.words.asked_effects import Plan
from remit.provenance.words.atoms import QUOTATION
from remit.provenance.words.blocks import BLOCK
from remit.provenance.words.clause_items import QUOTE, Item, Slot, Stray
from remit.provenance.words.clause_parts import ClausePart
from remit.provenance.words.moments import moments_in
from remit.provenance.words.remarks import is_context, is_remark
from remit.provenance.words.said_values import MOMENT, NAME, SaidValue, values_between
from remit.provenance.words.tool_words import Lexicon
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import (
    BACK,
    COURTESIES,
    FUNCTION_WORDS,
    HAVING,
    IDLE,
    LEADING_ON,
    LEADS,
    MODALS,
    QUESTIONS,
    STATING,
    SUBJECTS,
    SUPERLATIVES,
    stem,
)

# A number with the sign of its currency or of a number.
_SUM = regex(r"[#$\u20ac\u00a3\u00a5]?\d[\d.,]*[kK]?[$\u20ac\u00a3\u00a5%]?")
# How far behind its first word the verb of a report may stand.
_SUBJECT_WORDS_MAX = 4
_SPOKEN = regex(r"\b(?:noon|midday|midnight)\b")
# What is polite only beside other words that are.
_STRENGTHENING = frozenset({"so", "very", "much", "many", "a", "in", "please", "pls", "plz"})
_FORBIDDING = frozenset({"do", "not", "don't", "don\u2019t", "never", "please"})
# What leaves open which of two orders is meant.
_CHOOSING = frozenset({"or", "nor"})
# At the end of a line, these lead over to the next one.
_LEADING_OVER = FUNCTION_WORDS - IDLE - BACK - COURTESIES - {"and"}
_STOPPED = regex(r"[.!?]")
# A shorter one is the mark of a list.
_NAME_CHARS_MIN = 3
# An identifier in small letters; a bare number may be that of a sentence.
_LETTERED = regex(r"[a-z][\w-]*\d")
# What leads in a list of orders, all of them.
_LEADING_IN = regex(r"(?:please |kindly )?do (?:all of )?(?:the following|this|these|these things)")
_SPACES = regex(r"[^\S\n]+")
_FULL_STOP = regex(r"[.!?](?=[\s\"')]|$)|\n")


class ClauseRead(Record):
    """One clause that orders a tool, with what stands before it as far as it belongs to it."""

    start: int
    end: int
    slots: tuple[Slot, ...]
    strays: tuple[Stray, ...]
    # The stems of the nouns of the direct object.
    things: tuple[str, ...]
    points_back: bool
    # The stretches that tell something and order nothing.
    told: tuple[tuple[int, int], ...]
    # The sentences that the order stands in, or points back to.
    zone: tuple[int, int]


class Sentence(Record):
    """A sentence that orders nothing of the tools, with its values."""

    start: int
    end: int
    values: tuple[SaidValue, ...]
    # Whether it may say something of the order before it: a fragment, an order that no tool has, or what "it" is.
    is_open: bool
    # From which word to which.
    places: tuple[int, int] = (0, 0)


class Reader:
    """Reads the clauses of one plan."""

    def __init__(self, words: Words, plan: Plan, known: Set[str]) -> None:
        """`known` are the stems of the verbs of all tools."""
        self._words, self._plan, self._known = words, plan, known
        self._heads = frozenset(plan.heads)

    def read(self, clause: range, lexicon: Lexicon) -> ClauseRead:
        """The clause that a verb heads, with what stands before it in its sentence."""
        words, place = self._words, clause.start
        first = place
        while first > 0 and not self._ends_before(first):
            first -= 1
        stop = clause.stop
        while stop < len(words.tokens) and not self._ends_before(stop) and not self._is_known(stop):
            stop += 1
        end = self._start_of(stop)
        body = ClausePart(lexicon)
        body.read(self._items(place + 1, stop, lexicon, after=words.tokens[place].end))
        heads = [one for one in self._plan.heads if first <= one < place and self._is_known(one)]
        fore = heads[-1] + 1 if heads else first
        before, start = ClausePart(lexicon), words.tokens[place if heads else first].start
        if heads:
            # What stands before all orders of the sentence, or behind them, may be said of each.
            fore_part = ClausePart(lexicon)
            fore_part.lead_in(self._items(first, heads[0], lexicon), points_back=False)
            before.strays += fore_part.strays
        before.strays += self._led_over(first, place)
        if not heads:
            before.lead_in(self._items(first, place, lexicon), points_back=body.points_back)
        elif body.points_back:
            before.read(self._items(fore, place, lexicon))
        zone = first
        if body.points_back and not before.slots and first:
            zone = first - 1
            while zone > 0 and not self._ends_before(zone):
                zone -= 1
            heads = [one for one in self._plan.heads if zone <= one < first and self._is_known(one)]
            before.recall(self._items(heads[-1] + 1 if heads else zone, first, lexicon), is_order=bool(heads))
        return ClauseRead(
            start=start,
            end=end,
            slots=(*before.slots, *body.slots),
            strays=(*[replace(one, is_fronted=not body.points_back) for one in before.strays], *body.strays),
            things=tuple(body.things),
            points_back=body.points_back,
            told=(*before.told, *body.told),
            zone=(self._opening_of(zone), end),
        )

    def _led_over(self, first: int, place: int) -> list[Stray]:
        """What joins an order to what stands before it otherwise than by "and": "a) … or b) …", "1. … or" and a further line."""
        tokens = self._words.tokens
        joining = [one for one in tokens[first:place] if one.text.lower() in _CHOOSING]
        is_line = first > 0 and _STOPPED.search(self._words.bare, tokens[first - 1].end, tokens[first].start) is None
        if is_line and tokens[first - 1].text.lower() in _LEADING_OVER:
            joining.append(tokens[first - 1])
        return [Stray(one.text, one.start, one.end) for one in joining]

    @cached_property
    def others(self) -> tuple[Sentence, ...]:
        """The sentences that order nothing of the tools."""
        words, found, first = self._words, [], 0
        while first < len(words.tokens):
            last = first + 1
            while last < len(words.tokens) and not self._ends_before(last):
                last += 1
            if not any(self._is_known(place) for place in range(first, last)):
                start, end = self._opening_of(first), self._start_of(last)
                word = words.tokens[first].text.lower()
                is_open = word in ("it", "they", "that") or not (word in SUBJECTS or self._is_report(first, last))
                values = values_between(words, self._plan, words.tokens[first].start, end)
                found.append(Sentence(start, end, tuple(values), is_open, (first, last)))
            first = last
        return tuple(found)

    def strays_beside(self, sentence: Sentence, lexicon: Lexicon, *, is_before: bool) -> list[Stray]:
        """What is not understood in a sentence that orders nothing, before an order or behind it; what harms none has nothing."""
        words, (first, last) = self._words, sentence.places
        said = [token.text.lower() for token in words.tokens[first:last]]
        ahead = words.tokens[last].start if last < len(words.tokens) else len(words.bare)
        gap = words.bare[words.tokens[last - 1].end : ahead]
        is_answered = BLOCK in gap or gap != words.own[words.tokens[last - 1].end : ahead]
        if is_answered and not is_before and not lexicon.is_telling:
            return [Stray(BLOCK, sentence.start, sentence.end)]
        if "?" in gap:
            if said[0] in QUESTIONS:
                return []
            return [Stray(words.own[sentence.start : sentence.end].strip(), sentence.start, sentence.end)]
        said = [word.replace("\u2019", "'") for word in said]
        if is_remark(said, lexicon) or (is_before and is_context(said, lexicon)):
            return []
        if self.is_polite(sentence):
            return []
        # Data of the user, told by a colon; what is to be said.
        if ":" in gap and "\n\n" in _SPACES.sub("", gap):
            return []
        if (said[0] in LEADING_ON and lexicon.is_telling) or (":" in gap and _LEADING_IN.fullmatch(" ".join(said))):
            return []
        if self._rules_out(first, last, lexicon) or self._is_another_order(first, last, lexicon):
            return []
        part = ClausePart(lexicon)
        part.lead_in(self._items(first, last, lexicon), points_back=False)
        return part.strays or [Stray(words.own[sentence.start : sentence.end].strip(), sentence.start, sentence.end)]

    def beside(self, start: int, end: int) -> list[tuple[Sentence, bool]]:
        """The sentences without an order around a stretch, each way up to one that is not polite; whether each is before."""
        others = self.others
        first = last = bisect_right(others, start, key=lambda one: one.end)
        until = since = bisect_left(others, end, key=lambda one: one.start)
        while first and (first == last or self.is_polite(others[first])):
            first -= 1
        while until < len(others) and (until == since or self.is_polite(others[until - 1])):
            until += 1
        return [(one, True) for one in others[first:last]] + [(one, False) for one in others[since:until]]

    def is_polite(self, sentence: Sentence) -> bool:
        """Whether a sentence is a courtesy and nothing else, perhaps with a name: "Thanks, Jo"."""
        tokens = self._words.tokens[sentence.places[0] : sentence.places[1]]
        said = [token.text.lower() for token in tokens]
        courteous = next((at for at, word in enumerate(said) if word not in COURTESIES), len(said))
        is_named = all(one.text.istitle() and one.text.lower() not in FUNCTION_WORDS for one in tokens[courteous:])
        return courteous == len(said) or (courteous > 0 and is_named and said[0] not in _STRENGTHENING)

    def _is_another_order(self, first: int, last: int, lexicon: Lexicon) -> bool:
        """Whether a sentence orders something of its own, which no tool has: all of it is understood, and it names a value."""
        heads = [one for one in self._plan.heads if first <= one < last]
        lead = {token.text.lower() for token in self._words.tokens[first : heads[0]]} if heads else set()
        if not heads or not lead <= LEADS:
            return False
        part = ClausePart(lexicon)
        part.read(self._items(heads[0] + 1, last, lexicon, after=self._words.tokens[heads[0]].end))
        # A bare number may be that of a sentence: "Ignore step 1."
        is_named = any(slot.value.is_marked and slot.value.number is None for slot in part.slots)
        return is_named and not (part.strays or part.points_back or part.told)

    def _rules_out(self, first: int, last: int, lexicon: Lexicon) -> bool:
        """Whether a sentence says of a name what is not to be, which is heeded where the name is: "Do not write to Ann."."""
        words = self._words
        denied = [place for place in range(first, last) if words.is_negated(place)]
        if not denied or denied[-1] - denied[0] >= len(denied) or denied[-1] + 1 != last:
            return False
        lead = {words.tokens[place].text.lower() for place in range(first, denied[0])}
        told = words.own[words.tokens[denied[0]].start : self._start_of(last)]
        is_named = any(sign.isupper() or sign == "@" for sign in told) or _LETTERED.search(told) is not None
        said = [words.tokens[place].text for place in denied]
        if any(word.isdecimal() for word in said):  # It may be that of a sentence: "Do not do step 1."
            is_named = not lexicon.nouns.isdisjoint(map(stem, said))
        # "Not: 1. …" rules out what the list below it orders.
        whole = words.own[self._opening_of(first) : self._start_of(last)]
        is_mark = len(told.strip(" .")) < _NAME_CHARS_MIN or ":" in whole
        return is_named and not is_mark and lead <= _FORBIDDING

    def _is_report(self, first: int, last: int) -> bool:
        """Whether a verb that tells something stands behind the first word."""
        said = [token.text.lower() for token in self._words.tokens[first + 1 : last]]
        return any(
            word in HAVING | STATING | MODALS or word.endswith(("ed", "s")) for word in said[:_SUBJECT_WORDS_MAX]
        )

    def _is_known(self, place: int) -> bool:
        return place in self._heads and stem(self._words.tokens[place].text) in self._known

    def _opening_of(self, place: int) -> int:
        """Where what a word opens begins: behind the full stop before it, since a sentence may end with what is no word."""
        start = self._words.tokens[place - 1].end if place else 0
        if not place or not self._ends_before(place):
            return start
        stops = [one.end() for one in _FULL_STOP.finditer(self._words.bare, start, self._words.tokens[place].start)]
        return stops[-1]

    def _start_of(self, place: int) -> int:
        """Where what stands before a word ends."""
        tokens = self._words.tokens
        if place >= len(tokens):
            return len(self._words.own) + 1
        return self._opening_of(place) if place and self._ends_before(place) else tokens[place].start

    def _ends_before(self, place: int) -> bool:
        tokens = self._words.tokens
        gap = self._words.bare[tokens[place - 1].end : tokens[place].start]
        return tokens[place].opens and _FULL_STOP.search(gap) is not None

    def _is_value(self, one: SaidValue, lexicon: Lexicon) -> bool:
        """Whether a name is none of the words that the reading knows: a number, an argument's name, "highest-rated"."""
        text = one.text.lower()
        if one.sort != NAME:
            return True
        return not (_SUM.fullmatch(text) or text in lexicon.names or text.partition("-")[0] in SUPERLATIVES)

    def _items(self, first: int, stop: int, lexicon: Lexicon, *, after: int = -1) -> list[Item]:
        """The words and values of a stretch in order, each with the signs before it."""
        words = self._words
        begin = after if after >= 0 else self._opening_of(first)
        end = self._start_of(stop)
        said = [one for one in values_between(words, self._plan, begin, end) if self._is_value(one, lexicon)]
        said += [
            SaidValue(MOMENT, found.group(), *found.span(), told=moments_in(found.group()))
            for found in _SPOKEN.finditer(words.bare, begin, min(end, len(words.bare)))
        ]
        said += [
            SaidValue(QUOTE, words.own[found.start() + 1 : found.end() - 1].rstrip(".,;"), found.start(), found.end())
            for found in QUOTATION.finditer(words.own, begin, min(end, len(words.own)))
        ]
        spans = {value.start: value for value in sorted(said, key=lambda one: (one.start, -one.end), reverse=True)}
        values, last = [], begin
        for start in sorted(spans):
            if start >= last:
                values.append(spans[start])
                last = spans[start].end
        found = [Item(one.start, one.end, value=one) for one in values]
        covered = [(one.start, one.end) for one in values]
        for place in range(first, stop):
            token = words.tokens[place]
            at = bisect_right(covered, (token.end - 1, end)) - 1
            if at < 0 or token.start >= covered[at][1]:
                found.append(
                    Item(
                        token.start,
                        token.end,
                        text=token.text.lower().replace("\u2019", "'"),
                        place=place,
                        is_plain=token.text.isalpha() and token.text.islower(),
                    )
                )
        found.sort(key=lambda one: one.start)
        made, last = [], begin
        for one in found:
            made.append(replace(one, gap=words.own[last : one.start]))
            last = max(one.end, last)
        return [*made, Item(end, end, gap=words.own[last:end])]
