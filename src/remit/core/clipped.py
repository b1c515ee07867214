"""The beginning of a value, as a refusal shows it: what callers hand over may be as long as a book."""

SHOWN_CHARS_MAX = 80


def clipped(value: object) -> str:
    """The first characters of a value as Python writes it."""
    return f"{value!r:.{SHOWN_CHARS_MAX}}"
