"""Whatever goes wrong with a server of the Messages API has one of the four codes, a way out, and no key in it."""

import json
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.inference.endpoint.faults import (
    BLOT,
    MESSAGES,
    RETRY_AFTER_S_MAX,
    SAID_CHARS_MAX,
    EndpointPlace,
    fault_of_event,
    fault_of_status,
    retry_after_s,
)
from remit.inference.engine import EngineFault

KEY = "sk-ant-very-secret-0123456789"
PLACE = EndpointPlace("tiny", "http://host", KEY, MESSAGES)

UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
EXCEEDED = ErrorCode.INFERENCE_CONTEXT_EXCEEDED


def status(code: int, error: Any = None, **headers: str) -> EngineFault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = b"" if error is None else json.dumps({"type": "error", "error": error}).encode()
    return fault_of_status(PLACE, code, named, body)


@pytest.mark.parametrize(
    ("code", "expected", "way_out"),
    [
        (307, UNAVAILABLE, "moved to somewhere else"),
        (400, BROKEN, "status 400"),
        (401, UNAVAILABLE, "set ANTHROPIC_API_KEY"),
        (402, UNAVAILABLE, "top it up"),
        (403, UNAVAILABLE, "does not let this key use model 'tiny'"),
        (404, UNAVAILABLE, "no model 'tiny', or no Messages API; check both; the url stands before /v1/messages"),
        (413, EXCEEDED, "does not fit into model 'tiny'"),
        (429, BROKEN, "too many calls"),
        (500, BROKEN, "status 500"),
        (503, UNAVAILABLE, "cannot serve model 'tiny' now"),
        (504, BROKEN, "status 504"),
        (529, UNAVAILABLE, "cannot serve model 'tiny' now"),
    ],
)
def test_every_status_has_its_code_and_its_way_out(code: int, expected: ErrorCode, way_out: str) -> None:
    silent, spoken = status(code), status(code, {"type": "api_error", "message": "because"})
    assert (silent.code, spoken.code, silent.was_cut) == (expected, expected, False)
    assert way_out in silent.message
    assert spoken.message.endswith("because") or code == 307


@pytest.mark.parametrize(
    "error",
    [
        {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 9 + 9 > 10"},
        {"type": "request_too_large", "message": "no"},
        "the request exceeds the available context size",
    ],
)
def test_a_conversation_that_does_not_fit_is_recognised(error: Any) -> None:
    assert status(400, error).code is EXCEEDED
    assert (fault_of_event(PLACE, error).code, fault_of_event(PLACE, error).was_cut) == (EXCEEDED, True)


@pytest.mark.parametrize("code", [400, 402, 403])
def test_an_account_without_money_cannot_be_served(code: int) -> None:
    fault = status(code, {"type": "billing_error", "message": "no credit"})
    assert (fault.code, "top it up: no credit" in fault.message) == (UNAVAILABLE, True)


@pytest.mark.parametrize("code", [429, 500, 503, 529])
def test_how_long_to_wait_is_told_in_words_and_in_seconds(code: int) -> None:
    fault = status(code, retry_after="20")
    assert fault.retry_after_s == 20
    assert "it asks to wait 20 s" in fault.message
    dated = status(code, retry_after="Sun, 15 Nov 2026 10:00:00 GMT")
    assert dated.retry_after_s == 0
    assert "it asks to wait until Sun, 15 Nov 2026" in dated.message


@pytest.mark.parametrize(
    ("wanted", "seconds"), [("", 0), ("-1", 0), ("1.5", 0), (" 7 ", 7), ("9" * 30, RETRY_AFTER_S_MAX)]
)
def test_a_pause_is_whole_seconds_and_never_endless(wanted: str, seconds: int) -> None:
    assert retry_after_s({"retry-after": wanted}) == seconds


def test_where_a_server_has_moved_is_told_and_not_followed() -> None:
    assert "moved to http://evil/; name that url if you trust it" in status(302, location="http://evil/").message


def test_an_overloaded_server_is_unavailable_in_the_middle_of_an_answer_too() -> None:
    fault = fault_of_event(PLACE, {"type": "overloaded_error", "message": "Overloaded"})
    assert (fault.code, fault.was_cut, fault.message) == (
        UNAVAILABLE,
        True,
        "http://host cannot serve model 'tiny' now: Overloaded",
    )


@pytest.mark.parametrize("error", [None, {}, {"message": 5, "type": 6}, [], {"type": "api_error"}])
def test_a_failure_without_words_is_one_all_the_same(error: Any) -> None:
    fault = fault_of_event(PLACE, error)
    assert (fault.code, fault.was_cut, fault.message) == (
        BROKEN,
        True,
        "http://host failed while model 'tiny' answered",
    )


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'"text"', b"[" * 100_000])
def test_a_refusal_nobody_can_read_is_told_by_its_status(body: bytes) -> None:
    fault = fault_of_status(PLACE, 500, {}, body)
    assert fault.message == "http://host answered with status 500"


def test_what_a_server_says_is_one_short_line_without_the_key() -> None:
    fault = status(500, {"message": f"no\n\x1b[31m {KEY} " + "x" * 10_000})
    assert KEY not in fault.message
    assert BLOT in fault.message
    assert fault.message.isprintable()
    assert len(fault.message) < SAID_CHARS_MAX + 100
