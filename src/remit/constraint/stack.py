"""The constraint stack: what a model said becomes a value that fits, or a code that says why not.

The steps, each taken only when the one before did not do: parse, repair, match enums, validate. A grammar is read first.

Rule 1: `ok` means that the value fits the schema (and the text the grammar), always.
Rule 2: a value that had to be guessed is no value: the text is refused with a code.
Rule 3: without `repair` a text is parsed and validated as it is, and enums are not matched.
Rule 4: `strict` gives no value along with a violation; otherwise what could be read comes along, and the violations say
        what is wrong with it.
Rule 5: nothing here asks a model, reads a file or knows the time; the same text and demand give the same result.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from remit.constraint.grammar.matching import GRAMMAR_UNDECIDED, Fit, read_with
from remit.constraint.grammar.notation import check_grammar
from remit.constraint.reading.enums import Enums, Matched, schema_at
from remit.constraint.reading.find_json import find_json
from remit.constraint.reading.prose import names_of
from remit.constraint.reading.repair_log import NO_VALUE, Reason, Repair, RepairCode, RepairLog, Unreadable
from remit.constraint.reading.sought import Sought
from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import JsonObject, Record, replace
from remit.core.run.request_checks import REQUEST_MALFORMED
from remit.core.schema.grammar_source import grammar_text
from remit.core.schema.json_schema import (
    ENUM,
    MESSAGE_CHARS_MAX,
    Checker,
    JsonSchema,
    Violation,
    code_of,
    compile_schema,
)
from remit.core.schema.json_text import KeyRepeated, NotJson, TooDeep, parse_json

# What is shown of a value that does not fit.
FOUND_CHARS_MAX = 120
# A root that refers to a definition, which may refer to another; more are a circle.
REFERENCES_MAX = 8

_ALTERNATIVES = ("anyOf", "oneOf")
_KINDS = ("object", "array", "string", "number", "integer", "boolean", "null")


class Misfit(Record):
    """One place where a text or its value does not fit: path, keyword or reason, what is wrong, and what stands there."""

    path: str
    keyword: str
    message: str
    found: str = ""


class Constrained(Record):
    """What became of a text. With a code the value, if there is one, is a part of it or does not fit."""

    value: Any = None
    code: str = ""
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Misfit, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the value fits."""
        return not self.code


class Demand:
    """What a text must fit, made ready once for any number of texts."""

    def __init__(
        self,
        schema: JsonSchema | None = None,
        *,
        resources: Mapping[str, JsonObject] | None = None,
        grammar: Path | str | None = None,
    ) -> None:
        """Raises RequestRejected for a schema or a grammar that nothing could be checked with.

        A grammar is given as its text, or as a file: a path, or a name that ends in .gbnf or .lark.
        """
        self.has_schema = schema is not None
        self.grammar = None if grammar is None else grammar_text(grammar)
        if self.grammar is not None:
            check_grammar(self.grammar)
        known = schema if schema is not None else True
        self.checker: Checker = compile_schema(known, registry=resources)
        self.enums = Enums(known, resources or {})
        self.kinds = _root_kinds(known)
        title = known.get("title") if isinstance(known, dict) else None
        self.names = names_of(title) if isinstance(title, str) else frozenset()

    @cached_property
    def wanted(self) -> Sought:
        """What is looked for in prose."""
        return Sought(self.kinds, self.enums.words, self.names, self.enums.choices)


def constrain(text: str, demand: Demand, *, repair: bool = True, strict: bool = False) -> Constrained:
    """Hold what a model said to a demand."""
    given: object = demand
    if not isinstance(given, Demand):
        message = (
            f"demand={clipped(given)} is no Demand; make one of a schema once, for any number of texts: Demand(schema)"
        )
        raise RequestRejected(REQUEST_MALFORMED, message)
    log = RepairLog()
    if demand.grammar is not None:
        refused = _by_grammar(text, demand.grammar, log, repair=repair)
        if refused is not None:
            return refused
        if not demand.has_schema:
            return Constrained(text.strip() if log.repairs else text, repairs=log.repairs)
    try:
        value, bare_words = _read(text, demand, log, repair=repair)
        result = _validated(value, bare_words, demand, log, repair=repair)
    except Unreadable as error:
        result = _unreadable(error, text, log)
    if strict and not result.ok:
        return Constrained(None, result.code, result.repairs, result.violations)
    return result


def _by_grammar(text: str, grammar: str, log: RepairLog, *, repair: bool) -> Constrained | None:
    """The refusal of a text that breaks its grammar. Space around it is what a chat puts there."""
    reading = read_with(grammar, text)
    if reading.fit is not Fit.FITS and repair and text.strip() != text:
        again = read_with(grammar, text.strip())
        if again.fit is Fit.FITS:
            log.note(RepairCode.SPACE_TRIMMED, 0, text, text.strip())
            return None
    if reading.fit is Fit.FITS:
        return None
    misfit = Misfit("", f"grammar_{reading.fit}", reading.problem, _excerpt(text, reading.at))
    # An undecided text is neither wrong nor fitting.
    code = GRAMMAR_UNDECIDED if reading.fit is Fit.UNDECIDED else ErrorCode.CONSTRAINT_GRAMMAR_REJECTED
    return Constrained(None, code, violations=(misfit,))


