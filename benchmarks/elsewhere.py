"""What other frameworks reach with the same work. Measured earlier, on another machine; no part of a run.

Two cores. Machine, versions and method are not those of this run, so the figures place a framework among others and
prove no percentages.
"""

from collections.abc import Mapping
from types import MappingProxyType

BARE_ELSEWHERE_MICROS = 5

# CPU microseconds per tool loop, everything in memory, 200 loops.
MEASURED_ELSEWHERE_MICROS = MappingProxyType(
    {
        "a bare asyncio loop": BARE_ELSEWHERE_MICROS,
        "Agno": 214,
        "Microsoft's framework": 276,
        "Burr": 1_231,
        "LangGraph": 1_758,
        "Pydantic AI": 4_435,
        "OpenAI Agents": 8_668,
    }
)

Others = Mapping[str, float]

# Whole runs, by what was measured: a unit, and what each reached.
RUNS_ELSEWHERE: Mapping[str, tuple[str, Others]] = MappingProxyType(
    {
        "many": ("runs/s", {"bare": 35_000, "Burr": 1_275, "Agno": 680, "LangGraph": 88}),
        "durable_loop": ("µs CPU", {"bare FULL": 219, "DBOS": 4_171, "LangGraph": 10_286}),
        "durable_runs": ("runs/s", {"bare FULL": 59, "bare grouped": 4_096, "Burr": 307}),
        "resume": ("ms", {"bare": 0.9, "Burr": 2.3}),
        "cold": ("ms CPU", {"Burr": 93, "LangGraph": 1_580}),
    }
)
# LangGraph left 361,000 bytes on the disk for each loop at 500 loops, and more with every further one.
LANGGRAPH_BYTES_PER_LOOP = 361_000
