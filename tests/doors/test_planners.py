"""A planner is asked inside the run: what it spends, where it fails and where it was cut off is told like any other work."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import (
    Boundary,
    Budget,
    Ending,
    ErrorCode,
    ExecutionPlan,
    InferHandler,
    InMemoryEventLog,
    Kit,
    Mode,
    ModelPlanner,
    ModelRequest,
    ModelResult,
    OutputContract,
    PlanExecutor,
    PlanResult,
    PlanTrace,
    RequestRejected,
    Step,
    SystemRequest,
    Terms,
    TokenUsage,
    ToolHandler,
    kit_of,
    tool,
    user_message,
)
from remit.core.record import JsonObject, replace
from remit.core.run.lifecycle import LifecycleState
from tests.doors.desk import MOOD, Panel

DEEP: JsonObject = {}
for _ in range(200):
    DEEP = {"properties": {"a": DEEP}}
MADE = json.dumps({"rationale": "short", "steps": [{"name": "loud", "type": "shout"}]})


class Counting(Panel):
    """A panel that counts what it says."""

    async def infer(self, request: Any, on_chunk: Any = None) -> ModelResult:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Its next reply, with forty tokens of prompt and two of output."""
        said = await super().infer(request, on_chunk)
        return replace(said, usage=TokenUsage(prompt_tokens=40, output_tokens=2))


class Chooses:
    """A planner of the user's own."""

    def __init__(self, *steps: Step) -> None:
        self.steps, self.asked = steps, 0

    async def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """The steps it was given."""
        self.asked += 1
        return ExecutionPlan(self.steps, PlanTrace("chooser", "as told"))


def shout(step: Step) -> str:
    """Loudly."""
    return str(step.input).upper()


def states(observer: InMemoryEventLog) -> list[str]:
    told = [event.what for event in observer.events() if event.action == "lifecycle"]
    return [what.to_state for what in told]  # type: ignore[union-attr]  # lifecycle events alone have one


@pytest.mark.req("0.17", "0.32")
def test_a_planner_is_asked_in_the_state_plan_of_its_run_and_its_steps_are_what_the_run_gives(tmp_path: Path) -> None:
    observer = InMemoryEventLog()
    plans = PlanExecutor({"shout": shout}, planner=Chooses(Step("loud", "shout")), observer=observer, home=tmp_path)
    result = plans.execute_sync(prompt="hello")
    assert (result.output, result.outputs, result.response.structured_output) == (
        "HELLO",
        {"loud": "HELLO"},
        {"loud": "HELLO"},
    )
    assert result.trace is not None
    assert (result.trace.planner_id, result.trace.step_count, result.response.content) == ("chooser", 1, "HELLO")
    assert states(observer)[:2] == [LifecycleState.PLAN, LifecycleState.PREPARE]
    assert "planner" in [getattr(event.what, "name", "") for event in observer.events()]


@pytest.mark.req("0.32")
def test_what_the_model_of_a_planner_takes_is_used_charged_and_told(tmp_path: Path) -> None:
    observer, model = InMemoryEventLog(), Counting(MADE)
    plans = PlanExecutor({"shout": shout}, planner=ModelPlanner(model), observer=observer, home=tmp_path)
    result = plans.execute_sync(prompt="hello")
    assert (result.output, result.response.token_usage.prompt_tokens) == ("HELLO", 40)
    assert [event.action.value for event in observer.events()].count("infer") == 2
    assert model.asked[0].schema is not None
    assert model.asked[0].schema["properties"]["steps"]["items"]["properties"]["type"] == {
        "type": "string",
        "enum": ["shout"],
    }

    poor = PlanExecutor(
        {"shout": shout}, planner=ModelPlanner(Counting(MADE)), budget=Budget(input_tokens=10), home=tmp_path
    )
    assert poor.execute_sync(prompt="hello").response.terminal_code is Ending.BUDGET_EXHAUSTED


