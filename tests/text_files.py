"""Files of tests: a text read with a reader of files, as users have it read, and all that a folder holds."""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")


def from_text(read: Callable[[Path], _T], text: str, name: str) -> _T:
    """What the file of this name would be read as; errors tell the name."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return read(path)


def bytes_below(folder: Path) -> bytes:
    """All that stands in the files of a folder, whatever they are called."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
