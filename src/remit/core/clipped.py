"""The beginning of a value, as a refusal shows it: what callers hand over may be as long as a book."""

SHOWN_CHARS_MAX = 80


def clipped(value: object) -> str:
    """The first characters of a value as Python writes it; foreign code may fail to write one."""
    try:
        return f"{value!r:.{SHOWN_CHARS_MAX}}"
    except Exception:  # noqa: BLE001  # how a value is written is foreign code
        return f"<{type(value).__name__}>"
