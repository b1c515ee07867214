"""Every benchmark runs and says what it found; how fast it was is for people to read, not for a test."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from benchmarks.bare import play_bare
from benchmarks.imports import MODULES
from benchmarks.loops import growth_together, measure_growth, measure_loop
from benchmarks.measure import Effort, Figure, growth_exponent, together
from benchmarks.parts import measure_parts, staged_graph
from benchmarks.report import Report, as_text, as_values, measure, verdict
from benchmarks.stage import Stage, fold, read_turns
from benchmarks.turns import measure_turns, picked, report_of
from remit.core.arrivals import ModelAnswered, ToolReturned
from remit.core.failure import Ending
from remit.kernel.decide import decide
from remit.kernel.graph import compile_graph
from remit.orchestrate.facts import Facts

TINY = Effort(rounds=1, repeats=2, import_repeats=1, window_us=0, loops=3, sizes=(1, 2), graph_stages=2)


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
        growth=measure_growth(TINY),
        turns=[a_figure("facts"), a_figure("decide"), a_figure("decode", 100.0)],
        parts=[a_figure("guard")],
        imports=[a_figure("import")],
    )


def test_a_run_on_the_stage_takes_two_turns_a_loop_and_succeeds() -> None:
    written = asyncio.run(written_by_a_run(3))
    state = fold(read_turns(written))
    assert state.ending is Ending.SUCCESS
    assert len(written) == 2 * 3 + 2


def test_the_bare_loop_does_the_same_work_as_the_stage() -> None:
    messages = asyncio.run(play_bare(3))
    assert [message["role"] for message in messages] == ["user", *["assistant", "tool"] * 3, "assistant"]
    assert len(fold(read_turns(asyncio.run(written_by_a_run(3)))).context) == len(messages)


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


def test_parts_of_the_kernel_are_measured_against_a_floor() -> None:
    figures = measure_parts(TINY)
    assert len({figure.name for figure in figures}) == len(figures)
    assert all(is_complete(figure, TINY.repeats) for figure in figures)


def test_the_large_graph_compiles_and_has_the_nodes_its_stages_promise() -> None:
    assert len(compile_graph(staged_graph(1, stages=3)).nodes) == 2 + 3 * 3 + 5


@pytest.mark.slow
def test_a_whole_measurement_puts_its_rounds_together_imports_included() -> None:
    report = measure(replace(TINY, rounds=2))
    assert [figure.name for figure in report.imports] == [f"import {module}" for module in MODULES]
    assert all(is_complete(figure, 2 * TINY.import_repeats) for figure in report.imports)
    assert all(is_complete(figure, 2 * TINY.repeats) for figure in (report.loop, *report.turns, *report.parts))


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
    for name in ("loop", "facts", "guard", "import", "exponent", "LangGraph", "NOT measured in this run", "2 cores"):
        assert name in text


def test_the_report_becomes_one_json_object() -> None:
    values = json.loads(json.dumps(as_values(a_report())))
    assert values["loop"]["ratio"] == 20.0
    assert values["loop_around_turns_micros"] == 20.0 - 2 * (3.0 + 3.0)
    assert values["growth"]["loops"] == list(TINY.sizes)
    assert values["measured_elsewhere_micros"]["Agno"] == 214


@pytest.mark.parametrize(
    ("micros", "words"), [(15.0, "within"), (30.0, "within the limit, over the wish"), (30.1, "over")]
)
def test_a_loop_is_judged_by_the_wish_and_by_the_limit(micros: float, words: str) -> None:
    assert verdict(micros) == words
