"""Steps that ask a model, as their user wrote them: what is sent, what is refused, what messages say of it."""

from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    InferHandler,
    ModelInfo,
    ModelRequest,
    ModelResult,
    PlanExecutor,
    PlanPolicy,
    Price,
    RequestRejected,
    Step,
    TokenUsage,
    ToolDefinition,
    system_message,
    tool,
    user_message,
)
from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.inference.engine import StreamHandler
from tests.doors.desk import MOOD, Desk

ASKED = (system_message("Be brief."), user_message("How is it?"))
USAGE = TokenUsage(prompt_tokens=7, output_tokens=3, duration_ms=50)


@tool(effect="read", network=False)
def look(word: str) -> str:
    """Look a word up."""
    return word


@tool(effect="read", network=False)
def count(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


class Counting:
    """A model that says the same each time and tells what it took."""

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """Always good."""
        self.asked.append(request)
        return ModelResult('{"mood":"good"}', usage=USAGE)

    def model_info(self) -> ModelInfo:
        """A model that costs nothing."""
        return ModelInfo("counting", 8_192, Price(0, 0))


def executed(request: Any, home: Path, **step: Any) -> tuple[Any, list[ModelRequest]]:
    engine = Counting()
    executor = PlanExecutor({"infer": InferHandler(engine, tools=[look, count])}, home=home)
    return executor.execute_sync([Step("ask", "infer", request, **step)]), engine.asked


@pytest.mark.req("2.16")
def test_all_of_a_model_request_is_sent_as_it_was_given(tmp_path: Path) -> None:
    request = ModelRequest(
        ASKED, tools=(look.definition,), max_tokens=70, temperature=0.0, top_p=0.5, options={"seed": 4}
    )
    result, (sent,) = executed(request, tmp_path)
    assert result.response.error is None
    assert sent.messages == ASKED
    assert [offered.name for offered in sent.tools] == ["look"]
    assert (sent.max_tokens, sent.temperature, sent.top_p, sent.options) == (70, 0.0, 0.5, {"seed": 4})


@pytest.mark.req("2.16")
def test_the_schema_of_a_model_request_shapes_the_answer_of_its_step(tmp_path: Path) -> None:
    request = ModelRequest(ASKED, schema=MOOD, tool_choice=ToolChoice(ToolChoiceMode.NONE))
    result, (sent,) = executed(request, tmp_path)
    assert (result.output, sent.schema, sent.tools) == ({"mood": "good"}, MOOD, ())


@pytest.mark.req("2.16")
@pytest.mark.parametrize(
    ("request_", "step", "problem"),
    [
        (ModelRequest(()), {}, "messages"),
        (ModelRequest(ASKED, temperature=9.0), {}, "temperature=9.0"),
        (ModelRequest(ASKED, attempt=2), {}, "attempt=2"),
        (ModelRequest(ASKED, schema=MOOD), {"schema": MOOD}, "so has the step"),
        (ModelRequest(ASKED, tool_choice=ToolChoice(ToolChoiceMode.REQUIRED)), {}, "tool_choice=required"),
        (ModelRequest(ASKED, tools=(ToolDefinition("other", "Does something else.", {}),)), {}, "tool 'other'"),
    ],
)
def test_what_a_step_cannot_follow_of_a_model_request_is_a_mismatch(
    request_: ModelRequest, step: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestRejected, match=problem) as refused:
        executed(request_, tmp_path, **step)
    assert refused.value.code == ErrorCode.ORCHESTRATION_STEP_MISMATCH


@pytest.mark.req("2.16")
def test_a_model_request_for_anything_but_an_infer_step_is_a_mismatch(tmp_path: Path) -> None:
    for work in (AgentLoop(Counting()), lambda step: "done"):
        with pytest.raises(RequestRejected) as refused:
            PlanExecutor({"work": work}, home=tmp_path).execute_sync([Step("ask", "work", ModelRequest(ASKED))])
        assert refused.value.code == ErrorCode.ORCHESTRATION_STEP_MISMATCH


@pytest.mark.req("2.16")
def test_a_model_request_that_a_function_returns_is_no_text_for_the_next_step(tmp_path: Path) -> None:
    executor = PlanExecutor(
        {"make": lambda step: ModelRequest(ASKED), "infer": InferHandler(Counting())}, home=tmp_path
    )
    error = executor.execute_sync([Step("make", "make", "x"), Step("ask", "infer")]).response.error
    assert error is not None
    assert (error.code, "a ModelRequest cannot be handed on" in error.message) == ("ORCHESTRATION_STEP_MISMATCH", True)


@pytest.mark.req("2.16")
def test_a_finished_step_tells_what_its_model_took(tmp_path: Path) -> None:
    executor = PlanExecutor({"infer": InferHandler(Counting()), "code": lambda step: "done"}, home=tmp_path)
    result = executor.execute_sync([Step("ask", "infer", "How is it?"), Step("end", "code")])
    taken = {step.name: (step.usage.prompt_tokens, step.usage.output_tokens) for step in result.steps}
    assert taken == {"ask": (7, 3), "end": (0, 0)}


@pytest.mark.req("0.34")
@pytest.mark.parametrize("where", ["policy", "step"])
def test_a_model_that_is_too_slow_for_its_step_is_told_with_the_limit_of_the_step(where: str, tmp_path: Path) -> None:
    engine = Desk(tmp_path).engine({"text": "late", "delay_ms": 20_000})
    policy = PlanPolicy(timeout_per_step_ms=200 if where == "policy" else 0)
    executor = PlanExecutor({"infer": InferHandler(engine)}, policy=policy, home=tmp_path / "store")
    step = Step("ask", "infer", "How is it?", timeout_ms=200 if where == "step" else 0)
    error = executor.execute_sync([step]).response.error
    assert error is not None
    assert "step 'ask' took longer than timeout_ms=200" in error.message
    assert "wall_clock" not in error.message
