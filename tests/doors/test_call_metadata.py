"""What a caller gives along with a request reaches every call of every tool, its children's and its filters' among them."""

import asyncio
from copy import deepcopy
from typing import Any

import pytest

import remit
from remit import CallMetadata, Kit, Registry, ScriptedEngine, ToolCall, delegate, tool
from remit.core.failure import Ending
from remit.wire.inbound import ROUTE_KEY, start_of_task
from remit.wire.message_records import TaskMessage
from remit.wire.payloads import delivered
from tests.doors.desk import call

TASK = b"""{"task_id": "t", "role": "general", "model": "", "prompt": "Note it, and have it noted.", "channel_type": "cli",
"channel_id": "tty1", "user_id": "ann", "metadata": {"project": "remit", "tickets": [7]}}"""


@pytest.mark.req("3.20")
def test_the_metadata_of_a_task_reaches_every_tool_call_in_a_copy_of_its_own() -> None:
    seen: list[dict[str, Any]] = []

    @tool(effect="read", network=False)
    def note(text: str, about: CallMetadata) -> str:
        """Note a text."""
        seen.append({"by": text, **deepcopy(about)})
        about["tickets"].append(8)
        return text

    @tool(effect="read", network=False)
    async def note_later(text: str, about: CallMetadata) -> str:
        """Note a text on the loop."""
        seen.append({"by": text, **deepcopy(about)})
        return text

    def look(proposed: ToolCall) -> None:
        seen.append({"by": f"filter of {proposed.name}", **proposed.metadata})

    lease = {"input_tokens": 20_000, "output_tokens": 5_000, "tool_calls": 5, "steps": 20}
    helper = delegate("helper", description="Have it noted.", lease=lease)
    engine = ScriptedEngine(
        [
            {"when": "sub task", **call("note", text="child")},
            {"when": "child", "text": "noted below"},
            {"when": "Note it", **call("note", text="a")},
            {"when": "^a$", **call("note_later", text="b")},
            {"when": "^b$", **call("helper", task="sub task")},
            {"text": "done"},
        ]
    )
    kit = Kit({"scripted": engine}, Registry([note, note_later, helper]), filters={"look": look})
    task = delivered("agent.task.t", TASK)
    assert isinstance(task, TaskMessage)

    async def main() -> remit.SystemResponse:
        async with remit.open(memory=True) as system:
            return await system.run(start_of_task(task).request, kit)

    response = asyncio.run(main())
    assert response.terminal_code is Ending.SUCCESS, response
    assert [one["project"] for one in seen] == ["remit"] * len(seen)
    assert [one["tickets"] for one in seen] == [[7]] * len(seen)
    assert all(one[ROUTE_KEY]["channel_id"] == "tty1" for one in seen)
    told = ["filter of note", "a", "filter of note_later", "b", "filter of helper", "filter of note", "child"]
    assert [one["by"] for one in seen] == told
    metadata = start_of_task(task).request.metadata
    assert {key: value for key, value in metadata.items() if key != ROUTE_KEY} == {"project": "remit", "tickets": [7]}
