"""JSON Schema: what a value must look like, and in which places it does not.

Rule 1: only this file knows the library that checks; it is loaded with the first schema that is compiled.
Rule 2: nothing is ever fetched. A reference that leads out of the schema and its registry is refused.
Rule 3: a value that cannot be checked is invalid, never valid by accident.
Rule 4: schemas come from strangers and values from models, so size, depth and work of both are bounded.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.record import JsonObject, Record
from remit.core.schema.pattern_work import PATTERN_BACKTRACKS_MAX, PatternWeight, PatternWork, patterns_in
from remit.core.schema.schema_work import (
    CONTAINERS,
    ReferenceLost,
    References,
    ViolationListing,
    children,
    is_deeper,
    parts_of,
    pointer,
    used_resources,
    visits_of,
)

if TYPE_CHECKING:
    import jsonschema_rs

# The schemas true and false admit everything and nothing.
JsonSchema: TypeAlias = JsonObject | bool

CONFIG_SCHEMA_INVALID = "CONFIG_SCHEMA_INVALID"

# Schemas of tools take kilobytes, the largest published ones some hundred; compiling this much takes about 60 ms.
SCHEMA_BYTES_MAX = 262_144

# How many subschemas one value may meet, counting every way that leads there: so many checks take about a
# millisecond, so many violations up to half a second.
VISITS_MAX = 50_000

# A value of DEPTH_MAX levels whose every level passes three schemas on its way down; one frame of stack each.
LISTING_LEVELS_MAX = 3 * DEPTH_MAX

# Work of all patterns on one value: bytes of the compiled pattern times characters. So much took ten seconds at the
# worst, with patterns and texts that are made to be slow; others take a hundredth. A value that needs more is invalid.
PATTERN_WORK_MAX = 40_000_000_000
# Different patterns of one schema; finding out how large each is takes a fifth of a millisecond.
PATTERNS_MAX = 1_000
# How large a compiled pattern may be, in steps; the library refuses what is larger than the last.
PATTERN_BYTES_STEPS = (*(1024 * 4**step for step in range(7)), 10 * 1024 * 1024)
WEIGHTS_KEPT_MAX = 1_000
# Schemas of all runs: a service makes a loop for every request and has a handful of them.
SCHEMAS_KEPT_MAX = 64

# Enough for a model to correct itself, little enough to stand in a turn.
VIOLATIONS_MAX = 10
MESSAGE_CHARS_MAX = 200

# Keywords of violations that have a code of their own; a text can break all but the last without any schema. The first is
# that of an answer which reached the limit of its tokens.
LENGTH, JSON, GRAMMAR, ENUM = "length", "json", "grammar", "enum"
# The keyword of what is wrong with a value as a whole, and how the message begins when it is no JSON.
_WHOLE, _NO_JSON = "value", "value is not JSON"


class Schema(Record, forbid_unknown_fields=True):
    """The seven keywords that every engine understands; richer schemas stay plain JSON objects."""

    type: str = ""
    description: str = ""
    properties: dict[str, "Schema"] = {}
    required: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    items: "Schema | None" = None
    # UNSET because null is a default like any other.
    default: Any = msgspec.UNSET

    def to_json(self) -> JsonObject:
        """The schema as a JSON object, without the keywords that say nothing."""
        data: JsonObject = msgspec.json.decode(msgspec.json.encode(self))
        return data


class Violation(Record):
    """One place where a value breaks its schema: a JSON pointer, the keyword it breaks, and a short text."""

    path: str
    keyword: str
    message: str


def code_of(violations: Sequence[Violation]) -> ErrorCode:
    """The code of a value that breaks its demand: an enum is named only where nothing else is wrong."""
    assert violations, "a value that breaks nothing has no code"
    keywords = {violation.keyword for violation in violations}
    # Whatever else is wrong with an answer that was cut follows from that.
    if LENGTH in keywords:
        return ErrorCode.INFERENCE_MALFORMED_RESPONSE
    # What became of reading by a grammar may stand behind the word. It is read first, before JSON is looked for.
    if any(keyword.partition("_")[0] == GRAMMAR for keyword in keywords):
        return ErrorCode.CONSTRAINT_GRAMMAR_REJECTED
    if JSON in keywords or any(map(_is_no_json, violations)):
        return ErrorCode.CONSTRAINT_JSON_INVALID
    return ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED if keywords == {ENUM} else ErrorCode.CONSTRAINT_SCHEMA_INVALID


def _is_no_json(violation: Violation) -> bool:
    return violation.keyword == _WHOLE and violation.message.startswith(_NO_JSON)


class Checker:
    """A compiled schema. It may be kept and used from any thread."""

    __slots__ = ("_parts", "_patterns", "_references", "_schema", "_validator", "fits")

    def __init__(
        self,
        schema: JsonSchema,
        references: References,
        validator: "jsonschema_rs.Validator",
        patterns: PatternWork | None = None,
    ) -> None:
        self._schema = schema
        self._parts = parts_of(schema, references)
        self._references = references
        self._validator = validator
        self._patterns = patterns
        # The same as is_valid() for a value that is known to be JSON, as one that has a canonical form is; the library's
        # own function, since every tool call passes it. It may raise ValueError, which means no.
        self.fits: Callable[[Any], bool] = validator.is_valid if patterns is None else self._fits

    def is_valid(self, value: Any) -> bool:
        """Whether the value fits; stops at the first violation."""
        try:
            return not _json_fault(value, DEPTH_MAX) and self._fits(value)
        except ValueError:
            return False

    def violations(self, value: Any, limit: int = VIOLATIONS_MAX) -> tuple[Violation, ...]:
        """The first violations by path, keyword and message; none means that the value fits.

        Where a list would be too much work, one violation of the whole value says so.
        """
        if fault := _json_fault(value, DEPTH_MAX):
            return (_whole(f"{_NO_JSON}: {fault}"),)
        if self._is_slow(value):
            return (_whole(f"its texts are too long for the patterns: over pattern_work_max={PATTERN_WORK_MAX}"),)
        try:
            # Most values fit, and finding that out costs a fraction of listing what does not.
            if self._validator.is_valid(value):
                return ()
            if self._is_much_work(value):
                return (_whole(f"value does not fit; saying where would take over visits_max={VISITS_MAX}"),)
            found = [_violation(error) for error in self._validator.iter_errors(value)]
        except ValueError as error:
            return (_whole(f"{_NO_JSON}: {error}"),)
        return tuple(nsmallest(limit, found, key=_place))

    def _fits(self, value: Any) -> bool:
        return not self._is_slow(value) and self._validator.is_valid(value)

    def _is_slow(self, value: Any) -> bool:
        return self._patterns is not None and self._patterns.is_over(value, PATTERN_WORK_MAX, LISTING_LEVELS_MAX)

    def _is_much_work(self, value: Any) -> bool:
        # A value has no more parts than its JSON has bytes; as a rule there is nothing to be counted then.
        if self._parts and self._parts * len(msgspec.json.encode(value)) <= VISITS_MAX:
            return False
        listing = ViolationListing(self._references, VISITS_MAX)
        return listing.visits(self._schema, value, LISTING_LEVELS_MAX) > VISITS_MAX


def compile_schema(schema: JsonSchema, *, registry: Mapping[str, JsonObject] | None = None) -> Checker:
    """Compile a schema of draft 2020-12, or of the draft its $schema names.

    `registry` holds further schemas by their URI; no other reference out of the schema is followed. One that no
    reference leads to is not looked at, so that it can spoil nothing.
    """
    import jsonschema_rs

    try:
        return _compiled(_bounded(schema, registry or {}))
    except ReferenceLost as error:
        raise _rejected(error.path, str(error)) from None
    except jsonschema_rs.ValidationError as error:
        raise _rejected(pointer(error.instance_path), error.message) from error
    except (ValueError, TypeError) as error:
        raise _rejected("", str(error)) from error


# A pure memo: schemas that are written alike check alike, and a loop with one is often made anew for each call. A checker
# is made of the bytes, so that no caller can change what it was compiled from.
@lru_cache(maxsize=SCHEMAS_KEPT_MAX)
def _compiled(data: bytes) -> Checker:
    import jsonschema_rs

    schema, registry = msgspec.json.decode(data)
    known = used_resources(schema, registry)
    references = _followed(schema, known)
    validator = jsonschema_rs.validator_for(
        schema,
        retriever=_refuse,
        registry=jsonschema_rs.Registry(list(known.items()), retriever=_refuse),
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=PATTERN_BACKTRACKS_MAX),
    )
    return Checker(schema, references, validator, _pattern_work(schema, known, references))


def text_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches a pattern somewhere, by the library's own engine: its work grows with the text and nothing else.

    It takes one pass for any number of alternatives, where `re` tries each of them at every letter. A text with half a
    surrogate pair raises ValueError.
    """
    import jsonschema_rs

    return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()).is_valid


