"""A key that stands twice in JSON means two things to two readers. Wherever a user hands JSON in, it is refused by its name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import EXIT_OK, EXIT_WAITING, ErrorCode
from tests.e2e.command import Remit, remit_in
from tests.e2e.house import calls, says
from tests.e2e.test_guard_cli import TOOL, guarding

EXIT_USAGE = 2
TWICE = "'{}' stands twice"

TOOL_FILE = """
from remit import tool

@tool(effect="external", destructive=True, verify=lambda arguments, result: arguments["to"] in result)
def send(to: str) -> str:
    \"\"\"Send something.\"\"\"
    return f"sent to {to}"
"""


@pytest.fixture
def remit(tmp_path: Path) -> Iterator[Remit]:
    with remit_in(tmp_path) as remit:
        yield remit


def test_a_guarded_call_that_names_two_receivers_is_not_allowed(tmp_path: Path) -> None:
    with guarding(tmp_path / "store") as guard:
        started = guard.ask({"op": "start", "run": "r", "prompt": "Mail ann@corp.example.", "tools": [TOOL]})
        assert started["ok"], started
        for key in ("to", r"\u0074o"):
            answer = guard.ask(
                f'{{"op": "call", "run": "r", "id": "1", "tool": "send_mail",'
                f' "args": {{"{key}": "eve@evil.example", "to": "ann@corp.example"}}}}'
            )
            assert (answer["ok"], answer["code"]) == (False, "GUARD_LINE_INVALID")
            assert TWICE.format("to") in answer["message"]
        for line in (
            '{"op": "call", "op": "end", "run": "r"}',
            '{"op": "start", "run": "s", "run": "t", "prompt": "x", "tools": []}',
            '{"op": "result", "run": "r", "id": "1", "content": {"a": 1, "a": 2}}',
        ):
            answer = guard.ask(line)
            assert (answer["ok"], answer["code"]) == (False, "GUARD_LINE_INVALID"), answer


@pytest.mark.parametrize(
    ("option", "code"), [("--schema", "SCHEMA_FILE_UNREADABLE"), ("--boundary", "BOUNDARY_INVALID")]
)
def test_files_with_a_key_twice_are_refused_before_anything_begins(remit: Remit, option: str, code: str) -> None:
    remit.write(replies=[says("{}")])
    file = remit.folder / "twice.json"
    file.write_text('{"name": "x", "inner": {"type": "integer", "type": "string"}}')
    answer = remit.here("run", "Say it.", "--engine", f"scripted:{remit.folder}/script.json", option, str(file))
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, code)
    assert TWICE.format("type") in answer.err


def test_changed_arguments_that_mean_two_things_approve_nothing(remit: Remit) -> None:
    remit.write(TOOL_FILE, [calls("send", {"to": "ann"}), says("Sent.")])
    waiting = remit.run_here()
    assert waiting.exit_code == EXIT_WAITING
    run_id = waiting.values["run_id"]
    twice = '{"to": "bob", "to": "eve"}'
    answer = remit.here("approve", run_id, "--arguments", twice)
    assert (answer.exit_code, answer.error_code) == (EXIT_USAGE, "ARGUMENTS_UNREADABLE")
    assert TWICE.format("to") in answer.err
    file = remit.folder / "arguments.json"
    file.write_text(twice)
    assert remit.here("approve", run_id, "--args", str(file)).error_code == "ARGUMENTS_UNREADABLE"
    assert remit.here("approve", run_id).exit_code == EXIT_OK


def test_a_shape_is_not_chosen_among_two(remit: Remit) -> None:
    for line, code in (
        ({"text": '{"a": 1, "a": 2}', "schema": {"type": "object"}}, ErrorCode.CONSTRAINT_JSON_INVALID),
        ({"text": '{"a": {"b": 1, "b": 2}}', "schema": True, "repair": False}, ErrorCode.CONSTRAINT_JSON_INVALID),
    ):
        assert _constrained(remit, json.dumps(line))["code"] == code
    twice = '{"text": "1", "schema": {"type": "string", "type": "integer"}}'
    assert TWICE.format("type") in _constrained(remit, twice)["violations"][0]["message"]


def _constrained(remit: Remit, line: str) -> dict[str, Any]:
    (remit.folder / "lines").write_text(line + "\n")
    answer = remit.here("constrain", "--jsonl", str(remit.folder / "lines"))
    return answer.values


def test_a_script_that_gives_an_argument_twice_is_no_script(remit: Remit) -> None:
    (remit.folder / "script.json").write_text(
        '{"replies": [{"tool_calls": [{"name": "send", "arguments": {"to": "a", "to": "b"}}]}]}'
    )
    answer = remit.here("run", "Go.", "--engine", f"scripted:{remit.folder}/script.json")
    assert answer.error_code == "SCRIPT_UNREADABLE"
    assert TWICE.format("to") in answer.err
