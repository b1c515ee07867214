"""The tally of one turn: what has been decided so far, so that five calls never see the same untouched budget.

Rule 1: decide() reads the state and writes the tally; the state changes only when the turn is applied.
Rule 2: every promise a decision makes (budget, a message, an open command, a visit) is counted here as it is made.
Rule 3: whatever is counted here, folding the turn counts again: a field of the tally and the field of RunState with
        the same name must agree after apply(). The simulation compares them, turn by turn.
"""

from collections.abc import Callable

import msgspec

from remit.core.arrivals import ProposedCall
from remit.core.budget import DIMENSIONS
from remit.core.commands import (
    AskHuman,
    AskPurpose,
    CallCode,
    CallModel,
    CallTool,
    Command,
    Retrieve,
    SetTimer,
    StartChild,
    TimerPurpose,
)
from remit.core.events import Decision
from remit.core.failure import Ending, ErrorCode
from remit.core.manifest import Manifest
from remit.core.record import Text
from remit.core.rulings import Ruling
from remit.core.schema import Violation
from remit.kernel.graph import CompiledGraph
from remit.kernel.state import CallKey, RunState, Streak

# Kinds of commands that a node always waits for. Of the others, timers and questions, their purpose decides.
WAITED_FOR: frozenset[type[Command]] = frozenset({CallModel, CallTool, CallCode, Retrieve, StartChild})


def blocks(command: Command) -> bool:
    """Whether the node waits for this command. A question about a doubted call does not: the call itself does."""
    if type(command) in WAITED_FOR:
        return True
    if isinstance(command, SetTimer):
        return command.purpose is TimerPurpose.RETRY
    return isinstance(command, AskHuman) and command.purpose is not AskPurpose.OUTCOME


class Tally(msgspec.Struct, gc=False):
    """A turn in the making."""

    state: RunState
    manifest: Manifest
    graph: CompiledGraph
    at_ms: int
    seq: int
    # Where the run stands and what it has, as of this moment of the turn.
    node: int
    blocking: int
    asking: int
    paused: bool
    context_tokens: int
    messages_count: int
    proposed: tuple[ProposedCall, ...]
    answer: Text
    answer_violations: tuple[Violation, ...]
    stopped: bool
    is_unjudged: bool
    decisions: list[Decision]
    # Record a ruling: the list's own append, since every turn does it several times.
    rule: Callable[[Ruling], None]
    # Per dimension: what this turn reserved and charged, less what it released.
    promised: list[int]
    # The command whose outcome is being judged: it is settled once, by the rule that judges it.
    answering: str = ""
    repeats: dict[CallKey, int] = msgspec.field(default_factory=dict)
    visits: dict[int, int] = msgspec.field(default_factory=dict)
    # Effects this turn proposed or settled: the code that says why one is unproven, "" once it is committed,
    # None when a person replaced it by another.
    uncommitted: dict[CallKey, str | None] = msgspec.field(default_factory=dict)
    committed: list[str] = msgspec.field(default_factory=list)
    failures_in_a_row: dict[str, Streak | None] = msgspec.field(default_factory=dict)
    children_failed: int = 0
    # What conditions look at: the model's answers and the code of the latest failure, as far as this turn knows them.
    answers: int = 0
    last_error: str = ""
    problems: list[str] = msgspec.field(default_factory=list)
    ending: Ending | None = None
    error: ErrorCode | None = None
    message: str = ""

    def next_id(self) -> str:
        """The id of a command ordered now: its turn and its place there."""
        return f"{self.seq}.{len(self.decisions)}"

    def order(self, command: Command) -> None:
        """Record a command and promise what it reserves."""
        promised = self.promised
        for dimension, amount in command.reserved:
            promised[dimension] += amount
        if type(command) in WAITED_FOR or blocks(command):
            self.blocking += 1
        self.decisions.append(command)

    def release(self, command: Command) -> None:
        """Take back what a command reserved, now that it has an outcome."""
        promised = self.promised
        for dimension, amount in command.reserved:
            promised[dimension] -= amount
        if type(command) in WAITED_FOR or blocks(command):
            self.blocking -= 1

    def say(self, tokens_bound: int) -> None:
        """Count one more message in the context."""
        self.context_tokens += tokens_bound
        self.messages_count += 1

    @property
    def is_standing(self) -> bool:
        """Whether the clock stands still after this turn, because a person is waited for."""
        return self.asking > 0 or self.paused or any(child != self.answering for child in self.state.held)


def tally_of(state: RunState, at_ms: int) -> Tally:
    """A tally with nothing promised yet."""
    manifest, graph = state.manifest, state.graph
    assert manifest is not None, "the first turn pins the manifest"
    assert graph is not None, "the first turn pins the graph"
    decisions: list[Decision] = []
    return Tally(
        state,
        manifest,
        graph,
        at_ms,
        state.seq + 1,
        state.node,
        state.blocking,
        state.asking,
        state.paused,
        state.context_tokens,
        len(state.context),
        state.proposed,
        state.answer,
        state.answer_violations,
        state.stopped,
        state.is_unjudged,
        decisions,
        decisions.append,
        [0] * DIMENSIONS,
    )
