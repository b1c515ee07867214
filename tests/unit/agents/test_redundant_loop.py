"""RedundantLoop: one question asked several times, who wins the vote, and what a replica that fails, waits or differs does."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from remit import Budget, RedundantLoop, System
from remit.agents.redundant_loop import RUN_NO_VOTE, RedundantConfig, RedundantResult
from remit.agents.workplace import LOOP_RUNNING
from remit.assemble import opened_system, settings_of, system_in_memory
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.failure_families import FailureCategory
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.rulings import VoteCounted
from remit.core.journal.storage import Stretch
from remit.core.run.contract import ConfidenceSource
from remit.core.run.correlation import InferenceEndEvent
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Message, system_message
from remit.core.run.request_checks import REQUEST_HINT_INVALID
from remit.core.run.signals import Signal
from remit.core.run.usage import TokenUsage
from remit.inference.engine import EngineFault, StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.inference.scripted.script import FREE
from remit.observe.views.event_log import Action, InMemoryEventLog
from remit.observe.views.execution import execution_context
from remit.orchestrate.loop.needs import RUN_PARTS_MISSING
from remit.orchestrate.patterns.ballots import VOTING_INVALID
from remit.orchestrate.patterns.graph_choice import CHILD_RUNS_TOO_FEW
from remit.orchestrate.patterns.redundant_graph import REPLICAS_INVALID
from remit.orchestrate.patterns.voters import VOTING_UNKNOWN, WeightedVoting
from tests.unit.orchestrate.house import request as asked_for
from tests.unit.orchestrate.house import scripted, signal, unaudited, until
from tests.unit.orchestrate.stage import play


@dataclass
class Mood:
    sentiment: Literal["positive", "negative", "neutral"]


GOOD, BAD, SO_SO = (f'{{"sentiment":"{word}"}}' for word in ("positive", "negative", "neutral"))
# The same as GOOD to everybody who compares values.
SPACED = '{ "sentiment" : "positive" }'
BROKEN = EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, "out of order")
AWAY = EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "not loaded")
# Never answered by anybody who is not cancelled.
SILENT = "silent"


class Panel:
    """An engine whose calls are answered in turn, and which knows how many of them were open at once."""

    def __init__(self, *answers: str | EngineFault, calls_at_once: int = 1, usages: Sequence[TokenUsage] = ()) -> None:
        self.answers, self.calls_at_once, self.usages = answers, calls_at_once, usages
        self.asked: list[ModelRequest] = []
        self.open = self.open_most = 0
        self._all_open = asyncio.Event()

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The next answer."""
        place = len(self.asked)
        self.asked.append(request)
        self.open += 1
        self.open_most = max(self.open_most, self.open)
        try:
            if self.calls_at_once > 1:
                await self._together()
            return await self._answered(place)
        finally:
            self.open -= 1

    async def _together(self) -> None:
        """Wait until as many are asked as there are answers: a loop that asks one after the other never gets any."""
        if self.open == len(self.answers):
            self._all_open.set()
        await self._all_open.wait()

    async def _answered(self, place: int) -> ModelResult:
        answer = self.answers[min(place, len(self.answers) - 1)]
        if isinstance(answer, EngineFault):
            raise answer
        if answer == SILENT:
            await asyncio.Event().wait()
        usage = self.usages[place] if self.usages else TokenUsage(10, 0, 5, 15, 4096, 100)
        return ModelResult(answer, usage=usage, model="panel")

    def model_info(self) -> ModelInfo:
        """Who it is."""
        return ModelInfo("panel", context_window=4096, price=FREE, calls_at_once=self.calls_at_once)


def vote(panel: Panel, system: System | None = None, **terms: Any) -> RedundantResult:
    settings = {"budget": Budget(retries=0), "schema": Mood, **terms}
    return RedundantLoop(panel, system=system or system_in_memory(), **settings).call_sync("I love it")


def error_of(result: RedundantResult) -> tuple[str, str]:
    assert result.response.error is not None
    return result.response.error.code, result.response.error.message


@pytest.mark.req("2.21")
def test_three_are_asked_one_after_the_other_unless_the_user_says_otherwise() -> None:
    panel = Panel(GOOD)
    result = vote(panel)
    assert (len(panel.asked), panel.open_most) == (3, 1)
    assert (result.content, result.confidence, result.failed) == (GOOD, 1.0, 0)


