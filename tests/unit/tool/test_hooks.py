"""The functions that go with a tool are asked in a thread or on the loop, and a broken one gives the careful answer."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Happened
from remit.core.record import JsonObject
from remit.tool.call.hooks import check_available, reconcile
from remit.tool.call.hooks import verdict as verdict_of
from remit.tool.call.outcomes import Reconciled, Stop, ToolFault
from remit.tool.declare.decorator import Tool, tool

REACHES = [Happened]


def telling(answer: Any) -> Callable[..., Any]:
    def told(*values: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return told


def telling_later(answer: Any) -> Callable[..., Any]:
    async def told(*values: Any) -> Any:
        await asyncio.sleep(0)
        return telling(answer)()

    return told


def telling_a_promise(answer: Any) -> Callable[..., Any]:
    """A plain function that returns something to await."""

    def told(*values: Any) -> Any:
        return telling_later(answer)(*values)

    return told


def verdict(
    check: Callable[..., Any], arguments: JsonObject, value: Any, effect: str = "read"
) -> Coroutine[Any, Any, str]:
    """What a tool with this check finds."""

    @tool(effect=effect, verify=check)
    def done() -> Any:
        """Do."""

    return verdict_of(done, arguments, value)


WAYS = pytest.mark.parametrize("way", [telling, telling_later, telling_a_promise])


def tool_with(**options: Any) -> Tool:
    @tool(**options)
    def f(a: int) -> int:
        return a

    return f


@WAYS
def test_a_tool_that_says_so_is_available(way: Callable[[Any], Any]) -> None:
    asyncio.run(check_available(tool_with(available=way(True))))
    asyncio.run(check_available(tool_with()))


@WAYS
@pytest.mark.req("0.24")
@pytest.mark.parametrize("answer", [False, None, 1, ValueError("down"), SystemExit(1), StopIteration()])
def test_a_tool_that_does_not_say_so_is_unavailable(way: Callable[[Any], Any], answer: Any) -> None:
    with pytest.raises(ToolFault) as caught:
        asyncio.run(check_available(tool_with(available=way(answer))))
    assert caught.value.error_code is ErrorCode.TOOL_UNAVAILABLE
    assert "available" in caught.value.error


def test_a_function_that_blocks_is_asked_in_a_thread() -> None:
    places: list[int] = []

    def asked() -> bool:
        places.append(threading.get_ident())
        return True

    asyncio.run(check_available(tool_with(available=asked)))
    assert places != [threading.get_ident()]


@WAYS
@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (None, "told returned None, which confirms nothing; let it return True"),
        (True, ""),
        ("", ""),
        (False, "told does not confirm the result"),
        ("it is not there", "it is not there"),
        (3, "told answered with a int, which is no verdict"),
        (ValueError("no"), "told raised ValueError: no"),
    ],
)
def test_a_verdict_is_nothing_or_the_reason(way: Callable[[Any], Any], answer: Any, found: str) -> None:
    assert asyncio.run(verdict(way(answer), {}, 1)) == found


def test_a_check_of_a_change_that_breaks_leaves_open_what_happened() -> None:
    with pytest.raises(ToolFault) as fault:
        asyncio.run(verdict(telling(ValueError("no")), {}, 1, "write"))
    assert fault.value.is_unknown
    assert fault.value.error == "it returned, and its check told raised ValueError: no"


def test_a_check_of_a_change_that_forgot_to_return_leaves_open_what_happened() -> None:
    with pytest.raises(ToolFault, match="told returned None, which confirms nothing") as fault:
        asyncio.run(verdict(telling(None), {}, 1, "write"))
    assert fault.value.is_unknown


def test_the_check_sees_the_arguments_and_what_was_returned() -> None:
    seen: list[Any] = []
    asyncio.run(verdict(lambda *given: seen.append(given), {"a": 1}, [2]))
    asyncio.run(verdict(lambda *given: seen.append(given), {"a": 1}, Stop("enough")))
    assert seen == [({"a": 1}, [2]), ({"a": 1}, "enough")]


@WAYS
@pytest.mark.parametrize(
    ("answer", "account"),
    [
        (Reconciled(Happened.YES, "kept"), Reconciled(Happened.YES, "kept")),
        (Happened.UNKNOWN, Reconciled(Happened.UNKNOWN)),
        (Happened.NO, Reconciled(Happened.NO)),
        (True, Reconciled(Happened.YES)),
        (False, Reconciled(Happened.NO)),
        (None, Reconciled(Happened.UNKNOWN, why="reconcile returned None")),
        (0, Reconciled(Happened.YES, "0")),
        (42, Reconciled(Happened.YES, "42")),
        (ValueError("gone"), Reconciled(Happened.UNKNOWN, why="ValueError: gone")),
    ],
)
def test_an_account_says_yes_with_a_result_or_no_or_unknown(
    way: Callable[[Any], Any], answer: Any, account: Reconciled
) -> None:
    assert asyncio.run(reconcile(tool_with(reconcile=way(answer)), key="k", arguments={})) == account


def test_a_result_that_is_not_the_tools_own_is_no_account() -> None:
    account = asyncio.run(reconcile(tool_with(reconcile=telling("text")), key="k", arguments={}))
    assert account.happened is Happened.UNKNOWN
    assert "returned a str that is not the declared int" in account.why


def test_an_account_is_asked_with_the_key_and_where_it_can_take_them_the_arguments() -> None:
    seen: list[Any] = []

    def by_key(key: str) -> bool:
        seen.append(key)
        return True

    def by_both(key: str, arguments: dict[str, Any]) -> bool:
        seen.append((key, arguments))
        return True

    for asked in (by_key, by_both):
        asyncio.run(reconcile(tool_with(reconcile=asked), key="k", arguments={"a": 1}))
    assert seen == ["k", ("k", {"a": 1})]


def test_a_tool_without_an_account_knows_nothing() -> None:
    account = asyncio.run(reconcile(tool_with(), key="k", arguments={}))
    assert (account.happened, account.why) == (Happened.UNKNOWN, "tool 'f' has no reconcile")


def test_cancelling_the_asking_task_is_no_answer() -> None:
    async def asked_and_cancelled(question: Callable[[Callable[..., Any]], Any]) -> None:
        begun = asyncio.Event()

        async def forever(*values: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(question(forever))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for question in (
        lambda wait: check_available(tool_with(available=wait)),
        lambda wait: verdict(wait, {}, 1),
        lambda wait: reconcile(tool_with(reconcile=wait), key="k", arguments={}),
    ):
        asyncio.run(asked_and_cancelled(question))


def test_a_function_that_cancels_itself_gives_the_careful_answer() -> None:
    broken = telling_later(asyncio.CancelledError())
    assert asyncio.run(verdict(broken, {}, 1)) == "told raised CancelledError"


def test_closing_the_asking_coroutine_is_no_answer() -> None:
    async def forever(*values: Any) -> None:
        await asyncio.Event().wait()

    coroutine = verdict(forever, {}, 1)

    async def begin() -> None:
        coroutine.send(None)

    asyncio.run(begin())
    coroutine.close()
