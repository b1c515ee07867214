"""Paths: what a model may write to name a file below a root.

Rule 1: there is no way up. A path with '..', a leading '/', a NUL or a hidden name is refused before anything is opened.
Rule 2: a path means what it looks like: invisible characters and names that a file system could fold are refused.
        Some of them pass over such characters, take wide letters for plain ones, or know a file by a short name as well.
"""

import unicodedata

from remit.core.regex import regex
from remit.tool.builtin.refusal import ToolRefused, quoted_value

FILE_PATH_INVALID = "FILE_PATH_INVALID"

# What common file systems take at most in one name, in bytes.
NAME_BYTES_MAX = 255
# A path that a person would still read.
PATH_CHARS_MAX = 1_000
# Deeper trees exist only in caches; each level costs an open descriptor for a moment.
PATH_NAMES_MAX = 32

# The database in a store of remit: a tool that reached it could read the key and rewrite what happened.
STORE_MARK = "remit.db"
# Controls (NUL and newline among them), directions and joiners, lone surrogates, and the separators of lines.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# What Unicode lets a program pass over, as far as it is a letter or a mark: joiners, fillers and selectors.
_IGNORED = regex("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# Eight letters and three: how file systems of another kind also call what is hidden, such as GIT~1.
_SHORT_NAME = regex(r"[^.~]{1,7}~[0-9]{1,6}(?:\.[^.]{0,3})?")


def path_names(path: str) -> tuple[str, ...]:
    """The names in a path below the root; refuses whatever could mean something else than it says."""
    if len(path) > PATH_CHARS_MAX:
        raise invalid_path(path, f"has {len(path)} characters, more than path_chars_max={PATH_CHARS_MAX}")
    if path.startswith("/"):
        raise invalid_path(path, "is absolute; give it relative to the root, without a leading '/'")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if len(names) > PATH_NAMES_MAX:
        raise invalid_path(path, f"has {len(names)} names, more than path_names_max={PATH_NAMES_MAX}")
    for name in names:
        if problem := problem_of(name):
            raise invalid_path(path, problem)
    return names


def problem_of(name: str) -> str:
    """What is wrong with one name of a path, or nothing."""
    if name == "..":
        return "goes up with '..'; everything lies below the root"
    folded = unicodedata.normalize("NFKC", name).casefold()
    if folded.startswith("."):
        return "has a name that begins with '.'; hidden files are out of reach"
    if _IGNORED.search(name) or any(unicodedata.category(character) in _UNSEEN for character in name):
        return "holds invisible characters; use plain letters"
    if _SHORT_NAME.fullmatch(folded):
        return "looks like the short name of another file; use the long one"
    if "\\" in name:
        return "holds a backslash; separate names with '/'"
    if folded == STORE_MARK:
        return f"names {STORE_MARK!r}, which belongs to a store of remit"
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"has a name of {len(name.encode())} bytes, more than name_bytes_max={NAME_BYTES_MAX}"
    return ""


def joined_path(folder: str, name: str = "") -> str:
    """The path of a name in a folder, in its one spelling; of the folder itself without a name."""
    return "/".join((*path_names(folder), name) if name else path_names(folder))


def invalid_path(path: str, problem: str) -> ToolRefused:
    """The refusal of a path."""
    return ToolRefused(FILE_PATH_INVALID, f"path {quoted_value(path)} {problem}")