@pytest.mark.req("2.21")
def test_a_loop_has_the_settings_of_the_handbook_with_their_defaults() -> None:
    loop = RedundantLoop(Panel(GOOD), schema=Mood, system=system_in_memory())
    assert list(RedundantConfig.__slots__) == [
        "engine",
        "system_prompt",
        "schema",
        "grammar",
        "n",
        "voting",
        "max_tokens",
        "observer",
    ]
    assert (loop.config.n, loop.config.voting, loop.config.max_tokens) == (3, "majority", 2048)


@pytest.mark.req("0.8", "0.14", "2.23", "2.28")
def test_the_majority_wins_and_the_response_says_how_surely_and_why() -> None:
    result = vote(Panel(GOOD, BAD, SPACED))
    assert (result.content, result.candidates) == (GOOD, (GOOD, BAD, SPACED))
    assert result.confidence == pytest.approx(2 / 3, abs=1e-6)
    response = result.response
    assert (response.content, response.structured_output) == (GOOD, {"sentiment": "positive"})
    assert (response.confidence, response.confidence_source) == (result.confidence, ConfidenceSource.VOTING)
    assert response.token_usage == result.usage


@pytest.mark.req("2.23")
def test_a_tie_goes_to_the_answer_that_was_seen_first() -> None:
    result = vote(Panel(BAD, GOOD, BAD, GOOD, SO_SO), n=5)
    assert (result.content, result.confidence) == (BAD, 0.4)


@pytest.mark.req("2.26")
def test_usage_is_summed_the_window_is_the_largest_and_the_rate_is_averaged() -> None:
    usages = (
        TokenUsage(10, 1, 4, 15, 2048, 100),
        TokenUsage(20, 0, 10, 30, 4096, 100),
        TokenUsage(30, 2, 8, 40, 1024, 300),
    )
    usage = vote(Panel(GOOD, usages=usages)).usage
    assert (usage.prompt_tokens, usage.reasoning_tokens, usage.output_tokens) == (60, 3, 22)
    assert (usage.context_window, usage.context_tokens, usage.total_tokens) == (4096, 40, 85)
    # 50, 100 and 33.3 tokens a second, each weighted by its time.
    assert usage.tokens_per_second == 50.0


@pytest.mark.req("2.27")
def test_a_replica_that_fails_has_no_vote_and_fails_nobody() -> None:
    result = vote(Panel(BROKEN, GOOD, GOOD))
    assert (result.content, result.confidence, result.candidates, result.failed) == (GOOD, 1.0, (GOOD, GOOD), 1)
    assert result.response.terminal_code is Ending.SUCCESS


@pytest.mark.req("2.21", "2.27")
def test_a_replica_mends_its_own_answer_and_one_that_cannot_is_left_out() -> None:
    nonsense = '{"sentiment":"ecstatic"}'
    mended = Panel("Sure! {'sentiment': 'Positive',}", nonsense, GOOD)
    result = vote(mended)
    # Voting takes the place of asking again.
    assert (len(mended.asked), result.candidates, result.failed) == (3, (GOOD, GOOD), 1)
    hopeless = Panel("no idea")
    result = vote(hopeless)
    assert (result.response.terminal_code, len(hopeless.asked)) == (Ending.VALIDATION_FAIL, 3)


@pytest.mark.req("2.27")
def test_a_replica_that_is_slow_is_cut_off_and_left_out() -> None:
    result = vote(Panel(GOOD, SILENT, BAD, BAD), n=4, replica_timeout_ms=200)
    assert (result.content, result.candidates, result.failed) == (BAD, (GOOD, BAD, BAD), 1)


@pytest.mark.req("2.27", "2.30")
@pytest.mark.parametrize(("last", "code"), [(BROKEN, BROKEN.code), (AWAY, AWAY.code)])
def test_when_all_replicas_fail_the_last_inference_error_is_the_error(last: EngineFault, code: str) -> None:
    other = AWAY if last is BROKEN else BROKEN
    result = vote(Panel(other, other, last))
    assert (error_of(result)[0], result.candidates, result.failed, result.confidence) == (code, (), 3, 0.0)
    assert result.response.error is not None
    assert result.response.error.category is FailureCategory.INFERENCE


