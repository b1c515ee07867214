"""The log of heads survives a line that was cut off."""

from pathlib import Path

import pytest

from remit.backend.embedded.heads_file import HEADS_LOG, HeadsFile
from remit.core.journal.storage import SignedHead


def head(seq: int) -> SignedHead:
    return SignedHead("run", seq, b"\x01" * 32, "", "did:key:z", b"\x02" * 64)


def log_of(home: Path, *heads: SignedHead) -> list[SignedHead]:
    log = HeadsFile(home)
    log.append(heads)
    log.close()
    return log.heads("run")


@pytest.mark.parametrize("cut_bytes", [1, 40])
def test_after_a_power_loss_cut_a_line_the_next_one_is_read(cut_bytes: int, tmp_path: Path) -> None:
    log_of(tmp_path, head(0), head(1))
    path = tmp_path / HEADS_LOG
    path.write_bytes(path.read_bytes()[:-cut_bytes])
    found = log_of(tmp_path, head(2))
    assert head(2) in found
    assert head(0) in found


def test_a_log_with_whole_lines_gets_no_empty_one(tmp_path: Path) -> None:
    log_of(tmp_path, head(0))
    assert log_of(tmp_path, head(1)) == [head(0), head(1)]
    assert b"\n\n" not in (tmp_path / HEADS_LOG).read_bytes()
