"""Every benchmark runs and says what it found; how fast it was is for people to read, not for a test."""

import asyncio
import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bare import play_bare
from benchmarks.bare_store import FULL, NORMAL, play_committing, play_grouped, play_one_by_one
from benchmarks.bytecodes import count_alone
from benchmarks.cancels import Latency, measure_cancels
from benchmarks.constrain import constrain_in_rounds, constrain_lines
from benchmarks.durable import Left, measure_durable_loop, measure_durable_runs, measure_left, measure_resume
from benchmarks.imports import HELP, STARTS, spent_by_interpreter
from benchmarks.loops import PATIENCE, growth_together, measure_alone, measure_growth, measure_loop
from benchmarks.many import Peak, grown_bytes, measure_many, measure_peak
from benchmarks.measure import Effort, Figure, growth_exponent, together
from benchmarks.parts import measure_parts, staged_graph
from benchmarks.report import Report, as_text, as_values, measure, verdict
from benchmarks.runs import Runs, at_least, at_most, others, per_second, run_lines, run_values
from benchmarks.stage import Stage, fold, read_turns
from benchmarks.turns import measure_turns, picked, report_of
from benchmarks.vote import COUNTS, candidates_of, vote_lines, votes_in_rounds
from remit.core.failure import Ending
from remit.core.journal.arrivals import ModelAnswered, ToolReturned
from remit.kernel.decide import decide
from remit.kernel.graph.compiled import compile_graph
from remit.orchestrate.facts.facts import Facts

# They measure, so they take their time; `make check` leaves that to `make test`.
pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

TINY = Effort(
    rounds=1,
    repeats=2,
    import_repeats=1,
    window_us=0,
    loops=3,
    sizes=(1, 2),
    graph_stages=2,
    run_repeats=2,
    runs=2,
    run_loops=1,
    durable_loops=2,
    durable_sizes=(8, 16),
    durable_runs=2,
    resume_loops=2,
    cancels=1,
)


def test_the_bytecodes_of_a_tool_loop_are_counted() -> None:
    assert count_alone() > 1_000


async def written_by_a_run(loops: int) -> list[bytes]:
    stage = Stage()
    await stage.play(loops)
    return list(await stage.written())


def is_complete(figure: Figure, repeats: int) -> bool:
    taken = (*figure.taken, *figure.floor_taken)
    return bool(figure.name and figure.floor) and len(taken) == 2 * repeats and min(taken) >= 0


def a_figure(name: str, micros: float = 3.0) -> Figure:
    return Figure(name, "nothing", (micros, micros * 2), (1.0, 2.0))


def a_report() -> Report:
    return Report(
        effort=TINY,
        python="CPython 3",
        system="Linux",
        cores=2,
        loop=a_figure("loop", 20.0),
        loop_bytecodes=3_900,
        growth=measure_growth(TINY),
        turns=[a_figure("facts"), a_figure("decide"), a_figure("decode", 100.0)],
        parts=[a_figure("guard")],
        imports=[a_figure("import")],
        starts=[a_figure("import remit", 99_000.0), a_figure(HELP, 201_000.0)],
        runs=some_runs(),
    )


def some_runs() -> Runs:
    return Runs(
        many=a_figure("many", 100.0),
        durable_loop=[a_figure("durable loop", 1.3)],
        durable_runs=[a_figure("durable run", 1_000.0), a_figure("durable run", 1_000.0)],
        resume=a_figure("resume", 2_001.0),
        peak=Peak(61_000_000, 1_000_000),
        left=Left((50, 200), (1_200.0, 1_201.0)),
        cancels=[Latency("a model call", (0.2, 0.4))],
    )


def test_a_run_on_the_stage_takes_two_turns_a_loop_and_succeeds() -> None:
    written = asyncio.run(written_by_a_run(3))
    state = fold(read_turns(written))
    assert state.end.ending is Ending.SUCCESS
    assert len(written) == 2 * 3 + 2


def test_the_bare_loop_does_the_same_work_as_the_stage() -> None:
    messages = asyncio.run(play_bare(3))
    assert [message["role"] for message in messages] == ["user", *["assistant", "tool"] * 3, "assistant"]
    assert len(fold(read_turns(asyncio.run(written_by_a_run(3)))).talk.context) == len(messages)


def test_picked_turns_hold_both_kinds_and_decide_again_as_recorded() -> None:
    met = picked(asyncio.run(written_by_a_run(40)))
    assert {type(turn.arrival) for _, turn in met} == {ModelAnswered, ToolReturned}
    assert all(decide(state, turn.arrival, turn.at_ms) == turn.decisions for state, turn in met)


