"""Runs whose plan is made inside them: the graph of a plan, words for other modes, and what no plan can be made of."""

from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.run.contract import Mode, OutputContract, SystemRequest, SystemResponse
from remit.core.run.messages import system_message, user_message
from remit.core.work.plan import ExecutionPlan, Step
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.patterns.handlers import InferHandler, ToolHandler
from remit.orchestrate.patterns.planners import ModelPlanner, Planner, check_planner
from remit.orchestrate.setup.kit import Kit, Terms, prompt_text
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import in_memory, request
from tests.unit.orchestrate.stage import play

MADE = {"text": '{"rationale":"short","steps":[{"name":"loud","type":"shout","instruction":"loudly"}]}'}
MOOD = {"type": "object", "properties": {"mood": {"type": "string"}}}


class Makes:
    """A planner that makes a plan of these steps, or fails."""

    def __init__(self, *steps: Step, error: Exception | None = None) -> None:
        self.steps, self.error = steps, error

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """The plan that it was told."""
        if self.error is not None:
            raise self.error
        return ExecutionPlan(self.steps)


@tool
def look(at: str) -> str:
    """Look at something."""
    return at


def shout(step: Step) -> str:
    """Loudly."""
    return str(step.input).upper()


def ended(planner: Planner, mode: Mode, *replies: dict[str, Any], **parts: Any) -> SystemResponse:
    engine = ScriptedEngine(replies or [{"text": '{"mood":"good"}'}])
    if isinstance(planner, ModelPlanner):
        planner.given = engine
    kit = Kit({engine.model_info().name: engine}, planner=planner, **parts)
    asked = SystemRequest(
        (user_message("How is it?"),), mode, output=OutputContract(None if mode is Mode.PLAN else MOOD)
    )

    async def story() -> SystemResponse:
        async with in_memory() as system:
            return await system.run(asked, kit, Terms())

    return play(story())


@pytest.mark.parametrize("mode", [Mode.CHAT, Mode.STRUCTURED, Mode.REDUNDANT])
@pytest.mark.parametrize("asks", [False, True])
def test_the_models_of_other_modes_are_told_the_plan(mode: Mode, asks: bool) -> None:
    answer = {"text": '{"mood":"good"}'}
    if asks:
        response = ended(ModelPlanner(ScriptedEngine([MADE])), mode, MADE)
    else:
        response = ended(Makes(Step("loud", "shout", "a"), Step("b", "shout", 7)), mode, answer)
    assert response.terminal_code is Ending.SUCCESS


@pytest.mark.parametrize("planner", [Makes(), Makes(error=OSError("no paper"))])
def test_a_planner_that_fails_ends_a_chat(planner: Planner) -> None:
    response = ended(planner, Mode.CHAT)
    assert response.error is not None
    assert (response.terminal_code, response.error.code) == (Ending.IMPOSSIBLE, ErrorCode.ORCHESTRATION_PLAN_FAILED)


def test_a_model_plans_with_the_tools_and_the_types_that_there_are() -> None:
    handlers: Any = {"shout": shout, "tool": ToolHandler([look]), "infer": InferHandler(None)}
    parts = {"handlers": handlers, "code": {"step:shout": shout}}
    response = ended(ModelPlanner(ScriptedEngine([MADE])), Mode.PLAN, MADE, **parts)
    assert response.structured_output == {"loud": "HOW IS IT?"}


def test_a_planner_that_is_not_here_fails_its_command() -> None:
    response = ended(Makes(Step("a", "sing")), Mode.PLAN, handlers={"shout": shout})
    assert response.error is not None
    assert "PLAN_STEP_TYPE_REFUSED" in response.error.message


def test_a_model_is_not_shown_more_than_a_node_can_hold_and_makes_no_plan_outside_of_a_run() -> None:
    planner = ModelPlanner(ScriptedEngine([MADE]))
    with pytest.raises(RequestRejected, match="inside a run"):
        planner.create_plan(request("hello"))

    async def story() -> None:
        kit = Kit({planner.engine.model_info().name: planner.engine}, planner=planner)
        async with in_memory() as system:
            with pytest.raises(RequestRejected, match="prompt_chars_max=10000"):
                await system.run(request("x" * 10_001), kit)

    play(story())


@pytest.mark.parametrize(
    ("planner", "words"), [("make one", "lacks create_plan"), (ModelPlanner(ScriptedEngine([MADE])), "none of the kit")]
)
def test_a_planner_that_no_run_could_ask_is_refused(planner: Any, words: str) -> None:
    with pytest.raises(RequestRejected, match=words):
        check_planner(planner, {})


class Prompts:
    """Makes what it was told."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def build_system_prompt(self) -> Any:
        """The prompt, or whatever it is."""
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


def test_a_prompt_is_a_text_or_what_its_provider_makes() -> None:
    assert [prompt_text(given) for given in ("a", Prompts("b"), Prompts(system_message("c")))] == ["a", "b", "c"]
    for wrong in (7, user_message("hi"), OSError("no paper")):
        with pytest.raises(RequestRejected, match="PROMPT_PROVIDER_FAILED"):
            prompt_text(Prompts(wrong))
