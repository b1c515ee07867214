"""Planning: which effects the user's words ask for, and how often. Computed before the first result is seen.

Rule 1: a tool is asked for by its own words.
Rule 2: a word asks when it stands as a verb or as a new thing ("make a transfer"), not as a thing that exists ("the
        transfer"), not in the past, not negated, not quoted and not pasted. What is asked, or said of another person, is
        no order: "can Ann send it?", "what I should delete".
Rule 3: a verb that no tool knows as its own may still find one: any word of a name or description, but only where
        the user's sentence puts it as an order.
Rule 4: once, unless all, each, every, both, twice or a number is said of that order.
Rule 5: the plan is a second signal. It makes the gate ask and never makes it allow.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from remit.core.record import Record
from remit.core.regex import regex
from remit.provenance.atoms import Token
from remit.provenance.declarations import Declaration
from remit.provenance.tool_words import ToolWords
from remit.provenance.user_words import Words
from remit.provenance.vocabulary import (
    ASIDES,
    COUNTS,
    DEFINITE,
    FUNCTION_WORDS,
    HAVING,
    INQUIRING,
    JOINING,
    LEADS,
    MODALS,
    NEGATIONS,
    PAIRS,
    PARTICIPLES,
    PASSIVES,
    PRONOUNS,
    QUESTIONS,
    REQUESTED,
    STATING,
    TIMES,
    UNIVERSALS,
    stem,
)

# As many as there are targets; each of them once.
MANY = 1_000_000
# More is never dictated; what stands behind it asks for nothing.
PLANNED_WORDS_MAX = 4_000
# How many words back a "not" still holds.
_NEGATED_WORDS_MAX = 3
# "remind" finds "reminder"; shorter roots begin too many words.
_ROOT_CHARS_MIN = 5
_WORD = regex(r"\w")


class Asked(Record):
    """How often a tool is asked for, how often on one target, and the places of the words that say so."""

    count: int = 0
    times: int = 1
    places: tuple[int, ...] = ()
    universals: tuple[int, ...] = ()
    words: tuple[str, ...] = ()


NOT_ASKED = Asked()


class Plan(Record):
    """What is asked of each tool that changes anything."""

    asked: dict[str, Asked]

    def of(self, tool: str) -> Asked:
        """What is asked of a tool; of an unknown one, nothing."""
        return self.asked.get(tool, NOT_ASKED)

    def universals_of(self, tool: str) -> tuple[int, ...]:
        """The places of universal words that are said of a tool's order."""
        return self.of(tool).universals


def asked_plan(words: Words, tools: Mapping[str, Declaration]) -> Plan:
    """The plan that the user's words make, for the tools at hand."""
    return plan_with(words, ToolWords(tools))


def plan_with(words: Words, tools: ToolWords) -> Plan:
    """The same for tools whose words are known."""
    orders = _orders(words, tools.known)
    sentences = _Sentences(words.tokens[:PLANNED_WORDS_MAX], [place for place, _, _ in orders])
    # What an order is about is asked of many tools.
    about = {place: sentences.stems_after(place) for place, found, _ in orders if found in tools.known}
    loose = [(place, found) for place, found, leads in orders if leads and found not in tools.known]
    asked = {}
    for name, stems in tools.wide.items():
        own = [
            place
            for place, found, leads in orders
            if found in tools.actions[name]
            and (leads or found not in tools.things or sentences.is_after_comma(words, place))
            and tools.is_meant(name, found, about[place])
        ]
        asked[name] = _count([*own, *(place for place, found in loose if _begins(found, stems))], sentences)
    return Plan(asked)


def _begins(found: str, stems: frozenset[str]) -> bool:
    """Whether a verb is one of the words, or the root of one that is long enough to be no accident."""
    return found in stems or (len(found) >= _ROOT_CHARS_MIN and any(known.startswith(found) for known in stems))


def _orders(words: Words, known: frozenset[str]) -> list[tuple[int, str, bool]]:
    """The places where a word could ask for something: place, stem, and whether the sentence puts it as an order."""
    found = []
    asking = _asking(words)
    for place, token in enumerate(words.tokens[:PLANNED_WORDS_MAX]):
        word = token.text.lower()
        if word in FUNCTION_WORDS and stem(word) not in known:
            continue
        before = _before(words.tokens, place)
        if NEGATIONS.intersection(before) or words.is_negated(place) or not _may_ask(word, before):
            continue
        if before and before[-1] in PASSIVES:
            word = PARTICIPLES.get(word, word)
        leads = not before or before[-1] in LEADS
        if asking[place]:
            continue  # "what did Ann write?" asks for an answer, not for an effect.
        found.append((place, stem(word), leads))
    return found


def _asking(words: Words) -> list[bool]:
    """For each word whether it is no order: in a question, in "tell me what to send", in "Ann can send it"."""
    tokens = words.tokens[:PLANNED_WORDS_MAX]
    lowered = [token.text.lower() for token in tokens]
    found: list[bool] = []
    sentence = clause = 0
    is_indirect = False
    for place, token in enumerate(tokens):
        before = lowered[place - 1] if place and not token.opens else ""
        if token.opens or before in JOINING or "," in _gap(words, place):
            clause, is_indirect = place, False
            sentence = place if token.opens else sentence
        is_question = before not in JOINING and _opens_question(words, lowered, sentence)
        is_question = is_question or (clause < place and _opens_question(words, lowered, clause))
        found.append(is_question or is_indirect or (before in MODALS and _has_subject(words, lowered, place - 1)))
        is_indirect = is_indirect or lowered[place] in INQUIRING
    return found


