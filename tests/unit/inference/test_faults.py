"""Whatever goes wrong with a server has one of the four codes, a way out, and no key in it."""

import json
import socket
import ssl
from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.inference.endpoint.faults import (
    BLOT,
    CAUSES_MAX,
    RETRY_AFTER_CHARS_MAX,
    SAID_CHARS_MAX,
    EndpointPlace,
    fault_of_event,
    fault_of_exception,
    fault_of_status,
)
from remit.inference.engine import EngineFault

KEY = "sk-very-secret-0123456789"
PLACE = EndpointPlace("tiny", "http://host/v1", KEY)

UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
EXCEEDED = ErrorCode.INFERENCE_CONTEXT_EXCEEDED


def status(code: int, body: Any = None, **headers: str) -> EngineFault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return fault_of_status(PLACE, code, named, b"" if body is None else json.dumps(body).encode())


@pytest.mark.parametrize(
    ("code", "expected", "way_out"),
    [
        (307, UNAVAILABLE, "moved to somewhere else"),
        (400, BROKEN, "status 400"),
        (401, UNAVAILABLE, "set OPENAI_API_KEY"),
        (402, UNAVAILABLE, "top it up"),
        (403, UNAVAILABLE, "does not let this key use model 'tiny'"),
        (404, UNAVAILABLE, "no model 'tiny', or no chat completions; check both; most urls end in /v1"),
        (408, BROKEN, "status 408"),
        (413, EXCEEDED, "does not fit into model 'tiny'"),
        (422, BROKEN, "status 422"),
        (429, BROKEN, "too many calls"),
        (500, BROKEN, "status 500"),
        (502, BROKEN, "status 502"),
        (503, UNAVAILABLE, "cannot serve model 'tiny' now"),
        (529, UNAVAILABLE, "cannot serve model 'tiny' now"),
    ],
)
def test_every_status_has_its_code_and_its_way_out(code: int, expected: ErrorCode, way_out: str) -> None:
    silent, spoken = status(code), status(code, {"error": {"message": "because"}})
    assert (silent.code, spoken.code, silent.was_cut) == (expected, expected, False)
    assert way_out in silent.message
    assert spoken.message.endswith("because") or code == 307


@pytest.mark.parametrize(
    "error",
    [
        {"message": "no", "code": "context_length_exceeded", "type": "invalid_request_error"},
        {"message": "no", "code": 400, "type": "exceed_context_size_error", "n_ctx": 512},
        {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."},
        {"message": "the request exceeds the available context size, try increasing it"},
        {"message": "Context size has been exceeded."},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"message": "Please reduce the length of the messages or completion."},
        {"message": "`inputs` tokens + `max_new_tokens` must be <= 4096".replace("`", "")},
        "input is too long for requested model",
    ],
)
def test_a_conversation_that_does_not_fit_is_recognised(error: Any) -> None:
    for code in (400, 422, 500):
        assert status(code, {"error": error}).code is EXCEEDED
    assert fault_of_event(PLACE, error).code is EXCEEDED
    assert fault_of_event(PLACE, error).was_cut


def test_another_refusal_is_not_taken_for_one_that_does_not_fit() -> None:
    told = "max_tokens is too large: 99999. This model supports at most 16384 completion tokens"
    assert status(400, {"error": {"message": told}}).code is BROKEN
    assert status(429, {"error": {"code": "context_length_exceeded"}}).code is BROKEN


@pytest.mark.parametrize("body", [{"message": "because"}, {"detail": "because"}, {"error": "because"}])
def test_a_reason_is_found_wherever_a_server_puts_it(body: Any) -> None:
    assert status(500, body).message.endswith("status 500: because")


@pytest.mark.parametrize("body", [{"error": ["because"]}, {"error": {"message": 3}}, ["because"], "because", None])
def test_a_reason_of_another_shape_is_left_out(body: Any) -> None:
    assert status(500, body).message.endswith("status 500")


def test_a_page_is_not_quoted() -> None:
    fault = fault_of_status(PLACE, 502, {}, b"<html>Bad Gateway</html>")
    assert "html" not in fault.message


