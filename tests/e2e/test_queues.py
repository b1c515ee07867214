"""Queues with real processes: a webhook is followed until the user ends it, and what it decides is done."""

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.command import Remit, remit_in, until
from tests.unit.orchestrate.hooked import KEY, deciding, hooked

# Real processes.
pytestmark = pytest.mark.slow

TOOLS = '''
from pathlib import Path

from remit import tool

NOTES = Path(__file__).with_name("notes.txt")


@tool(effect="write", idempotent=True, category="file_system")
def note(text: str, idempotency_key: str) -> str:
    """Write a note."""
    with NOTES.open("a") as notes:
        notes.write(text + "\\n")
    return text
'''


def waiting(remit: Remit, *texts: str, boundary: str = "standard") -> str:
    """A run that wants to write notes; gives its id."""
    calls = [{"name": "note", "arguments": {"text": text}} for text in texts]
    remit.write(TOOLS, [{"tool_calls": calls}, {"text": "Done."}])
    return str(remit.run_here("--boundary", boundary).values["run_id"])


def notes(folder: Path) -> list[str]:
    """What was written."""
    path = folder / "notes.txt"
    return path.read_text().splitlines() if path.exists() else []


def test_a_webhook_that_is_followed_decides_each_item_once_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    with remit_in(tmp_path) as remit, hooked(deciding("approve")) as hook:
        first = waiting(remit, "one", "two")
        following = remit.start(
            "queues", "drain", "operator", "--webhook", hook.url, "--key-file", str(tmp_path / "key"), "--follow"
        )
        until(lambda: sorted(notes(tmp_path)) == ["one", "two"], "both calls were approved")
        second = waiting(remit, "three")
        until(lambda: "three" in notes(tmp_path), "a later call was approved")
        until(lambda: not remit.here("runs", "--open", "--json").out, "every run has ended")
        following.process.send_signal(signal.SIGTERM)
        assert following.answer().exit_code == 128 + signal.SIGTERM
        assert hook.signed == [True] * 3
        assert {values["item"]["run_id"] for values in hook.got} == {first, second}
        assert notes(tmp_path).count("three") == 1


def test_an_item_is_delivered_again_when_the_drain_died_before_it_remembered(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    words = ("queues", "drain", "operator", "--key-file", str(tmp_path / "key"), "--webhook")
    with remit_in(tmp_path) as remit:
        run_id = waiting(remit, "one")
        with hooked(lambda values: (500, b"")) as hook:
            drain = remit.start(*words, hook.url)
            until(lambda: hook.got, "it was sent once")
            drain.kill()
        with hooked() as again:
            assert remit(*words, again.url).exit_code == 0
        assert (again.got[0]["id"], again.got[0]["packet"]) == (hook.got[0]["id"], hook.got[0]["packet"])
        assert json.loads(remit.here("approvals", "--json").out)["run_id"] == run_id
        assert notes(tmp_path) == []


def test_two_different_people_must_approve_what_the_boundary_says_and_each_sees_who_did(tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text("name: strict\ntools:\n  four_eyes: [file_system]\n")
    with remit_in(tmp_path) as remit:
        waiting(remit, "one", boundary=str(tmp_path / "strict.yaml"))
        assert remit("approve", "last", "--by", "ann").exit_code == 3
        assert "approvals: 1 of 2 different people: ann" in remit("approvals", "--full").out
        assert remit("approve", "last", "--by", "ann").error_code == "ALREADY_APPROVED"
        assert notes(tmp_path) == []
        assert remit("approve", "last", "--by", "bob").exit_code == 0
        assert notes(tmp_path) == ["one"]


def test_an_acknowledgement_holds_across_processes(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [{"text": "Done."}])
        assert remit.run_here("--budget", "steps=1").exit_code == 4
        assert remit("queues", "ack", "last", "--by", "ann").exit_code == 0
        assert remit("queues", "ack", "last", "--by", "bob", "--json").values["by"] == "ann"
        assert remit("queues", "budget", "--json").out == ""
