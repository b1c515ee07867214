"""Skipping: what says nothing between the tokens of JSON, spaces of every kind and comments.

Rule 1: a comment that says that something was left out leaves the value unknown.
Rule 2: in a text of one line nobody can tell where a comment ends and the value goes on; if it matters, it is refused.
"""

import re

from remit.constraint.reading.repair_log import Ledger, Reason, RepairCode, Unreadable
from remit.core.regex import regex

# Characters that are no space to Python, and none that anybody sees.
_UNSEEN = "\u200b\u2060\ufeff"
_ELLIPSIS = "\u2026"

_space = regex(r"[ \t\n\r]*+").match
_line_comment = regex(r"(?://|\#)[^\n]*+").match
_block_comment = regex(r"/\*.*?\*/", re.DOTALL).match
_structural = regex(r"[\"{}\[\]]").search


def skip(text: str, at: int, ledger: Ledger) -> int:
    """Where the next token begins."""
    while True:
        found = _space(text, at)
        assert found is not None, "nothing is space as well"
        at = found.end()
        character = text[at : at + 1]
        if character in ("/", "#"):
            at = _behind_comment(text, at, ledger)
        elif character and (character.isspace() or character in _UNSEEN):
            ledger.note(RepairCode.SPACE_REPLACED, at, character, " ")
            at += 1
        else:
            return at


def elided(at: int) -> Unreadable:
    """The refusal of a text in which something stands for more than it says."""
    return Unreadable(Reason.ELIDED, at, "something was left out here, and nobody knows what")


def _behind_comment(text: str, at: int, ledger: Ledger) -> int:
    if text.startswith("/*", at):
        found = _block_comment(text, at)
        if found is None:
            raise Unreadable(Reason.CUT_OFF, at, "a comment has no end")
    else:
        found = _line_comment(text, at)
        if found is None:
            raise Unreadable(Reason.UNEXPECTED, at, "a slash begins a comment only where another one follows")
        if found.end() == len(text) and _structural(found[0]):
            raise Unreadable(Reason.COMMENT_UNCLEAR, at, "a comment may end within the last line")
    if "..." in found[0] or _ELLIPSIS in found[0]:
        raise elided(at)
    ledger.note(RepairCode.COMMENT_REMOVED, at, found[0])
    return found.end()
