"""Files that a command writes where its user says."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.adapters.cli.arguments.outputs import write_output


def test_a_device_that_became_a_file_while_it_was_opened_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("kept")
    open_it = os.open
    monkeypatch.setattr(os, "open", lambda path, *flags: open_it(tmp_path / "file", *flags))
    with pytest.raises(OSError, match="was changed"):
        write_output(tmp_path / "pipe", [b"x"])
    assert (tmp_path / "file").read_text() == "kept"


def test_a_draft_does_not_stay_behind_when_the_disk_refuses(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        yield b"one"
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        write_output(tmp_path / "run.jsonl", lines())
    assert not list(tmp_path.iterdir())
