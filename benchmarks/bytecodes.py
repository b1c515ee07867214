"""How many bytecodes a tool loop takes: a figure that no busy machine disturbs.

The loop is spread over so many small steps that their number is its cost, near enough: of every hundred bytecodes saved,
the loop became about a microsecond faster. `python -m benchmarks.bytecodes` prints the number alone; it is counted in a
process of its own, since a trace function cannot share a process with a counter of coverage.
"""

import asyncio
import subprocess
import sys
from types import FrameType
from typing import Any

from benchmarks.stage import Stage

# The difference of two runs leaves out what a run costs that has no loop; the first ones let the interpreter settle.
_FEW, _MORE, _WARM = 20, 70, 50


def count_alone() -> int:
    """Bytecodes of one loop, counted in a fresh interpreter."""
    told = subprocess.run([sys.executable, "-m", "benchmarks.bytecodes"], check=True, capture_output=True).stdout
    return int(told)


def bytecodes_of_a_loop() -> int:
    """Bytecodes of one loop, rounded: most loops take exactly as many, one that grows a list some more."""
    with asyncio.Runner() as runner:
        stage = Stage()
        runner.run(stage.play(_WARM))
        few, more = (_counted(runner, stage, loops) for loops in (_FEW, _MORE))
    return round((more - few) / (_MORE - _FEW))


def _counted(runner: asyncio.Runner, stage: Stage, loops: int) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    async def play() -> None:
        sys.settrace(trace)
        # A task begins with frames of its own, which are traced from their first bytecode on.
        await asyncio.create_task(stage.play(loops))
        sys.settrace(None)

    runner.run(play())
    return count


if __name__ == "__main__":
    print(bytecodes_of_a_loop())
