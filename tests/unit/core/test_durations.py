"""Spans of time are read as people write them."""

import pytest

from remit.core.durations import DAY_MS, duration_ms, said_duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("1.5 s", 1_500),
        ("5m", 300_000),
        ("90 min", 5_400_000),
        ("1h30m", 5_400_000),
        ("1 hour 30 minutes", 5_400_000),
        ("2 days", 2 * DAY_MS),
        ("4w", 28 * DAY_MS),
        (" 7d ", 7 * DAY_MS),
    ],
)
def test_a_span_of_time_is_read_with_its_units(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "7",
        "d",
        "-7d",
        "7x",
        "1m 2h",
        "1h 1h",
        "1h 30",
        "1e3s",
        "soon",
        "0.1ms",
        "0.0001s",
        "٣d",
        "9" * 40 + "d",
    ],
)
def test_what_is_no_span_of_time_is_none(text: str) -> None:
    assert duration_ms(text) is None


def test_a_number_alone_has_the_unit_of_its_place() -> None:
    assert duration_ms("30", alone_ms=DAY_MS) == 30 * DAY_MS
    assert duration_ms("0", alone_ms=DAY_MS) == 0
    assert duration_ms("1h 30", alone_ms=DAY_MS) is None


@pytest.mark.parametrize("ms", [0, 1, 1_500, 90_000, DAY_MS, 14 * DAY_MS])
def test_what_is_written_reads_back(ms: int) -> None:
    assert duration_ms(said_duration(ms)) == ms
