"""Subjects: under which names messages travel, and under which keys loops are kept.

Rule 1: a subject is a family of two words and an id, one token for each. An id may be any text: what a broker takes for a
        separator or a wildcard, and whatever a bucket refuses in a key, is escaped, so that no id addresses another one.
Rule 2: an id has one spelling. A token that spells it in another way is refused, since two names of one thing pass checks
        that compare names.
Rule 3: a family says which categories of messages it carries.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from remit.core.failure import RequestRejected
from remit.core.record import Record
from remit.core.regex import regex

WIRE_ID_INVALID = "WIRE_ID_INVALID"
WIRE_SUBJECT_INVALID = "WIRE_SUBJECT_INVALID"

# The stream that carries them, and the buckets that hold what loops have come to.
STREAM = "AGENT"
LOOPS_BUCKET = "AGENT_LOOPS"
TRAJECTORIES_BUCKET = "AGENT_TRAJECTORIES"

DOMAIN = "agentic"
SCHEMA_VERSION = "v1"

# Room for a UUID, an address or the name of a tool, as everywhere else in the house.
ID_CHARS_MAX = 256
# A line of the broker's protocol has 4 KiB at most, for two tokens and its own words.
TOKEN_CHARS_MAX = 1_536

_ESCAPE = "="
_LITERAL = regex(r"[A-Za-z0-9_-]+")
_TOKEN = regex(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")
_ESCAPED = regex(r"=([0-9A-F]{2})")


class Category(StrEnum):
    """The kinds of messages."""

    TASK = "task"
    USER_MESSAGE = "user_message"
    SIGNAL = "signal"
    USER_RESPONSE = "user_response"
    REQUEST = "request"
    RESPONSE = "response"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    LOOP_CREATED = "loop_created"
    LOOP_COMPLETED = "loop_completed"
    LOOP_FAILED = "loop_failed"
    LOOP_CANCELLED = "loop_cancelled"
    CONTEXT_EVENT = "context_event"
    SIGNAL_MESSAGE = "signal_message"


class SubjectFamily(StrEnum):
    """How a subject begins. The first seven are SemStreams'; the last four carry what it names and gives no subject."""

    TASK = "agent.task"
    REQUEST = "agent.request"
    RESPONSE = "agent.response"
    EXECUTE = "tool.execute"
    RESULT = "tool.result"
    COMPLETE = "agent.complete"
    SIGNAL = "agent.signal"
    CREATED = "agent.created"
    CONTEXT = "agent.context"
    USER_MESSAGE = "user.message"
    USER_RESPONSE = "user.response"


# What a family carries; of several, the first is meant where a message does not say.
CARRIES: Mapping[SubjectFamily, tuple[Category, ...]] = MappingProxyType(
    {
        SubjectFamily.TASK: (Category.TASK,),
        SubjectFamily.REQUEST: (Category.REQUEST,),
        SubjectFamily.RESPONSE: (Category.RESPONSE,),
        SubjectFamily.EXECUTE: (Category.TOOL_CALL,),
        SubjectFamily.RESULT: (Category.TOOL_RESULT,),
        SubjectFamily.COMPLETE: (Category.LOOP_COMPLETED, Category.LOOP_FAILED, Category.LOOP_CANCELLED),
        SubjectFamily.SIGNAL: (Category.SIGNAL, Category.SIGNAL_MESSAGE),
        SubjectFamily.CREATED: (Category.LOOP_CREATED,),
        SubjectFamily.CONTEXT: (Category.CONTEXT_EVENT,),
        SubjectFamily.USER_MESSAGE: (Category.USER_MESSAGE,),
        SubjectFamily.USER_RESPONSE: (Category.USER_RESPONSE,),
    }
)

# The fields of a message that its subject repeats, in the order of the tokens.
ADDRESSED_BY: Mapping[SubjectFamily, tuple[str, ...]] = MappingProxyType(
    {
        SubjectFamily.TASK: ("task_id",),
        SubjectFamily.REQUEST: ("request_id",),
        SubjectFamily.RESPONSE: ("request_id",),
        SubjectFamily.EXECUTE: ("name",),
        SubjectFamily.RESULT: ("call_id",),
        SubjectFamily.COMPLETE: ("loop_id",),
        SubjectFamily.SIGNAL: ("loop_id",),
        SubjectFamily.CREATED: ("loop_id",),
        SubjectFamily.CONTEXT: ("loop_id",),
        SubjectFamily.USER_MESSAGE: ("channel_type", "channel_id"),
        SubjectFamily.USER_RESPONSE: ("channel_type", "channel_id"),
    }
)

