"""The benchmark of guarded runs holds its conversation in memory and on a store, and says what it found."""

import pytest

from benchmarks.guarded import STEPS, Figure, guarded_lines, measure_guarded

# It measures, so it takes its time; `make check` leaves that to `make test`.
pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]


def test_every_step_is_measured_in_memory_and_on_a_store() -> None:
    found = measure_guarded(rounds=1, calls=2)
    assert [one.name for one in found] == list(STEPS)
    assert all(one.memory > 0 and one.store > 0 for one in found)


def test_the_table_says_what_the_journal_adds() -> None:
    lines = list(guarded_lines([Figure("a read is allowed", 100.0, 350.0)]))
    assert lines[-1].split()[-3:] == ["100", "350", "250"]
