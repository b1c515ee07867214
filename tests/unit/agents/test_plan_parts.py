"""What a plan's steps are done with: loops as steps, in two ways, and what no step could be done with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from typing_extensions import override

from remit import (
    AgentLoop,
    Budget,
    InferHandler,
    PlanExecutor,
    RedundantLoop,
    SpecializedLoop,
    Step,
    ToolHandler,
    tool,
)
from remit.assemble import system_in_memory
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.limits.profiles import STANDARD
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Message
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import pinned
from remit.observe.views.event_log import InMemoryEventLog
from remit.orchestrate.loop.needs import missing_parts
from remit.orchestrate.patterns.handlers import PLAN_HANDLER_INVALID
from remit.orchestrate.patterns.planners import PLAN_MODEL_TAKEN
from remit.tool.registry import TOOL_NAME_TAKEN
from remit.validate.rule_set import NotEmpty, Rule, RuleSet
from tests.unit.orchestrate.house import calls, keep
from tests.unit.orchestrate.stage import play


@dataclass
class Trend:
    trend: Literal["up", "down"]


UP, DOWN = '{"trend":"up"}', '{"trend":"down"}'
RESEARCH = Step("research", "research", "Analyze market trends for Q4")
PLAN = [RESEARCH, Step("classify", "classify")]


@tool(effect="read")
def search(words: str) -> str:
    """Search the market."""
    return "prices rose by a tenth"


class Named:
    """A scripted model with a name of its own."""

    def __init__(self, name: str, *replies: JsonObject) -> None:
        self.name, self.engine = name, ScriptedEngine(replies)
        self.asked: list[ModelRequest] = []

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What the script says."""
        self.asked.append(request)
        return await self.engine.infer(request, on_chunk)

    def model_info(self) -> ModelInfo:
        """Who it is."""
        info = self.engine.model_info()
        return ModelInfo(self.name, info.context_window, info.price)


def researcher() -> AgentLoop:
    model = Named("researcher", calls("search", words="Q4"), {"text": "Prices rise."})
    return AgentLoop(model, tools=[search], system_prompt="You are a research assistant.", system=system_in_memory())


def classifier(*answers: str, **terms: Any) -> RedundantLoop:
    model = Named("classifier", *({"text": answer} for answer in answers or (UP,)))
    return RedundantLoop(model, schema=Trend, system=system_in_memory(), **terms)


def test_loops_are_wrapped_as_functions_that_run_them() -> None:
    async def research(step: Step) -> Step:
        response = await researcher().chat(step.input)
        return step.with_output(response.content)

    def classify(step: Step) -> str:
        return classifier().call_sync(step.input).content

    plans = PlanExecutor({"research": research, "classify": classify}, system=system_in_memory())
    result = plans.execute_sync(PLAN)
    assert result.outputs == {"research": "Prices rise.", "classify": UP}


