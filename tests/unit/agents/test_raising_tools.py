"""Before a function is entered nothing has happened; later its outcome is unknown, whatever ended it: from the user's side."""

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from remit import AgentLoop, NotDone, PlanExecutor, Step, ToolHandler, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.work.plan import StepType
from remit.inference.scripted.engine import ScriptedEngine
from remit.tool.declare.decorator import Tool
from remit.tool.delegate import delegate
from remit.tool.process import sandbox

DONE: JsonObject = {"text": "Done."}


class BankClosed(NotDone):
    """What a tool of a user raises when nothing happened."""


def call(name: str = "pay", **arguments: Any) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def chatted(*tools: Tool, replies: list[JsonObject], given: JsonObject | None = None, **terms: Any) -> SystemResponse:
    """A chat in which every call is approved, the first one with other arguments where some are given."""

    async def play() -> SystemResponse:
        system = system_in_memory()
        async with AgentLoop(ScriptedEngine(replies), tools=list(tools), system=system, **terms) as agent:
            response, arguments = await agent.chat("Pay."), given
            while (waits := response.waiting_for) is not None and waits.ending is Ending.CONFIRM_REQUIRED:
                response = await agent.approve(waits.packet_ids[0], by="ada", arguments=arguments)
                arguments = None
            return response

    return asyncio.run(play())


def is_open(response: SystemResponse) -> bool:
    """Whether it is unknown what became of the only call, so that a person is asked."""
    (made,) = response.tool_calls_made
    waits = response.waiting_for
    is_asked = waits is not None and waits.ending is Ending.REVIEW_REQUIRED
    assert (made.status is CallStatus.OUTCOME_UNKNOWN) is is_asked, made
    assert is_asked or made.status is CallStatus.FAILED, made
    return is_asked


