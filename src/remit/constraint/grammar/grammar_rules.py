"""Rules of a grammar as data: each is alternatives of sequences of characters and of names of rules.

Rule 1: what is read from left to right must not come back to a rule before it has read something.
Rule 2: a name with a space in it is a rule that was made for a group or a repetition of the rule named before the space.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

ROOT = "root"


class Chars(NamedTuple):
    """One character: inside the ranges, or outside of all of them."""

    ranges: tuple[tuple[int, int], ...]
    is_negated: bool = False

    def admits(self, code: int) -> bool:
        """Whether a character may stand here."""
        return any(first <= code <= last for first, last in self.ranges) != self.is_negated


# A character, or the name of a rule.
Symbol: TypeAlias = Chars | str
Sequence: TypeAlias = tuple[Symbol, ...]
GrammarRules: TypeAlias = dict[str, tuple[Sequence, ...]]


class Repetition(NamedTuple):
    """What the rule of a repetition repeats, and how often; with None there is no most."""

    symbol: Symbol
    fewest: int
    largest: int | None


# The rules that were made for repetitions, by their names.
Repeats: TypeAlias = dict[str, Repetition]


def recursive_from_the_left(rules: GrammarRules) -> str | None:
    """A rule that can come back to itself before any character was read."""
    empty = _may_be_empty(rules)
    begins = {name: {symbol for way in ways for symbol in _first(way, empty)} for name, ways in rules.items()}
    # The rule of a repetition follows itself; what it repeats may be empty without harm.
    for name, firsts in begins.items():
        if " " in name:
            firsts.discard(name)
    done: set[str] = set()
    for start in begins:
        if (looping := _circle_from(start, begins, done)) is not None:
            return looping.partition(" ")[0]
    return None


def _circle_from(start: str, begins: dict[str, set[str]], done: set[str]) -> str | None:
    """A rule to which a way from `start` leads twice. Rules from which no circle can be reached are added to `done`."""
    way: dict[str, Iterator[str]] = {}
    todo = [start] if start not in done else []
    while todo:
        name = todo[-1]
        ahead = way.setdefault(name, iter(sorted(begins[name])))
        following = next((other for other in ahead if other not in done), None)
        if following is None:
            done.add(todo.pop())
        elif following in way:
            return following
        else:
            todo.append(following)
    return None


def _first(sequence: Sequence, empty: set[str]) -> Iterator[str]:
    """The rules that a sequence can begin with."""
    for symbol in sequence:
        if isinstance(symbol, Chars):
            return
        yield symbol
        if symbol not in empty:
            return


def _may_be_empty(rules: GrammarRules) -> set[str]:
    """The rules that can read nothing at all."""
    lacking: list[int] = []
    users: dict[str, list[tuple[str, int]]] = {}
    found: list[str] = []
    for name, ways in rules.items():
        for way in ways:
            if any(isinstance(symbol, Chars) for symbol in way):
                continue
            if not way:
                found.append(name)
            for symbol in way:
                users.setdefault(str(symbol), []).append((name, len(lacking)))
            lacking.append(len(way))
    empty: set[str] = set()
    while found:
        name = found.pop()
        if name in empty:
            continue
        empty.add(name)
        for user, place in users.get(name, ()):
            lacking[place] -= 1
            if not lacking[place]:
                found.append(user)
    return empty
