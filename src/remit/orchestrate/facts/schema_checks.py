"""Checks of values against JSON Schemas, each compiled when it is first needed and kept.

Rule 1: what cannot be checked is a violation: a schema that does not compile, a text that nests too deep.
Rule 2: schemas are told apart by identity, never by a name: two tools may carry the same version by mistake.
Rule 3: the same schema and value give the same violations in every process, however deep its stack stands.
"""

import re
from typing import Any, NamedTuple

from remit.constraint.reading.repair_log import Reason, repair_line
from remit.constraint.stack import Demand, constrain
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.journal.codec import read_json, to_json
from remit.core.limits.verification import could_refuse
from remit.core.record import JsonObject, replace
from remit.core.regex import regex
from remit.core.schema.json_schema import MESSAGE_CHARS_MAX, Checker, Violation, compile_schema
from remit.core.schema.json_text import KeyRepeated

# Registries hold dozens of tools. A recovered run brings copies of its own, which push out those of runs long ended;
# whatever is missed again is compiled again.
COMPILED_MAX = 1024
# The keyword of the violation that a text is no JSON at all.
NO_JSON = "json"

_TOO_DEEP = Violation("", "value", f"value is not JSON: it nests deeper than depth_max={DEPTH_MAX}")
# Strings are skipped whole, the last one even without its end, so a text is read once from left to right.
# No group repeats possessively here: before 3.11.5 Python matches such a group wrongly.
_tokens = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*"?|[\[\]{}]', re.DOTALL)


class Mended(NamedTuple):
    """A text that was held to a schema, where it still breaks it, and what was changed to make it fit."""

    text: str
    violations: tuple[Violation, ...] = ()
    repairs: tuple[str, ...] = ()


class Checks:
    """Compiled schemas, the oldest of which make room for new ones."""

    def __init__(self) -> None:
        # By the identity of the schema, which stays in the entry so that nothing else can have the same.
        self._compiled: dict[int, tuple[JsonObject, Checker | Violation]] = {}
        self._demands: dict[int, tuple[JsonObject, Demand]] = {}

    def violations(self, schema: JsonObject, value: Any) -> tuple[Violation, ...]:
        """Where a value breaks a schema; none means that it fits."""
        entry = self._compiled.get(id(schema))
        checker = self._compile(schema) if entry is None else entry[1]
        if isinstance(checker, Violation):
            return (checker,)
        return () if checker.is_valid(value) else tuple(map(_shortened, checker.violations(value)))

    def violations_in_arguments(self, schema: JsonObject, arguments: JsonObject) -> tuple[Violation, ...]:
        """The violations in arguments that have a canonical form, and so are known to be JSON."""
        entry = self._compiled.get(id(schema))
        try:
            if entry is not None and type(entry[1]) is Checker and entry[1].fits(arguments):
                return ()
        except ValueError:
            pass  # The library met a value that it does not know; what is wrong with it is found below.
        return self.violations(schema, arguments)

    def mended(self, schema: JsonObject, text: str) -> Mended:
        """A text held to a schema by the constraint stack: as it stands where it fits, repaired where that is certain."""
        entry = self._demands.get(id(schema))
        try:
            demand = Demand(schema) if entry is None else entry[1]
        except RequestRejected as error:
            return Mended(text, (_shortened(Violation("", "schema", error.message)),))
        if entry is None:
            if len(self._demands) >= COMPILED_MAX:
                del self._demands[next(iter(self._demands))]
            self._demands[id(schema)] = (schema, demand)
        found = constrain(text, demand)
        if found.ok and not found.repairs:
            return Mended(text)
        if found.ok:
            return Mended(to_json(found.value), (), tuple([repair_line(repair) for repair in found.repairs]))
        keyword = NO_JSON if found.code == ErrorCode.CONSTRAINT_JSON_INVALID else ""
        breaches = [Violation(breach.path, keyword or breach.keyword, breach.message) for breach in found.violations]
        return Mended(text, tuple(map(_shortened, breaches)))

    def violations_in_json(self, schema: JsonObject, text: str) -> tuple[Violation, ...]:
        """Where the value of a JSON text breaks a schema; a text that is no JSON breaks every schema."""
        value, fault = _parsed(text)
        return self.violations(schema, value) if fault is None else (fault,)

    def violations_in_result(self, schema: JsonObject, text: str) -> tuple[Violation, ...]:
        """The violations in a tool's result, which may be plain text: that is a JSON string to its schema.

        A text that looks like JSON may still be meant as the text it is, where the schema gives texts a form.
        """
        value, fault = _parsed(text)
        if fault is None:
            found = self.violations(schema, value)
            return () if found and could_refuse(schema) and not self.violations(schema, text) else found
        return self.violations(schema, text) if fault.keyword == NO_JSON else (fault,)

    def _compile(self, schema: JsonObject) -> Checker | Violation:
        checker: Checker | Violation
        try:
            checker = compile_schema(schema)
        except RequestRejected as error:
            checker = _shortened(Violation("", "schema", error.message))
        if len(self._compiled) >= COMPILED_MAX:
            del self._compiled[next(iter(self._compiled))]
        self._compiled[id(schema)] = (schema, checker)
        return checker


def _parsed(text: str) -> tuple[Any, Violation | None]:
    """The value of a JSON text, or why it has none."""
    try:
        return read_json(text), None
    except KeyRepeated as error:
        return None, Violation("", Reason.KEY_REPEATED, str(error)[:MESSAGE_CHARS_MAX])
    except ValueError as error:
        # How deep a parser gets before it gives up depends on the stack it stands on, so depth is looked at first.
        return None, _TOO_DEEP if _is_deep(text) else Violation("", NO_JSON, str(error)[:MESSAGE_CHARS_MAX])


def _is_deep(text: str) -> bool:
    depth = 0
    for token in _tokens.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth > DEPTH_MAX:
                return True
        elif token[0] in ("]", "}"):
            depth -= 1
    return False


def _shortened(violation: Violation) -> Violation:
    """A path consists of keys that a model may have made up, so it is cut like everything a turn has to hold."""
    if len(violation.path) <= MESSAGE_CHARS_MAX and len(violation.message) <= MESSAGE_CHARS_MAX:
        return violation
    path, message = violation.path[:MESSAGE_CHARS_MAX], violation.message[:MESSAGE_CHARS_MAX]
    return replace(violation, path=path, message=message)
