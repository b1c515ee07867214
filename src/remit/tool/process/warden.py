"""The warden of an isolated call: the process between remit and the tool, and the walls that it can put up.

Rule 1: the tool's parent is a process of this call alone. A signal that ends it ends the call, and nothing else.
Rule 2: where the kernel lets it, the tool has process numbers of its own (a namespace): it can neither see nor signal
        anything outside, and everything in there ends with the first of them. Elsewhere it can signal what its user can.
Rule 3: processes are counted every few milliseconds, because no limit of the kernel's binds root; a tool that has too many of
        them loses them all.
Rule 4: how the tool's process ended is how the warden ends.
"""

import ctypes
import os
import re
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from remit.tool.process.confinement import Limits

# A bomb makes some thousand processes in this time, and then they are gone.
LOOK_S = 0.02
# A plain user in a namespace of its own is held to so many threads for each process it may have, by the kernel.
THREADS_PER_PROCESS = 4
# The fewest numbers of processes that a kernel lets a namespace have; older ones have one figure for the machine.
_NUMBERS_MIN = 301
_NUMBERS_SINCE = (6, 14)

_NEWNS, _NEWUSER, _NEWPID = 0x00020000, 0x10000000, 0x20000000
_REC, _PRIVATE, _NOSUID, _NODEV, _NOEXEC = 0x4000, 1 << 18, 2, 4, 8
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_STATUS = struct.Struct("=i")
# Ends like no process does by itself: it had too many others.
TOO_MANY = -1
_KILL_ROUNDS_MAX = 100
_FIRST = -20
# Every process but the first of its namespace; no process outside is meant, since none can be reached.
EVERYBODY = -1
SIGNALLED = 128


class Walls(NamedTuple):
    """What stands around the processes of a tool: whether they have numbers and a user of their own."""

    has_numbers: bool = False
    has_user: bool = False


def kept_within(limits: Limits, work: Callable[[], int], lifeline: int, *, is_boxed: bool) -> int:
    """Have work done in a process of its own under a warden; the status that it ended with, or TOO_MANY.

    `is_boxed` says that walls stand already. When the lifeline ends, so does everything here. It is looked at without a
    thread: a process whose children have numbers of their own may begin none.
    """
    walls = Walls(has_numbers=True) if is_boxed else raise_walls()
    if is_boxed or not walls.has_numbers:
        return _guarded(limits, work, walls, lifeline, is_alone=is_boxed)
    told, tell = os.pipe()
    init = os.fork()
    if init == 0:
        _end_with_parent()
        os.close(told)
        is_alone = mount_proc()
        if is_alone:
            _limit_numbers(limits.processes_max)
        status = _guarded(limits, work, walls, lifeline, is_alone=is_alone)
        os.write(tell, _STATUS.pack(status))
        # What was counted for tests is written by the normal end; this one has to be the last thing that happens.
        sys.exit(0)
    os.close(tell)
    if lifeline in select.select([told, lifeline], [], [])[0]:
        os.killpg(0, signal.SIGKILL)
    data = os.read(told, _STATUS.size)
    os.waitpid(init, 0)
    return _STATUS.unpack(data)[0] if data else signal.SIGKILL