@pytest.mark.req("2.30")
def test_when_no_replica_can_mend_its_answer_the_run_fails_for_its_shape() -> None:
    result = vote(Panel('{"sentiment":"ecstatic"}'))
    assert (error_of(result)[0], result.failed) == (ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED, 3)
    assert result.response.error is not None
    assert result.response.error.category is FailureCategory.CONSTRAINT


def test_when_all_replicas_are_slow_the_run_fails_for_its_model() -> None:
    result = vote(Panel(SILENT), replica_timeout_ms=50)
    assert error_of(result)[0] == ErrorCode.INFERENCE_ENGINE_ERROR


@pytest.mark.req("0.23")
def test_fewer_than_half_of_the_replicas_are_no_consensus() -> None:
    result = vote(Panel(GOOD, BROKEN, BROKEN))
    code, message = error_of(result)
    assert code == ErrorCode.ORCHESTRATION_NO_CONSENSUS
    assert message == "only 1 of 3 replicas answered, and it takes more than half"
    assert (result.candidates, result.response.confidence) == ((GOOD,), None)
    assert error_of(vote(Panel(GOOD, BROKEN, GOOD, BROKEN), n=4))[0] == ErrorCode.ORCHESTRATION_NO_CONSENSUS


@pytest.mark.req("2.24")
def test_unanimity_is_sure_or_names_who_differs() -> None:
    agreed = vote(Panel(GOOD, SPACED, GOOD), voting="unanimity")
    assert (agreed.content, agreed.confidence) == (GOOD, 1.0)
    split = vote(Panel(GOOD, GOOD, BAD), voting="unanimity")
    assert error_of(split) == (
        ErrorCode.ORCHESTRATION_NO_CONSENSUS,
        "unanimity voting: candidate 2 differs from candidate 0",
    )
    assert split.candidates == (GOOD, GOOD, BAD)


class LastWord:
    """A strategy of the caller's own."""

    def vote(self, candidates: Sequence[str]) -> tuple[str, float]:
        """The candidate that spoke last."""
        return candidates[-1], 0.25


def first_word(candidates: Sequence[str]) -> tuple[str, float]:
    return candidates[0], 0.75


@pytest.mark.req("2.25")
def test_a_strategy_of_the_callers_own_counts_as_an_object_or_as_a_function() -> None:
    last = vote(Panel(GOOD, GOOD, BAD), voting=LastWord())
    assert (last.content, last.confidence) == (BAD, 0.25)
    first = vote(Panel(SO_SO, GOOD, GOOD), voting=first_word)
    assert (first.content, first.confidence) == (SO_SO, 0.75)


@pytest.mark.req("2.25")
def test_similarity_takes_the_answer_in_the_middle() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    answers = ('{"city":"Oslo, Norway"}', '{"city":"Oslo in Norway"}', '{"city":"Lima"}')
    result = vote(Panel(*answers), voting="similarity", schema=schema)
    assert result.content in answers[:2]
    assert 0.0 < result.confidence < 1.0


@pytest.mark.req("2.25")
def test_weights_count_by_the_place_of_the_replica_also_where_one_failed() -> None:
    weighted = WeightedVoting(weights=(1, 1, 5))
    assert vote(Panel(GOOD, GOOD, BAD), voting=weighted).content == BAD
    result = vote(Panel(BROKEN, GOOD, BAD), voting=weighted)
    assert (result.content, result.failed) == (BAD, 1)
    assert result.confidence == pytest.approx(5 / 6, abs=1e-6)


