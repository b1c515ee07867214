"""A model that fails several times in a row is left alone, and then probed by one call."""

import pytest

from remit.core.failure import ErrorCode
from remit.inference.endpoint.breaker import Breaker
from remit.inference.endpoint.limits import EndpointLimits
from remit.inference.engine import EngineFault


class Time:
    """A clock that is set by hand."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def refusal(breaker: Breaker) -> EngineFault:
    with pytest.raises(EngineFault) as raised:
        breaker.admit("m")
    assert raised.value.code is ErrorCode.INFERENCE_MODEL_UNAVAILABLE
    assert not raised.value.was_cut
    return raised.value


def broken(clock: Time, failures_max: int = 3, pause_s: int = 30) -> Breaker:
    breaker = Breaker(EndpointLimits(failures_max=failures_max, pause_s=pause_s), clock)
    for _ in range(failures_max):
        breaker.admit("m")
        breaker.fail()
    return breaker


def test_failures_that_are_not_in_a_row_leave_everybody_through() -> None:
    breaker = Breaker(EndpointLimits(failures_max=2), Time())
    for _ in range(5):
        breaker.admit("m")
        breaker.fail()
        breaker.admit("m")
        breaker.succeed()
    assert breaker.rests_s() == 0


def test_a_refusal_says_how_often_it_failed_and_when_it_is_tried_again() -> None:
    clock = Time()
    breaker = broken(clock)
    clock.now_s += 9.5
    fault = refusal(breaker)
    assert fault.message == "model 'm' failed 3 times in a row and is left alone; it is tried again in 21 s"
    assert (fault.retry_after_s, breaker.rests_s()) == (21, 20.5)


def test_a_check_before_waiting_takes_no_place_of_a_probe() -> None:
    clock = Time()
    breaker = broken(clock)
    with pytest.raises(EngineFault):
        breaker.check("m")
    clock.now_s += 30
    breaker.check("m")
    breaker.check("m")
    breaker.admit("m")
    assert "one call is finding out whether it is back" in refusal(breaker).message


def test_a_probe_that_succeeds_lets_everybody_through() -> None:
    clock = Time()
    breaker = broken(clock)
    clock.now_s += 30
    breaker.admit("m")
    breaker.succeed()
    breaker.admit("m")
    breaker.admit("m")


def test_a_probe_that_fails_begins_a_new_pause() -> None:
    clock = Time()
    breaker = broken(clock)
    clock.now_s += 30
    breaker.admit("m")
    breaker.fail()
    assert breaker.rests_s() == 30
    assert "failed 4 times" in refusal(breaker).message


def test_a_probe_that_was_given_up_leaves_its_place_to_another() -> None:
    clock = Time()
    breaker = broken(clock)
    clock.now_s += 30
    breaker.admit("m")
    breaker.forget()
    breaker.admit("m")
