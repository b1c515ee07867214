"""Logs carry the identifiers of their run as fields, and nothing that a terminal obeys."""

import io
import json
import logging
from typing import Any

import pytest

from remit.core.run.contract import SystemRequest
from remit.core.run.correlation import CorrelationContext
from remit.kernel.state import RunState
from remit.observe.logs import (
    MESSAGE_CHARS_MAX,
    NO_RUN,
    JsonFormatter,
    TextFormatter,
    correlation_of,
    run_fields,
    run_logger,
)
from tests.unit.kernel.builders import manifest_of

HOSTILE = "\x1b[2J\x07\r\nfake line\u202e\x7f\x9b"
CONTEXT = CorrelationContext("request-1", "session-1", "trace-1", "3.2")


class Desk:
    """A logger of its own, and what was written to it."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.stream = io.StringIO()
        self.logger = logging.Logger("remit.test")
        printer = logging.StreamHandler(self.stream)
        printer.setFormatter(formatter)
        self.logger.addHandler(printer)

    def line(self) -> str:
        """The one line that was written."""
        (line,) = self.stream.getvalue().splitlines()
        return line

    def record(self) -> dict[str, Any]:
        """The same, read as JSON."""
        found: dict[str, Any] = json.loads(self.line())
        return found


def test_a_record_of_a_run_carries_its_identifiers_as_fields() -> None:
    desk = Desk(JsonFormatter())
    run_logger(desk.logger, "run-1", CONTEXT).warning("tool %s was slow", "lookup")
    record = desk.record()
    assert record["message"] == "tool lookup was slow"
    assert (record["level"], record["logger"]) == ("WARNING", "remit.test")
    assert [record[name] for name in ("request_id", "session_id", "trace_id", "run_id", "span_id")] == [
        "request-1",
        "session-1",
        "trace-1",
        "run-1",
        "3.2",
    ]
    assert record["time"].endswith("Z")


def test_a_single_record_carries_the_identifiers_of_a_run_as_it_stands() -> None:
    request = SystemRequest((), request_id="request-1", session_id="session-1", trace_id="trace-1")
    state = RunState(manifest=manifest_of(request=request))
    desk = Desk(JsonFormatter())
    desk.logger.warning("slow", extra=run_fields("run-1", state, command_id="3.2"))
    record = desk.record()
    assert [record[name] for name in ("request_id", "session_id", "trace_id", "run_id", "span_id")] == [
        "request-1",
        "session-1",
        "trace-1",
        "run-1",
        "3.2",
    ]


def test_of_a_run_without_a_turn_only_its_name_is_known() -> None:
    assert run_fields("run-1") == run_fields("run-1", RunState()) == {"run_id": "run-1"}


def test_a_record_about_no_single_run_carries_no_identifier() -> None:
    desk = Desk(JsonFormatter())
    desk.logger.warning("the inbox is gone", extra=NO_RUN)
    assert set(desk.record()) == {"time", "level", "logger", "message"}


def test_identifiers_that_a_run_does_not_have_are_left_out() -> None:
    desk = Desk(JsonFormatter())
    run_logger(desk.logger, "run-1", CorrelationContext("request-1")).info("hello")
    assert set(desk.record()) == {"time", "level", "logger", "message", "request_id", "run_id"}


def test_the_context_of_a_request_names_the_command_as_its_span() -> None:
    request = SystemRequest((), request_id="r", session_id="s", trace_id="t")
    assert correlation_of(request, command_id="4.1") == CorrelationContext("r", "s", "t", "4.1")
    assert correlation_of(request).span_id == ""


def test_nobody_can_pass_for_another_run_by_what_they_add() -> None:
    desk = Desk(JsonFormatter())
    run_logger(desk.logger, "run-1", CONTEXT).info("hello", extra={"run_id": "run-2", "color": "red"})
    assert desk.record()["run_id"] == "run-1"


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_hostile_text_stays_one_line_and_harmless(formatter: logging.Formatter) -> None:
    desk = Desk(formatter)
    run_logger(desk.logger, HOSTILE, CorrelationContext(HOSTILE)).error("the model said %s", HOSTILE)
    assert desk.line().isprintable()
    assert "fake line" in desk.line()


def test_json_keeps_hostile_text_as_it_was() -> None:
    desk = Desk(JsonFormatter())
    desk.logger.error("%s", HOSTILE)
    assert desk.record()["message"] == HOSTILE


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_what_was_raised_is_part_of_the_line(formatter: logging.Formatter) -> None:
    desk = Desk(formatter)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        run_logger(desk.logger, "run-1", CONTEXT).exception("it broke")
    assert desk.line().isprintable()
    assert "ValueError" in desk.line()


def test_a_line_of_text_says_the_same_for_people() -> None:
    desk = Desk(TextFormatter())
    run_logger(desk.logger, "run-1", CONTEXT).info("hello")
    time, *rest = desk.line().split()
    assert time.endswith("Z")
    assert rest == [
        "INFO",
        "remit.test",
        "hello",
        "request_id=request-1",
        "session_id=session-1",
        "trace_id=trace-1",
        "run_id=run-1",
        "span_id=3.2",
    ]


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_a_message_that_floods_is_cut(formatter: logging.Formatter) -> None:
    desk = Desk(formatter)
    desk.logger.info("x" * 10 * MESSAGE_CHARS_MAX)
    assert len(desk.line()) < MESSAGE_CHARS_MAX + 200


def test_values_that_do_not_fit_their_pattern_break_nothing() -> None:
    desk = Desk(JsonFormatter())
    desk.logger.info("%d of them", "one")
    assert desk.record()["message"] == "%d of them (with values that do not fit)"


def test_a_record_without_a_run_has_no_identifiers() -> None:
    desk = Desk(TextFormatter())
    desk.logger.info("hello", exc_info=False)
    assert desk.line().endswith("remit.test hello")
