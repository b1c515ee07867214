"""Payloads, messages of the wire as bytes: read strictly, judged by the same rules in both directions, and bounded.

Rule 1: a message is the JSON of its record. Its type, `agentic.task.v1`, stands in a header; a reader also takes the
        envelope in which SemStreams' own programs wrap it: {"type": {domain, category, version}, "payload": {...}}.
Rule 2: what the type, the subject and the message itself say must agree. A message without a type is what its subject
        carries.
Rule 3: whatever is refused is refused with a code, before anything is made of it, and what is written could be read back.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.record import JsonObject, Record, digest_of, replace
from remit.core.run.lifecycle import Outcome
from remit.core.schema.json_text import KeyRepeated, NotJson, parse_json
from remit.wire.message_records import (
    AgentRequest,
    AgentResponse,
    ContextEvent,
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopFailedEvent,
    SignalMessage,
    TaskMessage,
    Trajectory,
    UserMessage,
    UserResponse,
    WireSignal,
    WireToolCall,
    WireToolResult,
)
from remit.wire.message_rules import problems_of
from remit.wire.subjects import (
    ADDRESSED_BY,
    CARRIES,
    DOMAIN,
    FAMILY_OF,
    SCHEMA_VERSION,
    Address,
    Category,
    SubjectFamily,
    parse_subject,
    subject_of,
)

R = TypeVar("R", bound=Record)

WIRE_TOO_LARGE = "WIRE_TOO_LARGE"
WIRE_MALFORMED = "WIRE_MALFORMED"
WIRE_KEY_REPEATED = "WIRE_KEY_REPEATED"
WIRE_SHAPE_WRONG = "WIRE_SHAPE_WRONG"
WIRE_RULE_BROKEN = "WIRE_RULE_BROKEN"
WIRE_DOMAIN_UNKNOWN = "WIRE_DOMAIN_UNKNOWN"
WIRE_CATEGORY_UNKNOWN = "WIRE_CATEGORY_UNKNOWN"
WIRE_VERSION_UNKNOWN = "WIRE_VERSION_UNKNOWN"
WIRE_SUBJECT_MISMATCH = "WIRE_SUBJECT_MISMATCH"

# A broker takes a megabyte by default, its headers among them; a longer text is kept as a blob and named by its digest.
MESSAGE_BYTES_MAX = 1_000_000
# The header that says what a message is.
TYPE_HEADER = "Agentic-Type"

KINDS: Mapping[Category, type[Record]] = MappingProxyType(
    {
        Category.TASK: TaskMessage,
        Category.USER_MESSAGE: UserMessage,
        Category.SIGNAL: WireSignal,
        Category.USER_RESPONSE: UserResponse,
        Category.REQUEST: AgentRequest,
        Category.RESPONSE: AgentResponse,
        Category.TOOL_CALL: WireToolCall,
        Category.TOOL_RESULT: WireToolResult,
        Category.LOOP_CREATED: LoopCreatedEvent,
        Category.LOOP_COMPLETED: LoopCompletedEvent,
        Category.LOOP_FAILED: LoopFailedEvent,
        Category.LOOP_CANCELLED: LoopCancelledEvent,
        Category.CONTEXT_EVENT: ContextEvent,
        Category.SIGNAL_MESSAGE: SignalMessage,
    }
)
CATEGORY_OF: Mapping[type[Record], Category] = MappingProxyType({kind: category for category, kind in KINDS.items()})
# What the outcome of a completion says that it is, where nothing else does.
_BY_OUTCOME: Mapping[object, Category] = MappingProxyType(
    {
        Outcome.SUCCESS.value: Category.LOOP_COMPLETED,
        Outcome.FAILED.value: Category.LOOP_FAILED,
        Outcome.CANCELLED.value: Category.LOOP_CANCELLED,
    }
)


class PublishedMessage(Record):
    """A message as it is published: under which subject, with which headers, and its bytes."""

    subject: str
    headers: dict[str, str]
    data: bytes


def type_of(category: Category) -> str:
    """The type of a message, as its header has it."""
    return f"{DOMAIN}.{category.value}.{SCHEMA_VERSION}"


def category_named(text: str) -> Category:
    """The category that a type names; raises RequestRejected for another domain, version or category."""
    domain, category, version, *_ = *text.split(".", 2), "", ""
    return _category(domain, category, version)


def posted(message: Record) -> PublishedMessage:
    """A message ready to be published; raises RequestRejected where it breaks a rule of the wire."""
    category = CATEGORY_OF[type(message)]
    family = FAMILY_OF[category]
    subject = subject_of(family, *(getattr(message, field) for field in ADDRESSED_BY[family]))
    return PublishedMessage(subject, {TYPE_HEADER: type_of(category)}, written(message))


def delivered(subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> Record:
    """The message that came under a subject; raises RequestRejected for one that is not what it says, or not in order."""
    address = parse_subject(subject)
    said, value = _opened(_object(data))
    if headers and TYPE_HEADER in headers:
        named = category_named(headers[TYPE_HEADER])
        if said not in (None, named):
            raise _mismatch(f"the header says {named.value} and the envelope {said}")
        said = named
    category = said or _carried(address.family, value)
    if category not in CARRIES[address.family]:
        carried = ", ".join(CARRIES[address.family])
        raise _mismatch(f"{address.family.value} carries {carried}, and this is a {category.value}")
    message = checked_record(_shaped(value, KINDS[category]))
    _check_address(address, message)
    return message


def said_in(data: bytes) -> JsonObject:
    """What a message says that need not be in order; nothing where it cannot be read at all."""
    try:
        return _opened(_object(data))[1]
    except RequestRejected:
        return {}


def read(data: bytes, kind: type[R]) -> R:
    """The record of this kind in these bytes, as it stands in a bucket or a file."""
    return checked_record(_shaped(_object(data), kind))


def written(record: Record) -> bytes:
    """The bytes of a record that keeps the rules and can be read again."""
    try:
        data = msgspec.json.encode(record)
    except (TypeError, ValueError, RecursionError) as error:
        raise _shape(type(record), str(error)) from error
    read(data, type(record))
    return data


def checked_record(record: R) -> R:
    """The record, if it keeps its rules; raises RequestRejected with the first that it breaks."""
    problem = next(problems_of(record), "")
    if problem:
        raise RequestRejected(WIRE_RULE_BROKEN, f"{type(record).__name__}: {problem}", {"kind": type(record).__name__})
    return record


def trajectory_entry(trajectory: Trajectory) -> tuple[bytes, bytes]:
    """What its bucket holds of a trajectory, and its steps to be kept as a blob; nothing of those where the bucket has room."""
    data = msgspec.json.encode(checked_record(trajectory))
    if len(data) <= MESSAGE_BYTES_MAX:
        return data, b""
    steps = msgspec.json.encode(trajectory.steps)
    pointer = replace(trajectory, steps=(), steps_digest=digest_of(steps).hex(), steps_size=len(steps))
    return written(pointer), steps


def _object(data: bytes) -> JsonObject:
    try:
        value = parse_json(_bounded(data))
    except KeyRepeated as error:
        raise RequestRejected(WIRE_KEY_REPEATED, f"the message is ambiguous: {error}") from None
    except NotJson as error:
        raise RequestRejected(WIRE_MALFORMED, f"the message is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise RequestRejected(WIRE_MALFORMED, f"the message is a JSON {type(value).__name__}; send an object")
    return value


def _bounded(data: bytes) -> bytes:
    if len(data) > MESSAGE_BYTES_MAX:
        message = (
            f"the message has {len(data)} bytes, more than {MESSAGE_BYTES_MAX}; shorten it, or refer to what it holds"
        )
        raise RequestRejected(WIRE_TOO_LARGE, message, {"size_bytes": len(data), "limit": MESSAGE_BYTES_MAX})
    return data


def _opened(value: JsonObject) -> tuple[Category | None, JsonObject]:
    """What an envelope says of its payload, and the payload; of a message without envelope, the message itself."""
    kind, payload = value.get("type"), value.get("payload")
    if not isinstance(kind, dict):
        return None, value
    category = _category(*(kind.get(part, "") for part in ("domain", "category", "version")))
    if not isinstance(payload, dict):
        raise RequestRejected(WIRE_SHAPE_WRONG, "the envelope has no payload that is an object; put the message there")
    return category, payload


def _category(domain: object, category: object, version: object) -> Category:
    if domain != DOMAIN:
        raise RequestRejected(WIRE_DOMAIN_UNKNOWN, f"domain={clipped(domain)} is not {DOMAIN!r}")
    if version != SCHEMA_VERSION:
        message = f"version={clipped(version)} is not {SCHEMA_VERSION!r}, which is what this program speaks"
        raise RequestRejected(WIRE_VERSION_UNKNOWN, message)
    if category not in tuple(Category):
        message = f"category={clipped(category)} is none of {', '.join(Category)}"
        raise RequestRejected(WIRE_CATEGORY_UNKNOWN, message)
    return Category(str(category))


def _carried(family: SubjectFamily, value: JsonObject) -> Category:
    if family is SubjectFamily.COMPLETE:
        outcome = value.get("outcome")
        return _BY_OUTCOME.get(outcome if isinstance(outcome, str) else "", Category.LOOP_COMPLETED)
    return CARRIES[family][0]


def _shaped(value: JsonObject, kind: type[R]) -> R:
    # A null counts as absent, as in SemStreams' own programs.
    present = {name: held for name, held in value.items() if held is not None}
    try:
        return msgspec.convert(present, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _shape(kind, str(error)) from None


def _shape(kind: type[Record], why: str) -> RequestRejected:
    return RequestRejected(WIRE_SHAPE_WRONG, f"not a {kind.__name__}: {why}", {"kind": kind.__name__})


def _check_address(address: Address, message: Any) -> None:
    for field, named in zip(ADDRESSED_BY[address.family], address.ids, strict=True):
        held = getattr(message, field)
        if held != named:
            raise _mismatch(f"the subject names {field} {named[:80]!r} and the message {held[:80]!r}")


def _mismatch(why: str) -> RequestRejected:
    return RequestRejected(WIRE_SUBJECT_MISMATCH, f"the message is not what it was sent as: {why}")


class HandedMessage(Record, kw_only=True):
    """Subject, bytes and headers as they came; its place among all messages, and how often it was handed over."""

    subject: str
    data: bytes
    headers: Mapping[str, str] = {}
    place: int = 0
    tries: int = 1
