"""A program that was killed in the middle of an exchange is started again, and goes on with it."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from remit import AgentLoop, RequestRejected, ScriptedEngine, SpecializedLoop, SystemResponse, tool
from tests import warm
from tests.doors.desk import MOOD

PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path
from typing import Any
from remit import AgentLoop, ScriptedEngine, tool

LOG = Path(sys.argv[2])


@tool(effect="read", network=False)
def look(item: str) -> str:
    '''Look something up.'''
    with LOG.open("a") as log:
        log.write(item)
    if sys.argv[3] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return "three"


async def main() -> None:
    replies = [{"tool_calls": [{"name": "look", "arguments": {"item": "lamp"}}]}, {"text": "Three."}]
    if sys.argv[3] == "resume":
        replies = [{"text": "Three."}]
    async with AgentLoop(ScriptedEngine(replies), tools=[look], session_id="desk", home=sys.argv[1]) as agent:
        if sys.argv[3] == "kill":
            await agent.chat("How many lamps?")
        response = await agent.resume()
        print(response.terminal_code, response.content, agent.messages[-1].content)


asyncio.run(main())
"""


def test_an_agent_goes_on_with_the_exchange_that_a_killed_process_left(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "store"), str(tmp_path / "log")]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    killed = warm.run([*command, "kill"], env=environment, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    agent = AgentLoop(ScriptedEngine([{"text": "No."}]), session_id="desk", home=tmp_path / "store")
    with pytest.raises(RequestRejected, match=r"AgentLoop\.resume\(\)") as busy:
        agent.chat_sync("Once more?")
    assert busy.value.code == "SESSION_BUSY"
    done = warm.run([*command, "resume"], env=environment, capture_output=True, text=True)
    assert done.stdout == "SUCCESS Three. Three.\n", done.stderr


def test_an_agent_without_an_open_exchange_has_nothing_to_resume(tmp_path: Path) -> None:
    async def story() -> None:
        async with AgentLoop(ScriptedEngine([{"text": "Hello."}]), home=tmp_path) as agent:
            await agent.chat("Hello!")
            with pytest.raises(RequestRejected, match="NOTHING_OPEN"):
                await agent.resume()

    asyncio.run(story())


def test_a_specialized_loop_resumes_its_own_calls_and_refuses_others(tmp_path: Path) -> None:
    @tool(effect="external")
    def order(item: str) -> str:
        """Order more."""
        return item

    async def story() -> None:
        replies: list[dict[str, Any]] = [
            {"tool_calls": [{"name": "order", "arguments": {"item": "a"}}]},
            {"text": "ok"},
            {"text": '{"mood":"good"}'},
        ]
        async with SpecializedLoop(ScriptedEngine(replies), schema=MOOD, tools=[order], home=tmp_path) as loop:
            asked = await loop.call("Order.")
        async with SpecializedLoop(ScriptedEngine(replies[1:]), schema=MOOD, tools=[order], home=tmp_path) as again:
            resumed = await again.resume(asked.run_id)
            assert resumed.waiting_for is not None
            done = await again.approve(resumed.waiting_for.packet_ids[0], by="ada")
            assert done.value == {"mood": "good"}
            with pytest.raises(RequestRejected, match="RUN_NOT_STRUCTURED"):
                await again.resume((await chatted()).run_id)

    async def chatted() -> SystemResponse:
        async with AgentLoop(ScriptedEngine([{"text": "Hello."}]), home=tmp_path) as agent:
            return await agent.chat("Hello!")

    asyncio.run(story())
