"""However a tree grows, spends, fails and is released, and in whatever order its news arrive, it stays within its root."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.core.failure import Ending, ErrorCode, IllegalArrival
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import Arrival, Happened, RunStarted
from remit.core.journal.codec import encode_turn, hash_turn
from remit.core.journal.commands import AskPurpose, CallModel, Command, StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import QuestionSettled, UsageExceeded
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import COUNTERS, FIELDS, Budget
from remit.core.limits.tools import Effect
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import JoinRule
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, pinned, waiting_for
from remit.orchestrate.loop.offspring import child_manifest, spent_by
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.runs import SimulatedRun
from tests.simulation.laws.trees import above_the_gauges, overshot, tree_of
from tests.simulation.scenarios import MODEL
from tests.simulation.tree_scenarios import CHILD, STEPS_OF_THE_ROOT, TOOLS, tree_graph

ROOT = "root"
BEGINS_AT_MS = 1_000_000
CHILDREN_MAX = 50
# Four bytes of a tape are one thing that happens: to whom, what, and how much of it.
MOVE_BYTES = 4
DELEGATING = ("pass_on", "split", "pass_on", "split", "look", "fetch", "write")
ASKING = tuple((name, Exhaustion.ASK) for name in ("output_tokens", "tool_calls", "external_api_calls"))


class Shape(NamedTuple):
    """What a tree begins with: how many children at once, what each is leased, and what the root has beyond that."""

    children: int
    leases: tuple[int, ...]
    beyond: tuple[int, ...]
    short: str
    depth: int
    join: JoinRule
    asks_when_spent: bool
    asks_before_writing: bool


NAMES = tuple(name for name, _ in CHILD)
AMOUNTS = tuple(amount for _, amount in CHILD)
shapes = st.builds(
    Shape,
    children=st.integers(1, CHILDREN_MAX) | st.just(CHILDREN_MAX),
    leases=st.tuples(*(st.integers(amount // 2 + 1, amount) for amount in AMOUNTS)),
    beyond=st.tuples(*(st.integers(0, 2 * amount) for amount in AMOUNTS)),
    short=st.sampled_from([*[""] * 50, *NAMES]),
    depth=st.integers(0, 2),
    join=st.sampled_from(JoinRule),
    asks_when_spent=st.booleans(),
    asks_before_writing=st.booleans(),
)


def root_of(shape: Shape) -> Manifest:
    """The root of a tree: it has what it leases its children and a little more, or in some dimension too little."""
    each = zip(NAMES, shape.leases, shape.beyond, strict=True)
    caps = {name: amount * shape.children + more for name, amount, more in each}
    caps["child_runs"] += shape.children
    caps["steps"] += STEPS_OF_THE_ROOT
    if shape.short:
        caps[shape.short] = shape.leases[NAMES.index(shape.short)] * shape.children - 1
    return make_manifest(
        run_id=ROOT,
        request=SystemRequest((user_message("take one part each"),)),
        boundary=Boundary(
            name="tree",
            approval_effects=(Effect.WRITE,) if shape.asks_before_writing else (),
            exhaustion=ASKING if shape.asks_when_spent else (),
            budget=Budget(**caps, depth=shape.depth),
        ),
        graph=tree_graph(tuple(zip(NAMES, shape.leases, strict=True)), shape.children, shape.join),
        models=(MODEL,),
        tools=TOOLS,
    )


class Tree:
    """Runs that the real kernel decides, and a world that does to them what a tape says."""

    def __init__(self, root: Manifest) -> None:
        self.states: dict[str, RunState] = {}
        self.journals: dict[str, list[bytes]] = {}
        self.ignored = 0
        self._at_ms = BEGINS_AT_MS
        self._released: dict[str, list[int]] = {}
        self._beyond: dict[str, list[int]] = {}
        self._begin(root)

    def move(self, whom: int, what: int, much: int) -> None:
        """Let one thing happen, to some open command or to some run; what is not allowed then changes nothing."""
        self._at_ms += what
        if what % 128 == 0:
            self._signal(list(self.states)[whom % len(self.states)], much)
            return
        ready = [(run_id, c) for run_id, state in self.states.items() for c in self._ready(state, much)]
        if ready:
            run_id, command = ready[whom % len(ready)]
            HAPPENS[type(command)](self, run_id, command, what, much)

    def _ready(self, state: RunState, much: int) -> Iterator[Command]:
        """Commands of which there is news to come: of children that are at rest, and seldom of far moments or losses."""
        for command in (*state.commands.open.values(), *state.commands.parting):
            if isinstance(command, commands.SetTimer):
                is_ready = command.purpose is commands.TimerPurpose.RETRY or much == 0
            elif isinstance(command, StartChild) and (child := self.states.get(command.run_id)) is not None:
                is_ready = child.end.ending is not None or waiting_for(child) is not None or much % 64 == 0
            else:
                is_ready = True
            if is_ready:
                yield command

    def hear(self, run_id: str, arrival: Arrival) -> None:
        """Have the kernel judge an arrival, write the turn down, and see that the run stays within what it has."""
        state = self.states[run_id]
        try:
            turn = take_turn(state, arrival, max(state.at_ms, self._at_ms))
        except IllegalArrival:
            self.ignored += 1
            return
        data = encode_turn(turn)
        apply(state, turn, hash_turn(data))
        self.journals[run_id].append(data)
        for decision in turn.decisions:
            if isinstance(decision, QuestionSettled):
                _add(self._released[run_id], decision.releases)
            elif isinstance(decision, UsageExceeded):
                _add(self._beyond[run_id], decision.over)
        self._expect_within(run_id)

    def _expect_within(self, run_id: str) -> None:
        state = self.states[run_id]
        caps, released, beyond = pinned(state).caps, self._released[run_id], self._beyond[run_id]
        reserved = [0] * len(caps)
        for command in state.commands.open.values():
            _add(reserved, command.reserved)
        for d in COUNTERS:
            held, allowed = state.used[d] + reserved[d] - beyond[d], caps[d] + released[d]
            assert held <= allowed, f"{run_id} holds {held} {FIELDS[d]} of {allowed} in turn {state.seq}"

    def expect_within_the_root(self) -> None:
        """What the journals of all runs add up to fits what the root was given and people released."""
        runs = {run_id: SimulatedRun(run_id, journal) for run_id, journal in self.journals.items()}
        tree = tree_of(runs[ROOT], runs.get)
        assert sum(1 for _ in tree.runs()) == len(runs)
        assert list(overshot(tree)) == []
        assert list(above_the_gauges(tree)) == []

    def _begin(self, manifest: Manifest) -> None:
        run_id = manifest.run_id
        self.states[run_id], self.journals[run_id] = RunState(), []
        self._released[run_id], self._beyond[run_id] = ([0] * len(FIELDS) for _ in range(2))
        self.hear(run_id, RunStarted(manifest, 40, 300))

    def _signal(self, run_id: str, much: int) -> None:
        kinds = (arrivals.PauseRequested, arrivals.ResumeRequested, arrivals.ResumeRequested, arrivals.CancelRequested)
        # A tree whose root is cancelled at once has little to tell.
        kind = kinds[much % len(kinds)]
        if kind is not arrivals.CancelRequested or run_id != ROOT:
            self.hear(run_id, kind("ada"))

    def ask_model(self, run_id: str, command: CallModel, what: int, much: int) -> None:
        """A model answers, proposes or breaks; it reports a share of what was reserved, nothing, or far too much."""
        if what % 16 == 1:
            self.hear(run_id, arrivals.ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, was_cut=much % 2 == 0))
            return
        reserved = dict(command.reserved)
        usage = TokenUsage(reserved[0] * (much % 5) // 4, 0, reserved[1] * (much // 5 % 9) // 8)
        if (what % 2, much) == (1, 255):
            usage = TokenUsage(10**7, 10**7, 10**7)
        calls = tuple(_call(what + place, much) for place in range(what % 4))
        text = "" if calls else "done"
        self.hear(run_id, arrivals.ModelAnswered(command.id, text, calls=calls, usage=usage, tokens_bound=60))

    def call_tool(self, run_id: str, command: commands.CallTool, what: int, much: int) -> None:
        """A tool returns, breaks, takes too long, or its outcome is unknown."""
        kinds: tuple[Arrival, ...] = (
            arrivals.ToolReturned(command.id, "{}", b"evidence", 22),
            arrivals.ToolReturned(command.id, "{}", b"evidence", 22),
            arrivals.ToolFailed(command.id, ErrorCode.TOOL_EXECUTION_FAILED, tokens_bound=90),
            arrivals.ToolFailed(command.id, ErrorCode.TOOL_TIMEOUT, tokens_bound=90),
            arrivals.ToolOutcomeLost(command.id),
        )
        self.hear(run_id, kinds[much % len(kinds)])

    def ask_person(self, run_id: str, command: commands.AskHuman, what: int, much: int) -> None:
        """A person approves, with what that releases, or refuses; a parent is told that its child waits."""
        origin = pinned(self.states[run_id]).parent
        if origin is not None and what % 3 == 0:
            self.hear(origin.run_id, arrivals.ChildSuspended(origin.command_id, command.ending))
        if command.purpose is AskPurpose.OUTCOME:
            self.hear(run_id, arrivals.OutcomeJudged(command.id, "ada", tuple(Happened)[much % 3]))
        elif much % 4:
            self.hear(run_id, arrivals.ApprovalGiven(command.id, "ada"))
        else:
            self.hear(run_id, arrivals.ApprovalRefused(command.id, "ada"))

    def fire(self, run_id: str, command: commands.SetTimer, what: int, much: int) -> None:
        """A moment comes: to try again, or that a person was silent or the time is up."""
        self._at_ms = max(self._at_ms, command.due_at_ms)
        self.hear(run_id, arrivals.TimerFired(command.id))

    def raise_child(self, run_id: str, command: StartChild, what: int, much: int) -> None:
        """A child begins, or is never heard of; later its end is reported once, twice or not at all."""
        child = self.states.get(command.run_id)
        if much % 64 == 0:
            self.hear(run_id, arrivals.ChildLost(command.id))
        elif child is None:
            graph = chat_graph(tool_rounds_max=3)
            self._begin(child_manifest(pinned(self.states[run_id]), command, graph))
        elif child.end.ending is not None:
            ended = arrivals.ChildEnded(command.id, child.end.ending, "done", spent_by(child), 40)
            for _ in range(1 + what % 2):
                self.hear(run_id, ended)
        elif waiting_for(child) is not None:
            self.hear(run_id, arrivals.ChildSuspended(command.id, waiting_for(child) or Ending.REVIEW_REQUIRED))

    def cancel(self, run_id: str, command: commands.CancelCommand, what: int, much: int) -> None:
        """A child hears that it is to end, unless the word is lost."""
        if command.run_id in self.states and much % 3:
            self.hear(command.run_id, arrivals.CancelRequested("parent"))


HAPPENS: Mapping[type[Command], Callable[..., Any]] = {
    CallModel: Tree.ask_model,
    commands.CallTool: Tree.call_tool,
    commands.AskHuman: Tree.ask_person,
    commands.SetTimer: Tree.fire,
    StartChild: Tree.raise_child,
    commands.CancelCommand: Tree.cancel,
}


def _call(kind: int, much: int) -> ProposedCall:
    digest = bytes([kind % 256, much])
    return ProposedCall(f"call{kind}", DELEGATING[(kind + much) % len(DELEGATING)], "{}", digest)


def _add(sums: list[int], charges: tuple[tuple[int, int], ...]) -> None:
    for dimension, amount in charges:
        sums[dimension] += amount


# A hundred runs and their laws take a tenth of a second; so many trees reach every edge.
EXAMPLES = 40


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(shapes, st.binary(min_size=800, max_size=4_000))
def test_no_tree_ever_overshoots_its_root_in_any_dimension(shape: Shape, tape: bytes) -> None:
    tree = Tree(root_of(shape))
    for place in range(0, len(tape) - MOVE_BYTES + 1, MOVE_BYTES):
        low, high, what, much = tape[place : place + MOVE_BYTES]
        tree.move(low + 256 * high, what, much)
    tree.expect_within_the_root()
