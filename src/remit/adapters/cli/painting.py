"""Colours: which there are, and who sees them.

Rule 1: a colour repeats what the words beside it say; whoever sees none misses nothing.
Rule 2: none goes where no terminal is, nor where NO_COLOR or a dumb terminal asks for none.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from textwrap import wrap
from typing import TypeAlias

from remit.adapters.cli.terminal import Terminal, printable

# A line of a terminal that does not say how wide it is, and the most that anyone reads at once.
COLUMNS_DEFAULT = 160
COLUMNS_MAX = 200


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
    """Answer with lines, in colour where somebody sees it and wants it."""
    from remit.assemble import wants_colour

    if terminal.is_a_terminal and wants_colour():
        terminal.painted(lines)
    else:
        terminal.painted([(text, "") for text, _ in line] for line in lines)


def print_prose(terminal: Terminal, text: str) -> None:
    """Answer with sentences: one line for programs, and at a terminal as many as it takes, broken between words."""
    shown = printable(text)
    for line in wrap(shown, columns_of(terminal), break_on_hyphens=False) if terminal.is_a_terminal else [shown]:
        terminal.line(line)


def columns_of(terminal: Terminal) -> int:
    """How many characters a line of this terminal may have, within reason."""
    return min(terminal.columns or COLUMNS_DEFAULT, COLUMNS_MAX)