def _bounded(schema: JsonSchema, registry: Mapping[str, JsonObject]) -> bytes:
    """Schema and registry as one JSON text, if they are neither too deep nor too large."""
    if is_deeper(schema, DEPTH_MAX) or any(is_deeper(other, DEPTH_MAX) for other in registry.values()):
        raise ValueError(f"it nests deeper than depth_max={DEPTH_MAX}; move inner parts to $defs")
    data = msgspec.json.encode((schema, registry))
    if len(data) > SCHEMA_BYTES_MAX:
        raise ValueError(f"schema_bytes={len(data)} exceeds schema_bytes_max={SCHEMA_BYTES_MAX}; shorten or split it")
    return data


def _followed(schema: JsonSchema, registry: Mapping[str, JsonObject]) -> References:
    """Where the references lead, if following them is not too much work."""
    references = References(schema, registry)
    if visits_of(schema, references, VISITS_MAX) > VISITS_MAX:
        raise ValueError(
            f"one value would meet more than visits_max={VISITS_MAX} subschemas; refer to definitions from fewer places"
        )
    return references


def _pattern_work(schema: JsonSchema, registry: Mapping[str, JsonObject], references: References) -> PatternWork | None:
    patterns = patterns_in((schema, *registry.values()))
    if len(patterns) > PATTERNS_MAX:
        raise _rejected("", f"it has {len(patterns)} different patterns, patterns_max={PATTERNS_MAX}; split it")
    if not patterns:
        return None
    return PatternWork(schema, references, {pattern: _weight_of(pattern) for pattern in patterns})


