"""Queues of people: how much a queue may hold, how long something may lie there, and what is remembered of its items.

Rule 1: a queue is a name. What it holds is read off the runs; only its limits and its receipts are kept beside them.
Rule 2: a queue that names who answers it is answered by no other person; one without names is open.
Rule 3: a receipt says that a person took note of an item, or that it was delivered somewhere. It decides nothing about
        a run: a reader without the receipts is shown items again that were seen before, and nothing worse.
"""

from collections.abc import Iterable
from enum import StrEnum

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.record import Record
from remit.core.run.person import check_person

QUEUE_INVALID = "QUEUE_INVALID"

# The file in the folder of a store that names its queues and their limits.
QUEUES_FILE = "queues.yaml"

# Before the name of a queue, it says who refused in place of a person.
QUEUE_MARK = "queue:"

# As many as a person tells apart; a name fits a column.
QUEUES_MAX = 100
NAME_CHARS_MAX = 40
# No queue is worked through beyond ten thousand questions; a larger limit means none.
LOAD_MAX = 10_000
# A year: what may lie longer than that has no limit.
AGE_MS_MAX = 366 * 86_400_000
URL_CHARS_MAX = 2_000
# More people than answer one queue; a longer list means a group, which a name can stand for.
PEOPLE_MAX = 200
# Words behind `remit queues` that are no queue.
_RESERVED = frozenset({"ack", "drain"})
# What HTTP says when all is well.
OK, _OK_BELOW = 200, 300
_SCHEMES = ("http://", "https://")


class QueueLimits(Record):
    """What a queue may hold: so many items, none older than so long; 0 is no limit.

    Where its items may be delivered, and who alone may answer them; without names, every person may.
    """

    name: str
    load_max: int = 0
    age_ms_max: int = 0
    webhook: str = ""
    answered_by: tuple[str, ...] = ()


class ReceiptKind(StrEnum):
    """The kinds of receipts: what was done about an item of a queue."""

    ACKNOWLEDGED = "acknowledged"
    DELIVERED = "delivered"


class Receipt(Record):
    """Who took note of an item, or where it was delivered, and when. The first of a kind for an item and a place stays."""

    kind: ReceiptKind
    item: str
    run_id: str
    # Who acknowledged it; the address that it was delivered to.
    by: str
    at_ms: int


class Delivery(Record):
    """What became of one item: the status of the webhook, or a code and a message; and what it decided."""

    id: str
    status: int = 0
    code: str = ""
    message: str = ""
    decision: str = ""
    by: str = ""

    @property
    def is_delivered(self) -> bool:
        """Whether the webhook took it."""
        return is_ok(self.status)


def is_ok(status: int) -> bool:
    """Whether a status of HTTP says that all is well."""
    return OK <= status < _OK_BELOW


def check_limits(limits: Iterable[QueueLimits]) -> tuple[QueueLimits, ...]:
    """The limits of queues, unless one of them cannot be meant."""
    found = tuple([as_declared(one, QueueLimits, "queue", QUEUE_INVALID) for one in limits])
    if len(found) > QUEUES_MAX:
        raise RequestRejected(QUEUE_INVALID, f"{len(found)} queues are named, more than queues_max={QUEUES_MAX}")
    seen: set[str] = set()
    for one in found:
        check_name(one.name)
        if one.name in seen:
            raise _invalid(one.name, "is named twice; keep one")
        seen.add(one.name)
        for field, limit in (("load_max", LOAD_MAX), ("age_ms_max", AGE_MS_MAX)):
            value = getattr(one, field)
            if type(value) is not int or not 0 <= value <= limit:
                raise _invalid(one.name, f"has {field}={str(value)[:SHOWN_CHARS_MAX]}, outside 0 to {limit}")
        if one.webhook:
            check_webhook(one.webhook)
        _check_people(one)
    return found


def _check_people(limits: QueueLimits) -> None:
    if len(limits.answered_by) > PEOPLE_MAX:
        raise _invalid(limits.name, f"names {len(limits.answered_by)} people in answered_by, people_max={PEOPLE_MAX}")
    for name in limits.answered_by:
        try:
            check_person(name, "answered_by")
        except RequestRejected as error:
            raise _invalid(limits.name, f"names an impossible person: {error.message}") from None


def check_name(name: str) -> str:
    """The name of a queue, unless it cannot be one."""
    if not name or len(name) > NAME_CHARS_MAX or not name.isascii() or not _is_word(name):
        raise _invalid(name, f"is no name of a queue; take up to {NAME_CHARS_MAX} letters, digits, dots, _ and -")
    if name in _RESERVED:
        raise _invalid(name, f"is a word of the command line; name it otherwise than {' and '.join(sorted(_RESERVED))}")
    return name


def check_webhook(url: str) -> str:
    """The address of a webhook, unless it cannot be one; whether a server is there shows when it is asked."""
    if len(url) > URL_CHARS_MAX or not url.startswith(_SCHEMES) or not url.isascii() or not url.isprintable():
        shown = url[:SHOWN_CHARS_MAX]
        message = f"webhook={shown!r} is no address; write http://HOST/PATH or https://HOST/PATH, up to {URL_CHARS_MAX} characters"
        raise RequestRejected(QUEUE_INVALID, message, {"webhook": shown})
    if " " in url or "@" in url.split("/")[2]:
        raise RequestRejected(
            QUEUE_INVALID, f"webhook={url[:SHOWN_CHARS_MAX]!r} has a space or a password in it; leave both out"
        )
    return url


def _is_word(name: str) -> bool:
    return all(character.isalnum() or character in "._-" for character in name) and name[0].isalnum()


def _invalid(name: object, problem: str) -> RequestRejected:
    shown = str(name)[:SHOWN_CHARS_MAX]
    return RequestRejected(QUEUE_INVALID, f"queue={shown!r} {problem}", {"queue": shown})
