"""Calls are performed on the loop, in threads and in processes; cancelling reaches them all, and no outcome is lost."""

import asyncio
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.tool.call import performing
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import Performed, Stop, ToolFault
from remit.tool.call.performing import Attempt, Late, perform
from remit.tool.call.threads import THREADS_MAX, Threads
from remit.tool.declare.decorator import Tool, tool
from remit.tool.secrets.secret import Secret
from remit.tool.secrets.vault import Vault
from tests.unit.tool.watching import called, content, fault, running_in, sample, until

WHERE: ContextVar[str] = ContextVar("WHERE", default="nowhere")


class Blocker:
    """A function in a thread that waits to be released, and says that it has begun."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()

    def wait(self) -> str:
        self.begun.set()
        assert self.release.wait(30)
        return "late"


async def cancelled(tool: Tool, arguments: dict[str, Any], begun: Any) -> list[Late]:
    """Cancel a call that has begun, and say what was left of it."""
    attempt = Attempt(tool, arguments, "key")
    await cut_off(attempt, begun)
    assert attempt.has_begun
    late = attempt.left()
    return [] if late is None else [late]


async def cut_off(attempt: Attempt, begun: Any) -> None:
    task = asyncio.create_task(perform(attempt))
    await until(begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_functions_on_the_loop_and_in_threads_are_performed_alike() -> None:
    @tool
    async def on_loop(a: int) -> int:
        return a

    @tool
    def in_thread(a: int) -> int:
        return a

    assert content(on_loop, a=1) == content(in_thread, a=1) == "1"


def test_a_function_in_a_thread_sees_the_context_of_its_caller() -> None:
    @tool
    def where() -> str:
        return WHERE.get()

    async def play() -> str:
        WHERE.set("here")
        return (await called(where)).content

    assert asyncio.run(play()) == "here"


def test_the_key_of_the_call_reaches_the_function() -> None:
    @tool
    def keyed(idempotency_key: str) -> str:
        return idempotency_key

    assert asyncio.run(called(keyed, key="run-1:3")).content == "run-1:3"


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), StopIteration("x")])
def test_whatever_a_tool_raises_is_a_fault(error: BaseException) -> None:
    @tool
    def in_thread() -> None:
        raise error

    @tool
    async def on_loop() -> None:
        raise error

    for one in (in_thread, on_loop):
        found = fault(one)
        assert found.error_code is ErrorCode.TOOL_EXECUTION_FAILED
        assert type(error).__name__ in found.error


def test_a_tool_that_cancels_itself_has_failed() -> None:
    @tool
    async def f() -> None:
        raise asyncio.CancelledError

    assert fault(f).error == "CancelledError"


def test_arguments_that_do_not_fit_never_reach_the_function() -> None:
    reached: list[int] = []

    @tool
    def in_thread(a: int) -> None:
        reached.append(a)

    @tool
    async def on_loop(a: int) -> None:
        reached.append(a)

    assert "do not fit" in fault(in_thread, a="x").error
    assert "do not fit" in fault(on_loop, a="x").error
    assert reached == []


@pytest.mark.req("0.24")
def test_a_tool_that_is_not_available_is_not_called() -> None:
    reached: list[int] = []

    @tool(available=lambda: False)
    def f() -> None:
        reached.append(1)

    @tool(available=lambda: False)
    async def on_loop() -> None:
        reached.append(2)

    assert fault(f).error_code is ErrorCode.TOOL_UNAVAILABLE
    assert fault(on_loop).error_code is ErrorCode.TOOL_UNAVAILABLE
    assert reached == []


def test_a_coroutine_that_asks_for_a_token_gets_one() -> None:
    @tool
    async def f(token: CancelToken) -> bool:
        return token.cancelled

    assert content(f) == "false"


def test_what_the_check_finds_wrong_refutes_the_result() -> None:
    def is_even(arguments: dict[str, Any], result: int) -> bool:
        return result % 2 == 0

    @tool(verify=is_even)
    def in_thread(a: int) -> int:
        return a

    @tool(verify=is_even)
    async def on_loop(a: int) -> int:
        return a

    for one in (in_thread, on_loop):
        assert asyncio.run(called(one, a=2)) == Performed("2")
        assert asyncio.run(called(one, a=3)) == Performed("3", "is_even does not confirm the result")


def test_a_stop_is_passed_on_with_its_text() -> None:
    @tool(may_stop_loop=True)
    def f() -> Stop:
        return Stop("that is all")

    assert asyncio.run(called(f)) == Performed("that is all", stop_loop=True)


def test_cancelling_reaches_a_function_on_the_loop() -> None:
    seen: list[str] = []
    begun = threading.Event()

    @tool
    async def f() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cleaned up")

    assert asyncio.run(cancelled(f, {}, begun.is_set)) == []
    assert seen == ["cleaned up"]


def test_a_thread_that_listens_stops_and_its_outcome_is_known() -> None:
    begun = threading.Event()

    @tool
    def f(token: CancelToken) -> str:
        begun.set()
        return "stopped in time" if token.wait(30_000) else "never told"

    (late,) = asyncio.run(cancelled(f, {}, begun.is_set))
    assert late.result() == Performed("stopped in time")


def test_a_thread_that_leaves_because_it_was_told_has_a_fault_as_its_outcome() -> None:
    begun = threading.Event()

    @tool
    def f(token: CancelToken) -> None:
        begun.set()
        token.wait(30_000)
        token.raise_if_cancelled()

    (late,) = asyncio.run(cancelled(f, {}, begun.is_set))
    outcome = late.result()
    assert isinstance(outcome, ToolFault)
    assert outcome.error == "ToolCancelled: the call was cancelled"


def test_a_thread_that_does_not_listen_is_abandoned_and_its_late_outcome_arrives() -> None:
    blocker = Blocker()

    async def check(arguments: dict[str, Any], result: str) -> str:
        return f"looked at {result}"

    @tool(verify=check)
    def stubborn() -> str:
        return blocker.wait()

    async def play() -> Performed | ToolFault | None:
        (late,) = await cancelled(stubborn, {}, blocker.begun.is_set)
        assert not late.done()
        blocker.release.set()
        return await late

    assert asyncio.run(play()) == Performed("late", "looked at late")


def test_cancelling_twice_abandons_at_once() -> None:
    blocker = Blocker()

    @tool
    def stubborn() -> str:
        return blocker.wait()

    async def play() -> None:
        attempt = Attempt(stubborn, {}, "key")
        task = asyncio.create_task(perform(attempt))
        await until(blocker.begun.is_set)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (attempt.is_abandoned, attempt.last_word) == (True, None)
        blocker.release.set()
        assert attempt.late is not None
        assert await attempt.late == attempt.last_word == Performed("late")
        assert not attempt.is_abandoned

    asyncio.run(play())


def test_of_a_call_that_was_forgotten_nothing_is_known() -> None:
    blocker = Blocker()

    @tool
    def stubborn() -> str:
        return blocker.wait()

    attempt = Attempt(stubborn, {}, "key")
    asyncio.run(cut_off(attempt, blocker.begun.is_set))
    blocker.release.set()
    # The loop ended before the call did, and with it the task that waited for the outcome.
    assert (attempt.is_abandoned, attempt.last_word) == (False, None)


def test_a_call_that_never_got_a_thread_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, release, reached = Threads(), threading.Event(), []
    monkeypatch.setattr(performing, "threads", lambda: pool)
    for _ in range(THREADS_MAX):
        pool.submit(lambda: release.wait(30))

    @tool
    def f() -> None:
        reached.append(1)

    attempt = Attempt(f, {}, "key")
    asyncio.run(cut_off(attempt, lambda: attempt.has_begun))
    release.set()
    assert (attempt.has_begun, attempt.late) == (False, None)
    assert pool.submit(lambda: list(reached)).result(10) == []


def test_a_call_whose_availability_is_still_asked_about_has_not_begun() -> None:
    asked = threading.Event()

    async def hangs() -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    @tool(available=hangs)
    async def f() -> None: ...

    attempt = Attempt(f, {}, "key")
    asyncio.run(cut_off(attempt, asked.is_set))
    assert not attempt.has_begun


def test_a_process_is_killed_with_everything_it_started_when_its_call_is_cancelled(tmp_path: Path) -> None:
    async def play() -> None:
        (late,) = await cancelled(sample("hangs"), {"folder": str(tmp_path)}, (tmp_path / "began").exists)
        assert late.result() is None
        await until(lambda: not running_in(tmp_path))

    asyncio.run(play())


VAULT = Vault({"TOKEN": "token-0123456789", "OTHER": "other-0123456789"})


@tool(secrets={"token": "TOKEN", "wrapped": "OTHER"})
def in_thread_with_secrets(a: int, token: str, wrapped: Secret) -> str:
    return f"{a} {token} {wrapped} {wrapped.reveal()}"


@tool(secrets={"token": "TOKEN", "wrapped": "OTHER"})
async def on_loop_with_secrets(a: int, token: str, wrapped: Secret) -> str:
    return f"{a} {token} {wrapped} {wrapped.reveal()}"


@pytest.mark.parametrize("one", [in_thread_with_secrets, on_loop_with_secrets])
def test_secrets_are_filled_in_just_before_the_call(one: Tool) -> None:
    done = asyncio.run(perform(Attempt(one, {"a": 1}, "key", VAULT)))
    assert done.content == "1 token-0123456789 [secret] other-0123456789"


def test_a_call_whose_secret_is_missing_has_not_begun() -> None:
    attempt = Attempt(in_thread_with_secrets, {"a": 1}, "key", Vault({"TOKEN": "token-0123456789"}))
    with pytest.raises(ToolFault, match="the secret 'OTHER' is not here") as found:
        asyncio.run(perform(attempt))
    assert found.value.error_code is ErrorCode.TOOL_UNAVAILABLE
    assert not attempt.has_begun


def test_a_model_cannot_give_what_a_secret_fills() -> None:
    with pytest.raises(ToolFault, match="token: Extra inputs are not permitted"):
        asyncio.run(perform(Attempt(in_thread_with_secrets, {"a": 1, "token": "mine"}, "key", VAULT)))


def test_a_secret_must_outlast_the_time_of_its_tool() -> None:
    now_ms = 1_893_456_000_000
    expiring = {"value": "token-0123456789", "expires_at": now_ms + 5_000}

    @tool(secrets={"token": "TOKEN"}, timeout_ms=4_999)
    def short(token: str) -> str:
        return token

    @tool(secrets={"token": "TOKEN"}, timeout_ms=5_000)
    def long(token: str) -> str:
        return token

    vault = Vault({"TOKEN": expiring}, now_ms=lambda: now_ms)
    assert asyncio.run(perform(Attempt(short, {}, "key", vault))).content == "token-0123456789"
    with pytest.raises(ToolFault, match="before a call of timeout_ms=5000 must have ended"):
        asyncio.run(perform(Attempt(long, {}, "key", vault)))