@lru_cache(maxsize=WEIGHTS_KEPT_MAX)
def _weight_of(pattern: str) -> PatternWeight:
    """What a pattern weighs: the library does not say, so it is asked with one limit after the other."""
    import jsonschema_rs

    def fits(options: "jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions") -> bool:
        try:
            jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options)
        except jsonschema_rs.ValidationError:
            return False
        return True

    steps = PATTERN_BYTES_STEPS
    size = bisect_left(steps[:-1], x=True, key=lambda step: fits(jsonschema_rs.FancyRegexOptions(size_limit=step)))
    # Only the engine with linear time refuses look-around and back references.
    return PatternWeight(steps[size], backtracks=not fits(jsonschema_rs.RegexOptions()))


def _json_fault(value: Any, levels_left: int) -> str:
    """Why a value is not JSON, or empty. The library looks only where the schema does, and breaks on a deep value."""
    if isinstance(value, _PLAIN):
        return ""
    if isinstance(value, float):
        return "" if isfinite(value) else f"number {value!r} is not finite"
    if not isinstance(value, CONTAINERS):
        return f"{type(value).__name__} is no type of JSON"
    if levels_left == 0:
        return f"it nests deeper than depth_max={DEPTH_MAX}"
    if isinstance(value, dict) and not _TEXT.issuperset(map(type, value)):
        for key in value:
            if not isinstance(key, str):
                return f"key {clipped(key)} is no text"
    # A look at all of them at once, since most are plain.
    if _PLAIN_KINDS.issuperset(map(type, children(value))):
        return ""
    for child in children(value):
        if not isinstance(child, _PLAIN) and (fault := _json_fault(child, levels_left - 1)):
            return fault
    return ""


# A bool is an int.
_PLAIN = (str, int, NoneType)
_PLAIN_KINDS, _TEXT = frozenset({*_PLAIN, bool}), frozenset({str})


def _refuse(uri: str) -> JsonObject:
    raise LookupError(f"{uri} is not in the registry, and nothing is fetched")


def _violation(error: "jsonschema_rs.ValidationError") -> Violation:
    return Violation(pointer(error.instance_path), error.kind.name, _shortened(error.message))


def _whole(message: str) -> Violation:
    return Violation("", _WHOLE, _shortened(message))


def _place(violation: Violation) -> tuple[str, str, str]:
    return violation.path, violation.keyword, violation.message


def _shortened(message: str) -> str:
    """Cut from the middle: messages begin with the value, which may be long, and end with what is wrong."""
    if len(message) <= MESSAGE_CHARS_MAX:
        return message
    half = MESSAGE_CHARS_MAX // 2
    return f"{message[: half - 3]} ... {message[-(half - 2) :]}"


def _rejected(path: str, reason: str) -> RequestRejected:
    return RequestRejected(CONFIG_SCHEMA_INVALID, f"schema at {path or '/'}: {_shortened(reason)}", {"path": path})
