"""A tool that raises after it was entered leaves open what it did, from the user's side."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from remit import AgentLoop, NotDone, System, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, SystemResponse
from remit.inference.scripted.engine import ScriptedEngine
from remit.tool.builtin.files import file_tools
from remit.tool.declare.decorator import Tool
from tests.unit.orchestrate.house import Said

PAY: JsonObject = {"tool_calls": [{"name": "pay", "arguments": {"to": "bob", "cents": 5}}]}
DONE: JsonObject = {"text": "Done."}


class Receipt(TypedDict):
    """What a payment is said to return."""

    id: str


class Books:
    """What the world looks like after each call: who was paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.keys: list[str] = []


def paying(books: Books, error: BaseException | None, **declared: Any) -> Tool:
    """A tool that pays and then raises, the first time it is called."""

    async def pay(to: str, cents: int, idempotency_key: str) -> Said:
        """Pay a person."""
        books.keys.append(idempotency_key)
        if len(set(books.keys)) > len(books.paid) and not isinstance(error, NotDone):
            books.paid.append(to)
        if error is not None and len(books.keys) == 1:
            raise error
        return f"paid {to}"

    return tool(**{"effect": "external", **declared})(pay)


async def approved(system: System, agent: AgentLoop, words: str) -> SystemResponse:
    """A chat in which every call is approved, as long as no person is asked what became of one."""
    response = await agent.chat(words)
    while (waits := response.waiting_for) is not None and waits.ending is Ending.CONFIRM_REQUIRED:
        response = await agent.approve(waits.packet_ids[0], by="ada")
    return response


def played(
    pay: Tool, *replies: JsonObject, then: Callable[[System, SystemResponse], Any] | None = None
) -> SystemResponse:
    async def play() -> SystemResponse:
        system = system_in_memory()
        async with AgentLoop(ScriptedEngine(list(replies)), tools=[pay], system=system) as agent:
            response = await approved(system, agent, "Pay bob 5.")
            if then is not None:
                await then(system, response)
            return response

    return asyncio.run(play())


def test_a_tool_that_raised_after_acting_is_in_doubt_and_is_not_called_again() -> None:
    books = Books()
    response = played(paying(books, ConnectionError("the answer was lost")), PAY, PAY, DONE)
    assert response.terminal_code is None
    assert response.waiting_for is not None
    assert response.waiting_for.ending is Ending.REVIEW_REQUIRED
    assert [call.status for call in response.tool_calls_made] == [CallStatus.OUTCOME_UNKNOWN]
    assert books.paid == ["bob"]


@pytest.mark.parametrize(
    ("declared", "returned"),
    [(Receipt, {"id": "r1", "fee": 3}), (dict[str, Receipt], {"a": {"id": "r1", "fee": 3}}), (int, "much")],
)
def test_a_tool_that_returned_what_it_never_declared_is_in_doubt(declared: Any, returned: Any) -> None:
    paid: list[str] = []

    def pay(to: str, cents: int) -> Any:
        """Pay a person."""
        paid.append(to)
        return returned

    pay.__annotations__["return"] = declared
    response = played(tool(effect="external", network=False)(pay), PAY, PAY, DONE)
    assert [call.status for call in response.tool_calls_made] == [CallStatus.OUTCOME_UNKNOWN]
    assert response.waiting_for is not None
    assert response.waiting_for.ending is Ending.REVIEW_REQUIRED
    assert paid == ["bob"]
    told = played(tool(effect="external", network=False, reconcile=lambda key: True)(pay), PAY, DONE)
    assert told.terminal_code is Ending.SUCCESS


def test_the_person_who_is_asked_reads_what_the_tool_said() -> None:
    async def look(system: System, response: SystemResponse) -> None:
        (asked,) = await system.archive.approvals(response.run_id)
        assert any("it said: ConnectionError: the answer was lost" in reason for reason in asked.reasons)

    played(paying(Books(), ConnectionError("the answer was lost")), PAY, DONE, then=look)


