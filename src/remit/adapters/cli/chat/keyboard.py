"""What a person types, and what a pipe brings.

Rule 1: a line may be edited, called back from an earlier day, and continued: by a backslash at its end, or by pasting
        several at once. What was typed before the prompt stood there are lines of their own.
Rule 2: what was typed before a question was asked is no answer to it: it is thrown away first.
Rule 3: only messages are remembered, in a file that its owner alone can read, and only so many of them. No secret is
        written there, nor does one stay that was written before.
"""

import os
import select
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType

from remit.adapters.cli.arguments.inputs import PROMPT_UNREADABLE, InputUnusable, stdin_bytes
from remit.adapters.cli.screen.terminal import Aside, Terminal
from remit.core.regular_file import expect_regular
from remit.core.run.request_checks import REQUEST_BYTES_MAX
from remit.core.secrets.secret_search import covered

HISTORY_FILE = "chat_history"
# A year of a conversation a day; the file stays smaller than a picture.
HISTORY_LINES_MAX = 2_000
_OWNER_ONLY = 0o600
# What is pasted lies there as a whole; a person who types needs longer than this for the next key.
PASTE_GAP_S = 0.02
PROMPT, MORE = "> ", ". "
CONTINUES = "\\"

_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Keyboard:
    """A person at a terminal."""

    def __init__(
        self,
        terminal: Terminal,
        history: Path,
        completions: Sequence[str] = (),
        cover: Callable[[str], str] = covered,
    ) -> None:
        self._terminal = terminal
        # Takes secrets out of what is written.
        self._cover = cover
        self._history = history
        self._completions = sorted(completions)
        self._readline = _editor()

    def __enter__(self) -> "Keyboard":
        if (editor := self._readline) is not None:
            editor.set_auto_history(False)
            editor.set_history_length(HISTORY_LINES_MAX)
            editor.clear_history()
            with suppress(OSError):
                expect_regular(self._history)
                editor.read_history_file(self._history)
            editor.set_completer_delims(" ")
            editor.set_completer(self._complete)
            editor.parse_and_bind("tab: complete")
        return self

    def __exit__(self, *_: object) -> None:
        if (editor := self._readline) is not None:
            editor.set_completer(None)
            # A store that cannot be written has no place for a history either.
            with suppress(OSError):
                os.close(os.open(self._history, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, _OWNER_ONLY))
                expect_regular(self._history)
                self._cover_lines(editor)
                editor.write_history_file(self._history)
                self._history.chmod(_OWNER_ONLY)

    def message(self) -> str | None:
        """Read the next message of the person, of one line or several; None when no more comes."""
        lines: list[str] = []
        # A user who types while an answer comes says one thing after the other; only a paste is one thing.
        prompt, is_ahead = PROMPT, _has_more(0)
        while True:
            try:
                line = self._read(prompt)
            except EOFError:
                return "\n".join(lines) if lines else None
            if line.endswith(CONTINUES):
                lines.append(line.removesuffix(CONTINUES))
            else:
                lines.append(line)
                if is_ahead or not _has_more(PASTE_GAP_S):
                    break
            prompt = MORE
        text = "\n".join(lines)
        if self._readline is not None and text.strip():
            # The file has a line for each; one that goes on is remembered as one.
            self._readline.add_history(" ".join(text.split("\n")))
        return text

    def answer(self, question: str, draft: str = "") -> str | None:
        """What the person says to a question, beginning with a draft to be edited; None for silence."""
        if sys.stdin.isatty() and _is_descriptor(sys.stdin.fileno, _STDIN):
            termios.tcflush(_STDIN, termios.TCIFLUSH)
        editor = self._readline
        if editor is not None and draft:
            editor.set_startup_hook(lambda: editor.insert_text(draft))
        try:
            return self._read(question)
        except (EOFError, KeyboardInterrupt):
            self._terminal.remark("")
            return None
        finally:
            if editor is not None:
                editor.set_startup_hook(None)

    def _cover_lines(self, editor: ModuleType) -> None:
        for place in range(editor.get_current_history_length()):
            # Lines are counted from 1 where they are read, and from 0 where they are replaced.
            line = editor.get_history_item(place + 1) or ""
            if (clean := self._cover(line)) != line:
                editor.replace_history_item(place, clean)

    def _read(self, prompt: str) -> str:
        with _real_stdout(self._terminal):
            return input(prompt)

    def _complete(self, text: str, state: int) -> str | None:
        found = [word for word in self._completions if text and word.startswith(text)]
        return found[state] if state < len(found) else None


class Pipe:
    """A pipe that brings messages, one a line, and answers no questions."""

    def message(self) -> str | None:
        """The next line that says something; None at the end."""
        while data := stdin_bytes(PROMPT_UNREADABLE).readline(REQUEST_BYTES_MAX + 1):
            if len(data) > REQUEST_BYTES_MAX:
                message = f"a line of the input has more than line_bytes_max={REQUEST_BYTES_MAX}; put it into a file"
                raise InputUnusable(PROMPT_UNREADABLE, f"{message} and use `remit run --file`")
            try:
                line = data.decode("utf-8-sig").strip()
            except UnicodeDecodeError as error:
                message = f"a line of the input is not UTF-8 text: byte {error.start} of it is wrong"
                raise InputUnusable(PROMPT_UNREADABLE, message) from error
            if line:
                return line
        return None

    def answer(self, question: str, draft: str = "") -> str | None:
        """Silence: what comes next in a pipe was written before the question was asked."""
        return None


@contextmanager
def _real_stdout(terminal: Terminal) -> Iterator[None]:
    """Lead stdout to the terminal for as long as a person types: the line editor writes there and nowhere else."""
    own = terminal.descriptor
    if own is None or own <= _STDERR or not isinstance(sys.stdout, Aside) or sys.__stdout__ is None:
        yield
        return
    os.dup2(own, _STDOUT)
    try:
        with redirect_stdout(sys.__stdout__):
            yield
    finally:
        os.dup2(_STDERR, _STDOUT)


def _has_more(wait_s: float) -> bool:
    """Whether something was typed already, or is within so many seconds, as the next line of a paste is."""
    if not _is_descriptor(sys.stdin.fileno, _STDIN):
        return False
    return bool(select.select([_STDIN], [], [], wait_s)[0]) and not _is_at_end()


def _is_at_end() -> bool:
    """Whether the terminal has hung up, which looks like something to read."""
    poll = select.poll()
    poll.register(_STDIN, select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _is_descriptor(fileno: Callable[[], int], number: int) -> bool:
    try:
        return fileno() == number
    except (OSError, ValueError):
        return False


def _editor() -> ModuleType | None:
    """The line editor, where there is one and a person types."""
    if not sys.stdin.isatty() or not _is_descriptor(sys.stdin.fileno, _STDIN):
        return None
    try:
        import readline
    except ImportError:
        return None
    return readline
