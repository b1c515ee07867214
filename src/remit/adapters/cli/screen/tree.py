"""A run drawn as a tree: the run, its visits of nodes, what was done at each, and the runs beneath it.

Rule 1: every line begins with the turn it is about and the time since the start, and is cut to the width of a line.
Rule 2: at a terminal the tree has branches; piped somewhere it is indented lines.
Rule 3: whatever was said is shown as data; what is cut can be read in full with `remit show RUN --turn N`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from remit.adapters.cli.screen.amounts import charges
from remit.adapters.cli.screen.colours import Ink, InkedText, Line
from remit.core.failure import Ending
from remit.observe.figures import duration
from remit.observe.plain import printable_line
from remit.observe.steps import CUT_OFF, FAILED, IN_DOUBT, PerformedStep, StepKind
from remit.observe.views.outline import Outline, Visit
from remit.observe.views.trace import shown_line

# Enough of a call to recognise it; the whole of it is a turn away.
ASKED_CHARS_MAX = 70
NAME_CHARS_MAX = 60
REASON_CHARS_MAX = 2_000


class Marks(NamedTuple):
    """How branches are drawn: between two, the last one, and what goes on beside them."""

    branch: str
    last: str
    beside: str
    beneath: str


BRANCHES = Marks("├─ ", "└─ ", "│  ", "   ")
BRANCHES_ASCII = Marks("|- ", "`- ", "|  ", "   ")
INDENTED = Marks("  ", "  ", "  ", "  ")

_INKS = {
    "committed": Ink.GOOD,
    "answered": Ink.GOOD,
    "approved": Ink.GOOD,
    "passed": Ink.GOOD,
    "found": Ink.GOOD,
    "returned": Ink.GOOD,
    "counted": Ink.GOOD,
    "open": Ink.WAITS,
    "under way": Ink.WAITS,
    IN_DOUBT: Ink.BAD,
    FAILED: Ink.BAD,
    CUT_OFF: Ink.BAD,
    "refused": Ink.BAD,
    "rejected": Ink.BAD,
    "expired": Ink.BAD,
    "lost": Ink.BAD,
    "objected": Ink.BAD,
}
# What a model answered is said by its words and calls, and a signal or a note says itself.
_UNSAID = frozenset({"noted", "heard"})


@dataclass(frozen=True, slots=True)
class Canvas:
    """What a tree is drawn on: its marks, its width, and the trees of the runs beneath it by their ids."""

    marks: Marks
    columns: int
    children: Mapping[str, Outline]
    # How runs stand that have not ended, by their ids.
    stands: Mapping[str, str] = field(default_factory=dict)


def tree_lines(told: Outline, canvas: Canvas) -> Iterator[Line]:
    """The tree of a run."""
    yield _cut(_root(told), canvas.columns)
    if told.left_out:
        yield _cut([_at(0, 0), (f"... {told.left_out} earlier turns are left out", Ink.FAINT)], canvas.columns)
    yield from _visits(told, canvas, "", 0)
    yield _cut(_ending(told, canvas), canvas.columns)


def _visits(told: Outline, canvas: Canvas, stem: str, offset_ms: int) -> Iterator[Line]:
    for place, visit in enumerate(told.visits):
        mark, below = _marked(canvas, stem, is_last=place == len(told.visits) - 1)
        yield _cut([_at(visit.seq, visit.began_ms + offset_ms), (mark, Ink.FAINT), *_visit(visit)], canvas.columns)
        yield from _steps(visit.steps, canvas, below, offset_ms)


def _steps(steps: Sequence[PerformedStep], canvas: Canvas, stem: str, offset_ms: int) -> Iterator[Line]:
    for place, step in enumerate(steps):
        mark, below = _marked(canvas, stem, is_last=place == len(steps) - 1)
        began = _at(step.seq, step.began_ms + offset_ms)
        yield _cut([began, (mark, Ink.FAINT), *_step(step)], canvas.columns)
        for text in _details(step, canvas.columns):
            yield _cut([_nowhere(), (f"{below}    ", Ink.FAINT), (text, Ink.FAINT)], canvas.columns)
        if step.run_id:
            yield from _child(step, canvas, below, offset_ms)


def _child(step: PerformedStep, canvas: Canvas, stem: str, offset_ms: int) -> Iterator[Line]:
    child = canvas.children.get(step.run_id)
    if child is None:
        gone = f"run {printable_line(step.run_id, NAME_CHARS_MAX)} is not kept here"
        yield _cut([_nowhere(), (f"{stem}    ", Ink.FAINT), (gone, Ink.FAINT)], canvas.columns)
        return
    yield from _visits(child, canvas, stem, offset_ms + step.began_ms)
    yield _cut([_nowhere(), (stem, Ink.FAINT), *_ending(child, canvas)[1:]], canvas.columns)


def _marked(canvas: Canvas, stem: str, *, is_last: bool) -> tuple[str, str]:
    """The stem with the mark of a branch, and the stem of what hangs below it."""
    marks = canvas.marks
    return stem + (marks.last if is_last else marks.branch), stem + (marks.beneath if is_last else marks.beside)


def _at(seq: int, since_ms: int) -> InkedText:
    return (f"{seq:>5} {since_ms / 1000:>8.1f} s  ", Ink.FAINT)


def _nowhere() -> InkedText:
    return (" " * len(_at(0, 0)[0]), Ink.PLAIN)


def _root(told: Outline) -> list[InkedText]:
    who = f" for {printable_line(told.user_id, NAME_CHARS_MAX)}" if told.user_id else ""
    under = f"  under {printable_line(told.boundary, NAME_CHARS_MAX)}{who}  "
    return [
        _at(0, 0),
        (f"run {printable_line(told.run_id, NAME_CHARS_MAX)}", Ink.BOLD),
        (under, Ink.PLAIN),
        (shown_line(told.request, REASON_CHARS_MAX), Ink.FAINT),
    ]


def _visit(visit: Visit) -> list[InkedText]:
    node = printable_line(visit.node, NAME_CHARS_MAX) or "start"
    took = f"  {duration(visit.duration_ms)}" if visit.duration_ms else ""
    return [(node, Ink.BOLD), (f"  after {printable_line(visit.outcome, NAME_CHARS_MAX)}{took}", Ink.FAINT)]


def _step(step: PerformedStep) -> list[InkedText]:
    pieces = [(f"{step.kind.value} ", Ink.PLAIN), (printable_line(step.name, NAME_CHARS_MAX), Ink.NAME)]
    if step.kind in (StepKind.TOOL, StepKind.REFUSED, StepKind.QUESTION, StepKind.CHILD) and step.asked:
        pieces.append((f" {shown_line(step.asked, ASKED_CHARS_MAX)}", Ink.PLAIN))
    if step.attempt > 1:
        pieces.append((f"  attempt {step.attempt}", Ink.PLAIN))
    if (
        step.kind is not StepKind.REFUSED
        and step.status not in _UNSAID
        and not (step.kind is StepKind.MODEL and step.status == "answered")
    ):
        pieces.append((f"  {printable_line(step.status, NAME_CHARS_MAX)}", _ink(step)))
    if step.rung and step.rung != step.status and step.kind is not StepKind.REFUSED:
        pieces.append((f" ({step.rung})", _ink(step)))
    if step.by:
        pieces.append((f"  {_part(step)} {printable_line(step.by, NAME_CHARS_MAX)}", Ink.PLAIN))
    if step.order:
        pieces.append((f"  {printable_line(step.order, NAME_CHARS_MAX)}", Ink.PLAIN))
    # That a child which answered succeeded goes without saying.
    code = "" if step.kind is StepKind.CHILD and step.code == Ending.SUCCESS else step.code
    took = duration(step.duration_ms) if step.duration_ms > 0 else ""
    charged = charges(step.charged)
    # Of a model that was cut off it is unknown what it used: what was set aside for it is charged.
    is_reserved = step.kind is StepKind.MODEL and step.charged == step.reserved and not step.usage.total_tokens
    facts = [
        code,
        step.run_id,
        step.note,
        took,
        f"charged as reserved: {charged}" if is_reserved and charged else charged,
    ]
    pieces += [(f"  {printable_line(fact, NAME_CHARS_MAX)}", Ink.PLAIN) for fact in facts if fact]
    if step.proposed:
        names = ", ".join(printable_line(name, NAME_CHARS_MAX) for name in step.proposed)
        pieces.append((f"  calls {names}", Ink.PLAIN))
    return pieces


def _part(step: PerformedStep) -> str:
    """Which part a person had in a step."""
    return "approved by" if step.kind is StepKind.TOOL else "by"


def _ink(step: PerformedStep) -> Ink:
    if step.kind is StepKind.STEP:
        return Ink.GOOD
    return _INKS.get(step.status, Ink.WAITS if step.status.startswith("waits") else Ink.PLAIN)


def _details(step: PerformedStep, columns: int) -> Iterator[str]:
    """What was said: why, in which words, with which result."""
    if step.reason:
        yield f"because {printable_line(step.reason, columns)}"
    if step.kind is StepKind.SIGNAL and step.asked:
        yield f"> {shown_line(step.asked, columns)}"
    if step.answered:
        yield f"= {shown_line(step.answered, columns)}"


def _ending(told: Outline, canvas: Canvas) -> list[InkedText]:
    took = f"after {duration(told.duration_ms)} and {told.turns} turns"
    if not told.ending:
        return [_nowhere(), (canvas.stands.get(told.run_id, "open"), Ink.WAITS), (f"  {took}", Ink.PLAIN)]
    named = f"{told.ending} ({told.error})" if told.error else told.ending
    ink = Ink.GOOD if told.ending == "SUCCESS" else Ink.BAD
    why = f": {printable_line(told.reason, REASON_CHARS_MAX)}" if told.reason else ""
    return [_nowhere(), (f"ended as {named}", ink), (f"  {took}{why}", Ink.PLAIN)]


def _cut(line: Sequence[InkedText], columns: int) -> Line:
    """A line as wide as there is room, its end marked where something is missing."""
    if sum(len(text) for text, _ in line) <= columns:
        return line
    kept: list[InkedText] = []
    room = columns - 1
    for text, ink in line:
        kept.append((text[:room], ink))
        room -= len(text)
        if room < 0:
            break
    return [*kept, ("…", Ink.FAINT)]
