"""A small terminal: it obeys what ours is told, so that a test can look at what a person would see."""

import io
import re
from unicodedata import combining, east_asian_width

_SEQUENCE = re.compile(r"\x1b(?:\[(?P<count>\d*)(?P<letter>[A-Za-z])|(?P<short>[D78]))")


class Emulator(io.StringIO):
    """A screen of so many columns and rows, with a cursor that waits at the edge before it wraps, as real ones do."""

    def __init__(self, columns: int = 40, rows: int = 12) -> None:
        super().__init__()
        self.columns, self.rows = columns, rows
        self.scrolled: list[str] = []
        self._cells: list[list[str]] = [[] for _ in range(rows)]
        self._row = self._column = 0
        self._kept = (0, 0)

    def isatty(self) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """A person looks at it."""
        return True

    def write(self, text: str) -> int:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Show a text, and obey what is in it."""
        super().write(text)
        place = 0
        while place < len(text):
            if found := _SEQUENCE.match(text, place):
                self._obey(found["letter"] or found["short"], int(found["count"] or 1))
                place = found.end()
            else:
                self._put(text[place])
                place += 1
        return len(text)

    @property
    def lines(self) -> list[str]:
        """What stands on the screen, and what has left it at the top; without the empty rest."""
        shown = [*self.scrolled, *("".join(row).rstrip() for row in self._cells)]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def _put(self, character: str) -> None:
        assert character != "\x1b", "an escape that nobody here knows"
        if character == "\n":
            # The driver of a terminal makes it the beginning of the next line.
            self._down()
            self._column = 0
        elif character == "\r":
            self._column = 0
        else:
            width = 0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
            if self._column + width > self.columns:
                self._down()
                self._column = 0
            row = self._cells[self._row]
            row.extend(" " * (self._column - len(row)))
            row[self._column : self._column + width] = [character, *[""] * (width - 1)]
            self._column += width

    def _down(self) -> None:
        if self._row + 1 < self.rows:
            self._row += 1
            return
        self.scrolled.append("".join(self._cells.pop(0)).rstrip())
        self._cells.append([])

    def _obey(self, letter: str, count: int) -> None:
        match letter:
            case "D":
                self._down()
            case "A" | "B":
                # To move takes the cursor back from the edge: this is where a careless program loses a character.
                self._column = min(self._column, self.columns - 1)
                self._row = max(self._row - count, 0) if letter == "A" else min(self._row + count, self.rows - 1)
            case "7":
                self._kept = (self._row, self._column)
            case "8":
                self._row, self._column = self._kept
            case "K":
                del self._cells[self._row][self._column :]
            case "J":
                del self._cells[self._row][self._column :]
                for row in self._cells[self._row + 1 :]:
                    row.clear()
            case "m":
                pass
            case _:
                raise AssertionError(letter)
