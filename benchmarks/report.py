"""The report of a run: everything that was measured, as a table for people and as plain values for programs."""

import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.bytecodes import count_alone
from benchmarks.elsewhere import BARE_ELSEWHERE_MICROS, MEASURED_ELSEWHERE_MICROS
from benchmarks.imports import WANTED_MS, measure_imports
from benchmarks.loops import (
    EXPONENT_MAX,
    LOOP_MICROS_MAX,
    LOOP_MICROS_WANTED,
    Growth,
    growth_together,
    measure_alone,
)
from benchmarks.measure import Effort, Figure, together
from benchmarks.parts import measure_parts
from benchmarks.runs import Runs, at_most, measure_runs, others, run_lines, run_values
from benchmarks.tables import figure_values, table
from benchmarks.turns import measure_turns

# What a run does in every turn; decoding and folding happen when it is read back.
OF_A_TURN = ("facts", "decide", "apply", "encode", "hash")


@dataclass(frozen=True)
class Report:
    """One run of all benchmarks."""

    effort: Effort
    python: str
    system: str
    cores: int
    loop: Figure
    loop_bytecodes: int
    growth: Growth
    turns: Sequence[Figure]
    parts: Sequence[Figure]
    imports: Sequence[Figure]
    starts: Sequence[Figure]
    runs: Runs

    @property
    def around_micros(self) -> float:
        """What a loop costs beside the judging and recording of its two turns."""
        return self.loop.micros - 2 * sum(figure.micros for figure in self.turns if figure.name in OF_A_TURN)

    @property
    def spreads(self) -> list[float]:
        """The spread of everything that was measured."""
        figures = (self.loop, *self.turns, *self.parts, *self.imports, *self.runs.figures)
        return [self.growth.spread, *(figure.spread for figure in figures)]


@dataclass(frozen=True)
class Round:
    """One round of what is measured in rounds, side by side."""

    loop: Figure
    growth: Growth
    turns: Sequence[Figure]
    parts: Sequence[Figure]
    imports: Sequence[Figure]
    starts: Sequence[Figure]


def measure(effort: Effort) -> Report:
    """Run every benchmark, in rounds."""
    rounds = [measure_once(effort) for _ in range(effort.rounds)]
    return Report(
        effort=effort,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        loop=together([one.loop for one in rounds]),
        loop_bytecodes=count_alone(),
        growth=growth_together([one.growth for one in rounds]),
        turns=[together(same) for same in zip(*(one.turns for one in rounds), strict=True)],
        parts=[together(same) for same in zip(*(one.parts for one in rounds), strict=True)],
        imports=[together(same) for same in zip(*(one.imports for one in rounds), strict=True)],
        starts=[together(same) for same in zip(*(one.starts for one in rounds), strict=True)],
        runs=measure_runs(effort),
    )


def measure_once(effort: Effort) -> Round:
    """One round."""
    imports, starts = measure_imports(effort)
    loop, growth = measure_alone(effort)
    return Round(
        loop=loop,
        growth=growth,
        turns=measure_turns(effort),
        parts=measure_parts(effort),
        imports=imports,
        starts=starts,
    )


def as_text(report: Report) -> str:
    """The report as aligned plain text."""
    lines = [
        *header(report),
        "",
        f"A tool loop: two turns, in a run of {report.effort.loops} loops, in a process of its own",
        *table([report.loop]),
        f"  wanted {LOOP_MICROS_WANTED} µs, at most {LOOP_MICROS_MAX}: {verdict(report.loop.micros)}",
        f"  {report.loop_bytecodes:,} bytecodes, which no busy machine changes",
        "",
        "One turn of that run",
        *table(report.turns),
        f"  beside two turns of {', '.join(OF_A_TURN)}, a loop spends {report.around_micros:.1f} µs on the way:",
        "  runner, dispatch, journal, rendered conversation, and the model and tool that do nothing",
        "",
        *growth_lines(report.growth),
        "",
        "Parts of the kernel",
        *table(report.parts),
        "",
        *run_lines(report.runs),
        "",
        *start_lines(report),
        "",
        *elsewhere_lines(report),
    ]
    return "\n".join(lines)


