"""A real pseudo-terminal with a program in it: a user who types, and looks at what is shown."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType

from tests import warm

# Longer than anything takes here, on a machine that is busy with other tests.
PATIENCE_S = 60
# No process that was heard takes so long to answer.
PRESS_AGAIN_S = 8
_SEQUENCES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[D78=>])")


class PseudoTerminal:
    """A program at a terminal of its own. A user who leaves ends it."""

    def __init__(
        self, words: Sequence[str], *, environment: Mapping[str, str], folder: Path, columns: int = 100, rows: int = 40
    ) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(columns, rows)
        self.process = warm.Popen(
            words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={**os.environ, "TERM": "xterm", **environment},
            # Its Ctrl-C is for it alone.
            start_new_session=True,
            preexec_fn=_own_terminal,  # it makes one system call, and starts no thread
        )
        os.close(theirs)
        self.seen = ""
        self._unread = 0

    def __enter__(self) -> "PseudoTerminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self._ours)

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys; a line ends with the key for that."""
        os.write(self._ours, keys.replace("\n", "\r").encode())

    def until(self, wanted: str) -> None:
        """Wait until something is shown that was not shown when this was last asked."""
        until_s = monotonic() + PATIENCE_S
        while wanted not in self.seen[self._unread :]:
            assert monotonic() < until_s, f"{wanted!r} is not in {self.seen[self._unread :]!r}"
            assert self._read(), f"it ended without {wanted!r}: {self.seen[self._unread :]!r}"
        self._unread = self.seen.index(wanted, self._unread) + len(wanted)

    def press(self, keys: str, wanted: str) -> None:
        """Press keys until something is shown. A key at the very moment a prompt appears may wait for the next one."""
        again_s = 0.0
        until_s = monotonic() + PATIENCE_S
        while wanted not in self.seen[self._unread :]:
            assert monotonic() < until_s, f"{wanted!r} is not in {self.seen[self._unread :]!r}"
            if monotonic() >= again_s:
                self.type(keys)
                again_s = monotonic() + PRESS_AGAIN_S
            assert self._read(), f"it ended without {wanted!r}: {self.seen[self._unread :]!r}"
        self._unread = self.seen.index(wanted, self._unread) + len(wanted)

    def end(self) -> int:
        """Everything it still shows; gives its exit code, as a shell would."""
        until_s = monotonic() + PATIENCE_S
        while self._read():
            assert monotonic() < until_s, f"it does not end: {self.seen[self._unread :]!r}"
        return self.process.wait(PATIENCE_S)

    @property
    def words(self) -> str:
        """What was shown, without what only moves the cursor or colours it."""
        return _SEQUENCES.sub("", self.seen).replace("\r\n", "\n")

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 1)[0]:
            return True
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:
            return False  # This is how a terminal says that the other side has hung up.
        self.seen += piece.decode(errors="replace")
        return bool(piece)


def _own_terminal() -> None:
    """Make the terminal the one from which the new session takes its Ctrl-C."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
