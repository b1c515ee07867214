"""RunState: where one governed run stands. It is the fold of its turns and nothing else.

Rule 1: only apply() changes a RunState; all other code reads it.
Rule 2: nothing here is written anywhere: delete a state, fold the turns, and it is back.
Rule 3: a run stands at one node with a set of open commands; `paused` and `asking` are overlays that keep
        the node beneath.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from remit.core.failure import ENDINGS, Ending, ErrorCode, gravest
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.commands import AskHuman, CallTool, Command, ReconcileTool
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import OutcomeParked, RunPaused
from remit.core.limits.boundary import Rate
from remit.core.limits.budget import Charges
from remit.core.limits.tools import ToolDefinition
from remit.core.record import Text
from remit.core.run.lifecycle import AgentRole, LifecycleState, LoopState, default_loop_state
from remit.core.run.manifest import Manifest, Source
from remit.core.run.messages import Message
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import Node
from remit.core.work.values import Output
from remit.kernel.graph.compiled import CompiledGraph
from remit.kernel.people.clock_stop import UNTOLD, Standstill, waited_ms
from remit.kernel.traces import CallTrace, ChildTrace, LateOutcome, Streak

# A tool and the hash of its canonical arguments: what "the same call" means.
CallKey = tuple[str, bytes]
# What a run remembers of a retrieval that failed.
CONTEXT_FAILED = "CONTEXT_FAILED"


@dataclass(frozen=True, slots=True)
class DerivedFacts:
    """What follows from the manifest alone (kernel/fold/derived.py), per tool where it is a map. Empty before the start."""

    graph: CompiledGraph | None = None
    tools: dict[str, ToolDefinition] = field(default_factory=dict)
    # What a call of a tool reserves; and the checks that may object to one, a memo that its first call fills.
    charges: dict[str, Charges] = field(default_factory=dict)
    checks: dict[str, tuple[Callable[..., Any], ...]] = field(default_factory=dict, compare=False)
    # What verifies a result of it: the name of a check, of the mere observation for a read, or nothing.
    verifiers: dict[str, str] = field(default_factory=dict)
    # The names of rates that count calls of it, with how many moments are kept.
    rated: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    # What is still needed at least from each node on, where the run is stopped as soon as that is out of reach; None at
    # nodes, or of runs, of which nothing is known.
    floors: tuple[Charges | None, ...] | None = None
    # Whether its calls pass the gate of provenance.
    is_traced: bool = False
    # The rates that hold for a user, over all of their runs.
    user_rates: tuple[Rate, ...] = ()
    # The tools whose outcomes may raise a flag, or tell of tests.
    flagging: frozenset[str] = frozenset()
    # The first run of its lineage, or the run itself: what is sealed for one of them, all of them know.
    family: str = ""


UNDERIVED = DerivedFacts()


@dataclass(slots=True)
class RunPlace:
    """Where the run stands: the node (-1 before the first), how often each was entered, and what keeps it there."""

    node: int = -1
    entered_at_ms: int = 0
    visits: list[int] = field(default_factory=list)
    # A paused run keeps here where it would have gone.
    parked: OutcomeParked | None = None
    paused: bool = False
    # Who asked for the pause; empty where a halt or the copying of a fork paused the run.
    paused_by: str = ""
    # Whether it is a fork that has not gone on since it was copied: what was open then was never sent in its name.
    is_copy: bool = False
    # The halt of dispatch that paused it.
    halted: RunPaused | None = None


@dataclass(slots=True)
class RunClock:
    """The run's time. It stands still while a person is waited for: asked by the run or a child, or having paused it."""

    started_at_ms: int = 0
    deadline_at_ms: int = 0
    is_standing: bool = False
    standing_since_ms: int = 0
    stood_ms: int = 0
    # What is known of the waiting while children wait; and the stopped time that is assumed to be waiting because a child
    # reported none.
    standstill: Standstill | None = None
    supposed_ms: int = 0


@dataclass(slots=True)
class Spending:
    """The budget vector, in the order of Dimension.

    Caps begin as the manifest's and grow by what people release; what is left of them is neither used nor reserved by an
    open command. What is used is the rest, and kept nowhere.
    """

    caps: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Commands:
    """Commands without an outcome, how many of them the node waits for, and those whose outcome is in doubt."""

    open: dict[str, Command] = field(default_factory=dict)
    blocking: int = 0
    doubted: dict[str, str] = field(default_factory=dict)
    # Those that wait for a halt to be lifted: none was begun.
    withheld: dict[str, bool] = field(default_factory=dict)
    # Commands that are never answered: to cancel what was open at the ending, to fork. Harmless to repeat.
    parting: list[Command] = field(default_factory=list)


