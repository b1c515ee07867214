"""The example that shows an agent runs as it stands, and shows what it promises."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent_loop.py"


def test_the_example_of_an_agent_runs_and_tells_the_whole_conversation(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-5:] == [
        "    system: You answer for the support desk.",
        "      user: Where is order 42?",
        " assistant: Order 42, a tea set, was delivered.",
        "      user: It arrived broken. I want my money back.",
        " assistant: You get 129.00 back.",
    ]
    assert "  [refund] paid back 12900 cents for order 42" in done.stdout
