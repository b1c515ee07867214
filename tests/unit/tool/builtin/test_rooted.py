"""Nothing outside a root is ever reached, whatever a path says and whatever changes while it is opened."""

import errno
import os
import shutil
import socket
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from remit.backend.embedded.disk.database import DATABASE
from remit.tool.builtin import rooted
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.relative_path import (
    FILE_PATH_INVALID,
    STORE_MARK,
)
from remit.tool.builtin.rooted import (
    FILE_BYTES_MAX,
    FILE_DISK_FULL,
    FILE_EXISTS,
    FILE_INACCESSIBLE,
    FILE_IS_FOREIGN,
    FILE_NOT_A_FOLDER,
    FILE_NOT_FOUND,
    FILE_NOT_REGULAR,
    FILE_TOO_LARGE,
    PARTIAL_MARK,
    Root,
    folder_names,
)
from tests.unit.tool.builtin.test_paths import HOSTILE_PATHS

SECRET = b"outside"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root with some files, and a secret beside it."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"inside")
    (root / "sub" / "b.txt").write_bytes(b"below")
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "b.txt").write_bytes(SECRET)
    return root


def refusal(function: Callable[..., Any], *values: Any, **options: Any) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        function(*values, **options)
    return caught.value


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_a_path_that_could_mean_something_else_is_refused_before_anything_is_opened(place: Path, path: str) -> None:
    assert refusal(Root(place).read, path).code == FILE_PATH_INVALID
    assert refusal(Root(place).write, path, b"x", if_exists="replace").code == FILE_PATH_INVALID
    assert (place.parent / "secret.txt").read_bytes() == SECRET


def test_a_file_below_the_root_is_read(place: Path) -> None:
    assert Root(place).read("a.txt") == b"inside"
    assert Root(place).read("sub//./b.txt") == b"below"


@pytest.mark.parametrize("path", ["", ".", "sub/", "a.txt/"])
def test_a_path_that_names_a_folder_is_no_file(place: Path, path: str) -> None:
    assert refusal(Root(place).read, path).code == FILE_PATH_INVALID


def test_what_is_not_there_or_leads_through_a_file_is_told(place: Path) -> None:
    root = Root(place)
    assert refusal(root.read, "none.txt").code == FILE_NOT_FOUND
    assert refusal(root.read, "none/b.txt").code == FILE_NOT_FOUND
    assert refusal(root.read, "a.txt/b").code == FILE_NOT_A_FOLDER
    assert refusal(root.read, "sub").code == FILE_NOT_REGULAR


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", "a.txt", "nowhere", "link"])
def test_a_link_is_never_followed_wherever_it_leads(place: Path, target: str) -> None:
    (place / "link").symlink_to(target)
    assert refusal(Root(place).read, "link").code == FILE_NOT_REGULAR
    assert refusal(Root(place).write, "link", b"x", if_exists="replace").code == FILE_NOT_REGULAR
    assert (place.parent / "secret.txt").read_bytes() == SECRET


@pytest.mark.parametrize("target", ["../secrets", "/etc", "sub", "/proc/self/root", "/proc/self/cwd", "."])
def test_a_link_to_a_folder_is_never_entered(place: Path, target: str) -> None:
    (place / "link").symlink_to(target)
    root = Root(place)
    assert refusal(root.read, "link/b.txt").code == FILE_NOT_A_FOLDER
    assert refusal(root.write, "link/new.txt", b"x", if_exists="replace").code == FILE_NOT_A_FOLDER
    with pytest.raises(ToolRefused), root.folder("link"):
        raise AssertionError("the link was entered")