def _gap(words: Words, place: int) -> str:
    """What stands between a word and the one before it: signs, and what is no word, such as an address."""
    return words.own[words.tokens[place - 1].end if place else 0 : words.tokens[place].start]


def _opens_question(words: Words, lowered: list[str], place: int) -> bool:
    """Whether a question begins at a place; "could you" begins a request, and "a.txt should" is said of a file."""
    word, after = lowered[place], lowered[place + 1] if place + 1 < len(lowered) else ""
    if word in MODALS:
        return after not in REQUESTED and _WORD.search(_gap(words, place)) is None
    return word in QUESTIONS or (word == "do" and after in PRONOUNS)


def _has_subject(words: Words, lowered: list[str], place: int) -> bool:
    """Whether what may or should be is said of another than the one who is asked."""
    if _WORD.search(_gap(words, place)) is not None:
        return True
    return not words.tokens[place].opens and lowered[place - 1] not in REQUESTED | JOINING


def _before(tokens: tuple[Token, ...], place: int) -> list[str]:
    """The words just before a place, back to where its sentence begins."""
    before: list[str] = []
    while place > 0 and not tokens[place].opens and len(before) < _NEGATED_WORDS_MAX:
        place -= 1
        before.insert(0, tokens[place].text.lower())
    return before


def _may_ask(word: str, before: list[str]) -> bool:
    last = before[-1] if before else ""
    if last in DEFINITE or last in HAVING:
        return False
    if word.endswith("ed") and len(word) > 4:
        return last in PASSIVES
    if word.endswith("s") and not word.endswith("ss"):
        return last in COUNTS or last in UNIVERSALS or last.isdecimal()
    return True


class _Sentences:
    """Where sentences begin and end, which words open an order, and which words say how often."""

    def __init__(self, tokens: tuple[Token, ...], orders: list[int]) -> None:
        self.tokens = tokens
        self.lowered = [token.text.lower() for token in tokens]
        self.firsts = [place for place, token in enumerate(tokens) if token.opens]
        self.verbs = [place for place in orders if tokens[place].opens or self.lowered[place - 1] in LEADS]
        self.amounts = [place for place, word in enumerate(self.lowered) if _says_how_often(word)]

    def is_after_comma(self, words: Words, place: int) -> bool:
        """Whether a comma stands just before a word: "the cheapest flight, book it"."""
        return place > 0 and "," in words.bare[self.tokens[place - 1].end : self.tokens[place].start]

    def stems_after(self, place: int) -> frozenset[str]:
        """The stems of what an order is about: its words up to an aside, to the next order or to the sentence's end."""
        ahead = bisect_right(self.firsts, place)
        last = self.firsts[ahead] if ahead < len(self.firsts) else len(self.tokens)
        other = bisect_right(self.verbs, place)
        last = min(last, self.verbs[other]) if other < len(self.verbs) else last
        said: list[str] = []
        for word in self.lowered[place + 1 : last]:
            # "a summary of the channel" speaks of a summary; "all of the files" of files.
            if word in ASIDES and said and said[-1] not in UNIVERSALS and said[-1] not in COUNTS:
                break
            said.append(word)
        return frozenset(stem(word) for word in said)

    def governs(self, places: tuple[int, ...], at: int) -> bool:
        """Whether a word belongs to one of these orders: the nearest order before it, or it opens their sentence."""
        ahead = bisect_right(self.firsts, at)
        first = self.firsts[ahead - 1] if ahead else 0
        last = self.firsts[ahead] if ahead < len(self.firsts) else len(self.tokens)
        before = bisect_left(places, at)
        if before and places[before - 1] >= first:
            other = bisect_right(self.verbs, places[before - 1])
            return other == len(self.verbs) or self.verbs[other] >= at
        opens = at == first or (at == first + 1 and self.lowered[first] in FUNCTION_WORDS)
        return opens and before < len(places) and places[before] < last


def _says_how_often(word: str) -> bool:
    return (
        word in UNIVERSALS or word in PAIRS or word in TIMES or word in COUNTS or (word.isdecimal() and len(word) < 3)
    )


def _count(found: list[int], sentences: _Sentences) -> Asked:
    places = tuple(sorted(set(found)))
    if not places:
        return NOT_ASKED
    count, times, universals = len(places), 1, []
    for place in sentences.amounts:
        if not sentences.governs(places, place):
            continue
        word = sentences.lowered[place]
        after = sentences.lowered[place + 1] if place + 1 < len(sentences.lowered) else ""
        number = COUNTS.get(word) or (int(word) if word.isdecimal() else 0)
        if after in STATING:
            continue  # "all is well" is said of nothing.
        if word in UNIVERSALS or word in PAIRS:
            universals.append(place)
            count = max(count, 2 if word in PAIRS else MANY)
        elif word in TIMES or (number and after == "times"):
            times = max(times, TIMES.get(word, number))
        elif number and after.endswith("s"):
            count = max(count, number)
    said = tuple([sentences.tokens[place].text for place in places])
    return Asked(max(count, times), times, places, tuple(universals), said)
