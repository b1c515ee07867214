"""What `reconcile` tells of a call is shown to `verify` like any other result: from the user's side."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from remit import AgentLoop, System, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.journal.arrivals import Happened
from remit.core.run.contract import CallStatus, SystemResponse
from remit.inference.scripted.engine import ScriptedEngine
from remit.tool.call.outcomes import Reconciled


@dataclass
class Receipt:
    """What a payment gives."""

    ref: str


Verify = Callable[[Any, Any], Any]


def told(account: Any, verify: Verify, returns: Any = Receipt) -> tuple[SystemResponse, list[str], list[Any]]:
    """A payment that breaks and is reconciled: the response, what a person is asked, and what `verify` was shown."""
    shown: list[Any] = []

    def check(arguments: Any, result: Any) -> Any:
        shown.append((arguments, result))
        return verify(arguments, result)

    def pay(n: int) -> Any:
        """Pay."""
        raise ConnectionError("reset")

    pay.__annotations__["return"] = returns

    async def play() -> tuple[SystemResponse, list[str]]:
        system: System = system_in_memory()
        paying = tool(effect="external", network=True, reconcile=lambda key: account, verify=check)(pay)
        engine = ScriptedEngine([{"tool_calls": [{"name": "pay", "arguments": {"n": 1}}]}, {"text": "Paid."}])
        async with AgentLoop(engine, tools=[paying], system=system) as agent:
            asked = await agent.chat("Pay.")
            assert asked.waiting_for is not None
            response = await agent.approve(asked.waiting_for.packet_ids[0], by="ada")
            asking = [reason for one in await system.archive.approvals() for reason in one.reasons]
            return response, asking

    response, asking = asyncio.run(play())
    return response, asking, shown


YES = Reconciled(Happened.YES, '{"ref":"r"}')


@pytest.mark.parametrize("account", [YES, Receipt("r")], ids=["text", "value"])
def test_a_result_that_reconcile_tells_and_verify_refutes_is_not_committed(account: Any) -> None:
    response, asking, shown = told(account, lambda arguments, result: "books disagree")
    assert shown == [({"n": 1}, Receipt("r"))]
    (made,) = response.tool_calls_made
    assert made.status is CallStatus.OUTCOME_UNKNOWN
    assert response.waiting_for is not None
    assert response.waiting_for.ending is Ending.REVIEW_REQUIRED
    assert any("ConnectionError: reset; reconcile says yes, and its check: books disagree" in one for one in asking)


def broken(arguments: Any, result: Any) -> bool:
    raise OSError("no books")


@pytest.mark.parametrize("verify", [broken, lambda arguments, result: None], ids=["raises", "None"])
def test_a_check_that_tells_nothing_confirms_no_told_result(verify: Verify) -> None:
    response, _, _ = told(YES, verify)
    assert response.tool_calls_made[0].status is CallStatus.OUTCOME_UNKNOWN
    assert response.waiting_for is not None


@pytest.mark.parametrize(
    ("account", "returns", "seen"),
    [
        (YES, Receipt, Receipt("r")),
        (Reconciled(Happened.YES, "r-1"), str, "r-1"),
        (Reconciled(Happened.YES, "7"), int, 7),
        (Reconciled(Happened.YES, "r-1"), str | int, "r-1"),
    ],
    ids=["record", "text", "number", "either"],
)
def test_a_result_that_verify_confirms_is_committed_and_shown_as_the_function_would_have_returned_it(
    account: Reconciled, returns: Any, seen: Any
) -> None:
    response, _, shown = told(account, lambda arguments, result: True, returns)
    assert [result for _, result in shown] == [seen]
    assert response.tool_calls_made[0].status is CallStatus.COMMITTED
    assert response.terminal_code is Ending.SUCCESS


@pytest.mark.parametrize(
    "account", [True, Reconciled(Happened.YES, "no JSON")], ids=["no result", "one that does not fit"]
)
def test_a_yes_without_a_result_is_taken_as_it_is(account: Any) -> None:
    response, _, shown = told(account, lambda arguments, result: "books disagree")
    assert shown == []
    assert response.tool_calls_made[0].status is CallStatus.COMMITTED
