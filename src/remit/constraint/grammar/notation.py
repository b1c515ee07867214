"""The two notations of a grammar, and whether a grammar may be used.

Rule 1: a text that begins with %llguidance is Lark as llguidance reads it; every other is GBNF.
Rule 2: no grammar reaches an engine unchecked: llama.cpp ignores a malformed one of the first kind in silence and
        generates whatever it likes; of both kinds, some end the process.
"""

import re
from types import ModuleType

from remit.constraint.grammar.gbnf import GRAMMAR_CHARS_MAX, GRAMMAR_INVALID, read_gbnf
from remit.constraint.grammar.hazards import hazard_in
from remit.core.failure import RequestRejected
from remit.core.regex import regex

GRAMMAR_UNCHECKABLE = "GRAMMAR_UNCHECKABLE"

MARK = "%llguidance"
# What a library says about a grammar may be as long as the grammar.
_PROBLEM_CHARS_MAX = 300
# llguidance begins its errors with line and column: `2(14): lexer error`, or `at 1(8): unknown name`.
_place = regex(r"(?:at )?(\d+)\((\d+)\): (.*)", re.DOTALL).match


def is_gbnf(grammar: str) -> bool:
    """Whether a grammar is GBNF; otherwise it is Lark for llguidance."""
    return not grammar.lstrip().startswith(MARK)


def lark_in(grammar: str) -> str:
    """The Lark text of a grammar for llguidance."""
    return grammar.lstrip()


def check_grammar(grammar: str) -> None:
    """Refuse a grammar that no engine should be given, with the place where it goes wrong."""
    if is_gbnf(grammar):
        read_gbnf(grammar)
        return
    if len(grammar) > GRAMMAR_CHARS_MAX:
        message = f"the grammar has {len(grammar)} characters, grammar_chars_max={GRAMMAR_CHARS_MAX}; shorten it"
        raise RequestRejected(GRAMMAR_INVALID, message, {"limit": GRAMMAR_CHARS_MAX})
    check_lark(lark_in(grammar))


def check_lark(lark: str) -> None:
    """Refuse a grammar that llguidance cannot read, or that it could not bear."""
    if hazard := hazard_in(lark):
        raise RequestRejected(GRAMMAR_INVALID, f"the grammar is refused: {hazard}")
    matcher = llguidance().LLMatcher
    is_wrong, messages = matcher.validate_grammar_with_warnings(matcher.grammar_from_lark(lark))
    if is_wrong:
        raise _refused(messages[0])


def llguidance() -> ModuleType:
    """The package, or RequestRejected with the way to get it."""
    try:
        import llguidance as package
    except ImportError as error:
        message = "grammars of llguidance cannot be checked without the package llguidance; pip install 'remit[local]'"
        raise RequestRejected(GRAMMAR_UNCHECKABLE, message) from error
    return package


def _refused(problem: str) -> RequestRejected:
    found = _place(problem)
    if found is None:
        return RequestRejected(GRAMMAR_INVALID, f"the grammar is refused: {_first_line(problem)}")
    line, column = int(found[1]), int(found[2])
    message = f"the grammar is refused: line {line}, column {column}: {_first_line(found[3])}"
    return RequestRejected(GRAMMAR_INVALID, message, {"line": line, "column": column})


def _first_line(problem: str) -> str:
    """What is wrong, without the picture of the grammar that follows it."""
    return re.split(r"\n\s+\d+ \| ", problem, maxsplit=1)[0].strip()[:_PROBLEM_CHARS_MAX]
