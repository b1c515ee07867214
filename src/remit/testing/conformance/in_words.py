"""Checks that say in a sentence what is wrong, whatever a backend raises.

Rule 1: a check raises AssertionError and nothing else. What a backend raises where it should not is named, and its cause is kept.
"""

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from remit.core.failure import RemitError

# Opens what is checked.
Open = TypeVar("Open")


def in_words(
    *checks: Callable[[Open], Coroutine[Any, Any, None]],
) -> tuple[Callable[[Open], Coroutine[Any, Any, None]], ...]:
    """The checks of a suite, each of which fails with a sentence."""
    return tuple([_in_words(check) for check in checks])


def _in_words(check: Callable[[Open], Coroutine[Any, Any, None]]) -> Callable[[Open], Coroutine[Any, Any, None]]:
    @wraps(check)
    async def told(opened: Open) -> None:
        try:
            await check(opened)
        except AssertionError:
            raise
        except Exception as error:
            name = check.__name__.replace("_", " ")
            raise AssertionError(
                f"{name}: it raised {type(error).__name__} ({error}), which it must not here"
            ) from error

    return told


async def refusal_code(work: Awaitable[object]) -> str:
    """The code of a refusal; empty where there was none."""
    try:
        await work
    except RemitError as error:
        return error.code
    return ""
