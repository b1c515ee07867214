"""What stopped newcomers in Python: answers bound to what was shown, and an engine from its spec."""

import asyncio
from pathlib import Path

import pytest

import remit
from remit import (
    AgentLoop,
    Message,
    PlanExecutor,
    RequestRejected,
    Role,
    Step,
    SystemRequest,
    ToolCall,
    ToolHandler,
    assistant_message,
    kit_of,
    system_message,
    tool,
    tool_message,
    user_message,
)
from tests.doors.desk import Desk, call


@tool(effect="write", destructive=True)
def erase(word: str) -> str:
    """Erase a word."""
    return "gone"


def test_a_yes_names_the_version_that_was_shown_and_another_one_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async def story() -> None:
        engine = Desk(tmp_path).engine(call("erase", word="a"), {"text": "done"})
        async with AgentLoop(engine, tools=[erase], home=tmp_path / "store") as agent:
            waiting = (await agent.chat("Erase a.")).waiting_for
            assert waiting is not None
            (asked,) = waiting.packets
            for other in ("0" * 64, "", " ", asked.packet[:16]):
                for say in (agent.approve, agent.reject):
                    with pytest.raises(RequestRejected) as refused:
                        await say(asked.id, by="bea", packet=other)
                    assert refused.value.code == "PACKET_CHANGED"
                    assert refused.value.details == {"packet": asked.packet, "answered": other}
                    assert "show that to the person" in refused.value.message
            assert (await agent.approve(asked.id, by="bea", packet=asked.packet)).content == "done"

    asyncio.run(story())


def test_a_plan_is_answered_by_the_version_that_was_shown(tmp_path: Path) -> None:
    async def story() -> None:
        async with PlanExecutor({"tool": ToolHandler([erase])}, home=tmp_path) as plans:
            waiting = (await plans.execute([Step("do", "tool", {"word": "a"}, tool="erase")])).response.waiting_for
            assert waiting is not None
            with pytest.raises(RequestRejected, match="PACKET_CHANGED"):
                await plans.approve(waiting.packets[0].id, by="bea", packet="")
            done = await plans.approve(waiting.packets[0].id, by="bea", packet=waiting.packets[0].packet)
            assert done.output == "gone"

    asyncio.run(story())


def test_a_handle_of_a_run_is_answered_by_the_version_that_was_shown(tmp_path: Path) -> None:
    async def story() -> None:
        engine = Desk(tmp_path).engine(call("erase", word="a"), {"text": "done"})
        async with AgentLoop(engine, tools=[erase], home=tmp_path / "store") as agent:
            run = await agent.start("Erase a.")
            waiting = (await run.result()).waiting_for
            assert waiting is not None
            with pytest.raises(RequestRejected, match="PACKET_CHANGED"):
                await run.approve(by="bea", packet="")
            assert (await run.approve(by="bea", packet=waiting.packets[0].packet)).content == "done"

    asyncio.run(story())


def test_an_engine_is_made_of_its_spec(tmp_path: Path) -> None:
    engine = remit.engine(Desk(tmp_path).engine({"text": "hello"}))
    assert engine.model_info().name.startswith("scripted")
    assert AgentLoop(engine, home=tmp_path / "store").chat_sync("hi").content == "hello"
    with pytest.raises(RequestRejected):
        remit.engine("nothing:such")


@pytest.mark.req("1.7")
def test_a_message_has_the_fields_of_its_role_and_one_that_says_nothing_is_refused_at_the_door(tmp_path: Path) -> None:
    told = {
        "system": system_message("Be brief."),
        "user": user_message("Hi."),
        "assistant": assistant_message("", (ToolCall("c", "erase", {"word": "a"}),)),
        "tool": tool_message("c", "erase", "gone"),
    }
    assert {name: message.role.value for name, message in told.items()} == {name: name for name in told}
    assert (told["tool"].tool_call_id, told["tool"].name, told["user"].tool_calls) == ("c", "erase", ())

    async def story() -> None:
        engine = remit.engine(Desk(tmp_path).engine({"text": "hello"}))
        async with remit.open(memory=True) as system:
            for wrong in (user_message(""), tool_message("", "erase", "gone"), Message(Role.USER, "hi", name="bob")):
                with pytest.raises(RequestRejected, match="MESSAGE_INVALID"):
                    await system.run(SystemRequest((wrong,)), kit_of(engine))

    asyncio.run(story())
