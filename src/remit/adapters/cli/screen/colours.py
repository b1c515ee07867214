"""Colours: which there are, and which terminals show them.

Rule 1: a colour repeats what the words beside it say; without colours nothing is missed.
Rule 2: none goes where no terminal is, nor where NO_COLOR or a dumb terminal asks for none.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from remit.adapters.cli.screen.terminal import Terminal, printable, wants_colour
from remit.adapters.cli.screen.widths import cells

# A line of a terminal that does not say how wide it is, and the widest line that is comfortable to read.
COLUMNS_DEFAULT = 160
COLUMNS_MAX = 200
# Fewer columns hold no word; a terminal so narrow breaks lines itself.
_WORDS_MIN = 10


class Ink(StrEnum):
    """The number by which terminals know a colour."""

    PLAIN = ""
    BOLD = "1"
    FAINT = "2"
    BAD = "31"
    GOOD = "32"
    WAITS = "33"
    NAME = "36"


Piece: TypeAlias = tuple[str, Ink]
Line: TypeAlias = Sequence[Piece]


def print_lines(terminal: Terminal, lines: Iterable[Line]) -> None:
    """Answer with lines, in colour where it is seen and wanted."""
    if terminal.is_a_terminal and wants_colour():
        terminal.painted(lines)
    else:
        terminal.painted([(text, "") for text, _ in line] for line in lines)


def print_prose(terminal: Terminal, text: str) -> None:
    """Answer with sentences: one line for programs, and at a terminal as many as it takes, broken between words."""
    shown = printable(text)
    for line in wrapped_text(shown, columns_of(terminal)) if terminal.is_a_terminal else [shown]:
        terminal.line(line)


def wrapped(terminal: Terminal, lines: Iterable[Line], indent: int) -> Iterator[Line]:
    """Lines as a terminal has room for them, broken between words and set in where they go on; elsewhere as they are.

    The pieces before the last one of a line stay together: they are names and marks.
    """
    if not terminal.is_a_terminal:
        yield from lines
        return
    columns = columns_of(terminal)
    for line in lines:
        yield from _broken(line, columns, indent) if _width(line) > columns else (line,)


def _broken(line: Line, columns: int, indent: int) -> Iterator[Line]:
    *before, (text, ink) = line
    room = max(columns - indent, _WORDS_MIN)
    first, *more = wrapped_text(printable(text), room, max(columns - _width(before), _WORDS_MIN))
    yield (*before, (first, ink))
    for rest in more:
        yield ((" " * indent, Ink.PLAIN), (rest, ink))


def wrapped_text(text: str, columns: int, first_columns: int = 0) -> list[str]:
    """A text on lines of so many cells at most, broken between words; the first line may have less room.

    Only a word that is longer than a line is broken itself.
    """
    lines, room = [""], first_columns or columns
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(longer) <= room:
            lines[-1] = longer
            continue
        lines += _pieces(word, columns)
        room = columns
    # A first word that is longer than a whole line begins on the first one.
    return lines[1:] if not lines[0] and len(lines) > 1 and not 0 < first_columns < columns else lines


def _pieces(word: str, columns: int) -> list[str]:
    """A word, in as many pieces as it takes."""
    if word.isascii():
        return [word[start : start + columns] for start in range(0, max(len(word), 1), columns)]
    pieces, room = [""], columns
    for letter in word:
        if cells(letter) > room:
            pieces.append("")
            room = columns
        pieces[-1] += letter
        room -= cells(letter)
    return pieces


def _width(line: Line) -> int:
    return sum(cells(printable(text)) for text, _ in line)


def columns_of(terminal: Terminal) -> int:
    """How many characters a line of this terminal may have, within reason."""
    return min(terminal.columns or COLUMNS_DEFAULT, COLUMNS_MAX)
