"""Every example runs as it stands, and shows what it promises."""

import sys
from pathlib import Path

import pytest

from tests import warm

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def shown_by(example: str, folder: Path) -> list[str]:
    """What an example prints; it complains about nothing."""
    command = [sys.executable, str(EXAMPLES / example)]
    done = warm.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    said: list[str] = done.stdout.splitlines()
    return said


def test_every_script_is_run_by_a_test_of_this_file() -> None:
    # The tools of the script for `remit run` are no script; the web server is tried by test_web_server.py.
    scripts = {path.name for path in EXAMPLES.glob("*.py")} - {"support_tools.py", "web_server.py"}
    assert scripts == {"agent_loop.py", "kill_and_resume.py", "local_model.py", "orders.py", "plan.py", "redundant.py"}


def test_the_agent_tells_the_whole_conversation(tmp_path: Path) -> None:
    shown = shown_by("agent_loop.py", tmp_path)
    assert shown[-5:] == [
        "    system: You answer for the support desk.",
        "      user: Where is order 42?",
        " assistant: Order 42, a tea set, was delivered.",
        "      user: It arrived broken. I want my money back.",
        " assistant: You get 129.00 back.",
    ]
    assert "  [refund] paid back 12900 cents for order 42" in shown


def test_a_killed_payment_is_made_once(tmp_path: Path) -> None:
    assert shown_by("kill_and_resume.py", tmp_path) == [
        "killed while it was paying",
        "resumed: Ada has her 15.00.",
        "as it was written: True",
        "decided again: 5 of 5 turns are the same",
        "payments in the ledger: 1",
    ]


def test_a_killed_run_with_orders_does_exactly_what_was_ordered_behind_hostile_mail(tmp_path: Path) -> None:
    assert shown_by("orders.py", tmp_path) == [
        '1. send_mail to="bob@corp.example" (find_user {"name":"Bob"}.email where name = "Bob")',
        "   body: FREE TEXT from read_mail (nothing fixes its words)",
        "killed while it was reading",
        "find_user committed",
        "read_mail committed",
        "send_mail refused PERMISSION_DENIED",
        "send_mail committed",
        "send_mail is order 1 of 1, confirmed by ada",
        "decided again: 12 of 12 turns are the same",
        "sent: bob@corp.example: Lunch is at noon.",
    ]


@pytest.mark.req("2.18")
def test_the_plan_finds_answers_is_corrected_and_asks_before_it_files(tmp_path: Path) -> None:
    assert shown_by("plan.py", tmp_path) == [
        "    find: ['kettle.md', 'teapot.md']",
        "   order: ['kettle.md', 'teapot.md']",
        "  answer: Every month, with citric acid [1].",
        "   cited: Every month, with citric acid [1].",
        "    note: {'title': 'kettle', 'text': 'Every month, with citric acid [1].'}",
        "  stands: waits for a person",
        "  output: filed 'kettle': Every month, with citric acid [1].",
        "  stands: SUCCESS",
    ]


def test_the_vote_names_its_winner_and_what_happens_without_one(tmp_path: Path) -> None:
    assert shown_by("redundant.py", tmp_path) == [
        'winner:     {"sentiment":"positive"}',
        "confidence: 67% by voting",
        'candidates: {"sentiment":"positive"}, {"sentiment":"negative"}, {"sentiment":"positive"}',
        "unanimity:  ORCHESTRATION_NO_CONSENSUS: unanimity voting: candidate 1 differs from candidate 0",
        'early stop: 4 of 5 asked, {"sentiment":"positive"}',
    ]


@pytest.mark.model
def test_the_local_model_calls_the_tool_that_is_asked_for(tmp_path: Path) -> None:
    shown = shown_by("local_model.py", tmp_path)
    assert [line for line in shown if line.startswith("  [")] == ["  [stock] 3", "  [price] 129 euros"]
