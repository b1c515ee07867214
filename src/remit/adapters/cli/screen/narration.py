"""Telling, while a run goes on, what happens in it: its words to the user, its turns to the log.

Rule 1: streamed text is provisional: when the model is asked again, the user is told that it is void.
Rule 2: children speak to their parents; only the run itself is heard.
Rule 3: how far the run is hangs below its words on a terminal, and is gone at the end.
Rule 4: that a model is being loaded is said in the log by the loader; here it is only shown, and the log stays as it was set.
"""

import logging
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from remit.adapters.cli.event_loop import Interrupted, in_loop
from remit.adapters.cli.screen.colours import Line
from remit.adapters.cli.screen.progress import Progress
from remit.adapters.cli.screen.terminal import Terminal, wants_colour
from remit.adapters.cli.screen.widths import cells, fitted
from remit.core.journal.turn import Turn
from remit.core.run.contract import SystemRequest
from remit.core.run.recovery import Recovery
from remit.observe.logs import correlation_of, run_logger
from remit.observe.watcher import Meter

_log = logging.getLogger(__name__)
# Who loads models, and how each of its messages begins.
LOADER = "remit.inference.local.server"
BEGUN = "loading"


class Teller(Protocol):
    """Has something to say about the turns of a run."""

    def lines(self, turn: Turn) -> Iterable[Line]:
        """What a turn is told as; nothing for most."""


class Narrator:
    """Listens to one run; the first it hears of, when it is told no name. With a teller it shows tool calls as well."""

    def __init__(self, terminal: Terminal, run_id: str = "", *, teller: Teller | None = None) -> None:
        self.run_id = run_id
        # What was last shown of an answer that a turn has since been written for.
        self.shown = ""
        self.recovery: Recovery | None = None
        self.progress = Progress(terminal)
        self._terminal = terminal
        self.teller = teller
        self._saying = ""

    def turned(self, run_id: str, request: SystemRequest, turn: Turn) -> None:
        """A turn was written."""
        self.run_id = self.run_id or run_id
        if _log.isEnabledFor(logging.INFO):
            decided = ", ".join(type(decision).__name__ for decision in turn.decisions)
            logger = run_logger(_log, run_id, correlation_of(request))
            logger.info("turn %d: %s -> %s", turn.seq, type(turn.arrival).__name__, decided)
        if run_id != self.run_id:
            return
        if self._saying:
            self._terminal.end_piece()
            self.shown, self._saying = self._saying, ""
        if self.teller is not None:
            for line in self.teller.lines(turn):
                tell(self._terminal, line)

    def measured(self, run_id: str, meter: Meter) -> None:
        """Where the run stands now, and what it has used."""
        if run_id == self.run_id:
            self.progress.measured(meter)

    def loading(self, text: str) -> None:
        """Something is being made ready before the run can go on, such as a model."""
        _log.info("%s", text)
        self.progress.loading(text)

    def said(self, run_id: str, text: str) -> None:
        """A model said something more: it is shown when this run is watched."""
        if text and run_id == self.run_id and self._terminal.is_live:
            self._terminal.piece(text)
            self._saying += text
            self.progress.show()

    def restarted(self, run_id: str) -> None:
        """Forget what the model said since the last turn, and say that it is void."""
        if run_id == self.run_id and self._saying:
            self._terminal.end_piece()
            self._terminal.remark("the model is asked again; what it said since the last step is void")
            self._saying = ""

    def recovered(self, run_id: str, recovery: Recovery) -> None:
        """A run was taken up again; say what was done about its open calls."""
        if run_id == self.run_id:
            self.recovery = recovery

    def tell_recovery(self) -> None:
        """Say what taking the run up again came to, in figures that can be checked."""
        if (found := self.recovery) is None:
            return
        lines = [
            f"mutating effects executed twice {found.blindly_repeated}",
            f"safe calls repeated {found.safe_repeated}",
        ]
        lines += [f"made again under the same key {found.keyed_repeated}" for _ in range(bool(found.keyed_repeated))]
        lines += [f"unknown outcomes {found.lost}" for _ in range(bool(found.lost))]
        self._terminal.remark(f"taken up after turn {found.seq}: {', '.join(lines)}")
        self.recovery = None

    def abandoned(self, run_id: str, tool: str) -> None:
        """A call went on although it was told to stop."""
        self._terminal.remark(f"a call of tool {tool!r} in run {run_id} did not stop and was abandoned")

    def interrupted(self, number: int) -> None:
        """The command was interrupted: the user learns that it is heard, and what a second time would do."""
        if number == signal.SIGINT and self._terminal.is_watched:
            self.progress.wipe_echo()
            self._terminal.remark("stopping; what is under way is let go first, and Ctrl-C once more stops at once")

    def cut_off(self, number: int) -> None:
        """The command was interrupted a second time: the last words, before the process goes."""
        self.progress.end()
        self._terminal.remark(Interrupted(number).at_once(self.run_id).message)

    def hear_next(self) -> None:
        """Listen to the next run, as if nothing had been heard."""
        self.run_id, self.shown, self._saying, self.recovery = "", "", "", None


def narrated(narrator: Narrator, work: Coroutine[Any, Any, int]) -> int:
    """What a command comes to that drives a run; a user who interrupts it learns how to go on."""
    try:
        return in_loop(_shown(narrator, work), on_first=narrator.interrupted, on_second=narrator.cut_off)
    except Interrupted as stop:
        raise (stop.in_run(narrator.run_id) if narrator.run_id else stop) from None


async def _shown(narrator: Narrator, work: Coroutine[Any, Any, int]) -> int:
    narrator.progress.begin()
    try:
        with shown_while_loading(narrator.progress.loading):
            return await work
    finally:
        narrator.progress.end()


def tell(terminal: Terminal, line: Line) -> None:
    """Say one line beside the answer, cut to the width, in colours where they are seen and wanted."""
    if not terminal.is_watched:
        terminal.remark("".join(text for text, _ in line))
        return
    is_coloured, room = wants_colour(), terminal.screen().columns - 1
    shown: list[tuple[str, str]] = []
    for text, ink in line:
        kept = fitted(text, room)
        shown.append((kept, ink if is_coloured else ""))
        room = room - cells(kept) if kept == text else 0
    terminal.paint_beside(shown)


class _Ear(logging.Handler):
    """Passes on what is being loaded, and nothing once it is."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:  # type: ignore[explicit-override]  # Python 3.12 has the mark
        """Hear one line of the log."""
        text = record.getMessage()
        self._show(text if text.startswith(BEGUN) else "")


@contextmanager
def shown_while_loading(show: Callable[[str], None]) -> Iterator[None]:
    """Show what is being loaded for as long as this lasts."""
    logger, ear = logging.getLogger(LOADER), _Ear(show)
    level, propagates = logger.level, logger.propagate
    logger.propagate = propagates and logger.isEnabledFor(logging.INFO)
    logger.setLevel(logging.INFO)
    logger.addHandler(ear)
    try:
        yield
    finally:
        logger.removeHandler(ear)
        logger.setLevel(level)
        logger.propagate = propagates
