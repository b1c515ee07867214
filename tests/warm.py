"""Processes that start warm: one that has imported the house forks a child for each program that a test starts.

The child is what a start from nothing would have made: a process with a pid, signals and an exit status of its own, with
the arguments, the environment, the folder, the session and the standard streams that were asked for, which ends as an
interpreter ends. Only the imports are done already. What this cannot stand in for (options of the interpreter, variables
that are read before a program begins, a function that is to run before it) starts from nothing, as does whatever is
started by `subprocess` itself: tests of starting use that one.

    python -m tests.warm SOCKET     is the process that forks; it has no thread, no event loop and no open store.
"""

import atexit
import gc
import importlib
import os
import pickle
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from uuid import uuid4

import remit

ROOT = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).with_name("remit"))

# More than the environment and the command line of any test.
REQUEST_BYTES_MAX = 1 << 17
# The interpreter, the libraries and the locale read these before a program begins.
EARLY = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "MALLOC_", "OPENSSL_")
# Packages of others that the house imports where it first needs them.
LATER = ("cel_expr_python", "cryptography.hazmat.primitives.asymmetric.ed25519", "jsonschema_rs")

# Messages about a child: its pid, and at its end its status.
TOLD = struct.Struct("q")
# Where the process that forks is asked, by the process that runs tests and by those it starts.
NURSERY = "REMIT_TESTS_NURSERY"
WAITING_MAX = 128


class Request(NamedTuple):
    """What a child is to become."""

    words: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    is_session: bool
    # What is to be done before the program begins.
    before: Callable[[], object] | None


class Popen(subprocess.Popen[Any]):
    """A process that starts warm where it can; in everything else as `subprocess` has it."""

    _told: int | None = None

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, *more: Any) -> None:
        """Have a child forked; what comes in which place stands in the base class."""
        close_fds, pass_fds, folder, environment, *_ = more
        pipes, restored, *ids, umask, is_session, group = more[7:13], *more[13:]
        is_plain = executable is None and close_fds and restored and not pass_fds
        is_ours = ids == [None, None, None] and umask == -1 and group == -1
        request = _request(args, folder, environment, is_session, preexec_fn) if is_plain and is_ours else None
        if request is None:
            super()._execute_child(args, executable, preexec_fn, *more)  # type: ignore[misc]
            return
        given = (pipes[0], pipes[3], pipes[5])
        streams = [place if fd == -1 else fd for place, fd in enumerate(given)]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
                asked.connect(_nursery())
                socket.send_fds(asked, [request], streams)
                self._told = asked.detach()
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self.pid = self._heard()
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._told is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc, no-any-return]
        if wait_flags == os.WNOHANG and not select.select([self._told], [], [], 0)[0]:
            return 0, 0
        status = self._heard()
        os.close(self._told)
        return self.pid, status

    def _internal_poll(self, *arguments: Any, **named: Any) -> int | None:
        if self._told is None:
            return super()._internal_poll(*arguments, **named)  # type: ignore[misc, no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                ended, status = self._try_wait(os.WNOHANG)
                if ended:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode

    def _heard(self) -> int:
        assert self._told is not None
        told = os.read(self._told, TOLD.size)
        assert told, f"the process that forks is gone; nobody knows what became of {self.args!r}"
        (number,) = TOLD.unpack(told)
        return int(number)


def run(
    args: Sequence[Any],
    *,
    input: Any = None,  # noqa: A002
    timeout: float | None = None,
    check: bool = False,
    **how: Any,
) -> "subprocess.CompletedProcess[Any]":
    """A process that starts warm where it can, to its end; the words are those of `subprocess.run`."""
    if input is not None:
        how["stdin"] = subprocess.PIPE
    if how.pop("capture_output", False):
        how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(args, **how) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def _request(
    args: Any, folder: Any, environment: Mapping[str, str] | None, is_session: bool, before: Any
) -> bytes | None:
    """What a child is asked to become; nothing where only a start from nothing comes to that."""
    words = tuple(map(os.fsdecode, args))
    words = words[1:] if words[0] == sys.executable else words
    if not words or not (words[0] in {"-c", "-m", COMMAND} or words[0].endswith(".py")):
        return None
    ours, theirs = os.environ, dict(os.environ if environment is None else environment)
    early = {name for name in {*ours, *theirs} if name.startswith(EARLY) and name != "PYTHONPATH"}
    if any(ours.get(name) != theirs.get(name) for name in early):
        return None
    try:
        return pickle.dumps(Request(words, os.fsdecode(folder or Path.cwd()), theirs, is_session, before))
    except (pickle.PicklingError, AttributeError):
        # What is to be done before is known in this process alone.
        return None


