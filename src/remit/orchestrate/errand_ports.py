"""What a backend offers whose runs are performed by workers: a queue of errands, and claims that all processes share.

Rule 1: like all ports, they are satisfied by shape.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from remit.core.journal.queued import (
    Came,
    Claim,
    Claimed,
    DeadLetter,
    ErrandName,
    Lane,
    QueuedErrand,
    QueuedWord,
    StoredReport,
)


class SharedClaims(Protocol):
    """Who has begun a call that changes something, in whatever process."""

    async def claim(self, run_id: str, command_id: str, *, by: str = "", attempt: int = 1) -> Claimed:
        """Whether a call may begin now. Attempt 0 is one more than any before."""

    async def revoke(self, run_id: str, command_id: str) -> bool:
        """Whether a call will certainly not be made; False where it has begun."""

    async def offer(self, run_id: str, command_id: str) -> None:
        """Let a call begin again that was revoked here."""

    async def last(self, run_id: str, command_id: str) -> Claim | None:
        """The last word about a call."""

    def put_aside(self, run_id: str, command_id: str, code: str, why: str) -> None:
        """Keep a dead letter about a call that a person should look at, once for all processes."""


class Carriage(Protocol):
    """Carries errands to workers."""

    async def carried(self, name: ErrandName, lane: Lane, data: bytes, *, is_new: bool, claim: int = 0) -> StoredReport:
        """What came of an errand, once that is known; it is written unless it was.

        `claim` is the attempt under which its call is claimed: what came of it counts from the key that did. 0 needs none.
        """

    async def withdraw(self, name: ErrandName, lane: Lane, claim: int = 0) -> None:
        """Take an errand back: one that waits is given to no worker, and who performs it stops."""

    async def retract(self, name: ErrandName, lane: Lane) -> None:
        """Keep nothing of an errand that was withheld: it is sent again under its name."""

    async def due(self, run_id: str) -> None:
        """Have a loop worker drive a run."""

    async def forget(self, run_id: str, unsure: Mapping[str, Lane]) -> Sequence[StoredReport]:
        """Keep nothing of the errands of a run that has ended; gives what is reported of these calls."""


class Letters(Protocol):
    """The dead letters of a queue: errands that no worker is given any more."""

    async def keep(self, name: ErrandName, lane: Lane, data: bytes, code: str, why: str) -> None:
        """Keep one, with why."""

    async def listed(self) -> Sequence[DeadLetter]:
        """All of them, oldest first."""

    async def replay(self, number: int) -> DeadLetter:
        """Send one again."""


class Queue(Carriage, Protocol):
    """Hands errands, and runs to drive, to workers."""

    @property
    def worker(self) -> str:
        """The name of this process among the workers."""

    @property
    def letters(self) -> Letters:
        """Errands that no worker is given any more."""

    def expect_admitted(self) -> None:
        """Raise StoreUnusable where the word of this process counts nowhere any more, or it is let in nowhere."""

    async def prepare(self, *lanes: Lane) -> None:
        """Have the queues of these lanes there."""

    async def next_errand(self, lane: Lane) -> QueuedErrand | None:
        """The next errand of a lane; None where none came for a while."""

    async def report(
        self, name: ErrandName, came: Came, data: bytes = b"", *, lane: Lane | None = None, claim: int = 0
    ) -> bool:
        """Store what came of an errand; False where something was stored before that counts."""

    async def awaited(self, name: ErrandName, lane: Lane, wait_s: float) -> StoredReport | None:
        """What came of an errand that another has sent; None where nothing did within so long."""

    async def is_reported(self, name: ErrandName, lane: Lane | None = None, claim: int = 0) -> bool:
        """Whether it is known what came of an errand."""

    async def is_awaited(self, name: ErrandName) -> bool:
        """Whether an errand still stands, so that a driver waits for it."""

    async def late(self, name: ErrandName, data: bytes) -> None:
        """Keep what came of a call for which no driver waited any more, until a loop worker has told its run."""

    async def settle(self, receipt: str, place: int = 0) -> None:
        """Say that something need not be given to anybody any more; what stands at a place is removed."""

    async def hand_back(self, receipt: str, wait_s: float = 0.0) -> None:
        """Have something given to another, perhaps after a while."""

    async def keep(self, receipt: str) -> None:
        """Say that something is worked at."""

    async def on_withdrawn(self, tell: Callable[[ErrandName, str], None]) -> Callable[[], Awaitable[None]]:
        """Call a function for every errand that is taken back, with the address to answer to; gives a function that ends this."""

    async def answer(self, answer_to: str) -> None:
        """Say to the process that took an errand back that it is being stopped here; and again, that it has stopped."""

    async def prepare_words(self) -> None:
        """Have the queues there of runs that are due and of what came late."""

    async def next_due(self) -> QueuedWord | None:
        """The next run that is due; None where none came for a while."""

    async def next_late(self) -> QueuedWord | None:
        """The next thing that came late; None where nothing did for a while."""

    def may_perform(self, word: QueuedWord, lane: Lane) -> bool:
        """Whether the sender of a word may perform errands of a lane."""

    def put_word_aside(self, word: QueuedWord, code: str, why: str) -> None:
        """Keep a dead letter about a word that no process can act on."""

    async def orphans(self) -> Sequence[str]:
        """The runs that a process holds which is gone, and those that are due although no worker was handed that word."""


@runtime_checkable
class GuardedLog(Protocol):
    """A log of heads of a store where others may write beside the runs, and nothing that they write counts."""

    async def refused(self, run_id: str) -> str:
        """What stands with a run and counts for nothing, in words; empty where nothing does."""


@runtime_checkable
class SharedStore(Protocol):
    """A store whose runs workers may perform."""

    @property
    def claims(self) -> SharedClaims:
        """Who has begun what."""

    @property
    def queue(self) -> Queue:
        """The queue of errands for workers."""

    @property
    def leaves(self) -> bool:
        """Whether runs that are begun here are left to loop workers."""
