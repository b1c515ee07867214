"""Expressions: conditions in CEL over a typed view, for edges of graphs and for boundaries.

Rule 1: a condition is checked before anything runs: it parses, uses only names of its view, and is a BOOL.
Rule 2: one that cannot be decided is neither true nor false; the caller must object.
Rule 3: same view, same answer on any machine: no maps of its own (their order is random), no time zones, no
        comprehensions.
Rule 4: errors are codes and positions. The texts of the CEL library change between versions and are never kept.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from remit.core.failure import RequestRejected
from remit.core.regex import regex

if TYPE_CHECKING:
    from cel_expr_python import cel

# A condition that needs more than this is a decision and belongs into a decide node.
GUARD_CHARS_MAX = 1000


class GuardType(StrEnum):
    """The types a name of a view can have."""

    STRING = "string"
    INT = "int"
    BOOL = "bool"
    # Texts, and an object whose values have the types they come with.
    TEXTS = "list(string)"
    OBJECT = "map(string, dyn)"


View = Mapping[str, GuardType]

# The functions a guard may call; everything else CEL offers stays out. What is missing on purpose: dyn (escapes the
# type check), timestamps (read the machine's time zones), conversions (a flat typed view needs none).
GUARD_FUNCTIONS: tuple[str, ...] = (
    *("_&&_", "_||_", "!_", "_?_:_", "@in"),
    *("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"),
    *("_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_[_]"),
    *("startsWith", "endsWith", "contains", "matches", "size"),
)

_POSITION = regex(r"<input>:(\d+):(\d+): ")
_IDENTIFIER = regex(r"[A-Za-z_]\w*", re.ASCII)
_IDENTIFIER_LAST = regex(r"[A-Za-z_]\w*\s*$", re.ASCII)
_MACRO_CALL = regex(r"\.\s*(all|exists|exists_one|map|filter)\s*\(")


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


def condition_holds(program: Program, view: Mapping[str, object]) -> bool | None:
    """Whether the condition is true of this view; None when that cannot be decided.

    The library converts everything it is given, so a view of the program's own names is the fastest.
    """
    try:
        value = program.expression.eval(None, view).value()
    except RuntimeError:
        return None  # Most evaluation errors are values; the limits of the library itself are raised.
    return value if isinstance(value, bool) else None


def compiled_condition(source: str, view: View, env: "cel.Env") -> Program:
    """Check a condition over a view and make it ready to evaluate, or raise GuardRefused."""
    _refuse_bad_text(source)
    try:
        expression = env.compile(source)
    except RuntimeError as error:
        raise _refusal(source, str(error), view) from None
    if expression.return_type().name() != "BOOL":
        raise GuardRefused(
            GuardFault.NOT_BOOL,
            f"condition {source!r} is a {expression.return_type().name()}, not a BOOL; compare it with something",
        )
    # CEL spells a name in one way only, so one that is used stands in the text as it is. A name that merely occurs, in
    # a quoted text or as part of a longer one, is taken too: one value too many costs less than a parser to trust.
    return Program(source, expression, tuple(name for name in view if name in source))


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


def environment(view: View) -> "cel.Env":
    """The compiler of conditions over this view. Building it takes a millisecond, so the caller keeps it."""
    from cel_expr_python import cel

    types = {
        GuardType.STRING: cel.Type.STRING,
        GuardType.INT: cel.Type.INT,
        GuardType.BOOL: cel.Type.BOOL,
        GuardType.TEXTS: cel.Type.List(cel.Type.STRING),
        GuardType.OBJECT: cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    }
    functions = "".join(f'    - name: "{name}"\n' for name in GUARD_FUNCTIONS)
    config = cel.NewEnvConfigFromYaml(f"stdlib:\n  disable_macros: true\n  include_functions:\n{functions}")
    return cel.NewEnv(config=config, variables={name: types[tag] for name, tag in view.items()})


def _refusal(source: str, text: str, view: View) -> GuardRefused:
    """Turn the library's text into a code and a position; tests pin the few words this relies on."""
    found = _POSITION.search(text)
    line, column = (int(found[1]), int(found[2])) if found else (0, 0)
    place = f"line {line}, column {column}" if found else "a place CEL does not name"
    fault, why = _fault_of(source, text, line, column, view)
    return GuardRefused(fault, f"condition {source!r} {why} at {place}", line=line, column=column)


def _fault_of(source: str, text: str, line: int, column: int, view: View) -> tuple[GuardFault, str]:
    if "found no matching overload" in text or "cannot be the operand" in text:
        return GuardFault.TYPE_MISMATCH, "compares or combines values of types that do not fit"
    if "undeclared reference" not in text:
        return GuardFault.UNREADABLE, "does not parse"
    if _MACRO_CALL.search(source):
        return GuardFault.HAS_COMPREHENSION, "has a comprehension, which guards do not know; write it out with ||,"
    # Only a mistake is compared with what there is.
    from difflib import get_close_matches

    name = _name_at(source, line, column)
    near = get_close_matches(name, view, n=1)
    hint = f"; the nearest is {near[0]!r}" if near else ""
    return GuardFault.NAME_UNKNOWN, f"uses {name!r}, which no view has{hint},"


def _name_at(source: str, line: int, column: int) -> str:
    text = source.split("\n")[line - 1]
    # Of a function CEL gives the place of its bracket; the name stands before it.
    found = _IDENTIFIER.match(text, column - 1) or _IDENTIFIER_LAST.search(text, 0, column - 1)
    return found[0] if found else text[column - 1 : column]


def _line_and_column(source: str, offset: int) -> tuple[int, int]:
    return source.count("\n", 0, offset) + 1, offset - source.rfind("\n", 0, offset)
