"""Checks of a request: what it must look like to become a run.

Rule 1: only the request itself is judged here; whether tools exist and budgets suffice is judged later.
Rule 2: whatever is refused is named, with its value, its limit and the way out.
Rule 3: a request carries its texts itself and can be written to a journal.
Rule 4: option maps hold JSON alone: what is not finite equals not even itself, so no replay of it could be the same.
Rule 5: what enters is a copy, read back from the request's own bytes: every part has its declared type, and the
        holder of the original cannot change a run through its option maps.
"""

import msgspec

from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.json_fault import json_fault
from remit.core.limits.tools import TOOL_NAME_CHARS_MAX, ToolChoiceMode, check_tool_choice
from remit.core.record import BlobRef, JsonObject, replace
from remit.core.run.contract import Mode, SystemRequest
from remit.core.run.messages import Role, check_message
from remit.core.run.person import check_no_secret, check_person
from remit.core.run.principal import tenant_problem
from remit.core.work.orders import orders_of

# Fifty times the default: far beyond use, near enough that a slip of the keyboard is noticed.
ITERATIONS_MAX = 1_000
# Four million tokens of four bytes: more than any model reads at once.
REQUEST_BYTES_MAX = 16 * 1024 * 1024
# A longer history belongs into a session, which stores it once instead of in every request.
MESSAGES_MAX = 10_000
# Registries of hundreds of tools are served by a router; a whitelist longer than this was not made by a person.
TOOLS_MAX = 1_000
# Room for a UUID, a trace header or an address; ids become keys, subjects and log fields.
ID_CHARS_MAX = 256
# No engine generates more in one call.
OUTPUT_TOKENS_MAX = 1_000_000
# A week. The clock stands still while a person is waited for, so only work counts; longer work is a session of runs.
TIMEOUT_MS_MAX = 7 * 86_400_000
# The range that model vendors agree on.
TEMPERATURE_MAX = 2.0

REQUEST_MALFORMED = "REQUEST_MALFORMED"
REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
REQUEST_MODE_INVALID = "REQUEST_MODE_INVALID"
REQUEST_OUTPUT_INVALID = "REQUEST_OUTPUT_INVALID"
REQUEST_ID_INVALID = "REQUEST_ID_INVALID"
REQUEST_MESSAGES_INVALID = "REQUEST_MESSAGES_INVALID"
REQUEST_HINT_INVALID = "REQUEST_HINT_INVALID"
REQUEST_TOOLS_INVALID = "REQUEST_TOOLS_INVALID"

_MODES = tuple(Mode)
_JSON_WANTED = "give null, a text or a finite number"
ID_FIELDS = ("request_id", "session_id", "trace_id", "tenant_id", "user_id")
_HINT_RANGES: tuple[tuple[str, float, float], ...] = (
    ("max_tokens", 0, OUTPUT_TOKENS_MAX),
    ("timeout_ms", 0, TIMEOUT_MS_MAX),
    ("temperature", 0.0, TEMPERATURE_MAX),
    ("top_p", 0.0, 1.0),
    ("max_iterations", 1, ITERATIONS_MAX),
)


def check_request(request: SystemRequest) -> SystemRequest:
    """The request that may become a run; refuses what cannot. The first check that objects decides."""
    given: object = request
    if not isinstance(given, SystemRequest):
        raise RequestRejected(
            REQUEST_MALFORMED, f"request={clipped(given)} cannot be used; give a SystemRequest or a text"
        )
    _check_mode(request)
    if request.orders:
        request = replace(request, orders=orders_of(request.orders))
    entered = _read_back(request)
    for check in (_check_json, _check_ids, _check_messages, _check_hints, _check_tools, _check_output):
        check(entered)
    return entered


def _check_mode(request: SystemRequest) -> None:
    if request.mode not in _MODES:
        raise RequestRejected(
            REQUEST_MODE_INVALID, f"mode must be a Mode, one of {', '.join(Mode)}, not {str(request.mode)[:80]!r}"
        )


def _read_back(request: SystemRequest) -> SystemRequest:
    """A request is pinned in the journal, so what cannot be written and read back must not enter."""
    try:
        data = msgspec.msgpack.encode(request)
        if len(data) <= REQUEST_BYTES_MAX:
            return msgspec.msgpack.decode(data, type=SystemRequest)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RequestRejected(
            REQUEST_MALFORMED, f"the request cannot be stored: {error}; use the declared types and JSON values"
        ) from error
    raise RequestRejected(
        REQUEST_TOO_LARGE,
        f"the request has {len(data)} bytes, more than {REQUEST_BYTES_MAX}; shorten its messages",
        {"size_bytes": len(data), "limit": REQUEST_BYTES_MAX},
    )


