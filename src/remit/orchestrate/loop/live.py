"""A run in memory, as its driver or a reader holds it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from remit.core.journal.commands import Command
from remit.core.journal.storage import START, Warrant
from remit.core.journal.turn import Turn
from remit.kernel.state import NOT_BEGUN, RunState
from remit.orchestrate.exchange.conversation import Conversation

if TYPE_CHECKING:
    from remit.orchestrate.executors.prepare import ErrandTerms
    from remit.orchestrate.facts.gate_trace import Tracer


class Live:
    """A run in memory: its state, the conversation as the model sees it, and nothing that cannot be folded again."""

    __slots__ = (
        "common",
        "conversation",
        "follow",
        "foreign_token",
        "moment_ms",
        "place",
        "reached_ms",
        "recovered_seq",
        "run_id",
        "snapshot_seq",
        "state",
        "tracer",
        "warrant",
    )

    def __init__(self, run_id: str, state: RunState = NOT_BEGUN) -> None:
        self.run_id = run_id
        self.state = state
        # Where its journal stands behind the last turn that is in the state.
        self.place = START
        self.conversation = Conversation()
        # What all its errands have in common.
        self.common: ErrandTerms | None = None
        # The gate that follows a traced run; made again from the journal whenever it is not there.
        self.tracer: Tracer | None = None
        # Under which lease its turns are written; None for who only reads.
        self.warrant: Warrant | None = None
        # The token that a driver in another store has left in a run that was imported; it says nothing about leases here.
        self.foreign_token = 0
        # What time it is, where an agent elsewhere keeps the time of its run; None where the clock counts.
        self.moment_ms: int | None = None
        # After which turn the snapshot was made that is kept of the run; -1 where none is known here.
        self.snapshot_seq = -1
        # Up to which turn its commands were ordered by an earlier driver of the run; -1 where it began here.
        self.recovered_seq = -1
        # The latest moment for which an alarm rang: it has come, whatever the clock says by the time a turn is taken.
        self.reached_ms = 0
        # The guard, which drives it for an agent elsewhere, takes in every turn here before any listener is told of it.
        self.follow: Callable[[Turn], None] | None = None

    @property
    def is_taken_over(self) -> bool:
        """Whether its turns tell that another process has taken the run up since: nothing more is begun or written here."""
        token = self.state.token
        return token != self.foreign_token and self.warrant is not None and self.warrant.token < token

    def keep_state_alone(self) -> None:
        """Let go of what only its errands needed: the run has ended, and its callers read off the state how it did."""
        self.conversation, self.common = Conversation(), None

    def is_ordered_here(self, command: Command) -> bool:
        """Whether no other process can have begun a command: its turn was taken here, and not by an earlier driver."""
        return int(command.id.partition(".")[0]) > self.recovered_seq
