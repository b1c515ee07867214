"""The benchmark of the guard runs and says what it found; how fast it was is for people to read."""

import pytest

from benchmarks.guard import main, measure_guard


def test_calls_and_results_are_measured_early_and_late_in_a_run() -> None:
    found = measure_guard((1, 3), decisions=5)
    assert [(one.name, one.calls) for one in found] == [
        ("a call", 1),
        ("its result", 1),
        ("a call", 3),
        ("its result", 3),
    ]
    assert all(0 < one.median_us <= one.p99_us for one in found)


def test_the_table_has_a_line_for_each_figure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.guard.measure_guard", lambda: measure_guard((1,), decisions=2))
    main()
    assert len(capsys.readouterr().out.splitlines()) == 2
