"""What becomes of tool calls, told as it happens: a line each for what was proposed, judged and returned.

Rule 1: a line is one line, and short; `/trace` and `remit show` have the rest.
Rule 2: names, arguments and results are data. They are shortened here and escaped where they are written.
"""

from collections.abc import Iterator

from remit.adapters.cli.amounts import duration
from remit.adapters.cli.painting import Ink, Line
from remit.core.arrivals import ChildEnded, ToolFailed, ToolReturned
from remit.core.commands import AskHuman, CallTool, StartChild
from remit.core.events import Decision, Turn
from remit.core.failure import ANSWERED
from remit.core.record import BlobRef, Text
from remit.core.rulings import (
    Answer,
    ApprovalCounted,
    CheckFailed,
    OutcomeDoubted,
    QuestionSettled,
    RetryPlanned,
    ToolCallRefused,
)
from remit.observe.plain import plain

# Enough to recognise a call, and little enough to stay beside its name.
ARGUMENTS_CHARS_MAX = 100
RESULT_CHARS_MAX = 100
REASON_CHARS_MAX = 160
NAME_CHARS_MAX = 64

# A yes is told by the call that follows it.
_NOES = (Answer.REJECTED, Answer.EXPIRED, Answer.WITHDRAWN)

ASKED, RETURNED, REFUSED, HELD = "  -> ", "  <- ", "  !! ", "  ?? "


class CallTeller:
    """Tells the calls of one run; it remembers which tool a command calls, since its outcome does not say."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def lines(self, turn: Turn) -> Iterator[Line]:
        """What a turn says about calls: first what came back, then what was decided."""
        yield from self._outcome(turn)
        # A no is told by the refusal that follows from it.
        is_refused = any(isinstance(decision, ToolCallRefused) for decision in turn.decisions)
        for decision in turn.decisions:
            if not (is_refused and isinstance(decision, QuestionSettled)):
                yield from self._decided(decision)

    def _outcome(self, turn: Turn) -> Iterator[Line]:
        match turn.arrival:
            case ToolReturned(command_id=command_id, content=content, duration_ms=took_ms):
                yield self._line(RETURNED, command_id, short(content, RESULT_CHARS_MAX), Ink.GOOD, took_ms)
            case ToolFailed(command_id=command_id, code=code, error=error, duration_ms=took_ms):
                why = f"failed ({code}): {plain(error, REASON_CHARS_MAX)}"
                yield self._line(REFUSED, command_id, why, Ink.BAD, took_ms)
            case ChildEnded(command_id=command_id, ending=ending, text=text) if ending in ANSWERED:
                what = f"ended as {ending}: {short(text, RESULT_CHARS_MAX)}"
                yield self._line(RETURNED, command_id, what, Ink.GOOD, 0)
            case ChildEnded(command_id=command_id, ending=ending, error=error, message=message, text=text):
                why = plain(message, REASON_CHARS_MAX) or short(text, RESULT_CHARS_MAX)
                yield self._line(REFUSED, command_id, f"ended as {error or ending}: {why}", Ink.BAD, 0)
            case _:
                return

    def _decided(self, decision: Decision) -> Iterator[Line]:
        match decision:
            case CallTool(id=command_id, tool=tool, arguments=arguments, approved_by=by):
                self._tools[command_id] = tool
                allowed = f"  (approved by {plain(by, NAME_CHARS_MAX)})" if by else ""
                yield self._line(ASKED, command_id, short(arguments, ARGUMENTS_CHARS_MAX) + allowed, Ink.PLAIN, 0)
            case StartChild(id=command_id, tool=tool, prompt=prompt, node=node):
                self._tools[command_id] = tool or node or "a run beneath"
                yield self._line(ASKED, command_id, short(prompt, ARGUMENTS_CHARS_MAX), Ink.PLAIN, 0)
            case AskHuman(id=command_id, packet=packet) if packet is not None:
                # What is asked is shown in full by whoever asks.
                self._tools[command_id] = packet.call.tool
            case ToolCallRefused(tool=tool, code=code, reason=reason):
                why = f" refused ({code}): {plain(reason, REASON_CHARS_MAX)}"
                yield ((REFUSED, Ink.BAD), (plain(tool, NAME_CHARS_MAX), Ink.NAME), (why, Ink.FAINT))
            case QuestionSettled(command_id=command_id, answer=answer, by=by) if answer in _NOES:
                who = f"{answer.value} by {plain(by, NAME_CHARS_MAX)}" if by else answer.value
                yield self._line(REFUSED, command_id, who, Ink.BAD, 0)
            case QuestionSettled(command_id=command_id, answer=Answer.ESCALATED):
                yield self._line(HELD, command_id, "nobody answered in time; the next queue is asked", Ink.WAITS, 0)
            case ApprovalCounted(command_id=command_id, by=by):
                who = f"approved by {plain(by, NAME_CHARS_MAX)}; somebody else must, too"
                yield self._line(HELD, command_id, who, Ink.WAITS, 0)
            case OutcomeDoubted(command_id=command_id, reason=reason):
                yield self._line(HELD, command_id, f"in doubt: {plain(reason, REASON_CHARS_MAX)}", Ink.WAITS, 0)
            case RetryPlanned(command_id=command_id, attempt=attempt, code=code) if command_id in self._tools:
                what = f"failed ({code}); attempt {attempt} follows after a pause"
                yield self._line(HELD, command_id, what, Ink.WAITS, 0)
            case RetryPlanned(attempt=attempt, code=code):
                yield ((HELD, Ink.WAITS), (f"the model failed ({code}); attempt {attempt} follows", Ink.FAINT))
            case CheckFailed(problems=problems):
                why = plain("; ".join(problems), REASON_CHARS_MAX)
                yield ((REFUSED, Ink.BAD), (f"the answer does not pass: {why}", Ink.FAINT))
            case _:
                return

    def _line(self, mark: str, command_id: str, what: str, ink: Ink, took_ms: int) -> Line:
        tool = plain(self._tools.get(command_id, "a call"), NAME_CHARS_MAX)
        took = f"  {duration(took_ms)}" if took_ms else ""
        return ((mark, ink), (tool, Ink.NAME), (f" {what}{took}", Ink.FAINT))


def short(text: Text, limit: int) -> str:
    """A text on one line, cut; one that was too long for a turn is named by its size."""
    return f"<{text.size_bytes} bytes>" if isinstance(text, BlobRef) else plain(text, limit)
