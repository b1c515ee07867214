"""The log of tool calls that a caller is given: every call, in its order, with all that was said."""

import asyncio
from typing import Any

import pytest

from remit import AgentLoop, PlanExecutor, Step, SystemResponse, ToolHandler, tool
from remit.assemble import system_in_memory
from remit.core.journal.storage import BlobMissing
from remit.core.record import BlobRef, JsonObject
from remit.core.run.contract import CallStatus
from remit.core.work.plan import StepType
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.views.calls_made import calls_made
from remit.orchestrate.facts.texts import RESULT_SHOWN_BYTES_MAX
from tests.unit.orchestrate.house import calls, helper
from tests.unit.orchestrate.stage import play

LONG = "a line of some length, " * 100


@tool(effect="read")
def first(text: str = "") -> str:
    """Say a lot."""
    return LONG + text


@tool(effect="read")
def second() -> str:
    """Say little."""
    return "second"


@tool(effect="read")
def last() -> str:
    """Say the last word."""
    return "last"


@tool(effect="read")
def burn() -> str:
    """Fail."""
    raise OSError("disk on fire")


@tool(effect="read")
def flood() -> str:
    """Say more than anybody is shown."""
    return "x" * (RESULT_SHOWN_BYTES_MAX + 1)


def asked(*replies: JsonObject) -> SystemResponse:
    tools = [first, second, burn, flood, helper]
    return play(AgentLoop(ScriptedEngine(replies), tools=tools, system=system_in_memory()).chat("please"))


@pytest.mark.req("0.5")
def test_a_result_and_arguments_longer_than_a_turn_holds_are_given_in_full() -> None:
    (made,) = asked(calls("first", text=LONG), {"text": "done"}).tool_calls_made
    assert (made.result, made.arguments) == (LONG + LONG, {"text": LONG})


@pytest.mark.req("0.5")
def test_a_result_beyond_what_is_shown_is_its_beginning_with_the_digest_of_the_whole() -> None:
    (made,) = asked(calls("flood"), {"text": "done"}).tool_calls_made
    assert isinstance(made.result, str)
    assert made.result.startswith("x" * RESULT_SHOWN_BYTES_MAX)
    assert "the whole result is kept as " in made.result


@pytest.mark.req("0.5")
def test_a_call_that_failed_tells_the_words_of_the_tool() -> None:
    (made,) = asked(calls("burn"), {"text": "done"}).tool_calls_made
    assert (made.status, made.code) == (CallStatus.FAILED, "TOOL_EXECUTION_FAILED")
    assert "disk on fire" in made.error
    assert made.result == f"{made.code}: {made.error}"


@pytest.mark.req("0.5")
def test_a_refused_call_tells_its_arguments_in_full_and_why() -> None:
    (made,) = asked(calls("nobody", text=LONG), {"text": "done"}).tool_calls_made
    assert (made.status, made.result, made.arguments) == (CallStatus.REFUSED, "TOOL_NOT_FOUND", {"text": LONG})
    assert "nobody" in made.error


@pytest.mark.req("0.5")
def test_calls_of_one_answer_stand_as_the_model_proposed_them_refused_ones_among_them() -> None:
    names = ("nobody", "first", "stranger", "second")
    proposed: JsonObject = {"tool_calls": [{"name": name, "arguments": {}} for name in names]}
    said = asked(proposed, calls("first", text="again"), {"text": "done"})
    assert [call.name for call in said.tool_calls_made] == [*names, "first"]


@pytest.mark.req("0.5")
def test_calls_of_steps_and_of_their_children_stand_in_the_order_of_the_plan() -> None:
    engine = ScriptedEngine([calls("first"), {"text": "found"}])
    handlers: dict[str, Any] = {
        StepType.INFER: AgentLoop(engine, tools=[first]),
        StepType.TOOL: ToolHandler([second, last]),
    }
    steps = [
        Step("before", StepType.TOOL, {}, tool="second"),
        Step("think", StepType.INFER, "please"),
        Step("after", StepType.TOOL, {}, tool="last"),
    ]
    result = PlanExecutor(handlers, system=system_in_memory()).execute_sync(steps)
    assert [call.name for call in result.response.tool_calls_made] == ["second", "first", "last"]


@pytest.mark.req("0.5")
def test_what_a_delegated_run_called_stands_after_the_call_that_delegated() -> None:
    of_child: list[JsonObject] = [{"when": '"task"', **calls("first")}, {"when": "^a line", "text": "seen"}]
    said = asked(*of_child, calls("second"), calls("helper", task="look"), calls("burn"), {"text": "done"})
    assert [call.name for call in said.tool_calls_made] == ["second", "helper", "first", "burn"]
    assert said.tool_calls_made[1].result == "seen"


def test_a_text_that_was_deleted_is_named_by_its_digest() -> None:
    async def story() -> None:
        system = system_in_memory()
        engine = ScriptedEngine([calls("first", text=LONG), {"text": "done"}])
        said = await AgentLoop(engine, tools=[first], system=system).chat("please")
        state = await system.state_of(said.run_id)
        (named,) = calls_made(state)
        assert isinstance(named.result, BlobRef)
        assert set(named.arguments) == {"blob", "size_bytes"}

        async def gone(digest: bytes) -> bytes:
            raise BlobMissing(digest)

        system.store.blobs.get = gone  # type: ignore[method-assign]  # as after the texts of a run were deleted
        assert (await system.result(said.run_id)).tool_calls_made == (named,)

    play(story())


@pytest.mark.req("0.5")
def test_calls_of_children_beside_each_other_stand_in_the_order_in_which_they_began() -> None:
    has_begun, has_passed = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def mark(at: str) -> str:
        """Mark a place; the first child is slow."""
        if at == "b1":
            has_begun.set()
        if at == "a1":
            await has_begun.wait()
            # Another millisecond begins.
            asyncio.get_running_loop().call_later(0.005, has_passed.set)
            await has_passed.wait()
        return f"marked {at}"

    replies: list[JsonObject] = [
        {"when": "do A", **calls("mark", at="a1")},
        {"when": "do B", **calls("mark", at="b1")},
        {"when": "marked a1", **calls("mark", at="a2")},
        {"when": "marked b1", "text": "B"},
        {"when": "marked a2", "text": "A"},
        {"tool_calls": [{"name": "helper", "arguments": {"task": f"do {name}"}} for name in "AB"]},
        {"text": "done"},
    ]
    agent = AgentLoop(ScriptedEngine(replies), tools=[mark, helper], system=system_in_memory())
    said = play(agent.chat("please"))
    assert [made.arguments.get("at", "") for made in said.tool_calls_made] in (
        ["", "", "a1", "b1", "a2"],
        ["", "", "b1", "a1", "a2"],
    )