def test_loops_are_steps_themselves_and_everything_they_do_belongs_to_the_plan() -> None:
    agent, reliable = researcher(), classifier()
    plans = PlanExecutor({"research": agent, "classify": reliable}, system=system_in_memory())
    result = plans.execute_sync(PLAN)
    assert result.outputs == {"research": "Prices rise.", "classify": {"trend": "up"}}
    assert [call.name for call in result.response.tool_calls_made] == ["search"]
    researching, classifying = agent.config.engine, reliable.config.engine
    assert isinstance(researching, Named)
    assert isinstance(classifying, Named)
    said = [message.content for message in researching.asked[0].messages]
    assert said == ["You are a research assistant.", "Analyze market trends for Q4"]
    assert [[message.content for message in asked.messages] for asked in classifying.asked] == [["Prices rise."]] * 3
    used = result.response.token_usage
    assert used.output_tokens > 3 * (len(UP) // 4)


def test_a_specialized_loop_is_a_step_with_its_two_phases() -> None:
    model = Named("reader", calls("search", words="Q4"), {"text": "found"}, {"text": UP})
    reader = SpecializedLoop(model, schema=Trend, tools=[search], system_prompt="Read.", system=system_in_memory())
    result = PlanExecutor({"read": reader}, system=system_in_memory()).execute_sync(
        [Step("read", "read", "Q4?", instruction="Be brief.")]
    )
    assert result.output == {"trend": "up"}
    assert [call.name for call in result.response.tool_calls_made] == ["search"]
    assert model.asked[0].messages[0].content == "Read.\n\nBe brief."


def test_a_plan_is_wrapped_as_a_function_that_executes_it() -> None:
    inner = PlanExecutor({"shout": lambda step: step.input.upper()}, system=system_in_memory())

    async def both(step: Step) -> Any:
        return (await inner.execute([Step("a", "shout"), Step("b", "shout")], prompt=step.input)).output

    result = PlanExecutor({"both": both}, system=system_in_memory()).execute_sync([Step("one", "both", "tea")])
    assert result.output == "TEA"


def test_a_redundant_step_asks_at_once_only_where_its_model_can_be() -> None:
    node = {
        calls_at_once: RedundantLoop(Waits(calls_at_once), schema=Trend, parallel=True).as_step().graph.nodes[1]
        for calls_at_once in (1, 3)
    }
    assert {calls_at_once: each.kind.value for calls_at_once, each in node.items()} == {1: "child", 3: "map"}


class Waits:
    """A model that takes so many calls at once."""

    def __init__(self, calls_at_once: int) -> None:
        self.calls_at_once = calls_at_once

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """Nothing that anybody waits for here."""
        return ModelResult(UP, model="waits")

    def model_info(self) -> ModelInfo:
        """Who it is."""
        return ModelInfo("waits", calls_at_once=self.calls_at_once)


def test_two_loops_with_strategies_of_their_own_keep_them_apart() -> None:
    def first(candidates: Sequence[str]) -> tuple[str, float]:
        return candidates[0], 0.1

    def last(candidates: Sequence[str]) -> tuple[str, float]:
        return candidates[-1], 0.9

    class Wavering:
        asked = 0

        async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
            self.asked += 1
            return ModelResult(UP if self.asked % 3 else DOWN, model="wavering")

        def model_info(self) -> ModelInfo:
            return ModelInfo("wavering", MODEL.model_info().context_window, MODEL.model_info().price)

    model = Wavering()
    loops = {
        name: RedundantLoop(model, schema=Trend, voting=voting, system=system_in_memory())
        for name, voting in (("first", first), ("last", last))
    }
    plan = [Step("a", "first", "?"), Step("b", "last", "?")]
    result = PlanExecutor(loops, system=system_in_memory()).execute_sync(plan)
    assert result.outputs == {"a": {"trend": "up"}, "b": {"trend": "down"}}


def test_a_redundant_step_that_finds_no_consensus_fails_the_plan_with_its_error() -> None:
    def nobody(candidates: Sequence[str]) -> tuple[str, float]:
        raise ValueError("I cannot choose")

    plans = PlanExecutor(
        {"research": lambda step: "text", "classify": classifier(voting=nobody)}, system=system_in_memory()
    )
    result = plans.execute_sync(PLAN)
    assert result.outputs == {"research": "text"}
    assert result.response.error is not None
    assert result.response.error.code == ErrorCode.ORCHESTRATION_NO_CONSENSUS


def test_what_an_agent_asks_within_a_step_is_answered_through_the_plan() -> None:
    async def story() -> None:
        model = Named("keeper", calls("keep", text="tea"), {"text": "Kept."})
        agent = AgentLoop(model, tools=[keep], system=system_in_memory())
        plans = PlanExecutor({"keep": agent, "see": lambda step: step.input}, system=system_in_memory())
        asked = await plans.execute([Step("keep", "keep", "Keep tea."), Step("see", "see")])
        assert asked.response.waiting_for is not None
        done = await plans.approve(asked.response.waiting_for.packet_ids[0], by="ada")
        assert (done.outputs, done.response.terminal_code) == ({"keep": "Kept.", "see": "Kept."}, Ending.SUCCESS)

    play(story())


def no_search(call: ToolCall) -> str | None:
    """Nothing is searched."""
    return "not here" if call.name == "search" else None


def looping(kind: str, **terms: Any) -> Any:
    """A loop that searches, or keeps something, and answers."""
    model = Named("worker", calls("search", words="Q4"), calls("keep", text="tea"), {"text": UP}, {"text": UP})
    if kind == "agent":
        return AgentLoop(model, tools=[search, keep], **terms)
    return SpecializedLoop(model, schema=Trend, tools=[search, keep], **terms)


@pytest.mark.req("2.29")
@pytest.mark.parametrize("kind", ["agent", "specialized"])
def test_a_loop_keeps_its_role_and_its_filters_as_a_step(kind: str) -> None:
    async def story() -> None:
        system = system_in_memory()
        loop = looping(kind, filters=[no_search], role="reviewer")
        # Another step has neither of them.
        free = PlanExecutor({"work": loop, "free": InferHandler(Named("free", {"text": "x"}))}, system=system)
        done = await free.execute([Step("work", "work", "Look."), Step("free", "free", "Say x.")])
        statuses = {made.name: (made.status, made.code) for made in done.response.tool_calls_made}
        assert statuses["search"] == (CallStatus.REFUSED, "FILTERED")
        assert statuses["keep"] == (CallStatus.REFUSED, "PERMISSION_DENIED")
        assert [entry for entry in loop.config.engine.asked[0].messages if "You are the reviewer" in str(entry.content)]

    play(story())


def test_a_plan_whose_filters_are_not_at_hand_is_not_gone_on_with() -> None:
    async def story() -> None:
        system = system_in_memory()
        first = PlanExecutor({"work": looping("agent", filters=[no_search])}, system=system)
        asked = await first.execute([Step("work", "work", "Look.")])
        assert asked.response.waiting_for is not None
        bare = PlanExecutor({"work": looping("agent")}, system=system)
        manifest = pinned(await system.state_of(asked.response.run_id))
        assert "filter 'work.no_search'" in missing_parts(manifest, bare._kit_for(system)[0])
        assert missing_parts(manifest, first._kit_for(system)[0]) == ()

    play(story())


class Shelf:
    async def build(self, query: str) -> list[Message]:
        return []


MODEL = ScriptedEngine([{"text": UP}])


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (AgentLoop(MODEL, context_provider=Shelf()), "put a retrieve step before it"),
        (SpecializedLoop(MODEL, schema=Trend, context_provider=Shelf()), "put a retrieve step before it"),
        (RedundantLoop(MODEL, schema=Trend, context_provider=Shelf()), "put a retrieve step before it"),
        (AgentLoop(MODEL, boundary="customer_support"), "give them to the executor"),
        (AgentLoop(MODEL, boundary="standard"), "give them to the executor"),
        (SpecializedLoop(MODEL, schema=Trend, boundary=STANDARD), "give them to the executor"),
        (RedundantLoop(MODEL, schema=Trend, boundary="standard"), "give them to the executor"),
        (RedundantLoop(MODEL, schema=Trend, budget=Budget(steps=30)), "give them to the executor"),
        (AgentLoop(MODEL, rules=RuleSet("all", (Rule("said", NotEmpty()),))), "put a validate step behind it"),
        (AgentLoop(MODEL, stream=print), "has stream, which no step has"),
        (AgentLoop(MODEL, on_tool_result=print), "has on_tool_result"),
        (AgentLoop(MODEL, observer=InMemoryEventLog()), "has observer"),
        (SpecializedLoop(MODEL, schema=Trend, stream=print), "has stream"),
        (RedundantLoop(MODEL, schema=Trend, observer=InMemoryEventLog()), "has observer"),
        (AgentLoop(MODEL, downgrade=Named("cheap", {"text": UP})), "an engine to downgrade to"),
        (AgentLoop(MODEL, router="none"), "has a router of its own"),
        (SpecializedLoop(MODEL, schema=Trend, user_id="ann"), "names a user"),
        (RedundantLoop(MODEL, schema=Trend, user_id="ann"), "names a user"),
    ],
)
def test_a_loop_with_terms_of_its_own_is_refused_since_the_plan_has_its_own(loop: Any, reason: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        PlanExecutor({"ask": loop})
    assert refused.value.code == PLAN_HANDLER_INVALID
    assert reason in refused.value.message


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"boundary": "standard"}, "a boundary or a budget"),
        ({"budget": Budget(steps=30)}, "a boundary or a budget"),
        ({"user_id": "ann"}, "names a user"),
        ({"observer": InMemoryEventLog()}, "has observer"),
        ({"context_provider": Shelf()}, "has a context provider"),
        ({"timeout_ms": 5_000}, "a timeout of its own"),
    ],
)
def test_a_vote_made_a_step_by_hand_keeps_no_terms_of_its_own_in_silence(own: dict[str, Any], reason: str) -> None:
    with pytest.raises(RequestRejected, match=f"the loop that becomes a step .*{reason}") as refused:
        RedundantLoop(MODEL, schema=Trend, **own).as_step()
    assert refused.value.code == PLAN_HANDLER_INVALID


