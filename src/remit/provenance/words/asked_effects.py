"""Asked effects: which effects the user's words ask for, and how often. Computed before the first result is seen.

Rule 1: a tool is asked for by a word that it declares, or by its own verb and thing.
Rule 2: the word is the verb of an order: of `imperatives`. What is not ordered, in whatever words, is not asked for.
Rule 3: what an order falls on must be the thing in the tool's name, if the order says what kind of thing it is.
Rule 4: once, unless all, each, every, both, twice or a number is said of that order.
Rule 5: the plan is a second signal. It makes the gate ask and never makes it allow.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from remit.core.record import Record, replace
from remit.core.regex import regex
from remit.provenance.words.imperatives import PLANNED_WORDS_MAX, gap_before, imperatives_in
from remit.provenance.words.moments import OFFSETS, WEEKDAYS
from remit.provenance.words.tool_words import ToolWords
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import (
    ASIDES,
    COUNTS,
    DEFINITE,
    FUNCTION_WORDS,
    PAIRS,
    PREPOSITIONS,
    SELF,
    STATING,
    SUPERLATIVES,
    TIMES,
    UNIVERSALS,
    stem,
)

# As many as there are targets; each of them once.
MANY = 1_000_000
# Behind a thing these say when and how often.
_ADVERBS = OFFSETS.keys() | frozenset(WEEKDAYS) | {"times"}
_BESIDE = FUNCTION_WORDS | _ADVERBS
_NAMING = frozenset({"called", "named", "ending"})
_HOW = regex(r"(?:al|ul|te|nt|us|ve|ck|re)ly$")


class Asked(Record):
    """How often a tool is asked for, how often on one target, and the places of the words that say so."""

    count: int = 0
    times: int = 1
    places: tuple[int, ...] = ()
    universals: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    # The stems of what the orders say that they fall on.
    things: frozenset[str] = frozenset()
    # Other tools that the same words ask for, and how often these words ask in all: an act uses them up.
    others: tuple[str, ...] = ()
    together: int = 0


NOT_ASKED = Asked()


class Plan(Record):
    """What is asked of each tool that changes anything."""

    asked: dict[str, Asked]
    # The places of all verbs that order something, also of those that no tool has.
    heads: tuple[int, ...] = ()
    # What the orders fall on, by stems: each order's things once, and all of them.
    falls_on: frozenset[frozenset[str]] = frozenset()
    things: frozenset[str] = frozenset()

    def of(self, tool: str) -> Asked:
        """What is asked of a tool; of an unknown one, nothing."""
        return self.asked.get(tool, NOT_ASKED)

    def universals_of(self, tool: str) -> tuple[int, ...]:
        """The places of universal words that are said of a tool's order."""
        return self.of(tool).universals


def plan_with(words: Words, tools: ToolWords) -> Plan:
    """The effects that the words ask for, for tools whose words are known."""
    heads = imperatives_in(words, tools.known, tools.bases)
    sentences = _Sentences(words, heads)
    orders = [
        (place, found, sentences.things_after(place), sentences.stems_after(place))
        for place in heads
        if (found := stem(words.tokens[place].text)) in tools.known
    ]
    places = {
        name: [
            place
            for place, found, things, said in orders
            if found in tools.actions[name] and tools.is_meant(name, found, things, said)
        ]
        for name in tools.objects
    }
    # An order whose verb means no tool may still fall on what a tool declares: "set my out of office".
    meant = {place for found in places.values() for place in found}
    others = [place for place in heads if place not in meant]
    for name, phrases in tools.phrases.items():
        places[name] += [place for place in heads for phrase in phrases if sentences.begins_with(place, phrase)]
        places[name] += [place for place in others for phrase in phrases if sentences.falls_on(place, phrase)]
    # A folder is made for what is put into it.
    for name in tools.making:
        if not places[name]:
            places[name] += [place for other in tools.takes_path - tools.making for place in places.get(other, ())]
    asked = {name: _count(found, sentences) for name, found in places.items()}
    falls_on = frozenset([one.things for one in asked.values() if one.things])
    verbs = {name: frozenset(stem(words.tokens[place].text) for place in found) for name, found in places.items()}
    # Who has the verb of an order does the same, also where the order speaks of no thing that its tool is called by.
    alike = {
        name: frozenset(other for other in places if other != name and not verbs[name].isdisjoint(tools.actions[other]))
        for name in places
    }
    shared = {name: _shared(name, places, one, sentences, alike[name]) for name, one in asked.items()}
    return Plan(shared, heads, falls_on, frozenset[str]().union(*falls_on))


def _shared(
    name: str, places: Mapping[str, list[int]], asked: Asked, sentences: "_Sentences", alike: frozenset[str]
) -> Asked:
    """What is asked of a tool, with the other tools that the same words ask for, or that are `alike` by their verb."""
    own = set(places[name])
    others = [
        other for other, found in places.items() if other != name and (other in alike or not own.isdisjoint(found))
    ]
    if not others:
        return asked
    together = _count([place for one in (name, *others) for place in places[one]], sentences)
    return replace(asked, others=tuple(others), together=together.count)


