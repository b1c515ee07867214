"""A guarded conversation of another program's agent is a run: killed, resumed, approved from elsewhere, verified, replayed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.e2e.command import COMMAND, PATIENCE_S, Remit

pytestmark = pytest.mark.slow

ANN, EVE, BOB = "ann@corp.example", "eve@evil.example", "bob@corp.example"


def parameters(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


MAIL = {
    "name": "send_mail",
    "description": "Sends a mail.",
    "parameters": parameters("to", "body"),
    "effect": "external",
    "control_args": {"to": "email"},
    "payload_args": ["body"],
    "asks": ["mail"],
    "repeat": "target",
}
NOTES = {
    "name": "read_notes",
    "description": "Reads the notes.",
    "parameters": parameters(),
    "effect": "read",
    "reads": "public",
}
START: dict[str, Any] = {
    "op": "start",
    "run": "my talk.1",
    "prompt": f"Mail {ANN} that the plan is ready.",
    "tools": [MAIL, NOTES],
    "boundary": {"authority": {"tripwire": False}},
}


class Host:
    """Another program's agent beside a guard process of its own."""

    def __init__(self, home: Path, *options: str) -> None:
        self.process = warm.Popen(
            [COMMAND, "guard", "--home", home, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, op: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"op": op, "run": START["run"], **fields}) + "\n")
        self.process.stdin.flush()

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.tell(op, **fields)
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def mail(self, call_id: str, to: str) -> dict[str, Any]:
        return self.ask("call", id=call_id, tool="send_mail", args={"to": to, "body": "The plan is ready."})

    def sent(self, call_id: str) -> None:
        self.tell("result", id=call_id, tool="send_mail", content="sent")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)

    def leave(self) -> None:
        self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0


def packets(remit: Remit) -> dict[str, str]:
    """The packets that wait, by the mailbox that their call is about, and by what they ask for."""
    listed = [json.loads(line) for line in remit("approvals", "--json").out.splitlines()]
    return {f"{one['purpose']} {one['arguments']['to']}": one["id"] for one in listed}


def test_a_guarded_conversation_is_killed_gone_on_with_approved_verified_and_replayed(tmp_path: Path) -> None:
    remit = Remit(tmp_path)
    host = Host(remit.home)
    assert host.ask("start", **{key: START[key] for key in ("prompt", "tools", "boundary")}) == {"ok": True}
    assert host.ask("call", id="c1", tool="read_notes", args={})["decision"] == "allow"
    host.tell("result", id="c1", tool="read_notes", content="The plan is ready.")
    assert host.mail("c2", ANN)["decision"] == "allow"
    held = host.mail("c3", EVE)
    assert (held["decision"], held["code"]) == ("ask", "PROVENANCE_UNBOUND")
    host.kill()

    # No process drives the run now; a person answers all the same.
    approved = remit("approve", packets(remit)[f"approval {EVE}"], "--by", "ann", "--json")
    assert approved.exit_code in (0, 3), approved

    host = Host(remit.home)
    others = {**START, "tools": [NOTES]}
    refused = host.ask(**others)
    assert (refused["ok"], refused["code"]) == (False, "GUARD_RUN_DIFFERS")
    assert host.ask(**START) == {"ok": True, "resumed": True}
    rival = Host(remit.home)
    assert rival.ask(**START)["code"] == "RUN_HELD"
    rival.leave()

    # What was approved meanwhile is made once, under whatever id it is asked for.
    assert host.mail("c9", EVE)["decision"] == "allow"
    host.sent("c9")
    assert host.mail("c10", EVE)["decision"] != "allow"
    # What was allowed before and has no result is in doubt, until its result comes after all.
    again = host.mail("c11", ANN)
    assert again["decision"] == "ask"
    assert any("nobody knows what it did" in reason for reason in again["reasons"])
    assert f"outcome {ANN}" in packets(remit)
    host.sent("c2")
    # A person answers in another process while this one drives the run.
    assert host.mail("c12", BOB)["decision"] == "ask"
    waiting = packets(remit)
    assert f"outcome {ANN}" not in waiting
    assert remit("approve", waiting[f"approval {BOB}"], "--by", "ann", "--json").exit_code in (0, 3)
    assert remit("reject", waiting[f"approval {ANN}"], "--by", "ann", "--json").exit_code in (0, 3)
    assert host.mail("c12", BOB)["decision"] == "allow"
    host.sent("c12")
    assert (host.mail("c13", ANN)["decision"], host.mail("c14", EVE)["decision"]) == ("refuse", "ask")
    assert host.ask("end") == {"ok": True}
    host.leave()

    listed = remit("runs", "--json").values
    run_id = listed["run_id"]
    assert (listed["listing"]["name"], listed["listing"]["mode"]) == (START["run"], "guard")
    assert START["run"] in remit("runs").out
    assert remit("verify", run_id).exit_code == 0
    replayed = remit("replay", run_id, "--json")
    assert (replayed.exit_code, replayed.values["verdict"]) == (0, "same"), replayed
    for command in ("show", "explain", "trace", "cost", "export", "queues", "approvals"):
        answer = remit(command, *((run_id,) if command not in ("queues", "approvals") else ()))
        assert (answer.exit_code, "Traceback" in answer.err) == (0, False), (command, answer)
    assert "PARTIAL_SUCCESS" in remit("show", run_id).out


def test_a_guard_in_memory_writes_nothing(tmp_path: Path) -> None:
    host = Host(tmp_path / "store", "--memory")
    assert host.ask(**START) == {"ok": True}
    assert host.mail("c", ANN)["decision"] == "allow"
    assert host.ask("end") == {"ok": True}
    host.leave()
    assert not list(tmp_path.iterdir())
