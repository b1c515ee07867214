"""A chat at a terminal: read a line, do what it says, show what came of it, until the user leaves.

Rule 1: an error is a line, and the chat goes on; a second Ctrl-C is the only thing that does not wait.
Rule 2: a user who leaves is told how to come back, and what still waits for an answer.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from remit.adapters.cli.answers.attendance import previews_of, reply_to
from remit.adapters.cli.answers.signal_delivery import at_rest
from remit.adapters.cli.chat import slash
from remit.adapters.cli.chat.governed_chat import ChatTerms
from remit.adapters.cli.chat.keyboard import Keyboard
from remit.adapters.cli.event_loop import Interrupted, heeding
from remit.adapters.cli.screen.colours import Ink
from remit.adapters.cli.screen.narration import tell
from remit.adapters.cli.screen.packet_lines import way_to_answer
from remit.adapters.cli.screen.progress import compact
from remit.adapters.cli.screen.response_lines import give
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK, Ending, RemitError
from remit.core.limits.budget import FIELDS, Dimension
from remit.core.run.contract import SystemResponse
from remit.core.run.messages import Role
from remit.observe.figures import duration, money
from remit.observe.views.explain import Spent

_T = TypeVar("_T")

# The exchanges that a user who comes back is reminded of, and how much of each message.
REMINDED_MESSAGES = 4
REMINDED_CHARS_MAX = 600
# What people type who want to leave; no model is asked for it.
LEAVING = ("exit", "quit")
# How often in a row Ctrl-C is pressed at the prompt to leave.
PRESSES_TO_LEAVE = 2
# What people look at; anything else only when half of it is gone.
_LOOKED_AT = (Dimension.WALL_CLOCK_MS, Dimension.OUTPUT_TOKENS, Dimension.TOOL_CALLS, Dimension.SIDE_EFFECTS)
_NEVER = (Dimension.DEPTH, Dimension.RETRIES)
_HALF = 2


class TerminalChat:
    """The user of a terminal, and their conversation."""

    def __init__(
        self,
        terminal: Terminal,
        conversation: ChatTerms,
        keyboard: Keyboard,
        runner: asyncio.Runner,
        options: str = "",
    ) -> None:
        self.terminal = terminal
        self.conversation = conversation
        self.is_over = False
        self._keyboard = keyboard
        self._runner = runner
        # What the chat was begun with, as it was typed.
        self._options = options

    def last(self) -> int:
        """Read and answer lines until the user leaves."""
        presses = 0
        while not self.is_over and presses < PRESSES_TO_LEAVE:
            try:
                if presses:
                    self.terminal.remark("")
                    self.terminal.remark("Ctrl-C once more, or Ctrl-D, leaves")
                line = self._keyboard.message()
                presses = 0
                if line is None:
                    break
                self._hear(line)
            except KeyboardInterrupt:
                presses += 1
        self.terminal.remark("")
        self._part()
        return EXIT_OK

    def enter(self, session_id: str) -> None:
        """Go on with a session, or begin one, and remind the user of what was said."""
        self.conversation.session_id = session_id
        said = self.run(self.conversation.messages())
        self.terminal.remark(f"session {session_id}" + ("" if said else ", a new one"))
        for message in said[-REMINDED_MESSAGES:]:
            assert isinstance(message.content, str), "the texts of a session are told in full"
            text = message.content[:REMINDED_CHARS_MAX] + ("…" if len(message.content) > REMINDED_CHARS_MAX else "")
            self.terminal.text(f"> {text}" if message.role is Role.USER else text)
        if run_id := self.run(self.conversation.open_run()):
            self.terminal.remark(f"run {run_id} is open; /resume goes on with it, /cancel ends it")

    def exchange(self, work: Coroutine[Any, Any, SystemResponse]) -> None:
        """See some work through: what it comes to is shown, and what it asks is asked."""
        response, left = self._interruptible(work), set[str]()
        while response.waiting_for is not None:
            open_now = self.run(self.conversation.system.archive.approvals(response.run_id))
            previews = self.run(previews_of(self.conversation.system, open_now))
            said = reply_to(self.terminal, self._keyboard, open_now, left, previews)
            if said is None:
                break
            asked, reply = said
            try:
                response = self._interruptible(self.conversation.answer(asked, reply))
            except Interrupted:
                raise
            except RemitError as error:
                # Another person may have answered it meanwhile, or no person may answer it.
                self.terminal.complain(error)
                left.add(asked.id)
                response = self._interruptible(at_rest(self.conversation.system, response.run_id))
        self._show(response)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine to its end and give its result; for work that takes a moment only."""
        return self._runner.run(work)

    def _hear(self, line: str) -> None:
        if not line.strip():
            return
        if line.strip().lower() in LEAVING:
            self.is_over = True
            return
        try:
            if line.startswith(slash.SLASH) and not line.startswith(slash.SLASH * 2):
                slash.obey(self, line)
            else:
                self.exchange(
                    self.conversation.say(line.removeprefix(slash.SLASH) if line[:1] == slash.SLASH else line)
                )
        except Interrupted:
            raise
        except RemitError as error:
            self.terminal.complain(error)

    def _interruptible(self, work: Coroutine[Any, Any, SystemResponse]) -> SystemResponse:
        conversation = self.conversation
        return self._runner.run(
            heeding(work, on_first=self._cancelling, on_second=conversation.narrator.cut_off, gently=conversation.stop)
        )

    def _cancelling(self, number: int) -> None:
        self.conversation.narrator.progress.wipe_echo()
        self.terminal.remark("cancelling; Ctrl-C once more stops at once")

    def _show(self, response: SystemResponse) -> None:
        if response.waiting_for is not None:
            self.terminal.remark(f"run {response.run_id} waits; /resume asks again, and from elsewhere:")
            for asked in self.run(self.conversation.system.archive.approvals(response.run_id)):
                # What is asked was just shown in full.
                self.terminal.remark(f"    {way_to_answer(asked)}")
            return
        self.run(give(self.terminal, self.conversation.system, response, said=self.conversation.narrator.shown))
        if response.terminal_code is Ending.USER_CANCEL:
            self.terminal.remark("what it had done is kept; /explain tells, /retry tries it again, or just go on")
        if used := used_line(self.run(self.conversation.told(response.run_id)).explanation.spent):
            tell(self.terminal, ((used, Ink.FAINT),))

    def _part(self) -> None:
        session_id = self.conversation.session_id
        if self.run(self.conversation.runs()):
            self.terminal.remark(f"go on with: remit chat --session {session_id}{self._options}")
        if run_id := self.run(self.conversation.open_run()):
            self.terminal.remark(f"run {run_id} is still open; `remit approvals` lists what is asked")


def used_line(spent: tuple[Spent, ...]) -> str:
    """What an exchange has used, as far as a listener looks at it."""
    said = [_used(entry) for entry in sorted(filter(_is_looked_at, spent), key=_is_counted)]
    return f"  used {', '.join(said)}" if said else ""


def _is_looked_at(entry: Spent) -> bool:
    dimension = Dimension[entry.dimension.upper()]
    if dimension in _NEVER or not entry.used:
        return False
    return dimension in _LOOKED_AT or entry.used * _HALF >= entry.cap


def _is_counted(entry: Spent) -> bool:
    """The clock stands first."""
    return entry.dimension != FIELDS[Dimension.WALL_CLOCK_MS]


def _used(entry: Spent) -> str:
    if entry.dimension == FIELDS[Dimension.WALL_CLOCK_MS]:
        return f"{duration(entry.used)} of {duration(entry.cap)}"
    if entry.dimension == FIELDS[Dimension.INFERENCE_COST_MICROUSD]:
        return f"{money(entry.used)} of {money(entry.cap)}"
    return f"{compact(entry.used)}/{compact(entry.cap)} {entry.dimension.replace('_', ' ')}"
