"""Sources: where a function came from, so that a resumed run loads the same again.

Rule 1: a file of its own is named by its path, a module of a package by its name; anything else was made on the spot.
Rule 2: the digest is that of the bytes that were loaded. It covers the one file, not what the file imports.
"""

import inspect
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from remit.core.run.manifest import Source

# Set in the globals of a file that `load_tools` has loaded: the digest of the very bytes it was made from.
LOADED_DIGEST = "__remit_digest__"


def source_of(function: Callable[..., Any], name: str) -> Source:
    """Where a function can be found again; with an empty place if it cannot."""
    attribute = getattr(function, "__qualname__", "")
    namespace = getattr(inspect.unwrap(function), "__globals__", {})
    file = namespace.get("__file__")
    if not attribute.isidentifier() or not isinstance(file, str) or inspect.ismethod(function):
        return Source(name)
    path = Path(file).resolve()
    digest = namespace.get(LOADED_DIGEST) or file_digest(path)
    if not digest:
        return Source(name)
    module = namespace.get("__name__", "")
    place = module if "." in module and module in sys.modules else str(path)
    return Source(name, place, attribute, digest)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal; empty if it cannot be read."""
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
