"""How far a run is, as a watcher sees it."""

import asyncio

import pytest

from remit.adapters.cli.screen.progress import Progress, bar, compact
from remit.core.limits.budget import FIELDS
from remit.observe.views.explain import Spent
from remit.observe.watcher import Meter
from tests.unit.adapters.emulator import Emulator
from tests.unit.adapters.test_cli_live_lines import Sized

MARKS = ("#", ".")


class Clock:
    """A clock that stands until the test moves it."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


def meter(doing: tuple[str, ...] = ("asking smollm2",), **used: int) -> Meter:
    """A run that has used so much, of a hundred each."""
    return Meter("think", doing, tuple(Spent(name, used.get(name, 0), 100) for name in FIELDS))


@pytest.fixture(autouse=True)
def _a_terminal_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_where_it_stands_what_it_waits_for_and_how_long_stand_in_one_line() -> None:
    clock = Clock()
    progress = Progress(Sized(Emulator(columns=100)), clock=clock)
    assert progress.lines() == ["  starting  0 ms"]
    progress.measured(meter(tool_calls=2))
    clock.now_s += 1.5
    assert progress.lines()[0] == "  think: asking smollm2  1.5 s  2 tool calls"
    progress.measured(meter((), tool_calls=1))
    assert progress.lines()[0] == "  think: deciding  1.5 s  1 tool call"


def test_the_fullest_dimensions_have_bars_and_the_clock_goes_on_between_turns() -> None:
    clock = Clock()
    progress = Progress(Sized(Emulator(columns=100)), clock=clock)
    progress.measured(meter(tool_calls=25, steps=50, wall_clock_ms=10, output_tokens=1))
    clock.now_s += 0.08
    assert progress.lines()[1] == ("  time #######. 90 ms of 100 ms  steps ####.... 50/100  tool calls ##...... 25/100")


def test_a_narrow_terminal_has_as_many_bars_as_fit() -> None:
    progress = Progress(Sized(Emulator(columns=40)), clock=Clock())
    progress.measured(meter(tool_calls=25, steps=50))
    assert progress.lines()[1:] == ["  steps ####.... 50/100"]
    narrowest = Progress(Sized(Emulator(columns=20)), clock=Clock())
    narrowest.measured(meter(tool_calls=25, steps=50))
    assert len(narrowest.lines()) == 1


def test_loading_is_told_at_once_and_until_the_run_moves_on() -> None:
    screen = Emulator(columns=60)

    async def watch() -> None:
        progress = Progress(Sized(screen), clock=Clock())
        progress.begin()
        progress.loading("loading smollm2")
        assert screen.lines == ["", "  loading smollm2  0 ms"]
        progress.measured(meter())
        assert progress.lines()[0].startswith("  think")
        progress.end()

    asyncio.run(watch())
    assert screen.lines == []


def test_what_has_hardly_begun_is_not_shown_and_what_takes_longer_is() -> None:
    screen, clock = Emulator(columns=60), Clock()

    async def watch() -> None:
        progress = Progress(Sized(screen), clock=clock)
        progress.begin()
        progress.measured(meter())
        assert screen.lines == []
        clock.now_s += 1
        async with asyncio.timeout(10):
            while not screen.lines:  # noqa: ASYNC110  # the ticker brings it about
                await asyncio.sleep(0.01)
        progress.end()
        assert screen.lines == []
        progress.end()

    asyncio.run(watch())


@pytest.mark.parametrize(
    ("used", "cap", "shown"),
    [(0, 10, "........"), (1, 1000, "#......."), (999, 1000, "#######."), (10, 10, "########"), (1, 0, "########")],
)
def test_something_used_is_never_an_empty_bar_and_a_full_one_means_nothing_left(
    used: int, cap: int, shown: str
) -> None:
    assert bar(used, cap, MARKS) == shown


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "0"), (999, "999"), (1000, "1k"), (60_000, "60k"), (1_234_567, "1.2M"), (10**9, "1G")]
)
def test_a_number_takes_few_characters(amount: int, shown: str) -> None:
    assert compact(amount) == shown