# What loops alone tell.
TOLD = (
    SubjectFamily.REQUEST,
    SubjectFamily.RESPONSE,
    SubjectFamily.EXECUTE,
    SubjectFamily.RESULT,
    SubjectFamily.COMPLETE,
    SubjectFamily.CREATED,
    SubjectFamily.CONTEXT,
    SubjectFamily.USER_RESPONSE,
)
SEVEN = tuple(SubjectFamily)[:7]
FAMILY_OF: Mapping[Category, SubjectFamily] = MappingProxyType(
    {category: family for family, carried in CARRIES.items() for category in carried}
)
_FAMILIES = {family.value: family for family in SubjectFamily}


class Address(Record):
    """A subject that was read: its family, and the ids that it names."""

    family: SubjectFamily
    ids: tuple[str, ...]


def subject_filter(family: SubjectFamily) -> str:
    """The subject that stands for every message of a family."""
    return ".".join([family.value, *("*" for _ in ADDRESSED_BY[family])])


def family_subjects(family: SubjectFamily) -> tuple[str, str]:
    """The subjects that stand for all that is sent under the name of a family, with however many ids."""
    return family.value, f"{family.value}.>"


def is_of_a_loop(subject: str) -> bool:
    """Whether a subject is of a family that loops tell."""
    return ".".join(subject.split(".")[:2]) in TOLD


def subject_of(family: SubjectFamily, *ids: str) -> str:
    """The subject of a message; raises RequestRejected for an id that cannot be one, or for too few or too many."""
    if len(ids) != len(ADDRESSED_BY[family]):
        wanted = " and ".join(ADDRESSED_BY[family])
        raise _invalid(family.value, f"takes {wanted}, and was given {len(ids)} ids")
    return ".".join([family.value, *map(token_of, ids)])


def parse_subject(subject: str) -> Address:
    """The family and the ids of a subject; raises RequestRejected for one that is none of ours."""
    first, *rest = subject.split(".")
    family = _FAMILIES.get(".".join([first, *rest[:1]]))
    if family is None:
        raise _invalid(subject, f"begins with none of {', '.join(SubjectFamily)}")
    tokens = rest[1:]
    if len(tokens) != len(ADDRESSED_BY[family]):
        raise _invalid(subject, f"has {len(tokens)} ids; {family.value} takes {' and '.join(ADDRESSED_BY[family])}")
    return Address(family, tuple([id_of_token(token) for token in tokens]))


def token_of(text: str) -> str:
    """An id as one token of a subject, or one key of a bucket; the same text gives the same token, and no other does."""
    if not 1 <= len(text) <= ID_CHARS_MAX:
        raise _no_id(text, f"has {len(text)} characters; an id has 1 to {ID_CHARS_MAX}")
    if _LITERAL.fullmatch(text):
        return text
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise _no_id(text, "holds half a surrogate pair; use whole characters") from None
    token = "".join([_written(byte) for byte in data])
    if len(token) > TOKEN_CHARS_MAX:
        raise _no_id(text, f"takes {len(token)} characters of a subject, more than {TOKEN_CHARS_MAX}; shorten it")
    return token


def id_of_token(token: str) -> str:
    """The id that a token spells; raises RequestRejected for a token that spells none, or not as `token_of` does."""
    if len(token) > TOKEN_CHARS_MAX or not _TOKEN.fullmatch(token):
        raise _no_id(token, f"is no token; letters, digits, - and _ stand for themselves, other bytes as {_ESCAPE}2E")
    spelt = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), token)
    try:
        text = spelt.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise _no_id(token, "escapes bytes that are no text in UTF-8") from None
    if token_of(text) != token:
        raise _no_id(token, f"escapes what needs no escape; write {token_of(text)[:80]!r}")
    return text


def _written(byte: int) -> str:
    sign = chr(byte)
    return sign if sign.isascii() and (sign.isalnum() or sign in "_-") else f"{_ESCAPE}{byte:02X}"


def _no_id(text: str, why: str) -> RequestRejected:
    return RequestRejected(WIRE_ID_INVALID, f"id {text[:80]!r} {why}")


def _invalid(subject: str, why: str) -> RequestRejected:
    return RequestRejected(WIRE_SUBJECT_INVALID, f"subject {subject[:80]!r} {why}")