def test_facts_make_the_recorded_arrival_of_its_report_again() -> None:
    facts = Facts()
    for state, turn in picked(asyncio.run(written_by_a_run(4))):
        assert facts.complete(state, report_of(turn.arrival), []) == turn.arrival


def test_a_loop_is_measured_against_the_bare_loop() -> None:
    assert is_complete(measure_loop(TINY), TINY.repeats)


def test_a_loop_and_its_growth_come_whole_from_a_process_of_their_own() -> None:
    loop, growth = measure_alone(TINY)
    assert is_complete(loop, TINY.repeats * PATIENCE)
    assert tuple(point.loops for point in growth.points) == TINY.sizes
    assert growth.bytes_per_loop == pytest.approx(measure_growth(TINY).bytes_per_loop)


@pytest.mark.soak
def test_every_part_of_a_turn_is_measured_against_a_floor() -> None:
    figures = measure_turns(TINY)
    names = [figure.name.split(" ")[0] for figure in figures]
    assert names == ["facts", "decide", "apply", "encode", "hash", "decode", "fold"]
    assert all(is_complete(figure, TINY.repeats) for figure in figures)


def test_growth_is_measured_at_every_size_and_finds_flat_bytes() -> None:
    growth = measure_growth(TINY)
    assert tuple(point.loops for point in growth.points) == TINY.sizes
    assert len(growth.micros) == len(growth.floor_micros) == len(TINY.sizes)
    first, second = growth.bytes_per_loop
    assert first == pytest.approx(second, rel=0.05)
    assert math.isfinite(growth.exponent)


@pytest.mark.soak
def test_parts_of_the_kernel_are_measured_against_a_floor() -> None:
    figures = measure_parts(TINY)
    assert len({figure.name for figure in figures}) == len(figures)
    assert all(is_complete(figure, TINY.repeats) for figure in figures)


def test_the_large_graph_compiles_and_has_the_nodes_its_stages_promise() -> None:
    assert len(compile_graph(staged_graph(1, stages=3)).nodes) == 2 + 3 * 3 + 5


@pytest.mark.soak
def test_a_whole_measurement_puts_its_rounds_together_imports_included() -> None:
    report = measure(replace(TINY, rounds=2))
    assert [figure.name for figure in report.imports] == list(STARTS)
    assert all(is_complete(figure, 2 * TINY.import_repeats) for figure in (*report.imports, *report.starts))
    assert is_complete(report.loop, 2 * TINY.repeats * PATIENCE)
    assert all(is_complete(figure, 2 * TINY.repeats) for figure in (*report.turns, *report.parts))
    assert all(is_complete(figure, 2 * TINY.repeats) for figure in report.runs.figures)


def test_what_a_whole_interpreter_spends_is_measured_in_cpu_and_wall_time() -> None:
    spent = spent_by_interpreter(("-m", "remit", "--help"))
    assert spent.cpu_micros > 0
    assert spent.wall_micros > 0


@pytest.mark.soak
def test_many_runs_at_once_are_measured_against_bare_ones() -> None:
    assert is_complete(measure_many(TINY), TINY.run_repeats)


def test_memory_is_measured_in_a_process_of_its_own_for_runs_and_for_bare_ones() -> None:
    peak = measure_peak(TINY)
    assert min(peak.ours_bytes, peak.floor_bytes) >= 0
    assert grown_bytes("bare", 1, 1) >= 0


@pytest.mark.soak
def test_a_durable_loop_is_measured_against_every_way_to_commit() -> None:
    figures = measure_durable_loop(TINY)
    assert len({figure.floor for figure in figures}) == len(figures) == 3
    assert all(is_complete(figure, TINY.run_repeats) for figure in figures)


@pytest.mark.soak
def test_durable_runs_with_and_without_a_person_are_measured_against_synced_commits() -> None:
    figures = measure_durable_runs(TINY)
    assert len(figures) == 3
    assert all(is_complete(figure, TINY.run_repeats) for figure in figures)


def test_what_a_loop_leaves_on_the_disk_is_measured_at_every_size() -> None:
    left = measure_left(TINY)
    assert left.loops == TINY.durable_sizes
    assert min(left.bytes_per_loop) > 0


def test_reading_a_run_back_is_measured_against_reading_its_rows() -> None:
    assert is_complete(measure_resume(TINY), TINY.repeats)


