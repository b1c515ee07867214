"""Whether a text follows a grammar, asked after a model has spoken.

Rule 1: GBNF is read here, character by character, with every way that is still open; nothing is guessed. Where these are
        too many, llguidance reads it in translation, within a bound on its work.
Rule 2: a grammar of llguidance is read by llguidance itself, which is what constrained the model.
Rule 3: a text that ends too early is told from one that goes wrong: the first was cut, the second broke a rule.
Rule 4: a text that could not be decided is undecided: it may not be used, and is not called wrong.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from math import isqrt
from typing import TYPE_CHECKING, Any

from remit.constraint.grammar.gbnf import read_gbnf
from remit.constraint.grammar.grammar_rules import ROOT, Chars, GrammarRules, Sequence
from remit.constraint.grammar.lark import in_lark
from remit.constraint.grammar.notation import is_gbnf, lark_in, llguidance
from remit.core.failure import RequestRejected
from remit.core.record import Record

if TYPE_CHECKING:
    from llguidance import LLTokenizer

GRAMMAR_UNDECIDED = "GRAMMAR_UNDECIDED"

# Ways that may be open at once. Grammars that people write have dozens; as many optional parts as GBNF lets an element
# be repeated take ten thousand.
WAYS_MAX = 50_000
# Steps on all ways together: the longest text by a grammar of JSON takes half of them, and all of them some seconds.
STEPS_MAX = 4_000_000
# Stacks in all sets of ways that are kept to be met again; some forty megabytes.
KEPT_MAX = 500_000
# The same for llguidance: so many alternatives at one place take some seconds, twice as many over a minute.
ITEMS_MAX = 1_000
# For a translation, entries at one place squared, times bytes of the text: llguidance needs up to ten seconds for this much.
TRANSLATED_WORK_MAX = 500_000_000
# Longer answers are beyond what any local model generates; reading so much takes about a second.
TEXT_CHARS_MAX = 200_000
_BYTES = 256
# What is shown of the text before the place where it goes wrong.
_SHOWN_CHARS = 40
# What a library says about itself may be long.
_PROBLEM_CHARS_MAX = 200


class Fit(StrEnum):
    """What became of reading a text by a grammar."""

    FITS = "fits"
    CUT = "cut"
    BROKEN = "broken"
    UNDECIDED = "undecided"


class GrammarMatch(Record):
    """How far a text follows its grammar, in characters or bytes, and what to say when it does not."""

    fit: Fit
    at: int = 0
    problem: str = ""


_FITS = GrammarMatch(Fit.FITS)


def read_with(grammar: str, text: str) -> GrammarMatch:
    """Whether the whole text follows a grammar, in either notation. The grammar was checked before."""
    if len(text) > TEXT_CHARS_MAX:
        problem = f"it has {len(text)} characters, text_chars_max={TEXT_CHARS_MAX}; give a shorter text"
        return GrammarMatch(Fit.UNDECIDED, 0, problem)
    if not is_gbnf(grammar):
        return _by_llguidance(lark_in(grammar), text, ITEMS_MAX)
    return _by_rules(read_gbnf(grammar), text) or _translated(grammar, text)


def _by_rules(rules: GrammarRules, text: str) -> GrammarMatch | None:
    """How a text is read by every way that is open; None when these are too many."""
    ways = _Ways(rules)
    for at, character in enumerate(text):
        is_read = ways.read(ord(character))
        if ways.are_too_many:
            break
        if not is_read:
            return _broken(text, at)
    if ways.are_too_many:
        return None
    return _FITS if ways.may_end else _cut(len(text))


def _translated(grammar: str, text: str) -> GrammarMatch:
    """Whether a text matches, by llguidance, which keeps no list of ways; undecided where it cannot be asked, or gives up."""
    ambiguous = (
        "whether it fits cannot be told: the grammar is ambiguous "
        f"(over ways_max={WAYS_MAX} are open, or it takes over steps_max={STEPS_MAX}), and"
    )
    items_max = min(ITEMS_MAX, isqrt(TRANSLATED_WORK_MAX // max(len(text.encode("utf-8", "replace")), 1)))
    try:
        reading = _by_llguidance(in_lark(grammar), text, items_max)
    except RequestRejected as error:
        return GrammarMatch(Fit.UNDECIDED, 0, f"{ambiguous} llguidance was not asked: {error.message}")
    if reading.fit is Fit.UNDECIDED:
        return GrammarMatch(Fit.UNDECIDED, reading.at, f"{ambiguous} {reading.problem}")
    return reading


class _State:
    """A set of open ways, and where each character that was met there led to."""

    __slots__ = ("after", "stacks")

    def __init__(self, stacks: frozenset[int]) -> None:
        self.stacks = stacks
        self.after: dict[int, _State] = {}


class _Ways:
    """Every way in which a text can be read so far: what each still expects, as a stack that shares its lower part."""

    def __init__(self, rules: GrammarRules) -> None:
        self._rules = rules
        # A stack is a number; the table says what lies on top and which stack lies beneath. 0 is the empty one.
        self._tops: list[tuple[Chars | str, int]] = [("", 0)]
        self._numbers: dict[tuple[Chars | str, int], int] = {}
        self.are_too_many = False
        self._steps = 0
        # The sets of ways that were open before: most texts come back to them with every word, and need no steps then.
        self._states: dict[frozenset[int], _State] = {}
        self._kept = 0
        self._state = self._opened([self._pushed((ROOT,), 0)])

    @property
    def may_end(self) -> bool:
        return 0 in self._state.stacks

    def read(self, code: int) -> bool:
        """Go on with the ways on which this character may stand next; no, when there are none."""
        state = self._state.after.get(code)
        if state is None:
            tops = (self._tops[stack] for stack in self._state.stacks if stack)
            state = self._opened([rest for top, rest in tops if isinstance(top, Chars) and top.admits(code)])
            self._state.after[code] = state
        self._state = state
        return bool(state.stacks)

    def _opened(self, stacks: Iterable[int]) -> _State:
        """These ways as a set that is known from before, or is from now on."""
        found = frozenset(self._expanded(stacks))
        state = self._states.get(found)
        if state is None:
            state = self._states[found] = _State(found)
            self._kept += len(found)
            if self._kept > KEPT_MAX:
                self._states.clear()
                self._kept = 0
        return state

    def _expanded(self, stacks: Iterable[int]) -> set[int]:
        """These stacks with a character on top of each, or nothing left."""
        found: set[int] = set()
        seen: set[int] = set()
        todo = list(stacks)
        while todo and len(seen) <= WAYS_MAX:
            stack = todo.pop()
            if stack in seen:
                continue
            seen.add(stack)
            top, rest = self._tops[stack]
            if stack == 0 or isinstance(top, Chars):
                found.add(stack)
            else:
                todo += [self._pushed(way, rest) for way in self._rules[top]]
        self._steps += len(seen)
        if todo or self._steps > STEPS_MAX:
            self.are_too_many = True
        return found

    def _pushed(self, symbols: Sequence, stack: int) -> int:
        for symbol in reversed(symbols):
            entry = (symbol, stack)
            stack = self._numbers.setdefault(entry, len(self._tops))
            if stack == len(self._tops):
                self._tops.append(entry)
        return stack


def _by_llguidance(lark: str, text: str, items_max: int) -> GrammarMatch:
    package = llguidance()
    matcher_of, limits = package.LLMatcher, package.LLParserLimits(max_items_in_row=items_max)
    matcher = matcher_of(_tokenizer(), matcher_of.grammar_from_lark(lark), log_level=0, limits=limits)
    data = text.encode("utf-8", "replace")
    taken = matcher.try_consume_tokens(list(data))
    if matcher.is_error():
        return GrammarMatch(Fit.UNDECIDED, taken, f"llguidance could not read it: {_first_line(matcher.get_error())}")
    if taken < len(data):
        return _broken(text, len(data[:taken].decode("utf-8", "ignore")))
    return _FITS if matcher.is_accepting() else _cut(len(data))


def _first_line(said: str) -> str:
    return said.strip().partition("\n")[0][:_PROBLEM_CHARS_MAX]


def _broken(text: str, at: int) -> GrammarMatch:
    before = text[max(0, at - _SHOWN_CHARS) : at]
    return GrammarMatch(Fit.BROKEN, at, f"{text[at : at + 1]!r} at character {at} may not follow {before!r}")


def _cut(at: int) -> GrammarMatch:
    return GrammarMatch(Fit.CUT, at, "it ends before the grammar does")


class _Bytes:
    """A vocabulary of single bytes and an end, since text is checked here and no model's tokens."""

    eos_token_id = _BYTES
    bos_token_id = None
    special_token_ids = (_BYTES,)
    tokens = (*(bytes([value]) for value in range(_BYTES)), b"<end>")

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


@cache
def _tokenizer() -> "LLTokenizer":
    package: Any = llguidance()
    tokenizer: LLTokenizer = package.LLTokenizer(package.TokenizerWrapper(_Bytes()), slices=[])
    return tokenizer
