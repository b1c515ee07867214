"""The report of what foreseeing saves: small, whole, and in agreement with the kernel."""

import json

import pytest

from benchmarks.foresight import HISTORIES, KINDS, Row, learned, lines, main, measure, recorded, stops_of, tokens_of
from remit.core.limits.foresight import RUNS_MIN

pytestmark = pytest.mark.unmeasured


@pytest.mark.slow
def test_hopeless_runs_are_stopped_and_no_success_is_lost() -> None:
    *rows, total = measure(runs=60)
    assert [row.name for row in rows] == [kind.task_class.value for kind in KINDS]
    assert total.runs == 60 * len(KINDS)
    assert 0 < total.succeeded < total.runs
    for way in ("goal", f"history {RUNS_MIN}", "both"):
        assert total.stopped[way] > 0
        assert 0 < total.saved[way] <= total.tokens_short + total.tokens_endless
        assert total.lost[way] == 0


@pytest.mark.slow
def test_the_kernel_stops_where_the_record_says_that_history_would() -> None:
    kind = next(kind for kind in KINDS if not kind.required)
    foresights, agreed = learned(kind, range(60)), 0
    for seed in range(60, 120):
        stops = dict(stops_of(recorded(kind, seed), foresights))
        assert stops.get("both") == stops.get(f"history {HISTORIES[-1]}")
        agreed += "both" in stops
    assert agreed > 0


def test_a_recorded_run_is_the_same_each_time_and_was_not_foreseen() -> None:
    first, again = recorded(KINDS[0], 7), recorded(KINDS[0], 7)
    assert first.history == again.history
    assert tokens_of(first.state) > 0
    assert first.state.manifest is not None
    assert first.state.manifest.foresight is None


def test_the_report_names_every_class_and_every_way_of_stopping() -> None:
    row = Row("creative", runs=4, succeeded=3, tokens=1234, tokens_short=100)
    row.count("both", 50, is_success=True)
    told = "\n".join(lines([row, Row("all")]))
    assert "1,234" in told
    assert "by what the goal requires alone" in told
    assert f"by a history of {RUNS_MIN} successes alone" in told
    assert "50%" in told
    assert told.count("creative") == 1 + len(HISTORIES) + 2


@pytest.mark.parametrize("is_json", [False, True], ids=["a table", "json"])
def test_the_command_prints_its_report(
    *, is_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["foresight", "--runs", "2", *(["--json"] if is_json else [])])
    main()
    said = capsys.readouterr().out
    if is_json:
        assert [row["runs"] for row in json.loads(said)] == [2] * len(KINDS) + [2 * len(KINDS)]
    else:
        assert said.startswith("Foreseeing")
