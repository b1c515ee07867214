"""Quoted text: what stands between quotes, as models write them: unescaped, in other quotes, over several lines.

Where a text ends is told by what follows a quote. A quote that nothing fitting follows stands inside the text.

Rule 1: quotes inside a text come in pairs, the first one opening a word, the second one closing it; otherwise it cannot be
        told where the text ends, and it is refused.
Rule 2: a text that never ends was cut off. What it would have said is not guessed.
Rule 3: a text is read once from left to right; looking ahead is bounded by KEY_CHARS_MAX.
"""

from enum import Enum
from typing import NamedTuple

from remit.constraint.reading.repair_log import Reason, RepairCode, RepairLog, Unreadable
from remit.core.regex import regex

# A key that is looked for behind a comma. Longer ones are read as well, but no comma is missing before them.
KEY_CHARS_MAX = 200

# Which quote closes which: the straight ones themselves, the curled ones either of their kind.
CLOSERS = {
    '"': '"',
    "'": "'",
    "`": "`",
    **dict.fromkeys("\u201c\u201d\u201e", "\u201c\u201d"),
    **dict.fromkeys("\u2018\u2019\u201a", "\u2018\u2019"),
}
TRIPLE = '"""'
_APOSTROPHES = "'\u2018\u2019"
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_N = KEY_CHARS_MAX
_QUOTED_KEY = (
    rf'(?:"[^"\n]{{0,{_N}}}"|\'[^\'\n]{{0,{_N}}}\'|\u201c[^\u201c\u201d\n]{{0,{_N}}}[\u201c\u201d]'
    rf"|\u2018[^\u2018\u2019\n]{{0,{_N}}}[\u2018\u2019])\s*[:=]"
)
# A key in which the text ends.
_CUT_KEY = rf"[\"'\u201c][^\"'\n]{{0,{_N}}}[\"'\u201d]?\s*\Z"
_WORD_KEY = rf"(?:[^\W\d]|\$)[\w$-]{{0,{_N}}}\s*:|[0-9]{{1,20}}\s*:"
# A number or a literal that stands alone on its line, or ends the list.
_PLAIN_LINE = r"(?:-?[0-9][0-9.eE+-]*+|true|false|null|True|False|None)[^\S\n]*+[,\]\n]"
_COMMENT = r"//|/\*|\#"
_VALUE = rf'["\'\u201c\u2018\[{{\d+.-]|(?:true|false|null|True|False|None|TRUE|FALSE|NULL)\b|{_COMMENT}'


class QuotePlace(Enum):
    """Where a text stands, which decides what may follow it."""

    KEY = "key"
    MEMBER = "member"
    ITEM = "item"
    ROOT = "root"


_FOLLOWS = {
    # A key has no quotes inside: its first quote ends it, whatever follows.
    QuotePlace.KEY: regex(""),
    QuotePlace.MEMBER: regex(
        rf"\s*+(?:\Z|[}}\];]|```|{_COMMENT}|,\s*+(?:\Z|[}},]|{_COMMENT}|{_QUOTED_KEY}|{_WORD_KEY}|{_CUT_KEY})|{_QUOTED_KEY})"
    ),
    QuotePlace.ITEM: regex(
        rf"\s*+(?:\Z|[\]}}]|```|{_COMMENT}|,\s*+(?:\Z|\]|{_VALUE}))|[^\S\n]*+\n\s*+(?:[\"'{{\[]|{_PLAIN_LINE})"
    ),
    QuotePlace.ROOT: regex(r"\s*+\Z"),
}
_plain = regex(r'"([^"\\\x00-\x1f]*+)"')
_colon_follows = regex(r"\s*+:")
_four_digits = regex(r"[0-9a-fA-F]{4}")
_two_digits = regex(r"[0-9a-fA-F]{2}")
_upto = {closers: regex(rf"[^{closers}\\\x00-\x1f]++") for closers in set(CLOSERS.values())}


class Quoted(NamedTuple):
    """A text and where it ended."""

    text: str
    end: int


def read_quoted(source: str, at: int, place: QuotePlace, log: RepairLog) -> Quoted:
    """The text that begins with the quote at this place."""
    found = _plain.match(source, at)
    if found is not None and _FOLLOWS[place].match(source, found.end()):
        return Quoted(found[1], found.end())
    if place is not QuotePlace.KEY and source.startswith(TRIPLE, at):
        return _tripled(source, at, log)
    return _Text(source, at, place, log).read()