def test_a_pipe_and_a_socket_are_no_files_and_nobody_waits_for_them(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(place / "pipe")
    # The path of a socket must be short, and that of a temporary folder may be long.
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("pipe", "socket"):
            assert refusal(Root(place).read, name).code == FILE_NOT_REGULAR
            assert refusal(Root(place).write, name, b"x", if_exists="replace").code == FILE_NOT_REGULAR


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_what_takes_the_place_of_a_file_after_the_first_look_is_refused_when_it_is_opened(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to("../secret.txt")
    monkeypatch.setattr(rooted, "_stat", lambda folder, name, path: (place / "a.txt").stat())
    monkeypatch.setattr(rooted, "_check_ours", lambda folder, device, path: None)
    assert refusal(Root(place).read, name).code == FILE_NOT_REGULAR


def test_a_file_with_a_second_name_may_belong_elsewhere_and_is_not_read(place: Path) -> None:
    os.link(place.parent / "secret.txt", place / "hard.txt")
    assert refusal(Root(place).read, "hard.txt").code == FILE_IS_FOREIGN
    # Replacing it takes the name and leaves the other one its content.
    assert Root(place).write("hard.txt", b"ours!!!!", if_exists="replace")
    assert (place.parent / "secret.txt").read_bytes() == SECRET


def test_a_store_of_remit_below_the_root_is_out_of_reach(place: Path) -> None:
    assert STORE_MARK == DATABASE
    (place / "store").mkdir()
    (place / "store" / "key").write_bytes(b"key")
    assert Root(place).read("store/key") == b"key"
    (place / "store" / STORE_MARK).touch()
    assert refusal(Root(place).read, "store/key").code == FILE_IS_FOREIGN
    assert refusal(Root(place).write, "store/x", b"x", if_exists="replace").code == FILE_IS_FOREIGN


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no other file system to enter")
def test_another_file_system_below_the_root_is_not_entered() -> None:
    assert refusal(Root(Path("/")).read, "proc/self/environ").code == FILE_IS_FOREIGN


def test_a_file_over_the_limit_is_refused_however_it_grows(place: Path) -> None:
    (place / "large").write_bytes(b"x" * FILE_BYTES_MAX)
    assert len(Root(place).read("large")) == FILE_BYTES_MAX
    with (place / "large").open("ab") as file:
        file.write(b"x")
    assert refusal(Root(place).read, "large").code == FILE_TOO_LARGE


def test_a_root_that_is_gone_or_has_become_a_link_is_told_without_its_path(place: Path) -> None:
    (place.parent / "link").symlink_to("secrets")
    for root in (place / "gone", place.parent / "link"):
        found = refusal(Root(root).read, "b.txt")
        assert found.code == FILE_INACCESSIBLE
        assert str(place.parent) not in str(found)


def test_a_file_is_written_in_one_piece_and_folders_are_made(place: Path) -> None:
    root = Root(place)
    assert root.write("new/deep/c.txt", b"text", if_exists="refuse")
    assert (place / "new" / "deep" / "c.txt").read_bytes() == b"text"
    assert not root.write("new/deep/c.txt", b"text", if_exists="refuse")
    assert [path.name for path in (place / "new" / "deep").iterdir()] == ["c.txt"]


def test_another_content_is_replaced_only_when_that_was_asked_for(place: Path) -> None:
    root = Root(place)
    assert refusal(root.write, "a.txt", b"other", if_exists="refuse").code == FILE_EXISTS
    assert refusal(root.write, "a.txt", b"INSIDE", if_exists="refuse").code == FILE_EXISTS
    assert (place / "a.txt").read_bytes() == b"inside"
    assert root.write("a.txt", b"other", if_exists="replace")
    assert (place / "a.txt").read_bytes() == b"other"


def test_a_replaced_file_keeps_its_mode_but_not_the_right_to_run_as_its_owner(place: Path) -> None:
    (place / "a.txt").chmod(0o4751)
    Root(place).write("a.txt", b"other", if_exists="replace")
    assert stat.S_IMODE((place / "a.txt").stat().st_mode) == 0o751


@pytest.mark.parametrize("if_exists", ["refuse", "replace"])
def test_of_many_writes_at_once_none_is_overwritten_unless_that_was_asked_for(
    place: Path, if_exists: rooted.IfExists
) -> None:
    root, start = Root(place), Barrier(8)

    def write(number: int) -> bytes | str:
        start.wait()
        try:
            return b"%d" % number if root.write("c.txt", b"%d" % number, if_exists=if_exists) else b""
        except ToolRefused as refused:
            return refused.code

    for _ in range(10):
        (place / "c.txt").unlink(missing_ok=True)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(write, range(8)))
        written = [content for content in found if isinstance(content, bytes)]
        assert (place / "c.txt").read_bytes() in written
        if if_exists == "refuse":
            assert (len(written), found.count(FILE_EXISTS)) == (1, 7)
        else:
            assert len(written) == 8


def test_a_disk_is_not_filled_to_its_end(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = os.statvfs(place)
    free = disk.f_bavail * disk.f_frsize
    monkeypatch.setattr(rooted, "FREE_BYTES_MIN", free * 2)
    found = refusal(Root(place).write, "new.txt", b"text", if_exists="refuse")
    assert found.code == FILE_DISK_FULL
    assert f"free_bytes_min={free * 2}" in found.message
    # What stands there already takes no room.
    assert not Root(place).write("a.txt", b"inside", if_exists="refuse")
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "sub"]


def test_a_disk_that_does_not_tell_its_size_is_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda folder: os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255)))
    assert Root(place).write("new.txt", b"text", if_exists="refuse")


def test_a_write_that_breaks_leaves_the_file_as_it_was_and_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", full)
    found = refusal(Root(place).write, "a.txt", b"other", if_exists="replace")
    assert found.code == FILE_INACCESSIBLE
    assert "ENOSPC" in found.message
    assert (place / "a.txt").read_bytes() == b"inside"
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "sub"]


