"""What a queue may be called, how much it may hold, and where it may be delivered."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.queue import (
    AGE_MS_MAX,
    LOAD_MAX,
    OK,
    PEOPLE_MAX,
    QUEUE_INVALID,
    QUEUES_MAX,
    Delivery,
    QueueLimits,
    check_limits,
    check_name,
    check_webhook,
    is_ok,
)


def test_limits_that_can_be_meant_are_taken_as_they_are() -> None:
    limits = QueueLimits("operator", load_max=LOAD_MAX, age_ms_max=AGE_MS_MAX, webhook="https://example.org/hook?a=b")
    assert check_limits([limits, QueueLimits("team-a.b_2")]) == (limits, QueueLimits("team-a.b_2"))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "-x", "x" * 41, "ack", "drain", "a\x1b[2J"])
def test_a_name_that_nobody_could_type_or_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_name(name)
    assert refused.value.code == QUEUE_INVALID


@pytest.mark.parametrize(
    "limits",
    [
        QueueLimits("a", load_max=-1),
        QueueLimits("a", load_max=LOAD_MAX + 1),
        QueueLimits("a", age_ms_max=AGE_MS_MAX + 1),
        QueueLimits("a", load_max=True),
        QueueLimits("a", answered_by=("ann", " ")),
        QueueLimits("a", answered_by=("\u0430nn",)),
        QueueLimits("a", answered_by=("ann",) * (PEOPLE_MAX + 1)),
        QueueLimits("a", webhook="ftp://example.org"),
    ],
)
def test_a_limit_outside_of_its_bounds_is_refused_with_the_bound(limits: QueueLimits) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_limits([limits])
    assert refused.value.code == QUEUE_INVALID


def test_a_queue_is_limited_once_and_there_are_only_so_many() -> None:
    with pytest.raises(RequestRejected, match="named twice"):
        check_limits([QueueLimits("a"), QueueLimits("a")])
    with pytest.raises(RequestRejected, match="queues_max"):
        check_limits([QueueLimits(f"q{number}") for number in range(QUEUES_MAX + 1)])


@pytest.mark.parametrize(
    "url",
    ["example.org", "file:///etc/passwd", "http://a b/", "https://user:word@example.org/", "http://é/", "http://a/\n"],
)
def test_an_address_that_is_none_or_holds_a_password_is_refused(url: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_webhook(url)
    assert refused.value.code == QUEUE_INVALID
    assert check_webhook("http://127.0.0.1:8000/x") == "http://127.0.0.1:8000/x"


@pytest.mark.parametrize(
    ("status", "ok"), [(199, False), (OK, True), (299, True), (302, False), (500, False), (0, False)]
)
def test_only_a_status_that_says_so_means_that_it_was_taken(status: int, ok: bool) -> None:
    assert is_ok(status) is ok
    assert Delivery("r", status).is_delivered is ok
