"""What is queued for workers: errands by their names, the reports that came of them, and who has begun a call.

Rule 1: an errand has one name for each attempt at it, under which it is written once, and its report once.
Rule 2: the last word about a call that changes something says whether it may begin. Within one process
        orchestrate/loop/claims.py decides the same, without words that are stored.
"""

from enum import StrEnum

from remit.core.record import Record

ERRAND_UNREADABLE = "ERRAND_UNREADABLE"
# A worker tells what became of a call that it has not claimed.
OUTCOME_UNCLAIMED = "OUTCOME_UNCLAIMED"
# A claim or a report is older than the turn that orders its command.
MESSAGE_PREMATURE = "MESSAGE_PREMATURE"


class ErrandName(Record):
    """Which errand: of which run, for which command, and which attempt it is, from 1."""

    run_id: str
    command_id: str
    attempt: int = 1


# What a message is called that names no errand.
NO_ERRAND = ErrandName("", "", 0)


class Lane(Record):
    """Which workers are given an errand: those of a tool of this version, or of a model."""

    kind: str
    name: str
    version: str = "any"


class Came(StrEnum):
    """The outcome of an errand, as its carrier knows it."""

    DONE = "done"
    # Another worker had begun it and is gone; or no caller wanted it any more; or it was given to too many.
    LOST = "lost"
    WITHDRAWN = "withdrawn"
    DEAD = "dead"


class StoredReport(Record):
    """What came of an errand, and the bytes of the report where it was done.

    `is_unclaimed` says that its call needs a claim and has none, so that it may begin after all.
    """

    came: Came
    data: bytes = b""
    is_unclaimed: bool = False


class QueuedErrand(Record):
    """An errand as a worker is given it. `deliveries` counts how often it was given to one; `receipt` is what it answers to.

    `is_again` says that a person sent it again, so that no driver waits for it.
    """

    name: ErrandName
    data: bytes
    deliveries: int = 1
    receipt: str = ""
    is_again: bool = False


class QueuedWord(Record):
    """Something that a loop worker is given: a run that is due, or what came late of a call; without bytes, it is due.

    `performs` are the kinds of errands that its sender may perform, None for all; `place` is where it stands. What came late is
    of the command; `claimed` is the attempt at it that its sender has claimed, 0 for none. `signer` is the key of its sender.
    """

    run_id: str
    data: bytes = b""
    deliveries: int = 1
    receipt: str = ""
    performs: frozenset[str] | None = None
    place: int = 0
    command_id: str = ""
    claimed: int = 0
    signer: str = ""


class DeadLetter(Record):
    """An errand that no worker is given any more: why, with a code, and what it was."""

    number: int
    name: ErrandName
    lane: Lane
    code: str
    why: str
    at_ms: int = 0


class ClaimWord(StrEnum):
    """The last word about a call that changes something."""

    OFFERED = "offered"
    CLAIMED = "claimed"
    REVOKED = "revoked"


class Claim(Record):
    """A word about a call, by whom, and for which attempt at it."""

    word: ClaimWord
    by: str = ""
    attempt: int = 0


class Claimed(StrEnum):
    """What a performer is told that wants to begin a call."""

    GRANTED = "granted"
    REVOKED = "revoked"
    # Another has begun it.
    TAKEN = "taken"


def claim_outcome(last: Claim | None, wanted: Claim) -> Claimed:
    """Whether a call may begin, given the last word about it. A later attempt may: its driver knew that it is safe to repeat."""
    if last is None or last.word is ClaimWord.OFFERED or last == wanted:
        return Claimed.GRANTED
    if last.word is ClaimWord.REVOKED:
        return Claimed.REVOKED
    return Claimed.GRANTED if wanted.attempt > last.attempt else Claimed.TAKEN