def _read(text: str, demand: Demand, log: RepairLog, *, repair: bool) -> tuple[Any, int]:
    try:
        return parse_json(text), 0
    except NotJson as error:
        if not repair:
            raise Unreadable(_reason(error), error.at, str(error)) from None
    return find_json(text, log, demand.wanted)


def _validated(value: Any, bare_words: int, demand: Demand, log: RepairLog, *, repair: bool) -> Constrained:
    checker = demand.checker
    if not bare_words and checker.is_valid(value):
        return Constrained(value, repairs=log.repairs)
    matched = Matched(value, frozenset(), ())
    if repair:
        value = _unwrapped(value, demand, log)
        matched = demand.enums.match(value, bare_words, log)
        if matched.bare:
            word = matched.bare[0]
            message = f"{word[:40]!r} stands without quotes and is none of the words that the schema names"
            raise Unreadable(Reason.BARE_WORD, word.at, message)
    violations = tuple([_named(violation, matched) for violation in checker.violations(matched.value)])
    if not violations:
        return Constrained(matched.value, repairs=log.repairs)
    breaches = tuple(_misfit(violation, matched.value) for violation in violations)
    return Constrained(matched.value, code_of(violations), log.repairs, breaches)


def _unwrapped(value: Any, demand: Demand, log: RepairLog) -> Any:
    """The value in a text that was written as JSON twice, where the schema admits no text."""
    if not isinstance(value, str) or not demand.kinds or "string" in demand.kinds:
        return value
    try:
        inner = parse_json(value)
    except ValueError:
        return value
    if not isinstance(inner, dict | list):
        return value
    log.note(RepairCode.STRING_UNWRAPPED, 0, value)
    return inner


def _named(violation: Violation, matched: Matched) -> Violation:
    """The violation by its right name: a text that is none of the words which alternatives list breaks an enum."""
    is_choice = violation.keyword in _ALTERNATIVES and violation.path in matched.unrecognized
    return replace(violation, keyword=ENUM) if is_choice else violation


def _unreadable(error: Unreadable, text: str, log: RepairLog) -> Constrained:
    message = f"character {error.at}: {error.message}"[:MESSAGE_CHARS_MAX]
    misfit = Misfit("", error.reason, message, _excerpt(text, error.at))
    partial = None if error.partial is NO_VALUE else error.partial
    repairs = (*log.repairs, *error.repairs)
    return Constrained(partial, ErrorCode.CONSTRAINT_JSON_INVALID, repairs, (misfit,))


def _reason(error: NotJson) -> Reason:
    """Why a text is no JSON as it stands."""
    if isinstance(error, KeyRepeated):
        return Reason.KEY_REPEATED
    return Reason.TOO_DEEP if isinstance(error, TooDeep) else Reason.UNEXPECTED


def _misfit(violation: Violation, value: Any) -> Misfit:
    return Misfit(violation.path, violation.keyword, violation.message, _found(value, violation.path))


def _found(value: Any, path: str) -> str:
    """What stands at a path, as the beginning of its JSON."""
    from json import dumps

    for token in path.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    if isinstance(value, str):
        value = value[:FOUND_CHARS_MAX]
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        return f"{kind} of {len(value)}"
    return dumps(value)[:FOUND_CHARS_MAX]


def _excerpt(text: str, at: int) -> str:
    return text[max(at - FOUND_CHARS_MAX // 4, 0) : at + FOUND_CHARS_MAX // 2]


def _root_kinds(schema: JsonSchema) -> frozenset[str]:
    """The types that a schema admits at its root, as far as it, or a schema that it refers to, says so."""
    return _kinds_of(schema, schema, REFERENCES_MAX)


def _kinds_of(part: Any, schema: JsonSchema, depth_left: int) -> frozenset[str]:
    if not isinstance(part, dict) or not depth_left:
        return frozenset()
    if "type" in part:
        kinds = part["type"]
        named = kinds if isinstance(kinds, list) else [kinds]
        return frozenset(kind for kind in named if kind in _KINDS)
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        return _kinds_of(schema_at(schema, reference[1:]), schema, depth_left - 1)
    branches: list[Any] = next((part[keyword] for keyword in _ALTERNATIVES if isinstance(part.get(keyword), list)), [])
    offered = [_kinds_of(branch, schema, depth_left - 1) for branch in branches]
    return frozenset().union(*offered) if all(offered) else frozenset()
