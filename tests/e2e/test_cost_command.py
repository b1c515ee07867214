"""`remit cost` of the installed command, over runs that real processes made."""

from pathlib import Path

import pytest

from tests.e2e.command import remit_in

pytestmark = pytest.mark.slow

TOOLS = '''
from remit import tool


@tool(effect="read")
def look(place: str) -> str:
    """Look."""
    return "nothing"
'''
CALL = {
    "tool_calls": [{"name": "look", "arguments": {"place": "x"}}],
    "usage": {"prompt_tokens": 3, "output_tokens": 2},
}
ANSWER = {"text": "Done.", "usage": {"prompt_tokens": 4, "output_tokens": 1}}


def test_what_runs_of_processes_cost_is_added_up_and_told(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [CALL, ANSWER])
        first, second = (str(remit.start_run().answer().values["run_id"]) for _ in range(2))
        (tmp_path / "prices.yaml").write_text("tool_call_microusd: 12300\n")
        said = remit("cost", "--prices", "prices.yaml")
        assert said.exit_code == 0
        lines = [line.split() for line in said.out.splitlines()]
        assert {tuple(line) for line in lines[1:3]} == {
            (run_id, "$0.0123", "7", "3", "1", "1") for run_id in (first, second)
        }
        assert lines[3] == ["total", "$0.0246", "14", "6", "2", "2"]
        assert said.out.endswith("cost per successful run, what failed included: $0.0123\n")
        by_tool = remit("cost", first, "--by", "tool", "--prices", "prices.yaml", "--json")
        assert [(row["name"], row["cost_microusd"]) for row in by_tool.values["rows"]] == [("look", 12_300), ("", 0)]


def test_a_folder_without_a_store_is_refused_and_none_is_made(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        said = remit("cost")
        assert (said.exit_code, said.error_code) == (1, "STORE_NOT_FOUND")
        assert not remit.home.exists()
