"""Whole runs on a server that speaks chat completions: two rounds of parallel calls, through the agent and the command."""

import json
from pathlib import Path
from typing import Any

import pytest

from remit.agents.agent_loop import AgentLoop
from remit.core.failure import Ending
from remit.tool.declare.decorator import tool
from tests.conformance.chat_server import Call, Peer, served
from tests.e2e.command import Remit

STOCK = {"tea": 3, "milk": 0, "sugar": 7, "lemons": 2}

TOOLS = f"""
from remit import tool

@tool(effect="read")
def in_stock(item: str) -> int:
    "How many there are."
    return {STOCK}[item]
"""


@tool(effect="read")
def in_stock(item: str) -> int:
    """How many there are."""
    return STOCK[item]


async def keeps_shop(call: Call, peer: Peer) -> None:
    returned = [message for message in call.body["messages"] if message["role"] == "tool"]
    if call.last == "Thanks.":
        await peer.says("You are ", "welcome.")
    elif len(returned) == 4:
        await peer.says("There is no milk, ", "and all else.")
    else:
        await proposes(peer, ["tea", "milk"] if not returned else ["sugar", "lemons"])


async def proposes(peer: Peer, items: list[str]) -> None:
    """A call for each, in pieces that alternate."""
    await peer.begin()
    texts = [json.dumps({"item": item}) for item in items]
    for index, item in enumerate(items):
        start = {"index": index, "id": f"call_{item}", "type": "function", "function": {"name": "in_stock"}}
        await peer.delta({"tool_calls": [start]})
    for half in (slice(None, 6), slice(6, None)):
        pieces = [{"index": index, "function": {"arguments": text[half]}} for index, text in enumerate(texts)]
        await peer.delta({"tool_calls": pieces})
    await peer.delta({}, "tool_calls")
    await peer.usage(30, 20)
    await peer.done()


def returned(calls: list[Call]) -> dict[str, str]:
    """What the tools returned, as the server was told with its last call."""
    messages: list[dict[str, Any]] = calls[-1].body["messages"]
    return {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}


ALL_RETURNED = {f"call_{item}": str(count) for item, count in STOCK.items()}


@pytest.mark.req("1.11")
def test_an_agent_makes_two_rounds_of_parallel_calls_and_goes_on_in_another_loop(tmp_path: Path) -> None:
    with served(keeps_shop) as server:
        agent = AgentLoop(f"openai:tiny?url={server.url}", tools=[in_stock], home=tmp_path)
        response = agent.chat_sync("What is missing?")
        assert (response.terminal_code, response.content) == (Ending.SUCCESS, "There is no milk, and all else.")
        assert returned(server.calls) == ALL_RETURNED
        assert [tool["function"]["name"] for tool in server.calls[0].body["tools"]] == ["in_stock"]
        assert agent.chat_sync("Thanks.").content == "You are welcome."


@pytest.mark.slow
def test_the_command_runs_on_a_server_that_its_engine_names(tmp_path: Path) -> None:
    remit = Remit(tmp_path)
    remit.write(tools=TOOLS)
    with served(keeps_shop) as server:
        engine = f"openai:tiny?url={server.url}"
        answer = remit("run", "What is missing?", "--engine", engine, "--tools", "tools.py", "--json")
        assert (answer.exit_code, answer.err) == (0, "")
        assert answer.values["terminal_code"] == Ending.SUCCESS
        assert answer.values["content"] == "There is no milk, and all else."
        assert returned(server.calls) == ALL_RETURNED


@pytest.mark.slow
def test_the_command_says_what_to_do_when_nobody_serves_the_model(tmp_path: Path) -> None:
    remit = Remit(tmp_path)
    with served(keeps_shop) as server:
        engine = f"openai:tiny?url={server.url}"
    answer = remit("run", "What is missing?", "--engine", engine)
    assert answer.exit_code == 1
    assert "nothing answers at" in answer.out + answer.err
    assert "Traceback" not in answer.out + answer.err
