"""Import time: a fresh interpreter that imports a module, against one that does nothing."""

import resource
import subprocess
import sys

from benchmarks.measure import MICROS_PER_SECOND, Effort, Figure

MODULES = ("remit", "remit.kernel.decide", "remit.orchestrate.runner")
NOTHING = "pass"


def measure_imports(effort: Effort) -> list[Figure]:
    """CPU microseconds of interpreters, start and end included. The floor takes its turn with the others."""
    statements = [NOTHING, *(f"import {module}" for module in MODULES)]
    for statement in statements:
        micros_of_interpreter(statement)  # Whatever was never compiled to bytecode is now.
    repeats = [[micros_of_interpreter(statement) for statement in statements] for _ in range(effort.import_repeats)]
    nothing, *columns = list(zip(*repeats, strict=True))
    return [
        Figure(f"import {module}", "python -c pass", taken, nothing)
        for module, taken in zip(MODULES, columns, strict=True)
    ]


def micros_of_interpreter(statement: str) -> float:
    """CPU time of one interpreter from start to end, in its own code and in the system's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * MICROS_PER_SECOND
