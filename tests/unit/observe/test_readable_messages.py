"""Messages of limits are read by people: moments as dates, spans with their units, money in dollars."""

import pytest

from remit.observe.figures import readable


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("tool stock failed 3 times in a row, retries_max=2", "tool stock failed 3 times in a row, retries_max=2"),
        (
            "the deadline at 1794993814843 ms has passed, wall_clock_ms_max=5400000",
            "the deadline at 2026-11-18 09:23:34 UTC has passed, wall_clock_ms_max=5400000 (1 h 30 min)",
        ),
        ("step 'a' took longer than timeout_ms=200", "step 'a' took longer than timeout_ms=200"),
        ("5 calls within 60000 ms are allowed; again in 1500 ms", "5 calls within 1 min are allowed; again in 1.5 s"),
        (
            "3 wanted exceed inference_cost_microusd_max=500000",
            "3 wanted exceed inference_cost_microusd_max=500000 ($0.50)",
        ),
    ],
)
def test_a_limit_is_told_with_what_people_read(said: str, read: str) -> None:
    assert readable(said) == read
