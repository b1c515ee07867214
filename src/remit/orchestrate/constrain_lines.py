"""Lines to constrain: the constraint stack over lines of JSON, each a text with a demand of its own.

Rule 1: a line that cannot be used has a result with a code like any other; it never stops the lines behind it.
Rule 2: demands are told apart by their bytes and made ready once; the oldest make room for new ones.
Rule 3: a line says what it demands; what it does not say is as the caller has it.
"""

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.constraint.grammar.notation import GRAMMAR_UNCHECKABLE
from remit.constraint.stack import Constrained, Demand, Misfit, constrain
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.codec import read_json, read_members
from remit.core.record import JsonObject
from remit.core.schema.json_schema import CONFIG_SCHEMA_INVALID

LINE_INVALID = "CONSTRAIN_LINE_INVALID"
LINE_TOO_LONG = "CONSTRAIN_LINE_TOO_LONG"

# Files of lines have a few schemas, now and then one for each of some hundred tools.
DEMANDS_MAX = 256

_FIELDS = frozenset({"id", "text", "schema", "resources", "grammar", "repair", "strict"})
_DEMAND_FIELDS = ("schema", "resources", "grammar")
_NULL = b"null"
# Which part of a line a refusal speaks of; every other speaks of the line.
_NOT_FOUND = ErrorCode.CONFIG_GRAMMAR_NOT_FOUND
_KEYWORDS = {
    CONFIG_SCHEMA_INVALID: "schema",
    GRAMMAR_INVALID: "grammar",
    _NOT_FOUND: "grammar",
    GRAMMAR_UNCHECKABLE: "grammar",
}
# What is wrong with a line may quote the line.
_MESSAGE_CHARS_MAX = 300


class Constrainer:
    """Holds texts to demands, each made ready when it is first met."""

    def __init__(self, schema: JsonObject | None, grammar: str | None, *, repair: bool, strict: bool) -> None:
        """The demand on texts that bring none; raises RequestRejected when nothing could be checked with it."""
        self._own = Demand(schema, grammar=grammar)
        self._repair = repair
        self._strict = strict
        self._demands: OrderedDict[bytes, Demand | RequestRejected] = OrderedDict()

    def text(self, text: str) -> JsonObject:
        """The result for one text: ok, value, code, repairs and violations."""
        return _values(constrain(text, self._own, repair=self._repair, strict=self._strict))

    def line(self, data: bytes) -> JsonObject:
        """The result for one line, a JSON object with a text and what is demanded of it.

        The id that a line gives itself comes back, and so do the names of fields that are not read here.
        """
        try:
            members = read_members(data)
        except (ValueError, RecursionError) as error:
            return _refused(LINE_INVALID, f"the line is no JSON object: {error}")
        try:
            values = _values(self._constrained(members))
        except RequestRejected as error:
            values = _refused(error.code, error.message)
        with suppress(RequestRejected):
            if (identity := _value(members, "id")) is not None:
                values["id"] = identity
        if ignored := members.keys() - _FIELDS:
            values["ignored"] = sorted(ignored)
        return values

    def too_long(self, bytes_max: int) -> JsonObject:
        """The result for a line that is longer than the limit."""
        return _refused(LINE_TOO_LONG, f"the line has more than line_bytes_max={bytes_max}; shorten or split it")

    def _constrained(self, members: Mapping[str, bytes]) -> Constrained:
        text = _typed(members, "text", str)
        if text is None:
            raise RequestRejected(LINE_INVALID, 'the line has no text; give it as a string under "text"')
        repair, strict = _typed(members, "repair", bool), _typed(members, "strict", bool)
        demands = any(members.get(field, _NULL) != _NULL for field in _DEMAND_FIELDS)
        return constrain(
            text,
            self._demand(members) if demands else self._own,
            repair=self._repair if repair is None else repair,
            strict=self._strict if strict is None else strict,
        )

    def _demand(self, members: Mapping[str, bytes]) -> Demand:
        """The demand of a line; one that cannot be used is refused as often as it comes, and tried once."""
        key = sha256(b"\0".join(members.get(field, _NULL) for field in _DEMAND_FIELDS)).digest()
        found = self._demands.get(key)
        if found is None:
            try:
                found = _made(members)
            except RequestRejected as error:
                found = error
            if len(self._demands) >= DEMANDS_MAX:
                self._demands.popitem(last=False)
            self._demands[key] = found
        self._demands.move_to_end(key)
        if isinstance(found, RequestRejected):
            raise RequestRejected(found.code, found.message)
        return found


def _made(members: Mapping[str, bytes]) -> Demand:
    schema = _value(members, "schema")
    if schema is not None and not isinstance(schema, dict | bool):
        raise RequestRejected(LINE_INVALID, f"schema is a {type(schema).__name__} and must be a JSON Schema")
    return Demand(schema, resources=_typed(members, "resources", dict), grammar=_typed(members, "grammar", str))


def _refused(code: str, message: str) -> JsonObject:
    misfit = Misfit("", _KEYWORDS.get(code, "line"), message[:_MESSAGE_CHARS_MAX])
    return _values(Constrained(code=code, violations=(misfit,)))


def _values(result: Constrained) -> JsonObject:
    return {
        "ok": result.ok,
        "value": result.value,
        "code": result.code or None,
        "repairs": result.repairs,
        "violations": result.violations,
    }


def _value(members: Mapping[str, bytes], name: str) -> Any:
    raw = members.get(name, _NULL)
    try:
        return read_json(raw)
    except (ValueError, RecursionError) as error:
        raise RequestRejected(LINE_INVALID, f"{name} is no JSON: {error}") from error


def _typed(members: Mapping[str, bytes], name: str, kind: type) -> Any:
    value = _value(members, name)
    if value is None or isinstance(value, kind):
        return value
    raise RequestRejected(LINE_INVALID, f"{name} is a {type(value).__name__} and must be a {kind.__name__}")
