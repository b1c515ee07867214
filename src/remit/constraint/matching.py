"""Whether a text follows a grammar, asked after a model has spoken.

Rule 1: GBNF is read here, character by character, with every way that is still open; nothing is guessed.
Rule 2: a grammar of llguidance is read by llguidance itself, which is what constrained the model.
Rule 3: a text that ends too early is told from one that goes wrong: the first was cut, the second broke a rule.
Rule 4: what cannot be checked does not fit.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from remit.constraint.gbnf import read_gbnf
from remit.constraint.notation import is_gbnf, lark_in, llguidance
from remit.constraint.rules import ROOT, Chars, Rules, Sequence
from remit.core.record import Record

if TYPE_CHECKING:
    from llguidance import LLTokenizer

# Ways that may be open at once. Grammars that people write have dozens; one with more is ambiguous beyond use.
WAYS_MAX = 10_000
# Steps on all ways together: the longest text by a grammar of JSON takes half of them, and all of them some seconds.
STEPS_MAX = 4_000_000
# The same for llguidance: so many alternatives at one place take some seconds, twice as many over a minute.
ITEMS_MAX = 1_000
# Longer answers are beyond what any local model generates; reading so much takes about a second.
TEXT_CHARS_MAX = 200_000
_BYTES = 256
# What is shown of the text before the place where it goes wrong.
_SHOWN_CHARS = 40


class Fit(StrEnum):
    """What became of reading a text by a grammar."""

    FITS = "fits"
    CUT = "cut"
    BROKEN = "broken"


class Reading(Record):
    """How far a text follows its grammar, in characters or bytes, and what to say when it does not."""

    fit: Fit
    at: int = 0
    problem: str = ""


_FITS = Reading(Fit.FITS)


def read_with(grammar: str, text: str) -> Reading:
    """Whether the whole text follows a grammar, whichever notation that has. The grammar was checked before."""
    if len(text) > TEXT_CHARS_MAX:
        return Reading(Fit.BROKEN, 0, f"it has {len(text)} characters, text_chars_max={TEXT_CHARS_MAX}")
    return _by_rules(read_gbnf(grammar), text) if is_gbnf(grammar) else _by_llguidance(lark_in(grammar), text)


def _by_rules(rules: Rules, text: str) -> Reading:
    ways = _Ways(rules)
    for at, character in enumerate(text):
        is_read = ways.read(ord(character))
        if ways.are_too_many:
            break
        if not is_read:
            return _broken(text, at)
    if ways.are_too_many:
        return Reading(
            Fit.BROKEN,
            0,
            "the grammar is too ambiguous to check: "
            f"over ways_max={WAYS_MAX} are open, or it takes over steps_max={STEPS_MAX}",
        )
    return _FITS if ways.may_end else _cut(len(text))


class _Ways:
    """Every way in which a text can be read so far: what each still expects, as a stack that shares its lower part."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        # A stack is a number; the table says what lies on top and which stack lies beneath. 0 is the empty one.
        self._tops: list[tuple[Chars | str, int]] = [("", 0)]
        self._numbers: dict[tuple[Chars | str, int], int] = {}
        self.are_too_many = False
        self._steps = 0
        self._open = self._expanded([self._pushed((ROOT,), 0)])

    @property
    def may_end(self) -> bool:
        return 0 in self._open

    def read(self, code: int) -> bool:
        """Go on with the ways on which this character may stand next; no, when there are none."""
        tops = (self._tops[stack] for stack in self._open if stack)
        self._open = self._expanded([rest for top, rest in tops if isinstance(top, Chars) and top.admits(code)])
        return bool(self._open)

    def _expanded(self, stacks: Iterable[int]) -> set[int]:
        """The same stacks with a character on top of each, or nothing left."""
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


def _by_llguidance(lark: str, text: str) -> Reading:
    package = llguidance()
    matcher_of, limits = package.LLMatcher, package.LLParserLimits(max_items_in_row=ITEMS_MAX)
    matcher = matcher_of(_tokenizer(), matcher_of.grammar_from_lark(lark), log_level=0, limits=limits)
    data = text.encode("utf-8", "replace")
    taken = matcher.try_consume_tokens(list(data))
    if matcher.is_error():
        return Reading(Fit.BROKEN, taken, f"it could not be checked: {matcher.get_error()[:200]}")
    if taken < len(data):
        return _broken(text, len(data[:taken].decode("utf-8", "ignore")))
    return _FITS if matcher.is_accepting() else _cut(len(data))


def _broken(text: str, at: int) -> Reading:
    before = text[max(0, at - _SHOWN_CHARS) : at]
    return Reading(Fit.BROKEN, at, f"{text[at : at + 1]!r} at character {at} may not follow {before!r}")


def _cut(at: int) -> Reading:
    return Reading(Fit.CUT, at, "it ends before the grammar does")


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
