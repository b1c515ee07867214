"""The first request of a process: what it needs is loaded and compiled beside the event loop, which it does not hold up."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, re._compiler, sys

compiled, known = [], re._compiler.compile

def compile_noted(*given):
    compiled.append(given[0])
    return known(*given)

re._compiler.compile = compile_noted

import remit
from remit import AgentLoop, ScriptedEngine, kit_of

async def story(kind):
    if kind == "agent":
        async with AgentLoop(ScriptedEngine([{"text": "a"}]), home="store") as agent:
            return await counted(agent.chat("What is due?"))
    async with remit.open("store" if kind == "folder" else None, memory=kind == "memory") as system:
        await counted(system.run("What is due?", kit_of(ScriptedEngine([{"text": "a"}]), [])))

async def counted(work):
    before, loaded = len(compiled), set(sys.modules)
    await work
    print(len(compiled) - before, *sorted({name.partition(".")[0] for name in set(sys.modules) - loaded}))

asyncio.run(story(sys.argv[1]))
"""


def test_the_first_request_compiles_next_to_nothing_on_the_loop(tmp_path: Path) -> None:
    for kind in ("memory", "folder", "agent"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, kind], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        count, *loaded = done.stdout.split()
        assert int(count) <= 3, done.stdout
        assert [name for name in loaded if name not in ("remit", "encodings")] == [], "no package is loaded then"
