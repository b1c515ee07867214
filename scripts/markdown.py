"""The few pieces of Markdown that the generated documents consist of."""

import textwrap
from collections.abc import Iterable, Sequence

LINE_CHARS_MAX = 120


def paragraph(text: str) -> str:
    """Prose, broken into lines of the house's length; code stays on one line."""
    return textwrap.fill(text, LINE_CHARS_MAX, break_long_words=False, break_on_hyphens=False)


def item(number: str, text: str) -> str:
    """One point of a numbered list, broken like a paragraph and indented below its number."""
    mark = f"{number}. "
    return textwrap.fill(
        " ".join(text.split()),
        LINE_CHARS_MAX,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_on_hyphens=False,
    )


def code(text: str) -> str:
    """A name or a piece of code; nothing stays nothing."""
    return f"`{text}`" if text else ""


def cell(value: object) -> str:
    """A value in a table, where a bar would begin the next cell."""
    return str(value).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a line per row."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(value) for value in line) + " |" for line in lines)


def fenced(language: str, text: str) -> str:
    """A block of another language, such as a drawing."""
    return f"```{language}\n{text.rstrip()}\n```"