def _tripled(source: str, at: int, log: RepairLog) -> Quoted:
    """A text in three quotes, as Python has it; what stands inside is taken as it is."""
    end = source.find(TRIPLE, at + 3)
    if end < 0:
        raise Unreadable(Reason.CUT_OFF, at, "a text in three quotes has no end")
    inside = source[at + 3 : end]
    if "\\" in inside:
        raise Unreadable(
            Reason.ESCAPE_UNCLEAR, at, "a backslash in three quotes may escape something, or stand for itself"
        )
    log.note(RepairCode.QUOTES_REPLACED, at, TRIPLE, '"')
    return Quoted(inside, end + 3)


class _Text:
    """One text that is not plain."""

    def __init__(self, source: str, at: int, place: QuotePlace, log: RepairLog) -> None:
        self._source, self._begin, self._at, self._ledger = source, at, at + 1, log
        self._closers = CLOSERS[source[at]]
        self._follows = _FOLLOWS[place]
        self._parts: list[str] = []
        # Quotes inside that are no apostrophes.
        self._inside = 0

    def read(self) -> Quoted:
        source = self._source
        if source[self._begin] != '"':
            self._ledger.note(RepairCode.QUOTES_REPLACED, self._begin, source[self._begin], '"')
        upto = _upto[self._closers].match
        while self._at < len(source):
            if (found := upto(source, self._at)) is not None:
                self._parts.append(found[0])
                self._at = found.end()
                continue
            character = source[self._at]
            if character == "\\":
                self._escape()
            elif character in self._closers:
                if self._ends():
                    return Quoted(self._whole(), self._at + 1)
                self._quote_inside(character)
            else:
                self._ledger.note(RepairCode.CONTROL_ESCAPED, self._at, character, f"\\u{ord(character):04x}")
                self._take(character, 1)
        raise Unreadable(Reason.CUT_OFF, self._begin, "a text has no closing quote")

    def _take(self, text: str, characters: int) -> None:
        self._parts.append(text)
        self._at += characters

    def _ends(self) -> bool:
        if not self._follows.match(self._source, self._at + 1):
            return False
        if self._inside % 2:
            raise self._unclear()
        return True

    def _quote_inside(self, character: str) -> None:
        before, after = self._source[self._at - 1], self._source[self._at + 1 : self._at + 2]
        if not (character in _APOSTROPHES and before.isalnum() and after.isalnum()):
            opens = self._inside % 2 == 0
            is_first = self._at == self._begin + 1
            fits = not after.isspace() and (is_first or not before.isalnum()) if opens else not before.isspace()
            if not after or not fits or _colon_follows.match(self._source, self._at + 1):
                raise self._unclear()
            self._inside += 1
        self._ledger.note(RepairCode.QUOTE_ESCAPED, self._at, character, f"\\{character}")
        self._take(character, 1)

    def _unclear(self) -> Unreadable:
        return Unreadable(Reason.QUOTES_UNCLEAR, self._at, "a quote may end the text, or stand inside it")

    def _escape(self) -> None:
        letter = self._source[self._at + 1 : self._at + 2]
        if letter in _ESCAPES and letter:
            self._take(_ESCAPES[letter], 2)
        elif letter == "u" and (found := _four_digits.match(self._source, self._at + 2)):
            self._take(chr(int(found[0], 16)), 6)
        elif letter == "x" and (found := _two_digits.match(self._source, self._at + 2)):
            self._ledger.note(RepairCode.ESCAPE_REPLACED, self._at, f"\\x{found[0]}", f"\\u00{found[0]}")
            self._take(chr(int(found[0], 16)), 4)
        elif letter and letter in self._closers + _APOSTROPHES:
            self._ledger.note(RepairCode.ESCAPE_REPLACED, self._at, f"\\{letter}", letter)
            self._take(letter, 2)
        elif not letter or (letter == "u" and self._at + 6 > len(self._source)):
            raise Unreadable(Reason.CUT_OFF, self._begin, "a text ends within an escape")
        else:
            message = f"\\{letter} is no escape of JSON; it may stand for itself or for what follows the backslash"
            raise Unreadable(Reason.ESCAPE_UNCLEAR, self._at, message)

    def _whole(self) -> str:
        text = "".join(self._parts)
        try:
            # Two escapes of four digits may be the halves of one character.
            return text.encode("utf-16", "surrogatepass").decode("utf-16") if not text.isascii() else text
        except UnicodeDecodeError:
            message = "half a surrogate pair stands for no character"
            raise Unreadable(Reason.ESCAPE_UNCLEAR, self._begin, message) from None
