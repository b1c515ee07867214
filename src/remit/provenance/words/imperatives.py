"""Imperatives: the places where the user tells the one who reads the words to do something.

Rule 1: an order is a verb that begins a sentence or a clause, after "please", "and", "then" and the like, or after a form
        of request: "can you", "I want you to", "make sure to".
Rule 2: a subject makes a statement, and what it goes on to say is none of the user's orders: "Bob plans to sell it, delete
        the copy and leave". So is what a gerund, a participle or a third person says.
Rule 3: a sentence with a condition, also an inverted one, orders nothing, and neither does a question that is no request,
        what another person says ("..., said Ann") and what is taken back behind a dash.
Rule 4: what follows a colon, or "that" and a subject, is what is to be said, and not what is to be done.
Rule 5: in doubt it is no order: the gate then asks.
"""

from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

from remit.core.regex import regex
from remit.provenance.words.atoms import Token
from remit.provenance.words.remarks import is_state
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import (
    ANNOUNCING,
    FUNCTION_WORDS,
    HAVING,
    LEADS,
    MODALS,
    PREPOSITIONS,
    QUESTIONS,
    is_plain_word,
    stem,
)

# More is never dictated; what stands behind it orders nothing.
PLANNED_WORDS_MAX = 4_000
# What may stand before a verb without making it anything but an order.
_OPENERS_SAID = """
    please pls plz and then now also but so just kindly next finally first ok okay yes hi hello hey thanks again
    instead afterwards alright completely fully entirely immediately promptly directly quickly
"""
_OPENERS = frozenset(_OPENERS_SAID.split())
_POLITE = frozenset({"please", "pls", "plz", "kindly"})
_JOINING = frozenset({"and", "then"})
_REQUEST = regex(
    r"(?:(?:can|could|would|will) (?:you|u)|(?:you|u) (?:should|must|need to|have to)"
    r"|(?:(?:i|we)(?:'d| would)? )?(?:want|need|like|wish)(?: (?:you|u))? to|help me(?: to)?"
    r"|make sure (?:to|(?:that )?you)|(?:be sure|remember|(?:don't|do not) forget) to|go ahead and|let's) "
)
_REQUEST_WORDS_MAX = 6
_CONDITIONS = frozenset({"if", "unless", "provided", "assuming"})
# These make a condition only where they open the sentence.
_OPENING_CONDITIONS = frozenset({"when", "whenever", "once", "should", "had", "suppose"})
# What stands before its subject only where it makes a condition.
_INVERTED = frozenset({"were", "had"})
_SUBJECTS = frozenset({"i", "it", "he", "she", "we", "they", "you", "there"})
_SPEAKING = frozenset({"said", "says", "wrote", "told"})
_SPEAKER_WORDS_MAX = 4
_GOING_ON = (
    LEADS | PREPOSITIONS | {"thanks", "thank", "today", "now", "tomorrow", "because", "the", "a", "all", "both", "it's"}
)
_TAKING_BACK = frozenset({"just", "only", "or", "well", "actually", "sorry"})
_DASH = regex(r"[\u2013\u2014]|\s-+\s")
_ASKED = regex(r"\?(?=\s|$)")
_COLON = regex(r":(?=\s|$)")
_BLOCK = regex(r"\n[ \t]+\n|[ \t]{3,}\n\n")
_CUT = regex(r"[,;()\[\]{}\u2013\u2014]|\s-+\s")
_VERB = regex(r"[^\W\d_](?:[^\W_]|['-])*")


def imperatives_in(words: Words, known: frozenset[str], bases: Set[str] = frozenset()) -> tuple[int, ...]:
    """The places of the verbs that order something; `known` are the stems of the verbs that tools have.

    `bases` are those verbs as tools spell them: "shred" and "string" end like another form and are none.
    """
    tokens = words.tokens[:PLANNED_WORDS_MAX]
    lowered = [token.text.lower().replace("\u2019", "'") for token in tokens]
    found: list[int] = []
    for start, end in _sentences(words, len(tokens)):
        found += _Sentence(words, lowered, known, start, end, bases).heads()
    return tuple(sorted(place for place in set(found) if not words.is_negated(place)))