# Entered.


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("cut"), True),
        (SystemExit(3), True),
        (asyncio.CancelledError(), True),
        (ExceptionGroup("many", [NotDone("one of them")]), True),
        (NotDone("closed"), False),
        (BankClosed("closed"), False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("is_async", [True, False])
def test_only_not_done_says_that_nothing_happened(error: BaseException, *, expected: bool, is_async: bool) -> None:
    async def pay_later() -> str:
        raise error

    def pay_now() -> str:
        raise error

    declared = tool(name="pay", effect="external")(pay_later if is_async else pay_now)
    assert is_open(chatted(declared, replies=[call(), DONE])) is expected


def test_an_error_that_was_caused_by_not_done_is_another_error() -> None:
    @tool(effect="external")
    def pay() -> str:
        """Pay."""
        try:
            raise NotDone("the first bank is closed")
        except NotDone as error:
            raise ConnectionError("the second bank does not answer") from error

    assert is_open(chatted(pay, replies=[call(), DONE]))


@pytest.mark.parametrize("error", [NotDone("told to stop in time"), None], ids=["not done", "nothing"])
def test_a_coroutine_that_ran_out_of_time_may_still_say_that_nothing_happened(error: NotDone | None) -> None:
    @tool(effect="external", timeout_ms=20)
    async def pay() -> str:
        """Pay."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if error is not None:
                raise error from None
            raise
        return "paid"

    assert is_open(chatted(pay, replies=[call(), DONE])) is (error is None)


@pytest.mark.parametrize("error", [NotDone("told to stop in time"), OSError("no disk")], ids=repr)
@pytest.mark.slow
def test_a_thread_that_ran_out_of_time_may_still_say_that_nothing_happened(error: Exception) -> None:
    from remit.tool.call.cancel_token import CancelToken

    # Long enough for a thread to begin on a busy machine.
    @tool(effect="external", timeout_ms=2_000)
    def pay(token: CancelToken) -> str:
        """Pay."""
        while not token.cancelled:
            threading.Event().wait(0.001)
        raise error

    assert is_open(chatted(pay, replies=[call(), DONE])) is not isinstance(error, NotDone)


# Not entered.


def test_arguments_that_a_validator_of_the_user_refuses_mean_that_nothing_happened() -> None:
    def refuses(value: int) -> int:
        raise RuntimeError("no such account")

    entered: list[int] = []

    @tool(effect="external")
    def pay(to: Annotated[int, AfterValidator(refuses)]) -> str:
        """Pay."""
        entered.append(to)
        return "paid"

    assert not is_open(chatted(pay, replies=[call(to=1), DONE]))
    assert entered == []


@pytest.mark.parametrize("available", [lambda: False, lambda: 1 / 0])
def test_a_tool_that_is_not_available_has_done_nothing(available: Any) -> None:
    @tool(effect="external", available=available)
    def pay() -> str:
        """Pay."""
        raise AssertionError

    assert not is_open(chatted(pay, replies=[call(), DONE]))


def test_a_secret_that_is_missing_means_that_nothing_happened() -> None:
    @tool(effect="external", secrets={"token": "REMIT_TEST_NO_SUCH_SECRET"})
    def pay(token: str) -> str:
        """Pay."""
        raise AssertionError

    assert not is_open(chatted(pay, replies=[call(), DONE]))


def test_a_filter_that_turns_a_modified_call_away_means_that_nothing_happened() -> None:
    def guards(proposed: ToolCall) -> str | None:
        return "not to eve" if proposed.arguments["to"] == "eve" else None

    entered: list[str] = []

    @tool(effect="external")
    def pay(to: str) -> str:
        """Pay."""
        entered.append(to)
        raise ConnectionError("cut")

    response = chatted(pay, replies=[call(to="bob"), DONE], given={"to": "eve"}, filters=[guards])
    assert not is_open(response)
    assert entered == []


def test_a_sandbox_that_is_absent_means_that_nothing_happened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox, "sandbox_problem", lambda: "bwrap is not installed")
    place = tmp_path / "boxed.py"
    place.write_text(
        "from remit import tool\n\n@tool(effect='external', sandbox=True)\ndef pay() -> str:\n"
        '    """Pay."""\n    return "paid"\n'
    )
    from remit.tool.loader import load_tools

    boxed = load_tools(str(place)).get("pay")
    assert boxed is not None
    assert not is_open(chatted(boxed, replies=[call(), DONE]))


# Elsewhere than in a chat.


@pytest.mark.parametrize(("error", "asked"), [(ConnectionError("cut"), True), (NotDone("closed"), False)], ids=repr)
def test_a_step_of_a_plan_whose_tool_broke_within_waits_for_a_person(error: Exception, *, asked: bool) -> None:
    made: list[str] = []

    @tool(effect="external")
    def pay() -> str:
        """Pay."""
        made.append("paid")
        raise error

    async def play() -> SystemResponse:
        plans = PlanExecutor({StepType.TOOL: ToolHandler([pay])}, system=system_in_memory())
        result = await plans.execute([Step("pay", StepType.TOOL, {}, tool="pay")])
        waits = result.response.waiting_for
        assert waits is not None
        return (await plans.approve(waits.packet_ids[0], by="ada")).response

    response = asyncio.run(play())
    assert (response.waiting_for is not None) is asked
    assert made == ["paid"]
    assert response.terminal_code is not Ending.SUCCESS


@pytest.mark.parametrize("declared", [{}, {"idempotent": True}], ids=["plain", "idempotent"])
def test_what_nobody_knows_of_a_child_keeps_its_parent_from_success(declared: JsonObject) -> None:
    @tool(effect="external", **declared)
    def pay() -> str:
        """Pay."""
        raise ConnectionError("cut")

    helper = delegate("helper", description="Hand a task over.", lease={"steps": 8, "tool_calls": 2, "side_effects": 1})
    replies: list[JsonObject] = [call("helper", task="pay"), call(), DONE, DONE]
    response = chatted(pay, helper, replies=replies)
    assert response.terminal_code not in (Ending.SUCCESS, Ending.PARTIAL_SUCCESS)