@pytest.mark.req("0.17", "0.32")
@pytest.mark.parametrize(
    ("planner", "code", "words"),
    [
        (Chooses(), "ORCHESTRATION_PLAN_FAILED", "PLAN_EMPTY: the plan has no steps"),
        (Chooses(Step("a", "sing")), "ORCHESTRATION_PLAN_FAILED", "PLAN_STEP_TYPE_REFUSED"),
        (ModelPlanner(Panel("no plan")), "CONSTRAINT_JSON_INVALID", ""),
        (ModelPlanner(Panel("INFERENCE_CONTEXT_EXCEEDED")), "INFERENCE_CONTEXT_EXCEEDED", "the panel failed"),
    ],
)
def test_a_plan_that_cannot_be_made_ends_the_run_with_a_code(
    planner: Any, code: str, words: str, tmp_path: Path
) -> None:
    result = PlanExecutor({"shout": shout}, planner=planner, home=tmp_path).execute_sync(prompt="hello")
    error = result.response.error
    assert error is not None
    assert (result.steps, result.trace, result.response.content) == ((), None, "")
    assert (error.code, words in error.message) == (code, True)


@pytest.mark.req("0.32")
def test_a_planner_that_raises_ends_the_run_and_says_what_was_raised(tmp_path: Path) -> None:
    class Breaks:
        def create_plan(self, request: SystemRequest) -> ExecutionPlan:
            raise OSError("no paper")

    response = PlanExecutor({"shout": shout}, planner=Breaks(), home=tmp_path).execute_sync(prompt="hello").response
    assert response.error is not None
    assert (response.terminal_code, response.error.code) == (Ending.IMPOSSIBLE, ErrorCode.ORCHESTRATION_PLAN_FAILED)
    assert "planner 'Breaks' raised OSError: no paper" in response.error.message
    assert (response.error.category, response.error.retryable) == ("OrchestrationFailure", False)


@pytest.mark.req("0.32")
def test_a_run_that_was_left_in_the_middle_of_planning_asks_its_planner_when_it_is_resumed(tmp_path: Path) -> None:
    class Stuck:
        async def create_plan(self, request: SystemRequest) -> ExecutionPlan:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

    begun = asyncio.Event()

    async def story() -> None:
        cut = PlanExecutor({"shout": shout}, planner=Stuck(), home=tmp_path)
        run = await cut.start(prompt="hello")
        await begun.wait()
        await cut.close()
        planner = Chooses(Step("loud", "shout"))
        async with PlanExecutor({"shout": shout}, planner=planner, home=tmp_path) as plans:
            assert (await plans.resume(run.id)).output == "HELLO"
            # What was planned is written down: it is found again, and the planner is not asked again.
            assert (await plans.resume(run.id)).output == "HELLO"
        assert planner.asked == 1
        async with remit.open(tmp_path) as system:
            audit = await system.archive.replay(run.id)
            assert audit.verdict == "same"

    asyncio.run(story())


@pytest.mark.req("0.32")
def test_a_plan_that_waits_for_a_person_is_answered_where_it_was_begun(tmp_path: Path) -> None:
    @tool(effect="write", destructive=True)
    def erase(word: str) -> str:
        """Erase a word."""
        return "gone"

    planner = Chooses(Step("do", "tool", {"word": "a"}, tool="erase"))

    async def story() -> None:
        async with PlanExecutor({"tool": ToolHandler([erase])}, planner=planner, home=tmp_path) as plans:
            asked = (await plans.execute(prompt="erase a")).response.waiting_for
            assert asked is not None
            result = await plans.approve(asked.packet_ids[0], by="ada")
            assert result.outputs == {"do": "gone"}

    asyncio.run(story())


def told(kit: Kit, planner: Any) -> Kit:
    return Kit(kit.engines, kit.tools, planner=planner)


