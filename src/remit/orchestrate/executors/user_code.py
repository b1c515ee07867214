"""Calling a function of the user's: coroutines on the loop, everything else in a thread, so that the loop is not held up."""

import inspect
from collections.abc import Callable
from typing import Any

from remit.tool.call.threads import in_thread


async def call_user_code(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function gives; an awaitable that a plain function returned is awaited, too."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004  # whether it is async, not whether it is callable
        return await function(*arguments)
    said = await in_thread(function, *arguments)
    return await said if inspect.isawaitable(said) else said