def _check_json(request: SystemRequest) -> None:
    check_options(request.hints.options, "hints.options")
    for path, said in (("metadata", request.metadata), ("output.schema", request.output.schema)):
        if said and (fault := json_fault(said, path)):
            raise RequestRejected(REQUEST_MALFORMED, f"{fault}; {_JSON_WANTED}", {"field": path})


def check_options(options: JsonObject, path: str) -> None:
    """Refuse options for an engine that JSON cannot hold."""
    if options and (fault := json_fault(options, path)):
        raise RequestRejected(REQUEST_HINT_INVALID, f"{fault}; {_JSON_WANTED}", {"field": path})


def _check_ids(request: SystemRequest) -> None:
    for field in ID_FIELDS:
        value: str = getattr(request, field)
        if not value:
            continue
        if len(value) > ID_CHARS_MAX or not value.isprintable():
            raise RequestRejected(
                REQUEST_ID_INVALID,
                f"{field}={value[:80]!r} has {len(value)} characters; an id is at most {ID_CHARS_MAX} printable ones",
                {"field": field, "limit": ID_CHARS_MAX},
            )
        check_no_secret(field, value)
    if problem := tenant_problem(request.tenant_id):
        message = f"tenant_id={request.tenant_id[:80]!r} {problem}"
        raise RequestRejected(REQUEST_ID_INVALID, message, {"field": "tenant_id"})
    if request.user_id:
        check_person(request.user_id, "user_id")


def _check_messages(request: SystemRequest) -> None:
    count = len(request.messages)
    if not 1 <= count <= MESSAGES_MAX:
        raise RequestRejected(
            REQUEST_MESSAGES_INVALID,
            f"the request has {count} messages; send 1 to {MESSAGES_MAX}, or continue a session",
            {"count": count, "limit": MESSAGES_MAX},
        )
    for position, message in enumerate(request.messages):
        check_message(message)
        # A digest from outside would be a way to read texts of another user.
        if isinstance(message.content, BlobRef) or isinstance(message.reasoning, BlobRef):
            raise RequestRejected(
                REQUEST_MESSAGES_INVALID,
                f"message {position} refers to a stored text; send the text itself",
                {"position": position},
            )
    if request.messages[-1].role is not Role.USER:
        raise RequestRejected(
            REQUEST_MESSAGES_INVALID,
            f"the last message is of role '{request.messages[-1].role.value}'; end with what the user wants",
        )


def _check_hints(request: SystemRequest) -> None:
    for field, low, high in _HINT_RANGES:
        value = getattr(request.hints, field)
        if value is not None and not low <= value <= high:
            raise RequestRejected(
                REQUEST_HINT_INVALID,
                f"hints.{field}={value} is outside {low} to {high}; leave it out for the default",
                {"field": field, "value": value, "limit": high},
            )


def _check_tools(request: SystemRequest) -> None:
    check_tool_choice(request.tool_choice)
    if len(request.tools) > TOOLS_MAX:
        raise RequestRejected(
            REQUEST_TOOLS_INVALID, f"the request names {len(request.tools)} tools, more than {TOOLS_MAX}; name fewer"
        )
    for name in request.tools:
        if not 1 <= len(name) <= TOOL_NAME_CHARS_MAX:
            raise RequestRejected(
                REQUEST_TOOLS_INVALID, f"tool name {name[:80]!r} has not 1 to {TOOL_NAME_CHARS_MAX} characters"
            )
    wanted = request.tool_choice.function_name
    if request.tools and request.tool_choice.mode is ToolChoiceMode.FUNCTION and wanted not in request.tools:
        raise RequestRejected(
            REQUEST_TOOLS_INVALID, f"tool_choice demands {wanted[:80]!r}, which is not among tools; add it there"
        )


def _check_output(request: SystemRequest) -> None:
    if request.mode is Mode.PLAN and (request.output.schema is not None or request.output.grammar):
        message = (
            "mode 'plan' takes no output.schema and no output.grammar; give each step the shape that it is to have"
        )
        raise RequestRejected(REQUEST_OUTPUT_INVALID, message)
    if request.mode in (Mode.STRUCTURED, Mode.REDUNDANT) and request.output.schema is None:
        message = f"mode {request.mode.value!r} needs output.schema, which is missing; give a schema"
        raise RequestRejected(ErrorCode.CONFIG_SCHEMA_REQUIRED, message)
