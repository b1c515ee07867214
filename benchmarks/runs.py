"""Whole runs, measured and told: many at once, on a disk, read back, started cold and cancelled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cancels import Latency, measure_cancels
from benchmarks.durable import (
    LOOP_BYTES_WANTED,
    LOOP_RATIO_WANTED,
    RESUME_MICROS_WANTED,
    Left,
    measure_durable_loop,
    measure_durable_runs,
    measure_left,
    measure_resume,
)
from benchmarks.durable import RUNS_PER_SECOND_WANTED as DURABLE_RUNS_PER_SECOND_WANTED
from benchmarks.elsewhere import LANGGRAPH_BYTES_PER_LOOP, RUNS_ELSEWHERE
from benchmarks.many import MEGABYTES_WANTED, RUNS_PER_SECOND_WANTED, Peak, measure_many, measure_peak
from benchmarks.measure import MICROS_PER_SECOND, Effort, Figure, together
from benchmarks.tables import figure_values, table

_BYTES_PER_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Runs:
    """What was measured of whole runs."""

    many: Figure
    durable_loop: Sequence[Figure]
    durable_runs: Sequence[Figure]
    resume: Figure
    peak: Peak
    left: Left
    cancels: Sequence[Latency]

    @property
    def figures(self) -> list[Figure]:
        """Everything that has a floor."""
        return [self.many, *self.durable_loop, *self.durable_runs, self.resume]


def measure_runs(effort: Effort) -> Runs:
    """Figures in rounds; memory, bytes and cancels, which hardly vary, once."""
    rounds = range(effort.rounds)
    several = [(measure_many(effort), measure_durable_loop(effort), measure_durable_runs(effort)) for _ in rounds]
    many, loops, runs = zip(*several, strict=True)
    return Runs(
        many=together(many),
        durable_loop=[together(same) for same in zip(*loops, strict=True)],
        durable_runs=[together(same) for same in zip(*runs, strict=True)],
        resume=together([measure_resume(effort) for _ in rounds]),
        peak=measure_peak(effort),
        left=measure_left(effort),
        cancels=measure_cancels(effort),
    )


def per_second(micros: float) -> float:
    """How many fit into a second."""
    return MICROS_PER_SECOND / micros if micros else 0.0


def at_least(value: float, wanted: float) -> str:
    """Whether a goal from below was reached."""
    return "reached" if value >= wanted else "MISSED"


def at_most(value: float, wanted: float) -> str:
    """Whether a goal from above was reached."""
    return "reached" if value <= wanted else "MISSED"


def run_lines(runs: Runs) -> Iterator[str]:
    """Everything about whole runs."""
    yield from _many_lines(runs)
    yield ""
    yield from _durable_lines(runs)
    yield ""
    yield "Cancelling: from the signal until the run has ended (wall time)"
    yield f"  {'':<34}{'best ms':>11}{'worst ms':>11}"
    for latency in runs.cancels:
        yield f"  {latency.name:<34}{min(latency.taken):>11,.1f}{max(latency.taken):>11,.1f}"


def _many_lines(runs: Runs) -> Iterator[str]:
    rate, grown = per_second(runs.many.micros), runs.peak.ours_bytes / _BYTES_PER_MEGABYTE
    yield "Many runs at once, in memory, through the facade (CPU time)"
    yield from table([runs.many])
    yield (
        f"  {rate:,.0f} runs a second (bare {per_second(runs.many.floor_micros):,.0f}); "
        f"wanted {RUNS_PER_SECOND_WANTED:,}: {at_least(rate, RUNS_PER_SECOND_WANTED)}"
    )
    yield (
        f"  memory grows by {grown:.0f} MB (bare {runs.peak.floor_bytes / _BYTES_PER_MEGABYTE:.0f}); "
        f"wanted {MEGABYTES_WANTED}: {at_most(grown, MEGABYTES_WANTED)}"
    )
    yield others("many")


def _durable_lines(runs: Runs) -> Iterator[str]:
    loop, resume = runs.durable_loop[0], runs.resume
    yield "On the embedded store: one long run (CPU time)"
    yield from table(runs.durable_loop)
    yield f"  wanted {LOOP_RATIO_WANTED} times the first floor: {at_most(loop.ratio, LOOP_RATIO_WANTED)}"
    sizes = ", ".join(f"{size:,.0f} at {loops}" for loops, size in zip(*_left(runs), strict=True))
    verdict = at_most(max(runs.left.bytes_per_loop), LOOP_BYTES_WANTED)
    yield f"  bytes a loop on the disk: {sizes} loops; wanted {LOOP_BYTES_WANTED:,} at most: {verdict}"
    yield f"{others('durable_loop')}; LangGraph left {LANGGRAPH_BYTES_PER_LOOP:,} bytes a loop"
    yield ""
    yield "On the embedded store: many short runs at once (wall time, synced)"
    yield from table(runs.durable_runs)
    rate = per_second(runs.durable_runs[0].micros)
    floors = ", ".join(f"{figure.floor} {per_second(figure.floor_micros):,.0f}" for figure in runs.durable_runs[:2])
    yield (
        f"  {rate:,.0f} runs a second ({floors}); wanted {DURABLE_RUNS_PER_SECOND_WANTED:,}: "
        f"{at_least(rate, DURABLE_RUNS_PER_SECOND_WANTED)}"
    )
    yield others("durable_runs")
    yield ""
    yield "On the embedded store: reading a run back (CPU time)"
    yield from table([resume])
    yield f"  wanted {RESUME_MICROS_WANTED:,} µs: {at_most(resume.micros, RESUME_MICROS_WANTED)}"
    yield others("resume")


def _left(runs: Runs) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return runs.left.loops, runs.left.bytes_per_loop


def others(kind: str) -> str:
    """What others reached, on one line."""
    unit, reached = RUNS_ELSEWHERE[kind]
    told = ", ".join(f"{name} {figure:,}" for name, figure in reached.items())
    return f"  measured earlier and elsewhere, in {unit}: {told}"


def run_values(runs: Runs) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "many": figure_values(runs.many),
        "many_runs_per_second": per_second(runs.many.micros),
        "peak_bytes": {"ours": runs.peak.ours_bytes, "floor": runs.peak.floor_bytes},
        "durable_loop": [figure_values(figure) for figure in runs.durable_loop],
        "durable_bytes_per_loop": dict(zip(*_left(runs), strict=True)),
        "durable_runs": [figure_values(figure) for figure in runs.durable_runs],
        "durable_runs_per_second": per_second(runs.durable_runs[0].micros),
        "resume": figure_values(runs.resume),
        "cancel_ms": {latency.name: min(latency.taken) for latency in runs.cancels},
        "measured_elsewhere": {kind: dict(reached) for kind, (_, reached) in RUNS_ELSEWHERE.items()},
    }
