"""What the runner asks of a backend: somewhere to write, somewhere for long texts, someone to carry commands.

Rule 1: ports are plain roles; a backend satisfies them by shape and imports nothing of this room.
Rule 2: append is the only way to write a turn; it is atomic and names the turn it comes after.
Rule 3: once dispatched, a command is performed at least once; its report is taken at most once.
"""

from collections.abc import Sequence
from typing import Protocol

from remit.core.commands import Command
from remit.kernel.state import RunState
from remit.orchestrate.conversation import Conversation
from remit.orchestrate.reports import Report


class Live:
    """A run in memory: its state, the conversation as the model sees it, and nothing that cannot be folded again."""

    __slots__ = ("conversation", "run_id", "state")

    def __init__(self, run_id: str, state: RunState) -> None:
        self.run_id = run_id
        self.state = state
        self.conversation = Conversation()


class Journal(Protocol):
    """Keeps the turns of every run, in order, for good."""

    async def append(self, run_id: str, data: bytes, *, after: int) -> None:
        """Write the turn that follows number `after`, or raise AppendConflict when another was faster."""

    async def read(self, run_id: str, *, after: int = -1) -> Sequence[bytes]:
        """The turns that follow number `after`, oldest first; none for a run nobody started."""


class Blobs(Protocol):
    """Keeps long texts once, by digest."""

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes under their digest; keeping them twice keeps them once."""

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. It may jump; the runner never lets a run's time go back."""


class Dispatch(Protocol):
    """Carries commands to whoever performs them, and their reports back."""

    def send(self, live: Live, command: Command) -> None:
        """Have a command performed."""

    async def receive(self, live: Live) -> Report | None:
        """The next report for a run, or None when nothing is under way that could report."""

    def forget(self, live: Live) -> None:
        """Stop performing what is under way for a run that has ended or is no longer driven here."""
