"""A secret is shown by nothing but reveal(), and what stands for one is read with care."""

import copy
import json
import logging
import pickle
from datetime import datetime
from typing import Any

import msgspec
import pytest

from remit.core.failure import RequestRejected
from remit.tool.secrets.secret import (
    EXPIRES_AT_MS_MIN,
    NAME_CHARS_MAX,
    SECRET_INVALID,
    VALUE_CHARS_MAX,
    Credential,
    Secret,
    credential_of,
    written_moment,
)

VALUE = "sk-live-0123456789"
AT_MS = 1_893_456_000_000  # 2030-01-01


def problem(given: object, name: str = "TOKEN") -> str:
    with pytest.raises(RequestRejected) as refused:
        credential_of(name, given)
    assert refused.value.code == SECRET_INVALID
    assert VALUE not in str(refused.value)
    return refused.value.message


@pytest.mark.parametrize("show", [repr, str, "{}".format, "{:>12}".format, "{!r}".format, lambda one: f"{[one]}"])
def test_no_way_of_writing_a_secret_shows_it(show: Any) -> None:
    shown = show(Secret(VALUE))
    assert "[secret]" in shown
    assert VALUE not in shown


def test_only_reveal_shows_it() -> None:
    assert Secret(VALUE).reveal() == VALUE


@pytest.mark.parametrize("write", [json.dumps, msgspec.json.encode, pickle.dumps, vars])
def test_a_secret_can_be_written_in_no_form(write: Any) -> None:
    with pytest.raises(TypeError) as refused:
        write(Secret(VALUE))
    assert VALUE not in str(refused.value)


def test_a_copy_of_a_secret_is_the_secret() -> None:
    secret = Secret(VALUE)
    assert copy.copy(secret) is copy.deepcopy(secret) is secret


def test_a_log_line_and_a_record_that_hold_a_secret_do_not_show_it(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("with %s and %r", Secret(VALUE), Credential(Secret(VALUE)))
    assert VALUE not in caplog.text
    assert "[secret]" in caplog.text


@pytest.mark.parametrize(
    ("given", "expires_at_ms"),
    [
        (VALUE, None),
        (Secret(VALUE), None),
        (Credential(Secret(VALUE), AT_MS), AT_MS),
        ({"value": VALUE}, None),
        ({"value": Secret(VALUE), "expires_at": AT_MS}, AT_MS),
        ({"value": VALUE, "expires_at": "2030-01-01T00:00:00Z"}, AT_MS),
        ({"value": VALUE, "expires_at": "2030-01-01T01:00:00+01:00"}, AT_MS),
        ({"value": VALUE, "expires_at": datetime.fromisoformat("2030-01-01T00:00:00Z")}, AT_MS),
    ],
)
def test_a_secret_is_given_as_a_text_or_with_the_time_it_expires(given: Any, expires_at_ms: int | None) -> None:
    found = credential_of("TOKEN", given)
    assert found.value is not None
    assert (found.value.reveal(), found.expires_at_ms) == (VALUE, expires_at_ms)


def test_a_secret_that_is_only_renewed_needs_no_value() -> None:
    refresh = lambda: VALUE  # noqa: E731  # it is compared
    assert credential_of("TOKEN", {"refresh": refresh}) == Credential(None, None, refresh)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "a NoneType is no secret"),
        (7, "a int is no secret"),
        ({}, "has no value"),
        ({"expires_at": AT_MS}, "has no value"),
        ({"value": 7}, "its value is a int; write it as a text"),
        ({"value": ""}, "its value is empty"),
        (" \n", "its value is empty"),
        (Credential(Secret("")), "its value is empty"),
        ("x" * (VALUE_CHARS_MAX + 1), f"value_chars_max={VALUE_CHARS_MAX}"),
        ({"value": VALUE, "token": VALUE}, "unknown keys ['token']; known are value, expires_at, refresh"),
        ({"value": VALUE, "refresh": VALUE}, "refresh is a str; give a function"),
        ({"value": VALUE, "expires_at": VALUE}, "expires_at is no time"),
        ({"value": VALUE, "expires_at": "2030-01-01T00:00:00"}, "names no offset from UTC"),
        ({"value": VALUE, "expires_at": EXPIRES_AT_MS_MIN - 1}, "perhaps in seconds"),
        ({"value": VALUE, "expires_at": True}, "expires_at is a bool"),
        ({"value": VALUE, "expires_at": 1.5}, "expires_at is a float"),
    ],
)
def test_what_can_be_no_secret_is_refused_without_its_value(given: object, said: str) -> None:
    assert said in problem(given)


@pytest.mark.parametrize("name", ["", "7UP", "A-B", "A B", "x" * (NAME_CHARS_MAX + 1), "Ä"])
def test_a_name_that_no_variable_could_have_is_refused(name: str) -> None:
    assert "a name is 1 to" in problem(VALUE, name)


def test_a_moment_is_written_for_people_as_far_as_their_calendar_goes() -> None:
    assert written_moment(AT_MS) == "2030-01-01T00:00:00Z"
    assert written_moment(10**18) == f"{10**18} ms"


def test_a_value_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(RequestRejected, match="fewer than value_chars_min=8"):
        credential_of("PIN", "1234567")
    assert credential_of("PIN", "12345678").value is not None