def test_a_link_that_appears_while_a_file_is_written_is_replaced_and_not_followed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.replace

    def swapped(*values: Any, **options: Any) -> None:
        (place / "c.txt").symlink_to("../secret.txt")
        rename(*values, **options)

    monkeypatch.setattr(os, "replace", swapped)
    assert Root(place).write("c.txt", b"ours", if_exists="refuse")
    assert (place.parent / "secret.txt").read_bytes() == SECRET
    assert not (place / "c.txt").is_symlink()


def test_a_folder_shows_files_and_folders_and_counts_the_rest(place: Path) -> None:
    (place / ".hidden").touch()
    (place / "link").symlink_to("a.txt")
    (place / f"{PARTIAL_MARK}1").touch()
    (place / os.fsdecode(b"\xff")).touch()
    os.mkfifo(place / "pipe")
    with Root(place).folder("") as descriptor:
        found = folder_names(descriptor, "", names_max=10)
    assert [(entry.name, entry.is_folder, entry.size_bytes) for entry in found.entries] == [
        ("a.txt", False, 6),
        ("sub", True, 0),
    ]
    assert found.hidden_count == 5


def test_a_folder_with_too_many_names_is_refused(place: Path) -> None:
    with Root(place).folder("") as descriptor:
        assert refusal(folder_names, descriptor, "", names_max=1).code == FILE_TOO_LARGE


def test_a_file_that_goes_away_while_its_folder_is_read_is_left_out(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        name = "gone.txt"

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            raise FileNotFoundError

    class Scan:
        def __enter__(self) -> list[Gone]:
            return [Gone()]

        def __exit__(self, *error: object) -> None:
            return None

    monkeypatch.setattr(os, "scandir", lambda folder: Scan())
    assert folder_names(0, "", names_max=1) == ([], 1)


def test_a_folder_that_may_not_be_searched_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*values: Any, **options: Any) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(os, "stat", denied)
    assert refusal(Root(place).read, "a.txt").code == FILE_INACCESSIBLE


# So many attempts at least, for every order of events to come up; and so many at most, until both ways were seen.
ATTEMPTS, ATTEMPTS_MAX = 10_000, 100_000


def outcomes_during(
    swap: Callable[[], None], attempt: Callable[[int], bytes], wanted: set[bytes | str], times: int = ATTEMPTS
) -> set[bytes | str]:
    """The bytes or codes that attempts came to, while another thread swaps without end."""
    stop = Event()
    found: set[bytes | str] = set()

    def swap_on() -> None:
        while not stop.is_set():
            swap()

    swapper = Thread(target=swap_on)
    swapper.start()
    try:
        for number in range(ATTEMPTS_MAX):
            try:
                found.add(attempt(number))
            except ToolRefused as refused:
                found.add(refused.code)
            if number >= times and wanted <= found:
                break
    finally:
        stop.set()
        swapper.join()
    assert wanted <= found, "the race was no race"
    return found


@pytest.mark.slow
def test_a_folder_that_is_swapped_for_a_link_all_the_time_never_leads_outside(place: Path) -> None:
    root, folder, kept = Root(place), place / "sub", place / "kept"

    def swap() -> None:
        folder.rename(kept)
        folder.symlink_to("../secrets")
        folder.unlink()
        kept.rename(folder)

    found = outcomes_during(swap, lambda _: root.read("sub/b.txt"), {b"below", FILE_NOT_A_FOLDER})
    assert found <= {b"below", FILE_NOT_FOUND, FILE_NOT_A_FOLDER}


@pytest.mark.slow
def test_nothing_is_written_outside_while_a_folder_is_swapped_for_a_link(place: Path) -> None:
    root, folder, kept = Root(place), place / "sub", place / "kept"

    def swap() -> None:
        # The tool makes the folder itself while it is away, so each step may find something in its place.
        shutil.rmtree(kept, ignore_errors=True)
        with suppress(OSError):
            folder.rename(kept)
        with suppress(OSError):
            folder.symlink_to("../secrets")
        with suppress(OSError):
            folder.unlink()

    def attempt(number: int) -> bytes:
        return b"written" if root.write("sub/w.txt", b"%d" % number, if_exists="replace") else b"same"

    outcomes_during(swap, attempt, {b"written", FILE_NOT_A_FOLDER}, times=500)
    assert [path.name for path in (place.parent / "secrets").iterdir()] == ["b.txt"]


@pytest.mark.slow
def test_a_file_that_is_swapped_for_a_link_all_the_time_never_leads_outside(place: Path) -> None:
    root, coming = Root(place), place / "next"

    def swap() -> None:
        coming.symlink_to("../secret.txt")
        coming.replace(place / "a.txt")
        coming.write_bytes(b"inside")
        coming.replace(place / "a.txt")

    both: set[bytes | str] = {b"inside", FILE_NOT_REGULAR}
    assert outcomes_during(swap, lambda _: root.read("a.txt"), both) == both
