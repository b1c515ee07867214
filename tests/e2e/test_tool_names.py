"""A tool whose name no vendor takes is called by another on the wire, and by its own everywhere a person looks."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.core.failure import EXIT_OK, EXIT_WAITING
from tests.conformance.chat_server import Call, Peer, Play, served
from tests.conformance.messages_server import Messages, base_of
from tests.e2e.command import Remit, remit_in
from tests.e2e.house import calls, says
from tests.e2e.test_guard_cli import guarding

NAME, WIRE = "crm.people/remove one", "crm_people_remove_one"
TOOL_FILE = f"""
from remit import tool

@tool(name={NAME!r}, effect="write", destructive=True, verify=lambda arguments, result: arguments["who"] in result)
def remove(who: str) -> str:
    \"\"\"Remove a person.\"\"\"
    return f"removed {{who}}"

@tool(name="crm.people", effect="read")
def people() -> str:
    \"\"\"List people.\"\"\"
    return "ann"
"""
ARGUMENTS = json.dumps({"who": "ann"})


async def openai_play(call: Call, peer: Peer) -> None:
    if call.body["messages"][-1]["role"] == "tool":
        await peer.says("Done.")
        return
    await peer.begin()
    await peer.delta({"tool_calls": [{"index": 0, "id": "c", "function": {"name": WIRE, "arguments": ARGUMENTS}}]})
    await peer.delta({}, "tool_calls")
    await peer.usage(7, 7)
    await peer.done()


async def written_play(call: Call, peer: Peer) -> None:
    """The same as text, in a notation that a server left as it was."""
    if call.body["messages"][-1]["role"] == "tool":
        await peer.says("Done.")
        return
    await peer.says(f'<tool_call>{{"name": "{WIRE}", "arguments": {ARGUMENTS}}}</tool_call>')


async def anthropic_play(call: Call, peer: Peer) -> None:
    said = Messages(peer)
    await said.begin()
    if any(block["type"] == "tool_result" for block in call.body["messages"][-1]["content"]):
        await said.text("Done.")
        await said.stop("end_turn", 1)
        return
    await said.call("c", WIRE, ARGUMENTS)
    await said.stop("tool_use", 7)


@pytest.fixture
def remit(tmp_path: Path) -> Iterator[Remit]:
    with remit_in(tmp_path) as remit:
        remit.write(TOOL_FILE)
        yield remit


def names_of(body: object) -> set[str]:
    """Every name of a tool in a request, wherever it stands."""
    found: set[str] = set()
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("name"), str):
                found.add(value["name"])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


@pytest.mark.parametrize(
    ("vendor", "play"), [("openai", openai_play), ("openai", written_play), ("anthropic", anthropic_play)]
)
def test_vendors_hear_a_name_they_take_and_people_read_the_tools_own(remit: Remit, vendor: str, play: Play) -> None:
    with served(play) as server:
        url = server.url if vendor == "openai" else base_of(server.url)
        tools = str(remit.folder / "tools.py")
        engine = f"{vendor}:tiny?url={url}"
        waiting = remit.here("run", "Remove ann.", "--engine", engine, "--tools", tools, "--json")
        assert waiting.exit_code == EXIT_WAITING, waiting
        run_id = waiting.values["run_id"]
        asked = remit.here("approvals", "--json").out
        assert NAME in asked
        assert WIRE not in asked
        assert remit.here("approve", run_id).exit_code == EXIT_OK
        assert set.union(*(names_of(call.body) for call in server.calls)) == {WIRE, "crm_people"}
    shown = remit.here("show", run_id, "--json").out
    assert NAME in shown
    assert WIRE not in shown


def test_a_boundary_and_a_script_know_a_tool_by_its_own_name(remit: Remit) -> None:
    remit.write(replies=[calls(NAME, {"who": "ann"}), says("I may not.")])
    boundary = remit.folder / "own.yaml"
    boundary.write_text("name: own\ntools:\n  allowed: [crm.people]\n")
    refused = remit.run_here("--boundary", str(boundary))
    assert "is outside" in refused.out or "PERMISSION_DENIED" in refused.out, refused
    boundary.write_text(f"name: own\ntools:\n  allowed: [crm.people, {NAME}]\n")
    assert remit.run_here("--boundary", str(boundary)).exit_code == EXIT_WAITING


def test_the_guard_takes_names_with_dots(tmp_path: Path) -> None:
    tool = {"name": "files.read", "effect": "read", "parameters": {"type": "object"}}
    with guarding(tmp_path / "store") as guard:
        assert guard.ask({"op": "start", "run": "r", "prompt": "Read it.", "tools": [tool]})["ok"]
        answer = guard.ask({"op": "call", "run": "r", "id": "1", "tool": "files.read", "args": {}})
        assert answer["decision"] == "allow", answer
