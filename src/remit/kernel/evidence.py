"""Evidence: whether a committed call can tell what a task asks for, by what it was given and what it returned.

Rule 1: what a tool that fits the class returned grounds an answer, unless it is an error.
Rule 2: an account is told of by a call that names it: an argument that stands in the words of the request or is its user, or
        a value of the result that is its user or an identifier of the request. Categories that hold records of somebody,
        such as a database, need not; nor does what the caller names as grounds.
Rule 3: a text that is not at hand here is given the benefit of the doubt.
"""

import re
from collections.abc import Iterator
from typing import Any

from remit.core.codec import read_json
from remit.core.contract import SystemRequest
from remit.core.goal import Task, TaskClass, can_ground
from remit.core.record import Text
from remit.core.regex import regex
from remit.core.tools import ToolCategory, ToolDefinition
from remit.kernel.state import CallTrace

_ERRORS = ("error", "errors")
# Look-ups of anything: the time of day is one, too.
_TELLS_ANYTHING = (None, ToolCategory.READ_ONLY_LOOKUP, ToolCategory.LIVE_API)
_IDENTIFIER = regex(r"(?=[^\s,;]*\d)[\w@.+-]{3,}")
_NAME_CHARS_MIN = 2
_TRAILING = ".-"


def tells(trace: CallTrace, tool: ToolDefinition, task: Task, request: SystemRequest) -> bool:
    """Whether the observation of a committed call can tell what the task asks for."""
    if not can_ground(tool, task) or tells_error(trace.content):
        return False
    is_account = task.task_class is TaskClass.ACCOUNT_STATUS and not task.grounds
    return not (is_account and tool.category in _TELLS_ANYTHING) or _names_account(trace, request)


def tells_error(content: Text) -> bool:
    """Whether a result is an object that tells of an error, and so of nothing else."""
    value = _value_in(content)
    return isinstance(value, dict) and any(value.get(key) for key in _ERRORS)


def _names_account(trace: CallTrace, request: SystemRequest) -> bool:
    texts = [message.content for message in request.messages]
    if not all(isinstance(text, str) for text in (*texts, trace.arguments, trace.content)):
        return True
    said = "\n".join(str(text) for text in texts).casefold()
    known = {word.strip(_TRAILING) for word in _IDENTIFIER.findall(said)} | {request.user_id.casefold()} - {""}
    given, told = set(_scalars(_value_in(trace.arguments))), set(_scalars(_value_in(trace.content)))
    return not known.isdisjoint(given | told) or any(
        re.search(rf"(?<!\w){re.escape(value)}(?!\w)", said) for value in given if len(value) >= _NAME_CHARS_MIN
    )


def _scalars(value: Any) -> Iterator[str]:
    """Every plain value within a value, as words compare it; what only says yes or no names nobody."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _scalars(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value).strip().casefold()


def _value_in(text: Text) -> Any:
    if not isinstance(text, str):
        return None
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return text
