"""How far a run is, while it is watched: where it stands, what it waits for, how long it takes, what it has used.

Rule 1: it hangs below the text and is gone at the end; nothing of it stays in a transcript.
Rule 2: numbers come from the run's own meter; only the clock between two turns is read here.
"""

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic

from remit.adapters.cli.screen.live_lines import BelowText
from remit.adapters.cli.screen.terminal import Terminal
from remit.adapters.cli.screen.widths import cells
from remit.core.limits.budget import FIELDS, Dimension
from remit.core.record import replace
from remit.observe.figures import duration
from remit.observe.views.explain import Spent
from remit.observe.watcher import Meter

# As often as a number can be read, and seldom enough to cost nothing.
TICK_S = 0.2
# Whatever takes less was no wait.
PATIENCE_S = 0.3
# More is no glance any more.
BARS_MAX = 3
BAR_CHARS = 8
_MARKS, _MARKS_ASCII = ("█", "░"), ("#", ".")
_INDENT = "  "

_CLOCK = FIELDS[Dimension.WALL_CLOCK_MS]
_LARGE = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


class Progress:
    """Shows how far a run is, on a terminal; elsewhere it shows nothing."""

    def __init__(self, terminal: Terminal, *, clock: Callable[[], float] = monotonic) -> None:
        self._below = BelowText(terminal)
        self._marks = _MARKS if terminal.has_unicode else _MARKS_ASCII
        self._terminal = terminal
        self._clock = clock
        self._began_s = clock()
        self._metered_s = self._began_s
        self._meter: Meter | None = None
        self._loading = ""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Show it from now on, again and again; only within an event loop."""
        self._began_s = self._metered_s = self._clock()
        self._meter, self._loading = None, ""
        self._below.open()
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def end(self) -> None:
        """Take it away."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._below.close()

    def wipe_echo(self) -> None:
        """Take away the sign by which a terminal shows that Ctrl-C was pressed."""
        self._below.clear_line()

    def measured(self, meter: Meter) -> None:
        """The run has moved on."""
        self._meter, self._metered_s, self._loading = meter, self._clock(), ""
        self.show()

    def loading(self, text: str) -> None:
        """Something is being made ready, and takes its time."""
        self._loading = text
        self._below.show(self.lines())

    def show(self) -> None:
        """Show it as it is now, unless it has hardly begun."""
        if self._clock() - self._began_s >= PATIENCE_S:
            self._below.show(self.lines())

    def lines(self) -> list[str]:
        """What is shown: a line in words, and one of bars once there is something to measure."""
        columns, elapsed_ms = self._terminal.screen().columns, self._elapsed_ms(self._began_s)
        if self._loading or self._meter is None:
            return [f"{_INDENT}{self._loading or 'starting'}  {duration(elapsed_ms)}"]
        meter = self._meter
        doing = ", ".join(meter.doing) or "deciding"
        words = f"{_INDENT}{meter.node}: {doing}  {duration(elapsed_ms)}{_calls(meter)}"
        return [words, *(line for line in [_joined(self._bars(meter), columns - 1)] if line)]

    def _bars(self, meter: Meter) -> Iterator[str]:
        """A bar for each dimension that moves: the clock, which goes on between two turns, and then the fullest first."""
        now = [self._clocked(spent) if spent.dimension == _CLOCK else spent for spent in meter.spent]
        moving = [spent for spent in now if spent.used and spent.cap]
        for spent in sorted(moving, key=_rank)[:BARS_MAX]:
            if spent.dimension == _CLOCK:
                said = f"{duration(spent.used)} of {duration(spent.cap)}"
            else:
                said = f"{compact(spent.used)}/{compact(spent.cap)}"
            yield f"{_words(spent)} {bar(spent.used, spent.cap, self._marks)} {said}"

    def _clocked(self, spent: Spent) -> Spent:
        return replace(spent, used=spent.used + self._elapsed_ms(self._metered_s))

    def _elapsed_ms(self, since_s: float) -> int:
        return round((self._clock() - since_s) * 1000)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.show()


def bar(used: int, cap: int, marks: tuple[str, str], length: int = BAR_CHARS) -> str:
    """How much of a cap is used. Something used is never an empty bar, and a bar is full only where nothing is left."""
    full, empty = marks
    filled = 0 if not used else length if used >= cap else max(length * used // cap, 1)
    return full * filled + empty * (length - filled)


def compact(amount: int) -> str:
    """A number in few characters."""
    for factor, letter in _LARGE:
        if amount >= factor:
            return f"{amount / factor:.1f}".removesuffix(".0") + letter
    return str(amount)


def _joined(parts: Iterator[str], columns: int) -> str:
    """As many parts as fit one line, from the first on."""
    line = ""
    for part in parts:
        longer = f"{line}{_INDENT}{part}"
        if cells(longer) > columns:
            break
        line = longer
    return line


def _calls(meter: Meter) -> str:
    used = next((spent.used for spent in meter.spent if spent.dimension == FIELDS[Dimension.TOOL_CALLS]), 0)
    return f"  {used} tool call{'s' if used > 1 else ''}" if used else ""


def _rank(spent: Spent) -> tuple[bool, float]:
    return spent.dimension != _CLOCK, -spent.used / spent.cap


def _words(spent: Spent) -> str:
    return "time" if spent.dimension == _CLOCK else spent.dimension.replace("_", " ")
