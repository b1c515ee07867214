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
# Where a packet goes on that is too long for a line.
SET_IN = 7
# How a command begins that a person may copy.
COMMAND = "remit "


class Ink(StrEnum):
    """The number by which terminals know a colour."""

    PLAIN = ""
    BOLD = "1"
    FAINT = "2"
    BAD = "31"
    GOOD = "32"
    WAITS = "33"
    NAME = "36"


InkedText: TypeAlias = tuple[str, Ink]
Line: TypeAlias = Sequence[InkedText]


def print_lines(terminal: Terminal, lines: Iterable[Line]) -> None:
    """Answer with lines, in colour where it is seen and wanted."""
    if terminal.is_a_terminal and wants_colour():
        terminal.painted(lines)
    else:
        terminal.painted([(text, "") for text, _ in line] for line in lines)


def remark_line(terminal: Terminal, line: Line) -> None:
    """Say a line beside the answer: at a terminal wrapped between words, in colour where it is wanted."""
    if not terminal.is_watched:
        terminal.remark("".join(text for text, _ in line))
        return
    is_coloured = wants_colour()
    for row in flowed(line, terminal.screen().columns - 1, SET_IN):
        terminal.paint_beside([(text, ink if is_coloured else "") for text, ink in row])


def flowed(line: Line, columns: int, indent: int) -> Iterator[Line]:
    """A line on as many rows as it takes, each of so many cells, wrapped between words; those that follow are set in."""
    row: list[InkedText] = []
    used, width = 0, max(columns - indent, _WORDS_MIN)
    for text, ink in line:
        is_command = text.startswith(COMMAND)
        words = [printable(text)] if is_command else printable(text).split(" ")
        for place, word in enumerate(words):
            gap = " " if place else ""
            is_breakable = bool(gap) or (bool(row) and row[-1][0].endswith(" "))
            if is_breakable and used + cells(gap + word) > columns and used > indent:
                yield row
                row, used, gap = [(" " * indent, Ink.PLAIN)], indent, ""
            first, *more = _pieces(word, width) if cells(word) > width and not is_command else [word]
            row.append((gap + first, ink))
            used += cells(gap + first)
            for piece in more:
                yield row
                row, used = [(" " * indent, Ink.PLAIN), (piece, ink)], indent + cells(piece)
    yield row


def print_prose(terminal: Terminal, text: str) -> None:
    """Answer with sentences: one line for programs, and at a terminal as many as it takes, wrapped between words."""
    shown = printable(text)
    for line in wrapped_text(shown, columns_of(terminal)) if terminal.is_a_terminal else [shown]:
        terminal.line(line)


def wrapped_lines(terminal: Terminal, lines: Iterable[Line], indent: int) -> Iterator[Line]:
    """Lines as a terminal has room for them, wrapped between words and set in where they go on; elsewhere as they are."""
    if not terminal.is_a_terminal:
        yield from lines
        return
    columns = columns_of(terminal)
    for line in lines:
        yield from flowed(line, columns, indent) if _width(line) > columns else (line,)


def wrapped_text(text: str, columns: int) -> list[str]:
    """A text on lines of so many cells at most, wrapped between words.

    Only a word that is longer than a line is wrapped itself.
    """
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(longer) <= columns:
            lines[-1] = longer
            continue
        lines += _pieces(word, columns)
    # A first word that is longer than a whole line begins on the first one.
    return lines[1:] if not lines[0] and len(lines) > 1 else lines


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
