"""`remit export` writes a run where its user says, for its owner alone."""

import io
import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from tests.unit.adapters.desk import Desk, Screen


def test_an_export_goes_to_a_pipe_byte_by_byte(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.ended()
    path = desk.folder / "run.jsonl"
    lines = desk.say("export", "last", "--json", "--output", path).values["lines"]
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe))
    assert desk.say("export", "last").code == 0
    assert pipe.getvalue() == path.read_bytes()
    assert pipe.getvalue().count(b"\n") == lines


def test_an_export_is_not_sent_to_a_terminal(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.ended()
    monkeypatch.setattr(sys, "stdout", Screen())
    said = desk.say("export", "last")
    assert said.code == 2
    assert "--output" in said.err


def test_an_export_that_cannot_be_written_leaves_nothing(desk: Desk) -> None:
    desk.ended()
    said = desk.say("export", "last", "--output", desk.folder / "missing" / "run.jsonl", "--json")
    assert (said.code, said.error) == (2, "EXPORT_FILE_UNUSABLE")


def test_an_export_is_for_its_owner_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.ended()
    path = desk.folder / "run.jsonl"
    path.write_text("older")
    path.chmod(0o666)
    before = os.umask(0)
    try:
        assert desk.say("export", "last", "--output", path).code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b'{"kind":"header"')
    assert [each.name for each in desk.folder.iterdir() if "run.jsonl" in each.name] == ["run.jsonl"]


def test_an_export_is_written_into_a_pipe_and_a_device_which_stay_what_they_are(desk: Desk) -> None:
    desk.ended()
    path, pipe, nothing = desk.folder / "run.jsonl", desk.folder / "pipe", desk.folder / "nothing"
    desk.say("export", "last", "--output", path)
    os.mkfifo(pipe)
    nothing.symlink_to(os.devnull)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert desk.say("export", "last", "--output", pipe).code == 0
        assert os.read(reader, 1_000_000) == path.read_bytes()[:65_536]
    finally:
        os.close(reader)
    assert desk.say("export", "last", "--output", nothing).code == 0
    assert pipe.is_fifo()
    assert nothing.is_symlink()
    assert Path(os.devnull).is_char_device()


def test_an_export_replaces_no_folder_no_link_no_socket_and_nothing_of_the_store(desk: Desk) -> None:
    desk.ended()
    (desk.folder / "folder").mkdir()
    (desk.folder / "kept").write_text("kept")
    (desk.folder / "link").symlink_to(desk.folder / "kept")
    (desk.folder / "loose").symlink_to(desk.folder / "nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(desk.folder / "socket"))
    database = (desk.home / "remit.db").read_bytes()
    for name, why in {
        "folder": "is a folder",
        "link": "is a symbolic link to",
        "loose": "is a symbolic link to",
        "socket": "is a socket",
        "zero\0byte": "null",
        str(desk.home / "remit.db"): "folder of the store",
        str(desk.home / "new.jsonl"): "folder of the store",
    }.items():
        said = desk.say("export", "last", "--output", desk.folder / name)
        assert (said.code, "EXPORT_FILE_UNUSABLE" in said.err, why in said.err) == (2, True, True), said.err
    assert (desk.folder / "kept").read_text() == "kept"
    assert not (desk.folder / "nowhere").exists()
    assert (desk.home / "remit.db").read_bytes() == database


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_an_export_to_stdout_by_name_goes_to_stdout(desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    desk.ended()
    path = desk.folder / "run.jsonl"
    desk.say("export", "last", "--output", path)
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe))
    assert desk.say("export", "last", f"--output={name}").code == 0
    assert pipe.getvalue() == path.read_bytes()


def test_a_run_that_is_moved_is_gone_here_and_goes_on_where_it_is_imported(desk: Desk) -> None:
    desk.ended()
    file = desk.folder / "moved.jsonl"
    moved = desk.say("export", "last", "--json", "--output", file).values
    assert desk.say("delete", moved["run_id"]).code == 0
    assert desk.say("show", moved["run_id"]).code == 1
    assert desk.say("import").code == 2
    assert desk.say("import", file).out == f"run {moved['run_id']} is here, 2 turns were written\n"
    assert desk.say("import", file, "--json").values == {"run_id": moved["run_id"], "turns": 0}
    assert desk.say("verify", "last").code == 0
    waits = desk.waiting()
    desk.say("export", waits, "--output", file)
    desk.say("delete", waits)
    assert f"go on with: remit resume {waits}" in desk.say("import", file).out


def test_a_path_that_no_file_can_have_is_named_and_nothing_is_started(desk: Desk) -> None:
    said = desk.say("import", "a\0b", "--json")
    assert (said.code, said.error) == (2, "EXPORT_FILE_UNUSABLE")
    said = desk.say("dev", "--nats", "--engine", "a\0b")
    assert (said.code, "holds a NUL" in said.err) == (2, True)
