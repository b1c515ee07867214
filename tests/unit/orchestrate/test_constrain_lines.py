"""The constraint stack over a stream: each line with a demand of its own, made ready once, and never the end of it."""

import json
from typing import Any

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.schema.json_schema import CONFIG_SCHEMA_INVALID, Checker, compile_schema
from remit.orchestrate import constrain_lines
from remit.orchestrate.constrain_lines import LINE_INVALID, LINE_TOO_LONG, Constrainer
from remit.orchestrate.drafts import constrainer

PORT = {"type": "integer", "maximum": 65535}


def asked(stack: Constrainer, **line: Any) -> dict[str, Any]:
    return stack.line(json.dumps(line).encode())


def test_a_line_says_what_is_demanded_of_its_text() -> None:
    stack = constrainer()
    assert asked(stack, text="[1,]") == {
        "ok": True,
        "value": [1],
        "code": None,
        "repairs": stack.text("[1,]")["repairs"],
        "violations": (),
    }
    assert asked(stack, text="80", schema=PORT)["ok"]
    assert asked(stack, text="80", schema=False)["code"] == ErrorCode.CONSTRAINT_SCHEMA_INVALID
    assert asked(stack, text="no", grammar='root ::= "yes"')["code"] == ErrorCode.CONSTRAINT_GRAMMAR_REJECTED
    assert asked(stack, text="1", schema={"$ref": "urn:p"}, resources={"urn:p": PORT})["ok"]
    assert asked(stack, text="[1,]", repair=False)["code"] == ErrorCode.CONSTRAINT_JSON_INVALID
    assert asked(stack, text='"x"', schema=PORT)["value"] == "x"
    assert asked(stack, text='"x"', schema=PORT, strict=True)["value"] is None


def test_what_a_line_does_not_say_is_as_the_stream_has_it() -> None:
    stack = constrainer(PORT, repair=False, strict=True)
    assert asked(stack, text="+80")["code"] == ErrorCode.CONSTRAINT_JSON_INVALID
    assert asked(stack, text="+80", repair=True)["value"] == 80
    assert asked(stack, text='"x"', schema=None)["value"] is None
    assert asked(stack, text='"x"', strict=False)["value"] == "x"
    assert asked(stack, text='"x"', schema={})["ok"]


def test_the_id_of_a_line_and_what_nobody_reads_come_back() -> None:
    answer = asked(constrainer(), text="1", id={"n": 1}, shcema=PORT, more=1)
    assert (answer["id"], answer["ignored"]) == ({"n": 1}, ["more", "shcema"])
    assert "id" not in asked(constrainer(), text="1")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nonsense",
        b"[1]",
        b"{}",
        b'{"text": 1}',
        b'{"text": "1", "repair": 1}',
        b'{"text": "1", "schema": "x"}',
        b'{"text": "1", "schema": {"type": }}',
        b'{"text": "1", "resources": [1], "schema": {}}',
        b'{"text": "1", "grammar": {}}',
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"text": "1", "id": [}',
        b'{"text": "1"',
        b"[" * 100_000,
    ],
)
def test_a_line_that_cannot_be_used_has_a_result(line: bytes) -> None:
    answer = constrainer().line(line)
    assert (answer["ok"], answer["code"], answer["value"]) == (False, LINE_INVALID, None)


def test_a_demand_that_cannot_be_used_has_its_own_code_every_time() -> None:
    stack = constrainer()
    for _ in range(2):
        assert asked(stack, text="1", schema={"type": "nope"}, id=3)["code"] == CONFIG_SCHEMA_INVALID
        assert asked(stack, text="1", grammar="x", id=3) == asked(stack, text="2", grammar="x", id=3)
        assert asked(stack, text="1", grammar="x", id=3)["code"] == GRAMMAR_INVALID
        assert asked(stack, text="1", schema={"$ref": "urn:gone"})["code"] == CONFIG_SCHEMA_INVALID


def test_a_refusal_names_the_part_of_the_line_that_cannot_be_used() -> None:
    stack = constrainer()
    lines: list[dict[str, Any]] = [
        {"text": "1", "schema": {"type": "nope"}},
        {"text": "1", "grammar": "x"},
        {"text": 1},
    ]
    keywords = [asked(stack, **line)["violations"][0].keyword for line in lines]
    assert keywords == ["schema", "grammar", "line"]


def test_the_demand_of_the_stream_is_checked_before_anything_is_read() -> None:
    with pytest.raises(RequestRejected):
        constrainer({"type": "nope"})
    with pytest.raises(RequestRejected):
        constrainer(grammar="x")


def test_a_demand_is_made_ready_once_and_the_oldest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def counted(schema: Any, *, registry: Any) -> Checker:
        made.append(schema)
        return compile_schema(schema, registry=registry)

    monkeypatch.setattr("remit.constraint.stack.compile_schema", counted)
    monkeypatch.setattr(constrain_lines, "DEMANDS_MAX", 2)
    stack = constrainer()
    for maximum in (1, 2, 1, 3, 1, 2):
        assert asked(stack, text="1", schema={"maximum": maximum})["ok"]
    assert [schema["maximum"] for schema in made if schema is not True] == [1, 2, 3, 2]


def test_a_line_that_is_too_long_is_told_so() -> None:
    answer = constrainer().too_long(10)
    assert (answer["ok"], answer["code"]) == (False, LINE_TOO_LONG)
    assert "line_bytes_max=10" in answer["violations"][0].message
