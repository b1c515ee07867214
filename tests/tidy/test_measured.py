"""Coverage that a worker lost is an error that says so."""

from pathlib import Path

import pytest
from coverage import CoverageData

from tests.measured import loss


def saved(path: Path, *, lines: dict[str, list[int]]) -> str:
    data = CoverageData(str(path))
    data.add_lines(lines)
    data.write()
    return str(path)


def test_a_worker_that_left_its_data_has_lost_nothing(tmp_path: Path) -> None:
    assert loss("gw0", saved(tmp_path / "data", lines={"src/remit/core/a.py": [1]})) == ""


def test_a_worker_that_ended_without_a_word_is_named() -> None:
    assert loss("gw1", None) == "worker gw1 ended without saying where its coverage data is"


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    assert "gw1" in loss("gw1", str(tmp_path / "gone"))
    assert "is not there" in loss("gw1", str(tmp_path / "gone"))


@pytest.mark.parametrize("content", [b"", b"torn", b"SQLite format 3\x00" + bytes(200)])
def test_a_file_that_was_cut_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    assert "gw0" in loss("gw0", str(path))


def test_a_file_that_counts_nothing_is_named(tmp_path: Path) -> None:
    assert "names no file" in loss("gw0", saved(tmp_path / "data", lines={}))
