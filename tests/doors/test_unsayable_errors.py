"""An exception of foreign code whose own words raise is told like any other, wherever it comes from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from remit import (
    AgentLoop,
    ExecutionPlan,
    InferHandler,
    ModelInfo,
    ModelRequest,
    ModelResult,
    PlanExecutor,
    RemitError,
    RerankHandler,
    RetrieveHandler,
    SpecializedLoop,
    Step,
    SystemRequest,
    ToolCall,
    ToolHandler,
    ValidateHandler,
    tool,
)
from tests.doors.desk import Panel


class Mute(ValueError):
    """It cannot be shown."""

    def __str__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        raise RuntimeError("hush")

    __repr__ = __str__


def breaks(*given: Any) -> Any:
    """Whatever it is given, it raises."""
    raise Mute


class Breaks:
    """Every part that a user could write, and each of them raises."""

    planner_id, infer, find, rerank, check, build_system_prompt = "mute", breaks, breaks, breaks, breaks, breaks

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """Nothing."""
        raise Mute

    def model_info(self) -> ModelInfo:
        """Nothing."""
        raise Mute


@tool(effect="read", network=False)
def look(what: str) -> str:
    """Look something up."""
    raise Mute


HANDLERS: dict[str, Any] = {
    "say": InferHandler(Panel("hi")),
    "code": breaks,
    "find": RetrieveHandler(Breaks()),
    "found": RetrieveHandler(lambda query: []),
    "order": RerankHandler(Breaks()),
    "check": ValidateHandler(breaks),
    "tool": ToolHandler([look]),
}


class Looks(Panel):
    """A model that looks something up before it answers."""

    async def infer(self, request: ModelRequest, on_chunk: Any = None) -> ModelResult:  # type: ignore[explicit-override]
        """A call, then words."""
        self.asked.append(request)
        if len(self.asked) > 1:
            return ModelResult("seen")
        return ModelResult("", tool_calls=(ToolCall("1", "look", {"what": "x"}),))


TOLD = "its message raised RuntimeError"


@pytest.mark.parametrize(
    "steps",
    [
        [Step("a", "code", "x")],
        [Step("a", "find", "x")],
        [Step("b", "found", "x"), Step("a", "order")],
        [Step("b", "say", "x"), Step("a", "check")],
        [Step("a", "tool", {"what": "x"}, tool="look")],
    ],
    ids=lambda steps: steps[-1].type,
)
def test_a_step_whose_part_raises_what_cannot_be_shown_names_the_step(steps: list[Step], tmp_path: Path) -> None:
    error = PlanExecutor(HANDLERS, home=tmp_path).execute_sync(steps).error
    assert error is not None
    assert (TOLD in error.message, (error.details or {}).get("step")) == (True, "a"), error


def test_a_planner_that_raises_what_cannot_be_shown_made_no_plan(tmp_path: Path) -> None:
    result = PlanExecutor({"code": breaks}, planner=Breaks(), home=tmp_path).execute_sync(prompt="hello")
    assert result.error is not None
    assert (result.error.code, TOLD in result.error.message) == ("ORCHESTRATION_PLAN_FAILED", True)


def test_an_agent_says_what_its_parts_raised(tmp_path: Path) -> None:
    def sift(proposed: ToolCall) -> None:
        raise Mute

    parts: tuple[dict[str, Any], ...] = ({"tools": [look]}, {"tools": [look], "filters": [sift]}, {"stream": breaks})
    for place, given in enumerate(parts):
        agent = AgentLoop(Panel("fine"), home=tmp_path / str(place), **given)
        assert agent.chat_sync("Hello").content == "fine"
    model = Looks()
    AgentLoop(model, tools=[look], home=tmp_path / "called").chat_sync("Look x up.")
    assert TOLD in str(model.asked[-1].messages[-1].content)
    model = Looks()
    sifted = AgentLoop(model, tools=[look], filters=[sift], home=tmp_path / "sifted").chat_sync("Look x up.")
    assert TOLD in f"{sifted.error} {model.asked[-1].messages[-1].content}"


def test_an_engine_and_a_prompt_provider_that_raise_what_cannot_be_shown_are_refused(tmp_path: Path) -> None:
    made: list[Callable[[], Any]] = [
        lambda: AgentLoop(Breaks()),
        lambda: AgentLoop(Panel("hi"), system_prompt=Breaks(), home=tmp_path).chat_sync("Hello"),
        lambda: InferHandler(Panel("hi"), system_prompt=Breaks()),
    ]
    for make in made:
        with pytest.raises(RemitError) as refused:
            make()
        assert TOLD in refused.value.message


def test_a_type_whose_code_raises_what_cannot_be_shown_takes_no_value(tmp_path: Path) -> None:
    class Picky(BaseModel):
        amount: int

        @field_validator("amount")
        @classmethod
        def refuse(cls, amount: int) -> int:
            """None is good."""
            raise Raised

    class Raised(RuntimeError):
        __str__ = __repr__ = Mute.__str__

    response = SpecializedLoop(Panel('{"amount": 1}'), schema=Picky, home=tmp_path).call_sync("How much?")
    assert response.error is not None
    assert TOLD in response.error.message
