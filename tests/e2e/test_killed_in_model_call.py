"""The installed command is killed while its model is being asked; `remit resume` asks again, and nothing counts twice."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Remit, remit_in, until

pytestmark = pytest.mark.slow

TOOLS = '''
"""A tool that notes each call."""

from pathlib import Path
from typing import Literal

from remit import tool

LEDGER = Path(__file__).with_name("ledger")


@tool(effect="read")
def look() -> Literal["seen"]:
    """Look at the order."""
    with LEDGER.open("a") as ledger:
        ledger.write("look\\n")
    return "seen"
'''
# Long enough to be killed in, short enough to be waited for.
DELAY_MS = 1_500
REPLIES: list[dict[str, Any]] = [
    {"tool_calls": [{"name": "look", "arguments": {}}]},
    {"text": "It is there.", "delay_ms": DELAY_MS},
]


def _looked(remit: Remit) -> int:
    ledger = remit.folder / "ledger"
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def test_a_model_that_was_being_asked_is_asked_again_and_charged_once(tmp_path: Path) -> None:
    with remit_in(tmp_path / "whole") as whole:
        whole.write(TOOLS, REPLIES)
        undisturbed = whole.run_here().values
    with remit_in(tmp_path / "killed") as remit:
        remit.write(TOOLS, REPLIES)
        running = remit.start_run()
        run_id = remit.open_run()
        # The answer of its first call is written, so the second one is under way.
        until(lambda: remit.here("runs", "--json").values["turns"] == 3, "the tool has returned")
        running.kill()
        resumed = remit("resume", run_id)
        assert (resumed.exit_code, resumed.out) == (0, "It is there.\n"), resumed
        assert "taken up after turn 2: mutating effects executed twice 0, safe calls repeated 1" in resumed.err
        again = remit.here("show", run_id, "--json").values
        assert _looked(remit) == 1, "what was done before is not done again"
        assert again["response"]["token_usage"] == undisturbed["token_usage"], "no token counts twice"
        assert remit.here("runs", "--json").values["turns"] == 4
