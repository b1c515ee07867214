"""Homes: what may name the folder of a store.

Rule: what was left empty names no folder. A store, and the key in it, is never made in the current folder by accident.
"""

from os import fsencode
from pathlib import Path

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected

HOME_INVALID = "HOME_INVALID"
# A system that is opened once and was entered a second time.
STORE_ENTERED = "STORE_ENTERED"


def expect_place(home: object) -> None:
    """Raise HOME_INVALID for what names no folder and no servers, and is not left out either."""
    if home is None:
        return
    if not isinstance(home, str | Path) or not str(home).strip() or not _may_be_a_path(str(home)):
        message = f"home={clipped(home)} is no folder; give its path, or leave it out for that of the settings"
        raise RequestRejected(HOME_INVALID, message)
    if isinstance(home, Path) and home == Path():
        message = f"home={home!r} may be a path that was left empty; for the current folder give Path.cwd() or '.'"
        raise RequestRejected(HOME_INVALID, message)


def _may_be_a_path(text: str) -> bool:
    """Whether a system call could take it: half a surrogate pair is no text, unless it stands for a byte of a file name."""
    try:
        return b"\0" not in fsencode(text)
    except UnicodeEncodeError:
        return False


def entered_twice() -> RequestRejected:
    """The refusal to enter what opens one system while that system is open: it could not be closed by it any more."""
    return RequestRejected(
        STORE_ENTERED, "this was entered already and is not left yet; open another for a second system"
    )
