"""Who a planner asks, what failures and events name, and what a slow check and a search without finds come to."""

import asyncio
import json
from typing import Any

import pytest

import remit
from remit import (
    AgentLoop,
    ContextBuilder,
    Document,
    DocumentIndex,
    ExecutionPlan,
    InferHandler,
    InMemoryEventLog,
    Kit,
    ModelPlanner,
    ModelRequest,
    PlanExecutor,
    RedundantLoop,
    RequestRejected,
    RetrieveHandler,
    Step,
    SystemRequest,
    ValidateHandler,
    constrain,
    kit_of,
    system_in_memory,
    user_message,
)
from remit.core.failure import Ending
from remit.core.run.correlation import InferenceStartEvent
from remit.observe.linked_turns import states
from remit.observe.views.event_log import Telling
from tests.doors.desk import MOOD, Panel

PLAN = json.dumps({"rationale": "r", "steps": [{"name": "a", "type": "infer", "instruction": "think"}]})


def test_a_planner_whose_model_has_the_name_of_another_engine_of_the_run_is_refused() -> None:
    async def story() -> None:
        own, other = Panel("answer"), Panel(PLAN)
        async with remit.open(memory=True) as system:
            with pytest.raises(RequestRejected) as refused:
                await system.run("how wet?", Kit(kit_of(own).engines, planner=ModelPlanner(other)))
            assert refused.value.code == "PLAN_MODEL_TAKEN"
            same = Panel(PLAN, "answer")
            done = await system.run("how wet?", Kit(kit_of(same).engines, planner=ModelPlanner(same)))
        assert (own.asked, other.asked, done.content) == ([], [], "answer")

    asyncio.run(story())


class UnfitPlanner:
    """Makes a plan with a request that no step could follow."""

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """The plan."""
        return ExecutionPlan((Step("s", "infer", ModelRequest((user_message("x"),), max_tokens=-4)),))


def test_a_planner_whose_plan_cannot_run_ends_the_run_as_impossible() -> None:
    plans = PlanExecutor({"infer": InferHandler(Panel("x"))}, planner=UnfitPlanner(), system=system_in_memory())
    result = asyncio.run(plans.execute(prompt="x"))
    assert (result.terminal_code, result.error and result.error.code) == (
        Ending.IMPOSSIBLE,
        "ORCHESTRATION_PLAN_FAILED",
    )


def test_a_validate_step_that_is_too_slow_is_a_timeout_and_no_objection() -> None:
    async def slow(text: str) -> None:
        await asyncio.Event().wait()

    plans = PlanExecutor({"check": ValidateHandler(slow)}, system=system_in_memory())
    result = asyncio.run(plans.execute([Step("slow", "check", "text", timeout_ms=100)]))
    assert result.error is not None
    assert result.error.code == "TOOL_TIMEOUT"
    assert "timeout_ms=100" in result.error.message


def test_evidence_that_is_not_there_gives_no_confidence_and_says_so() -> None:
    async def story() -> None:
        index = DocumentIndex()
        index.add([Document("tea", "Green tea.")])
        found = ContextBuilder(index)
        async with AgentLoop(Panel("I guess"), context_provider=found, system=system_in_memory()) as agent:
            nothing = await agent.chat("zebra stripes")
            assert (nothing.confidence, nothing.confidence_source) == (0.0, "retrieval")
            assert ((await agent.chat("green tea")).confidence or 0.0) > 0
        handlers: dict[str, Any] = {"look": RetrieveHandler(found), "say": InferHandler(Panel("I guess"))}
        async with PlanExecutor(handlers, system=system_in_memory()) as plans:
            said = (await plans.execute([Step("a", "look", "zebra stripes"), Step("b", "say")])).response
        assert (said.confidence, said.confidence_source) == (0.0, "retrieval")

    asyncio.run(story())


class Told:
    """An engine that tells of itself in the wrong way."""

    def model_info(self) -> Any:
        """No ModelInfo."""
        return {"name": "m"}

    def infer(self, request: ModelRequest) -> Any:
        """Never asked."""
        raise AssertionError


@pytest.mark.parametrize("engine", [Panel, Told()])
def test_what_is_no_engine_is_refused_when_an_agent_is_made_of_it(engine: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        AgentLoop(engine, system=system_in_memory())
    assert refused.value.code == "CONFIG_NO_ENGINE"


def test_a_schema_in_place_of_a_demand_is_refused_with_what_to_make_of_it() -> None:
    schema: Any = {"type": "object"}
    with pytest.raises(RequestRejected, match=r"REQUEST_MALFORMED.*Demand\(schema\)"):
        constrain("x", schema)


def test_events_and_failures_of_a_vote_name_the_replica() -> None:
    async def story(*said: str) -> tuple[set[str], Any]:
        heard = InMemoryEventLog()
        async with RedundantLoop(Panel(*said), schema=MOOD, observer=heard, system=system_in_memory()) as loop:
            result = await loop.call("What is the mood?")
        causes = [(event.run_id, event.what.correlation.caused_by) for event in heard.events()]
        return {cause for run_id, cause in causes if run_id != result.response.run_id}, result.error

    causes, error = asyncio.run(story('{"mood": "good"}'))
    assert (causes, error) == ({"replica 1", "replica 2", "replica 3"}, None)
    causes, error = asyncio.run(story("no json"))
    assert (error.code, error.details) == ("CONSTRAINT_JSON_INVALID", {"replica": 3})


def test_the_models_of_a_chat_are_shown_the_words_of_a_plan_and_not_what_its_planner_wrote() -> None:
    async def story() -> None:
        heard, panel = InMemoryEventLog(), Panel(PLAN, "answer", PLAN, "again")
        index = DocumentIndex()
        index.add([Document("tea", "Green tea.")])
        for context in (None, ContextBuilder(index)):
            async with remit.open(memory=True) as system:
                kit = Kit(kit_of(panel).engines, planner=ModelPlanner(panel), context=context)
                done = await system.run("green tea?", kit)
                telling = Telling()
                for turn, state in states(await system.archive.history(done.run_id)):
                    for event in telling.events(state, turn):
                        heard.record(event)
        for asked in (panel.asked[1], panel.asked[3]):
            shown = [str(message.content) for message in asked.messages]
            assert shown[-2:] == ["green tea?", "A plan was made for this request. Follow it:\n1. a: think"]
        counted = [event.what.message_count for event in heard.events() if isinstance(event.what, InferenceStartEvent)]
        assert counted == [len(panel.asked[1].messages), len(panel.asked[3].messages)]

    asyncio.run(story())