@dataclass(slots=True)
class People:
    """What people are asked and what they said: how many questions are open, and who approved those that take several."""

    asking: int = 0
    approvals: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Approvals that a person or silence has denied.
    rejections: int = 0
    # Answers of which a person has turned a call away, and the latest of them.
    noes: int = 0
    no_to: int = -1
    # Calls of an agent elsewhere that a person has turned away, and who.
    turned_away: dict[CallKey, str] = field(default_factory=dict)
    # What a person or silence has not released with one of the proposed calls.
    unreleased: str = ""


@dataclass(slots=True)
class Talk:
    """What the model is shown, in order: messages, and its own answers by reference; and which model is asked."""

    context: list[Message | ModelAnswered] = field(default_factory=list)
    # Feedback that waits for the next model call, so that it never stands between a call and its result.
    pending: list[Message] = field(default_factory=list)
    pending_tokens: int = 0
    # Upper bounds: of the context, and of the tools offered with every call.
    context_tokens: int = 0
    offer_tokens: int = 0
    # Evidence found for this exchange, which is shown and never becomes history, and how well it fits; -1 is nothing.
    ephemeral: Text = ""
    relevance_ppm: int = -1
    # What the models have counted so far.
    prompt_tokens: int = 0
    reasoning_tokens: int = 0
    output_tokens: int = 0
    # Which of its models the run asks, how often its context was compressed, and whether it is at its last words.
    model_index: int = 0
    compressions: int = 0
    is_wrapping: bool = False


@dataclass(slots=True)
class Calls:
    """Tool calls: those commanded, by command id, those refused, and those that the latest answer proposes."""

    made: dict[str, CallTrace] = field(default_factory=dict)
    refused: list[CallTrace] = field(default_factory=list)
    proposed: tuple[ProposedCall, ...] = ()
    # Whether those still wait to be judged: by the tool node that is entered next, and by no other after it.
    is_unjudged: bool = False
    # How many filters have looked at them.
    filtered: int = 0
    # Those that were held when their question was withdrawn; of a run that has ended, those that its ending cut off.
    withdrawn: list[CallTrace] = field(default_factory=list)
    # How often each call was made since something last changed.
    repeats: dict[CallKey, int] = field(default_factory=dict)
    # The first call with these bytes that happened as its tool or a person says, and whose result is not known.
    unseen: dict[CallKey, str] = field(default_factory=dict)
    # Tools that were called, or proposed and refused.
    tried: dict[str, bool] = field(default_factory=dict)
    # When tools that have a rate were called, by the name in the rate; the oldest are forgotten.
    called_at: dict[str, list[int]] = field(default_factory=dict)
    # Calls in whose place another tool was called; and what the gate found about those that may yet be replaced so.
    replaced: dict[str, str] = field(default_factory=dict)
    provenances: dict[str, Provenance] = field(default_factory=dict)
    # Flags that outcomes raised, with the tool.
    flags: dict[str, str] = field(default_factory=dict)
    last_tool: str = ""


@dataclass(slots=True)
class Effects:
    """What the run has changed and observed, and what it claims without proof."""

    # Effects that were proposed and are not committed, with the code that says why.
    uncommitted: dict[CallKey, str] = field(default_factory=dict)
    # Effects whose tool failed within and may be called again, with the key of the attempt.
    unknown: dict[CallKey, str] = field(default_factory=dict)
    # The same of effects that did not happen, as their tool or a person says: should they yet, they happen once.
    denied: dict[CallKey, str] = field(default_factory=dict)
    # Committed observations per tool, the same of runs beneath this one, and how many effects were committed.
    committed: dict[str, int] = field(default_factory=dict)
    observed_below: dict[str, int] = field(default_factory=dict)
    count: int = 0
    # What observations say of the facts that the goal calls critical.
    critical: dict[str, tuple[str, str]] = field(default_factory=dict)
    failures_after_change: int = 0
    # What purchases that were issued come to.
    purchased: int = 0


