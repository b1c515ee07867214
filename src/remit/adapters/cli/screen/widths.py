"""How much room text takes on a terminal: cells, not characters.

Rule 1: only text that was made fit for a terminal is measured; control characters have no width.
Rule 2: a terminal may disagree about a rare character; nothing here decides more than where a line is cut.
"""

from unicodedata import combining, east_asian_width

_CUT = "…"
_WIDE = frozenset("WF")
_TAB_CELLS = 8
# Variation selectors choose how the character before them looks and take no room of their own.
_SELECTORS = frozenset("\ufe0e\ufe0f")


def cells(text: str) -> int:
    """How many cells a text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def fitted(text: str, columns: int) -> str:
    """The text, cut to so many cells; an ellipsis says that something is missing."""
    if cells(text) <= columns:
        return text
    kept, room = [], columns - 1
    for character in text:
        room -= _cells_of(character)
        if room < 0:
            break
        kept.append(character)
    return "".join([*kept, _CUT]) if columns > 0 else ""


def column_after(column: int, text: str, columns: int) -> int:
    """The column in which a terminal goes on after a text; as many as it has means: at the very edge of the line."""
    start = text.rfind("\n") + 1
    column = 0 if start else column
    for character in text[start:]:
        if character == "\t":
            column = min((column // _TAB_CELLS + 1) * _TAB_CELLS, columns - 1)
            continue
        width = _cells_of(character)
        column = width if column + width > columns else column + width
    return column


def _cells_of(character: str) -> int:
    if combining(character) or character in _SELECTORS:
        return 0
    return 2 if east_asian_width(character) in _WIDE else 1
