"""What becomes of tool calls, told as it happens: a line each for what was proposed, judged and returned.

Rule 1: a line is one line, and short; `/trace` and `remit show` have the rest.
Rule 2: names, arguments and results are data. They are shortened here and escaped where they are written.
"""

from collections.abc import Iterator

from remit.adapters.cli.screen.colours import Ink, Line
from remit.core.journal.turn import Turn
from remit.core.record import BlobRef, Text
from remit.observe.fact import Fact, FactKind
from remit.observe.figures import duration
from remit.observe.plain import printable_line
from remit.observe.reading import NOT_PASSED, UNREAD, Reading
from remit.observe.steps import ANSWERED_STATUS, FAILED, StepKind

# Enough to recognise a call, and little enough to stay beside its name.
ARGUMENTS_CHARS_MAX = 100
RESULT_CHARS_MAX = 100
REASON_CHARS_MAX = 160
NAME_CHARS_MAX = 64

# How a question ended that was not answered with a yes, which is told by the call that follows it.
_NOES = ("rejected", "expired", "withdrawn")
_ESCALATED = "escalated"

ASKED, RETURNED, REFUSED, HELD = "  -> ", "  <- ", "  !! ", "  ?? "


class CallTeller:
    """Tells the calls of one run after the other."""

    def __init__(self) -> None:
        self._reading = Reading()

    def lines(self, turn: Turn) -> Iterator[Line]:
        """Take in a turn and give its lines about calls: first what came back, then what was decided."""
        if turn.seq != self._reading.turns:
            self._reading = Reading()  # Of another run.
        facts = self._reading.take(turn)
        # A no is told by the refusal that follows from it.
        is_refused = any(fact.step.kind is StepKind.REFUSED for fact in facts)
        for fact in facts:
            is_told = is_refused and fact.kind is FactKind.SETTLED and fact.step.kind is StepKind.QUESTION
            yield from () if is_told else _call_lines(fact)


def _call_lines(fact: Fact) -> Iterator[Line]:
    step = fact.step
    match fact.kind, step.kind:
        case FactKind.HEARD, StepKind.TOOL | StepKind.INQUIRY | StepKind.CHILD:
            yield from _outcome(fact)
        case FactKind.BEGUN, StepKind.TOOL | StepKind.CHILD:
            why = f"approved by {printable_line(step.by, NAME_CHARS_MAX)}" if step.by else step.order
            allowed = f"  ({printable_line(why, NAME_CHARS_MAX)})" if why else ""
            yield _line(ASKED, fact, short(step.asked, ARGUMENTS_CHARS_MAX) + allowed, Ink.PLAIN)
        case FactKind.NOTED, StepKind.REFUSED:
            yield _line(
                REFUSED, fact, f"refused ({step.code}): {printable_line(step.reason, REASON_CHARS_MAX)}", Ink.BAD
            )
        case FactKind.SETTLED, StepKind.QUESTION if step.status in _NOES:
            who = f"{step.status} by {printable_line(step.by, NAME_CHARS_MAX)}" if step.by else step.status
            yield _line(REFUSED, fact, who, Ink.BAD)
        case FactKind.SETTLED, StepKind.QUESTION if step.status == _ESCALATED:
            yield _line(HELD, fact, "not answered in time; the next queue is asked", Ink.WAITS)
        case FactKind.COUNTED, _:
            who = f"approved by {printable_line(step.by, NAME_CHARS_MAX)}; another person must, too"
            yield _line(HELD, fact, who, Ink.WAITS)
        case FactKind.DOUBTED, _:
            yield _line(HELD, fact, f"in doubt: {printable_line(step.reason, REASON_CHARS_MAX)}", Ink.WAITS)
        case FactKind.RETRIED, StepKind.MODEL:
            yield ((HELD, Ink.WAITS), (f"the model failed ({step.code}); attempt {fact.count} follows", Ink.FAINT))
        case FactKind.RETRIED, _:
            what = f"failed ({step.code}); attempt {fact.count} follows after a pause"
            yield _line(HELD, fact, what, Ink.WAITS)
        case FactKind.NOTED, StepKind.NOTE if step.name == NOT_PASSED:
            why = printable_line(step.reason, REASON_CHARS_MAX)
            yield ((REFUSED, Ink.BAD), (f"the answer does not pass: {why}", Ink.FAINT))


def _outcome(fact: Fact) -> Iterator[Line]:
    step = fact.step
    why = printable_line(step.reason, REASON_CHARS_MAX)
    match step.kind, step.status:
        case StepKind.CHILD, status if status == ANSWERED_STATUS:
            what = f"ended as {step.code}: {short(step.answered, RESULT_CHARS_MAX)}"
            yield _line(RETURNED, fact, what, Ink.GOOD)
        case StepKind.CHILD, status if status == FAILED:
            why = why or short(step.answered, RESULT_CHARS_MAX)
            yield _line(REFUSED, fact, f"ended as {step.code}: {why}", Ink.BAD)
        case _, status if status == FAILED:
            yield _line(REFUSED, fact, f"failed ({step.code}): {why}", Ink.BAD, step.measured_ms)
        case StepKind.TOOL, _:
            yield _line(RETURNED, fact, short(step.content, RESULT_CHARS_MAX), Ink.GOOD, step.measured_ms)


def _line(mark: str, fact: Fact, what: str, ink: Ink, took_ms: int = 0) -> Line:
    step = fact.step
    name = (step.tool or UNREAD) if step.kind is StepKind.QUESTION else step.name
    took = f"  {duration(took_ms)}" if took_ms else ""
    return ((mark, ink), (printable_line(name, NAME_CHARS_MAX), Ink.NAME), (f" {what}{took}", Ink.FAINT))


def short(text: Text, limit: int) -> str:
    """A text on one line, cut; one that was too long for a turn is named by its size."""
    return f"<{text.size_bytes} bytes>" if isinstance(text, BlobRef) else printable_line(text, limit)
