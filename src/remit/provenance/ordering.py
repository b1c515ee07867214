"""Ordering clauses: the stretches of the words that order a tool, and what they say about its choices and switches.

Rule 1: numbers, choices and switches of a tool are said where the tool is ordered: from the verb of the order to the next
        order or to the end of the sentence. A quotation may stand anywhere in that sentence.
Rule 2: a choice is made where the clause names it and no other choice of the same argument.
Rule 3: a switch is turned on by its own words, said of the effect and not as a part of a noun: "merge with force" does, and
        "for the task force" does not.
"""

from collections.abc import Collection, Iterator, Set

from remit.core.regex import regex
from remit.provenance.asked_effects import Plan
from remit.provenance.user_words import Words
from remit.provenance.vocabulary import DEFINITE, FUNCTION_WORDS, stem, word_stems

_ENDING = regex(r"[.!?](?=[\s\"')]|$)|\n")
# A choice of more letters is a word.
_INITIALS_MAX = 3
_DETERMINERS = DEFINITE | {"a", "an", "any", "some", "each", "every", "no"} - {"that"}


class Ordering:
    """The clauses of one plan, by tool."""

    def __init__(self, words: Words, plan: Plan) -> None:
        self._words, self._plan = words, plan
        self._clauses: dict[str, tuple[range, ...]] = {}
        # What each clause says, by stems, with the last place of each: several choices are looked for in the same ones.
        self._stems_said: dict[range, dict[str, int]] = {}

    def is_ordered(self, tool: str) -> bool:
        """Whether the words order a tool at all."""
        return bool(self._plan.of(tool).places)

    def covers(self, tool: str, start: int) -> bool:
        """Whether a place of the words stands in a clause that orders a tool."""
        tokens = self._words.tokens
        for clause in self._of(tool):
            end = tokens[clause.stop].start if clause.stop < len(tokens) else len(self._words.own) + 1
            if tokens[clause.start].start <= start < end:
                return True
        return False

    def covers_quotation(self, tool: str, start: int) -> bool:
        """Whether a place of the words stands in a sentence that orders a tool."""
        tokens = self._words.tokens
        for place in self._plan.of(tool).places:
            first, last = place, place + 1
            while first > 0 and not self._ends_before(first):
                first -= 1
            while last < len(tokens) and not self._ends_before(last):
                last += 1
            end = tokens[last].start if last < len(tokens) else len(self._words.own) + 1
            if (tokens[first - 1].end if first else 0) <= start < end:
                return True
        return False

    def choice(
        self, tool: str, value: str, choices: Collection[object], nouns: Set[str] = frozenset()
    ) -> tuple[int, int] | None:
        """Where the clauses of a tool name one choice, if they name no other; `nouns` are what the argument is called."""
        span, wanted = self._named(tool, value), word_stems(value)
        if span is None and nouns and all(isinstance(one, str) and len(one) <= _INITIALS_MAX for one in choices):
            return self._initials(tool, value, nouns)
        others = [one for one in choices if isinstance(one, str) and one != value and not word_stems(one) < wanted]
        return None if span is None or any(self._named(tool, one) for one in others) else span

    def _initials(self, tool: str, value: str, nouns: Set[str]) -> tuple[int, int] | None:
        """Where the words before an argument's noun begin with the letters of a choice: `rw`, "read and write access"."""
        tokens = self._words.tokens
        for clause in self._of(tool):
            for place in self._said(clause):
                first = place
                while stem(tokens[place].text) in nouns and first - 1 in clause and self._is_counted(first - 1):
                    first -= 1
                said = [tokens[one].text for one in range(first, place) if tokens[one].text != "and"]
                if said and "".join(word[0] for word in said) == value:
                    return tokens[first].start, tokens[place].end
        return None

    def _is_counted(self, place: int) -> bool:
        return self._words.tokens[place].text == "and" or self._is_plain(place)

    def _named(self, tool: str, value: str) -> tuple[int, int] | None:
        words, stems = self._words, word_stems(value)
        exact = words.strings.get(value) if value in words.names else None
        if exact is not None and self.covers(tool, exact[0]):
            return exact
        if not stems or not FUNCTION_WORDS.isdisjoint(value.lower().replace("_", " ").replace("-", " ").split()):
            return None
        for clause in self._of(tool):
            said = self._stems_in(clause)
            if stems <= said.keys():
                token = words.tokens[min(said[one] for one in stems)]
                return token.start, token.end
        return None

    def _stems_in(self, clause: range) -> dict[str, int]:
        said = self._stems_said.get(clause)
        if said is None:
            said = self._stems_said[clause] = {one: place for place in self._said(clause) for one in self._stems(place)}
        return said

    def switch(self, tool: str, stems: Collection[str]) -> tuple[int, int] | None:
        """Where the clauses of a tool turn a switch on that is called by these stems."""
        tokens = self._words.tokens
        for clause in self._of(tool):
            # "force merge it" orders with the word before the verb.
            clause = range(max(clause.start - 1, 0), clause.stop)
            said = {one: place for place in reversed([*self._said(clause)]) for one in self._stems(place)}
            if set(stems) <= said.keys():
                place = min(said[one] for one in stems)
                last = max(said[one] for one in stems)
                if self._is_instruction(place, last):
                    return tokens[place].start, tokens[place].end
        return None

    def calls_something(self, tool: str, nouns: Set[str]) -> bool:
        """Whether a clause of a tool has a number or a name behind one of these nouns: "user 4242", "branch 'main'"."""
        words = self._words
        called = (said for uses in words.numbers.values() for said in uses if not nouns.isdisjoint(said.names))
        if any(self.covers(tool, said.start) for said in called):
            return True
        for clause in self._of(tool):
            for place in self._said(clause):
                if (
                    stem(words.tokens[place].text) in nouns
                    and place not in self._plan.heads
                    and words.has_name_behind(place)
                ):
                    return True
        return False

    def _is_instruction(self, place: int, last: int) -> bool:
        """Whether words stand for themselves: no article and no noun before them, and no noun behind."""
        heads = self._plan.heads
        before, after = place - 1, last + 1
        if before >= 0 and not self._words.tokens[place].opens and before not in heads:
            word = self._words.tokens[before].text.lower()
            if word in _DETERMINERS or self._is_plain(before):
                return False
        tokens = self._words.tokens
        return after >= len(tokens) or tokens[after].opens or after in heads or not self._is_plain(after)

    def _is_plain(self, place: int) -> bool:
        text = self._words.tokens[place].text
        return text.isalpha() and text.islower() and text not in FUNCTION_WORDS

    def _stems(self, place: int) -> Iterator[str]:
        word = self._words.tokens[place].text.lower().strip("-")
        yield stem(word)
        yield from (stem(part) for part in word.split("-"))

    def _said(self, clause: range) -> Iterator[int]:
        return (place for place in clause if not self._words.is_negated(place))

    def _of(self, tool: str) -> tuple[range, ...]:
        found = self._clauses.get(tool)
        if found is None:
            found = self._clauses[tool] = tuple([self._clause(place) for place in self._plan.of(tool).places])
        return found

    def _clause(self, place: int) -> range:
        last, count = place + 1, len(self._words.tokens)
        while last < count and not self._begins_another(last) and not self._ends_before(last):
            last += 1
        return range(place, last)

    def _begins_another(self, place: int) -> bool:
        """Whether another order begins; "make it public" goes on with the one before."""
        if place not in self._plan.heads:
            return False
        after = self._words.tokens[place + 1].text.lower() if place + 1 < len(self._words.tokens) else ""
        return after not in ("it", "them") or any(place in asked.places for asked in self._plan.asked.values())

    def _ends_before(self, place: int) -> bool:
        """Whether a sentence ends before a word; a colon ends none."""
        words = self._words
        return words.tokens[place].opens and bool(
            _ENDING.search(words.bare, words.tokens[place - 1].end, words.tokens[place].start)
        )