def test_a_tool_that_says_that_nothing_happened_may_be_called_again() -> None:
    books = Books()
    response = played(paying(books, NotDone("the bank is closed")), PAY, PAY, DONE)
    assert response.terminal_code is Ending.SUCCESS
    assert [call.status for call in response.tool_calls_made] == [CallStatus.FAILED, CallStatus.COMMITTED]
    assert len(set(books.keys)) == 2


def test_an_idempotent_tool_is_called_again_with_the_same_key() -> None:
    books = Books()
    response = played(paying(books, ConnectionError("cut"), idempotent=True), PAY, PAY, DONE)
    assert response.terminal_code is Ending.SUCCESS
    assert len(books.keys) == 2
    assert len(set(books.keys)) == 1
    assert books.paid == ["bob"]


def test_an_idempotent_tool_whose_outcome_stays_open_ends_the_run_for_review() -> None:
    response = played(paying(Books(), ConnectionError("cut"), idempotent=True), PAY, DONE)
    assert response.terminal_code is Ending.REVIEW_REQUIRED
    assert response.error is not None
    assert "nobody knows what became of pay#" in response.error.message
    assert [call.status for call in response.tool_calls_made] == [CallStatus.OUTCOME_UNKNOWN]


@pytest.mark.parametrize(("account", "ending"), [("paid bob", Ending.SUCCESS), (False, Ending.VALIDATION_FAIL)])
def test_a_tool_that_keeps_accounts_is_asked_what_became_of_the_call(account: Any, ending: Ending) -> None:
    books = Books()
    response = played(paying(books, RuntimeError("odd"), reconcile=lambda key: account), PAY, DONE)
    assert response.terminal_code is ending
    assert len(books.keys) == 1


def test_a_check_that_breaks_leaves_the_effect_in_doubt() -> None:
    def looks(arguments: JsonObject, result: str) -> bool:
        raise ConnectionError("the ledger does not answer")

    response = played(paying(Books(), None, verify=looks), PAY, DONE)
    assert response.waiting_for is not None
    assert response.waiting_for.ending is Ending.REVIEW_REQUIRED


def test_a_result_that_is_not_what_was_declared_leaves_the_effect_in_doubt() -> None:
    @tool(effect="external")
    def pay(to: str, cents: int) -> int:
        """Pay a person."""
        return "ERROR: card declined"  # type: ignore[return-value]  # tools of others break their word

    response = played(pay, PAY, DONE)
    assert response.waiting_for is not None
    assert [call.status for call in response.tool_calls_made] == [CallStatus.OUTCOME_UNKNOWN]


def test_a_read_that_raises_is_a_failure_and_nothing_more() -> None:
    response = played(paying(Books(), RuntimeError("odd"), effect="read"), PAY, DONE)
    assert response.terminal_code is Ending.SUCCESS
    assert [call.status for call in response.tool_calls_made] == [CallStatus.FAILED]


def test_a_builtin_tool_that_refuses_says_that_nothing_happened(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    write = next(one for one in file_tools(tmp_path) if one.name == "write_file")
    call = {"tool_calls": [{"name": "write_file", "arguments": {"path": "note.txt", "text": "other"}}]}
    response = played(write, call, DONE)
    assert response.waiting_for is None
    assert [call.status for call in response.tool_calls_made] == [CallStatus.FAILED]


def test_a_person_who_is_asked_again_reads_what_was_tried_before() -> None:
    books = Books()

    async def judged(system: System, response: SystemResponse) -> None:
        (asked,) = await system.archive.approvals(response.run_id)
        assert any(reason.startswith("tried before: pay") for reason in asked.reasons), asked.reasons

    async def play() -> None:
        system = system_in_memory()
        pay = paying(books, NotDone("the bank is closed"), control_args={"to": "id:person"})
        more: JsonObject = {"tool_calls": [{"name": "pay", "arguments": {"to": "bob", "cents": 6}}]}
        async with AgentLoop(ScriptedEngine([PAY, more, DONE]), tools=[pay], system=system) as agent:
            first = await agent.chat("Pay bob.")
            assert first.waiting_for is not None
            second = await agent.approve(first.waiting_for.packet_ids[0], by="ada")
            await judged(system, second)

    asyncio.run(play())
