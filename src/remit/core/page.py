"""Pages: a part of a list, behind the last entry of the page before."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected

PAGE_INVALID = "PAGE_INVALID"
# More than a person reads at once; 0 stands for all there is.
PAGE_MAX = 1_000_000

T = TypeVar("T")


def check_limit(limit: int) -> int:
    """How many entries a page has at most; raises RequestRejected for what is no such number."""
    if type(limit) is not int or not 0 <= limit <= PAGE_MAX:
        message = f"limit={clipped(limit)} is no whole number from 0 to {PAGE_MAX}; 0 stands for all"
        raise RequestRejected(PAGE_INVALID, message, {"limit": PAGE_MAX})
    return limit


def page_of(every: Sequence[T], name: Callable[[T], str], behind: str, limit: int) -> list[T]:
    """The entries behind the one of this name, or from the first on; raises RequestRejected where it is not there any more."""
    check_limit(limit)
    begin = 0
    if behind:
        places = [place for place, one in enumerate(every) if name(one) == behind]
        if not places:
            message = f"nothing stands behind {behind[:80]!r} any more; begin with the first page"
            raise RequestRejected(PAGE_INVALID, message)
        begin = places[0] + 1
    return list(every[begin : begin + limit] if limit else every[begin:])
