"""Whatever a file holds, reading its header ends with a header or with a refusal."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remit.core.failure import RequestRejected
from remit.inference.local.gguf import ModelHeader, read_header
from tests.unit.inference.tiny_model import write_tiny_model

SOUND = (HealthCheck.function_scoped_fixture,)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf").read_bytes()


def outcome(path: Path, raw: bytes) -> ModelHeader | None:
    path.write_bytes(raw)
    try:
        return read_header(path)
    except RequestRejected:
        return None


@settings(suppress_health_check=SOUND)
@given(rest=st.binary(max_size=400))
def test_no_bytes_break_the_reader(tmp_path: Path, rest: bytes) -> None:
    outcome(tmp_path / "any.gguf", rest)
    outcome(tmp_path / "any.gguf", b"GGUF\x03\0\0\0" + rest)


@settings(suppress_health_check=SOUND)
@given(data=st.data())
def test_no_damage_to_a_real_file_breaks_the_reader(tmp_path: Path, tiny: bytes, data: st.DataObject) -> None:
    damaged = bytearray(tiny)
    # Where the header is; the weights are not read.
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, 9000))] = data.draw(st.integers(0, 255))
    outcome(tmp_path / "damaged.gguf", bytes(damaged))


@settings(suppress_health_check=SOUND)
@given(end=st.integers(0, 100_000))
def test_a_file_that_was_cut_anywhere_is_refused(tmp_path: Path, tiny: bytes, end: int) -> None:
    assert outcome(tmp_path / "cut.gguf", tiny[:end]) is None
