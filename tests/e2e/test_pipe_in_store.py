"""Pipes and links in the place of a store's files: every command says which it is, and none waits for it."""

import os
from pathlib import Path

import pytest

from remit.core.failure import EXIT_OK
from tests.e2e.command import Remit
from tests.e2e.house import says

COMMANDS = (
    ("trust",),
    ("runs",),
    ("show", "last"),
    ("approvals",),
    ("queues",),
    ("verify", "--all"),
    ("reject", "last"),
)
# What only those read who write.
WRITING = ("quotas.yaml", "secrets.toml", "revoked.log")


def store_with(folder: Path, name: str, *, is_link: bool) -> Remit:
    remit = Remit(folder)
    remit.write("", [says("Done.")])
    assert remit.run_here().exit_code == EXIT_OK
    path = remit.home / name
    path.unlink(missing_ok=True)
    if is_link:
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)
    return remit


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("name", ["queues.yaml", "key", "remit.db", "remit.db-wal"])
def test_no_command_waits_for_a_pipe_that_lies_in_the_place_of_a_file(tmp_path: Path, name: str, is_link: bool) -> None:
    remit = store_with(tmp_path, name, is_link=is_link)
    under_way = [remit.start(*words) for words in COMMANDS[:: 2 if is_link else 1]]
    for said in [running.answer() for running in under_way]:
        assert said.exit_code != EXIT_OK, said
        assert said.error_code == "STORE_LINKED", said
        assert name in said.err
    told = remit("doctor")
    assert "STORE_LINKED" in told.out
    assert f"{name} " in told.out


@pytest.mark.parametrize("name", WRITING)
def test_a_run_refuses_settings_that_are_no_files(tmp_path: Path, name: str) -> None:
    remit = store_with(tmp_path, name, is_link=False)
    said = remit.start_run().answer()
    assert said.error_code == "STORE_LINKED", said
    assert name in said.out
    assert name in remit("doctor").out
