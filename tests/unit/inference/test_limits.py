"""Limits of an endpoint are taken out of a spec and written back into it."""

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.inference.endpoint.limits import (
    CONCURRENCY_MAX,
    FAILURES_DEFAULT,
    FAILURES_MAX,
    PAUSE_S_DEFAULT,
    PAUSE_S_MAX,
    RPM_MAX,
    EndpointLimits,
    take_limits,
    url_in,
)


@pytest.mark.parametrize("spec", ["openai:m", "openai:m?url=http://127.0.0.1/v1", "openai:m?", "openai:rpm=5", "local"])
def test_a_spec_without_limits_passes_as_it_is(spec: str) -> None:
    assert take_limits(spec) == (spec, None)


@pytest.mark.parametrize(
    ("options", "limits", "rest"),
    [
        ("?concurrency=4", EndpointLimits(4), ""),
        ("?rpm=60", EndpointLimits(0, 60), ""),
        ("?breaker=3", EndpointLimits(0, 0, 3), ""),
        ("?breaker=3/7", EndpointLimits(0, 0, 3, 7), ""),
        ("?concurrency=4&url=http://h%20/v1&rpm=60&price=1/2", EndpointLimits(4, 60), "?url=http://h%20/v1&price=1/2"),
        (
            f"?concurrency={CONCURRENCY_MAX}&rpm={RPM_MAX}&breaker={FAILURES_MAX}/{PAUSE_S_MAX}",
            EndpointLimits(CONCURRENCY_MAX, RPM_MAX, FAILURES_MAX, PAUSE_S_MAX),
            "",
        ),
    ],
)
def test_limits_are_taken_out_from_among_other_options_and_back_again(
    options: str, limits: EndpointLimits, rest: str
) -> None:
    assert take_limits(f"openai:m{options}") == (f"openai:m{rest}", limits)
    assert take_limits(limits.written_behind(f"openai:m{rest}")) == (f"openai:m{rest}", limits)


def test_one_limit_brings_a_breaker_along() -> None:
    assert take_limits("openai:m?rpm=5")[1] == EndpointLimits(0, 5, FAILURES_DEFAULT, PAUSE_S_DEFAULT)


@pytest.mark.parametrize(
    "options",
    [
        "concurrency=0",
        "concurrency=",
        "concurrency",
        "concurrency=1.5",
        "concurrency=-1",
        "concurrency=٣",
        f"concurrency={CONCURRENCY_MAX + 1}",
        f"rpm={RPM_MAX + 1}",
        "rpm=" + "9" * 5000,
        "breaker=0/5",
        "breaker=5/",
        "breaker=5/0",
        f"breaker=5/{PAUSE_S_MAX + 1}",
        "rpm=5&rpm=5",
    ],
)
def test_a_limit_that_is_none_is_refused_with_what_is_allowed(options: str) -> None:
    with pytest.raises(RequestRejected) as raised:
        take_limits(f"openai:m?{options}")
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert raised.value.message.startswith("engine 'openai:m': ")
    assert len(raised.value.message) < 300


def test_the_url_of_a_spec_is_read_as_its_engine_reads_it() -> None:
    assert url_in("openai:m?price=1/2&url=http%3A%2F%2Fh/v1") == "http://h/v1"
    assert url_in("openai:m") == "openai:m"
