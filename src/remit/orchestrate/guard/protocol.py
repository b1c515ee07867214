"""The guard protocol: its lines, one JSON object each, which operations there are, and what each must say.

Rule 1: a part that cannot be used is refused with its name, its value and what would do.
Rule 2: an unknown key is refused, since a misspelt one would be a missing one; a result alone may say more.
Rule 3: a result must not get lost because of what was written into it: half a surrogate pair, a stray byte or a NaN
        is replaced, and the result is taken in. Only results are read that leniently.
Rule 4: a key that stands twice is refused in every line, results among them: two programs would read two meanings.
Rule 5: of a line that cannot be read at all, its beginning tells whose result it may have been.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.codec import read_json, to_json
from remit.core.record import JsonObject, Record
from remit.core.regex import regex
from remit.core.run.lifecycle import AgentRole
from remit.core.run.person import check_no_secret, check_person
from remit.core.run.principal import EVERY_TENANT, Principal, tenant_problem, tenant_seen
from remit.core.run.request_checks import ID_CHARS_MAX
from remit.core.schema.json_text import parse_with_oddities
from remit.orchestrate.facts.texts import clean

GUARD_LINE_INVALID = "GUARD_LINE_INVALID"
GUARD_LINE_TOO_LONG = "GUARD_LINE_TOO_LONG"
GUARD_OP_INVALID = "GUARD_OP_INVALID"

# A result of several megabytes, escaped; nothing that a model could read is longer.
LINE_BYTES_MAX = 16 * 1024 * 1024
RESULT, ORDERS = "result", "orders"
# Where programs put the keys of an operation, before its arguments or its content.
_BEGINNING_BYTES = 2_048
_OP = regex(rb'"op"\s*:\s*"([a-z]{1,16})"')
_RUN = regex(rb'"run"\s*:\s*("(?:[^"\\]|\\.){0,1024}"|\d{1,16})')
_MESSAGE_CHARS_MAX = 200
_ANSWER_CHARS_MAX = 500

# The largest id that is a number, as every reader of JSON holds it.
_NUMBER_MAX = 2**53 - 1

# Hosts name the same run in every line, and each call once more with its result.
_IDS_KEPT_MAX = 4_096
_check_no_secret = lru_cache(maxsize=_IDS_KEPT_MAX)(check_no_secret)

# The moment of an operation, for a host that keeps the time.
AT_MS = "at_ms"

# What each operation must say, and what it may say besides.
_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "start": (("run", "prompt", "tools"), ("boundary", "plan", "read", "user", "tenant", "role", "model", AT_MS)),
        "call": (("run", "tool", "args"), ("id", "tenant", AT_MS)),
        RESULT: (("run", "tool", "content"), ("id", "error", "not_done", "tenant", AT_MS)),
        "answer": (("run", "approve", "by"), ("id", "scope", "arguments", "packet", "tenant", AT_MS)),
        ORDERS: (("run",), ("orders", "approve", "by", "tenant", AT_MS)),
        "end": (("run",), ("tenant", AT_MS)),
    }
)
_KNOWN = MappingProxyType({op: frozenset(("op", *required, *more)) for op, (required, more) in _KEYS.items()})


class Asker(Record):
    """For whom a run works, as the host says it; empty when it says nothing."""

    user: str = ""
    tenant: str = ""
    role: AgentRole = AgentRole.GENERAL


def addressed(operation: Any) -> tuple[str, str]:
    """Which operation it is and of which run; raises RequestRejected for what is none."""
    if not isinstance(operation, dict):
        raise unfit("operation", operation, "a JSON object")
    op = operation.get("op")
    if not isinstance(op, str) or op not in _KEYS:
        raise unfit("op", op, f"one of {', '.join(_KEYS)}")
    required, known = _KEYS[op][0], _KNOWN[op]
    run_id = id_under(operation, "run")
    if run_id is None:
        raise unfit("run", None, "an id of its own for each run")
    if missing := [key for key in required if key not in operation]:
        raise RequestRejected(GUARD_OP_INVALID, f"{op} lacks {', '.join(missing)}; it needs {', '.join(required)}")
    # A result is never turned away for saying too much: what it carries must be known.
    if op != RESULT and not known.issuperset(operation):
        unknown = next(key for key in operation if key not in known)
        raise unfit(f"key of {op}", unknown, ", ".join((*required, *_KEYS[op][1])))
    return op, run_id


def id_under(operation: JsonObject, key: str) -> str | None:
    """The name under a key: a text, or a number that stands for its digits."""
    value = operation.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _NUMBER_MAX:
        return str(value)
    if value is None:
        return None
    if isinstance(value, str) and 0 < len(value) <= ID_CHARS_MAX and _is_unicode(value):
        _check_no_secret(key, value)
        return value
    raise unfit(key, value, f"a text of 1 to {ID_CHARS_MAX} characters, or a number")


def required_text(operation: JsonObject, key: str) -> str:
    """The text under a key, which must be there."""
    value = operation[key]
    if isinstance(value, str) and 0 < len(value) <= ID_CHARS_MAX and _is_unicode(value):
        return value
    raise unfit(key, value, f"a text of 1 to {ID_CHARS_MAX} characters")


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode("utf-8", "replace") == text.encode("utf-8", "surrogatepass")


def prompt_in(value: Any) -> Any:
    """The prompt of the user: a text, or the messages of a conversation."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        with suppress(ValueError, TypeError, RecursionError):
            return result_json(value)[0]
    raise unfit("prompt", "...", "a text, or a list of messages with role and content")