class _Sentences:
    """Where sentences begin and end, which words open an order, and which words say how often."""

    def __init__(self, words: Words, verbs: tuple[int, ...]) -> None:
        self.tokens = words.tokens[:PLANNED_WORDS_MAX]
        self.lowered = [token.text.lower() for token in self.tokens]
        self.firsts = [place for place, token in enumerate(self.tokens) if token.opens]
        self.verbs = verbs
        self.amounts = [place for place, word in enumerate(self.lowered) if _says_how_often(word)]
        self._words = words

    def words_after(self, place: int) -> frozenset[str]:
        """The stems of all plain words that say what an order falls on."""
        runs, _ = self._runs_after(place)
        return frozenset(stem(word) for run in runs for word in run if word not in SUPERLATIVES)

    def things_after(self, place: int) -> frozenset[str]:
        """The stems of the things that an order falls on: the last word of each run of plain words before an aside."""
        runs, named = self._runs_after(place)
        # "branch main" is a branch, and so is "main branch"; "user group 7" is a group.
        lasts = [run[-1:] if number in named else run[-2:] for number, run in enumerate(runs)]
        return frozenset(stem(word) for last in lasts for word in last if word not in SUPERLATIVES)

    def _runs_after(self, place: int) -> tuple[list[list[str]], set[int]]:
        """The runs of plain words behind a verb, before an aside, and which of them something behind them names."""
        runs: list[list[str]] = [[]]
        named: set[int] = set()
        for one in range(place + 1, self._last(place)):
            word, text = self.lowered[one], self.tokens[one].text
            if (word in ASIDES or word in PREPOSITIONS) and (word != "of" or any(runs)):
                break
            is_plain = text.islower() and text.replace("-", "").isalpha() and word not in _BESIDE
            is_plain = is_plain and not self._says_how(one)
            if not is_plain or word in _NAMING or gap_before(self._words, one).strip():
                # A number, a name or "called" behind a run says that the run is all of what the thing is called.
                named |= {len(runs) - 1} if word not in _BESIDE else set()
                runs.append([])
            if is_plain and word not in _NAMING:
                runs[-1].append(word)
        return runs, named

    def _says_how(self, place: int) -> bool:
        """Whether a word says how, at the end of what is said: "refund it completely"."""
        is_last = place + 1 == len(self.tokens) or bool(gap_before(self._words, place + 1).strip())
        return (is_last or self.lowered[place + 1] in FUNCTION_WORDS) and _HOW.search(self.lowered[place]) is not None

    def listed(self, place: int) -> int:
        """How many numbered things an order lists: "files 13 and 14", "file 13 and file 14"; at least one."""
        listed = 0
        for one in range(place + 1, self._last(place)):
            if self.lowered[one].lstrip("#").isdecimal():
                before = self.lowered[one - 1]
                is_next = listed and (before == "and" or self.lowered[one - 2] == "and" or before.isdecimal())
                listed = listed + 1 if is_next or not listed else listed
        return max(listed, 1)

    def begins_with(self, place: int, phrase: tuple[str, ...]) -> bool:
        """Whether an order begins with these words: "write back", "get rid of"."""
        return tuple(self.lowered[place : place + len(phrase)]) == phrase

    def falls_on(self, place: int, phrase: tuple[str, ...]) -> bool:
        """Whether an order says these words side by side, of something that it does not point to."""
        last = self._last(place)
        for one in range(place + 1, last - len(phrase) + 1):
            if tuple(self.lowered[one : one + len(phrase)]) == phrase and self.lowered[one - 1] not in DEFINITE - SELF:
                return True
        return False

    def stems_after(self, place: int) -> frozenset[str]:
        """The stems of what an order is about: its words up to an aside, to the next order or to the sentence's end."""
        said: list[str] = []
        for word in self.lowered[place + 1 : self._last(place)]:
            # "a summary of the channel" speaks of a summary; "all of the files" of files.
            if word in ASIDES and said and said[-1] not in UNIVERSALS and said[-1] not in COUNTS:
                break
            said.append(word)
        return frozenset(stem(word) for word in said)

    def _last(self, place: int) -> int:
        """Where an order ends: with its sentence, or before the next one."""
        ahead, other = bisect_right(self.firsts, place), bisect_right(self.verbs, place)
        last = self.firsts[ahead] if ahead < len(self.firsts) else len(self.tokens)
        return min(last, self.verbs[other]) if other < len(self.verbs) else last

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
    count, times, universals = sum(map(sentences.listed, places)), 1, []
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
    things = frozenset[str]().union(*map(sentences.words_after, places))
    return Asked(max(count, times), times, places, tuple(universals), said, things)
