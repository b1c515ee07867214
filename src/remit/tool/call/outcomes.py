"""Outcomes: what a call of a tool came to, and what a tool's own functions may answer.

Rule 1: whatever a tool does, its call ends as Performed or as a ToolFault; nothing else crosses the room.
Rule 2: texts of tools are data. They are bounded here and made fit to be written where the arrival is made.
"""

from remit.core.failure import ErrorCode, RemitError
from remit.core.journal.arrivals import Happened
from remit.core.raised import raised
from remit.core.record import MadeByHand, Record
from remit.core.secrets.secret_search import secrets_in

# A result is a text that a model is shown and a journal keeps. Sixteen megabytes hold any page, file or table that one
# could mean to show; more is a mistake that would fill the memory of every run beside it.
RESULT_BYTES_MAX = 16 * 1024 * 1024

# Enough to read what went wrong, little enough to stand in a turn and in a prompt.
ERROR_CHARS_MAX = 2_000


class Performed(Record):
    """A call that returned: its result as text, what `verify` found wrong with it, and what an isolated tool printed."""

    content: str
    refuted: str = ""
    stop_loop: bool = False
    printed: str = ""


class Killed(Exception):
    """The process was killed at our wish before it told a result, so what it did is unknown."""


class Stop(Record):
    """Returned by a tool that wants the loop to stop: the text becomes the answer, if the tool `may_stop_loop`."""

    content: str


class Reconciled(MadeByHand):
    """What became of an earlier call: whether it happened, its result if it did, and why that is unknown otherwise."""

    happened: Happened
    content: str = ""
    why: str = ""


class NotDone(Exception):
    """Raised by a tool that knows that nothing happened. Whatever else one raises leaves open what it has done by then."""


class ToolFault(RemitError):
    """A call that came to nothing, or to nothing known; an observation like any other.

    `is_unknown` says that the function was entered and did not say that nothing happened.
    """

    def __init__(self, code: ErrorCode, error: str, *, is_unknown: bool = False) -> None:
        super().__init__(code, shortened_error(error))
        self.error_code = code
        self.is_unknown = is_unknown

    @property
    def error(self) -> str:
        """What went wrong, as a text for the model."""
        return self.message


def fault_of(error: BaseException) -> ToolFault:
    """The observation that a tool raised something after it was entered: only NotDone says that nothing happened."""
    return ToolFault(ErrorCode.TOOL_EXECUTION_FAILED, error_text(error), is_unknown=not isinstance(error, NotDone))


def error_text(error: BaseException) -> str:
    """The type and the message of an error, no longer than a model is shown of one."""
    return shortened_error(raised(error))


def shortened_error(text: str) -> str:
    """The text, cut at ERROR_CHARS_MAX; before a secret that the cut would split, since half of one is not recognised."""
    if len(text) <= ERROR_CHARS_MAX:
        return text
    end = ERROR_CHARS_MAX - 4
    found = secrets_in(text[: 2 * ERROR_CHARS_MAX])
    return text[: next((secret.start for secret in found if secret.start < end < secret.end), end)] + " ..."


def last_part(text: str, chars: int) -> str:
    """The last characters of a text, behind a secret that the cut would leave half of."""
    begin = max(len(text) - chars, 0)
    found = secrets_in(text) if begin else ()
    return text[next((secret.end for secret in found if secret.start < begin < secret.end), begin) :]
