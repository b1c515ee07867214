"""Every error code reaches a caller who uses nothing but the public names."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit import AgentLoop, Budget, PlanExecutor, RerankHandler, SpecializedLoop, Step, SystemResponse, tool
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.work.goal import Criterion, Goal, RequiredAction
from tests import warm
from tests.doors.desk import Desk, call

NO_RETRIES = Budget(retries=0)


@tool(effect="read", network=False)
def count(item: str = "lamp") -> int:
    """Count an item."""
    return 3


@tool(effect="read", network=False)
def broken() -> int:
    """Count with a broken scale."""
    raise OSError("the scale is broken")


@tool(effect="read", network=False, timeout_ms=100)
async def slow() -> int:
    """Count for ever."""
    await asyncio.Event().wait()
    return 3


@tool(effect="read", network=False, available=lambda: False)
def closed() -> int:
    """Count in a shop that is closed."""
    return 3


def error_of(response: SystemResponse) -> str:
    return "" if response.error is None else response.error.code


def plan_whose_parts_do_not_fit(desk: Desk) -> SystemResponse:
    handlers: dict[str, Any] = {
        "shout": lambda step: step.input.upper(),
        "rerank": RerankHandler(lambda query, candidates: candidates),
    }
    executor = PlanExecutor(handlers, home=desk.folder / "store")
    return executor.execute_sync([Step("first", "shout", "hello"), Step("second", "rerank")]).response


def beginning(begun: asyncio.Event) -> Any:
    @tool(effect="read", network=False)
    async def begin() -> int:
        """Say that the run has begun."""
        begun.set()
        return 1

    return begin


def cancelled(desk: Desk) -> SystemResponse:
    async def scene() -> SystemResponse:
        begun = asyncio.Event()
        said = {"text": "late", "delay_ms": 60_000}
        agent = AgentLoop(desk.engine(call("begin"), said), tools=[beginning(begun)], home=desk.folder / "store")
        async with agent:
            answering = asyncio.create_task(agent.chat("How many lamps are there?"))
            await begun.wait()
            await agent.cancel(by="ada")
            return await answering

    return asyncio.run(scene())


GOOD, BAD = '{"mood":"good"}', '{"mood":"bad"}'

WAYS: dict[ErrorCode, Callable[[Desk], SystemResponse]] = {
    ErrorCode.INFERENCE_ENGINE_ERROR: lambda desk: desk.chat({"error": "INFERENCE_ENGINE_ERROR"}, budget=NO_RETRIES),
    ErrorCode.INFERENCE_MODEL_UNAVAILABLE: lambda desk: desk.chat(
        {"error": "INFERENCE_MODEL_UNAVAILABLE"}, budget=NO_RETRIES
    ),
    ErrorCode.INFERENCE_CONTEXT_EXCEEDED: lambda desk: desk.chat({"error": "INFERENCE_CONTEXT_EXCEEDED"}),
    ErrorCode.INFERENCE_MALFORMED_RESPONSE: lambda desk: desk.chat({"text": ""}, budget=NO_RETRIES),
    ErrorCode.TOOL_NOT_FOUND: lambda desk: desk.chat(call("nothing"), tools=[count]),
    ErrorCode.TOOL_EXECUTION_FAILED: lambda desk: desk.chat(call("broken"), tools=[broken], budget=NO_RETRIES),
    ErrorCode.TOOL_TIMEOUT: lambda desk: desk.chat(call("slow"), tools=[slow], budget=NO_RETRIES),
    ErrorCode.TOOL_UNAVAILABLE: lambda desk: desk.chat(call("closed"), tools=[closed], budget=NO_RETRIES),
    ErrorCode.CONSTRAINT_GRAMMAR_REJECTED: lambda desk: desk.shaped({"text": GOOD}, grammar='root ::= "yes" | "no"'),
    ErrorCode.CONSTRAINT_SCHEMA_INVALID: lambda desk: desk.shaped({"text": '{"humour":"good"}'}),
    ErrorCode.CONSTRAINT_JSON_INVALID: lambda desk: desk.shaped({"text": "no idea"}),
    ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED: lambda desk: desk.shaped({"text": '{"mood":"purple"}'}),
    ErrorCode.VALIDATION_RULE_FAILED: lambda desk: desk.chat(
        {"text": "far too long"}, goal=Goal("be short", (Criterion("short", guard="answer_bytes < 3"),))
    ),
    ErrorCode.VALIDATION_SEMANTIC_FAILED: lambda desk: desk.chat(
        {"text": "There are 3."}, tools=[count], goal=Goal("count", required_actions=(RequiredAction("count"),))
    ),
    ErrorCode.ORCHESTRATION_STEP_MISMATCH: plan_whose_parts_do_not_fit,
    ErrorCode.ORCHESTRATION_ITERATION_LIMIT: lambda desk: desk.chat(
        *(call("count", item=f"item {n}") for n in range(4)), tools=[count], max_tool_iterations=2
    ),
    ErrorCode.ORCHESTRATION_NO_CONSENSUS: lambda desk: desk.voted(GOOD, GOOD, BAD, voting="unanimity"),
    ErrorCode.CANCELLED_TIMEOUT: lambda desk: desk.chat(
        {"text": "late", "delay_ms": 60_000}, budget=Budget(wall_clock_ms=300)
    ),
    ErrorCode.CANCELLED_SIGNAL: cancelled,
}


@pytest.mark.req("0.23")
@pytest.mark.parametrize("code", WAYS)
def test_a_caller_is_told_this_code(code: ErrorCode, tmp_path: Path) -> None:
    response = WAYS[code](Desk(tmp_path))
    assert error_of(response) == code
    assert response.error is not None
    assert response.error.category
    assert response.error.message


# What is wrong with the setup is found before a run exists, so it is raised and not answered.


def with_a_missing_grammar(folder: Path) -> str:
    """The code that the command line gives for a grammar that is not there."""
    command = [sys.executable, "-m", "remit", "run", "hello", "--engine", Desk(folder).engine({"text": "hello"})]
    command += ["--grammar", str(folder / "none.gbnf"), "--json"]
    environment = {**os.environ, "REMIT_HOME": str(folder / "store")}
    done = warm.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    found = json.loads(done.stdout or done.stderr)
    return str(found["error"]["code"])


@pytest.mark.req("0.23")
def test_a_setup_that_cannot_run_is_refused_with_its_code(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as no_engine:
        AgentLoop(None, home=tmp_path / "store").chat_sync("hello")
    assert no_engine.value.code == ErrorCode.CONFIG_NO_ENGINE
    engine = Desk(tmp_path).engine({"text": "hello"})
    with pytest.raises(RequestRejected) as no_schema:
        SpecializedLoop(engine, schema=None, home=tmp_path / "store").call_sync("hi")  # type: ignore[arg-type]
    assert no_schema.value.code == ErrorCode.CONFIG_SCHEMA_REQUIRED
    assert with_a_missing_grammar(tmp_path) == ErrorCode.CONFIG_GRAMMAR_NOT_FOUND


def test_no_code_is_left_out() -> None:
    at_the_door = {ErrorCode.CONFIG_NO_ENGINE, ErrorCode.CONFIG_SCHEMA_REQUIRED, ErrorCode.CONFIG_GRAMMAR_NOT_FOUND}
    at_the_door.add(ErrorCode.CONFIG_PART_MISSING)  # tests/doors/test_told.py
    at_the_door.add(ErrorCode.ORCHESTRATION_PLAN_FAILED)  # tests/doors/test_planners.py
    assert {*WAYS, *at_the_door} == set(ErrorCode)
