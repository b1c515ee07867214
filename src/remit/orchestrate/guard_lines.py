"""Lines of the guard protocol: one JSON object each, and what is still to be learned from a line that is none.

Rule 1: a result must not get lost because of what somebody wrote into it: half a surrogate pair, a stray byte or a NaN
        is replaced, and the result is taken in.
Rule 2: only results are read that leniently; any other line that is no JSON is refused.
Rule 3: a key that stands twice is refused in every line, results among them: two programs would read two meanings.
Rule 4: of a line that cannot be read at all, its beginning tells whose result it may have been.
"""

import json
from typing import Any

from remit.core.codec import read_json
from remit.core.failure import RequestRejected
from remit.core.json_text import parse_with_oddities
from remit.core.record import JsonObject
from remit.core.regex import regex

GUARD_LINE_INVALID = "GUARD_LINE_INVALID"
GUARD_LINE_TOO_LONG = "GUARD_LINE_TOO_LONG"

# A result of several megabytes, escaped; nothing that a model could read is longer.
LINE_BYTES_MAX = 16 * 1024 * 1024
RESULT = "result"
# Where programs put the keys of an operation, before its arguments or its content.
_BEGINNING_BYTES = 2_048
_OP = regex(rb'"op"\s*:\s*"([a-z]{1,16})"')
_RUN = regex(rb'"run"\s*:\s*("(?:[^"\\]|\\.){0,1024}"|\d{1,16})')
_MESSAGE_CHARS_MAX = 200


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


def written(content: Any) -> tuple[Any, bytes]:
    """A result as JSON can hold it, and its bytes; raises ValueError or TypeError for what is no JSON at all."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=True)
    data = text.encode("utf-8", "replace")
    return parse_with_oddities(data.decode()), data


def told(beginning: bytes) -> tuple[str, str]:
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
