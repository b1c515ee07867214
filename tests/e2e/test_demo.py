"""The demo plays to its end with nobody at the keyboard."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["run", "approvals", "approve", "trace", "explain", "verify", "replay"]


def test_the_demo_pauses_is_approved_in_the_name_of_demo_and_is_proven() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "demo.py")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    typed = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ remit ")]
    assert typed == COMMANDS
    assert "waits for a person: CONFIRM_REQUIRED" in done.stderr
    assert "plays the person, as identity `demo`" in done.stdout
    assert "ApprovalGiven command_id=3.2 by=demo" in done.stdout
    assert "is as it was written" in done.stdout
    assert "replayed as same" in done.stdout
