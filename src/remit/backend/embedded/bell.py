"""The bell: how the processes on a store wake each other, by datagrams between sockets in a folder of the store.

Rule 1: a listener has a socket named TOPIC.PID.CHANCE in the folder; a writer sends to those that are there. No writer waits:
        a socket that takes nothing more belongs to a listener that has news waiting already.
Rule 2: without a listener, a ring is one look at the folder. It is listed again when it has changed, or changed so lately
        that its time may not tell.
Rule 3: only sockets of this user in a folder that no other user may write to are rung: no links, nothing with a second name.
        The socket of a process that is gone is removed by the first that rings it.
Rule 4: it carries no truth. Where a ring is lost, or no socket can be made, a listener finds the news when it looks.
"""

import asyncio
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import finalize

from remit.backend.embedded.disk.permissions import BELLS
from remit.core.journal.storage import Topic

# A listener looks by itself once a second: a net for rings that were lost, and no more.
LOOK_MS = 1_000
# Without a socket, looking is all there is; so long is what a watcher may be behind.
POLL_MS = 50
# More than any word that is rung; a longer one is not sent.
WORD_BYTES_MAX = 64 << 10
# Words that are read before the loop goes on with other things.
_WORDS_AT_ONCE = 64
# Folders tell the time of their last change in ticks of some milliseconds.
_TICK_NS = 50_000_000
_TOPICS = frozenset(topic.value for topic in Topic)
_NAME = re.compile(r"(?P<topic>[a-z]+)\.\d+\.[0-9a-f]{16}")
# Names of sockets have room for about a hundred bytes; through an open folder they are short wherever the store is.
_BY_DESCRIPTOR = "/proc/self/fd"
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SocketBell:
    """Rings in every process that has the store open and listens, this one excepted."""

    def __init__(self, home: Path, *, may_listen: bool = True) -> None:
        self._folder = str(home / BELLS)
        self._may_listen = may_listen
        self._seen: tuple[int, int] | None = None
        self._names: dict[Topic, tuple[str, ...]] = {}
        self._opened: _Folder | None = None
        self._own: set[str] = set()
        self._ears: list[_Ear] = []
        self._is_closed = False

    @property
    def look_ms(self) -> int:
        """How long a listener waits before it looks by itself."""
        return LOOK_MS if self._ears else POLL_MS

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Call `hear` for every word rung for a topic; gives what ends it. Where no socket can be made, nothing is heard."""
        name = f"{topic}.{os.getpid()}.{os.urandom(8).hex()}"
        try:
            ear = _Ear(self._made(), name, hear)
        except OSError:
            return lambda: None
        self._own.add(name)
        self._ears.append(ear)

        def end() -> None:
            ear.close()
            self._own.discard(name)
            with suppress(ValueError):
                self._ears.remove(ear)

        return end

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Send a word to all other listeners of a topic."""
        for name in self._others(topic):
            assert self._opened is not None, "there is a listener in a folder that was not opened"
            if not self._opened.send(name, word):
                self._seen = None

    def is_heard(self, topic: Topic) -> bool:
        """Whether a topic has another listener."""
        return bool(self._others(topic))

    def close(self) -> None:
        """Leave nothing open, and open nothing any more."""
        self._is_closed = True
        for ear in self._ears:
            ear.close()
        self._ears, self._own, self._names, self._seen = [], set(), {}, None
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _others(self, topic: Topic) -> Sequence[str]:
        if self._is_closed:
            return ()
        try:
            found = os.stat(self._folder)  # noqa: PTH116  # asked with every commit; a path object takes longer
        except OSError:
            return ()
        seen = (found.st_ino, found.st_mtime_ns)
        if seen != self._seen or time.time_ns() - found.st_mtime_ns < _TICK_NS:
            self._seen = seen
            self._list(found.st_ino)
        names = self._names.get(topic, ())
        return [name for name in names if name not in self._own] if self._own else names

    def _list(self, number: int) -> None:
        """Find out who listens; no process, where the folder is not one of ours."""
        self._names = {}
        try:
            if self._opened is None or self._opened.number != number:
                self._opened = _Folder(self._folder)
            if self._opened.is_ours():
                self._names = self._opened.listeners()
        except OSError:
            return

    def _made(self) -> "_Folder":
        """The folder, made if it is not there; raises OSError where it may not be used."""
        if not self._may_listen or self._is_closed:
            raise PermissionError(self._folder)
        with suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)  # noqa: PTH102
        folder = self._opened = _Folder(self._folder)
        if not folder.is_ours():
            raise PermissionError(self._folder)
        return folder


class _Folder:
    """The folder of the bells while it is open, and the socket that rings."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = descriptor = os.open(path, _FLAGS)
        self._socket = sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.settimeout(0)
        self.number = os.fstat(descriptor).st_ino
        # A process that simply leaves is cleaned up behind.
        self.close = finalize(self, _let_go, sender, descriptor)

    def path(self, name: str) -> str:
        """Where a socket of this name is reached."""
        if os.path.isdir(_BY_DESCRIPTOR):  # noqa: PTH112
            return f"{_BY_DESCRIPTOR}/{self._descriptor}/{name}"
        return f"{self._path}/{name}"

    def is_ours(self) -> bool:
        """Whether only this user could have put anything here."""
        found = os.fstat(self._descriptor)
        return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    def listeners(self) -> dict[Topic, tuple[str, ...]]:
        """The sockets that may be rung, by their topic."""
        found: dict[Topic, tuple[str, ...]] = {}
        for name in os.listdir(self._descriptor):  # noqa: PTH208
            named = _NAME.fullmatch(name)
            if named is None or named["topic"] not in _TOPICS:
                continue
            with suppress(FileNotFoundError):
                seen = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
                if stat.S_ISSOCK(seen.st_mode) and seen.st_nlink == 1 and seen.st_uid == os.geteuid():
                    topic = Topic(named["topic"])
                    found[topic] = (*found.get(topic, ()), name)
        return found

    def remove(self, name: str) -> None:
        """Take a socket away that has no listener any more."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def send(self, name: str, word: bytes) -> bool:
        """Send a word, whether or not there is room for it; False where the listener is gone."""
        if len(word) > WORD_BYTES_MAX:
            return True
        try:
            self._socket.sendto(word, self.path(name))
        except ConnectionRefusedError:
            self.remove(name)
            return False
        except FileNotFoundError:
            return False
        except OSError:  # It has more to read than it took, and will look.
            return True
        return True


class _Ear:
    """The socket of one listener."""

    def __init__(self, folder: _Folder, name: str, hear: Callable[[bytes], None]) -> None:
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._socket = listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._end = finalize(self, _hang_up, listener, folder, name)
        try:
            listener.settimeout(0)
            listener.bind(folder.path(name))
        except OSError:
            self._end()
            raise
        self._loop.add_reader(listener.fileno(), self._read)

    def close(self) -> None:
        """Hear nothing more; again, nothing."""
        if self._socket.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket.fileno())
            self._end()

    def _read(self) -> None:
        for _ in range(_WORDS_AT_ONCE):
            try:
                word = self._socket.recv(WORD_BYTES_MAX)
            except OSError:  # There is nothing more, or the socket was closed by what was heard.
                return
            self._hear(word)


def _hang_up(listener: socket.socket, folder: _Folder, name: str) -> None:
    listener.close()
    folder.remove(name)


def _let_go(sender: socket.socket, descriptor: int) -> None:
    sender.close()
    os.close(descriptor)
