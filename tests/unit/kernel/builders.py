"""A run driven by hand: one arrival at a time, judged by the real kernel, with no world around it."""

from hashlib import sha256
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, IllegalArrival
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival, Happened, RunStarted
from remit.core.journal.canonical import canonical_json
from remit.core.journal.codec import encode_turn, hash_turn
from remit.core.journal.commands import AskHuman, CallCode, CallModel, CallTool, SetTimer, StartChild, TimerPurpose
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import NodeEntered
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Charges, Dimension
from remit.core.limits.foresight import Foresight
from remit.core.limits.tools import ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo
from remit.core.run.manifest import Manifest, Source, make_manifest
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_schema import Violation
from remit.core.work.goal import Goal
from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node
from remit.core.work.plan import PlanTrace
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.fold.snapshot import snapshot_of, state_from
from remit.kernel.results.notices import whole_bound
from remit.kernel.state import RunState
from remit.kernel.tally import Tally
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.runs import SimulatedRun, fold_journal
from remit.testing.scripts import in_turn
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.effects import an_approval_is_used_once, four_eyes_are_two_people, nothing_unsafe_goes_on
from tests.simulation.laws.runs import (
    a_paused_run_orders_nothing,
    an_ended_run_holds_nothing,
    every_call_is_answered,
    the_tally_agrees_with_the_fold,
)
from tests.simulation.scenarios import MODEL, TOOLS

K = TypeVar("K")

# Laws that need no world around a run.
LAWS_OF_ONE = (
    the_tally_agrees_with_the_fold,
    every_call_is_answered,
    a_paused_run_orders_nothing,
    an_ended_run_holds_nothing,
    an_approval_is_used_once,
    four_eyes_are_two_people,
    nothing_unsafe_goes_on,
)

BEGINS_AT_MS = 1_000_000
USAGE = TokenUsage(prompt_tokens=8, output_tokens=4)
QUESTION = SystemRequest(messages=(user_message("please"),))
# Facts of a hand-made world: what the messages and the offered tools come to at most.
MESSAGES_TOKENS = 30
OFFER_TOKENS = 70


def manifest_of(
    *,
    graph: Graph | None = None,
    boundary: Boundary = Boundary(name="test"),
    budget: Budget = Budget(),
    request: SystemRequest = QUESTION,
    tools: tuple[ToolDefinition, ...] = TOOLS,
    model: ModelInfo = MODEL,
    goal: Goal | None = None,
    retrieves_context: bool = False,
    filters: tuple[str, ...] = (),
    others: tuple[ModelInfo, ...] = (),
    sources: tuple[Source, ...] = (),
    plan: PlanTrace | None = None,
    foresight: Foresight | None = None,
) -> Manifest:
    """A chat with every tool of the scenarios, unless said otherwise."""
    return make_manifest(
        run_id="run",
        request=request,
        boundary=boundary,
        budget=budget,
        graph=graph or chat_graph(),
        models=(model, *others),
        cheaper=len(others),
        tools=tools,
        goal=goal,
        retrieves_context=retrieves_context,
        filters=filters,
        sources=sources,
        plan=plan,
        foresight=foresight,
    )


def wants(tool: str, n: int = 1, *, call_id: str = "call", violations: tuple[Violation, ...] = ()) -> ProposedCall:
    """A proposed call as facts complete it."""
    arguments = canonical_json({"n": n})
    return ProposedCall(call_id, tool, arguments.decode(), sha256(arguments).digest(), violations)


def known(tool: str, /, **changes: Any) -> ToolDefinition:
    """A tool of the scenarios, with other declarations."""
    return replace(next(one for one in TOOLS if one.name == tool), **changes)


def bound(call: ProposedCall) -> ProposedCall:
    """The same call after the gate found every value of it bound."""
    return replace(call, provenance=Provenance.BOUND)


def in_line(*nodes: Node, edges: tuple[Edge, ...] = (), exits: tuple[tuple[str, str], ...] = EXITS) -> Graph:
    """Nodes one after the other, then done; further edges come first."""
    names = [*(node.name for node in nodes), "done"]
    onward = tuple(Edge(source, target) for source, target in pairwise(names))
    ordered = tuple(sorted((*edges, *onward), key=lambda edge: not (edge.outcome or edge.condition)))
    return Graph("line", names[0], (*nodes, *TERMINALS), ordered, exits)