def test_a_cancel_is_timed_for_a_model_a_tool_a_process_and_a_child() -> None:
    latencies = measure_cancels(TINY)
    assert len(latencies) == 4
    assert all(len(latency.taken) == TINY.cancels and min(latency.taken) > 0 for latency in latencies)


@pytest.mark.soak
def test_bare_stores_hold_every_row_however_their_commits_are_grouped(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("full", "normal", "grouped", "alone", "together")]
    for home in homes:
        home.mkdir()
    play_committing(homes[0], 3, synchronous=FULL)
    play_committing(homes[1], 3, synchronous=NORMAL)
    play_committing(homes[2], 3, synchronous=FULL, loops_per_commit=2)
    play_one_by_one(homes[3], 3, 1)
    play_grouped(homes[4], 3, 1)
    for home in homes:
        with closing(sqlite3.connect(home / "bare.db")) as connection:
            assert connection.execute("SELECT count(*) FROM loops").fetchone() == (3,)


def test_goals_of_whole_runs_are_judged_and_others_are_named() -> None:
    text = "\n".join(run_lines(some_runs()))
    assert "10,000 runs a second" in text
    assert "wanted 10,000: reached" in text
    assert "wanted 60: MISSED" in text
    assert "wanted 2,000 µs: MISSED" in text
    assert "measured earlier and elsewhere" in text
    assert (at_least(1, 2), at_most(1, 2), per_second(0)) == ("MISSED", "reached", 0)
    assert "DBOS 4,171" in others("durable_loop")
    assert json.loads(json.dumps(run_values(some_runs())))["cancel_ms"] == {"a model call": 0.2}


def test_rounds_are_put_together_and_the_best_of_all_counts() -> None:
    figure = together([a_figure("a", 3.0), a_figure("a", 2.0)])
    assert figure.taken == (3.0, 6.0, 2.0, 4.0)
    assert (figure.micros, figure.floor_micros, figure.ratio, figure.spread) == (2.0, 1.0, 2.0, 0.75)
    growth = measure_growth(TINY)
    both = growth_together([growth, growth])
    assert [len(point.taken) for point in both.points] == [2 * TINY.repeats] * len(TINY.sizes)


def test_the_exponent_of_a_line_is_one_and_of_a_square_two() -> None:
    sizes = (10, 20, 50)
    assert growth_exponent(sizes, [3.0 * size for size in sizes]) == pytest.approx(1)
    assert growth_exponent(sizes, [float(size**2) for size in sizes]) == pytest.approx(2)


def test_the_table_shows_every_figure_and_marks_what_was_measured_elsewhere() -> None:
    text = as_text(a_report())
    for name in (
        "loop",
        "facts",
        "guard",
        "import",
        "exponent",
        "LangGraph",
        "NOT measured in this run",
        "2 cores",
        HELP,
    ):
        assert name in text


def test_the_report_becomes_one_json_object() -> None:
    values = json.loads(json.dumps(as_values(a_report())))
    assert values["loop"]["ratio"] == 20.0
    assert values["loop_around_turns_micros"] == 20.0 - 2 * (3.0 + 3.0)
    assert values["growth"]["loops"] == list(TINY.sizes)
    assert values["measured_elsewhere_micros"]["Agno"] == 214


@pytest.mark.soak
def test_votes_among_few_and_many_are_measured_against_reading_the_candidates() -> None:
    figures = votes_in_rounds(replace(TINY, rounds=2))
    assert len({figure.name for figure in figures}) == len(figures) == 5 * len(COUNTS)
    assert all(is_complete(figure, 2 * TINY.repeats) for figure in figures)
    assert all(450 < len(text) < 550 for text in candidates_of(50))
    assert "candidates of 4" in next(vote_lines(figures))


@pytest.mark.soak
def test_structured_output_is_measured_against_reading_and_validating_alone() -> None:
    figures = constrain_in_rounds(replace(TINY, rounds=2))
    assert len({figure.name for figure in figures}) == len(figures)
    assert all(is_complete(figure, 2 * TINY.repeats) for figure in figures)
    text = "\n".join(constrain_lines(figures))
    for name in (
        "a line with its schema",
        "a structured call that fits",
        "the same with one repair",
        "0 become another",
    ):
        assert name in text


@pytest.mark.parametrize(
    ("micros", "words"), [(15.0, "within"), (30.0, "within the limit, over the wish"), (30.1, "over")]
)
def test_a_loop_is_judged_by_the_wish_and_by_the_limit(micros: float, words: str) -> None:
    assert verdict(micros) == words
