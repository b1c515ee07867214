"""Negation: the stretches of the words that say what is not to be. What stands only there supplies nothing.

Rule 1: "not", "don't" and "never" hold to the end of their clause; "without" and "except" hold for the thing named next.
Rule 2: a clause ends with its sentence, with a bracket or a dash, with "but", "instead" or "then", and with a comma that
        no list goes on behind.
Rule 3: "must not" and "should not" are said of what stands before them, too.
Rule 4: in doubt a negation reaches further: the gate then asks.
"""

import re
from collections.abc import Iterator, Sequence

from remit.provenance.atoms import Token
from remit.provenance.vocabulary import PREPOSITIONS

# A clause of more words is a list; what is negated then goes to the end of the sentence.
CLAUSE_WORDS_MAX = 200

# What turns a clause around, and what takes out the thing named next.
_OF_CLAUSES = frozenset(
    {"not", "don't", "dont", "never", "nor", "neither", "avoid", "mustn't", "shouldn't", "won't", "nobody", "none"}
)
_OF_THINGS = frozenset({"without", "except", "excluding", "excepting", "besides", "minus"})
# "instead of Ann", "anybody but Ann".
_PAIRED = {"instead": "of", "rather": "than", "other": "than", "apart": "from", "aside": "from", "but": "for"}
_MODALS = frozenset({"must", "should", "may", "shall"})
_MODAL_NEGATIONS = frozenset({"mustn't", "shouldn't"})
# "do not forget to" and "not only" say that something is to be.
_REVERSED = frozenset({"forget", "only", "just", "hesitate"})
_TURNS = frozenset({"but", "instead", "then", "rather", "because"})
_WITHIN = PREPOSITIONS - {"and", "or"} | {"that", "which", "who"}
_BREAK = re.compile(r"[()\[\]{};]|\s[-\u2013\u2014]+\s|\u2014")
_WORDS = _OF_CLAUSES | _OF_THINGS | _PAIRED.keys()
# A colon ends no clause here: what it leads to is what is negated.
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')]|$)|(?<!:)\n")
# Behind a comma a list goes on with a name, an address or a quotation, or with a plain word that ends there again.
_GOES_ON = re.compile(
    r",\s*(?:and\s+|or\s+|nor\s+)?(?:[^\sa-z]|[a-z][\w'-]*(?:\s*(?:[,.;!?]|$)|\s+(?:and|or|nor)\b|[@./]\S))"
)


def negated_in(bare: str, tokens: Sequence[Token]) -> tuple[tuple[int, int], ...]:
    """From where to where the words say what is not to be; `bare` has the quotations blanked out."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(_stretches(bare, tokens)):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return tuple(merged)


def _stretches(bare: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    lowered = [token.text.lower().replace("\u2019", "'") for token in tokens]
    for place, word in enumerate(lowered):
        if word not in _WORDS:
            continue
        after = lowered[place + 1] if place + 1 < len(tokens) and not tokens[place + 1].opens else ""
        if after in _REVERSED:
            continue
        if word in _OF_CLAUSES:
            is_of_subject = word in _MODAL_NEGATIONS or (place > 0 and lowered[place - 1] in _MODALS)
            start = _clause_start(bare, tokens, place) if is_of_subject else tokens[place].end
            yield start, _end(bare, tokens, lowered, place, _TURNS)
        elif word in _OF_THINGS:
            yield tokens[place].end, _end(bare, tokens, lowered, place, _TURNS | _WITHIN)
        elif after and _PAIRED[word] == after:
            yield tokens[place + 1].end, _end(bare, tokens, lowered, place + 1, _TURNS | _WITHIN)


def _end(bare: str, tokens: Sequence[Token], lowered: list[str], place: int, stops: frozenset[str]) -> int:
    """Where what a word begins ends."""
    start = tokens[place].end
    ended = _SENTENCE_END.search(bare, start)
    last = ended.start() if ended else len(bare)
    # The word right behind belongs to the negation: "not for Ann", "except in Rome".
    for number in range(place + 2, min(place + CLAUSE_WORDS_MAX, len(tokens))):
        if tokens[number].start >= last:
            break
        if lowered[number] in stops:
            last = tokens[number].start
    if found := _BREAK.search(bare, start, last):
        last = found.start()
    comma = bare.find(",", start, last)
    while comma >= 0:
        if _GOES_ON.match(bare, comma) is None:
            return comma
        comma = bare.find(",", comma + 1, last)
    return last


def _clause_start(bare: str, tokens: Sequence[Token], place: int) -> int:
    """Where the clause of a word begins."""
    first = place
    while first > 0 and not tokens[first].opens:
        first -= 1
    start = tokens[first - 1].end if first else 0
    for ended in _SENTENCE_END.finditer(bare, start, tokens[place].start):
        start = ended.end()
    return max(start, bare.rfind(",", start, tokens[place].start) + 1)
