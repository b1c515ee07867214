"""The benchmark of authorization runs and says what it found; how fast it was is for people to read."""

import json
from functools import cache

import pytest

from benchmarks.authorization import (
    Series,
    at_share,
    authorization_lines,
    authorization_values,
    main,
    measure_authorization,
)
from benchmarks.errand import TOOLS

# It measures, so it takes its time; `make check` leaves that to `make test`.
pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]


@cache
def tiny() -> list[Series]:
    return measure_authorization((3, 4), decisions=3, rounds=2)


@pytest.mark.soak
def test_every_figure_is_measured_at_every_length_against_its_floor() -> None:
    found = tiny()
    assert [one.name.split(":")[0] for one in found] == [*["gate"] * 5, "guard", "kernel"]
    for one in found:
        assert one.results == (3, 4)
        assert [len(taken) for taken in (*one.taken, *one.floor_taken)] == [3] * 4
        assert 0 < one.medians[-1] <= one.p99_us
        assert one.floor
        assert one.ratio > 0


def test_a_share_of_all_decisions_is_counted_from_the_fastest() -> None:
    taken = [float(number) for number in range(100, 0, -1)]
    assert (at_share(taken, 0.5), at_share(taken, 0.99), at_share([7.0], 0.99)) == (51.0, 100.0, 7.0)


def a_series(*taken: float) -> Series:
    return Series("gate: a read", "nothing", (10, 1_000), (taken, taken), ((1.0,), (2.0,)))


@pytest.mark.parametrize(
    ("taken", "words"),
    [((100.0, 100.0, 1_000.0), "reached"), ((100.1,), "MISSED"), ((100.0, 100.0, 1_000.1), "MISSED")],
)
def test_the_table_says_whether_the_wish_is_kept(taken: tuple[float, ...], words: str) -> None:
    lines = list(authorization_lines([a_series(4.0), a_series(*taken)]))
    assert "10, 1,000 results" in lines[0]
    assert words in lines[-1]


def test_what_takes_the_same_at_every_length_has_no_growth() -> None:
    assert (a_series(4.0).exponent, a_series(4.0).ratio) == (0.0, 2.0)
    growing = Series("gate: a read", "nothing", (10, 1_000), ((4.0,), (8.0,)), ((1.0,), (1.0,)))
    assert "MISSED" in list(authorization_lines([growing]))[-1]


@pytest.mark.soak
def test_the_figures_become_one_json_value() -> None:
    values = json.loads(json.dumps(authorization_values(tiny())))
    assert {tuple(one) for one in values} == {
        ("name", "floor", "results", "median_micros", "p99_micros", "ratio", "exponent")
    }


def test_the_errand_has_thirty_tools_of_their_own_names() -> None:
    assert len({tool["name"] for tool in TOOLS}) == len(TOOLS) == 30


@pytest.mark.soak
def test_it_can_be_run_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.authorization.measure_authorization", tiny)
    main()
    assert len(capsys.readouterr().out.splitlines()) == 2 + 7 + 1
