"""A program may simply exit while a tool blocks: without a word, unless it logs."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, logging, sys, time
from remit import AgentLoop, ScriptedEngine, tool

{logging}

@tool(effect="read", network=False)
def slow(x: str) -> str:
    "Take long."
    time.sleep(5)
    return x

async def main():
    replies = [{{"tool_calls": [{{"name": "slow", "arguments": {{"x": "a"}}}}]}}, {{"text": "ok"}}]
    agent = AgentLoop(ScriptedEngine(replies), tools=[slow], home=sys.argv[1])
    await agent.start("go")
    await asyncio.sleep(0.3)

asyncio.run(main())
"""


@pytest.mark.parametrize("is_logging", [False, True])
def test_a_program_that_exits_while_a_tool_blocks_is_silent_unless_it_logs(is_logging: bool, tmp_path: Path) -> None:
    program = PROGRAM.format(logging="logging.basicConfig(level=logging.WARNING)" if is_logging else "")
    told = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    # The interpreter's own word on a step that took longer than a tenth of a second, as any does on a busy machine.
    lines = [line for line in told.stderr.splitlines() if not line.startswith("Executing <")]
    assert any("slow" in line for line in lines) is is_logging
    assert is_logging or lines == []
