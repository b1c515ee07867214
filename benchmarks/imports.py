"""Cold start: a fresh interpreter that imports a module or shows its help, against one that does nothing."""

import resource
import subprocess
import sys
import time

from benchmarks.measure import MICROS_PER_SECOND, Effort, Figure
from benchmarks.whole import Spent, cpu_figure, wall_figure

MODULES = ("remit", "remit.agents", "remit.kernel.decide", "remit.orchestrate.loop.runner")
HELP = "remit --help"

NOTHING = ("-c", "pass")
# What is started, and what the interpreter is told to do.
STARTS = {**{f"import {module}": ("-c", f"import {module}") for module in MODULES}, HELP: ("-m", "remit", "--help")}

# Milliseconds of the clock on the wall.
WANTED_MS = {"import remit": 100, HELP: 200}


def measure_imports(effort: Effort) -> tuple[list[Figure], list[Figure]]:
    """CPU and wall microseconds of interpreters, start and end included. The floor takes its turn with the others."""
    orders = [NOTHING, *STARTS.values()]
    for order in orders:
        spent_by_interpreter(order)  # Whatever was never compiled to bytecode is now.
    repeats = [[spent_by_interpreter(order) for order in orders] for _ in range(effort.import_repeats)]
    nothing, *columns = list(zip(*repeats, strict=True))
    named = list(zip(STARTS, columns, strict=True))
    floor = "python -c pass"
    return (
        [cpu_figure(name, taken, floor, nothing, 1) for name, taken in named],
        [wall_figure(name, taken, floor, nothing, 1) for name, taken in named],
    )


def spent_by_interpreter(order: tuple[str, ...]) -> Spent:
    """One interpreter from start to end, in its own code and in the system's."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *order], check=True, stdout=subprocess.DEVNULL)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(cpu * MICROS_PER_SECOND, (ended - began) * MICROS_PER_SECOND)
