"""The tally of one turn: what has been decided so far, so that five calls never see the same untouched budget.

Rule 1: decide() reads the state and writes the tally; the state changes only when the turn is applied.
Rule 2: every promise a decision makes (budget, a message, an open command, a visit) is counted here as it is made.
"""

from remit.core.arrivals import ProposedCall
from remit.core.budget import Dimension
from remit.core.commands import (
    AskHuman,
    AskPurpose,
    CancelCommand,
    Command,
    ForkRun,
    ReconcileTool,
    SetTimer,
    TimerPurpose,
)
from remit.core.events import Decision
from remit.core.failure import Ending, ErrorCode
from remit.core.record import Text
from remit.core.rulings import Ruling
from remit.core.schema import Violation
from remit.kernel.state import CallKey, RunState

_NOTHING = [0] * len(Dimension)


def blocks(command: Command) -> bool:
    """Whether the node waits for this command. A question about a doubted call does not: the call itself does."""
    if isinstance(command, SetTimer):
        return command.purpose is TimerPurpose.RETRY
    if isinstance(command, AskHuman):
        return command.purpose is not AskPurpose.OUTCOME
    return not isinstance(command, ReconcileTool | CancelCommand | ForkRun)


class Tally:
    """A turn in the making."""

    __slots__ = (
        "answer",
        "answering",
        "asking",
        "at_ms",
        "blocking",
        "calls",
        "children_failed",
        "claims",
        "committed",
        "context_tokens",
        "decisions",
        "ending",
        "error",
        "failures",
        "message",
        "messages_count",
        "node",
        "paused",
        "problems",
        "promised",
        "repeats",
        "seq",
        "state",
        "stopped",
        "violations",
        "visits",
    )

    def __init__(self, state: RunState, at_ms: int) -> None:
        """Begin with nothing promised."""
        self.state = state
        self.at_ms = at_ms
        self.seq = state.seq + 1
        self.decisions: list[Decision] = []
        self.node = state.node
        self.promised = _NOTHING.copy()
        self.blocking = state.blocking
        self.asking = state.asking
        self.paused = state.paused
        self.context_tokens = state.context_tokens
        self.messages_count = len(state.context)
        self.calls: tuple[ProposedCall, ...] = state.proposed
        self.answer: Text = state.answer
        # The command whose outcome is being judged: it is settled once, by the rule that judges it.
        self.answering = ""
        self.violations: tuple[Violation, ...] = state.answer_violations
        self.stopped = state.stopped
        self.problems: list[str] = []
        self.failures: dict[str, tuple[int, str]] = {}
        self.children_failed = 0
        self.repeats: dict[CallKey, int] = {}
        # Effects this turn proposed or settled: the code that says why one is unproven, "" once it is committed,
        # None when a person replaced it by another.
        self.claims: dict[CallKey, str | None] = {}
        self.committed: list[str] = []
        self.visits: dict[int, int] = {}
        self.ending: Ending | None = None
        self.error: ErrorCode | None = None
        self.message = ""

    def next_id(self) -> str:
        """The id of a command ordered now: its turn and its place there."""
        return f"{self.seq}.{len(self.decisions)}"

    def rule(self, ruling: Ruling) -> None:
        """Record a ruling."""
        self.decisions.append(ruling)

    def order(self, command: Command) -> None:
        """Record a command and promise what it reserves."""
        promised = self.promised
        for dimension, amount in command.reserved:
            promised[dimension] += amount
        if blocks(command):
            self.blocking += 1
        self.decisions.append(command)

    def release(self, command: Command) -> None:
        """Take back what a command reserved, now that it has an outcome."""
        promised = self.promised
        for dimension, amount in command.reserved:
            promised[dimension] -= amount
        if blocks(command):
            self.blocking -= 1

    def say(self, tokens_bound: int) -> None:
        """Count one more message in the context."""
        self.context_tokens += tokens_bound
        self.messages_count += 1

    @property
    def is_standing(self) -> bool:
        """Whether the clock stands still after this turn, because a person is waited for."""
        return self.asking > 0 or self.paused
