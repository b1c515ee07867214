"""Telling, while a run goes on, what happens in it: its words to whoever watches, its turns to the log.

Rule 1: streamed text is provisional: when the model is asked again, whoever watches is told that it is void.
Rule 2: children speak to their parents; only the run itself is heard.
"""

import logging
from collections.abc import Coroutine
from typing import Any

from remit.adapters.cli.looping import Interrupted, in_loop
from remit.adapters.cli.terminal import Terminal
from remit.core.contract import SystemRequest
from remit.core.events import Turn
from remit.core.recovery import Recovery
from remit.observe.logs import correlation_of, run_logger

_log = logging.getLogger(__name__)


class Narrator:
    """Listens to one run; the first it hears of, when it is told no name."""

    def __init__(self, terminal: Terminal, run_id: str = "") -> None:
        self.run_id = run_id
        # What was last shown of an answer that a turn has since been written for.
        self.shown = ""
        self.recovery: Recovery | None = None
        self._terminal = terminal
        self._saying = ""

    def turned(self, run_id: str, request: SystemRequest, turn: Turn) -> None:
        """A turn was written."""
        self.run_id = self.run_id or run_id
        if _log.isEnabledFor(logging.INFO):
            decided = ", ".join(type(decision).__name__ for decision in turn.decisions)
            logger = run_logger(_log, run_id, correlation_of(request))
            logger.info("turn %d: %s -> %s", turn.seq, type(turn.arrival).__name__, decided)
        if run_id == self.run_id and self._saying:
            self._end_line()
            self.shown, self._saying = self._saying, ""

    def said(self, run_id: str, text: str) -> None:
        """A model said something more: it is shown when somebody watches this run."""
        if text and run_id == self.run_id and self._terminal.is_live:
            self._terminal.piece(text)
            self._saying += text

    def restarted(self, run_id: str) -> None:
        """What the model said since the last turn is void."""
        if run_id == self.run_id and self._saying:
            self._end_line()
            self._terminal.remark("the model is asked again; what it said since the last step is void")
            self._saying = ""

    def recovered(self, run_id: str, recovery: Recovery) -> None:
        """A run was taken up again; whoever resumed it is told what was done about its open calls."""
        if run_id == self.run_id:
            self.recovery = recovery

    def tell_recovery(self) -> None:
        """Say what taking the run up again came to, in figures that whoever answers for it can check."""
        if (found := self.recovery) is None:
            return
        lines = [
            f"mutating effects executed twice {found.blindly_repeated}",
            f"safe calls repeated {found.safe_repeated}",
        ]
        lines += [f"made again under the same key {found.keyed_repeated}" for _ in range(bool(found.keyed_repeated))]
        lines += [f"outcomes nobody knows {found.lost}" for _ in range(bool(found.lost))]
        self._terminal.remark(f"taken up after turn {found.seq}: {', '.join(lines)}")
        self.recovery = None

    def abandoned(self, run_id: str, tool: str) -> None:
        """A call went on although it was told to stop."""
        self._terminal.remark(f"a call of tool {tool!r} in run {run_id} did not stop and was abandoned")

    def _end_line(self) -> None:
        if not self._saying.endswith("\n"):
            self._terminal.piece("\n")


def narrated(narrator: Narrator, work: Coroutine[Any, Any, int]) -> int:
    """What a command comes to that drives a run; whoever interrupts it learns how to go on."""
    try:
        return in_loop(work)
    except Interrupted as stop:
        raise (stop.in_run(narrator.run_id) if narrator.run_id else stop) from None
