"""Guards: conditions on edges, written in CEL over a flat, typed view of the run.

Rule 1: a guard is checked when its graph is compiled: it parses, uses only names of the view, and is a BOOL.
Rule 2: a guard that cannot be decided is neither true nor false; the caller must object.
Rule 3: same view, same answer on any machine: no maps (their order is random), no time zones, no comprehensions.
Rule 4: errors are codes and positions. The texts of the CEL library change between versions and are never kept.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from remit.core.budget import Dimension
from remit.core.failure import RequestRejected
from remit.core.record import Record

if TYPE_CHECKING:
    from cel_expr_python import cel

# A condition that needs more than this is a decision and belongs into a decide node.
GUARD_CHARS_MAX = 1000
# DESIGN's promise to the people who write conditions: the whole view fits on one page.
GUARD_NAMES_MAX = 40
# Programs are small; this holds every condition of a few large graphs.
_PROGRAMS_KEPT_MAX = 1024


class GuardType(StrEnum):
    """The types a name of the view can have."""

    STRING = "string"
    INT = "int"
    BOOL = "bool"


class GuardName(Record, frozen=True):
    """One name that conditions may use."""

    name: str
    type: GuardType
    meaning: str


GUARD_NAMES: tuple[GuardName, ...] = (
    GuardName("outcome", GuardType.STRING, "what became of the visit that just ended"),
    GuardName("node", GuardType.STRING, "the node the run stands at"),
    GuardName("lifecycle", GuardType.STRING, "the node's lifecycle label, such as `EXECUTE`"),
    GuardName("loop_state", GuardType.STRING, "the node's loop state, such as `executing`"),
    GuardName("visits", GuardType.INT, "how often this node was entered, this time included"),
    GuardName("iterations", GuardType.INT, "model calls that answered"),
    GuardName("attempt", GuardType.INT, "which attempt at an acceptable answer this is, from 1"),
    GuardName("turns", GuardType.INT, "turns written so far"),
    GuardName("answer", GuardType.STRING, "the last answer; empty when it is longer than a kilobyte"),
    GuardName("answer_bytes", GuardType.INT, "size of the last answer in UTF-8 bytes"),
    GuardName("proposed_calls", GuardType.INT, "tool calls the last answer proposed"),
    GuardName("refused_calls", GuardType.INT, "tool calls refused in this run"),
    GuardName("failed_calls", GuardType.INT, "tool calls that failed in this run"),
    GuardName("committed_observations", GuardType.INT, "observations that were verified and committed"),
    GuardName("uncommitted_effects", GuardType.INT, "writes and external effects proposed but not committed"),
    GuardName("approvals_pending", GuardType.INT, "questions that wait for a person"),
    GuardName("children_open", GuardType.INT, "child runs that have not ended"),
    GuardName("children_failed", GuardType.INT, "child runs that ended without success"),
    GuardName("depth", GuardType.INT, "how many runs stand above this one"),
    GuardName("wall_clock_ms_used", GuardType.INT, "time used, without the time spent waiting for people"),
    GuardName("last_tool", GuardType.STRING, "the tool that was called last; empty before the first"),
    GuardName("last_error", GuardType.STRING, "code of the last failure; empty before the first"),
    GuardName("ending", GuardType.STRING, "the code under which the run is about to end; empty otherwise"),
    GuardName("repaired", GuardType.BOOL, "an answer of this run was sent back to be repaired"),
    GuardName("has_schema", GuardType.BOOL, "the request asks for output of a given shape"),
    *(
        GuardName(f"left_{dimension.name.lower()}", GuardType.INT, f"what is left of `{dimension.name.lower()}`")
        for dimension in Dimension
    ),
)

GUARD_VIEW: Mapping[str, GuardType] = MappingProxyType({entry.name: entry.type for entry in GUARD_NAMES})

# The functions a guard may call; everything else CEL offers stays out. What is missing on purpose: dyn (escapes the
# type check), timestamps (read the machine's time zones), conversions (a flat typed view needs none).
GUARD_FUNCTIONS: tuple[str, ...] = (
    *("_&&_", "_||_", "!_", "_?_:_", "@in"),
    *("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"),
    *("_+_", "_-_", "_*_", "_/_", "_%_", "-_"),
    *("startsWith", "endsWith", "contains", "matches", "size"),
)

_POSITION = re.compile(r"<input>:(\d+):(\d+): ")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_IDENTIFIER_LAST = re.compile(r"[A-Za-z_]\w*\s*$", re.ASCII)
_MACRO_CALL = re.compile(r"\.\s*(all|exists|exists_one|map|filter)\s*\(")


class GuardFault(StrEnum):
    """Why a condition was refused."""

    TOO_LONG = "GUARD_TOO_LONG"
    NOT_TEXT = "GUARD_NOT_TEXT"
    HAS_BRACES = "GUARD_HAS_BRACES"
    HAS_COMPREHENSION = "GUARD_HAS_COMPREHENSION"
    UNREADABLE = "GUARD_UNREADABLE"
    NAME_UNKNOWN = "GUARD_NAME_UNKNOWN"
    TYPE_MISMATCH = "GUARD_TYPE_MISMATCH"
    NOT_BOOL = "GUARD_NOT_BOOL"


class GuardRefused(RequestRejected):
    """A condition that no graph may use; line and column count from 1 and are 0 where there is no position."""

    def __init__(self, fault: GuardFault, message: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(fault.value, message, {"line": line, "column": column} if line else None)
        self.fault = fault
        self.line = line
        self.column = column


class Program(NamedTuple):
    """A condition that passed its checks and can be evaluated, and the names it may ask the view for."""

    source: str
    expression: "cel.Expression"
    names: tuple[str, ...]


def holds(program: Program, view: Mapping[str, object]) -> bool | None:
    """Whether the condition is true of this view; None when that cannot be decided.

    The library converts everything it is given, so a view of the program's own names is the fastest.
    """
    try:
        value = program.expression.eval(None, view).value()
    except RuntimeError:
        return None  # Most evaluation errors are values; the limits of the library itself are raised.
    return value if isinstance(value, bool) else None


# A pure memo: the same text always gives an equal program, and compiling one takes about 25 microseconds.
@lru_cache(maxsize=_PROGRAMS_KEPT_MAX)
def parse_guard(source: str) -> Program:
    """Check a condition and make it ready to evaluate, or raise GuardRefused."""
    _refuse_bad_text(source)
    try:
        expression = _environment().compile(source)
    except RuntimeError as error:
        raise _refusal(source, str(error)) from None
    if expression.return_type().name() != "BOOL":
        raise GuardRefused(
            GuardFault.NOT_BOOL,
            f"condition {source!r} is a {expression.return_type().name()}, not a BOOL; compare it with something",
        )
    return Program(source, expression, _names_in(source))


def _names_in(source: str) -> tuple[str, ...]:
    # CEL spells a name in one way only, so one that is used stands in the text as it is. A name that merely occurs, in
    # a quoted text or as part of a longer one, is taken too: one value too many costs less than a parser to trust.
    return tuple(name for name in GUARD_VIEW if name in source)


def _refuse_bad_text(source: str) -> None:
    if len(source) > GUARD_CHARS_MAX:
        raise GuardRefused(
            GuardFault.TOO_LONG,
            f"condition of {len(source)} characters exceeds guard_chars_max={GUARD_CHARS_MAX}; use a decide node",
        )
    # Braces make maps and messages, and nothing else in CEL; even inside a text they are refused, so that no
    # reader of quotes and escapes has to be trusted.
    for brace in "{}":
        if brace in source:
            line, column = _line_and_column(source, source.index(brace))
            raise GuardRefused(
                GuardFault.HAS_BRACES,
                f"condition {source!r} has a {brace!r}; guards have no maps. Write a list or several comparisons",
                line=line,
                column=column,
            )
    try:
        source.encode()
    except UnicodeEncodeError as error:
        line, column = _line_and_column(source, error.start)
        raise GuardRefused(
            GuardFault.NOT_TEXT, f"condition {source!r} is not valid Unicode text", line=line, column=column
        ) from None


# One environment serves every guard; building it takes a millisecond, and a graph without conditions never needs it.
@lru_cache(maxsize=1)
def _environment() -> "cel.Env":
    from cel_expr_python import cel

    types = {GuardType.STRING: cel.Type.STRING, GuardType.INT: cel.Type.INT, GuardType.BOOL: cel.Type.BOOL}
    functions = "".join(f'    - name: "{name}"\n' for name in GUARD_FUNCTIONS)
    config = cel.NewEnvConfigFromYaml(f"stdlib:\n  disable_macros: true\n  include_functions:\n{functions}")
    return cel.NewEnv(config=config, variables={name: types[tag] for name, tag in GUARD_VIEW.items()})


def _refusal(source: str, text: str) -> GuardRefused:
    """Turn the library's text into a code and a position; tests pin the few words this relies on."""
    found = _POSITION.search(text)
    line, column = (int(found[1]), int(found[2])) if found else (0, 0)
    place = f"line {line}, column {column}" if found else "a place CEL does not name"
    fault, why = _fault_of(source, text, line, column)
    return GuardRefused(fault, f"condition {source!r} {why} at {place}", line=line, column=column)


