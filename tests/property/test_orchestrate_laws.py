"""Laws of the hands: whatever is reported can be written, folded and judged again, in any order of events."""

from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import ErrorCode, IllegalArrival
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival, Happened
from remit.core.journal.codec import decode_turn, encode_turn, hash_turn
from remit.core.journal.commands import AskHuman, CallModel, CallTool, Command, SetTimer
from remit.core.journal.storage import Barrier, Place, RunListing, Stretch, Warrant
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import TEXT_INLINE_BYTES_MAX, JsonObject
from remit.core.run.contract import OutputContract, SystemRequest
from remit.core.run.inference import ModelResult
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.orchestrate.exchange.conversation import Conversation
from remit.orchestrate.executors import reports
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facts.facts import Facts
from remit.orchestrate.facts.texts import Kept
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner
from remit.testing.runs import SimulatedRun, fold_journal
from remit.testing.scripts import in_turn, proposes_all, says
from remit.testing.world import SimulatedWorld, Yield
from tests.depth import examples
from tests.simulation.laws.every_law import LAWS
from tests.simulation.scenarios import PLAYED_SEEDS, TOOLS, played_world, tools
from tests.unit.kernel.builders import Run, manifest_of, wants

# Half surrogate pairs, zeros and terminal codes included; sometimes too long to stand in a turn.
characters = st.characters(exclude_categories=())
texts = st.one_of(
    st.text(characters, max_size=40),
    st.text(characters, min_size=1, max_size=3).map(lambda text: text * TEXT_INLINE_BYTES_MAX),
)
names = st.one_of(texts, st.sampled_from([tool.name for tool in TOOLS]))
# What a parser of model output may hand over: beyond 64 bits, not finite, of no JSON type, or nested.
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.binary(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
arguments = st.one_of(
    st.dictionaries(st.one_of(texts, st.sampled_from(["n", "note"])), values, max_size=4),
    st.fixed_dictionaries({"n": st.integers(-5, 5)}),
    values,
)
figures = st.one_of(st.integers(0, 10_000), st.integers(), st.sampled_from([2**63, 2**64, -1, 10**30]))
usages = st.builds(TokenUsage, figures, figures, figures, figures, figures, figures)
calls = st.builds(ToolCall, names, names, arguments)
results = st.builds(ModelResult, texts, texts, st.lists(calls, max_size=3).map(tuple), usages)

SCHEMAS: tuple[JsonObject | None, ...] = (None, {"type": "object"}, {"type": "no such type"})


def open_run(schema: JsonObject | None) -> Run:
    return Run(manifest_of(request=SystemRequest((user_message("please"),), output=OutputContract(schema))))


def answered(facts: Facts, run: Run, result: ModelResult, kept: Kept) -> Arrival:
    return facts.complete(run.state, reports.ModelSaid(run.open(CallModel)[0].id, result), kept)


@given(results, st.sampled_from(SCHEMAS))
def test_whatever_a_model_answers_can_be_written_judged_and_folded(
    result: ModelResult, schema: JsonObject | None
) -> None:
    run = open_run(schema)
    turn = run.take(answered(Facts(), run, result, []))
    assert decode_turn(run.journal[-1]) == turn
    assert fold_journal(run.journal) == run.state


@given(results, st.sampled_from(SCHEMAS))
@pytest.mark.req("1.20")
def test_the_facts_of_an_answer_are_the_same_in_every_process(result: ModelResult, schema: JsonObject | None) -> None:
    run = open_run(schema)
    first, second = list[tuple[bytes, bytes]](), list[tuple[bytes, bytes]]()
    seen = Facts()
    seen.complete(run.state, reports.PersonSaid("ada", "something else first"), [])
    assert answered(seen, run, result, first) == answered(Facts(), run, result, second)
    assert first == second


@given(results)
def test_the_bound_of_an_answer_is_never_below_the_bytes_a_model_would_be_shown(result: ModelResult) -> None:
    run, kept = open_run(None), list[tuple[bytes, bytes]]()
    arrival = answered(Facts(), run, result, kept)
    if not isinstance(arrival, arrivals.ModelAnswered):
        return
    texts = dict(kept)

    def size(text: Any) -> int:
        return len(text.encode()) if isinstance(text, str) else len(texts[text.digest])

    shown = size(arrival.text) + size(arrival.reasoning)
    shown += sum(size(call.tool) + size(call.call_id) + size(call.arguments) for call in arrival.calls)
    assert arrival.tokens_bound >= shown


def reports_about(command_id: str) -> st.SearchStrategy[Report]:
    """Anything an executor or a person could say, about one command or about the run."""
    about = st.just(command_id)
    happened = st.sampled_from(Happened)
    content = st.one_of(texts, st.just('{"ok": true}'))
    said = st.builds(ToolResult, names, names, content, st.one_of(st.just(""), texts), stop_loop=st.booleans())
    return st.one_of(
        st.builds(reports.ToolSaid, about, said, texts, figures),
        st.builds(reports.ToolBroke, about, st.sampled_from(ErrorCode), texts, figures),
        st.builds(reports.ToolAccounted, about, happened, texts),
        st.builds(reports.ContextSaid, about, texts),
        st.builds(reports.PersonApproved, about, texts, st.one_of(st.none(), arguments)),
        st.builds(reports.PersonSaid, texts, texts, st.one_of(st.just(""), about)),
        st.builds(arrivals.ModelFailed, about, st.sampled_from(ErrorCode), texts, usages, st.booleans()),
        st.builds(arrivals.CodeReturned, about, texts, st.lists(texts, max_size=3).map(tuple)),
        st.builds(arrivals.CodeFailed, about, texts),
        st.builds(arrivals.ContextFailed, about, texts),
        st.builds(arrivals.ApprovalRefused, about, texts, texts),
        st.builds(arrivals.OutcomeJudged, about, texts, happened),
        st.builds(arrivals.CancelRequested, texts, texts),
        st.builds(arrivals.PauseRequested, texts),
        st.builds(arrivals.RetryRequested, texts),
    )


@given(st.data())
def test_whatever_is_reported_can_be_written_and_is_judged_or_changes_nothing(data: st.DataObject) -> None:
    run = Run()
    run.proposes(wants("look"), wants("write", 2))
    command_id = data.draw(st.sampled_from([*run.state.commands.open, "0.0", "9.9", "\ud800"]))
    report = data.draw(reports_about(command_id))
    before = fold_journal(run.journal)
    try:
        arrival = Facts().complete(run.state, report, [])
        turn = take_turn(run.state, arrival, run.now_ms)
    except IllegalArrival:
        assert run.state == before
        return
    written = encode_turn(turn)
    assert decode_turn(written) == turn
    apply(run.state, turn, hash_turn(written))
    assert run.state == fold_journal([*run.journal, written])


@given(st.integers(0, PLAYED_SEEDS - 1), st.randoms(use_true_random=False))
@settings(max_examples=50)
@pytest.mark.slow
def test_a_conversation_that_followed_its_run_equals_one_rendered_at_once(seed: int, chance: Random) -> None:
    world = played_world(seed)
    for run_id in world.run_ids():
        state, followed = RunState(), Conversation()
        for written in world.run(run_id).journal:
            apply(state, decode_turn(written), hash_turn(written))
            if chance.random() < 0.5:
                followed.catch_up(state)
        assert followed.catch_up(state) == Conversation().catch_up(state)


class SharedJournal:
    """A journal that several processes write to; each may be overtaken before and after every call."""

    def __init__(self) -> None:
        self.kept = MemoryJournal()

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        await Yield()
        place = await self.kept.append(run_id, data, after, barrier, listing, warrant, orders)
        await Yield()
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        await Yield()
        return await self.kept.read(run_id, after=after)


class Process:
    """A runner of its own on the shared journal, which says things about a run as it knows it."""

    def __init__(self, journal: SharedJournal, chance: Random) -> None:
        self.sent: list[Command] = []
        self.live: Live | None = None
        self._chance = chance
        self.runner = Runner(journal=journal, blobs=MemoryBlobs(), clock=self, dispatch=self)

    def now_ms(self) -> int:
        return self._chance.randrange(900_000, 1_100_000)

    def send(self, live: Live, command: Command) -> None:
        self.sent.append(command)

    async def revoke(self, run_id: str, command_id: str) -> bool:
        """It is not known what has begun."""
        return False

    def carries(self, command: Command) -> bool:
        """Nothing: no other process performs what is sent here."""
        return False

    async def receive(self, live: Live) -> Report | None:
        return None

    def forget(self, live: Live) -> None:
        pass

    async def speak(self, times: int) -> None:
        """Load the run and report so many things about whatever is open in it."""
        self.live = await self.runner.load("run")
        for _ in range(times):
            await self.runner.advance(self.live, self._report(self.live.state))

    def _report(self, state: RunState) -> Report:
        chance, kinds = self._chance, [*state.commands.open.values()]
        command = chance.choice(kinds) if kinds else None
        if isinstance(command, CallModel):
            proposed = proposes_all(("look", {"n": chance.randrange(3)}), ("write", {"n": chance.randrange(3)}))
            return reports.ModelSaid(command.id, chance.choice((proposed, proposed, says("done"))))
        if isinstance(command, CallTool):
            result = ToolResult(command.call_id, command.tool, '{"ok": true}')
            return reports.ToolSaid(command.id, result)
        if isinstance(command, AskHuman):
            return reports.PersonApproved(command.id, "ada")
        if isinstance(command, SetTimer) and chance.random() < 0.2:
            return arrivals.TimerFired(command.id)
        if chance.random() < 0.3:
            return chance.choice((arrivals.PauseRequested("ada"), arrivals.ResumeRequested("ada")))
        return reports.PersonSaid("ada", "one more thing")


def interleave(running: list[Coroutine[Any, Any, None]], chance: Random) -> None:
    """Let the coroutines take steps in any order until all are done."""
    try:
        while running:
            coroutine = chance.choice(running)
            try:
                coroutine.send(None)
            except StopIteration:
                running.remove(coroutine)
    finally:
        for coroutine in running:
            coroutine.close()


@given(st.randoms(use_true_random=False), st.integers(2, 3), st.integers(1, 8))
@settings(max_examples=examples(150))
@pytest.mark.req("3.30")
def test_any_interleaving_of_runners_on_one_journal_gives_a_run_that_folds_and_a_chain_that_holds(
    chance: Random, processes: int, times: int
) -> None:
    journal = SharedJournal()
    first = Process(journal, chance)
    interleave([start(first)], chance)
    crowd = [Process(journal, chance) for _ in range(processes)]
    interleave([process.speak(times) for process in crowd], chance)
    interleave([process.runner.catch_up(process.live) for process in crowd if process.live is not None], chance)

    run = SimulatedRun("run", journal.kept._runs["run"])
    world = SimulatedWorld(model=in_turn(says("done")), tools=tools())
    assert [*LAWS["the_chain_holds"](world, run), *LAWS["deciding_again_gives_the_same"](world, run)] == []
    assert all(process.live is not None and process.live.state == run.state for process in crowd)
    sent = [command.id for process in (first, *crowd) for command in process.sent]
    assert len(sent) == len(set(sent)), "a command was performed by two processes"


async def start(process: Process) -> None:
    await process.runner.start(manifest_of())
