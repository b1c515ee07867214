"""Inner runs: those that the function of a plan's step starts itself, and whether it looked at what became of them.

Rule 1: a step whose function handed on what it had from a run that failed or waits has failed, unless the function looked:
        read `error`, `terminal_code`, `waiting_for` or `value` of the response, or called its raise_for_error().
Rule 2: only verbs that the function calls count, in whatever task or thread that it began in its own context; not the
        runs, tools and steps that work within them.
Rule 3: nothing here is kept or decided: the executor of the step asks once, when the function has returned.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

from remit.core.failure import RunFailed
from remit.core.record import field_values
from remit.core.run.contract import SystemResponse

# A function that reads one of these knows that a run may have come to nothing. `value` reads them, too.
LOOKS = frozenset({"error", "terminal_code", "waiting_for", "raise_for_error"})
UNSEEN = (
    "the function of the step started it and looked at nothing but its content; call raise_for_error(), or read its "
    "`error` or `terminal_code` to go on without it"
)

T = TypeVar("T")
R = TypeVar("R", bound=SystemResponse)


class InnerRuns:
    """The runs without success that the function of a step was told of and has not looked at, by id."""

    def __init__(self) -> None:
        self._unseen: dict[str, SystemResponse] = {}

    def told(self, given: T) -> T:
        """What the function is given in the place of a response, or of a result that holds one."""
        if isinstance(given, SystemResponse):
            return self._watched(given)
        response = getattr(given, "response", None)
        if not isinstance(response, SystemResponse) or not dataclasses.is_dataclass(given):
            return given
        watched = self._watched(response)
        return given if watched is response else dataclasses.replace(given, response=watched)  # type: ignore[type-var]  # it is one of a dataclass

    def expect_seen(self) -> None:
        """Raise RunFailed where a run came to nothing and its caller did not look."""
        for response in self._unseen.values():
            try:
                response.raise_for_error()
            except RunFailed as failed:
                message = f"run {response.run_id} came to nothing: {failed.message}; {UNSEEN}"
                raise RunFailed(failed.code, message, failed.details, retryable=failed.retryable) from failed

    def _watched(self, response: R) -> R:
        run_id = response.run_id
        self._unseen.pop(run_id, None)
        try:
            response.raise_for_error()
        except RunFailed:
            self._unseen[run_id] = response
            return watched(response, lambda: self._unseen.pop(run_id, None))
        return response


_INNER: ContextVar[InnerRuns | None] = ContextVar("inner_runs", default=None)


@contextmanager
def inner_runs() -> Iterator[InnerRuns]:
    """Hear of the runs that are started in this context, as long as it lasts."""
    noted = InnerRuns()
    token = _INNER.set(noted)
    try:
        yield noted
    finally:
        _INNER.reset(token)


async def told_to_step(verb: Awaitable[T]) -> T:
    """What a verb gives: the step whose function called it hears of that, and of nothing within it."""
    noted = _INNER.get()
    if noted is None:
        return await verb
    token = _INNER.set(None)
    try:
        given = await verb
    finally:
        _INNER.reset(token)
    return noted.told(given)


class _Watched:
    """A response that says when its reader learns how the run ended."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        if name in LOOKS:
            look: Callable[[], object] = super().__getattribute__("__dict__").get("look", _nothing)
            look()
        return super().__getattribute__(name)


def _nothing() -> None:
    """What a copy of a watched response says."""


@lru_cache(maxsize=8)
def _watched_kind(kind: type[SystemResponse]) -> Any:
    """A watched class of responses, called like the class itself."""
    make: Any = type(kind)
    return make(
        kind.__name__, (_Watched, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__}, dict=True, gc=True
    )


def watched(response: R, look: Callable[[], object]) -> R:
    """A response that says the same and calls a function when it is looked at."""
    made: R = _watched_kind(type(response))(*field_values(response))
    made.__dict__.update(getattr(response, "__dict__", {}), look=look)
    return made