def _fault_of(source: str, text: str, line: int, column: int) -> tuple[GuardFault, str]:
    if "found no matching overload" in text or "cannot be the operand" in text:
        return GuardFault.TYPE_MISMATCH, "compares or combines values of types that do not fit"
    if "undeclared reference" not in text:
        return GuardFault.UNREADABLE, "does not parse"
    if _MACRO_CALL.search(source):
        return GuardFault.HAS_COMPREHENSION, "has a comprehension, which guards do not know; write it out with ||,"
    name = _name_at(source, line, column)
    near = get_close_matches(name, GUARD_VIEW, n=1)
    hint = f"; the nearest is {near[0]!r}" if near else ""
    return GuardFault.NAME_UNKNOWN, f"uses {name!r}, which no view has{hint},"


def _name_at(source: str, line: int, column: int) -> str:
    text = source.split("\n")[line - 1]
    # Of a function CEL gives the place of its bracket; the name stands before it.
    found = _IDENTIFIER.match(text, column - 1) or _IDENTIFIER_LAST.search(text, 0, column - 1)
    return found[0] if found else text[column - 1 : column]


def _line_and_column(source: str, offset: int) -> tuple[int, int]:
    return source.count("\n", 0, offset) + 1, offset - source.rfind("\n", 0, offset)
