"""Holding texts to a schema or a grammar from the command line."""

import io
import json
import sys
from typing import Any

import pytest

from remit.adapters.cli.commands import constrain
from remit.adapters.cli.main import main
from remit.core.failure import ErrorCode
from tests.unit.adapters.desk import Desk

SCHEMA = json.dumps({"type": "object", "properties": {"state": {"enum": ["open", "closed"]}}, "required": ["state"]})


def told(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def given(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))


def test_a_text_becomes_a_value_that_fits(desk: Desk) -> None:
    text, schema = desk.file("said.txt", "```json\n{'state': 'Open',}\n```"), desk.file("schema.json", SCHEMA)
    said = desk.say("constrain", text, "--schema", schema)
    assert said.code == 0
    assert set(said.values) == {"ok", "value", "code", "repairs", "violations"}
    assert (said.values["ok"], said.values["value"], said.values["code"]) == (True, {"state": "open"}, None)
    assert set(said.values["repairs"][0]) == {"code", "at", "path", "was", "became"}


def test_a_text_that_does_not_fit_has_a_code_and_another_exit(desk: Desk) -> None:
    text, schema = desk.file("said.txt", '{"state": 1}'), desk.file("schema.json", SCHEMA)
    said = desk.say("constrain", text, "--schema", schema)
    assert (said.code, said.values["code"]) == (1, ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED)
    assert said.values["value"] == {"state": 1}
    assert set(said.values["violations"][0]) == {"path", "keyword", "message", "found"}
    assert desk.say("constrain", text, "--schema", schema, "--strict").values["value"] is None


def test_without_repair_a_broken_text_stays_broken(desk: Desk) -> None:
    said = desk.say("constrain", desk.file("said.txt", "[1,]"), "--no-repair")
    assert (said.code, said.values["code"]) == (1, ErrorCode.CONSTRAINT_JSON_INVALID)


def test_a_grammar_is_kept_or_broken(desk: Desk) -> None:
    grammar = desk.file("verdict.gbnf", 'root ::= "yes" | "no"')
    assert desk.say("constrain", desk.file("a.txt", "yes"), "--grammar", grammar).code == 0
    said = desk.say("constrain", desk.file("b.txt", "perhaps"), "--grammar", grammar)
    assert (said.code, said.values["code"]) == (1, ErrorCode.CONSTRAINT_GRAMMAR_REJECTED)


def test_stdin_is_read_when_no_file_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in ([], ["-"]):
        given(monkeypatch, b"{a: 1}")
        assert desk.say("constrain", *words).values["value"] == {"a": 1}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_end_of_the_last_line_is_no_end_of_a_number(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    given(monkeypatch, b'{"price": 12' + end)
    said = desk.say("constrain", "--strict")
    assert (said.code, said.values["code"]) == (1, ErrorCode.CONSTRAINT_JSON_INVALID)
    assert said.values["violations"][0]["keyword"] == "cut_off"
    given(monkeypatch, b"12" + end)
    assert desk.say("constrain").values["value"] == 12


def test_every_line_of_a_stream_is_answered_in_turn(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constrain, "LINE_BYTES_MAX", 60)
    lines = [
        b'\xef\xbb\xbf{"text": "[1,]", "id": 1}',
        b"nonsense",
        b"",
        b'{"text": "' + b"x" * 500 + b'"}',
        b'{"text": "2", "id": 4}',
        b"x" * 200,
    ]
    given(monkeypatch, b"\n".join(lines))
    said = desk.say("constrain", "--jsonl")
    assert said.code == 1
    assert [(answer["ok"], answer["code"], answer.get("id")) for answer in told(said.out)] == [
        (True, None, 1),
        (False, "CONSTRAIN_LINE_INVALID", None),
        (False, "CONSTRAIN_LINE_TOO_LONG", None),
        (True, None, 4),
        (False, "CONSTRAIN_LINE_TOO_LONG", None),
    ]


def test_a_line_as_long_as_is_allowed_is_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"text": "12"}'
    monkeypatch.setattr(constrain, "LINE_BYTES_MAX", len(line))
    given(monkeypatch, line + b"\n" + line)
    said = desk.say("constrain", "--jsonl")
    assert said.code == 0
    assert [answer["value"] for answer in told(said.out)] == [12, 12]


def test_a_stream_in_a_file_has_the_schema_of_the_command_line(desk: Desk) -> None:
    lines = desk.file("said.jsonl", '{"text": "{\\"state\\": \\"open\\"}"}\n{"text": "{}"}\n')
    said = desk.say("constrain", lines, "--jsonl", "--schema", desk.file("schema.json", SCHEMA))
    assert [answer["ok"] for answer in told(said.out)] == [True, False]
    assert desk.say("constrain", desk.file("none.jsonl", ""), "--jsonl").code == 0


@pytest.mark.parametrize("words", [["--jsonl"], []])
def test_a_file_that_cannot_be_read_is_wrong_usage(desk: Desk, words: list[str]) -> None:
    said = desk.say("constrain", "nowhere.txt", *words)
    assert said.code == 2
    assert "TEXT_UNREADABLE" in said.err


def test_a_schema_or_grammar_that_is_none_is_wrong_usage(desk: Desk) -> None:
    text = desk.file("said.txt", "{}")
    said = desk.say("constrain", text, "--schema", desk.file("schema.json", '{"type": "nope"}'))
    assert (said.code, "CONFIG_SCHEMA_INVALID" in said.err) == (2, True)
    said = desk.say("constrain", text, "--grammar", desk.file("bad.gbnf", "root ::= x"))
    assert (said.code, "GRAMMAR_INVALID" in said.err) == (2, True)


def test_an_option_that_is_none_is_wrong_usage(desk: Desk) -> None:
    said = desk.say("constrain", "--shcema")
    assert (said.code, "--shcema is no option" in said.err) == (2, True)


def test_a_stream_is_left_unread_when_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, b'{"text": "1"}\n{"text": "2"}\n')
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["constrain", "--jsonl"]) == 0
    assert sys.stdin.buffer.read() == b'{"text": "2"}\n'