def expected_calls(value: Any) -> dict[str, int] | None:
    """How often each tool is asked for, in the eyes of a model that saw nothing but the prompt."""
    if value is None:
        return None
    if isinstance(value, dict) and all(type(count) is int and count >= 0 for count in value.values()):
        return value
    raise unfit("plan", value, "an object from tool to how often it is asked for")


def read_in(value: Any) -> tuple[str, ...]:
    """The labels of what was read in earlier exchanges; which there are, the gate knows."""
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(label, str) for label in value):
        return tuple(value)
    raise unfit("read", value, "a list of labels: untrusted, private, secret")


def asker_in(operation: JsonObject) -> Asker:
    """Who asks, for whom, and in which role."""
    role = operation.get("role")
    if role is not None and (not isinstance(role, str) or role not in list(AgentRole)):
        raise unfit("role", role, f"one of {', '.join(AgentRole)}")
    named = {key: id_under(operation, key) or "" for key in ("user", "tenant")}
    if problem := tenant_problem(named["tenant"]):
        raise RequestRejected(GUARD_OP_INVALID, f"tenant={named['tenant'][:SHOWN_CHARS_MAX]!r} {problem}")
    if named["user"]:
        check_person(named["user"], "user")
    return Asker(**named, role=AgentRole(role or AgentRole.GENERAL))


def tenant_in(operation: JsonObject, principal: Principal) -> str | None:
    """The tenant whose run is meant, within what the guard acts for; None where the operation leaves that open."""
    said = id_under(operation, "tenant")
    return said if said is None and principal.tenant_id == EVERY_TENANT else tenant_seen(principal, said or "")


def model_in(operation: JsonObject) -> str:
    """The model of the agent, where it says which; so that a halt of the model holds back its calls."""
    return id_under(operation, "model") or ""


def moment_in(operation: JsonObject) -> int | None:
    """The moment of an operation in milliseconds since 1970, where the host says it."""
    value = operation.get(AT_MS)
    if value is None or (type(value) is int and 0 <= value <= _NUMBER_MAX):
        return value
    raise unfit(AT_MS, value, f"milliseconds since 1970, from 0 to {_NUMBER_MAX}")


def size_of(arguments: Any) -> int:
    """How long arguments are. What has no form in JSON is refused by its check, and leaves nothing behind."""
    try:
        return len(to_json(arguments))
    except (TypeError, ValueError, RecursionError):
        return 0


def unfit(key: str, value: Any, way_out: str) -> RequestRejected:
    """The refusal of a part that cannot be used."""
    return RequestRejected(GUARD_OP_INVALID, f"{key}={ascii(value)[:SHOWN_CHARS_MAX]} cannot be used; use {way_out}")


def read_line(data: bytes) -> JsonObject:
    """The operation in a line; raises RequestRejected when there is none."""
    try:
        operation = read_json(data)
    except (ValueError, RecursionError) as error:
        operation = _read_leniently(data)
        if not isinstance(operation, dict) or operation.get("op") != RESULT:
            message = f"the line is no JSON: {str(error)[:_MESSAGE_CHARS_MAX]}; write one object a line, in UTF-8"
            raise RequestRejected(GUARD_LINE_INVALID, message) from error
    if not isinstance(operation, dict):
        kind = type(operation).__name__
        raise RequestRejected(GUARD_LINE_INVALID, f'the line is a {kind} and must be an object such as {{"op": "end"}}')
    return operation


def result_json(content: Any) -> tuple[Any, bytes]:
    """A result as JSON can hold it, and its bytes; raises ValueError or TypeError for what is no JSON at all."""
    if type(content) is str:
        said = clean(content)
        return said, to_json(said).encode()
    text = json.dumps(content, ensure_ascii=False, allow_nan=True)
    data = text.encode("utf-8", "replace")
    return parse_with_oddities(data.decode()), data


def named_in_broken_line(beginning: bytes) -> tuple[str, str]:
    """The operation and the run that the beginning of an unreadable line names; each empty when it names none."""
    head = beginning[:_BEGINNING_BYTES]
    op, run = _OP.search(head), _RUN.search(head)
    return op[1].decode() if op else "", _name(run[1]) if run else ""


def _name(raw: bytes) -> str:
    try:
        return str(read_json(raw))
    except ValueError:
        return ""


def _read_leniently(data: bytes) -> Any:
    try:
        return parse_with_oddities(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def wrong(error: RemitError, operation: Any) -> JsonObject:
    """The answer to what is wrong; it says of which operation, since some others have no answer."""
    answer: JsonObject = {"ok": False, "code": str(error.code), "message": error.message[:_ANSWER_CHARS_MAX]}
    if error.details.get("stop") is True:
        answer["stop"] = True
    if isinstance(operation, dict):
        for key in ("op", "run", "id"):
            value = operation.get(key)
            if isinstance(value, (str, int)) and value != "" and len(str(value)) <= ID_CHARS_MAX:
                answer[key] = value
    return answer
