"""Scripts are read strictly: every mistake has a code, a place and a way out."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.tools import ToolCall
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.usage import TokenUsage
from remit.inference.scripted.script import (
    CALLS_MAX,
    CHUNKS_MAX,
    DELAY_MS_MAX,
    FREE,
    REPLIES_MAX,
    SCRIPT_INVALID,
    SCRIPT_NOT_FOUND,
    SCRIPT_UNREADABLE,
    WHEN_CHARS_MAX,
    Script,
    ScriptedReply,
    read_script,
    script_of,
)


def script(*replies: Any) -> Script:
    return script_of(replies, context_window=100, price=FREE)


def reply(**fields: Any) -> ScriptedReply:
    return script(fields).replies[0]


def rejection_of(value: Any, tmp_path: Path) -> RequestRejected:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(value))
    with pytest.raises(RequestRejected) as caught:
        read_script(path)
    return caught.value


YAML = """\
# An order is looked up, then answered.
context_window: 4096
price: {input_microusd_per_mtok: 3, output_microusd_per_mtok: 15}
replies:
  - tool_calls:
      - name: lookup_order
        arguments: {order_id: "42", options: {deep: [1, [2, [3, {four: 5}]]]}}
        id: a1
    reasoning: they ask about an order
    usage: {prompt_tokens: 9, output_tokens: 2}
  - text: It is on its way.
    chunks: 2
    delay_ms: 5
    when: (?i)on its way
  - error: INFERENCE_MODEL_UNAVAILABLE