@pytest.mark.parametrize(
    ("handlers", "reason"),
    [
        ({"a": 7}, "steps of type 'a' are given a int; give a handler, a function of a Step, or a loop"),
        ({"a": None}, "are given a NoneType"),
        ({"a": InferHandler}, "are given the class InferHandler"),
        ({7: lambda step: step}, "by the type of the step they do"),
        ([lambda step: step], "by the type of the step they do"),
    ],
)
def test_what_could_do_no_step_is_refused_when_the_executor_is_made(handlers: Any, reason: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        PlanExecutor(handlers)
    assert refused.value.code == PLAN_HANDLER_INVALID
    assert reason in refused.value.message


def test_an_engine_that_is_none_is_refused_when_the_executor_is_made() -> None:
    with pytest.raises(RequestRejected) as refused:
        PlanExecutor({"a": InferHandler("no such thing")})
    assert refused.value.code != ""
    with pytest.raises(RequestRejected) as unfit:
        PlanExecutor({"a": InferHandler(object())})  # type: ignore[arg-type]
    assert unfit.value.code == ErrorCode.CONFIG_NO_ENGINE


class Offline(Named):
    @override
    def model_info(self) -> ModelInfo:
        raise RuntimeError("no net")


@pytest.mark.parametrize(
    "make",
    [
        AgentLoop,
        lambda engine: SpecializedLoop(engine, schema={"type": "object"}),
        lambda engine: RedundantLoop(engine, schema={"type": "object"}),
        lambda engine: PlanExecutor({"a": InferHandler(engine)}),
    ],
)
def test_an_engine_that_cannot_say_what_it_is_is_refused_with_a_code_and_its_reason(make: Any) -> None:
    with pytest.raises(RequestRejected, match="raised RuntimeError: no net") as refused:
        make(Offline("same", {"text": "x"}))
    assert refused.value.code == ErrorCode.CONFIG_NO_ENGINE


def test_two_engines_of_one_name_are_refused_unless_one_spec_opened_both() -> None:
    one, other = Named("same", {"text": "x"}), Named("same", {"text": "y"})
    PlanExecutor({"a": InferHandler(one), "b": InferHandler(one)})
    with pytest.raises(RequestRejected) as refused:
        PlanExecutor({"a": InferHandler(one), "b": InferHandler(other)})
    assert refused.value.code == PLAN_MODEL_TAKEN


def test_a_plain_function_may_be_a_tool_of_several_steps_and_two_tools_of_one_name_may_not() -> None:
    def peek(at: str) -> str:
        """Look at something."""
        return at

    PlanExecutor({"a": InferHandler(MODEL, tools=[peek]), "b": ToolHandler([peek])})

    @tool(name="peek", effect="read")
    def other(at: str) -> str:
        """Look at something else."""
        return at

    with pytest.raises(RequestRejected) as refused:
        PlanExecutor({"a": InferHandler(MODEL, tools=[peek]), "b": ToolHandler([other])})
    assert refused.value.code == TOOL_NAME_TAKEN


def test_the_budget_of_the_plan_holds_for_every_step() -> None:
    plans = PlanExecutor({"research": researcher()}, budget=Budget(tool_calls=0), system=system_in_memory())
    result = plans.execute_sync([RESEARCH])
    assert [call.status.value for call in result.response.tool_calls_made] == ["refused"]
