"""What a run waits for, told in full: enough for a page on which a person decides, without reading a store."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import AgentLoop, Effect, ScriptedEngine, SystemResponse, delegate, kit_of, tool
from tests import warm
from tests.doors.desk import Desk, call

QUEUES = "queues:\n" + "".join(f"  - name: {name}\n    answered_by: [ann, bob]\n" for name in ("user", "operator"))
TOOLS = '''
from remit import tool


@tool(effect="external")
def order(item: str) -> str:
    """Order more."""
    return item
'''
LONG = "x" * 5000


@tool(effect="external")
def order(item: str, note: str = "") -> str:
    """Order more."""
    return f"ordered {item} {len(note)}"


def asked(folder: Path, *calls: dict[str, Any]) -> SystemResponse:
    (folder / "queues.yaml").write_text(QUEUES, encoding="utf-8")

    async def story() -> SystemResponse:
        async with remit.open(folder) as system:
            engine = ScriptedEngine([*calls, {"text": "Done."}])
            return await (await system.start("Order a lamp.", kit_of(engine, [order])))

    return asyncio.run(story())


def test_a_response_that_waits_holds_what_is_asked_and_who_may_answer(tmp_path: Path) -> None:
    waiting = asked(tmp_path, call("order", item="lamp", note=LONG)).waiting_for
    assert waiting is not None
    (packet,) = waiting.packets
    assert (packet.id,) == waiting.packet_ids
    assert (packet.tool, packet.effect) == ("order", Effect.EXTERNAL)
    assert packet.arguments == {"item": "lamp", "note": LONG}
    assert packet.reasons
    assert packet.expires_at_ms == waiting.expires_at_ms > packet.asked_at_ms > 0
    assert packet.answered_by == ("ann", "bob")
    assert packet.ending is waiting.ending
    assert packet.packet


def test_what_a_child_asks_stands_whole_in_the_response_of_its_parent(tmp_path: Path) -> None:
    lease = {"input_tokens": 20_000, "output_tokens": 5_000, "tool_calls": 5, "steps": 20}
    helper = delegate("helper", description="Help.", lease=lease)
    replies = [call("helper", task="order"), call("order", item="lamp"), {"text": "Done."}]
    agent = AgentLoop(ScriptedEngine(replies), tools=[order, helper], home=tmp_path)
    waiting = agent.chat_sync("Order a lamp.").waiting_for
    assert waiting is not None
    assert [packet.id for packet in waiting.packets] == list(waiting.packet_ids)
    assert waiting.packets[0].arguments == {"item": "lamp"}


def test_the_json_of_a_command_holds_the_same(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    engine = Desk(tmp_path).engine(call("order", item="lamp"))
    command = ["run", "Order a lamp.", "--engine", engine, "--tools", str(tmp_path / "tools.py"), "--json"]
    environment = {**os.environ, "REMIT_HOME": str(tmp_path / "store"), "XDG_CONFIG_HOME": str(tmp_path)}
    done = warm.run([sys.executable, "-m", "remit", *command], env=environment, capture_output=True)
    found = json.loads(done.stdout)["waiting_for"]
    (packet,) = found["packets"]
    assert packet["id"] == found["packet_ids"][0]
    assert (packet["tool"], packet["arguments"]) == ("order", {"item": "lamp"})
    assert packet["reasons"]
    assert packet["expires_at_ms"] == found["expires_at_ms"]


def test_words_are_no_yes_to_a_call(tmp_path: Path) -> None:
    kept: list[str] = []

    @remit.tool(effect="write")
    def keep(note: str) -> bool:
        """Keep a note."""
        kept.append(note)
        return True

    async def story() -> None:
        engine = remit.ScriptedEngine(
            [{"tool_calls": [{"name": "keep", "arguments": {"note": "x"}}]}, {"text": "Kept."}]
        )
        async with remit.AgentLoop(engine, tools=[keep], home=tmp_path) as agent:
            run = await agent.start("Keep x.")
            await run
            with pytest.raises(remit.RemitError, match="WRONG_PACKET"):
                await run.answer("no, do not", by="zoe")
            assert kept == []
            await run.approve(by="zoe")
            assert kept == ["x"]

    asyncio.run(story())