"""
REPLIES = (
    ScriptedReply(
        reasoning="they ask about an order",
        calls=(ToolCall("a1", "lookup_order", {"order_id": "42", "options": {"deep": [1, [2, [3, {"four": 5}]]]}}),),
        usage=TokenUsage(9, 0, 2),
        said_bytes=71,
    ),
    ScriptedReply(text="It is on its way.", pieces=("It is on", " its way."), delay_ms=5, said_bytes=17),
    ScriptedReply(error=ErrorCode.INFERENCE_MODEL_UNAVAILABLE),
)


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json", ".JSON", ".script"])
def test_a_script_is_read_from_yaml_or_json(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"support.script{suffix}"
    path.write_text(json.dumps(yaml.safe_load(YAML)) if suffix.lower() == ".json" else YAML)
    read = read_script(path)
    assert read.info == ModelInfo("scripted:support", 4096, Price(3, 15))
    assert read.replies[1].when is not None
    assert read.replies[1].when.pattern == "(?i)on its way"
    assert tuple(reply._replace(when=None) for reply in read.replies) == REPLIES


def test_what_a_file_does_not_say_has_a_default(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("replies: [{text: hi}]")
    assert read_script(path).info == ModelInfo("scripted:small", 8192, Price(0, 0))
    assert read_script(path).replies == (ScriptedReply(text="hi", pieces=("hi",), said_bytes=2),)


def test_a_price_of_null_is_unknown_and_not_free(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("price: null\nreplies: [{text: hi}]")
    assert read_script(path).info.price is None


def test_a_file_without_a_stem_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / ".script"
    path.write_text("replies: [{text: hi}]")
    assert read_script(path).info.name == "scripted:.script"


def test_a_script_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nobody.yaml", tmp_path / "file" / "nobody.yaml"):
        with pytest.raises(RequestRejected, match=r"nobody\.yaml") as caught:
            read_script(path)
        assert caught.value.code == SCRIPT_NOT_FOUND


@pytest.mark.parametrize(
    ("name", "data", "line"),
    [
        ("a.yaml", b"replies: \xff", 0),
        ("a.json", b'{"replies": "\xff"}', 0),
        ("a.yaml", b"replies:\n  - text: ]", 2),
        ("a.yaml", b"replies: []\nreplies: []", 2),
        ("a.yaml", b"replies:\n- &a {text: hi}\n- *a", 2),
        ("a.yaml", b"replies:\n- text: 2024-01-01", 2),
        ("a.yaml", b"replies: " + b"[" * 40, 1),
        ("a.json", b'{\n"replies": [}', 2),
        ("a.json", b'{"replies": [{"delay_ms": NaN}]}', 1),
        ("a.json", b'{"replies": [], "replies": []}', 1),
        ("a.json", b'{"replies": ' + b"[" * 100_000, 1),
        ("a.json", b'{"replies": ' + b"9" * 5000 + b"}", 1),
        ("a.json", b'{"replies": [{"text": "\\ud800"}]}', 1),
        ("a.yaml", b"#" * 1_000_001, 0),
        ("a.json", b" " * 1_000_001, 0),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(name: str, data: bytes, line: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(RequestRejected) as caught:
        read_script(path)
    assert (caught.value.code, caught.value.details.get("line", 0)) == (SCRIPT_UNREADABLE, line)
    assert name in caught.value.message


def test_a_folder_and_an_impossible_path_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, Path("a\0b"), tmp_path / "loop"):
        with pytest.raises(RequestRejected) as caught:
            read_script(path)
        assert caught.value.code == SCRIPT_UNREADABLE


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, mode: str) -> None:
        raise PermissionError(13, os.strerror(13))

    # The tests may run as root, whom no file denies anything.
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(RequestRejected, match="Permission denied") as caught:
        read_script(tmp_path / "secret.yaml")
    assert caught.value.code == SCRIPT_UNREADABLE


OK = {"text": "hi"}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ([], ["a script", "replies"]),
        ({}, ["replies", "at least one", "None"]),
        ({"replies": []}, ["replies", "at least one"]),
        ({"replies": OK}, ["replies", "a dict"]),
        ({"replies": [OK] * (REPLIES_MAX + 1)}, [f"{REPLIES_MAX + 1}", f"replies_max={REPLIES_MAX}"]),
        ({"replies": [OK], "reply": 1}, ["'reply'", "context_window"]),
        ({"replies": [OK], "context_window": 0}, ["context_window", "from 1", "not 0"]),
        ({"replies": [OK], "price": 3}, ["price", "input_microusd_per_mtok", "not 3"]),
        ({"replies": [OK], "price": {"input_microusd_per_mtok": 1}}, ["output_microusd_per_mtok"]),
        (
            {"replies": [OK], "price": {"input_microusd_per_mtok": -1, "output_microusd_per_mtok": 1}},
            ["price.input_microusd_per_mtok", "-1"],
        ),
        ({"replies": [OK, "hi"]}, ["replies[1]", "'hi'"]),
        ({"replies": [{}]}, ["replies[0]", "says nothing"]),
        ({"replies": [{"reasoning": "hm"}]}, ["replies[0]", "says nothing"]),
        ({"replies": [{"txt": "hi"}]}, ["replies[0]", "'txt'", "known are text"]),
        ({"replies": [{"text": 5}]}, ["replies[0].text", "must be a text", "not 5"]),
        ({"replies": [{"text": None}]}, ["replies[0].text", "None"]),
        ({"replies": [{"text": "hi", "reasoning": []}]}, ["replies[0].reasoning", "a list"]),
        ({"replies": [{"error": "OOPS"}]}, ["replies[0].error", "'OOPS'", "INFERENCE_CONTEXT_EXCEEDED"]),
        ({"replies": [{"error": "TOOL_TIMEOUT"}]}, ["replies[0].error", "TOOL_TIMEOUT"]),
        ({"replies": [{"error": 7}]}, ["replies[0].error", "7"]),
        ({"replies": [{"error": "INFERENCE_ENGINE_ERROR", "text": ""}]}, ["replies[0]", "stands alone"]),
        (
            {"replies": [{"error": "INFERENCE_ENGINE_ERROR", "tool_calls": [{"name": "a"}]}]},
            ["replies[0]", "stands alone"],
        ),
        ({"replies": [{"tool_calls": []}]}, ["replies[0].tool_calls", f"calls_max={CALLS_MAX}", "0 of them"]),
        ({"replies": [{"tool_calls": [{"name": "a"}] * (CALLS_MAX + 1)}]}, [f"calls_max={CALLS_MAX}"]),
        ({"replies": [{"tool_calls": {"name": "a"}}]}, ["replies[0].tool_calls", "a dict"]),
        ({"replies": [{"tool_calls": ["a"]}]}, ["replies[0].tool_calls[0]", "'a'"]),
        ({"replies": [{"tool_calls": [{}]}]}, ["replies[0].tool_calls[0].name", "name the tool"]),
        ({"replies": [{"tool_calls": [{"name": "a", "args": {}}]}]}, ["tool_calls[0]", "'args'", "arguments"]),
        ({"replies": [{"tool_calls": [{"name": "a", "arguments": []}]}]}, ["arguments", "an object", "a list"]),
        ({"replies": [{"tool_calls": [{"name": "a", "arguments": {"b": 2**70}}]}]}, ["arguments", "JSON"]),
        ({"replies": [{"tool_calls": [{"name": "a", "id": 5}]}]}, ["tool_calls[0].id", "5"]),
        ({"replies": [{"text": "a", "usage": 5}]}, ["replies[0].usage", "prompt_tokens", "5"]),
        ({"replies": [{"text": "a", "usage": {"prompt_tokens": -1}}]}, ["usage.prompt_tokens", "-1"]),
        ({"replies": [{"text": "a", "usage": {"tokens": 1}}]}, ["usage", "'tokens'"]),
        ({"replies": [{"text": "a", "usage": {"output_tokens": True}}]}, ["usage.output_tokens", "True"]),
        ({"replies": [{"text": "a", "usage": {"output_tokens": 2**60}}]}, ["usage.output_tokens", "beyond belief"]),
        ({"replies": [{"text": "a", "delay_ms": 1.5}]}, ["replies[0].delay_ms", "1.5"]),
        ({"replies": [{"text": "a", "delay_ms": DELAY_MS_MAX + 1}]}, ["delay_ms", f"to {DELAY_MS_MAX}"]),
        ({"replies": [{"text": "a", "chunks": 0}]}, ["replies[0].chunks", "from 1", "not 0"]),
        ({"replies": [{"text": "a", "chunks": "a"}]}, ["replies[0].chunks", "'a'"]),
        ({"replies": [{"text": "ab", "chunks": ["a", 5]}]}, ["replies[0].chunks[1]", "5"]),
        ({"replies": [{"text": "ab", "chunks": ["a", "c"]}]}, ["replies[0].chunks", "'ac'", "'ab'"]),
        ({"replies": [{"chunks": ["a"] * (CHUNKS_MAX + 1)}]}, ["replies[0].chunks", f"chunks_max={CHUNKS_MAX}"]),
        ({"replies": [{"text": "a", "when": "("}]}, ["replies[0].when", "'('", "no regular expression"]),
        ({"replies": [{"text": "a", "when": "a{99999999999}"}]}, ["replies[0].when", "no regular expression"]),
        ({"replies": [{"text": "a", "when": "(" * 900 + ")" * 900}]}, [f"when_chars_max={WHEN_CHARS_MAX}"]),
        ({"replies": [{"text": "a", "when": 5}]}, ["replies[0].when", "must be a text"]),
    ],
)
def test_a_mistake_names_its_place_the_value_and_what_is_allowed(value: Any, names: list[str], tmp_path: Path) -> None:
    rejected = rejection_of(value, tmp_path)
    assert rejected.code == SCRIPT_INVALID
    assert [name for name in ["bad.json", *names] if name not in rejected.message] == []
    assert len(rejected.message) < 600


def test_a_mistake_in_yaml_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("replies:\n  - text: hi\n  - text: ho\n    tool_calls:\n      - name: a\n        arguments: 5\n")
    with pytest.raises(RequestRejected, match=r"bad\.yaml:6: replies\[1\]\.tool_calls\[0\]\.arguments") as caught:
        read_script(path)
    assert caught.value.details == {"line": 6}


def test_a_mistake_in_values_says_where_it_is() -> None:
    with pytest.raises(RequestRejected, match=r"^SCRIPT_INVALID: the script: replies\[0\] says nothing"):
        script({})
    with pytest.raises(RequestRejected, match="unknown key a tuple"):
        script({("a",): 1})


def test_a_text_is_streamed_whole_unless_the_script_says_otherwise() -> None:
    assert reply(text="hello").pieces == ("hello",)
    assert reply(text="hello", chunks=2).pieces == ("he", "llo")
    assert reply(text="hello", chunks=["h", "", "ello"]).pieces == ("h", "", "ello")
    assert reply(text="hi", chunks=9).pieces == ("h", "i")
    assert reply(text="").pieces == ()


def test_pieces_that_are_spelled_out_need_no_text() -> None:
    assert (reply(chunks=["a", "b"]).text, reply(chunks=["a", "b"]).speaks) == ("ab", True)


def test_an_error_may_come_after_pieces() -> None:
    cut = reply(error="INFERENCE_ENGINE_ERROR", chunks=["half an ans"])
    assert (cut.text, cut.pieces, cut.speaks) == ("", ("half an ans",), False)


def test_a_text_may_stand_beside_calls() -> None:
    both = reply(text="let me see", tool_calls=[{"name": "look"}])
    assert (both.text, both.calls, both.speaks) == ("let me see", (ToolCall("", "look"),), True)


def test_silence_is_a_reply_that_does_not_speak() -> None:
    assert not reply(text="").speaks


def test_arguments_are_what_a_journal_gives_back_and_nobody_elses() -> None:
    arguments: dict[str, Any] = {"amount": 5.0, "deep": {"a": [1]}}
    call = reply(tool_calls=[{"name": "pay", "arguments": arguments}]).calls[0]
    arguments["deep"]["a"].append(2)
    assert call.arguments == {"amount": 5, "deep": {"a": [1]}}
    assert type(call.arguments["amount"]) is int


def test_half_a_surrogate_pair_in_a_reply_of_python_is_refused_by_its_place() -> None:
    with pytest.raises(RequestRejected, match=r"replies\[0\]\.text.*half of a pair") as caught:
        script_of([{"text": "\ud800"}], context_window=100, price=None)
    assert caught.value.code == SCRIPT_INVALID
