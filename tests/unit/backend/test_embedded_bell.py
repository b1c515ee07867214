"""The bell of a store rings its listeners alone, and leaves nothing behind."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from remit.backend.embedded import bell as bell_module
from remit.backend.embedded.bell import LOOK_MS, POLL_MS, WORD_BYTES_MAX, SocketBell
from remit.core.journal.storage import Topic
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.told import come_true

NAME = "turns.1.0123456789abcdef"


@contextmanager
def ringing(home: Path) -> Iterator[SocketBell]:
    with closing(SocketBell(home)) as bell:
        yield bell


@contextmanager
def bound(path: Path) -> Iterator[socket.socket]:
    """A socket at a path, which may be long."""
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(0)
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        yield listener
    os.close(folder)


def bells(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "bells").iterdir())


def is_rung(listener: socket.socket) -> bool:
    try:
        listener.recv(10)
    except BlockingIOError:
        return False
    return True


def test_while_nobody_has_ever_listened_a_ring_makes_no_folder(tmp_path: Path) -> None:
    with ringing(tmp_path) as bell:
        bell.ring(Topic.TURNS)
        assert not bell.is_heard(Topic.TURNS)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_for_this_user_alone_and_empty_when_nobody_listens(tmp_path: Path) -> None:
    async def scene() -> None:
        with ringing(tmp_path) as bell:
            assert bell.look_ms == POLL_MS
            end = bell.listen(Topic.POST, print)
            assert bell.look_ms == LOOK_MS
            assert (tmp_path / "bells").stat().st_mode & 0o777 == 0o700
            assert [name.split(".")[0] for name in bells(tmp_path)] == ["post"]
            end()
            end()
            assert bells(tmp_path) == []

    play(scene())


def test_a_process_does_not_ring_itself(tmp_path: Path) -> None:
    async def scene() -> None:
        with ringing(tmp_path) as bell:
            bell.listen(Topic.TURNS, print)
            assert not bell.is_heard(Topic.TURNS)

    play(scene())


def test_a_store_in_a_folder_with_a_long_name_rings_all_the_same(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 40)
    home.mkdir()
    heard: list[bytes] = []

    async def scene() -> None:
        with ringing(home) as listener, ringing(home) as writer:
            listener.listen(Topic.TURNS, heard.append)
            writer.ring(Topic.TURNS, b"news")
            await come_true(lambda: bool(heard))

    play(scene())
    assert heard == [b"news"]


def test_the_socket_of_a_process_that_was_killed_is_removed_by_the_first_that_rings_it(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, signal, sys\nfrom pathlib import Path\n"
        "from remit.backend.embedded.bell import SocketBell\nfrom remit.core.journal.storage import Topic\n"
        "async def main():\n"
        "    SocketBell(Path(sys.argv[1])).listen(Topic.TURNS, print)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert len(bells(tmp_path)) == 1
    with ringing(tmp_path) as bell:
        assert bell.is_heard(Topic.TURNS)
        bell.ring(Topic.TURNS)
        assert bells(tmp_path) == []
        assert not bell.is_heard(Topic.TURNS)


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "other name"])
def test_what_is_no_socket_of_our_own_is_not_rung(tmp_path: Path, kind: str) -> None:
    (tmp_path / "bells").mkdir(mode=0o700)
    path = tmp_path / "bells" / NAME
    with bound(tmp_path / "else") as elsewhere, ringing(tmp_path) as bell:
        if kind == "link":
            path.symlink_to(tmp_path / "else")
        elif kind == "second name":
            path.hardlink_to(tmp_path / "else")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.with_name("news.1.0123456789abcdef").hardlink_to(tmp_path / "else")
        bell.ring(Topic.TURNS)
        assert not is_rung(elsewhere)
        assert len(bells(tmp_path)) == 1


@pytest.mark.parametrize("kind", ["link", "exposed", "a stranger's", "file"])
def test_a_folder_that_others_may_have_filled_is_neither_rung_in_nor_listened_in(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bells"
    if kind == "file":
        folder.touch()
    else:
        folder.mkdir(mode=0o700)
        if kind == "link":
            folder.rename(tmp_path / "else")
            folder.symlink_to(tmp_path / "else")
        elif kind == "exposed":
            folder.chmod(0o777)

    async def scene() -> None:
        with ringing(tmp_path) as bell:
            if kind == "file":
                bell.ring(Topic.TURNS)
            else:
                with bound(folder / NAME) as planted:
                    if kind == "a stranger's":
                        monkeypatch.setattr(os, "geteuid", lambda: 4_711)
                    bell.ring(Topic.TURNS)
                    assert not is_rung(planted)
            bell.listen(Topic.TURNS, print)()
            assert bell.look_ms == POLL_MS

    play(scene())


def test_who_may_only_read_a_store_puts_nothing_beside_it(tmp_path: Path) -> None:
    with closing(SocketBell(tmp_path, may_listen=False)) as bell:
        bell.listen(Topic.TURNS, print)()
        assert bell.look_ms == POLL_MS
    assert list(tmp_path.iterdir()) == []


def test_a_word_that_is_too_long_is_not_sent(tmp_path: Path) -> None:
    heard: list[bytes] = []

    async def scene() -> None:
        with ringing(tmp_path) as listener, ringing(tmp_path) as writer:
            listener.listen(Topic.CHUNKS, heard.append)
            writer.ring(Topic.CHUNKS, b"x" * (WORD_BYTES_MAX + 1))
            writer.ring(Topic.CHUNKS, b"x" * WORD_BYTES_MAX)
            await come_true(lambda: bool(heard))

    play(scene())
    assert [len(word) for word in heard] == [WORD_BYTES_MAX]


def test_a_listener_that_left_is_not_looked_for_again(tmp_path: Path) -> None:
    async def scene() -> None:
        with ringing(tmp_path) as listener, ringing(tmp_path) as writer:
            end = listener.listen(Topic.TURNS, print)
            assert writer.is_heard(Topic.TURNS)
            names = writer._names
            end()
            # As if the folder had not been listed since.
            writer._names, writer._seen = names, None
            assert writer._opened is not None
            assert not writer._opened.send(names[Topic.TURNS][0], b"")

    play(scene())


def test_a_folder_that_was_made_anew_is_listed_anew(tmp_path: Path) -> None:
    async def scene() -> None:
        with ringing(tmp_path) as writer:
            (tmp_path / "bells").mkdir(mode=0o700)
            assert not writer.is_heard(Topic.TURNS)
            (tmp_path / "bells").rmdir()
            with ringing(tmp_path) as listener:
                listener.listen(Topic.TURNS, print)
                assert writer.is_heard(Topic.TURNS)

    play(scene())


def test_without_names_by_descriptor_a_socket_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bell_module, "_BY_DESCRIPTOR", "/nowhere")
    heard: list[bytes] = []

    async def scene(home: Path) -> None:
        with ringing(home) as listener, ringing(home) as writer:
            listener.listen(Topic.TURNS, heard.append)
            writer.ring(Topic.TURNS, b"news")
            await come_true(lambda: bool(heard))

    monkeypatch.chdir(tmp_path)
    play(scene(Path()))
    assert heard == [b"news"]
    long = tmp_path / ("long" * 40)
    long.mkdir()
    # There is no room for such a name, so no listener is rung; a listener looks.
    play(scene(long))
    assert heard == [b"news"]
