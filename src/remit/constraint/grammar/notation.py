"""The two notations of a grammar, and whether a grammar may be used.

Rule 1: a text that begins with %llguidance is Lark as llguidance reads it; every other is GBNF.
Rule 2: no grammar reaches an engine unchecked: llama.cpp ignores a malformed one of the first kind in silence and
        generates whatever it likes; of both kinds, some end the process.
Rule 3: a grammar of llguidance is bounded before llguidance reads it, because reading a hazard would end the process: it
        follows rules and references by recursion, so the levels that could stand on the stack together are counted from
        above, and it makes a list of as many parts as the entries of a JSON array may be, so these are counted, too.
        What cannot be read here is no hazard: llguidance refuses it.
"""

import json
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from remit.constraint.grammar.gbnf import GRAMMAR_CHARS_MAX, GRAMMAR_INVALID, read_gbnf
from remit.core.failure import RequestRejected
from remit.core.installing import install_command
from remit.core.regex import regex

# Half of what a stack of eight megabytes was seen to bear.
LEVELS_MAX = 800
# Each takes some 150 bytes, in every call that has the grammar.
ENTRIES_MAX = 100_000

_COUNTS = ("minItems", "maxItems")
_json_at = regex(r"%json\s*")
# Texts and regular expressions; what opens in them is no group.
_terminals = regex(r""""(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\\n])+/""")
_openings = regex(r"[(\[]")
_decode = json.JSONDecoder().raw_decode
GRAMMAR_UNCHECKABLE = "GRAMMAR_UNCHECKABLE"
MARK = "%llguidance"
# What a library says about a grammar may be as long as the grammar.
_PROBLEM_CHARS_MAX = 300
# llguidance begins its errors with line and column: `2(14): lexer error`, or `at 1(8): unknown name`.
_place = regex(r"(?:at )?(\d+)\((\d+)\): (.*)", re.DOTALL)


def hazard_in(lark: str) -> str:
    """What in a grammar would be too much; empty when nothing is."""
    rules, schemas = _parted(lark)
    # Every rule may lead to the next, and each of its groups is a level of its own.
    levels = sum(1 + len(_openings.findall(_terminals.sub("", line))) for line in rules)
    if levels > LEVELS_MAX:
        return f"its rules and groups are {levels}, levels_max={LEVELS_MAX}; write fewer"
    for schema in schemas:
        if (levels := _levels(schema)) > LEVELS_MAX:
            return (
                f"its schema and what that refers to are {levels} levels deep, levels_max={LEVELS_MAX}; make it flatter"
            )
    if (entries := sum(map(_entries, schemas))) > ENTRIES_MAX:
        return f"its arrays may have {entries} entries, entries_max={ENTRIES_MAX}; lower minItems and maxItems"
    return ""


def _parted(lark: str) -> tuple[list[str], list[Any]]:
    """The lines of a grammar without its schemas, and the schemas."""
    schemas: list[Any] = []
    rest, at = "", 0
    for found in _json_at.finditer(lark):
        try:
            schema, end = _decode(lark, found.end())
        except (ValueError, RecursionError):
            continue
        if found.start() >= at:
            rest, at = rest + lark[at : found.start()], end
        schemas.append(schema)
    return [line for line in (rest + lark[at:]).splitlines() if line.strip()], schemas


def _levels(schema: Any) -> int:
    """How deep a schema is, with everything that it refers to one below the other."""
    targets = {each["$ref"] for each in _objects(schema) if isinstance(each.get("$ref"), str)}
    return _depth(schema) + sum(_depth(_at(schema, target)) for target in targets)


def _at(schema: Any, reference: str) -> Any:
    """What a reference names; the whole for one that is no plain path, since its depth is unknown."""
    found = schema
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return schema
    return found


def _entries(schema: Any) -> int:
    counts = [each[key] for each in _objects(schema) for key in _COUNTS if key in each]
    return sum(int(count) for count in counts if type(count) in (int, float) and 0 <= count < float("inf"))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a value."""
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            yield each
        todo += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()


def _depth(value: Any) -> int:
    """How many objects and lists lie within one another."""
    depth, layer = 0, [value]
    while layer := [each for each in layer if isinstance(each, dict | list)]:
        depth += 1
        layer = [inner for each in layer for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


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
        wanted = install_command("local")
        message = f"grammars of llguidance cannot be checked without the package llguidance; install it with: {wanted}"
        raise RequestRejected(GRAMMAR_UNCHECKABLE, message) from error
    return package


def _refused(problem: str) -> RequestRejected:
    found = _place.match(problem)
    if found is None:
        return RequestRejected(GRAMMAR_INVALID, f"the grammar is refused: {_first_line(problem)}")
    line, column = int(found[1]), int(found[2])
    message = f"the grammar is refused: line {line}, column {column}: {_first_line(found[3])}"
    return RequestRejected(GRAMMAR_INVALID, message, {"line": line, "column": column})


def _first_line(problem: str) -> str:
    """What is wrong, without the picture of the grammar that follows it."""
    return re.split(r"\n\s+\d+ \| ", problem, maxsplit=1)[0].strip()[:_PROBLEM_CHARS_MAX]