@cache
def _nursery() -> bytes:
    """Where to ask the process that forks. It begins when it is first asked, and ends with the tests."""
    if NURSERY not in os.environ:
        name = f"remit-tests-{uuid4().hex}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(f"\0{name}")
            listening.listen(WAITING_MAX)
            command = [sys.executable, "-m", "tests.warm", str(listening.fileno())]
            process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[listening.fileno()])
        # It goes when its input ends, which this process holds open until it goes itself.
        _started.append(process)
        os.environ[NURSERY] = name
    return f"\0{os.environ[NURSERY]}".encode()


_started: "list[subprocess.Popen[bytes]]" = []


@atexit.register
def _end() -> None:
    for process in _started:
        process.communicate()


def main(listening: socket.socket) -> None:
    """Fork for each request until no process is left to ask; a process that returns from here with work to do is a child."""
    for module in (*(found.name for found in pkgutil.walk_packages(remit.__path__, "remit.")), *LATER):
        if not module.endswith(".__main__"):
            importlib.import_module(module)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads must not fork"  # noqa: PTH208
    gc.freeze()
    # Nobody waits for the keepers; and an interrupt is for the process that asks.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while listening.fileno() in select.select([listening.fileno(), 0], [], [])[0]:
        asked, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            data, streams, _, _ = socket.recv_fds(asked, REQUEST_BYTES_MAX, 3)
            _keep(asked, streams)
            request = pickle.loads(data)
            _become(request, streams)
            _play(request.words)
            return
        asked.close()


def _keep(asked: socket.socket, streams: list[int]) -> None:
    """Fork the child, and tell its pid and its status. Only the child returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        asked.close()
        return
    for fd in (0, 1, 2, *streams):
        os.close(fd)
    # The process that asked may have gone.
    with suppress(BrokenPipeError):
        asked.send(TOLD.pack(pid))
        asked.send(TOLD.pack(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _become(request: Request, streams: list[int]) -> None:
    """Be the process that was asked for, up to its first line."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request.is_session:
        os.setsid()
    for place, fd in enumerate(streams):
        os.dup2(fd, place)
        os.close(fd)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    if request.before is not None:
        request.before()
    sys.stdin = sys.__stdin__ = _stream(0, sys.stdin)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, sys.stderr)  # type: ignore[misc]


def _stream(place: int, like: Any) -> TextIOWrapper:
    """A standard stream as the interpreter makes it."""
    data = open(place, "wb" if place else "rb", closefd=False)  # noqa: SIM115  # it stays open as long as the process
    is_line = not like.write_through and (place == 2 or os.isatty(place))
    return TextIOWrapper(data, like.encoding, like.errors, line_buffering=is_line, write_through=like.write_through)


def _play(words: tuple[str, ...]) -> None:
    """Run a program as the interpreter runs the first one."""
    path = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.modules["__main__"] = module = ModuleType("__main__")
    kind, *rest = words
    match kind:
        case "-m":
            sys.argv, sys.path[:1] = rest, [str(Path.cwd()), *path]
            runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined]
        case "-c":
            sys.argv, sys.path[:1] = ["-c", *rest[1:]], ["", *path]
            exec(compile(rest[0], "<string>", "exec"), module.__dict__)
        case _:
            sys.argv, sys.path[:1] = list(words), [str(Path(kind).parent.absolute()), *path]
            module.__file__ = str(Path(kind).absolute())
            exec(compile(Path(kind).read_bytes(), kind, "exec"), module.__dict__)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
