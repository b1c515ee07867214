"""A process is killed in the middle of a payment, another one goes on: the payment is made once, and the run proves it.

The model is scripted, so that this runs anywhere and always the same.

    python examples/kill_and_resume.py
"""

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path
from typing import Any

import remit
from remit import AgentLoop, tool

HERE = Path(__file__).resolve()
SCRIPT = """
replies:
  - tool_calls: [{name: pay, arguments: {to: ada, cents: 1500}}]
  - text: Ada has her 15.00.
"""


def is_booked(arguments: dict[str, Any], result: str) -> bool:
    """Whether the ledger holds the payment, whatever the function that made it says."""
    return f" {arguments['to']} {arguments['cents']}\n" in Path("ledger.txt").read_text()


@tool(effect="external", idempotent=True, verify=is_booked)
def pay(to: str, cents: int, idempotency_key: str) -> str:
    """Pay a person."""
    ledger = Path("ledger.txt")
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    if not any(line.startswith(idempotency_key) for line in lines):
        ledger.write_text("\n".join([*lines, f"{idempotency_key} {to} {cents}\n"]))
    if not Path("killed").exists():
        Path("killed").touch()
        time.sleep(60)  # The money is on its way, the answer is not there yet: now the process dies.
    return f"paid {cents} cents to {to}"


async def begin() -> None:
    """What the first process does: ask for the payment, have it approved, and be killed while it is made."""
    async with AgentLoop("scripted:pay.script.yaml", tools=[pay], home=Path("store")) as agent:
        asked = await agent.chat("Pay Ada 15.00.")
        assert asked.waiting_for is not None, "no payment is made without a permission"
        await agent.approve(asked.waiting_for.packet_ids[0], by="grace")


async def resume() -> None:
    """What the second process does: go on, and prove what happened."""
    async with remit.open("store") as system:
        run = (await system.archive.runs())[0].run_id
        response = await system.resume(run)
        print(f"resumed: {response.content}")
        print(f"as it was written: {(await system.archive.verify(run)).ok}")
        audit = await system.archive.replay(run)
        print(f"decided again: {audit.same} of {audit.turns} turns are the same")


def main() -> None:
    """Start the first process, kill it, and be the second."""
    Path("pay.script.yaml").write_text(SCRIPT)
    with subprocess.Popen([sys.executable, HERE, "begin"]) as process:  # noqa: S603  # this very file
        while not Path("killed").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    print("killed while it was paying")
    asyncio.run(resume())
    print(f"payments in the ledger: {len(Path('ledger.txt').read_text().splitlines())}")


if __name__ == "__main__":
    if sys.argv[1:] == ["begin"]:
        asyncio.run(begin())
    else:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            main()
