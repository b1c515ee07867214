r"""Regular expressions of JSON Schema in GBNF: the part of them that says which letters stand where.

Rule 1: what is read here means what the checker of schemas means by it: \d and \w are ASCII, a dot is all but a line feed.
Rule 2: look-around, back references, boundaries, properties of letters and flags are not read: there is no part then,
        and whoever asked widens.
Rule 3: a letter stands for itself in the text; only what JSON must escape is escaped.
"""

from typing import NamedTuple, TypeAlias

from remit.constraint.gbnf_json import CHARACTER, RAW, minus
from remit.constraint.gbnf_parts import (
    CODE_MAX,
    NOTHING,
    Literal,
    Named,
    OneOf,
    Part,
    Ranges,
    choice,
    one_of,
    repeated,
    sequence,
)
from remit.core.regex import regex

# As often as the notation lets an element be repeated with room for others.
TIMES_MAX = 1000
# Deeper groups are nobody's.
GROUPS_MAX = 40

_SPACES = ((9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F))
_CLASSES: dict[str, Ranges] = {
    "d": ((0x30, 0x39),),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "s": (*_SPACES, (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
}
_ALL: Ranges = ((0, CODE_MAX),)
_ANYTHING = repeated(Named(CHARACTER), 0, None)
_LETTERS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11}
_SHORT = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
_COUNTED = regex(r"\{(\d{1,4})(?:(,)(\d{0,4}))?\}")
_HEXED = regex(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}")


class Piece(NamedTuple):
    """A part, how many characters it reads at least and at most, and the one character that it repeats, if it does."""

    part: Part
    fewest: int
    largest: int | None
    unit: Part | None = None


class Beyond(ValueError):
    """The expression holds what is not read here."""


Pieces: TypeAlias = list[Piece]


def pattern_part(pattern: str, fewest: int, largest: int | None) -> tuple[Part, bool] | None:
    """What stands between the quotes of a text that matches, and whether it also keeps to so many characters.

    None where the expression holds what is not read here.
    """
    try:
        ways = _Reader(pattern).ways()
    except (Beyond, RecursionError):
        return None
    parts, keeps = [], True
    for way in ways:
        whole = _of_length(way, fewest, largest)
        if whole is None:
            keeps = False
        parts.append(_joined(way).part if whole is None else whole)
    return choice(*parts), keeps


def _joined(pieces: Pieces) -> Piece:
    largest = [piece.largest for piece in pieces]
    most = None if None in largest else sum(each for each in largest if each is not None)
    return Piece(sequence(*(piece.part for piece in pieces)), sum(piece.fewest for piece in pieces), most)


def _of_length(pieces: Pieces, fewest: int, largest: int | None) -> Part | None:
    """The pieces with so many characters in all, where at most one of them has to give way."""
    whole = _joined(pieces)
    if fewest <= whole.fewest and (largest is None or (whole.largest is not None and whole.largest <= largest)):
        return whole.part
    loose = [piece for piece in pieces if piece.fewest != piece.largest]
    if len(loose) != 1 or loose[0].unit is None:
        return None
    fixed = whole.fewest - loose[0].fewest
    least = max(loose[0].fewest, fewest - fixed)
    limits = [most for most in (loose[0].largest, None if largest is None else largest - fixed) if most is not None]
    most = min(limits, default=None)
    if max(least, most or 0) > TIMES_MAX:
        return None
    fitting = NOTHING if most is not None and most < least else repeated(loose[0].unit, least, most)
    return sequence(*(fitting if piece is loose[0] else piece.part for piece in pieces))


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def ways(self) -> list[Pieces]:
        """The alternatives at the top, each with what may stand around it where it is not anchored."""
        found = []
        while True:
            is_begun = self._skips("^")
            pieces = self._sequence(0)
            is_ended = self._skips("$")
            around = Piece(_ANYTHING, 0, None, Named(CHARACTER))
            found.append([*([] if is_begun else [around]), *pieces, *([] if is_ended else [around])])
            if not self._skips("|"):
                break
        if self._at < len(self._text):
            raise Beyond
        return found

    def _sequence(self, depth: int) -> Pieces:
        pieces: Pieces = []
        while self._at < len(self._text) and self._text[self._at] not in "|)$":
            pieces.append(self._times(self._atom(depth)))
        return pieces

    def _atom(self, depth: int) -> Piece:
        character = self._next()
        match character:
            case "(":
                return self._group(depth + 1)
            case "[":
                return _one(self._class())
            case ".":
                return _one(minus(_ALL, ((10, 10),)))
            case "\\":
                return _one(self._escape())
            case "*" | "+" | "?" | "{" | "^":
                raise Beyond
        return _one(((ord(character), ord(character)),))

    def _group(self, depth: int) -> Piece:
        if depth > GROUPS_MAX or (self._peeked() == "?" and not self._text.startswith("?:", self._at)):
            raise Beyond
        self._skips("?:")
        ways = [_joined(self._sequence(depth))]
        while self._skips("|"):
            ways.append(_joined(self._sequence(depth)))
        if self._next() != ")":
            raise Beyond
        largest = [way.largest for way in ways]
        most = None if None in largest else max(each for each in largest if each is not None)
        return Piece(choice(*(way.part for way in ways)), min(way.fewest for way in ways), most)

    def _times(self, piece: Piece) -> Piece:
        least, most = self._count()
        if self._peeked() in {"*", "+"} or _COUNTED.match(self._text, self._at):
            raise Beyond
        # A lazy repetition reads the same texts.
        if (least, most) != (1, 1):
            self._skips("?")
        elif piece.unit is not None:
            return piece
        # What may be empty, again and again, could be read in any number of ways.
        if piece.fewest == 0 and most != 1:
            raise Beyond
        largest = 0 if most == 0 else None if most is None or piece.largest is None else piece.largest * most
        return Piece(repeated(piece.part, least, most), piece.fewest * least, largest, piece.unit)

    def _count(self) -> tuple[int, int | None]:
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skips(mark):
                return bounds
        counted = _COUNTED.match(self._text, self._at)
        if counted is None:
            return 1, 1
        self._at = counted.end()
        least = int(counted[1])
        most = least if not counted[2] else int(counted[3]) if counted[3] else None
        if max(least, most or 0) > TIMES_MAX:
            raise Beyond
        return least, most

    def _class(self) -> Ranges:
        is_negated = self._skips("^")
        ranges: list[tuple[int, int]] = []
        while (character := self._next()) != "]":
            if character == "[":
                raise Beyond
            first = self._escape() if character == "\\" else ((ord(character), ord(character)),)
            if self._peeked() == "-" and not self._text.startswith("-]", self._at):
                self._at += 1
                character = self._next()
                last = self._escape() if character == "\\" else ((ord(character), ord(character)),)
                if not (_is_single(first) and _is_single(last) and first[0][0] <= last[0][1]):
                    raise Beyond
                first = ((first[0][0], last[0][1]),)
            ranges += first
        found = minus(_ALL, tuple(ranges))
        return found if is_negated else minus(_ALL, found)

    def _escape(self) -> Ranges:
        if (hexed := _HEXED.match(self._text, self._at)) is not None:
            self._at = hexed.end()
            code = int(hexed[1] or hexed[2] or hexed[3], 16)
            if code > CODE_MAX:
                raise Beyond
            return ((code, code),)
        letter = self._next()
        if letter.lower() in _CLASSES:
            known = _CLASSES[letter.lower()]
            return minus(_ALL, known) if letter.isupper() else known
        code = _LETTERS.get(letter, ord(letter))
        if letter.isalnum() and letter not in _LETTERS:
            raise Beyond
        return ((code, code),)

    def _next(self) -> str:
        if self._at == len(self._text):
            raise Beyond
        self._at += 1
        return self._text[self._at - 1]

    def _peeked(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skips(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _one(ranges: Ranges) -> Piece:
    """One character of a set, as JSON writes it."""
    if _is_single(ranges) and any(first <= ranges[0][0] <= last for first, last in RAW):
        only = Literal(chr(ranges[0][0]))
        return Piece(only, 1, 1, only)
    raw = minus(RAW, minus(_ALL, ranges))
    escaped = [code for code in (*range(32), 0x22, 0x5C) if any(first <= code <= last for first, last in ranges)]
    short = "".join(_SHORT.get(code, chr(code)) for code in escaped if code in _SHORT or code >= 32)
    ways: list[Part] = [OneOf(raw)] if raw else []
    if short:
        ways.append(sequence(Literal("\\"), one_of(short)))
    for high in ("0", "1"):
        lows = [f"{code:02x}"[1] for code in escaped if code < 32 and code not in _SHORT and f"{code:02x}"[0] == high]
        if lows:
            both = "".join(dict.fromkeys([*lows, *(low.upper() for low in lows)]))
            ways.append(sequence(Literal(f"\\u00{high}"), one_of(both)))
    part = choice(*ways)
    return Piece(part, 1, 1, part)