def end_as(status: int) -> int:
    """End the way that another process ended: by its signal, or with its exit status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if os.getpid() == 1:
            # The first process of a namespace takes no signal from within; shells tell of one this way.
            return SIGNALLED + number
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


def raise_walls() -> Walls:
    """Give what this process starts next numbers of its own, and a plain user a user namespace that allows it."""
    unshare = getattr(_libc(), "unshare", None)
    if unshare is None:
        return Walls()
    user, group = os.getuid(), os.getgid()
    if user == 0 and unshare(_NEWPID | _NEWNS) == 0:
        return Walls(has_numbers=True)
    if unshare(_NEWUSER | _NEWPID | _NEWNS) != 0:
        return Walls()
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{file}", "w") as stream:  # noqa: PTH123  # the kernel wants one write, and no more
            stream.write(text)
    return Walls(has_numbers=True, has_user=True)


def mount_proc() -> bool:
    """Show in /proc the processes of this namespace alone; False where the kernel does not let it."""
    mount = _libc().mount
    if mount(None, b"/", None, _REC | _PRIVATE, None) != 0:
        return False
    return bool(mount(b"proc", b"/proc", b"proc", _NOSUID | _NODEV | _NOEXEC, None) == 0)


def _limit_numbers(processes_max: int) -> None:
    """Let this namespace run out of numbers, where the kernel counts them by namespace and allows it.

    Before it did, the figure was that of the whole machine, which is not changed here.
    """
    if not has_own_numbers(os.uname().release):
        return
    with suppress(OSError):
        Path("/proc/sys/kernel/pid_max").write_text(str(max(_NUMBERS_MIN, processes_max + THREADS_PER_PROCESS)))


def has_own_numbers(release: str) -> bool:
    """Whether a kernel of this release has a highest process number for each namespace."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return found is not None and (int(found[1]), int(found[2])) >= _NUMBERS_SINCE


def prefer(pid: int) -> None:
    """Let the warden have the processor before what it watches, where this process may decide that."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _FIRST)


def _guarded(limits: Limits, work: Callable[[], int], walls: Walls, lifeline: int, *, is_alone: bool) -> int:
    """Start the work, wait for its end and count what it starts meanwhile."""
    _prctl(_SET_CHILD_SUBREAPER, 1)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    others = len(_numbers()) if is_alone else 0
    worker = os.fork()
    if worker == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _end_with_parent()
        limit_process(limits, walls)
        sys.exit(work())
    own = _own_number()
    while True:
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_S)
        if select.select([lifeline], [], [], 0)[0]:
            os.killpg(0, signal.SIGKILL)
        if (status := _reaped(worker)) is not None:
            break
        count = len(_numbers()) - others if is_alone else len(_descendants(own))
        if count > limits.processes_max:
            status = TOO_MANY
            break
    if walls.has_numbers and os.getpid() == 1:
        # Before anything else is done here, which would have to wait for a processor that they have.
        with suppress(ProcessLookupError):
            os.kill(EVERYBODY, signal.SIGKILL)
    else:
        _end_descendants()
    return status


def limit_process(limits: Limits, walls: Walls) -> None:
    """Take away from this process, and from what it starts, what goes beyond the limits."""
    wanted = [(resource.RLIMIT_AS, limits.memory_bytes_max), (resource.RLIMIT_CORE, 0)]
    if walls.has_user:
        # Counted in this namespace alone; elsewhere it would count everything that the user runs.
        wanted.append((resource.RLIMIT_NPROC, limits.processes_max * THREADS_PER_PROCESS))
    if os.getpriority(os.PRIO_PROCESS, 0) == _FIRST:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    for kind, most in wanted:
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _reaped(worker: int) -> int | None:
    """Forget every process that has ended; the status of the worker when it is among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return signal.SIGKILL
        if pid == worker:
            return status
        if pid == 0:
            return None


def _end_descendants() -> None:
    """Kill what is left below this process. What it started after that has a parent here again, so it is looked for anew."""
    for _ in range(_KILL_ROUNDS_MAX):
        left = _descendants(os.getpid())
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _own_number() -> int:
    """The number of this process in the /proc that is there, which may be that of another namespace."""
    try:
        return int(Path("/proc/self").readlink().name)
    except OSError:
        return os.getpid()


def _numbers() -> list[int]:
    """The processes that /proc shows."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208  # looked at all the time
    except OSError:
        return []


def _descendants(ancestor: int) -> list[int]:
    """All processes below one, as /proc shows them."""
    parents: dict[int, list[int]] = {}
    for pid in _numbers():
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
            if fields[0] != b"Z":
                parents.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _end_with_parent() -> None:
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    prctl = getattr(_libc(), "prctl", None)
    if prctl is not None:
        prctl(option, value, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    # Asked by the doctor: whether walls can be raised here.
    sys.exit(0 if raise_walls().has_numbers else 1)
