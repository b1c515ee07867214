"""What reaches the terminal, and what must not.

Rule 1: stdout carries answers and nothing else. Whatever a tool prints while a run goes on, through Python or past it,
        goes to stderr.
Rule 2: a line holds nothing that a terminal obeys: what does not print as it is, is escaped.
Rule 3: JSON is plain ASCII.
Rule 4: a reader that has closed its end is written to no more; nothing else changes. Any other failure to answer is an error.
Rule 5: a part that shows something that comes and goes is asked to make way before anything is written to stay.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from threading import RLock
from typing import Any, BinaryIO, TextIO

from remit.adapters.cli.screen.widths import column_after
from remit.core.failure import RemitError
from remit.core.record import Record
from remit.core.run.usage import TokenUsage, usage_figures
from remit.observe.plain import is_seen, printable_line

OUTPUT_UNWRITABLE = "OUTPUT_UNWRITABLE"

_STDOUT, _STDERR = 1, 2
_DELETE = "\x7f"
# A page; whatever makes an error longer was put into it from outside.
_MESSAGE_CHARS_MAX = 2_000
# Enough that a long list is written in few goes, little enough that it begins at once.
_LINES_AT_ONCE = 256
# The columns and lines of a terminal that does not say how many it has.
_SCREEN = (80, 24)


# What others agreed on to ask programs for less colour, see no-color.org.
NO_COLOUR_VARIABLE = "NO_COLOR"
TERMINAL_VARIABLE = "TERM"


class Terminal:
    """Where a command answers (stdout) and where it remarks on something (stderr)."""

    def __init__(self, out: TextIO | None, err: TextIO | None, *, is_json: bool = False) -> None:
        self.is_json = is_json
        # The parent process may have closed either.
        self._out = out
        self._err = err
        # Called before anything is written, by the part that shows something that must make way; threads of tools write, too.
        self.before: Callable[[], None] | None = None
        self.lock = RLock()
        # Where the line of a text ends that comes in pieces.
        self.column = 0
        self._held_return = ""

    @property
    def is_live(self) -> bool:
        """Whether a person watches, so that a text may be shown as it comes."""
        return not self.is_json and self.is_a_terminal

    @property
    def is_a_terminal(self) -> bool:
        """Whether stdout leads to a terminal."""
        return self._out is not None and self._out.isatty()

    @property
    def is_heard(self) -> bool:
        """Whether the answer has a reader; an endless answer stops when it has none."""
        return self._out is not None

    @property
    def descriptor(self) -> int | None:
        """Where stdout leads, for a command that answers in its stead; None where there is no reader."""
        try:
            return None if self._out is None else self._out.fileno()
        except (OSError, ValueError):
            return None

    @property
    def is_watched(self) -> bool:
        """Whether a person sees what is said beside the answer, and may be shown how far a run is."""
        return not self.is_json and self._err is not None and self._err.isatty()

    @property
    def columns(self) -> int:
        """How wide the terminal is; 0 where that is unknown."""
        if self._out is None:
            return 0
        try:
            return os.get_terminal_size(self._out.fileno()).columns
        except (OSError, ValueError):
            return 0

    @property
    def has_unicode(self) -> bool:
        """Whether stdout takes every character as it is."""
        return self._out is not None and (self._out.encoding or "").lower().replace("-", "") == "utf8"

    def painted(self, lines: Iterable[Sequence[tuple[str, str]]]) -> None:
        """Answer with lines of pieces, each a text and the number of the colour it is shown in, or none."""
        batch: list[str] = []
        for line in lines:
            batch.append("".join(_coloured(printable(text), colour) for text, colour in line) + "\n")
            if len(batch) == _LINES_AT_ONCE:
                self._write("".join(batch))
                batch.clear()
        self._write("".join(batch))

    def line(self, text: str) -> None:
        """Answer with one line."""
        self._write(printable(text) + "\n")

    def text(self, text: str) -> None:
        """Answer with a text of any number of lines, and end the last one."""
        shown = escaped(text)
        self._write(shown if shown.endswith("\n") else shown + "\n")

    def piece(self, text: str) -> None:
        """Answer with a piece of a text, as it comes. Where it was cut makes no difference to how it is shown."""
        text, self._held_return = self._held_return + text, ""
        if text.endswith("\r"):
            # It may be the first half of a line end.
            text, self._held_return = text[:-1], "\r"
        shown = escaped(text)
        self._write(shown)
        self.column = column_after(self.column, shown, self.screen().columns)

    def end_piece(self) -> None:
        """End the line of a text that came in pieces, unless it is ended already."""
        if self._held_return:
            self._write(escaped(self._held_return))
        if self._held_return or self.column:
            self._write("\n")
        self._held_return, self.column = "", 0

    def values(self, values: object) -> None:
        """Answer with one line of JSON."""
        self._write(json_line(values) + "\n")

    def data(self, data: bytes) -> None:
        """Answer with bytes that must arrive as they are; only for what is not a terminal."""
        if self._out is not None:
            self._write("")
            self._guarded(self._out.buffer.write, data)

    def remark(self, text: str) -> None:
        """Say something beside the answer, on one line of stderr."""
        self._say(printable(text) + "\n")

    def paint_beside(self, line: Sequence[tuple[str, str]]) -> None:
        """Say something beside the answer, in colours."""
        self._say("".join(_coloured(printable(text), colour) for text, colour in line) + "\n")

    def control(self, sequence: str) -> None:
        """Tell the terminal itself something, beside the answer. Only for what this house wrote."""
        if self._err is not None:
            try:
                self._err.write(sequence)
                self._err.flush()
            except OSError:
                # There is no reader left to tell.
                self._err = None

    def screen(self) -> os.terminal_size:
        """How many columns and lines a person sees, now."""
        for stream in (self._err, self._out):
            with suppress(OSError, ValueError, AttributeError):
                if stream is not None and stream.isatty():
                    size = os.get_terminal_size(stream.fileno())
                    # A terminal says 0 when it was not told its size.
                    return os.terminal_size((size.columns or _SCREEN[0], size.lines or _SCREEN[1]))
        return os.terminal_size(_SCREEN)

    def _say(self, text: str) -> None:
        with self.lock:
            self._make_way()
            if self.column and self.is_live and self.is_watched:
                # The answer's line is still open, and on the screen both are one text.
                self.end_piece()
            self.control(text)

    def _make_way(self) -> None:
        if self.before is not None:
            self.before()

    def complain(self, error: RemitError) -> None:
        """Say what went wrong: to programs where they read, to people beside the answer."""
        if self.is_json:
            self.values({"error": {"code": str(error.code), "message": error.message, "details": error.details}})
        else:
            self.remark(f"error {error.code}: {_shortened(error.message)}")

    def _write(self, text: str) -> None:
        if self._out is not None:
            with self.lock:
                self._make_way()
                self._guarded(self._out.write, text)

    def _guarded(self, write: Any, what: str | bytes) -> None:
        out = self._out
        assert out is not None, "the caller has looked"
        try:
            write(what)
            out.flush()
        except OSError as error:
            self._out = None
            # What is left in its buffer would be sent again when the interpreter ends, and fail again.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            if not isinstance(error, BrokenPipeError):
                message = f"stdout cannot be written: {error.strerror}; `remit show last` shows what was to be said"
                raise RemitError(OUTPUT_UNWRITABLE, message) from error


def _coloured(shown: str, colour: str) -> str:
    """A text that is fit to print, in a colour; what is no number of a colour is none."""
    return f"\x1b[{colour}m{shown}\x1b[0m" if colour.isdecimal() and shown else shown


def _shortened(message: str) -> str:
    """A message short enough to be read: the middle of a very long one is left out, since the way out stands at its end."""
    if len(message) <= _MESSAGE_CHARS_MAX:
        return message
    half = _MESSAGE_CHARS_MAX // 2
    return f"{message[:half]} ... {message[-half:]}"


def printable(text: str) -> str:
    """A text on one line, as it is if a terminal prints it as it is."""
    return text if is_seen(text) else printable_line(text)


def escaped(text: str) -> str:
    """A text with its lines and tabs, everything else that does not print being escaped."""
    if is_seen(text):
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(printable(part) for part in line.split("\t")) for line in lines)


def json_line(values: object) -> str:
    """Values as one line of JSON. A record says all of its fields, bytes are in hexadecimal."""
    # JSON escapes every control character but this one, which terminals know as well.
    return json.dumps(plain_values(values), ensure_ascii=True).replace(_DELETE, "\\u007f")


def plain_values(value: object) -> object:
    """A value as JSON knows it."""
    if isinstance(value, TokenUsage):
        return usage_figures(value)
    if isinstance(value, Record):
        return {field: plain_values(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, dict):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


class Aside(io.TextIOBase):
    """Takes what others print to stdout, and shows it on stderr as text that no terminal obeys."""

    def __init__(self, err: TextIO, before: Callable[[], None] | None = None) -> None:
        self._err = err
        # Called before anything is shown.
        self.before = before

    @property
    def buffer(self) -> BinaryIO:
        """For those who write bytes."""
        return self._err.buffer

    def write(self, text: str) -> int:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Show a text."""
        if self.before is not None:
            self.before()
        self._err.write(escaped(text))
        return len(text)

    def flush(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Show it now."""
        self._err.flush()

    def fileno(self) -> int:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """For those who hand it on to another program."""
        return self._err.fileno()


@contextmanager
def own_stdout() -> Iterator[TextIO | None]:
    """The real stdout for answers; meanwhile everything else that is written to stdout goes to stderr."""
    out, err = sys.stdout, sys.stderr
    aside = None if err is None else Aside(err)
    if out is None or err is None or not _is_descriptor(out, _STDOUT):
        with redirect_stdout(aside):
            yield out
        return
    # What tools start writes to the descriptor and knows nothing of sys.stdout, so the descriptor leads away, too.
    out.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with (
            os.fdopen(os.dup(kept), "w", encoding=out.encoding, errors="backslashreplace") as own,
            redirect_stdout(aside),
        ):
            yield own
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _is_descriptor(stream: TextIO, descriptor: int) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError, AttributeError):
        return False


def wants_colour() -> bool:
    """Whether the user of a terminal wants colours: NO_COLOR and a terminal that calls itself dumb say no."""
    return not os.environ.get(NO_COLOUR_VARIABLE) and os.environ.get(TERMINAL_VARIABLE) != "dumb"


def moves_cursor() -> bool:
    """Whether a terminal can be written to anywhere: one without a name, or that calls itself dumb, cannot."""
    return os.environ.get(TERMINAL_VARIABLE, "") not in ("", "dumb")
