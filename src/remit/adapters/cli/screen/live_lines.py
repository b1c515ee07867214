"""Lines that hang below the text for as long as something goes on, and then are gone.

Rule 1: they are written to stderr, and only where a person watches a terminal that can move its cursor.
Rule 2: the cursor rests where the text ends. Clearing what is below it therefore needs no counting, and a terminal that
        was resized meanwhile is cleared as well.
Rule 3: whatever is written to stay makes them go first; they come back with the next showing.
"""

import logging
import sys
from collections.abc import Sequence

from remit.adapters.cli.screen.terminal import Aside, Terminal, moves_cursor, printable
from remit.adapters.cli.screen.widths import fitted

# With fewer columns a line says nothing, and with fewer rows there is no room for the text itself.
COLUMNS_MIN = 20
ROWS_MIN = 6

# Down one line in the same column, scrolling at the bottom; up so many; remember the place; return to it.
_DOWN, _UP, _KEEP, _BACK = "\x1bD", "\x1b[{count}A", "\x1b7", "\x1b8"
_NEXT_LINE, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[1B\r", "\x1b[K", "\x1b[J"


def clear_remains(terminal: Terminal) -> None:
    """Take away what a process left hanging that was killed, and end the line in which it was writing."""
    if terminal.is_watched and moves_cursor():
        terminal.control(f"{_REST_OF_SCREEN}\n")


class BelowText:
    """What hangs below the text of a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._hangs = False
        self._is_open = False

    def open(self) -> None:
        """Have every writer make way first; without it nothing is shown."""
        if self._terminal.is_watched and moves_cursor():
            self._is_open = True
            self._terminal.before = self.clear
            if isinstance(sys.stdout, Aside):
                sys.stdout.before = self.clear
            for handler in logging.getLogger().handlers:
                handler.addFilter(self._make_way)

    def close(self) -> None:
        """Clear what hangs, and let every writer write as before."""
        self.clear()
        if self._is_open:
            self._is_open = False
            self._terminal.before = None
            if isinstance(sys.stdout, Aside):
                sys.stdout.before = None
            for handler in logging.getLogger().handlers:
                handler.removeFilter(self._make_way)

    def show(self, lines: Sequence[str]) -> None:
        """Let these lines hang below the text; each is cut to the width."""
        terminal = self._terminal
        columns, rows = terminal.screen()
        if not self._is_open or columns < COLUMNS_MIN or rows < ROWS_MIN:
            return
        with terminal.lock:
            if terminal.column >= columns:
                # At the very edge a terminal has not decided yet where the text goes on, and moving would decide it.
                return
            # A program that wrote past us may have left the cursor in the middle of what hung there.
            room = _REST_OF_SCREEN + _DOWN * len(lines) + _UP.format(count=len(lines)) + _KEEP
            drawn = "".join(f"{_NEXT_LINE}{fitted(printable(line), columns - 1)}{_REST_OF_LINE}" for line in lines)
            terminal.control(f"{room}{drawn}{_BACK}")
            self._hangs = True

    def clear(self) -> None:
        """Take away what hangs."""
        with self._terminal.lock:
            if self._hangs:
                self._hangs = False
                self._terminal.control(_REST_OF_SCREEN)

    def clear_line(self) -> None:
        """Take away what was written to the line of the cursor past us, unless the text itself stands there."""
        if self._is_open and not self._terminal.column:
            self._terminal.control(f"\r{_REST_OF_LINE}")

    def _make_way(self, record: logging.LogRecord) -> bool:
        """Let a record of the log pass, once there is room for it."""
        self.clear()
        return True
