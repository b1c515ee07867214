"""What a tool, its check or a person said of a call stands in the response, also after everything is known."""

import asyncio
from typing import Any, Literal

import pytest

from remit import AgentLoop, tool
from remit.assemble import system_in_memory
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, ToolCallMade
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.results.notices import HAPPENED
from remit.tool.declare.decorator import Tool

PAY: JsonObject = {"tool_calls": [{"name": "pay", "arguments": {"to": "bob"}}]}
SAID = "ConnectionError: peer reset"
NOT_DONE = f"TOOL_EXECUTION_FAILED: {SAID}"


def made_by(pay: Tool, *, happened: bool = True) -> ToolCallMade:
    """The call, once it was approved and everybody who was asked about it has answered."""

    async def play() -> ToolCallMade:
        async with AgentLoop(ScriptedEngine([PAY, {"text": "Done."}]), tools=[pay], system=system_in_memory()) as agent:
            response = await agent.chat("Pay bob.")
            assert response.waiting_for is not None
            response = await agent.approve(response.waiting_for.packet_ids[0], by="ada")
            if (waits := response.waiting_for) is not None:
                assert response.tool_calls_made[0].error == SAID
                answer = agent.approve if happened else agent.reject
                response = await answer(waits.packet_ids[0], by="ada")
            (made,) = response.tool_calls_made
            return made

    return asyncio.run(play())


@pytest.mark.parametrize(
    ("verify", "said"),
    [(lambda arguments, result: "books disagree", "books disagree"), (lambda a, r: False, "<lambda>")],
)
def test_what_its_check_objects_to_is_told_beside_what_a_call_returned(verify: Any, said: str) -> None:
    @tool(effect="external", verify=verify)
    def pay(to: str) -> str:
        """Pay a person."""
        return "receipt 991"

    made = made_by(pay)
    assert (made.status, made.result) == (CallStatus.FAILED, "receipt 991")
    assert said in made.error


@pytest.mark.parametrize(
    ("account", "happened", "status", "result"),
    [
        (False, True, CallStatus.FAILED, NOT_DONE),
        (True, True, CallStatus.COMMITTED, HAPPENED),
        (None, False, CallStatus.FAILED, NOT_DONE),
        (None, True, CallStatus.COMMITTED, HAPPENED),
    ],
    ids=["its tool says no", "its tool says yes", "a person says no", "a person says yes"],
)
def test_what_a_tool_said_stays_when_it_is_known_what_became_of_its_call(
    account: Any, *, happened: bool, status: CallStatus, result: str
) -> None:
    @tool(effect="external", reconcile=lambda key: account)
    def pay(to: str) -> Literal["paid"]:
        """Pay a person."""
        raise ConnectionError("peer reset")

    made = made_by(pay, happened=happened)
    assert (made.status, made.result, made.error) == (status, result, SAID)
