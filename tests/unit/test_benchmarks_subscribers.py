"""The benchmark of subscribers says what it found, and measures what it says."""

import asyncio

import pytest

from benchmarks import subscribers
from benchmarks.subscribers import MANY, Subscribers, subscriber_lines

pytestmark = pytest.mark.unmeasured


def test_what_was_found_is_told_with_what_is_wanted() -> None:
    found = Subscribers(500.0, {1: 50.0, MANY: 500.0}, {1: 5.0, MANY: 1_000.0}, tuple(map(float, range(100))))
    lines = list(subscriber_lines(found))
    assert "1.00%" in lines[4]
    assert "2.00%" in lines[5]
    assert "median 49.5 ms, 99th percentile 99.0 ms, of 100 turns" in lines[6]


def test_every_reader_hears_every_turn_of_the_run_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribers, "LOOPS", 2)
    monkeypatch.setattr(subscribers, "MODEL_MS", 1)
    assert asyncio.run(subscribers._turn_micros(3, is_reading=True)) > 0