@pytest.mark.req("0.17")
@pytest.mark.parametrize("mode", [Mode.CHAT, Mode.STRUCTURED, Mode.REDUNDANT])
@pytest.mark.parametrize("asks", [False, True])
def test_in_any_other_mode_the_models_of_the_run_are_told_the_plan(mode: Mode, asks: bool, tmp_path: Path) -> None:
    good = '{"mood":"good"}'
    engine = Panel(*([MADE] if asks else []), good)
    planner: Any = ModelPlanner(engine) if asks else Chooses(Step("loud", "shout", instruction="say it loudly"))
    asked = SystemRequest((user_message("How is it?"),), mode, output=OutputContract(MOOD))

    async def story() -> None:
        async with remit.open(tmp_path) as system:
            response = await system.run(asked, told(kit_of(engine), planner))
            assert (response.terminal_code, response.error, response.structured_output) == (
                Ending.SUCCESS,
                None,
                {"mood": "good"},
            )

    asyncio.run(story())
    shown = [str(message.content) for message in engine.asked[-1].messages]
    assert any(text.startswith("A plan was made for this request. Follow it:\n1. loud") for text in shown)


@pytest.mark.parametrize(
    ("planner", "words"),
    [("make one", "lacks create_plan"), (ModelPlanner(Panel(MADE)), "none of the kit")],
)
def test_a_planner_that_could_never_be_asked_is_refused_at_the_door(planner: Any, words: str, tmp_path: Path) -> None:
    class Other(Panel):
        def model_info(self) -> Any:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
            return replace(super().model_info(), name="other")

    async def story() -> None:
        async with remit.open(tmp_path) as system:
            with pytest.raises(RequestRejected, match=words):
                await system.run(SystemRequest((user_message("hi"),)), told(kit_of(Other("hello")), planner))

    asyncio.run(story())


def test_a_boundary_without_the_right_to_plan_refuses_a_planner_in_every_mode(tmp_path: Path) -> None:
    async def story() -> None:
        async with remit.open(tmp_path) as system:
            terms = Terms(Boundary(decisions=()))
            with pytest.raises(RequestRejected, match="make_plans"):
                await system.run(SystemRequest((user_message("hi"),)), told(kit_of(Panel("hello")), Chooses()), terms)

    asyncio.run(story())


@pytest.mark.req("0.17", "0.32")
@pytest.mark.parametrize(
    "step",
    [
        Step("s", "infer", "x", schema={"type": "frog"}),
        Step("s", "infer", "x", schema={"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
        Step("s", "infer", "x", schema={"type": "object", "$ref": "#/none"}),
        Step("s", "infer", "x", schema={"type": "object", "$ref": "https://elsewhere.example/a.json"}),
        Step("s", "infer", "x", schema=DEEP),
        Step("s", "infer", ModelRequest((user_message("x"),), schema={"type": "frog"})),
        Step("s", "infer", ModelRequest((user_message("x"),), grammar='root ::= "a')),
    ],
)
def test_a_planner_whose_step_asks_for_a_shape_that_is_none_ends_the_plan_with_the_reason(
    step: Step, capfd: pytest.CaptureFixture[str]
) -> None:
    async def run() -> tuple[PlanResult, PlanResult]:
        async with remit.open(memory=True) as system:
            plans = PlanExecutor({"infer": InferHandler(Panel("{}"))}, planner=Chooses(step), system=system)
            result = await plans.execute(prompt="go")
            return result, await plans.resume(result.response.run_id)

    result, again = asyncio.run(run())
    assert result.error is not None
    assert (result.terminal_code, result.error.code) == (Ending.IMPOSSIBLE, ErrorCode.ORCHESTRATION_PLAN_FAILED)
    assert "'s'" in result.error.message or "grammar" in result.error.message
    assert (again.steps, again.error) == ((), result.error)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.req("0.17", "0.33")
def test_a_given_step_with_a_schema_that_nests_too_deep_is_refused_with_a_code(tmp_path: Path) -> None:
    plans = PlanExecutor({"infer": InferHandler(Panel("{}"))}, home=tmp_path)
    with pytest.raises(RequestRejected) as refused:
        plans.execute_sync([Step("s", "infer", "x", schema=DEEP)])
    assert refused.value.code == "SCHEMA_SOURCE_INVALID"
