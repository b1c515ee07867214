"""The demo behind `make run`: a scripted agent wants to pay money back, a person decides, the run is proven.

Every command is printed before it is typed, in a store that is gone afterwards. Without a terminal the demo plays the
person, as identity `demo`, and says so. It ends with 0 only if every command did what it should.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
REMIT = Path(sys.executable).with_name("remit")

PROMPT = "Refund order 42, it arrived broken."
SCRIPT, TOOLS = "examples/support.script.yaml", "examples/support_tools.py"
SUCCESS, FAILED, WAITING, STOPPED = 0, 1, 3, 4


class Desk:
    """Types commands in a store of its own, and counts those that did not end as they should."""

    def __init__(self, folder: Path) -> None:
        self._environment = {
            **os.environ,
            "REMIT_HOME": str(folder / "store"),
            "SUPPORT_LEDGER": str(folder / "ledger.sqlite"),
        }
        self.failures = 0

    def type(self, *words: str, expected: Collection[int] = (SUCCESS,)) -> None:
        """Print a command, then run it."""
        print(f"\n$ {shlex.join(['remit', *words])}", flush=True)
        code = subprocess.run([REMIT, *words], cwd=ROOT, env=self._environment, check=False).returncode
        if code not in expected:
            print(f"exit code {code} where {' or '.join(map(str, expected))} was expected", flush=True)
            self.failures += 1


def main() -> int:
    """Play it; gives the exit code."""
    with TemporaryDirectory(prefix="remit-demo-") as folder:
        desk = Desk(Path(folder))
        print("An agent may look orders up by itself, and pay money back only when a person approves.")
        desk.type("run", PROMPT, "--engine", f"scripted:{SCRIPT}", "--tools", TOOLS, expected=(WAITING,))
        desk.type("approvals")
        decide(desk)
        desk.type("trace", "last")
        desk.type("explain", "last")
        desk.type("verify", "last")
        desk.type("replay", "last")
        print("\nThe run was paused, decided, verified and replayed." if not desk.failures else "\nThe demo failed.")
        return min(desk.failures, 1)


def decide(desk: Desk) -> None:
    """Let the person at the terminal decide; without one, approve in their place."""
    if not sys.stdin.isatty():
        print("\nNobody is at a terminal, so the demo plays the person, as identity `demo`, and approves.")
        desk.type("approve", "last", "--by", "demo")
    elif is_approved():
        desk.type("approve", "last")
    else:
        # A refused effect is not a success, and it must not be: the agent was stopped by a person.
        desk.type("reject", "last", "--reason", "not today", expected=(FAILED, STOPPED))


def is_approved() -> bool:
    """Whether the person says yes; silence is refusal."""
    try:
        return input("\nApprove the refund? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(main())
