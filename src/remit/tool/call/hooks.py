"""Hooks: how the functions are asked that go with a tool: is it available, is its result true, what became of a call.

Rule 1: a function that raises gives the careful answer: not available, refuted, unknown.
Rule 2: functions that block are asked in a thread, so that nothing else waits for them.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Happened
from remit.core.record import JsonObject
from remit.tool.call.arguments import UNFIT, result_text, returned_as
from remit.tool.call.outcomes import Reconciled, Stop, ToolFault, error_text
from remit.tool.call.threads import in_thread
from remit.tool.declare.decorator import Tool, takes


async def check_available(tool: Tool) -> None:
    """Raise a ToolFault unless the tool says that it may be called now."""
    if tool.available is None:
        return
    try:
        answer = await _asked(tool.available)
    except BaseException as error:
        raise_if_ours(error)
        message = f"it cannot say whether it is available: {error_text(error)}"
        raise ToolFault(ErrorCode.TOOL_UNAVAILABLE, message) from error
    if answer is not True:
        raise ToolFault(ErrorCode.TOOL_UNAVAILABLE, f"tool {tool.name!r} says that it is not available now")


async def verdict(tool: Tool, arguments: JsonObject, value: Any) -> str:
    """What the tool's own check finds wrong with a result, or nothing.

    A check that breaks or returns None has confirmed no read; what a change came to is unknown.
    """
    verify = tool.verify
    assert verify is not None, "only a tool that has a check is asked for its verdict"
    name = getattr(verify, "__name__", type(verify).__name__)
    try:
        answer = await _asked(verify, arguments, value.content if isinstance(value, Stop) else value)
    except BaseException as error:  # noqa: BLE001  # a check that breaks tells nothing
        raise_if_ours(error)
        return _untold(tool, f"{name} raised {error_text(error)}")
    if answer is None:
        return _untold(tool, f"{name} returned None, which confirms nothing; let it return True")
    if answer is True or answer == "":
        return ""
    if answer is False:
        return f"{name} does not confirm the result"
    return answer if isinstance(answer, str) else f"{name} answered with a {type(answer).__name__}, which is no verdict"


def _untold(tool: Tool, why: str) -> str:
    """What a check that tells nothing leaves: a read that is not confirmed, a change whose outcome is unknown."""
    if tool.definition.effect.is_mutating:
        message = f"it returned, and its check {why}"
        raise ToolFault(ErrorCode.TOOL_EXECUTION_FAILED, message, is_unknown=True)
    return why


async def reconcile(tool: Tool, *, key: str, arguments: JsonObject) -> Reconciled:
    """Ask a tool what became of the call with this key.

    A Reconciled or a Happened is taken as it is. True is yes, False is no, None is unknown. Anything else is yes, and
    the result of the call. A result that the tool's own check does not confirm says nothing either: one of the two is wrong.
    """
    if tool.reconcile is None:
        return Reconciled(Happened.UNKNOWN, why=f"tool {tool.name!r} has no reconcile")
    values = (key, arguments) if takes(tool.reconcile, 2) else (key,)
    try:
        answer = await _asked(tool.reconcile, *values)
        account = _account(tool, answer)
        refuted = await _refuted(tool, arguments, answer, account)
    except BaseException as error:  # noqa: BLE001  # an account that breaks says nothing
        raise_if_ours(error)
        why = error.error if isinstance(error, ToolFault) else error_text(error)
        return Reconciled(Happened.UNKNOWN, why=why)
    return account if not refuted else Reconciled(Happened.UNKNOWN, why=f"reconcile says yes, and its check: {refuted}")


async def _refuted(tool: Tool, arguments: JsonObject, answer: Any, account: Reconciled) -> str:
    """What the tool's own check finds wrong with the result that an account tells; nothing where it tells none."""
    if tool.verify is None or account.happened is not Happened.YES or not account.content:
        return ""
    value = returned_as(tool, account.content) if isinstance(answer, Reconciled) else answer
    return "" if value is UNFIT else await verdict(tool, arguments, value)


def _account(tool: Tool, answer: Any) -> Reconciled:
    match answer:
        case Reconciled():
            return answer
        case Happened():
            return Reconciled(answer)
        case None:
            return Reconciled(Happened.UNKNOWN, why="reconcile returned None")
        case False:
            return Reconciled(Happened.NO)
        case True:
            return Reconciled(Happened.YES)
    return Reconciled(Happened.YES, result_text(tool, answer).content)


def raise_if_ours(error: BaseException) -> None:
    """Let go on what is meant for the caller: its own cancellation, and the end of the coroutine."""
    if isinstance(error, GeneratorExit):
        raise error
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error


async def _asked(function: Callable[..., Any], *values: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*values)
    answer = await in_thread(function, *values)
    return await answer if inspect.isawaitable(answer) else answer