@dataclass(slots=True)
class Counts:
    """What is counted against limits: attempts at the open model call, answers, refusals, failures, repairs."""

    attempt: int = 1
    iterations: int = 0
    calls_failed: int = 0
    denials: int = 0
    invalid_in_a_row: int = 0
    # The turn that last raised `invalid_in_a_row`: one answer with three bad calls is one bad answer.
    invalid_seq: int = -1
    failures_in_a_row: dict[str, Streak] = field(default_factory=dict)
    repeats_blocked: int = 0
    repairs: int = 0
    last_error: str = ""


@dataclass(slots=True)
class Children:
    """The runs beneath this one."""

    # The run that each command started.
    runs: dict[str, str] = field(default_factory=dict)
    # Those that wait for a person, by the command that started them, and under which code.
    waiting: dict[str, Ending] = field(default_factory=dict)
    # How long the clock had stood when each of the open ones was started.
    stood_before: dict[str, int] = field(default_factory=dict)
    # Those that nodes declared and that have ended, in that order; and how many failed since their node was entered.
    ended: list[ChildTrace] = field(default_factory=list)
    failed: int = 0


@dataclass(slots=True)
class Result:
    """The answer as it stands, what was found wrong with it, and what speaks for it."""

    answer: Text = ""
    violations: tuple[Violation, ...] = ()
    # Values of it that nothing which was observed says, and what it presents as verified without a ground.
    unsupported: tuple[str, ...] = ()
    ungrounded: tuple[str, ...] = ()
    # Whether a tool's own result is the answer, so that the model is not asked again.
    stopped: bool = False
    # What validators and what judges object to, and whether that is worth another attempt.
    problems: list[str] = field(default_factory=list)
    objections: list[str] = field(default_factory=list)
    is_final: bool = False
    # What validators let pass and the caller should know.
    warnings: list[str] = field(default_factory=list)
    # What a validator has just objected to, until the run has gone where that leads.
    sent_back: tuple[str, ...] = ()
    # Checks that validators counted, and the share of a vote; -1 is no vote.
    checks_passed: int = 0
    checks_failed: int = 0
    confidence_ppm: int = -1
    # What the steps of a plan gave, by their name.
    outputs: dict[str, Output] = field(default_factory=dict)


@dataclass(slots=True)
class End:
    """How the run ended, and what came after."""

    seq: int = -1
    ending: Ending | None = None
    error: ErrorCode | None = None
    message: str = ""
    # Effects whose outcome was unknown when it ended.
    doubted: tuple[str, ...] = ()
    # Whether the model that failed last would fail again if it were asked again.
    is_final: bool = False
    # How many turns came after the ending.
    addenda: int = 0
    # What calls in doubt came to, by their command, where that arrived after the ending. It changes nothing, and is shown.
    late: dict[str, LateOutcome] = field(default_factory=dict)


@dataclass(slots=True)
class RunState:
    """Everything decide() may know about a run: its id, the length of its journal, and a dozen groups."""

    run_id: str = ""
    seq: int = -1
    head: bytes = b""
    at_ms: int = 0
    # The fencing token of the lease under which it was taken up last; 0 where no lease of it may expire.
    token: int = 0
    manifest: Manifest | None = None
    derived: DerivedFacts = UNDERIVED
    place: RunPlace = field(default_factory=RunPlace)
    clock: RunClock = field(default_factory=RunClock)
    spending: Spending = field(default_factory=Spending)
    commands: Commands = field(default_factory=Commands)
    people: People = field(default_factory=People)
    talk: Talk = field(default_factory=Talk)
    calls: Calls = field(default_factory=Calls)
    effects: Effects = field(default_factory=Effects)
    counts: Counts = field(default_factory=Counts)
    children: Children = field(default_factory=Children)
    result: Result = field(default_factory=Result)
    end: End = field(default_factory=End)
    # What the session knows, as JSON texts; and which code replaced what the manifest names.
    session: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """How many nodes were entered, terminals not counted."""
        return sum(self.place.visits)

    @property
    def reserved(self) -> list[int]:
        """The amounts that open commands hold, per dimension."""
        held = [0] * len(self.spending.caps)
        for command in self.commands.open.values():
            for dimension, amount in command.reserved:
                held[dimension] += amount
        return held

    @property
    def used(self) -> list[int]:
        """The amounts that were spent for good, per dimension."""
        amounts = zip(self.spending.caps, self.spending.left, self.reserved, strict=True)
        return [cap - left - reserved for cap, left, reserved in amounts]


