"""Negation: the stretches of the words that say what is not to be. What stands only there supplies nothing.

Rule 1: "not", "don't" and "never" hold to the end of their clause; "without" and "except" hold for the thing named next.
Rule 2: a clause ends with its sentence, with a bracket or a dash, with "but", "instead" or "then", and with a comma that
        no list goes on behind.
Rule 3: "must not" and "should not" are said of what stands before them, too.
Rule 4: in doubt a negation reaches further: the gate then asks.
"""

from bisect import bisect_left
from collections.abc import Sequence

from remit.core.regex import regex
from remit.provenance.words.atoms import Token
from remit.provenance.words.vocabulary import PREPOSITIONS

# A clause of more words is a list; what is negated then goes to the end of the sentence.
CLAUSE_WORDS_MAX = 200

# What turns a clause around, and what takes out the thing named next.
_OF_CLAUSES_SAID = """
    not don't dont never nor neither avoid refrain against mustn't shouldn't won't nobody none
"""
_OF_CLAUSES = frozenset(_OF_CLAUSES_SAID.split())
_OF_THINGS = frozenset({"without", "except", "excluding", "excepting", "besides", "minus"})
# "instead of Ann", "anybody but Ann".
_PAIRED = {"instead": "of", "rather": "than", "other": "than", "apart": "from", "aside": "from", "but": "for"}
_MODALS = frozenset({"must", "should", "may", "shall"})
_MODAL_NEGATIONS = frozenset({"mustn't", "shouldn't"})
# "do not forget to" and "not only" say that something is to be.
_REVERSED = frozenset({"forget", "only", "just", "hesitate"})
_TURNS = frozenset({"but", "instead", "then", "rather", "because"})
_WITHIN = PREPOSITIONS - {"and", "or"} | {"that", "which", "who"}
_BREAK = regex(r"[()\[\]{};]|\s[-\u2013\u2014]+\s|\u2014")
NEGATING = _OF_CLAUSES | _OF_THINGS | _PAIRED.keys()
# A colon ends no clause here: what it leads to is what is negated.
_SENTENCE_END = regex(r"[.!?](?=[\s\"')]|$)|(?<!:)\n")
# Behind a comma a list goes on with a name, an address or a quotation, or with a plain word that ends there again.
_GOES_ON = regex(
    r",\s*(?:and\s+|or\s+|nor\s+)?(?:(?!I\b)[^\sa-z]|[a-z][\w'-]*(?:\s*(?:[,.;!?]|$)|\s+(?:and|or|nor)\b|[@./]\S))"
)


def negated_in(bare: str, tokens: Sequence[Token]) -> tuple[tuple[int, int], ...]:
    """From where to where the words say what is not to be; `bare` has the quotations blanked out."""
    clauses = _Clauses(bare, tokens)
    found: list[tuple[int, int]] = []
    for place, word in enumerate(clauses.lowered):
        # What is negated already is not negated once more.
        if word not in NEGATING or (found and tokens[place].start < found[-1][1]):
            continue
        start, end = clauses.stretch(place)
        while found and start <= found[-1][1] and start < end:
            start = min(start, found.pop()[0])
        if start < end:
            found.append((start, end))
    return tuple(found)


class _Clauses:
    """The clauses of a text, found from the words that negate them."""

    def __init__(self, bare: str, tokens: Sequence[Token]) -> None:
        self.lowered = [token.text.lower().replace("\u2019", "'") for token in tokens]
        self._bare = bare
        self._tokens = tokens
        self._ends = [found.start() for found in _SENTENCE_END.finditer(bare)]

    def stretch(self, place: int) -> tuple[int, int]:
        """From where to where a word that may negate does so; nowhere when it does not."""
        tokens, word = self._tokens, self.lowered[place]
        after = self.lowered[place + 1] if place + 1 < len(tokens) and not tokens[place + 1].opens else ""
        if after in _REVERSED:
            return 0, 0
        if word in _OF_CLAUSES:
            is_of_subject = word in _MODAL_NEGATIONS or (place > 0 and self.lowered[place - 1] in _MODALS)
            start = self._clause_start(place) if is_of_subject else tokens[place].end
            return start, self._end(place, _TURNS)
        if word in _OF_THINGS:
            return tokens[place].end, self._end(place, _TURNS | _WITHIN)
        if after and _PAIRED[word] == after:
            return tokens[place + 1].end, self._end(place + 1, _TURNS | _WITHIN)
        return 0, 0

    def _end(self, place: int, stops: frozenset[str]) -> int:
        """Where what a word begins ends."""
        bare, start = self._bare, self._tokens[place].end
        ahead = bisect_left(self._ends, start)
        last = self._ends[ahead] if ahead < len(self._ends) else len(bare)
        # The word right behind belongs to the negation: "not for Ann", "except in Rome".
        for number in range(place + 2, min(place + CLAUSE_WORDS_MAX, len(self._tokens))):
            if self._tokens[number].start >= last:
                break
            if self.lowered[number] in stops:
                last = self._tokens[number].start
        comma = bare.find(",", start, last)
        while comma >= 0 and _GOES_ON.match(bare, comma):
            comma = bare.find(",", comma + 1, last)
        last = comma if comma >= 0 else last
        found = _BREAK.search(bare, start, last)
        return found.start() if found else last

    def _clause_start(self, place: int) -> int:
        """Where the clause of a word begins."""
        tokens, first = self._tokens, place
        while first > max(place - CLAUSE_WORDS_MAX, 0) and not tokens[first].opens:
            first -= 1
        start = tokens[first - 1].end if first else 0
        behind = bisect_left(self._ends, tokens[place].start)
        if behind and self._ends[behind - 1] >= start:
            start = self._ends[behind - 1] + 1
        return max(start, self._bare.rfind(",", start, tokens[place].start) + 1)
