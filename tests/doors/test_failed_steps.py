"""A plan never succeeds over an agent that failed, and what it had finished is not lost with it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    CallCancelled,
    Ending,
    PlanExecutor,
    RedundantLoop,
    RunFailed,
    SpecializedLoop,
    Step,
    tool,
)
from remit.core.failure import ErrorCode
from tests.doors.desk import MOOD, Desk, Panel, call

FAILS = ErrorCode.INFERENCE_CONTEXT_EXCEEDED.value


@tool(effect="write", destructive=True)
def erase(word: str) -> str:
    """Erase a word."""
    return "gone"


def agents(folder: Path) -> dict[str, AgentLoop]:
    waits = AgentLoop(Desk(folder).engine(call("erase", word="a")), tools=[erase], home=folder / "waits")
    return {"fails": AgentLoop(Panel(FAILS), home=folder / "fails"), "waits": waits}


@pytest.mark.req("2.29")
@pytest.mark.parametrize(("which", "code"), [("fails", FAILS), ("waits", Ending.CONFIRM_REQUIRED)])
def test_a_response_without_an_answer_raises_what_stopped_it(which: str, code: str, tmp_path: Path) -> None:
    response = agents(tmp_path)[which].chat_sync("Erase a.")
    with pytest.raises(RunFailed) as failed:
        response.raise_for_error()
    assert (failed.value.code, failed.value.details) == (code, {"run_id": response.run_id})


def test_a_response_with_an_answer_is_given_back(tmp_path: Path) -> None:
    response = AgentLoop(Panel("fine"), home=tmp_path).chat_sync("How is it?")
    assert response.raise_for_error() is response


@pytest.mark.req("2.29")
@pytest.mark.parametrize("which", ["fails", "waits"])
@pytest.mark.parametrize("wrapped", ["raised", "returned", "as output", "in a list", "in an object"])
def test_a_function_that_asks_an_agent_fails_its_step_when_the_agent_fails_or_waits(
    which: str, wrapped: str, tmp_path: Path
) -> None:
    agent = agents(tmp_path)[which]

    async def ask(step: Step) -> Any:
        response = await agent.chat(step.input)
        if wrapped.startswith("in "):
            return [response] if wrapped == "in a list" else {"responses": [response]}
        if wrapped == "raised":
            return response.raise_for_error().content
        return response if wrapped == "returned" else step.with_output(response)

    executor = PlanExecutor({"first": lambda step: "done", "ask": ask}, home=tmp_path / "store")
    result = executor.execute_sync([Step("a", "first", "x"), Step("b", "ask", "Erase a.")])
    assert (result.response.terminal_code, result.outputs) == (Ending.UNAVAILABLE_DEP, {"a": "done"})
    assert result.response.error is not None
    assert result.response.error.message.startswith("step 'b'")


@pytest.mark.req("2.29")
def test_a_function_that_asks_a_vote_fails_its_step_when_there_is_no_winner(tmp_path: Path) -> None:
    vote = RedundantLoop(Panel(FAILS), schema=MOOD, home=tmp_path / "vote")
    executor = PlanExecutor({"vote": lambda step: vote.call(step.input)}, home=tmp_path / "store")
    assert executor.execute_sync([Step("a", "vote", "How is it?")]).response.terminal_code is Ending.UNAVAILABLE_DEP


@pytest.mark.req("2.20")
def test_a_cancelled_call_of_a_plan_tells_the_steps_that_were_finished(tmp_path: Path) -> None:
    async def story() -> None:
        entered = asyncio.Event()

        async def wait(step: Step) -> None:
            entered.set()
            await asyncio.Event().wait()

        executor = PlanExecutor({"first": lambda step: "done", "wait": wait}, home=tmp_path)
        task = asyncio.create_task(executor.execute([Step("a", "first", "x"), Step("b", "wait")]))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        left = cancelled.value.__cause__
        assert isinstance(left, CallCancelled)
        assert (left.response.terminal_code, left.result.outputs) == (Ending.USER_CANCEL, {"a": "done"})

    asyncio.run(story())


@pytest.mark.req("2.20")
def test_a_call_that_ran_out_of_its_callers_time_tells_what_it_had_done(tmp_path: Path) -> None:
    async def story() -> None:
        engine = Desk(tmp_path).engine({"text": "late", "delay_ms": 20_000})
        loop = SpecializedLoop(engine, schema=MOOD, home=tmp_path / "store")
        with pytest.raises(TimeoutError) as late:
            async with asyncio.timeout(1):
                await loop.call("How is it?")
        # Before Python 3.11.4 a timeout names what it came of as its context alone.
        assert late.value.__context__ is not None
        left = late.value.__context__.__cause__
        assert isinstance(left, CallCancelled)
        assert left.response.terminal_code is Ending.USER_CANCEL

    asyncio.run(story())