# A run before its first turn, for all that have none yet: nothing is folded into it.
NOT_BEGUN = RunState()


def pinned(state: RunState) -> Manifest:
    """The manifest of a run that has started."""
    assert state.manifest is not None, "the first turn pins the manifest"
    return state.manifest


def graph_of_run(state: RunState) -> CompiledGraph:
    """The graph of a run that has started."""
    assert state.derived.graph is not None, "the first turn pins the graph"
    return state.derived.graph


def standing_at(state: RunState) -> Node:
    """The node the run stands at."""
    return graph_of_run(state).nodes[state.place.node]


def lifecycle(state: RunState) -> LifecycleState:
    """Where the run is in the lifecycle that adapters show."""
    if state.end.ending is not None:
        return ENDINGS[state.end.ending].lifecycle
    return standing_at(state).lifecycle if state.place.node >= 0 else LifecycleState.INIT


def loop_state(state: RunState) -> LoopState:
    """Where a run stands in the vocabulary of agent loops, overlays first."""
    if state.end.ending is not None:
        return ENDINGS[state.end.ending].loop_state
    return LoopState.PAUSED if state.place.paused else loop_state_unpaused(state)


def loop_state_unpaused(state: RunState) -> LoopState:
    """The loop state of a run as if it were not paused: the state before its pause."""
    if (ending := waiting_for(state)) is not None:
        return ENDINGS[ending].waits_as or LoopState.AWAITING_APPROVAL
    return loop_state_under(state)


def loop_state_under(state: RunState) -> LoopState:
    """The loop state under any overlay: what a resume returns to."""
    return label_of(pinned(state).role, standing_at(state)) if state.place.node >= 0 else LoopState.EXPLORING


def label_of(role: AgentRole, node: Node) -> LoopState:
    """The loop state of a node: what its graph says, or what the work there is called for the run's role."""
    is_said = node.loop_state is not default_loop_state(node.lifecycle)
    return node.loop_state if is_said else default_loop_state(node.lifecycle, role)


def questions(state: RunState) -> Iterator[AskHuman]:
    """The questions that people are asked now, oldest first."""
    return (command for command in state.commands.open.values() if isinstance(command, AskHuman))


def waiting_for(state: RunState) -> Ending | None:
    """The code under which the run waits for a person, if nothing else can move it: of several, the gravest."""
    if state.end.ending is not None:
        return None
    return gravest((*(question.ending for question in questions(state)), *state.children.waiting.values()))


def stood_by_now(state: RunState) -> int:
    """How long the clock has stood by now, as far as it is known: of a standstill that goes on, nothing is."""
    if not state.clock.is_standing or state.children.waiting:
        return state.clock.stood_ms
    if state.clock.standstill is None:
        return state.clock.stood_ms + state.at_ms - state.clock.standing_since_ms
    return state.clock.stood_ms + waited_ms(state.clock.standstill, state.at_ms)


def waited_beyond(state: RunState, child: str, waited: int) -> int:
    """How long a child waited beyond what this run's own clock has stood for since it was started.

    It may have waited before its parent knew, while its parent waited too: nothing is counted twice.
    """
    return waited if waited == UNTOLD else max(waited - (state.clock.stood_ms - state.children.stood_before[child]), 0)


def inquiries(state: RunState, command_id: str) -> Iterator[AskHuman | ReconcileTool]:
    """Who is being asked about a call in doubt: its tool, or a person."""
    for command in state.commands.open.values():
        if isinstance(command, ReconcileTool):
            about = command.about
        elif isinstance(command, AskHuman) and command.packet is not None:
            about = command.packet.about
        else:
            continue
        if about == command_id:
            yield command


def is_safe_to_repeat(state: RunState, command: Command) -> bool:
    """Whether a command without an outcome may be performed again after a crash.

    Everything may but a mutating tool call; and that too when the tool declares itself idempotent, since it
    gets the same key. One in doubt waits for the answer about it, one that a halt withheld for the resume.
    """
    if command.id in state.commands.doubted or command.id in state.commands.withheld:
        return False
    return not isinstance(command, CallTool) or not command.mutating or state.derived.tools[command.tool].idempotent
