"""A plan never succeeds over an agent that failed, and what it had finished is not lost with it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    CallCancelled,
    Ending,
    EngineFault,
    InferHandler,
    PlanExecutor,
    RedundantLoop,
    RunFailed,
    SpecializedLoop,
    Step,
    ToolHandler,
    system_in_memory,
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


@tool(effect="read", network=False)
def burn(word: str) -> str:
    """Look a word up on a disk that burns."""
    raise OSError("the disk is on fire")


@tool(effect="read", network=False)
async def doze(word: str) -> str:
    """Take longer than any step may."""
    await asyncio.Event().wait()
    return word


@tool(effect="read", network=False, timeout_ms=20)
async def nap(word: str) -> str:
    """Take longer than it says it may."""
    await asyncio.Event().wait()
    return word


async def dream(step: Step) -> str:
    await asyncio.Event().wait()
    return step.name


TOO_SLOW = "took longer than timeout_ms=20"
LONGER = "give the step a longer timeout_ms, or the plan's policy a longer timeout_per_step_ms"


@pytest.mark.parametrize(
    ("step", "code", "words"),
    [
        (Step("find", "look", {"word": "a"}, tool="burn"), "TOOL_EXECUTION_FAILED", ("the disk is on fire",)),
        (Step("find", "look", {"word": "a"}, tool="doze", timeout_ms=20), "TOOL_TIMEOUT", (TOO_SLOW, LONGER)),
        (Step("find", "look", {"word": "a"}, tool="nap"), "TOOL_TIMEOUT", (TOO_SLOW, "@tool(timeout_ms=…)")),
        (Step("find", "dream", "a", timeout_ms=20), "TOOL_TIMEOUT", (TOO_SLOW, LONGER)),
        (Step("find", "ask", "a", timeout_ms=20), "INFERENCE_ENGINE_ERROR", (TOO_SLOW, LONGER)),
    ],
    ids=["raises", "slow for its step", "slow for itself", "slow function", "slow model"],
)
def test_a_step_that_fails_tells_its_name_the_words_of_its_tool_and_its_limit(
    step: Step, code: str, words: tuple[str, ...]
) -> None:
    class Slow(Panel):
        async def infer(self, request: Any, on_chunk: Any = None) -> Any:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
            await asyncio.Event().wait()

    handlers: dict[str, Any] = {"look": ToolHandler([burn, doze, nap]), "dream": dream, "ask": InferHandler(Slow("a"))}
    error = PlanExecutor(handlers, system=system_in_memory()).execute_sync([step]).response.error
    assert error is not None
    assert error.code == code
    assert "find" in error.message
    assert not [said for said in words if said not in error.message]


def test_a_step_that_was_tried_again_in_vain_tells_what_its_tool_said() -> None:
    plans = PlanExecutor({"look": ToolHandler([burn])}, system=system_in_memory())
    error = plans.execute_sync([Step("find", "look", {"word": "a"}, tool="burn", retries=3)]).response.error
    assert error is not None
    assert error.caused_by is not None
    assert (error.caused_by.code, error.caused_by.details) == ("TOOL_EXECUTION_FAILED", {"tool": "burn"})
    assert "the disk is on fire" in error.caused_by.message


class Refused(Panel):
    """A model whose server refuses the key."""

    async def infer(self, request: Any, on_chunk: Any = None) -> Any:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        self.asked.append(request)
        raise EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "the key is refused", is_final=True)


@pytest.mark.parametrize("pattern", ["chat", "shaped", "vote", "plan"])
def test_what_would_fail_again_is_asked_once_and_called_not_retryable(pattern: str) -> None:
    model, system = Refused(""), system_in_memory()
    match pattern:
        case "chat":
            error = AgentLoop(model, system=system).chat_sync("hi").error
        case "shaped":
            error = SpecializedLoop(model, schema=MOOD, system=system).call_sync("hi").error
        case "vote":
            error = RedundantLoop(model, schema=MOOD, n=2, system=system).call_sync("hi").response.error
        case _:
            plans = PlanExecutor({"ask": InferHandler(model)}, system=system)
            error = plans.execute_sync([Step("one", "ask", "hi")]).response.error
    assert error is not None
    assert (error.category, error.retryable, len(model.asked)) == (
        "InferenceFailure",
        False,
        2 if pattern == "vote" else 1,
    )
    assert error.caused_by is None or not error.caused_by.retryable
