"""A run that has spent its steps or its time waits, a person releases more, and it goes on: as a user sees it."""

from pathlib import Path

import pytest

from tests.e2e.command import remit_in

TOOLS = '''
from remit import tool


@tool(effect="read")
def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"
'''
LOOKS = [{"tool_calls": [{"name": "look", "arguments": {"page": page}}]} for page in range(3)]


def boundary(folder: Path, text: str) -> str:
    """A boundary in a file; gives its path."""
    path = folder / "b.yaml"
    path.write_text(f"name: b\nself_approval: false\n{text}")
    return str(path)


@pytest.mark.req("4.29")
def test_a_run_that_has_spent_its_steps_waits_and_goes_on_with_what_is_released(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [*LOOKS, {"text": "Read."}])
        rules = boundary(tmp_path, "budget: {steps: 4, release_by: [ann], exhaustion: {steps: ask}}\n")
        assert remit.run_here("--boundary", rules).exit_code == 3
        (row,) = [one for one in remit.here("queues").out.splitlines() if one.startswith("budget")]
        assert row.split()[1] == "1"
        shown = remit.here("approvals").out
        assert "steps is spent: 4 were given. Release 2 more?" in shown
        assert remit.here("approve", "last", "--by", "bob").error_code == "NOT_RELEASING"
        exits = [remit.here("approve", "last", "--by", "ann").exit_code for _ in range(3)]
        assert exits == [3, 3, 0]
        assert "steps                   9 of 4, 6 released" in remit.here("show", "last").out


@pytest.mark.req("4.29")
def test_a_run_whose_time_is_up_waits_however_long_that_takes_and_goes_on(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [{**LOOKS[0], "delay_ms": 1_200}, {"text": "Read."}])
        rules = boundary(tmp_path, "budget: {wall_clock: 1s, exhaustion: {wall_clock_ms: ask}}\n")
        assert remit.run_here("--boundary", rules).exit_code == 3
        assert "wall_clock_ms is spent: 1000 were given" in remit.here("approvals").out
        assert remit.here("approve", "last", "--by", "ann").exit_code == 0


@pytest.mark.req("4.29")
def test_what_nobody_releases_ends_as_exhausted(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [*LOOKS, {"text": "Read."}])
        rules = boundary(tmp_path, "budget: {steps: 4, exhaustion: {steps: ask}}\n")
        remit.run_here("--boundary", rules)
        assert remit.here("reject", "last", "--by", "ann").exit_code == 4
        assert "BUDGET_EXHAUSTED" in remit.here("show", "last").out


@pytest.mark.req("4.29")
def test_a_call_beyond_its_cap_is_released_by_those_alone_whom_the_boundary_names(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [*LOOKS[:2], {"text": "Read."}])
        rules = boundary(tmp_path, "budget: {tool_calls: 1, release_by: [carla], exhaustion: {tool_calls: ask}}\n")
        assert remit.run_here("--boundary", rules).exit_code == 3
        assert "carla, and no other person" in remit.here("approvals", "--full").out
        assert remit.here("approve", "last", "--by", "mallory").error_code == "NOT_RELEASING"
        assert remit.here("approve", "last", "--by", "carla").exit_code == 0
        assert "2 of 1 tool_calls [1 released]" in remit.here("explain", "last").out


@pytest.mark.req("4.29")
def test_what_a_profile_lacks_for_its_first_words_is_asked_for_once(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [{"text": "Hello."}])
        rules = ("--boundary", "research_assistant", "--budget", "input_tokens=20")
        assert remit.run_here(*rules).exit_code == 3
        assert "for last words. Release" in remit.here("approvals").out
        assert remit.here("approve", "last", "--by", "ann").exit_code == 0
