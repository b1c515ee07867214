"""The tally of one turn: what has been decided so far, so that five calls never see the same untouched budget.

Rule 1: decide() reads the state and writes the tally; the state changes only when the turn is applied.
Rule 2: every promise a decision makes (budget, a message, an open command, a visit) is counted here as it is made.
Rule 3: some fields say how the run will stand (node, blocking, asking, paused, left, the context, the answer, stopped):
        those of RunState with the same name must agree after apply(), and the simulation compares them, turn by turn.
        The others say what this turn adds to the state, or why it heads for an ending. A turn that ends the
        run is not compared: the commands that it had issued before are taken back, and their counts are not read.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from remit.core.failure import NO_DENIALS, Ending, ErrorCode
from remit.core.journal.commands import (
    COMMANDS,
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
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import Ruling
from remit.core.journal.turn import Decision, Turn
from remit.core.limits.budget import Dimension
from remit.core.record import Text
from remit.core.run.manifest import Manifest
from remit.core.schema.json_schema import Violation
from remit.core.work.values import Output
from remit.kernel.graph.compiled import CompiledGraph
from remit.kernel.people.clock_stop import UNTOLD, standstill_after_child, waited_ms
from remit.kernel.state import CallKey, RunState, waited_beyond
from remit.kernel.traces import ChildTrace, Streak

# Kinds of commands that a node always waits for. Of the others, timers and questions, their purpose decides.
WAITED_FOR: frozenset[type[Command]] = frozenset({CallModel, CallTool, CallCode, Retrieve, StartChild})

# The effects and failures of most turns: none. A turn that has some replaces it.
_NOTHING: Mapping[Any, Any] = MappingProxyType({})


# The dimensions for which a run stands still once they are spent, until a person releases more.
FREEZING = frozenset({int(Dimension.STEPS), int(Dimension.WALL_CLOCK_MS)})


def freezes(command: Command) -> bool:
    """Whether this question asks for more steps or time. While it is open, the run enters no node."""
    if not isinstance(command, AskHuman) or command.purpose is not AskPurpose.RELEASE:
        return False
    return any(dimension in FREEZING for dimension, _ in command.releases)


def blocks(command: Command) -> bool:
    """Whether the node waits for this command. A question about a doubted call does not: the call itself does.

    Nor does a question for steps or time: the node may finish, and the run enters no further node.
    """
    if type(command) in WAITED_FOR:
        return True
    if isinstance(command, SetTimer):
        return command.purpose is TimerPurpose.RETRY
    return isinstance(command, AskHuman) and command.purpose is not AskPurpose.OUTCOME and not freezes(command)


class Tally:
    """A turn in the making."""

    # What it comes to, once everything is decided.
    turn: Turn

    # What most turns never touch is a default of the class, which costs a turn nothing.
    #
    # Calls that were issued and nodes that were entered, each as often as it was.
    repeats: tuple[CallKey, ...] = ()
    visits: tuple[int, ...] = ()
    committed: tuple[str, ...] = ()
    failures_in_a_row: Mapping[str, Streak | None] = _NOTHING
    # How often the model answered, for the conditions that look at it.
    answers = 0
    ending: Ending | None = None
    # Effects this turn proposed or settled: the code that says why one is unproven, "" once it is committed,
    # None when a person replaced it by another.
    uncommitted: Mapping[CallKey, str | None] = _NOTHING
    children_failed = 0
    # Open calls that were taken back before they had begun.
    unbegun: tuple[str, ...] = ()
    # The child that ended, how long it waited for people, and the step that was finished, if this turn is about one.
    child: ChildTrace | None = None
    child_stood_ms = UNTOLD
    finished: tuple[str, Output] | None = None
    # Observations that a child which ended in this turn has committed.
    observed_below: Mapping[str, int] = _NOTHING
    # What that child, and those beneath it, were denied.
    denied_below = NO_DENIALS
    # The code of the latest failure, as far as this turn knows, and what was objected to.
    last_error = ""
    problems: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()
    is_final = False
    # The first of the calls that were held in this turn: they are one packet.
    group = ""
    # Whether a person has turned a call away in this turn, the first of its answer.
    is_a_no = False
    # What a person or silence has not released with a call of this turn.
    unreleased = ""
    # How often this turn took a cheaper model, and whether it compressed the context.
    downgrades = 0
    is_compressed = False
    # Whether this turn made the run stand still for want of steps or time, or ended that; and how much time was released.
    is_freezing = False
    is_thawed = False
    extended_ms = 0
    # Flags that outcomes of this turn raise and lower, and what its answer presents as verified without a ground.
    raised: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    ungrounded: tuple[str, ...] | None = None
    # Why the run heads for the ending below.
    error: ErrorCode | None = None
    message = ""

    def __init__(self, state: RunState, at_ms: int, answering: str = "") -> None:
        """Nothing is promised yet."""
        self.state = state
        # The first turn pins both, and nothing is decided before.
        self.manifest: Manifest = state.manifest  # type: ignore[assignment]
        self.graph: CompiledGraph = state.derived.graph  # type: ignore[assignment]
        self.at_ms = at_ms
        # Where the run stands and what it has, as of this moment of the turn.
        place, talk, calls, result = state.place, state.talk, state.calls, state.result
        self.node = place.node
        self.blocking = state.commands.blocking
        self.asking = state.people.asking
        self.paused = place.paused
        self.context_tokens = talk.context_tokens
        self.messages_count = len(talk.context)
        # Whether the model was asked for its last words, in this turn or before.
        self.is_wrapping = talk.is_wrapping
        self.proposed: tuple[ProposedCall, ...] = calls.proposed
        self.is_unjudged = calls.is_unjudged
        # How many filters have looked at the proposed calls.
        self.filtered = calls.filtered
        self.answer: Text = result.answer
        self.answer_violations: tuple[Violation, ...] = result.violations
        # Values of the answer that nothing which was observed says.
        self.unsupported: tuple[str, ...] = result.unsupported
        self.stopped = result.stopped
        # What was decided so far, and the commands among it.
        self.decisions: list[Decision] = []
        self.issued: list[Command] = []
        # Per dimension: what remains, with everything taken off that this turn has promised so far.
        self.left = state.spending.left.copy()
        # The command whose outcome is being judged: it is settled once, by the rule that judges it.
        self.answering = answering

    def next_id(self) -> str:
        """The id of a command issued now: its turn and its place there."""
        return f"{self.state.seq + 1}.{len(self.decisions)}"

    def rule(self, ruling: Ruling) -> None:
        """Record a ruling."""
        self.decisions.append(ruling)

    def issue(self, command: Command) -> None:
        """Record a command and promise what it reserves."""
        left = self.left
        for dimension, amount in command.reserved:
            left[dimension] -= amount
        if type(command) in WAITED_FOR or blocks(command):
            self.blocking += 1
        self.issued.append(command)
        self.decisions.append(command)

    def take_back_issued(self) -> None:
        """Forget every command that was issued so far, since no executor has been told of it and the run ends.

        What was counted for them stays; folding the ending releases whatever is open, and nothing is reserved after it.
        """
        self.decisions[:] = [decision for decision in self.decisions if type(decision) not in COMMANDS]
        self.issued.clear()

    def note_effect(self, tool: str, arguments_hash: bytes, code: str | None) -> None:
        """Note an effect: with the code that says why it is unproven, "" once it is committed, None when replaced."""
        self.uncommitted = {**self.uncommitted, (tool, arguments_hash): code}

    def fail(self, tool: str, streak: Streak | None) -> None:
        """Count a tool's failures in a row, or with None that there are none any more."""
        self.failures_in_a_row = {**self.failures_in_a_row, tool: streak}

    def say(self, tokens_bound: int) -> None:
        """Count one more message in the context."""
        self.context_tokens += tokens_bound
        self.messages_count += 1

    @property
    def is_frozen(self) -> bool:
        """Whether the run goes nowhere until a person has released steps or time."""
        if self.is_freezing:
            return True
        return self.asking > 0 and not self.is_thawed and any(map(freezes, self.state.commands.open.values()))

    @property
    def is_standing(self) -> bool:
        """Whether the clock stands still after this turn, because a person is waited for."""
        return self.asking > 0 or self.paused or self._awaits_child

    @property
    def _awaits_child(self) -> bool:
        return any(child != self.answering for child in self.state.children.waiting)

    @property
    def standing_ms(self) -> int:
        """How long the clock has been standing by now; of a standstill that ends with this turn, only what was waiting."""
        state = self.state
        if not state.clock.is_standing:
            return 0
        if state.clock.standstill is None or self._awaits_child:
            return self.at_ms - state.clock.standing_since_ms
        return waited_ms(
            standstill_after_child(state.clock.standstill, waited_beyond(state, self.answering, self.child_stood_ms)),
            self.at_ms,
        )
