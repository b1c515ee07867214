"""Verbs against what they declare: by place and by name, of each kind of type that a declaration may hold."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

import pytest

from remit.core.declared_arguments import checks_arguments, checks_only, expect_plain
from remit.core.failure import RequestRejected
from remit.core.run.messages import Message, user_message

T = TypeVar("T")


class Teller(Protocol):
    """Tells something."""

    told: str

    def tell(self) -> str:
        """What there is to tell."""


class Ada:
    """One who tells."""

    def __init__(self) -> None:
        self.told = "much"

    def tell(self) -> str:
        """What there is to tell."""
        return self.told


class Box(Generic[T]):
    """Holds something."""


@checks_arguments("free")
class Desk:
    """Takes one of each kind."""

    async def later(self, name: str, *, count: int = 0, free: int = 0) -> str:
        return f"{name}{count}{free}"

    def now(self, *names: str, share: float = 0.0, is_so: bool = False) -> str:
        return f"{names}{share}{is_so}"

    def hold(
        self,
        *,
        pair: tuple[str, int] = ("a", 1),
        texts: tuple[str, ...] = (),
        lines: Sequence[str] = (),
        stream: Iterable[str] = (),
        message: Message | None = None,
        by_name: Mapping[str, int] = {},  # nothing changes it
        call: Callable[[], None] | None = None,
        kind: type[int] = int,
        word: Literal["on", "off"] = "on",
        noted: Annotated[int, "noted"] = 0,
        teller: Teller | None = None,
        box: Box[int] | None = None,
        bare: None = None,
        anything: Any = None,
        thing: object = None,
        later: "Unknown | None" = None,  # type: ignore[name-defined]  # noqa: F821  # type checkers alone know such names
    ) -> str:
        return "held"

    def _own(self, name: str) -> str:
        return name


DESK = Desk()


@pytest.mark.parametrize(
    "taken",
    [
        {"pair": ("b", 2)},
        {"texts": ("a", "b")},
        {"lines": ["a"]},
        {"stream": iter("ab")},
        {"stream": ["a"]},
        {"message": user_message("hi")},
        {"by_name": {"a": 1}},
        {"call": print},
        {"kind": bool},
        {"word": "off"},
        {"noted": 2},
        {"teller": Ada()},
        {"box": Box()},
        {"bare": None},
        {"anything": 5},
        {"thing": 5},
        {"later": 5},
    ],
    ids=lambda taken: next(iter(taken)),
)
def test_what_is_declared_is_taken(taken: dict[str, Any]) -> None:
    assert DESK.hold(**taken) == "held"


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ("pair", ["b", 2]),
        ("texts", ("a", 1)),
        ("texts", "ab"),
        ("lines", "ab"),
        ("lines", [1]),
        ("stream", "ab"),
        ("stream", 5),
        ("message", "hi"),
        ("by_name", {"a": "b"}),
        ("by_name", {1: 1}),
        ("by_name", [("a", 1)]),
        ("call", 5),
        ("kind", 5),
        ("word", "out"),
        ("noted", "two"),
        ("teller", object()),
        ("box", 5),
        ("bare", 5),
    ],
)
def test_what_is_not_declared_is_refused_by_its_name(argument: str, wrong: Any) -> None:
    with pytest.raises(
        RequestRejected, match=rf"REQUEST_MALFORMED: {argument}=.* cannot be used; it takes "
    ) as refused:
        DESK.hold(**{argument: wrong})
    assert refused.value.details["field"] == argument


def test_arguments_are_looked_at_by_place_and_by_name() -> None:
    verb: Any = DESK.now
    assert verb("a", "b", share=1, is_so=True) == "('a', 'b')1True"
    for args, named, what in (
        (("a", 5), {}, "names=5"),
        ((), {"share": True}, "share=True"),
        ((), {"is_so": 1}, "is_so"),
    ):
        with pytest.raises(RequestRejected, match=what):
            verb(*args, **named)


def test_a_coroutine_refuses_when_it_is_awaited() -> None:
    async def story() -> None:
        verb: Any = DESK.later
        assert await verb("a", count=2) == "a20"
        wrong = [verb(None), verb(name=5), verb("a", count="b"), verb("a", count=True)]
        for one in wrong:
            with pytest.raises(RequestRejected):
                await one

    asyncio.run(story())


def test_what_a_verb_reads_itself_and_what_is_its_own_is_left_to_it() -> None:
    async def story() -> None:
        verb: Any = DESK.later
        assert await verb("a", free="b") == "a0b"

    asyncio.run(story())
    own: Any = DESK._own  # to see that it is not looked at
    assert own(5) == 5


def test_python_itself_counts_arguments() -> None:
    verb: Any = DESK.hold
    with pytest.raises(TypeError, match="unexpected keyword"):
        verb(other=5)
    with pytest.raises(TypeError, match="positional"):
        verb(5, 6)


def test_of_one_function_only_what_is_named_is_looked_at() -> None:
    @checks_only("name")
    def told(name: str, count: int) -> str:
        return f"{name}{count}"

    verb: Any = told
    assert verb("a", "b") == "ab"
    with pytest.raises(RequestRejected, match="name=5"):
        verb(5, 5)


async def _later(*_: object) -> None:
    """Has to be awaited."""


async def _one_by_one(*_: object) -> AsyncIterator[int]:
    """Has to be iterated, step by step."""
    yield 1


class Awaited:
    """Is called, and has to be awaited."""

    async def __call__(self, *_: object) -> None:
        """Nothing yet."""


@pytest.mark.parametrize("listener", [_later, _one_by_one, Awaited(), 5, "told"])
def test_a_listener_is_called_and_not_awaited(listener: Any) -> None:
    with pytest.raises(RequestRejected, match="on_turn"):
        expect_plain("on_turn", listener)


@pytest.mark.parametrize("listener", [None, print, Ada])
def test_a_plain_function_or_none_may_listen(listener: Any) -> None:
    expect_plain("on_turn", listener)


class Recorder(Protocol):
    """Keeps what it is told."""

    def record(self, what: str) -> None:
        """Keep it."""


@checks_only("observer", "after")
def _told_by(observer: Recorder | None = None, after: Callable[[], None] | None = None) -> bool:
    return observer is None and after is None


class LateRecorder:
    """Would have to be awaited."""

    async def record(self, what: str) -> None:
        """Keep it, later."""


def test_what_has_to_be_awaited_is_refused_with_the_way_out() -> None:
    assert _told_by()
    with pytest.raises(RequestRejected, match="give a plain function"):
        _told_by(after=_later)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(RequestRejected, match="give a plain function"):
        _told_by(LateRecorder())  # type: ignore[arg-type]  # what is refused