def header(report: Report) -> Iterator[str]:
    """On what machine this was measured, and how much to trust it."""
    spreads = report.spreads
    yield f"{report.python} on {report.system}, {report.cores} cores"
    repeats, loops, imports = (len(figure.taken) for figure in (report.turns[0], report.loop, report.imports[0]))
    rounds = report.effort.rounds
    yield f"CPU time, best of {repeats} repeats in {rounds} rounds (the tool loop: of {loops}, imports: of {imports})"
    yield (
        f"noise: the median repeat lies {statistics.median(spreads):.0%} above the best, "
        f"{max(spreads):.0%} in the worst row"
    )


def verdict(micros: float) -> str:
    """Where a loop stands between what is wanted and what is allowed."""
    if micros > LOOP_MICROS_MAX:
        return "over"
    return "within" if micros <= LOOP_MICROS_WANTED else "within the limit, over the wish"


def growth_lines(growth: Growth) -> Iterator[str]:
    """One line per length of run, and the exponents."""
    yield "Growth: runs of several lengths, less a run without any loop"
    yield f"  {'loops':<10}{'µs a run':>12}{'µs a loop':>12}{'floor µs a loop':>18}{'journal bytes a loop':>23}"
    rows = zip(growth.points, growth.micros, growth.floor_micros, growth.bytes_per_loop, strict=True)
    for point, micros, floor_micros, journal_bytes in rows:
        yield (
            f"  {point.loops:<10}{micros:>12,.0f}{micros / point.loops:>12,.2f}{floor_micros / point.loops:>18,.2f}"
            f"{journal_bytes:>23,.0f}"
        )
    judged = "within" if growth.exponent <= EXPONENT_MAX else "over"
    yield (
        f"  exponent {growth.exponent:.3f} (bare loop {growth.floor_exponent:.3f}), "
        f"at most {EXPONENT_MAX}: {judged}; spread {growth.spread:.0%}"
    )


def start_lines(report: Report) -> Iterator[str]:
    """Interpreters from start to end, in CPU time and on the wall."""
    yield "Cold start: a whole interpreter, from start to end (CPU time)"
    yield from table(report.imports)
    yield "The same in wall time"
    yield from table(report.starts)
    for figure in report.starts:
        if (wanted_ms := WANTED_MS.get(figure.name)) is not None:
            yield f"  {figure.name}: wanted {wanted_ms} ms: {at_most(figure.micros, wanted_ms * 1_000)}"
    yield others("cold")


def elsewhere_lines(report: Report) -> Iterator[str]:
    """Ours beside other frameworks, which were not measured in this run."""
    yield "Other frameworks, the same loop. NOT measured in this run: earlier, on another machine"
    yield "(two cores, in memory, 200 loops, CPU time); for the order of magnitude only"
    yield f"  {'':<34}{'µs a loop':>11}{'bare loops':>14}"
    for name, micros in MEASURED_ELSEWHERE_MICROS.items():
        yield f"  {name:<34}{micros:>11,}{micros / BARE_ELSEWHERE_MICROS:>14,.0f}"
    yield f"  {'remit, this run':<34}{report.loop.micros:>11,.0f}{report.loop.ratio:>14,.0f}"


def as_values(report: Report) -> dict[str, Any]:
    """The report as plain values, ready to become one JSON object."""
    return {
        "machine": {"python": report.python, "system": report.system, "cores": report.cores},
        "noise": {"median": statistics.median(report.spreads), "worst": max(report.spreads)},
        "effort": asdict(report.effort),
        "loop": figure_values(report.loop),
        "loop_bytecodes": report.loop_bytecodes,
        "loop_around_turns_micros": report.around_micros,
        "turns": [figure_values(figure) for figure in report.turns],
        "growth": growth_values(report.growth),
        "parts": [figure_values(figure) for figure in report.parts],
        "imports": [figure_values(figure) for figure in report.imports],
        "starts": [figure_values(figure) for figure in report.starts],
        "runs": run_values(report.runs),
        "targets": {
            "loop_micros_wanted": LOOP_MICROS_WANTED,
            "loop_micros_max": LOOP_MICROS_MAX,
            "exponent_max": EXPONENT_MAX,
        },
        "measured_elsewhere_micros": dict(MEASURED_ELSEWHERE_MICROS),
    }


def growth_values(growth: Growth) -> dict[str, Any]:
    """The growth without its single repeats."""
    return {
        "loops": [point.loops for point in growth.points],
        "micros": growth.micros,
        "floor_micros": growth.floor_micros,
        "journal_bytes_per_loop": growth.bytes_per_loop,
        "exponent": growth.exponent,
        "floor_exponent": growth.floor_exponent,
        "spread": growth.spread,
    }