def _sentences(words: Words, count: int) -> Iterator[tuple[int, int]]:
    """From where to where the sentences go that may order something: those behind a colon do not."""
    firsts = [place for place in range(count) if words.tokens[place].opens]
    # What ends that which a colon leads to: the line, or for a list below it the paragraph.
    until = ""
    for number, start in enumerate(firsts):
        gap = gap_before(words, start)
        if until and until in gap:
            until = ""
        # A block that was pasted in, and blanked out, is what a colon before it leads to.
        is_announced = number > 0 and _is_announcing(words.tokens[firsts[number - 1] : start])
        if start and (found := _COLON.search(gap)) is not None and _BLOCK.search(gap) is None and not is_announced:
            until = "\n\n" if "\n" in gap[found.end() :] else "\n"
        if not until:
            yield start, firsts[number + 1] if number + 1 < len(firsts) else count


def _is_announcing(said: Sequence[Token]) -> bool:
    """Whether a colon leads to an order rather than to what is to be said: "Task: …", "I need one thing: …"."""
    return bool(said) and all(token.text.lower() in ANNOUNCING for token in said)


def gap_before(words: Words, place: int) -> str:
    """What stands between a word and the one before it: signs, and what is no word, such as an address."""
    return words.bare[words.tokens[place - 1].end if place else 0 : words.tokens[place].start]