@pytest.mark.parametrize(
    ("voting", "reason"),
    [
        (lambda candidates: ("made up", 1.0), "none of the candidates"),
        (lambda candidates: (candidates[0], 7.0), "which is not from 0 to 1"),
        (lambda candidates: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_strategy_that_breaks_or_makes_something_up_leaves_no_consensus(voting: Any, reason: str) -> None:
    code, message = error_of(vote(Panel(GOOD), voting=voting))
    assert code == ErrorCode.ORCHESTRATION_NO_CONSENSUS
    assert reason in message


def test_an_early_stop_asks_no_more_than_the_vote_needs() -> None:
    settled = Panel(GOOD)
    result = vote(settled, n=5, early_stop=True)
    assert (len(settled.asked), result.content, len(result.candidates)) == (3, GOOD, 3)
    open_to_the_end = Panel(GOOD, BAD, GOOD, BAD, GOOD)
    assert vote(open_to_the_end, n=5, early_stop=True).content == GOOD
    assert len(open_to_the_end.asked) == 5
    split = Panel(GOOD, BAD, GOOD)
    assert error_of(vote(split, voting="unanimity", early_stop=True))[0] == ErrorCode.ORCHESTRATION_NO_CONSENSUS
    # A strategy that cannot say that the vote is settled hears every replica.
    custom = Panel(GOOD)
    vote(custom, voting=LastWord(), early_stop=True)
    assert len(custom.asked) == 3


def test_a_vote_without_a_winner_so_far_goes_on_until_it_has_one() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "sure": {"type": "number"}}}
    panel = Panel('{"city":"Oslo","sure":0}', '{"city":"Rome","sure":0}', '{"city":"Lima","sure":1}')
    result = vote(panel, schema=schema, voting=WeightedVoting(field="sure"), early_stop=True)
    assert (len(panel.asked), result.response.structured_output) == (3, {"city": "Lima", "sure": 1})


def test_replicas_are_asked_at_once_where_the_model_can_be() -> None:
    # No replica is answered before all four are asked.
    panel = Panel(GOOD, BAD, GOOD, GOOD, calls_at_once=4)
    result = vote(panel, n=4, parallel=True)
    assert (panel.open_most, len(panel.asked), result.content) == (4, 4, GOOD)
    assert sorted(result.candidates) == sorted((GOOD, BAD, GOOD, GOOD))


def test_replicas_are_asked_one_after_the_other_where_the_model_takes_one_call() -> None:
    panel = Panel(GOOD)
    assert vote(panel, n=4, parallel=True).content == GOOD
    assert (panel.open_most, len(panel.asked)) == (1, 4)


def test_a_replica_that_fails_beside_others_does_not_fail_them() -> None:
    panel = Panel(GOOD, BROKEN, GOOD, calls_at_once=3)
    result = vote(panel, parallel=True)
    assert (result.content, result.failed) == (GOOD, 1)
    hopeless = Panel(BROKEN, AWAY, BROKEN, calls_at_once=3)
    assert error_of(vote(hopeless, parallel=True))[0] in (BROKEN.code, AWAY.code)


def test_a_replay_without_a_model_comes_to_the_same_winner() -> None:
    async def story() -> None:
        system = system_in_memory()
        loop = RedundantLoop(Panel(GOOD, BAD, BAD), schema=Mood, system=system)
        result = await loop.call("I love it")
        run_id = result.response.run_id
        assert (await system.archive.replay(run_id)).verdict == "same"
        turns = [turn async for turn in system.watch(run_id)]
        (counted,) = [d for turn in turns for d in turn.decisions if isinstance(d, VoteCounted)]
        assert (counted.votes, counted.confidence_ppm) == (2, 666_667)
        candidates = execution_context(await system.state_of(run_id)).candidates
        assert [candidate.content for candidate in candidates] == [GOOD, BAD, BAD]

    play(story())


def test_evidence_is_found_once_and_shown_to_every_replica() -> None:
    asked: list[str] = []

    class Shelf:
        async def build(self, query: str) -> list[Message]:
            asked.append(query)
            return [system_message("people who love things are positive")]

    panel = Panel(GOOD)
    vote(panel, context_provider=Shelf(), system_prompt="Judge moods.")
    assert asked == ["I love it"]
    for request in panel.asked:
        said = [message.content for message in request.messages]
        assert said[:3] == ["Judge moods.", "people who love things are positive", "I love it"]


@pytest.mark.req("2.5")
def test_an_observer_hears_of_every_replica() -> None:
    observer = InMemoryEventLog()
    vote(Panel(GOOD), observer=observer)
    told = [event.what for event in observer.events() if event.action is Action.INFER]
    assert len([what for what in told if isinstance(what, InferenceEndEvent)]) == 3


def test_replicas_share_the_budget_of_their_run() -> None:
    panel = Panel(GOOD)
    result = vote(panel, n=5, max_tokens=1_000, budget=Budget(output_tokens=3_000))
    # Each may have an equal share of what those before it left, and no more than it asks for.
    assert [request.max_tokens for request in panel.asked] == [600, 748, 996, 1_000, 1_000]
    assert result.usage.output_tokens == 25


def test_a_caller_that_stops_waiting_cancels_the_run_and_its_replicas() -> None:
    async def story() -> None:
        system, panel = system_in_memory(), Panel(SILENT)
        task = asyncio.create_task(RedundantLoop(panel, schema=Mood, system=system).call("I love it"))

        async def is_asked() -> bool:
            return bool(panel.asked)

        async def is_left() -> bool:
            return not panel.open

        await until(is_asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(is_left)
        await system.settle()
        runs = await system.store.catalogue.entries()
        assert [run.ending for run in runs] == [Ending.USER_CANCEL] * 2

    play(story())


def test_a_cancel_ends_the_vote() -> None:
    async def story() -> None:
        system, panel = system_in_memory(), Panel(GOOD, SILENT)
        task = asyncio.create_task(RedundantLoop(panel, schema=Mood, system=system).call("I love it"))

        async def is_second() -> bool:
            return len(panel.asked) == 2

        await until(is_second)
        run_id = min((run.run_id for run in await system.archive.runs()), key=len)
        await system.signal(signal(Signal.CANCEL, run_id))
        result = await task
        assert (result.response.terminal_code, result.candidates) == (Ending.USER_CANCEL, (GOOD,))

    play(story())


def test_a_call_that_was_left_is_resumed_with_its_own_strategy_and_asks_nobody_twice(tmp_path: Path) -> None:
    async def story() -> None:
        first = Panel(GOOD, SILENT)
        async with opened_system(settings_of(home=tmp_path)) as system:
            loop = RedundantLoop(first, schema=Mood, voting=LastWord(), system=system)
            task = asyncio.create_task(loop.call("I love it"))

            async def is_second() -> bool:
                return len(first.asked) == 2

            await until(is_second)
            run_id = min((run.run_id for run in await system.archive.runs()), key=len)
        # A caller that closes a system leaves its runs as they stand.
        await asyncio.gather(task, return_exceptions=True)
        second = Panel(BAD)
        result = await RedundantLoop(second, schema=Mood, voting=LastWord(), home=tmp_path).resume(run_id)
        assert (result.candidates, result.content, result.confidence) == ((GOOD, BAD, BAD), BAD, 0.25)
        assert len(second.asked) == 2

    play(story())


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"n": -1}, REPLICAS_INVALID),
        ({"n": 101}, REPLICAS_INVALID),
        ({"n": 2.5}, REPLICAS_INVALID),
        ({"n": True}, REPLICAS_INVALID),
        ({"n": "3"}, REPLICAS_INVALID),
        ({"replica_timeout_ms": -1}, REPLICAS_INVALID),
        ({"replica_timeout_ms": 3_600_001}, REPLICAS_INVALID),
        ({"replica_timeout_ms": 0.5}, REPLICAS_INVALID),
        ({"early_stop": True, "parallel": True}, REPLICAS_INVALID),
        ({"voting": "loudest"}, VOTING_UNKNOWN),
        ({"voting": LastWord}, VOTING_INVALID),
        ({"voting": 7}, VOTING_INVALID),
        ({"voting": WeightedVoting(weights=(1, 2))}, VOTING_INVALID),
        ({"max_tokens": 0}, REQUEST_HINT_INVALID),
        ({"schema": True}, "SCHEMA_SOURCE_INVALID"),
    ],
)
def test_what_no_vote_could_be_taken_with_is_refused_when_the_loop_is_made(terms: dict[str, Any], code: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        RedundantLoop(Panel(GOOD), system=system_in_memory(), **{"schema": Mood, **terms})
    assert refused.value.code == code


def test_more_replicas_than_the_budget_has_child_runs_are_refused_with_the_way_out() -> None:
    with pytest.raises(RequestRejected) as refused:
        vote(Panel(GOOD), n=33)
    assert refused.value.code == CHILD_RUNS_TOO_FEW
    assert "Boundary(budget=Budget(child_runs=33))" in refused.value.message
    wide = vote(Panel(GOOD), n=20)
    assert (len(wide.candidates), wide.confidence) == (20, 1.0)


def test_a_vote_is_not_taken_in_sync_where_a_loop_runs() -> None:
    async def story() -> None:
        with pytest.raises(RequestRejected) as refused:
            vote(Panel(GOOD))
        assert refused.value.code == LOOP_RUNNING

    play(story())


def test_a_replica_that_fails_leaves_its_failure_in_its_own_journal() -> None:
    async def story() -> None:
        system = system_in_memory()
        loop = RedundantLoop(Panel(BROKEN, GOOD), schema=Mood, system=system, budget=Budget(retries=0))
        await loop.call("I love it")
        children = [run.run_id for run in await system.store.catalogue.entries() if run.listing.parent_id]
        assert len(children) == 3
        failures = [
            turn.arrival.code
            for run_id in children
            async for turn in system.watch(run_id)
            if isinstance(turn.arrival, ModelFailed)
        ]
        assert failures == [BROKEN.code]

    play(story())


@pytest.mark.parametrize(
    ("other", "missing"),
    [
        ({"voting": "majority"}, ["code 'vote:custom'"]),
        ({"engine": ScriptedEngine([{"text": GOOD}]), "voting": LastWord()}, ["model 'panel'"]),
    ],
)
def test_a_call_is_not_resumed_without_its_voter_or_its_model_and_stays_open(
    other: dict[str, Any], missing: list[str], tmp_path: Path
) -> None:
    async def story() -> None:
        first = Panel(GOOD, SILENT)
        async with opened_system(settings_of(home=tmp_path)) as system:
            loop = RedundantLoop(first, schema=Mood, voting=LastWord(), system=system)
            task = asyncio.create_task(loop.call("I love it"))

            async def is_second() -> bool:
                return len(first.asked) == 2

            await until(is_second)
            run_id = min((run.run_id for run in await system.archive.runs()), key=len)
        await asyncio.gather(task, return_exceptions=True)
        with pytest.raises(RequestRejected) as refused:
            await RedundantLoop(**{"engine": Panel(GOOD), "schema": Mood, "home": tmp_path, **other}).resume(run_id)
        assert refused.value.code == RUN_PARTS_MISSING
        assert refused.value.details["missing"] == missing
        result = await RedundantLoop(Panel(BAD), schema=Mood, voting=LastWord(), home=tmp_path).resume(run_id)
        assert (result.content, result.failed) == (BAD, 0)

    play(story())


def test_a_run_that_is_no_vote_is_not_resumed_as_one() -> None:
    async def story() -> None:
        system = system_in_memory()
        chat = await system.run(asked_for(), scripted({"text": "hello"}))
        with pytest.raises(RequestRejected) as refused:
            await RedundantLoop(Panel(GOOD), schema=Mood, system=system).resume(chat.run_id)
        assert refused.value.code == RUN_NO_VOTE
        assert "resume it with what began it" in refused.value.message

    play(story())


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"schema": None}, ErrorCode.CONFIG_SCHEMA_REQUIRED),
        ({"early_stop": []}, REPLICAS_INVALID),
        ({"parallel": 1}, REPLICAS_INVALID),
    ],
)
def test_a_vote_of_another_kind_is_refused_when_the_loop_is_made(terms: dict[str, Any], code: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        RedundantLoop(Panel(GOOD), **{"schema": Mood, **terms})
    assert refused.value.code == code


def test_a_fork_of_a_vote_tells_what_the_replicas_of_its_origin_said() -> None:
    async def story() -> None:
        system, engine = system_in_memory(), ScriptedEngine([{"text": GOOD}] * 3)
        async with RedundantLoop(engine, schema=Mood, n=3, system=system) as loop:
            first = await loop.call("I love it")
            kit, _ = loop._kit_for(system)
            heard = await system.fork(first.response.run_id, by="dan", kit=kit)
            again = await loop.resume(heard.fork_id)
            assert (again.raw_candidates, again.confidence) == (first.raw_candidates, first.confidence)
            assert again.raw_candidates == (GOOD, GOOD, GOOD)

    asyncio.run(story())


def test_a_vote_reads_no_journal_of_a_run_that_has_just_ended_here_from_its_beginning() -> None:
    store, whole = MemoryStore(), list[str]()
    read = store.journal.read

    async def noted(run_id: str, *, after: int = -1) -> Stretch:
        turns = await read(run_id, after=after)
        if after < 0 and turns:
            whole.append(run_id)
        return turns

    async def story() -> None:
        store.journal.read = noted  # type: ignore[method-assign]
        async with unaudited(store) as (system,):
            result = await RedundantLoop(Panel(GOOD), schema=Mood, system=system).call("I love it")
            assert (result.candidates, result.raw_candidates) == ((GOOD,) * 3, (GOOD,) * 3)

    play(story())
    assert whole == []
