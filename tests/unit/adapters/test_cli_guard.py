"""Guarding other people's agents from the command line."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from remit.adapters.cli.commands import guard
from remit.adapters.cli.main import main
from remit.orchestrate.guard.guard import Guard
from remit.orchestrate.guard.protocol import LINE_BYTES_MAX
from tests.unit.orchestrate.test_guarding import BOB, PROMPT, TOOLS

START = {"op": "start", "run": "r", "prompt": PROMPT, "tools": TOOLS}
CALL = {"op": "call", "run": "r", "tool": "send_mail", "args": {"to": BOB, "body": "The plan is ready."}}


def answers(
    data: bytes, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *options: str
) -> list[Any]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
    assert main(["guard", "--ndjson", "--home", str(home), *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def lines(*operations: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in operations)


def test_each_line_has_its_answer_and_blank_ones_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = {"op": "result", "run": "r", "tool": "send_mail", "content": "sent"}
    data = b"\xef\xbb\xbf" + lines(START) + b"\n \r\n" + lines(CALL, result) + b"{\n" + lines({"op": "end", "run": "r"})
    said = answers(data.rstrip(b"\n"), tmp_path / "store", capsys, monkeypatch)
    assert [one.get("ok", one.get("decision")) for one in said] == [True, "allow", False, True]


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guard, "line_bytes_max", 4_000)
    long = lines({"op": "result", "run": "r", "tool": "find_files", "content": "x" * 9_000})
    said = answers(lines(START) + long + lines(CALL) + long.rstrip(b"\n"), tmp_path / "store", capsys, monkeypatch)
    assert [one.get("code") for one in said] == [None, "GUARD_LINE_TOO_LONG", "RESULT_LOST", "GUARD_LINE_TOO_LONG"]
    assert LINE_BYTES_MAX > 4_000


def test_a_guard_in_memory_makes_no_store_and_heeds_the_halts_of_one_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "store"
    assert answers(lines(START, CALL), home, capsys, monkeypatch, "--memory")[1]["decision"] == "allow"
    assert not home.exists()
    answers(lines(START), home, capsys, monkeypatch)
    assert main(["halt", "--tool", "send_mail", "--why", "smoke", "--home", str(home)]) == 0
    capsys.readouterr()
    said = answers(lines(START, CALL), home, capsys, monkeypatch, "--memory")[1]
    assert (said["ok"], said["code"]) == (False, "HALTED")


def test_who_closed_stdin_is_told_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["guard", "--json"]) != 0
    assert guard.STREAM_UNREADABLE in capsys.readouterr().out