class _Sentence:
    """One sentence, cut into clauses at its commas."""

    def __init__(
        self, words: Words, lowered: list[str], known: frozenset[str], start: int, end: int, bases: Set[str]
    ) -> None:
        self._words, self._lowered, self._known, self._bases = words, lowered, known, bases
        self._start, self._end = start, end

    def heads(self) -> Iterator[int]:
        """The verbs of its orders."""
        if not _CONDITIONS.isdisjoint(self._lowered[self._start : self._end]) or self._has_moment():
            return
        if self._is_inverted() or self._is_spoken() or self._is_taken_back():
            return
        first, _ = self._led(self._start, self._end)
        is_question = self._is_question(first)
        is_open = first < self._end and (is_question or self._lowered[first] not in _OPENING_CONDITIONS)
        for start, end in self._clauses() if is_open else ():
            place, is_request = self._led(start, end)
            if place == end:
                continue
            is_order = is_request or (is_open and not is_question and not self._has_subject(place, end))
            if is_order:
                yield place
            said = next((one for one in range(place, end) if self._is_telling(one, end)), end)
            yield from self._joined(place, said, is_order=is_order)
            is_open = is_open and said == end and (is_request or not self._goes_on(place, end))

    def _is_inverted(self) -> bool:
        """Whether a condition is said by the order of its words: "were it me", ", had Bob agreed", ", should it be old"."""
        for one in range(self._start + 1, self._end - 1):
            word, after = self._lowered[one], self._lowered[one + 1]
            if word in _INVERTED and after in _SUBJECTS:
                return True
            if word in _INVERTED | {"should"} and _CUT.search(gap_before(self._words, one)):
                return True
        return False

    def _is_spoken(self) -> bool:
        """Whether who says all this stands behind it: ", said Ann", ", Ann wrote"."""
        *_, (start, end) = self._clauses()
        said = range(start, end)
        if start == self._start or len(said) > _SPEAKER_WORDS_MAX or self._lowered[start] in FUNCTION_WORDS:
            return False
        if stem(self._lowered[start]) in self._known:
            return False
        is_verb = [self._lowered[one] in _SPEAKING or self._lowered[one].endswith(("ed", "s")) for one in said]
        is_name = [self._words.tokens[one].text[:1].isupper() for one in said]
        return any(is_verb) and (any(is_name) or self._lowered[end - 1] in _SUBJECTS)

    def _is_taken_back(self) -> bool:
        """Whether something stands behind a dash or a bracket that neither goes on nor thanks: " - just kidding"."""
        for start, end in pairwise([*self._cuts(), self._end]):
            word, gap = self._lowered[start], gap_before(self._words, start)
            if _DASH.search(gap):
                is_known = word in _GOING_ON or stem(word) in self._known or not word.isalpha()
                is_known = is_known or is_state(self._lowered[start:end])
                if not is_known and not self._words.tokens[start].text[:1].isupper() and '"' not in gap:
                    return True
            elif (
                word in _TAKING_BACK
                and end - start <= _SPEAKER_WORDS_MAX
                and stem(self._lowered[end - 1]) not in self._known
            ):
                return True
        return False

    def _has_moment(self) -> bool:
        """Whether something is to be done once something else is so; "do it once" is no such thing."""
        said = self._lowered[self._start : self._end]
        return any(
            word == "once" and place + 1 < len(said) and said[place + 1] not in _OPENERS | PREPOSITIONS
            for place, word in enumerate(said)
        ) or "as soon as" in " ".join(said)

    def _joined(self, place: int, end: int, *, is_order: bool) -> Iterator[int]:
        """The further verbs of a clause: "read it and send it"."""
        for one in range(place + 1, end):
            if self._lowered[one - 1] not in _JOINING or self._lowered[one] in _JOINING:
                continue
            verb, is_request = self._led(one, end)
            if verb < end and (is_request or (is_order and self._is_verb(verb))):
                yield verb

    def _led(self, place: int, end: int) -> tuple[int, bool]:
        """Where a clause begins behind what leads into it, and whether that makes a request of it."""
        is_request = False
        while place < end:
            if self._lowered[place] in _OPENERS:
                is_request = is_request or self._lowered[place] in _POLITE
                place += 1
                continue
            ahead = " ".join(self._lowered[place : min(place + _REQUEST_WORDS_MAX, end)]) + " "
            found = _REQUEST.match(ahead)
            if found is None:
                break
            place, is_request = place + found.group().count(" "), True
        return place, is_request and place < end and not self._is_inflected(place)

    def _has_subject(self, place: int, end: int) -> bool:
        """Whether a clause begins with what it speaks of, rather than with what is to be done."""
        word, after = self._lowered[place], self._lowered[place + 1] if place + 1 < end else ""
        if (word.partition("'")[0] in FUNCTION_WORDS and stem(word) not in self._known) or self._is_inflected(place):
            return True
        if after in HAVING or after in MODALS or after in ("do", "does", "did"):
            return True
        if stem(word) in self._known:
            return False
        # "4 points", "order 17" and "target_user 'bob'" add to what was ordered: no verb is spelled like that.
        if _VERB.fullmatch(word) is None or after[:1].isdigit():
            return True
        is_name = self._words.tokens[place].text[:1].isupper() and place > self._start
        return is_name or (place + 1 < end and self._is_inflected(place + 1))

    def _is_verb(self, place: int) -> bool:
        return stem(self._lowered[place]) in self._known and not self._is_inflected(place)

    def _is_inflected(self, place: int) -> bool:
        """Whether a word has the ending of a gerund, a participle, a plural or a third person, and is no verb of a tool."""
        word, length = self._lowered[place], len(self._lowered[place])
        if word in self._bases:
            return False
        is_verbal = (word.endswith("ing") and length > 5) or (word.endswith("ed") and length > 4)
        return is_verbal or (word.endswith("s") and not word.endswith("ss") and length > 3)

    def _is_telling(self, place: int, end: int) -> bool:
        """Whether "that" leads to what is said: a subject follows, and not the verb of "files that are old"."""
        return self._lowered[place] == "that" and place + 1 < end and self._lowered[place + 1] not in HAVING | MODALS

    def _goes_on(self, place: int, end: int) -> bool:
        """Whether a clause that no known verb begins tells what a person will do, so that a list may go on behind it."""
        if stem(self._lowered[place]) in self._known:
            return False
        inside = range(place + 1, end)
        return any(
            (word in MODALS and self._words.tokens[one].text == word)
            or (word == "to" and one + 1 < end and is_plain_word(self._words.tokens[one + 1].text))
            for one, word in ((one, self._lowered[one]) for one in inside)
        )

    def _is_question(self, first: int) -> bool:
        word, after = (*self._lowered[first : min(first + 2, self._end)], "", "")[:2]
        if word in QUESTIONS and (word not in _OPENING_CONDITIONS or after in HAVING):
            return True
        last = self._words.tokens[self._end - 1].end
        ahead = self._words.tokens[self._end].start if self._end < len(self._words.tokens) else len(self._words.own)
        return _ASKED.search(self._words.bare, last, ahead) is not None

    def _clauses(self) -> Iterator[tuple[int, int]]:
        yield from pairwise([self._start, *self._cuts(), self._end])

    def _cuts(self) -> list[int]:
        return [one for one in range(self._start + 1, self._end) if _CUT.search(gap_before(self._words, one))]
