"""The header of a model's file is read without the weights, and a file that lies about itself is refused."""

import struct
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.inference.local import gguf
from remit.inference.local.gguf import LAYERS_MAX, MODEL_FILE_UNREADABLE, ModelHeader, read_header
from tests.unit.inference.tiny_model import END, START, gguf_bytes, text_bytes, write_tiny_model

NAMED = {"general.architecture": "llama"}


def refusal_of(path: Path) -> str:
    with pytest.raises(RequestRejected) as caught:
        read_header(path)
    assert caught.value.code == MODEL_FILE_UNREADABLE
    assert str(path) in caught.value.message
    return caught.value.message


def written(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


def test_a_header_says_what_the_model_is(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", general__size_label="26K")
    assert read_header(path) == ModelHeader(
        architecture="llama",
        name="Tiny",
        size_label="26K",
        parameters=2 * 32 * 286 + 7 * 32 * 32 + 3 * 32,
        quantisation="F32",
        context_length=512,
        has_chat_template=True,
        control_tokens=(START, END),
        size_bytes=path.stat().st_size,
    )


def test_what_a_header_does_not_say_stays_empty(tmp_path: Path) -> None:
    header = read_header(written(tmp_path / "bare.gguf", gguf_bytes(NAMED, {})))
    assert (header.name, header.quantisation, header.context_length, header.control_tokens) == ("", "", 0, ())
    assert (header.parameters, header.has_chat_template) == (0, False)


@pytest.mark.parametrize(
    ("entries", "field", "value"),
    [
        ({"general.name": 7}, "name", ""),
        ({"general.file_type": 15}, "quantisation", "Q4_K_M"),
        ({"general.file_type": 4711}, "quantisation", "file type 4711"),
        ({"general.file_type": "large"}, "quantisation", ""),
        ({"llama.context_length": 4096.5}, "context_length", 0),
        ({"tokenizer.ggml.tokens": ["<a>", "<b>"]}, "control_tokens", ()),
        ({"tokenizer.ggml.tokens": ["<a>", ""], "tokenizer.ggml.token_type": [3, 3, 3]}, "control_tokens", ("<a>",)),
        ({"general.quiet": True, "general.scale": [0.5, 1.5]}, "name", ""),
    ],
)
def test_an_entry_of_any_kind_is_read_for_what_it_is(
    tmp_path: Path, entries: dict[str, Any], field: str, value: object
) -> None:
    header = read_header(written(tmp_path / "odd.gguf", gguf_bytes({**entries, **NAMED}, {})))
    assert getattr(header, field) == value


@pytest.mark.parametrize(
    ("entry", "value"),
    [("block_count", 0), ("block_count", LAYERS_MAX + 1), ("context_length", 0), ("context_length", 2**32 - 1)],
)
def test_a_number_that_would_end_the_process_of_the_runtime_is_refused(tmp_path: Path, entry: str, value: int) -> None:
    path = written(tmp_path / "odd.gguf", gguf_bytes({**NAMED, f"llama.{entry}": value}, {}))
    with pytest.raises(RequestRejected, match=f"'llama.{entry}' is {value}"):
        read_header(path)


@pytest.mark.parametrize("block_bytes", range(1, 40))
def test_a_header_is_read_to_its_end_wherever_its_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(gguf, "BLOCK_BYTES", block_bytes)
    path = written(
        tmp_path / "long.gguf", gguf_bytes({**NAMED, "a": "x" * 90, "b": [1, 2], "general.name": "last"}, {})
    )
    assert read_header(path).name == "last"


def test_a_byte_that_is_no_text_only_looks_odd(tmp_path: Path) -> None:
    raw = gguf_bytes({"general.name": "caf#", **NAMED}, {}).replace(b"caf#", b"caf\xff")
    assert read_header(written(tmp_path / "odd.gguf", raw)).name == "caf\N{REPLACEMENT CHARACTER}"


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refusal_of(tmp_path / "gone.gguf")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "reaches behind the end of the file, at byte 0"),
        (b"GGUF", "its version reaches behind the end"),
        (b"PK\x03\x04" + b"\0" * 60, "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "its version is 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), "the number of tensors is"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), "the number of entries is"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62) + b"\0" * 64, "the length of the name of an entry is"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**20) + b"\0" * 64, "the name of an entry reaches behind"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text_bytes("a") + struct.pack("<I", 13) + b"\0" * 8,
            "of the unknown kind 13",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text_bytes("a") + struct.pack("<IIQ", 9, 9, 1) + b"\0" * 8, "kind 9"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text_bytes("a") + struct.pack("<IIQ", 9, 8, 2**26) + b"\0" * 64,
            "the entry 'a' reaches behind the end",
        ),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text_bytes("a") + struct.pack("<IIQ", 9, 4, 2**62) + b"\0" * 64,
            "the entry 'a' is",
        ),
        (gguf_bytes({}, {}), "does not name its architecture"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text_bytes("w") + struct.pack("<I", 2**31) + b"\0" * 64,
            "the dimensions of the tensor 'w'",
        ),
    ],
)
def test_a_file_that_lies_about_itself_is_refused(tmp_path: Path, raw: bytes, said: str) -> None:
    message = refusal_of(written(tmp_path / "lies.gguf", raw))
    assert said in message
    assert "get the file again" in message


def test_a_file_without_the_end_of_its_weights_is_refused(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    whole = path.read_bytes()
    assert "its weights reach behind the end" in refusal_of(written(path, whole[: len(whole) // 2]))


def test_a_header_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf, "HEADER_BYTES_MAX", 64)
    monkeypatch.setattr(gguf, "BLOCK_BYTES", 8)
    path = written(tmp_path / "endless.gguf", gguf_bytes({"general.name": "x" * 60, **NAMED}, {}))
    assert "longer than 64 bytes" in refusal_of(path)


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "shrinking.gguf", gguf_bytes({**NAMED, "general.name": "x" * 100}, {}))
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size - 80])

    class Before:
        st_size = size

    monkeypatch.setattr(Path, "stat", lambda self: Before())
    assert "became shorter" in refusal_of(path)
