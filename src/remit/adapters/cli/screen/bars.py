"""Bars: how much of a budget is used, to be seen at a glance.

Rule 1: a bar is drawn for people at a terminal; in a file there are the numbers alone.
Rule 2: something used is never an empty bar, and a bar is full only where nothing is left.
"""

from collections.abc import Iterable, Iterator

from remit.adapters.cli.screen.colours import Ink, Line, columns_of
from remit.adapters.cli.screen.terminal import Terminal
from remit.observe.figures import measured
from remit.observe.views.explain import Spent

BAR_CHARS = 20
# A name, a bar and two numbers in the millions; where less fits on a line, the numbers alone are read more easily.
COLUMNS_MIN = 72
_FULL, _EMPTY = "█", "░"
_FULL_ASCII, _EMPTY_ASCII = "#", "."
# From here on a budget is nearly used up.
_NEARLY = 0.8


def budget_lines(terminal: Terminal, spent: Iterable[Spent]) -> Iterator[Line]:
    """A line for every dimension that a run has touched: what is used of its cap, and what open calls have reserved.

    Of what is used, how much is in doubt.
    """
    marks = (_FULL, _EMPTY) if terminal.has_unicode else (_FULL_ASCII, _EMPTY_ASCII)
    has_room = terminal.is_a_terminal and columns_of(terminal) >= COLUMNS_MIN
    for entry in spent:
        ink = _ink(entry)
        bar = f"{_bar(entry, marks)}  " if has_room else ""
        beside = ((entry.released, "released"), (entry.reserved, "reserved"), (entry.in_doubt, "of it in doubt"))
        told = "".join(f", {measured(entry.dimension, amount)[1]} {word}" for amount, word in beside if amount)
        (what, used), (_, cap) = (
            measured(entry.dimension, entry.used),
            measured(entry.dimension, entry.cap - entry.released),
        )
        yield (
            (f"  {what:<24}", Ink.PLAIN),
            (bar, ink),
            (f"{used} of {cap}{told}", Ink.PLAIN),
        )


def _bar(entry: Spent, marks: tuple[str, str]) -> str:
    full, empty = marks
    if not entry.used:
        filled = 0
    elif entry.used >= entry.cap:
        filled = BAR_CHARS
    else:
        filled = max(BAR_CHARS * entry.used // entry.cap, 1)
    return full * filled + empty * (BAR_CHARS - filled)


def _ink(entry: Spent) -> Ink:
    if entry.used > entry.cap:
        return Ink.BAD
    return Ink.WAITS if entry.cap and entry.used >= _NEARLY * entry.cap else Ink.GOOD
