"""What other frameworks need for the same tool loop. Measured earlier, on another machine; no part of a run.

Two cores, everything in memory, 200 loops, CPU microseconds per loop. Machine, versions and method are not those of
this run, so the figures place a framework among others and prove no percentages.
"""

from types import MappingProxyType

BARE_ELSEWHERE_MICROS = 5

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
