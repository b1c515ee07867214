"""Files of a folder that another user may have made: what is none is refused, and no reader waits for it."""

import os
import socket
from pathlib import Path

import pytest

from remit.core.regular_file import NotRegular, expect_regular, open_regular, open_to_append


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def test_a_file_is_opened_and_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"said")
    with open_regular(tmp_path / "file") as file:
        assert file.read() == b"said"
    expect_regular(tmp_path / "file")


@pytest.mark.parametrize("make", [pipe, link, listening, Path.mkdir])
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object) -> None:
    # The name of a socket may not be long.
    monkeypatch.chdir(tmp_path)
    assert callable(make)
    make(Path("there"))
    for look in (open_regular, open_to_append, expect_regular):
        with pytest.raises(NotRegular, match="no regular file: 'there'"):
            look(Path("there"))


def test_lines_are_added_to_a_file_that_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        descriptor = open_to_append(tmp_path / "file")
        os.write(descriptor, line)
        os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_nothing_is_handed_to_a_reader_of_a_pipe(tmp_path: Path) -> None:
    pipe(tmp_path / "there")
    reader = os.open(tmp_path / "there", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(NotRegular):
        open_to_append(tmp_path / "there")
    os.close(reader)


def test_what_is_not_there_is_told_as_ever(tmp_path: Path) -> None:
    for look in (open_regular, expect_regular):
        with pytest.raises(FileNotFoundError):
            look(tmp_path / "none")
