"""Sealed values on the disk and in memory."""

import stat
from pathlib import Path

import pytest

from remit.backend.embedded import seals as embedded
from remit.backend.embedded.seals import FileSeals
from remit.backend.memory.seals import MemorySeals
from remit.core.journal.signing import Signer
from remit.core.journal.storage import StoreUnusable
from remit.orchestrate.ports import Seals

SIGNER = Signer.generate()


def seals_in(home: Path) -> FileSeals:
    return FileSeals(home, lambda: SIGNER)


@pytest.fixture(params=["embedded", "memory"])
def seals(request: pytest.FixtureRequest, tmp_path: Path) -> Seals:
    return seals_in(tmp_path) if request.param == "embedded" else MemorySeals()


def test_a_value_is_kept_by_its_handle_until_it_is_forgotten(seals: Seals) -> None:
    handle = seals.seal("run", "password", "hunter22")
    assert seals.seal("run", "password", "hunter22") == handle
    assert seals.values("run") == {handle: "hunter22"}
    assert seals.values("other") == {}
    seals.adopt("other", "run")
    seals.adopt("other", "run")
    seals.forget("run")
    assert seals.values("run") == {}
    assert seals.values("other") == {handle: "hunter22"}


def test_another_process_reads_what_was_sealed_and_what_is_added(tmp_path: Path) -> None:
    here, there = seals_in(tmp_path), seals_in(tmp_path)
    first = here.seal("run", "password", "hunter22")
    assert there.values("run") == {first: "hunter22"}
    second = here.seal("run", "password", "hunter33")
    assert there.values("run") == {first: "hunter22", second: "hunter33"}
    here.forget("run")
    assert there.values("run") == {}
    here.seal("run", "password", "x")
    there.values("run")
    assert list(there.values("run").values()) == ["x"]


def test_what_is_written_is_private_and_holds_no_value(tmp_path: Path) -> None:
    seals_in(tmp_path).seal("run", "password", "hunter22")
    (folder,) = tmp_path.iterdir()
    (path,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"hunter22" not in path.read_bytes()


def test_a_line_that_cannot_be_read_or_opened_holds_nothing(tmp_path: Path) -> None:
    handle = seals_in(tmp_path).seal("run", "password", "hunter22")
    (path,) = (tmp_path / "sealed").iterdir()
    path.write_bytes(b'no json\n{"handle": "secret:x#0", "data": "AAAA"}\n[]\n' + path.read_bytes())
    assert seals_in(tmp_path).values("run") == {handle: "hunter22"}
    assert FileSeals(tmp_path, Signer.generate).values("run") == {}


def test_two_values_that_meet_in_a_handle_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "reference_to", lambda key, kind, value, digits: f"secret:{kind}#{'0' * digits}")
    seals = seals_in(tmp_path)
    handles = [seals.seal("run", "password", value) for value in ("one", "two", "one", "two")]
    assert handles[0] != handles[1]
    assert handles[:2] == handles[2:]


def test_a_folder_that_cannot_be_written_or_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "sealed").write_text("a file")
    with pytest.raises(StoreUnusable):
        seals_in(tmp_path).seal("run", "password", "hunter22")
    (tmp_path / "sealed").unlink()
    seals_in(tmp_path).seal("run", "password", "hunter22")
    (path,) = (tmp_path / "sealed").iterdir()
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreUnusable):
        seals_in(tmp_path).values("run")
