"""GBNF, the grammar notation of llama.cpp: read into plain rules, with the place of whatever is wrong.

Rule 1: what is read here is what llama.cpp reads, and nothing more: some malformed grammars end its process instead of
        failing, so no grammar reaches it that did not pass here.
Rule 2: groups and repetitions become rules of their own, so a rule is alternatives of sequences and nothing else.
Rule 3: a rule that can begin with itself is refused; no text could be read with it from left to right.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from remit.constraint.grammar.grammar_rules import (
    ROOT,
    Chars,
    GrammarRules,
    Repeats,
    Repetition,
    Sequence,
    Symbol,
    recursive_from_the_left,
)
from remit.core.failure import RequestRejected
from remit.core.regex import regex

GRAMMAR_INVALID = "GRAMMAR_INVALID"

# Larger than any grammar a person writes; reading so much takes a tenth of a second.
GRAMMAR_CHARS_MAX = 100_000
# As often as llama.cpp lets an element be repeated.
REPEATS_MAX = 2000
# Parts of all repetitions together: each of them is kept, and so many are read in a quarter of a second.
REPEATED_MAX = 50_000
# Groups within groups; as deep as a person can still read, and far from the end of the stack.
NESTING_MAX = 100


# The dot of GBNF is any character, line breaks among them.
_ANY = Chars((), is_negated=True)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_CHAR = r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U00(?:10|0[0-9A-Fa-f])[0-9A-Fa-f]{4}|\\[nrt\\\"\[\]-]"
_TOKEN = regex(
    rf"""(?P<space>[ \t]+|\#[^\r\n]*)|(?P<line>\r\n|\r|\n)|(?P<is>::=)|(?P<name>[A-Za-z0-9-]+)
    |(?P<literal>"(?:{_CHAR}|[^"\\])*")|(?P<chars>\[\^?(?:{_CHAR}|[^\]\\])*\])
    |(?P<mark>[|().*+?])|(?P<times>\{{\s*[0-9]+\s*(?:,\s*[0-9]*\s*)?\}})""",
    re.VERBOSE,
)
# An end for programs that read texts as C does, and halves of characters, which no text holds. Behind a backslash that stands
# for itself, a u begins nothing.
_no_character = regex(r"(?P<raw>[\0\ud800-\udfff])|(?<!\\)(?:\\\\)*(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})")
_char = regex(rf"{_CHAR}|.", re.DOTALL)
_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def read_gbnf(text: str) -> GrammarRules:
    """The rules of a grammar, or RequestRejected with the line and column where it goes wrong."""
    return read_parts(text)[0]


def read_parts(text: str) -> tuple[GrammarRules, Repeats]:
    """The rules of a grammar, and which of them are repetitions."""
    if len(text) > GRAMMAR_CHARS_MAX:
        message = f"the grammar has {len(text)} characters, grammar_chars_max={GRAMMAR_CHARS_MAX}; shorten it"
        raise RequestRejected(GRAMMAR_INVALID, message, {"limit": GRAMMAR_CHARS_MAX})
    reader = _Reader(text)
    return reader.rules(), reader.repeats


class _Reader:
    """Reads one grammar from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*self._split(), _Token("end", "", len(text))]
        self._next = 0
        self._rules: GrammarRules = {}
        self.repeats: Repeats = {}
        self._repeated_parts = 0
        # Where each rule was first asked for.
        self._wanted: dict[str, int] = {ROOT: 0}
        # Where each rule begins.
        self._begun: dict[str, int] = {}

    def rules(self) -> GrammarRules:
        self._skip_lines()
        while self._token.kind != "end":
            self._rule()
        for name, at in self._wanted.items():
            if name not in self._rules:
                self._refuse(at, f"there is no rule {name!r}; define it with `{name} ::= ...`")
        if (looping := recursive_from_the_left(self._rules)) is not None:
            self._refuse(
                self._begun[looping], f"rule {looping!r} can begin with itself; let something else stand first"
            )
        return self._rules

    def _rule(self) -> None:
        begin = self._take("name", "the name of a rule (letters, digits and '-')")
        name = begin.text
        self._begun[name] = begin.at
        self._take("is", "'::='")
        self._skip_lines()
        self._rules[name] = self._alternatives(name, 0)
        if self._token.kind not in ("line", "end"):
            self._refuse(self._token.at, f"{self._shown()} cannot stand here; a rule ends with its line")
        self._skip_lines()

    def _alternatives(self, owner: str, depth: int) -> tuple[Sequence, ...]:
        if depth > NESTING_MAX:
            self._refuse(self._token.at, f"groups nest deeper than nesting_max={NESTING_MAX}; name the inner ones")
        found = [self._sequence(owner, depth)]
        while self._token.text == "|" and self._token.kind == "mark":
            self._next += 1
            self._skip_lines()
            found.append(self._sequence(owner, depth))
        return tuple(found)

    def _sequence(self, owner: str, depth: int) -> Sequence:
        symbols: list[Symbol] = []
        while (element := self._element(owner, depth)) is not None:
            if depth:
                self._skip_lines()
            while (bounds := self._bounds()) is not None:
                if not element:
                    self._refuse(self._tokens[self._next - 1].at, "there is nothing here to repeat")
                element = (self._repeated(owner, element, *bounds),)
                if self._token.text in _REPEATS and self._token.kind == "mark":
                    self._refuse(self._token.at, "repeated twice; put the first repetition into parentheses")
                if depth:
                    self._skip_lines()
            symbols += element
        return tuple(symbols)

    def _element(self, owner: str, depth: int) -> Sequence | None:
        token = self._token
        match token.kind, token.text:
            case "literal", _:
                found: Sequence = tuple(
                    [Chars(((ord(c), ord(c)),)) for c in map(_decoded, _char.findall(token.text[1:-1]))]
                )
            case "chars", _:
                found = (self._chars(token),)
            case "mark", ".":
                found = (_ANY,)
            case "name", _:
                self._wanted.setdefault(token.text, token.at)
                found = (token.text,)
            case "mark", "(":
                return self._group(owner, depth)
            case _:
                return None
        self._next += 1
        # A literal is repeated as a whole.
        return (self._named(owner, (found,)),) if len(found) > 1 and self._is_repeated() else found

    def _group(self, owner: str, depth: int) -> Sequence:
        self._next += 1
        self._skip_lines()
        inner = self._alternatives(owner, depth + 1)
        if self._token.text != ")":
            self._refuse(self._token.at, f"a group is not closed before {self._shown()}; add ')'")
        self._next += 1
        return (self._named(owner, inner),)

    def _is_repeated(self) -> bool:
        token = self._token
        return token.kind == "times" or (token.kind == "mark" and token.text in _REPEATS)

    def _bounds(self) -> tuple[int, int | None] | None:
        if not self._is_repeated():
            return None
        token = self._token
        self._next += 1
        if token.kind == "mark":
            return _REPEATS[token.text]
        least, comma, most = (part.strip() for part in token.text[1:-1].partition(","))
        fewest, largest = int(least), int(most) if most else None if comma else int(least)
        if max(fewest, largest or 0) > REPEATS_MAX:
            self._refuse(token.at, f"{token.text} exceeds repeats_max={REPEATS_MAX}")
        if largest is not None and largest < fewest:
            self._refuse(token.at, f"{token.text} ends before it begins")
        self._repeated_parts += max(fewest, largest or 0)
        if self._repeated_parts > REPEATED_MAX:
            self._refuse(token.at, f"all repetitions together exceed repeated_max={REPEATED_MAX}; repeat less")
        return fewest, largest

    def _repeated(self, owner: str, element: Sequence, fewest: int, largest: int | None) -> str:
        """A rule for a repetition: what must be there, then a chain of what may."""
        if largest is None:
            rest = self._name(owner)
            self._rules[rest] = ((*element, rest), ())
        else:
            rest = self._named(owner, ((),))
            for _ in range(largest - fewest):
                rest = self._named(owner, ((*element, rest), ()))
        name = self._named(owner, ((*element * fewest, rest),))
        [symbol] = element
        self.repeats[name] = Repetition(symbol, fewest, largest)
        return name

    def _named(self, owner: str, alternatives: tuple[Sequence, ...]) -> str:
        name = self._name(owner)
        self._rules[name] = alternatives
        return name

    def _name(self, owner: str) -> str:
        # No grammar can use a name with a space, so it is free.
        return f"{owner} {len(self._rules)}"

    def _chars(self, token: _Token) -> Chars:
        inner = token.text[1:-1]
        is_negated = inner.startswith("^")
        raw = _char.findall(inner[1:] if is_negated else inner)
        ranges: list[tuple[int, int]] = []
        place = 0
        while place < len(raw):
            first = last = ord(_decoded(raw[place]))
            # A bare hyphen between two characters spans them; one at the end stands for itself.
            if place + 2 < len(raw) and raw[place + 1] == "-":
                last = ord(_decoded(raw[place + 2]))
                place += 2
            if last < first:
                self._refuse(token.at, f"in {token.text[:40]} a range ends before it begins")
            ranges.append((first, last))
            place += 1
        if not ranges:
            self._refuse(token.at, f"{token.text} admits no character in particular; name some, or use '.'")
        return Chars(tuple(ranges), is_negated)

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, kind: str, meaning: str) -> _Token:
        token = self._token
        if token.kind != kind:
            self._refuse(token.at, f"expected {meaning}, found {self._shown()}")
        self._next += 1
        return token

    def _skip_lines(self) -> None:
        while self._token.kind == "line":
            self._next += 1

    def _shown(self) -> str:
        names = {"end": "the end", "line": "the end of the line"}
        return names.get(self._token.kind, repr(self._token.text[:40]))

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is not None and (odd := _no_character.search(found[0])) is not None:
                kind = odd.lastgroup or ""
                self._refuse(at + odd.start(kind), f"{odd[kind]!r} is no character, or half of one; leave it out")
            if found is None or found.lastgroup is None:
                self._refuse(at, f"{self._text[at : at + 20]!r} is no part of GBNF, or is not closed")
            if found.lastgroup != "space":
                yield _Token(found.lastgroup, found[0], at)
            at = found.end()

    def _refuse(self, at: int, problem: str) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        message = f"the grammar is no GBNF: line {line}, column {column}: {problem}"
        raise RequestRejected(GRAMMAR_INVALID, message, {"line": line, "column": column})


def _decoded(raw: str) -> str:
    if len(raw) == 1:
        return raw
    return _ESCAPES[raw[1]] if len(raw) == 2 else chr(int(f"0x{raw[2:]}", 0))
