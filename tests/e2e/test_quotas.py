"""Quotas between real processes: together they never reserve more than there is, and a dead one's run keeps its part."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from remit.core.failure import EXIT_OK, EXIT_STOPPED
from tests import warm
from tests.e2e.command import PATIENCE_S, Remit, remit_in, until
from tests.e2e.house import calls

QUOTA = 1_000
# Tools that note that they are at work, and go on when there is a file named `gate`.
TOOLS = """
import time
from pathlib import Path
from remit import tool

HERE = Path(__file__).parent

@tool(effect="read")
def look() -> str:
    \"\"\"Look, when the gate is open.\"\"\"
    (HERE / "looking").touch()
    deadline_s = time.monotonic() + 60
    while not (HERE / "gate").exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    return "seen"
"""
# Submits runs that wait for a person, one after the other, until it is refused; tells the cap of each.
SUBMITTER = """
import asyncio, json, sys, time
from pathlib import Path
from remit import Budget, SystemRequest
from remit.assemble import Settings, opened_system
from remit.core.failure import RequestRejected
from remit.core.run.messages import user_message
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import pinned
from remit.agents.terms import kit_of
from remit.orchestrate.setup.kit import Terms
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry

@tool(effect="write", idempotent=True)
def keep(text: str) -> str:
    \"\"\"Keep a text.\"\"\"
    return text

home = Path(sys.argv[1])
kit = kit_of(ScriptedEngine([{"tool_calls": [{"name": "keep", "arguments": {"text": "x"}}]}]), Registry([keep]))
request = SystemRequest((user_message("Keep x."),), tenant_id="acme")

async def main():
    caps = []
    async with opened_system(Settings(home)) as system:
        print("ready", flush=True)
        while not (home / "gate").exists():
            await asyncio.sleep(0.001)
        try:
            while len(caps) < 1000:
                run_id = await system.submit(request, kit, Terms(budget=Budget(output_tokens=30)))
                caps.append(pinned(await system.state_of(run_id)).caps[1])
        except RequestRejected as error:
            print(json.dumps({"caps": caps, "code": error.code, "details": error.details}), flush=True)

asyncio.run(main())
"""


@pytest.fixture
def remit(tmp_path: Path) -> Iterator[Remit]:
    with remit_in(tmp_path) as remit:
        yield remit


def allow(remit: Remit, tenant: str, **caps: int) -> None:
    remit.home.mkdir(exist_ok=True)
    entry = {"tenant": tenant, "period": "total", "caps": caps}
    (remit.home / "quotas.yaml").write_text(yaml.safe_dump({"quotas": [entry]}))


def standing(remit: Remit) -> tuple[int, int, int]:
    """What is spent, reserved and left, as the command tells it."""
    at = remit.here("quotas", "--json").values
    return at["spent"], at["reserved"], at["left"]


@pytest.mark.slow
@pytest.mark.req("4.10")
def test_two_processes_that_submit_at_once_never_reserve_more_than_there_is(remit: Remit) -> None:
    allow(remit, "acme", output_tokens=QUOTA)
    rivals = [
        warm.Popen([sys.executable, "-c", SUBMITTER, str(remit.home)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for rival in rivals:
        assert rival.stdout is not None
        assert rival.stdout.readline() == "ready\n"
    (remit.home / "gate").touch()
    told = [json.loads(rival.communicate(timeout=PATIENCE_S)[0]) for rival in rivals]
    caps = [cap for one in told for cap in one["caps"]]
    assert sum(caps) == QUOTA
    # All but the last, which got the rest, have what they asked for.
    assert sorted(caps) == [QUOTA % 30, *[30] * (QUOTA // 30)]
    assert [one["code"] for one in told] == ["QUOTA_EXHAUSTED"] * 2
    assert all(one["details"]["reserved"] == QUOTA for one in told)
    assert standing(remit) == (0, QUOTA, 0)


def said(output_tokens: int) -> dict[str, object]:
    return {"text": "Done.", "usage": {"prompt_tokens": 5, "output_tokens": output_tokens}}


@pytest.mark.slow
def test_the_run_of_a_killed_process_keeps_its_part_until_it_is_resumed_and_has_ended(remit: Remit) -> None:
    allow(remit, "*", output_tokens=QUOTA)
    called = {**calls("look"), "usage": {"prompt_tokens": 5, "output_tokens": 7}}
    remit.write(TOOLS, [called, said(20)])
    running = remit.start_run("--budget", "output_tokens=900")
    until((remit.folder / "looking").exists, "the tool is at work")
    running.kill()
    assert standing(remit) == (0, 900, 100)
    # What is left goes to the next run, and after that no run may begin.
    remit.write(replies=[said(100)])
    assert remit.run_here().exit_code == EXIT_OK
    assert standing(remit) == (100, 900, 0)
    refused = remit.run_here()
    assert (refused.exit_code, refused.error_code) == (EXIT_STOPPED, "QUOTA_EXHAUSTED")
    (remit.folder / "gate").touch()
    remit.write(replies=[called, said(20)])
    (run_id,) = [json.loads(line)["run_id"] for line in remit.here("runs", "--open", "--json").out.splitlines()]
    assert remit("resume", run_id, "--accept-tools", "--json").exit_code == EXIT_OK
    assert standing(remit) == (127, 0, QUOTA - 127)
