"""Safe regular expressions: patterns whose time is bounded, whatever the pattern and whatever the text.

Rule 1: a pattern is of the kind that needs no backtracking. Look-around, back references, atomic groups and possessive
        repetitions are refused, so a search takes time in proportion to the text and a text always has an answer.
Rule 2: what is left can still multiply: counted repetitions are written out by the engine. The weight of a pattern times
        the characters of a text is bounded; a text beyond it was not judged, which is no way to pass.
Rule 3: where a pattern was found is told by a piece of the text that matches by itself.
"""

from collections.abc import Iterator
from typing import NamedTuple

from remit.core.failure import RequestRejected
from remit.core.regex import regex
from remit.core.schema.json_schema import Checker, compile_schema

PATTERN_REFUSED = "PATTERN_REFUSED"

# Patterns that people can read are shorter; a list of words has a rule of its own.
PATTERN_CHARS_MAX = 500
# The engine does one unit in some 35 nanoseconds when everything is against it: two seconds. A pattern of fifty atoms
# may read a text of a megabyte.
PATTERN_WORK_MAX = 50_000_000
# A place is looked for in windows of this size, each half covered by the next.
_WINDOW_CHARS = 4096

_ESCAPED_LETTERS = frozenset("dDwWsSbBnrtfvxupP0")
_COUNTED = regex(r"\{(\d{1,6})(,(\d{0,6}))?\}")
_GROUP = regex(r"\((?:\?(?:[ims]{1,3}(?:-[ims]{1,3})?[:)]|:|P?<[A-Za-z_]\w{0,31}>))?")
_ESCAPE = regex(r"\\(?:[pPu]\{[^}]{0,40}\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|(?s:.))")
# A class without classes inside it, and without a bracket right behind its beginning, which engines read differently.
_CLASS = regex(r"\[(?:\^|(?!\^))(?:[^\]\[\\]|\\(?s:.))+\]")


class FoundPiece(NamedTuple):
    """A piece of a text that matches, and at which character it begins."""

    start: int
    text: str


class Pattern:
    """A pattern that was found to be bounded. It may be kept and used from any thread."""

    __slots__ = ("_checker", "source", "weight")

    def __init__(self, source: str, weight: int, checker: Checker) -> None:
        self.source = source
        self.weight = weight
        self._checker = checker

    @property
    def chars_max(self) -> int:
        """The longest text that this pattern may read."""
        return PATTERN_WORK_MAX // self.weight

    def occurs_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in a text of at most `chars_max` characters of valid Unicode."""
        return self._checker.is_valid(text)

    def first_in(self, text: str) -> FoundPiece | None:
        """A short piece that matches by itself; None where only the text as a whole does."""
        for start in range(0, max(1, len(text)), _WINDOW_CHARS // 2):
            window = text[start : start + _WINDOW_CHARS]
            if self.occurs_in(window):
                return self._narrowed(window, start)
        return None

    def _narrowed(self, window: str, start: int) -> FoundPiece:
        """Cut off from behind and then from before what is not needed, by halving."""
        low, high = 0, len(window)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.occurs_in(window[:middle]) else (middle + 1, high)
        end = high
        low, high = 0, end
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.occurs_in(window[middle:end]) else (low, middle - 1)
        # An anchor can make halving miss; then the window says where.
        return (
            FoundPiece(start + low, window[low:end]) if self.occurs_in(window[low:end]) else FoundPiece(start, window)
        )


def compile_pattern(source: str) -> Pattern:
    """The pattern, if its time is bounded; raises RequestRejected with the place and the way out."""
    if len(source) > PATTERN_CHARS_MAX:
        raise _refused(source, f"it has {len(source)} characters, pattern_chars_max={PATTERN_CHARS_MAX}; split it")
    weight = _weight(source)
    if weight > PATTERN_WORK_MAX // _WINDOW_CHARS:
        limit = PATTERN_WORK_MAX // _WINDOW_CHARS
        raise _refused(source, f"its repetitions come to {weight} atoms, at most {limit}; repeat less, or use * and +")
    try:
        checker = compile_schema({"pattern": source})
    except RequestRejected:
        raise _refused(source, "it is no regular expression; check its brackets, escapes and repetitions") from None
    return Pattern(source, weight, checker)


def _weight(source: str) -> int:
    """How many atoms the engine has to keep in mind at most, with counted repetitions written out."""
    sums, last = [1], 0
    for piece, place in _pieces(source):
        if piece.startswith("(") and not piece.endswith(")"):
            sums.append(0)
        elif piece == ")":
            last = sums.pop() if len(sums) > 1 else 0
            sums[-1] += last
        elif counted := _COUNTED.fullmatch(piece):
            times = max(int(counted[1]), int(counted[3] or 0), 1)
            sums[-1] += last * (times - 1)
            last *= times
        elif piece not in ("*", "+", "?"):
            last = 1
            sums[-1] += 1
        if sums[-1] > PATTERN_WORK_MAX:
            raise _refused(source, f"its repetitions multiply beyond all bounds at character {place}; repeat less")
    return sum(sums)


def _pieces(source: str) -> Iterator[tuple[str, int]]:
    """The atoms, groups and repetitions of a pattern, each with its place; refuses what could backtrack."""
    place, was_repetition = 0, False
    while place < len(source):
        piece = _piece(source, place)
        is_repetition = piece in ("*", "+", "?") or _COUNTED.fullmatch(piece) is not None
        if piece == "+" and was_repetition:
            raise _refused(source, f"it has a possessive repetition at character {place}; leave the second + out")
        was_repetition = is_repetition
        yield piece, place
        place += len(piece)


def _piece(source: str, place: int) -> str:
    letter = source[place]
    if letter == "(":
        found = _GROUP.match(source, place)
        assert found is not None  # A bare bracket matches.
        if found[0] == "(" and source[place + 1 : place + 2] == "?":
            raise _refused(
                source, f"it has {source[place : place + 4]!r} at character {place}; of groups, only plain and named ones "
                "and the flags i, m and s are known, since look-around may take forever"
            )  # fmt: skip
        return found[0]
    if letter == "[":
        if (found := _CLASS.match(source, place)) is None:
            raise _refused(
                source, f"the class at character {place} is not plain; write brackets inside it as \\[ and \\]"
            )
        return found[0]
    if letter == "\\":
        return _escape(source, place)
    if letter == "{" and (found := _COUNTED.match(source, place)) is not None:
        return found[0]
    return letter


def _escape(source: str, place: int) -> str:
    found = _ESCAPE.match(source, place)
    letter = source[place + 1 : place + 2]
    if found is None or (letter.isalnum() and letter not in _ESCAPED_LETTERS):
        raise _refused(
            source, f"it has the escape {source[place : place + 2]!r} at character {place}; known are "
            f"{' '.join(sorted(_ESCAPED_LETTERS))} and punctuation, since back references may take forever"
        )  # fmt: skip
    return found[0]


def _refused(source: str, reason: str) -> RequestRejected:
    return RequestRejected(PATTERN_REFUSED, f"pattern {source[:80]!r}: {reason}", {"pattern": source[:80]})
