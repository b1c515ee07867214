"""Committed means verified, from the user's side: tools as people write them, and what their runs end as."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from remit import AgentLoop, Boundary, Budget, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending, RequestRejected
from remit.core.limits.boundary import Demanding, Unverified
from remit.core.limits.profiles import STANDARD
from remit.core.record import JsonObject, replace
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.work.goal import Goal, RequiredAction
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.authority.boundary_checks import TOOL_UNCHECKED
from remit.observe.views.sentence import sentence
from remit.tool.declare.decorator import Tool

DECLINED = "ERROR: card declined"


@dataclass
class Receipt:
    """What a payment service gives."""

    receipt: str


def pay_as(kind: Any, said: Any, **declared: Any) -> Tool:
    """A tool that pays, as a user would write it: a return type, and what comes back."""

    def pay(cents: int) -> Any:
        """Pay."""
        return said

    pay.__annotations__["return"] = kind
    return tool(**{"effect": "external", **declared})(pay)


def paid_with(pay: Tool, **terms: Any) -> tuple[SystemResponse, str]:
    """The response of a run that pays and claims it, with everybody's approval, and its one sentence."""

    async def play() -> tuple[SystemResponse, str]:
        script: list[JsonObject] = [{"tool_calls": [{"name": pay.name, "arguments": {"cents": 5}}]}, {"text": "Paid."}]
        system = system_in_memory()
        async with AgentLoop(ScriptedEngine(script), tools=[pay], system=system, **terms) as agent:
            response = await agent.chat("Pay 5.")
            if response.waiting_for is not None:
                response = await agent.approve(response.waiting_for.packet_ids[0], by="ada")
            return response, sentence((await system.archive.told(response.run_id)).explanation)

    return asyncio.run(play())


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (str, DECLINED),
        (str, "ok"),
        (Any, DECLINED),
        (None, None),
        (dict, {"error": "declined"}),
        (dict[str, str], {"error": "declined"}),
        (list, []),
        (bool, False),
        (Receipt | None, None),
    ],
)
def test_an_effect_that_nothing_could_refuse_is_observed_and_the_run_a_partial_success(kind: Any, said: Any) -> None:
    response, told = paid_with(pay_as(kind, said))
    assert response.terminal_code is Ending.PARTIAL_SUCCESS
    assert [call.status for call in response.tool_calls_made] == [CallStatus.OBSERVED]
    assert response.warnings == ("not verified: pay returned, and nothing could have refused it; declare `verify`",)
    assert "pay once [1 not verified]" in told
    assert "updated no state, since nothing was observed and verified" in told
    assert "leaving pay unverified" in told


@pytest.mark.parametrize(
    ("kind", "said", "verifier"),
    [
        (Receipt, Receipt("r-1"), {}),
        (int, 5, {}),
        (Literal["booked", "declined"], "booked", {}),
        (Annotated[str, Field(pattern="^r-[0-9]+$")], "r-1", {}),
        (str, "ok", {"verify": lambda arguments, result: result == "ok"}),
        (None, None, {"verify": lambda arguments, result: ""}),
    ],
)
def test_an_effect_that_something_could_have_refused_is_committed(kind: Any, said: Any, verifier: JsonObject) -> None:
    response, _ = paid_with(pay_as(kind, said, **verifier))
    assert response.terminal_code is Ending.SUCCESS
    assert [call.status for call in response.tool_calls_made] == [CallStatus.COMMITTED]


def test_a_read_that_returned_is_an_observation_that_nobody_calls_verified() -> None:
    response, told = paid_with(pay_as(str, "it is late", effect="read"))
    assert response.terminal_code is Ending.SUCCESS
    assert "updated its state from 1 observation (pay)" in told
    assert "verified" not in told
    assert "it answered and no effect was left uncommitted; nothing checked the answer" in told


def test_a_required_action_that_nothing_verified_was_not_done() -> None:
    goal = Goal("pay", required_actions=(RequiredAction("pay"),))
    response, _ = paid_with(pay_as(str, "ok"), goal=goal)
    assert response.terminal_code is Ending.VALIDATION_FAIL
    assert response.error is not None
    assert "required action pay: verified 0 of 1 times; it declares no `verify`" in response.error.message


def test_a_boundary_may_refuse_what_nothing_verifies_before_a_run_begins() -> None:
    strict = replace(STANDARD, name="strict", unverified=Unverified.REFUSE)
    with pytest.raises(RequestRejected) as refused:
        paid_with(pay_as(str, "ok"), boundary=strict)
    assert (refused.value.code, refused.value.details) == (TOOL_UNCHECKED, {"tools": ["pay"]})
    assert "nothing verifies what pay did, and boundary strict has unverified=refuse" in refused.value.message
    assert paid_with(pay_as(int, 5), boundary=strict)[0].terminal_code is Ending.SUCCESS


def test_a_boundary_may_enforce_what_a_category_demands() -> None:
    careful = replace(STANDARD, name="careful", demands=Demanding.ENFORCE)
    with pytest.raises(RequestRejected) as refused:
        paid_with(pay_as(int, 5, category="live_api"), boundary=careful)
    assert refused.value.code == TOOL_UNCHECKED
    assert "pay lacks control_args, which its category live_api demands" in refused.value.message
    declared = pay_as(int, 5, category="live_api", control_args={"cents": "amount"})
    assert paid_with(declared, boundary=careful)[0].terminal_code is Ending.SUCCESS


def test_a_tool_that_the_run_is_not_offered_keeps_nobody_from_beginning() -> None:
    strict = Boundary(name="strict", unverified=Unverified.REFUSE, allowed_tools=(), budget=Budget())
    response, _ = paid_with(pay_as(str, "ok"), boundary=strict)
    assert response.terminal_code is Ending.PERMISSION_DENIED
