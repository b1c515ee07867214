"""Structured logs: one record a line, with the identifiers that tie it to its run, and nothing a terminal obeys.

Rule 1: the identifiers are fields of the record, never part of the message, so that programs find them.
Rule 2: they are passed along, never looked up: the caller that logs for a run holds the logger of that run, or passes its
        identifiers with the record.
Rule 3: no line holds what looks like a secret; its kind stands in its place.
Rule 4: whatever a message quotes is data: in JSON it is escaped by JSON, in text by observe/plain.py.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeAlias

from remit.core.record import JsonObject
from remit.core.run.contract import SystemRequest
from remit.core.run.correlation import CorrelationContext
from remit.core.secrets.secret_search import covered
from remit.kernel.state import RunState
from remit.observe.plain import printable_line

# A logger that adds the identifiers of one run, or of one command of it, to every record.
RunLogger: TypeAlias = "logging.LoggerAdapter[logging.Logger]"

# The fields of a record, in the order in which a line shows them.
FIELDS = ("request_id", "session_id", "trace_id", "run_id", "span_id")
# The identifiers of a record that is about no single run.
NO_RUN: Mapping[str, str] = MappingProxyType({})
# A line that is longer is no help; the journal has the whole text.
MESSAGE_CHARS_MAX = 8000
_FIELD_CHARS_MAX = 200
_DELETE = "\x7f"


def run_logger(logger: logging.Logger, run_id: str, correlation: CorrelationContext) -> RunLogger:
    """The logger of a run; of one command of it, when the correlation names a span. Its fields replace the caller's."""
    return logging.LoggerAdapter(logger, _fields(run_id, correlation))


def run_fields(run_id: str, state: RunState | None = None, *, command_id: str = "") -> dict[str, str]:
    """The identifiers of a run, or of one of its commands, for the `extra` of a single record.

    Without a state that knows its request, as before its first turn, they are the run and the command.
    """
    if state is None or state.manifest is None:
        return _fields(run_id, CorrelationContext("", span_id=command_id))
    return _fields(run_id, correlation_of(state.manifest.request, command_id=command_id))


def command_fields(run_id: str, correlation: CorrelationContext) -> dict[str, str]:
    """The identifiers of a command of a run, for the `extra` of a single record."""
    return _fields(run_id, correlation)


def _fields(run_id: str, correlation: CorrelationContext) -> dict[str, str]:
    values = {
        "request_id": correlation.request_id,
        "session_id": correlation.session_id,
        "trace_id": correlation.trace_id,
        "run_id": run_id,
        "span_id": correlation.span_id,
    }
    return {name: value for name, value in values.items() if value}


def correlation_of(request: SystemRequest, *, command_id: str = "") -> CorrelationContext:
    """The context of a run's request; the span is the command that is performed, if it is about one."""
    return CorrelationContext(request.request_id, request.session_id, request.trace_id, command_id)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Time, level, logger and message, then the identifiers, then what was raised."""
        line: JsonObject = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _cut(_message(record)),
            **_identifiers(record),
        }
        if error := _error(self, record):
            line["error"] = _cut(error)
        # JSON escapes every control character but this one, which terminals know as well.
        return json.dumps(line, ensure_ascii=True).replace(_DELETE, "\\u007f")


class TextFormatter(logging.Formatter):
    """A record as one line of text."""

    def format(self, record: logging.LogRecord) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """A log record as a line for people, in the order of its JSON."""
        said = [_time(record), f"{record.levelname:<8}", printable_line(record.name, _FIELD_CHARS_MAX)]
        said += [printable_line(_message(record), MESSAGE_CHARS_MAX)]
        said += [f"{name}={printable_line(value, _FIELD_CHARS_MAX)}" for name, value in _identifiers(record).items()]
        if error := _error(self, record):
            said.append(printable_line(error, MESSAGE_CHARS_MAX))
        return " ".join(said)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    """The message, or its pattern when the values do not fit it: a log line must never break what it reports."""
    try:
        return covered(record.getMessage())
    except (TypeError, ValueError, KeyError):
        return covered(f"{record.msg} (with values that do not fit)")


def _identifiers(record: logging.LogRecord) -> dict[str, str]:
    found = ((name, getattr(record, name, "")) for name in FIELDS)
    return {name: _cut(str(value), _FIELD_CHARS_MAX) for name, value in found if value}


def _error(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if not record.exc_info or not record.exc_info[0]:
        return ""
    return covered(formatter.formatException(record.exc_info))


def _cut(text: str, limit: int = MESSAGE_CHARS_MAX) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
