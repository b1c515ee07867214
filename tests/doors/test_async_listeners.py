"""A function that is called and not awaited is a plain one: an async one is refused at once, wherever it is given."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from remit import AgentLoop, Listener, PlanExecutor, RedundantLoop, RequestRejected, ScriptedEngine, SpecializedLoop

ENGINE = ScriptedEngine([{"text": "a"}])
SCHEMA = {"type": "object"}


async def heard(*said: Any) -> None:
    """What would never be called."""


async def pieces(*said: Any) -> Any:
    yield said


class Caller:
    async def __call__(self, *said: Any) -> None:
        """What would never be called."""


class Log:
    async def record(self, event: Any) -> None:
        """What would never be called."""


class PlainLog:
    def record(self, event: Any) -> None:
        """Hears everything."""


DOORS: dict[str, Callable[..., object]] = {
    "agent": partial(AgentLoop, ENGINE),
    "plan": partial(PlanExecutor, {}),
    "redundant": partial(RedundantLoop, ENGINE, schema=SCHEMA),
    "specialized": partial(SpecializedLoop, ENGINE, schema=SCHEMA),
    "listener": Listener,
}
PLACES = [
    ("agent", "stream"),
    ("agent", "on_tool_result"),
    ("specialized", "stream"),
    ("listener", "on_turn"),
    ("listener", "on_chunk"),
    ("listener", "on_recovered"),
]


@pytest.mark.parametrize(
    "given",
    [heard, partial(heard, 1), Caller(), Caller().__call__, pieces],
    ids=["async", "partial", "called", "method", "pieces"],
)
@pytest.mark.parametrize(("door", "place"), PLACES)
def test_an_async_function_is_no_listener(door: str, place: str, given: object) -> None:
    with pytest.raises(RequestRejected) as raised:
        DOORS[door](**{place: given})
    assert raised.value.code == "REQUEST_MALFORMED"
    assert place in raised.value.message
    assert "not awaited" in raised.value.message


@pytest.mark.parametrize("door", ["agent", "plan", "redundant", "specialized"])
def test_an_observer_that_would_have_to_be_awaited_is_refused(door: str) -> None:
    with pytest.raises(RequestRejected) as raised:
        DOORS[door](observer=Log())
    assert raised.value.code == "REQUEST_MALFORMED"
    assert "not awaited" in raised.value.message
    DOORS[door](observer=PlainLog())


@pytest.mark.parametrize("given", [7, "text", []], ids=repr)
def test_what_cannot_be_called_is_no_listener(given: Any) -> None:
    with pytest.raises(RequestRejected) as raised:
        Listener(on_turn=given)
    assert raised.value.code == "REQUEST_MALFORMED"


def test_plain_functions_are_listeners() -> None:
    for door, place in PLACES:
        DOORS[door](**{place: print})
        DOORS[door](**{place: None})
