"""Clauses that order a tool: the stretches of the words, and what they say about its choices and switches.

Rule 1: numbers, choices and switches of a tool are said where the tool is ordered: from the verb of the order to the next
        order or to the end of the sentence. A quotation may stand anywhere in that sentence.
Rule 2: a choice is made where the clause names it and no other choice of the same argument.
Rule 3: a switch is turned on by its own words, said once, in the sentence of the verb, led in as an addition and with
        nothing said of them: "merge with force" does, and "for the task force", "no need for force" and "with force off" do not.
"""

from collections.abc import Collection, Iterator, Set

from remit.core.regex import regex
from remit.provenance.words.asked_effects import Plan
from remit.provenance.words.imperatives import gap_before
from remit.provenance.words.user_words import Words
from remit.provenance.words.vocabulary import (
    DEFINITE,
    FUNCTION_WORDS,
    LEADS,
    PREPOSITIONS,
    is_plain_word,
    stem,
    word_stems,
)

_ENDING = regex(r"[.!?](?=[\s\"')]|$)|\n")
# A choice of more letters is a word.
_INITIALS_MAX = 3
# What is granted, whatever an argument is called, and the one right that is not called by its first letter.
_RIGHTS = frozenset({"permission", "right", "access", "acces"})
_LETTERS = {"execute": "x"}
# What may stand between the verb of an order and its switch.
_ARTICLES = DEFINITE - {"that"} | {"a", "an"}
_ADDING = (
    PREPOSITIONS | _ARTICLES | {"it", "them", "please", "into", "onto", "all", "both", "each", "every", "me", "us"}
)
_LEADING_IN = frozenset({"with", "using", "use", "and", "it", "them", "as", "in", "make"})
_BEFORE_NOUNS = _ADDING - {"and", "or", "please"}
_GOING_ON = frozenset({"and", "please", "to", "into", "on", "mode", "now", "today", "thanks"})
# What turns a sentence to something else: what is said behind it may deny what stood before.
_TURN = regex(r"[;:?=\u2013\u2014]|\s-+\s")
_ADDED = regex(r"[,(]")
_ENDED = regex(r"(?!\.\.|\u2026)[\s.!,)\"'*]*")
_DENYING = frozenset({"no", "not", "never", "nope", "wait"})
# Verbs that put a thing into a state.
_PUTTING = frozenset({"turn", "switch", "set", "put"})
# Of these, the ones that put nothing off and set nothing off.
_TURNING = frozenset({"turn", "switch"})
_PARTICLES = frozenset({"on", "off"})
_PARTED = regex(r"[-_]")
_VISIBLE = regex(r"\S")


