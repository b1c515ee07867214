"""`remit guard` as a process beside another program's agent: runs side by side, each line answered before the next."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.e2e.command import COMMAND, PATIENCE_S

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[2] / "docs" / "guard.md"
TOOL = {
    "name": "send_mail",
    "description": "Sends a mail.",
    "parameters": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
        "required": ["to", "body"],
    },
    "effect": "external",
    "control_args": {"to": "email"},
    "payload_args": ["body"],
    "asks": ["mail"],
}


class Process:
    """The command under way, asked line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    def tell(self, line: str) -> None:
        self._in.write(line + "\n")
        self._in.flush()

    def ask(self, operation: Any) -> dict[str, Any]:
        self.tell(operation if isinstance(operation, str) else json.dumps(operation))
        answer: dict[str, Any] = json.loads(self._out.readline())
        return answer


@contextmanager
def guarding(home: Path) -> Iterator[Process]:
    with warm.Popen(
        [COMMAND, "guard", "--ndjson", "--home", home],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield Process(process)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == ""


def mail(run: str, to: str, call_id: str) -> dict[str, Any]:
    args = {"to": to, "body": "All is well."}
    return {"op": "call", "run": run, "id": call_id, "tool": "send_mail", "args": args}


def test_two_runs_side_by_side_are_judged_by_their_own_words(tmp_path: Path) -> None:
    people = {"one": "ann@corp.example", "two": "bob@corp.example"}
    with guarding(tmp_path / "store") as guard:
        for run, person in people.items():
            prompt = f"Mail {person} that all is well."
            assert guard.ask({"op": "start", "run": run, "prompt": prompt, "tools": [TOOL]}) == {"ok": True}
        assert guard.ask(mail("one", people["two"], "a"))["decision"] == "ask"
        assert guard.ask(mail("two", people["two"], "a"))["decision"] == "allow"
        assert guard.ask(mail("one", people["one"], "b"))["code"] == "TRIPPED"
        guard.tell(json.dumps({"op": "result", "run": "two", "id": "a", "tool": "send_mail", "content": "sent"}))
        assert guard.ask("nonsense")["code"] == "GUARD_LINE_INVALID"
        for call_id, approve in (("a", False), ("b", True)):
            answer = {"op": "answer", "run": "one", "id": call_id, "approve": approve, "by": "ann"}
            assert guard.ask(answer) == {"ok": True}
        assert guard.ask(mail("two", people["two"], "c"))["code"] == "REPEAT"
        for run in people:
            assert guard.ask({"op": "end", "run": run}) == {"ok": True}


def test_the_session_in_the_guide_is_answered_as_the_guide_says(tmp_path: Path) -> None:
    block = re.search(r"```ndjson\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    asked = 0
    with guarding(tmp_path / "store") as guard:
        waiting = ""
        for line in block[1].splitlines():
            if line.startswith("> "):
                if waiting:
                    guard.tell(waiting)
                waiting = line.removeprefix("> ")
            else:
                answer, shown = guard.ask(waiting), json.loads(line.removeprefix("< "))
                assert {key: answer[key] for key in shown} == shown
                waiting, asked = "", asked + 1
    assert asked >= 6


def test_the_program_in_the_guide_makes_only_the_calls_that_it_may(tmp_path: Path) -> None:
    block = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    program: dict[str, Any] = {}
    exec(block[1], program)  # the example of the guide, as a reader would run it
    guard = program["Guard"]((str(COMMAND), "guard", "--ndjson", "--home", str(tmp_path / "store")))
    made: list[str] = []
    asked: list[str] = []

    def send_mail(to: str, body: str) -> str:
        made.append(to)
        return "sent"

    def call(call_id: str, to: str, *, yes: bool) -> Any:
        def ask_person(name: str, args: dict[str, Any], verdict: dict[str, Any]) -> bool:
            asked.append(args["to"])
            return yes

        args = {"to": to, "body": "All is well."}
        return program["call_tool"](guard, "r", call_id, "send_mail", args, {"send_mail": send_mail}, ask_person)

    with guard.process as process:
        guard.ask(op="start", run="r", prompt="Mail ann@corp.example that all is well.", tools=[TOOL])
        assert call("a", "ann@corp.example", yes=False) == "sent"
        assert call("b", "eve@evil.example", yes=False) == "not allowed: PROVENANCE_UNBOUND"
        assert call("c", "bob@corp.example", yes=True) == "sent"
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
    assert (made, asked) == (["ann@corp.example", "bob@corp.example"], ["eve@evil.example", "bob@corp.example"])


def test_who_stops_reading_ends_the_guard(tmp_path: Path) -> None:
    with (
        subprocess.Popen(["yes", '{"op": "end", "run": "r"}'], stdout=subprocess.PIPE) as endless,
        warm.Popen(
            [COMMAND, "guard", "--home", tmp_path / "store"],
            stdin=endless.stdout,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert endless.stdout is not None
        assert process.stdout is not None
        assert process.stderr is not None
        endless.stdout.close()
        assert json.loads(process.stdout.readline())["code"] == "GUARD_RUN_UNKNOWN"
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""
        endless.wait(PATIENCE_S)