def test_a_key_without_money_is_told_apart_from_one_that_calls_too_often() -> None:
    fault = status(429, {"error": {"code": "insufficient_quota", "message": "no money"}})
    assert (fault.code, "top it up" in fault.message) == (UNAVAILABLE, True)


def test_how_long_to_wait_is_told() -> None:
    assert "it asks to wait 20 s" in status(429, retry_after="20").message
    assert status(429, retry_after="20").retry_after_s == 20
    assert status(503, retry_after="tomorrow").retry_after_s == 0
    assert "it asks to wait until Wed, 21 Oct 2026" in status(503, retry_after="Wed, 21 Oct 2026 07:28:00 GMT").message
    assert "x" * (RETRY_AFTER_CHARS_MAX + 1) not in status(429, retry_after="x" * 1000).message


def test_where_a_server_has_moved_to_is_told() -> None:
    assert "moved to https://other/v1; name that url" in status(308, location="https://other/v1").message


def test_what_a_server_says_is_one_short_line_without_the_key() -> None:
    fault = status(401, {"error": {"message": f"Wrong\nkey {KEY}\x1b[31m {'x' * 1000}"}})
    assert f"Wrong key {BLOT}?[31m" in fault.message
    assert fault.message.isprintable()
    assert len(PLACE.said("x" * 5000)) == SAID_CHARS_MAX


def test_a_key_is_blotted_out_before_anything_is_cut() -> None:
    for padding in range(SAID_CHARS_MAX - len(KEY), SAID_CHARS_MAX + 1):
        assert "sk-very" not in PLACE.said("." * padding + KEY)
    assert EndpointPlace("tiny", "http://host/v1").said("as it is") == "as it is"
    assert KEY not in repr(PLACE)


def test_a_failure_in_the_middle_was_cut() -> None:
    fault = fault_of_event(PLACE, {"message": "overloaded"})
    assert (fault.code, fault.was_cut) == (BROKEN, True)
    assert "failed while model 'tiny' answered: overloaded" in fault.message
    assert fault_of_event(PLACE, 3).message.endswith("answered")


def named(name: str, cause: BaseException | None = None) -> Exception:
    """An exception of the package that makes connections, known by its name alone."""
    error: Exception = type(name, (Exception,), {})("with words of its own")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "was_cut", "way_out"),
    [
        (named("ConnectError", socket.gaierror(-2, "unknown")), UNAVAILABLE, False, "no machine of the name"),
        (named("ConnectError", ssl.SSLCertVerificationError("self-signed")), UNAVAILABLE, False, "self-signed"),
        (named("ConnectError", ConnectionRefusedError()), UNAVAILABLE, False, "nothing answers"),
        (named("ConnectTimeout"), UNAVAILABLE, False, "nothing answers"),
        (named("ReadTimeout", named("TimeoutException")), BROKEN, True, "fell silent"),
        (named("TransportError"), BROKEN, True, "was lost"),
        (named("TransportError", ssl.SSLWantReadError()), BROKEN, True, "was lost"),
        (named("ReadError", ssl.SSLError("bad record")), BROKEN, True, "was lost"),
    ],
)
def test_a_broken_connection_has_its_code(error: Exception, code: ErrorCode, was_cut: bool, way_out: str) -> None:
    fault = fault_of_exception(PLACE, error)
    assert fault is not None
    assert (fault.code, fault.was_cut) == (code, was_cut)
    assert way_out in fault.message
    assert "words of its own" not in fault.message


def test_what_is_no_failure_of_a_connection_passes_as_it_is() -> None:
    assert fault_of_exception(PLACE, KeyError("bug")) is None


def test_causes_are_followed_only_so_far() -> None:
    error: Exception = ConnectionRefusedError()
    for _ in range(CAUSES_MAX):
        error = named("Wrapped", error)
    assert fault_of_exception(PLACE, error) is None
    circle = named("Wrapped")
    circle.__cause__ = circle
    assert fault_of_exception(PLACE, circle) is None


def test_only_what_may_pass_by_itself_is_asked_again() -> None:
    again = {code for code in range(300, 600) if code != 413 and not status(code, {}).is_final}
    assert again == {408, 409, 425, 429, *range(500, 600)}
    assert status(429, {"error": {"code": "insufficient_quota"}}).is_final