class ToolClauses:
    """The clauses of one plan, by tool."""

    def __init__(self, words: Words, plan: Plan) -> None:
        self._words, self._plan = words, plan
        self._ordered = frozenset([tool for tool, asked in plan.asked.items() if asked.places])
        self._clauses: dict[str, tuple[range, ...]] = {}
        self._switches: dict[tuple[str, frozenset[str]], tuple[int, int] | None] = {}
        # What each clause says, by stems, with the last place of each: several choices are looked for in the same ones.
        self._stems_said: dict[range, dict[str, int]] = {}

    def is_ordered(self, tool: str) -> bool:
        """Whether the words order a tool at all."""
        return tool in self._ordered

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
        return None if span is None or any(self._is_mentioned(tool, one) for one in others) else span

    def _is_mentioned(self, tool: str, value: str) -> bool:
        """Whether the clauses of a tool may speak of a choice, also where it is a common word: "from first to both"."""
        stems = word_stems(value)
        if len(value) > 1 and any(stems <= self._stems_in(clause).keys() for clause in self._of(tool)):
            return True
        return self._named(tool, value) is not None

    def _initials(self, tool: str, value: str, nouns: Set[str]) -> tuple[int, int] | None:
        """Where the words before an argument's noun begin with the letters of a choice: `rw`, "read and write access"."""
        tokens = self._words.tokens
        for clause in self._of(tool):
            for place in self._said(clause):
                first = place
                while _is_called(tokens[place].text, nouns) and first - 1 in clause and self._is_counted(first - 1):
                    first -= 1
                said = [tokens[one].text for one in range(first, place) if tokens[one].text != "and"]
                if said and "".join(_LETTERS.get(word, word[0]) for word in said) == value:
                    return tokens[first].start, tokens[place].end
        return None

    def _is_counted(self, place: int) -> bool:
        return self._words.tokens[place].text == "and" or is_plain_word(self._words.tokens[place].text)

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

    def state(self, tool: str, states: Collection[str], rivals: Collection[str]) -> tuple[int, int] | None:
        """Where a clause of a tool puts its thing into a state, and into no rival one: right behind the verb, or at its end.

        "turn on the alarm", "switch lamp L-1 off", "set the valve to open"; nothing else may speak of a state.
        """
        for clause in self._of(tool):
            said = [place for place in self._said(clause) if self._lowered(place) in rivals]
            verb, last = clause.start, clause.stop - 1
            if self._lowered(verb) not in _PUTTING:
                continue
            ends = [
                place
                for place in said
                if self._is_particle(verb, place) or (place == last and self._is_put(verb, place))
            ]
            others = [place for place in said if place not in ends and self._lowered(place) not in PREPOSITIONS]
            if len(ends) == 1 and not others and self._lowered(ends[0]) in states:
                token = self._words.tokens[ends[0]]
                return token.start, token.end
        return None

    def _is_put(self, verb: int, place: int) -> bool:
        """Whether a state ends its sentence, led in by nothing but "to": "set the valve to open", and not "from open"."""
        before = self._lowered(place - 1)
        if before != "to" and self._lowered(place) in _PARTICLES and self._lowered(verb) not in _TURNING:
            return False  # "set the alarm off" sounds it.
        return self._ends_there(place) and (before not in FUNCTION_WORDS or before in ("to", "it", "them"))

    def _is_particle(self, verb: int, place: int) -> bool:
        """Whether a word belongs to the verb right before it: "turn on the alarm", and not "set on 2026-12-03"."""
        tokens = self._words.tokens
        is_dated = place + 1 < len(tokens) and tokens[place + 1].text[:1].isdecimal()
        is_turned = self._lowered(verb) in _TURNING and self._lowered(place) in _PARTICLES
        return place == verb + 1 and is_turned and not is_dated

    def switch(self, tool: str, stems: Collection[str]) -> tuple[int, int] | None:
        """Where the clauses of a tool turn a switch on that is called by these stems, if the words speak of it once."""
        key = tool, frozenset(stems)
        if key not in self._switches:
            self._switches[key] = self._switch(tool, stems)
        return self._switches[key]

    def _switch(self, tool: str, stems: Collection[str]) -> tuple[int, int] | None:
        tokens = self._words.tokens
        said = {one: [place for place in range(len(tokens)) if one in self._stems(place)] for one in stems}
        places = sorted({place for found in said.values() for place in found})
        if not places or not all(said.values()) or len(places) > len(stems) or places[-1] - places[0] >= len(stems):
            return None
        place, last = places[0], places[-1]
        for verb in self._plan.of(tool).places:
            if not self._words.is_negated(place) and self._is_instruction(verb, place, last):
                return tokens[place].start, tokens[last].end
        return None

    def clauses(self, tool: str) -> tuple[range, ...]:
        """The clauses that order a tool, as places of words."""
        return self._of(tool)

    def _is_instruction(self, verb: int, place: int, last: int) -> bool:
        """Whether words stand for themselves in the sentence of a verb: led in as an addition, and nothing said of them."""
        tokens = self._words.tokens
        if last + 1 == verb:  # "force merge it"
            return tokens[place].opens or self._lowered(place - 1) in LEADS
        if place <= verb or any(tokens[one].opens or _TURN.search(self._gap(one)) for one in range(verb + 1, last + 1)):
            return False
        if any(self._lowered(one) in FUNCTION_WORDS - _ADDING for one in range(verb + 1, place)):
            return False
        return self._is_led_in(verb, place) and self._ends_there(last)

    def _is_led_in(self, verb: int, place: int) -> bool:
        """Whether a comma, a name or a word that adds something stands before a word: "with force", "x-1, force"."""
        before = place - 1
        if before == verb or _ADDED.search(self._gap(place)):
            return True
        if self._lowered(before) == "to" and self._lowered(verb) in _PUTTING:
            return before - 1 > verb and (
                self._is_name(before - 1) or is_plain_word(self._words.tokens[before - 1].text)
            )
        if self._lowered(before) not in _LEADING_IN:
            return _VISIBLE.search(self._gap(place)) is not None or self._is_name(before)
        if self._lowered(before) in ("it", "them"):
            return before - 1 == verb or self._lowered(before - 1) == "make"
        # "hardly with force": what leads in stands behind a thing or a name, and not behind an unknown word.
        noun = before - 1
        if noun <= verb or _ADDED.search(self._gap(before)) or _VISIBLE.search(self._gap(before)):
            return True
        if not is_plain_word(self._words.tokens[noun].text):
            return True
        return noun - 1 == verb or (not self._gap(noun).strip() and self._lowered(noun - 1) in _BEFORE_NOUNS)

    def _ends_there(self, last: int) -> bool:
        """Whether nothing is said of a word: the sentence ends behind it, or something is added to it."""
        tokens, words = self._words.tokens, self._words
        if last + 1 < len(tokens) and self._lowered(last + 1) in ("it", "them") and not self._gap(last + 1).strip():
            last += 1  # "and wipe it"
        if last + 1 == len(tokens) or tokens[last + 1].opens:
            end = tokens[last + 1].start if last + 1 < len(tokens) else len(words.own)
            is_taken_back = last + 1 < len(tokens) and self._lowered(last + 1) in _DENYING
            return not is_taken_back and _ENDED.fullmatch(words.own, tokens[last].end, end) is not None
        gap, after = self._gap(last + 1), self._lowered(last + 1)
        if _TURN.search(gap):
            return False
        return after in _GOING_ON or (bool(_ADDED.search(gap)) and after not in FUNCTION_WORDS - _ADDING)

    def _is_name(self, place: int) -> bool:
        text = self._words.tokens[place].text
        return not text.isalpha() or text[0].isupper()

    def _lowered(self, place: int) -> str:
        return self._words.tokens[place].text.lower()

    def _gap(self, place: int) -> str:
        return gap_before(self._words, place)

    def _stems(self, place: int) -> Iterator[str]:
        word = self._words.tokens[place].text.lower().strip("-")
        yield stem(word)
        yield from (stem(part) for part in _PARTED.split(word))

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


def _is_called(word: str, nouns: Set[str]) -> bool:
    """Whether a word is what an argument is called by: "permissions" for `perm`, and for whatever takes the letters of rights."""
    found = stem(word)
    return (
        found in nouns
        or found in _RIGHTS
        or any(len(noun) > _INITIALS_MAX and found.startswith(noun) for noun in nouns)
    )
