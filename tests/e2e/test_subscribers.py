"""A run of another process is followed through kill -9 of its driver and of its watchers, without gap and without duplicate."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.codec import decode_turn
from tests import warm
from tests.e2e.command import PATIENCE_S
from tests.tidy.source import ROOT

pytestmark = pytest.mark.slow

LOOPS = 15

TOOLS = '''
from remit import tool


@tool(effect="read", network=False)
def look(n: int) -> int:
    """Look at a number."""
    return n
'''

# Drives a run, or goes on with all that are open.
DRIVER = """
import asyncio, sys
from remit.adapters.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

# Says the cursor of every turn that it hears of, once it was heard.
WATCHER = """
import asyncio, json, sys
import remit

async def main(home, since, run_id):
    async with remit.open(home) as system:
        subject = remit.Subject(run_id) if run_id else remit.Subject(children=True)
        async for event in system.subscribe(subject, since=since if ":" in since else int(since)):
            print(json.dumps([event.run_id, event.seq, event.cursor]), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def started(code: str, *arguments: str, home: Path) -> "subprocess.Popen[str]":
    environment = {"REMIT_HOME": str(home), "PATH": "", "HOME": str(home.parent)}
    return warm.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=home.parent,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def heard(watcher: "subprocess.Popen[str]", count: int) -> list[tuple[str, int, str]]:
    """The next turns that a watcher tells."""
    assert watcher.stdout is not None
    # A watcher that hears nothing for so long is ended, and its silence fails the test.
    patience = Timer(PATIENCE_S, watcher.kill)
    patience.start()
    try:
        lines = [watcher.stdout.readline() for _ in range(count)]
    finally:
        patience.cancel()
    return [tuple(json.loads(line)) for line in lines]


async def written(home: Path, run_id: str) -> list[bytes]:
    store = EmbeddedStore.open(home)
    try:
        return list(await store.journal.read(run_id))
    finally:
        await store.close()


def killed(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)


def test_watchers_and_drivers_are_killed_and_nothing_is_heard_twice_or_never(tmp_path: Path) -> None:
    home = tmp_path / "store"
    (tmp_path / "tools.py").write_text(TOOLS)
    replies = [{"tool_calls": [{"name": "look", "arguments": {"n": n}}], "delay_ms": 100} for n in range(LOOPS)]
    (tmp_path / "script.json").write_text(json.dumps({"replies": [*replies, {"text": "done"}]}))
    run = ("run", "look", "--engine", "scripted:script.json", "--tools", "tools.py", "--budget", "tool_calls=100")
    driver = started(DRIVER, *run, "--budget", "steps=400", "--json", home=home)
    told: list[tuple[str, int, str]] = []
    # Who follows everything comes first, is killed after a while, and goes on from its last cursor.
    watcher = started(WATCHER, str(home), "-1", "", home=home)
    told += heard(watcher, 10)
    killed(watcher)
    killed(driver)
    run_id = told[0][0]
    alone = started(WATCHER, str(home), "3", run_id, home=home)
    one_run = heard(alone, 4)
    killed(alone)
    again = started(WATCHER, str(home), one_run[-1][2], run_id, home=home)
    watcher = started(WATCHER, str(home), told[-1][2], "", home=home)
    driver = started(DRIVER, "resume", "--all", "--json", home=home)
    out, _ = driver.communicate(timeout=PATIENCE_S)
    assert json.loads(out.splitlines()[-1])["terminal_code"] == "SUCCESS"
    turns = asyncio.run(written(home, run_id))
    assert len(turns) > 2 * LOOPS
    told += heard(watcher, len(turns) - len(told))
    one_run += heard(again, len(turns) - 4 - len(one_run))
    for process in (watcher, again):
        killed(process)
    assert [seq for _, seq, _ in told] == [decode_turn(data).seq for data in turns] == list(range(len(turns)))
    assert [seq for _, seq, _ in one_run] == list(range(4, len(turns)))
    # What the killed ones left in the store is gone with the first ring, or harms no process.
    assert {path.name.split(".")[0] for path in (home / "bells").iterdir()} <= {"turns", "chunks", "post"}
