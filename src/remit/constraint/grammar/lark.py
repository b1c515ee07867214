"""GBNF in the notation of llguidance: the same texts, by a decoder that cannot be led astray.

Rule 1: llama.cpp follows every way in which a text can be read by GBNF, and their number may double with each letter: an
        innocent grammar of three lines holds all calls of a process for good. llguidance has limits, and keeps them.
Rule 2: each letter is a terminal of its own; a longer one would swallow what the next rule is to read.
Rule 3: a rule that ends with itself becomes a repetition: llguidance keeps no list of how often it was entered then.
"""

from collections.abc import Iterable
from itertools import chain
from string import ascii_letters, digits

from remit.constraint.grammar.gbnf import read_parts
from remit.constraint.grammar.grammar_rules import ROOT, Chars, GrammarRules, Repeats, Sequence, Symbol
from remit.constraint.grammar.notation import MARK, check_lark, is_gbnf

START = "start"
_NOTHING = '""'
_ANY = r"/[\u{0}-\u{10FFFF}]/"
# Letters that stand for themselves; long texts are made of them.
_PLAIN = frozenset((ord(c), ord(c)) for c in ascii_letters + digits + " ,.:;!?_-+*=()")


def in_lark(grammar: str) -> str:
    """A grammar that was checked, as llguidance reads it; what is in its notation already stays as it is."""
    if not is_gbnf(grammar):
        return grammar
    lark = _Writer(*read_parts(grammar)).written()
    check_lark(lark)
    return lark


class _Writer:
    """Writes the rules that the root leads to, each once."""

    def __init__(self, rules: GrammarRules, repeats: Repeats) -> None:
        self._rules = rules
        self._repeats = repeats
        self._names = {ROOT: START}
        self._todo = [ROOT]

    def written(self) -> str:
        # What is to be written grows while it is walked, by the rules that are mentioned for the first time.
        lines = [f"{self._names[name]}: {self._body(name)}" for name in self._todo]
        return "\n".join([f"{MARK} {{}}", *lines, ""])

    def _body(self, name: str) -> str:
        if (repeat := self._repeats.get(name)) is not None:
            most = "" if repeat.largest is None else repeat.largest
            return f"{self._symbol(repeat.symbol)}{{{repeat.fewest},{most}}}" if most != 0 else _NOTHING
        ways = self._rules[name]
        again = [way[:-1] for way in ways if way[1:] and way[-1] == name]
        ends = [way for way in ways if name not in way]
        if again and ends and len(again) + len(ends) == len(ways) and name not in chain(*again):
            return f"({self._either(again)})* ({self._either(ends)})"
        return self._either(ways)

    def _either(self, ways: Iterable[Sequence]) -> str:
        return " | ".join([" ".join(map(self._symbol, way)) or _NOTHING for way in ways])

    def _symbol(self, symbol: Symbol) -> str:
        if isinstance(symbol, Chars):
            return _terminal(symbol)
        if symbol not in self._names:
            self._names[symbol] = f"r{len(self._names)}"
            self._todo.append(symbol)
        return self._names[symbol]


def _terminal(chars: Chars) -> str:
    if not chars.ranges:
        return _ANY
    if chars.ranges[0] in _PLAIN and len(chars.ranges) == 1 and not chars.is_negated:
        return f'"{chr(chars.ranges[0][0])}"'
    ranges = [_code(first) if first == last else f"{_code(first)}-{_code(last)}" for first, last in chars.ranges]
    return f"/[{'^' * chars.is_negated}{''.join(ranges)}]/"


def _code(code: int) -> str:
    return f"\\u{{{code:X}}}"