class Run:
    """One run: its state, its turns, and the words of a small world for what arrives."""

    def __init__(self, manifest: Manifest | None = None, *, at_ms: int = BEGINS_AT_MS) -> None:
        self.state = RunState()
        self.turns: list[Turn] = []
        self.journal: list[bytes] = []
        self.now_ms = at_ms
        self.take(RunStarted(manifest or manifest_of(), MESSAGES_TOKENS, OFFER_TOKENS), after_ms=0)

    # Turns.

    def take(self, arrival: Arrival, *, after_ms: int = 10) -> Turn:
        """Let something arrive and apply what is decided about it."""
        self.now_ms += after_ms
        turn = take_turn(self.state, arrival, self.now_ms)
        data = encode_turn(turn)
        apply(self.state, turn, hash_turn(data))
        self.turns.append(turn)
        self.journal.append(data)
        return turn

    def fault_of(self, arrival: Arrival) -> ArrivalFault:
        """Why an arrival cannot be judged; it must not have changed anything."""
        with pytest.raises(IllegalArrival) as refused:
            take_turn(self.state, arrival, self.now_ms)
        assert self.state == fold_journal(self.journal)
        return refused.value.fault

    def tally(self) -> Tally:
        """A turn in the making, with nothing promised yet."""
        return Tally(self.state, self.now_ms)

    # Looking.

    def all(self, kind: type[K]) -> list[K]:
        """Every decision of a kind, oldest first."""
        return [decision for turn in self.turns for decision in turn.decisions if isinstance(decision, kind)]

    def last(self, kind: type[K]) -> K:
        """The latest decision of a kind."""
        return self.all(kind)[-1]

    def now(self, kind: type[K]) -> list[K]:
        """The decisions of a kind in the latest turn."""
        return [decision for decision in self.turns[-1].decisions if isinstance(decision, kind)]

    def open(self, kind: type[K]) -> list[K]:
        """The open commands of a kind, oldest first."""
        return [command for command in self.state.commands.open.values() if isinstance(command, kind)]

    def path(self) -> list[str]:
        """The nodes entered so far."""
        return [entered.node for entered in self.all(NodeEntered)]

    def used(self, dimension: Dimension) -> int:
        """What is charged."""
        return self.state.used[dimension]

    def reserved(self, dimension: Dimension) -> int:
        """What is held for open commands."""
        return self.state.reserved[dimension]

    def messages(self) -> list[Any]:
        """The texts the model would be shown, in order."""
        return [
            entry.text if isinstance(entry, arrivals.ModelAnswered) else entry.content
            for entry in self.state.talk.context
        ]

    # The world reports.

    def says(
        self,
        text: str,
        *,
        violations: tuple[Violation, ...] = (),
        usage: TokenUsage = USAGE,
        unsupported: tuple[str, ...] = (),
    ) -> Turn:
        """The model answers in words."""
        answer = arrivals.ModelAnswered(self._model_call(), text, usage=usage, tokens_bound=20, violations=violations)
        return self.take(replace(answer, unsupported=unsupported))

    def proposes(self, *calls: ProposedCall, text: str = "") -> Turn:
        """The model wants tools called."""
        return self.take(arrivals.ModelAnswered(self._model_call(), text, calls=calls, usage=USAGE, tokens_bound=40))

    def breaks(self, code: ErrorCode = ErrorCode.INFERENCE_ENGINE_ERROR, *, was_cut: bool = False) -> Turn:
        """The model call fails."""
        return self.take(arrivals.ModelFailed(self._model_call(), code, was_cut=was_cut))

    def returns(
        self,
        tool: str = "",
        content: str = '{"ok": true}',
        *,
        violations: tuple[Violation, ...] = (),
        refuted: str = "",
        stop_loop: bool = False,
        critical: tuple[tuple[str, str], ...] = (),
    ) -> Turn:
        """The oldest open call, or the one of this tool, returns."""
        evidence = sha256(content.encode()).digest()
        bound = whole_bound(content)
        returned = arrivals.ToolReturned(self._call(tool), content, evidence, bound, violations, refuted, stop_loop)
        return self.take(replace(returned, duration_ms=7, critical=critical))

    def fails(
        self, tool: str = "", code: ErrorCode = ErrorCode.TOOL_EXECUTION_FAILED, *, exposed: bool = False
    ) -> Turn:
        """The oldest open call, or the one of this tool, fails."""
        failed = arrivals.ToolFailed(self._call(tool), code, "it broke", b"evidence", 50, duration_ms=9)
        return self.take(replace(failed, exposed=exposed))

    def breaks_within(self, tool: str = "", *flags: str) -> Turn:
        """The function of the oldest open call, or of the one of this tool, raises something other than NotDone."""
        code = ErrorCode.TOOL_EXECUTION_FAILED
        failed = arrivals.ToolFailed(self._call(tool), code, "it broke", b"evidence", 50, duration_ms=9)
        return self.take(replace(failed, flags=flags, is_unknown=True))

    def loses(self, tool: str = "") -> Turn:
        """A crash leaves a call without an outcome."""
        return self.take(arrivals.ToolOutcomeLost(self._call(tool)))

    def approves(self, *, by: str = "ada", modified: ProposedCall | None = None, after_ms: int = 10) -> Turn:
        """A person says yes to the oldest question."""
        return self.take(arrivals.ApprovalGiven(self.question().id, by, modified), after_ms=after_ms)

    def rejects(self, reason: str = "") -> Turn:
        """A person says no to the oldest question."""
        return self.take(arrivals.ApprovalRefused(self.question().id, "ada", reason))

    def tells(self, text: str, *, by: str = "ada") -> Turn:
        """A person answers the oldest question in words."""
        return self.take(arrivals.QuestionAnswered(self.question().id, by, text, whole_bound(text)))

    def judges(self, happened: Happened) -> Turn:
        """A person says what became of a call."""
        return self.take(arrivals.OutcomeJudged(self.question().id, "ada", happened))

    def heard_from_child(self, ending: Ending = Ending.SUCCESS, *, spent: Charges = (), text: str = "found it") -> Turn:
        """The oldest open child ends."""
        child = self.open(StartChild)[0]
        return self.take(arrivals.ChildEnded(child.id, ending, text, spent, tokens_bound=25))

    def validates(self, *problems: str) -> Turn:
        """The oldest open code returns."""
        return self.take(arrivals.CodeReturned(self.open(CallCode)[0].id, problems=problems))

    def sifts(self, *calls: ProposedCall) -> Turn:
        """The filter that looks at the proposed calls returns them as it leaves them."""
        return self.take(arrivals.CodeReturned(self.open(CallCode)[0].id, calls=calls, is_filtered=True))

    def rings(self, purpose: TimerPurpose) -> Turn:
        """The oldest open timer for this purpose fires when it is due."""
        timer = next(timer for timer in self.open(SetTimer) if timer.purpose is purpose)
        return self.take(arrivals.TimerFired(timer.id), after_ms=max(0, timer.due_at_ms - self.now_ms))

    def question(self) -> AskHuman:
        """The oldest open question."""
        return self.open(AskHuman)[0]

    def _model_call(self) -> str:
        return self.open(CallModel)[0].id

    def _call(self, tool: str) -> str:
        return next(call.id for call in self.open(CallTool) if tool in ("", call.tool))


def with_deadline(manifest: Manifest, deadline_at_ms: int) -> Manifest:
    """The same manifest under a deadline from above."""
    return replace(manifest, deadline_at_ms=deadline_at_ms)


def lawful(run: Run) -> Run:
    """The run itself, after a look at the laws that every run keeps; and each turn is decided alike from a snapshot."""
    told, world = SimulatedRun("run", run.journal), SimulatedWorld(model=in_turn())
    broken = [f"{law.__name__}: {what}" for law in LAWS_OF_ONE for what in law(world, told)]
    assert broken == []
    state = RunState()
    for turn, data in zip(run.turns, run.journal, strict=True):
        if state.seq >= 0:
            kept = snapshot_of(state)
            assert kept is not None
            restored = state_from(kept)
            assert restored == state
            assert encode_turn(take_turn(restored, turn.arrival, turn.at_ms)) == data
        apply(state, turn, hash_turn(data))
    assert state == run.state
    return run


def plain(record: object) -> Any:
    """A record as plain values."""
    return msgspec.to_builtins(record)
