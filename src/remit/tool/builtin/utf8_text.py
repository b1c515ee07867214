"""Texts: files are text in UTF-8; what is none is refused and not guessed at."""

from remit.tool.builtin.refusal import ToolRefused, quoted_value
from remit.tool.builtin.rooted import FILE_BYTES_MAX

FILE_NOT_TEXT = "FILE_NOT_TEXT"


def file_text(data: bytes, path: str) -> str:
    """The bytes of a file as text; refuses what is none."""
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    message = f"{quoted_value(path)} is no text in UTF-8 but {len(data)} bytes of something else; name a text file"
    raise ToolRefused(FILE_NOT_TEXT, message)


def file_bytes(text: str, path: str) -> bytes:
    """A text as the bytes of a file."""
    if "\0" in text:
        # What could not be read again is not written: files that hold it are programs and data.
        raise ToolRefused(FILE_NOT_TEXT, f"the text for {quoted_value(path)} holds a NUL, which no text has; remove it")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolRefused(
            FILE_NOT_TEXT, f"the text for {quoted_value(path)} holds a lone surrogate; remove it"
        ) from None
    assert len(data) <= FILE_BYTES_MAX, "a character takes four bytes at most"
    return data
