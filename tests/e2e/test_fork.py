"""Reopening a run as a user does: as a fork, from one of its turns, with a reason; and who may approve what."""

import json
from pathlib import Path

import pytest

from remit.assemble import os_user
from tests.e2e.command import Remit, remit_in

# Real processes.
pytestmark = pytest.mark.slow

TOOLS = '''
from pathlib import Path

from remit import tool

NOTES = Path(__file__).with_name("notes.txt")


@tool(effect="write", category="file_system")
def note(text: str) -> str:
    """Write a note."""
    with NOTES.open("a") as notes:
        notes.write(text + "\\n")
    return text
'''
CALL = {"tool_calls": [{"name": "note", "arguments": {"text": "one"}}]}


def notes(folder: Path) -> list[str]:
    """What was written."""
    path = folder / "notes.txt"
    return path.read_text().splitlines() if path.exists() else []


def ended(remit: Remit, *arguments: str) -> str:
    """A run that has written a note with a person's consent; gives its id."""
    remit.write(TOOLS, [CALL, {"text": "Done."}])
    run_id = str(remit.run_here(*arguments).values["run_id"])
    assert remit.here("approve", run_id, "--by", "ann").exit_code == 0
    return run_id


def endings(remit: Remit) -> dict[str, str]:
    """How every run has ended."""
    listed = [json.loads(line) for line in remit.here("runs", "--json").out.splitlines()]
    return {entry["run_id"]: entry["ending"] for entry in listed}


@pytest.mark.req("4.49")
def test_a_premature_success_is_reopened_with_a_reason_as_a_fork_and_keeps_its_ending(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        run_id = ended(remit)
        ending = endings(remit)[run_id]
        assert remit("signal", run_id, "retry").error_code == "NOT_RETRYABLE"
        again = remit("signal", run_id, "retry", "--reason", "the second note is missing")
        assert again.exit_code == 0
        shown = remit("show", "last").out
        assert f"fork of     {run_id}" in shown
        assert "the second note is missing" in shown
        assert endings(remit)[run_id] == ending
        assert notes(tmp_path) == ["one"]


@pytest.mark.req("4.49")
def test_a_fork_goes_on_from_a_turn_and_a_person_decides_what_the_run_has_done_since(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        run_id = ended(remit)
        forked = remit("fork", run_id, "--at", "0", "--why", "do it better", "--json")
        assert forked.exit_code == 3
        fork_id = forked.values["run_id"]
        asked = json.loads(remit("approvals", f"{fork_id}", "--json").out)
        assert asked["reasons"][0].startswith(f"run {run_id} called note with the same arguments in turn")
        assert notes(tmp_path) == ["one"]
        assert remit("approve", fork_id, "--by", "ann").exit_code == 0
        assert notes(tmp_path) == ["one", "one"]
        assert remit("verify", fork_id).exit_code == 0


def test_an_open_run_is_forked_and_stays_as_it_was(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [CALL, {"text": "Done."}])
        run_id = remit.run_here().values["run_id"]
        before = remit("show", run_id, "--json").out
        assert remit("fork", run_id).exit_code == 3
        assert remit("show", run_id, "--json").out == before
        assert len(remit("approvals", "--json").out.splitlines()) == 2
        assert notes(tmp_path) == []


@pytest.mark.parametrize("at", ["-1", "99", "4"])
def test_a_turn_that_a_run_cannot_be_forked_at_is_refused_with_a_code(tmp_path: Path, at: str) -> None:
    with remit_in(tmp_path) as remit:
        run_id = ended(remit)
        assert remit("fork", run_id, "--at", at).error_code == "FORK_INVALID"
        assert len(remit("runs", "--json").out.splitlines()) == 1


def test_a_run_that_nobody_knows_and_a_turn_that_is_no_number_are_refused(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        ended(remit)
        assert remit("fork", "nobody").error_code == "RUN_NOT_FOUND"
        assert remit("fork", "last", "--at", "two").exit_code == 2
        assert remit("fork", "last", "--by", "\u0430lice").error_code == "PERSON_INVALID"


def test_a_user_does_not_approve_what_they_asked_for_and_the_owner_of_the_store_does(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [CALL, {"text": "Done."}])
        remit.run_here("--user", "alice")
        for by, code in (
            ("alice", "SELF_APPROVAL"),
            ("ALICE", "SELF_APPROVAL"),
            ("\uff41lice", "SELF_APPROVAL"),
            ("a1ice", "NAME_CONFUSABLE"),
            ("\u0430lice", "PERSON_INVALID"),
            ("alice\u200b", "PERSON_INVALID"),
        ):
            assert remit("approve", "last", "--by", by).error_code == code
        assert notes(tmp_path) == []
        assert remit("approve", "last", "--by", "bob").exit_code == 0
        remit.run_here()
        assert remit("approve", "last").exit_code == 0
        assert notes(tmp_path) == ["one", "one"]


def test_who_asked_is_none_of_the_four_eyes_even_where_they_may_approve(tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text("name: strict\nself_approval: yes\ntools:\n  four_eyes: [file_system]\n")
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [CALL, {"text": "Done."}])
        remit.run_here("--boundary", str(tmp_path / "strict.yaml"))
        assert remit("approve", "last", "--by", os_user()).error_code == "SELF_APPROVAL"
        assert remit("approve", "last", "--by", "ann").exit_code == 3
        assert remit("approve", "last", "--by", os_user().upper()).error_code == "SELF_APPROVAL"
        assert remit("approve", "last", "--by", "bob").exit_code == 0
        assert notes(tmp_path) == ["one"]
