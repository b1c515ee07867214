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
    ModelInfo,
    ModelPlanner,
    PlanExecutor,
    Price,
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


def inner(kind: str, folder: Path) -> Any:
    """What gives a result that failed, or waits, of every pattern and every way to have it."""
    words, home = Panel(FAILS), folder / kind
    match kind:
        case "vote":
            return lambda said: RedundantLoop(words, schema=MOOD, home=home).call(said)
        case "plan":
            return lambda said: PlanExecutor({"ask": InferHandler(words)}, home=home).execute([Step("a", "ask", said)])
        case "shaped":
            return lambda said: SpecializedLoop(Panel("no JSON"), schema=MOOD, home=home).call(said)
        case "task":
            return lambda said: asyncio.create_task(AgentLoop(words, home=home).chat(said))
        case "thread":
            return lambda said: asyncio.to_thread(AgentLoop(words, home=home).chat_sync, said)
        case _:
            return agents(folder)[kind].chat


INNER = ["fails", "waits", "vote", "plan", "shaped", "task", "thread"]


def lost(result: Any) -> Any:
    return result.outputs if hasattr(result, "outputs") else result.content


@pytest.mark.req("2.29")
@pytest.mark.parametrize("kind", INNER)
@pytest.mark.parametrize("is_step", [True, False], ids=["as step", "as value"])
def test_a_function_that_hands_on_the_words_of_a_run_that_came_to_nothing_fails_its_step(
    kind: str, tmp_path: Path, *, is_step: bool
) -> None:
    ask = inner(kind, tmp_path)

    async def work(step: Step) -> Any:
        said = lost(await ask(step.input))
        return step.with_output(said) if is_step else said

    executor = PlanExecutor({"work": work}, home=tmp_path / "store")
    error = executor.execute_sync([Step("a", "work", "Erase a.")]).response.error
    assert error is not None
    assert "raise_for_error()" in error.message


@pytest.mark.parametrize("kind", INNER)
def test_a_function_that_looks_at_how_an_inner_run_ended_may_go_on_without_it(kind: str, tmp_path: Path) -> None:
    ask = inner(kind, tmp_path)

    async def work(step: Step) -> Any:
        result = await ask(step.input)
        return "without it" if result.error or result.terminal_code != "SUCCESS" else lost(result)

    result = PlanExecutor({"work": work}, home=tmp_path / "store").execute_sync([Step("a", "work", "Erase a.")])
    assert (result.terminal_code, result.outputs) == (Ending.SUCCESS, {"a": "without it"})


@pytest.mark.parametrize("way", ["stream", "handle", "events"])
def test_pieces_and_handles_of_a_run_that_came_to_nothing_fail_a_step_alike(way: str, tmp_path: Path) -> None:
    agent = agents(tmp_path)["fails"]

    async def work(step: Step) -> str:
        if way == "stream":
            return "".join([piece.text async for piece in agent.stream(step.input)])
        run = await agent.start(step.input)
        return (await run).content if way == "handle" else str([event.kind async for event in run])

    error = PlanExecutor({"work": work}, home=tmp_path / "store").execute_sync([Step("a", "work", "hi")]).error
    assert error is not None
    assert error.code == FAILS


def test_a_run_that_failed_and_was_tried_again_with_success_fails_no_step(tmp_path: Path) -> None:
    agent = AgentLoop(
        Desk(tmp_path).engine(call("erase", word="a"), {"text": "gone"}), tools=[erase], home=tmp_path / "inner"
    )

    async def work(step: Step) -> str:
        asked = await agent.chat(step.input)
        assert asked.waiting_for is not None
        return (await agent.approve(asked.waiting_for.packet_ids[0], by="ann")).content

    result = PlanExecutor({"work": work}, home=tmp_path / "store").execute_sync([Step("a", "work", "Erase a.")])
    assert result.raise_for_error().outputs == {"a": "gone"}


@pytest.mark.parametrize("kind", ["vote", "plan"])
def test_results_of_votes_and_plans_raise_and_tell_as_their_responses_do(kind: str, tmp_path: Path) -> None:
    result = asyncio.run(inner(kind, tmp_path)("hi"))
    assert (result.error, result.terminal_code) == (result.response.error, result.response.terminal_code)
    assert result.waiting_for is None
    with pytest.raises(RunFailed):
        result.raise_for_error()


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


class Named(Panel):
    """A panel with a name of its own."""

    def __init__(self, name: str, *replies: str) -> None:
        super().__init__(*replies)
        self.name = name

    def model_info(self) -> ModelInfo:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return ModelInfo(self.name, 8_192, Price(0, 0))


@pytest.mark.parametrize("kind", ["infer", "loop", "shaped", "vote"])
def test_the_model_that_failed_is_named_and_no_other_one_of_the_plan(kind: str) -> None:
    fine, broken = Named("fine", "fine"), Named("broken", "INFERENCE_ENGINE_ERROR")
    works: dict[str, Any] = {
        "infer": InferHandler(broken),
        "loop": AgentLoop(broken),
        "shaped": SpecializedLoop(broken, schema=MOOD),
        "vote": RedundantLoop(broken, schema=MOOD),
    }
    plans = PlanExecutor({"first": InferHandler(fine), "then": works[kind]}, system=system_in_memory())
    error = plans.execute_sync([Step("a", "first", "hi"), Step("b", "then")]).error
    assert error is not None
    assert error.details == {"step": "b", "model": "broken"}


def test_a_planner_that_fails_names_its_model_and_what_it_came_of_and_no_tool() -> None:
    broken = Named("broken", "INFERENCE_ENGINE_ERROR")
    plans = PlanExecutor({"x": InferHandler(Named("a"))}, planner=ModelPlanner(broken), system=system_in_memory())
    error = plans.execute_sync(prompt="Do it.").error
    assert error is not None
    assert error.caused_by is not None
    assert (error.details, error.caused_by.code) == ({"model": "broken"}, "INFERENCE_ENGINE_ERROR")


def test_a_planned_step_and_a_step_of_code_blame_no_model_that_they_do_not_know(tmp_path: Path) -> None:
    fine, broken = Named("fine", '{"steps": [{"name": "a", "type": "then", "input": "x"}]}'), Panel(FAILS)

    async def ask(step: Step) -> Any:
        return await AgentLoop(broken, home=tmp_path).chat("hi")

    plans = PlanExecutor(
        {"then": InferHandler(broken), "x": InferHandler(fine)}, planner=ModelPlanner(fine), system=system_in_memory()
    )
    asks = PlanExecutor({"x": InferHandler(fine), "ask": ask}, system=system_in_memory())
    errors = [plans.execute_sync(prompt="Do it.").error, asks.execute_sync([Step("a", "ask", "x")]).error]
    assert [error is not None and "model" in error.details for error in errors] == [False, False]


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
