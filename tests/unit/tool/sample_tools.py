"""Tools that a subprocess can load, for the tests of isolation."""

# ruff: noqa: T201  # what these tools print is what is tested

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from remit.tool.call.call_metadata import CallMetadata
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import NotDone, Stop
from remit.tool.declare.decorator import tool
from remit.tool.secrets.secret import Secret


@dataclass
class Point:
    x: int
    y: int


def is_positive(arguments: dict[str, Any], result: Point) -> str:
    return "" if result.x > 0 else f"x={result.x} of {arguments} is not positive"


@tool(effect="none", isolate=True, verify=is_positive)
def mirrored(point: Point, idempotency_key: str, token: CancelToken) -> Point:
    """Mirror a point."""
    print(f"mirroring for {idempotency_key}, cancelled: {token.cancelled}")
    print("to the other stream", file=sys.stderr)
    return Point(point.y, point.x)


@tool(effect="none", isolate=True)
def labelled(about: CallMetadata) -> str:
    """Say what the request was about."""
    return ", ".join(f"{key}={value}" for key, value in about.items())


@tool(effect="none", isolate=True)
async def halted() -> Stop:
    return Stop("enough")


@tool(effect="none", isolate=True)
def own_pid() -> int:
    return os.getpid()


@tool(effect="none", isolate=True)
def reads_input() -> str:
    return sys.stdin.read()


@tool(effect="none", isolate=True)
def raises() -> None:
    raise ValueError("no such thing")


@tool(effect="none", isolate=True)
def declines() -> None:
    raise NotDone("the bank is closed")


@tool(effect="none", isolate=True)
def exits() -> None:
    print("last words", file=sys.stderr, flush=True)
    os._exit(7)


@tool(effect="none", isolate=True)
def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@tool(effect="none", isolate=True)
def forges() -> None:
    """Write into the pipe that is meant for the result."""
    os.write(int(sys.argv[1]), (3).to_bytes(8, "big") + b"{]}")
    os._exit(0)


@tool(effect="none", isolate=True)
def chatters(count: int) -> int:
    for _ in range(count):
        print("x" * 1023)
    return count


@tool(effect="none", isolate=True)
def leaves_a_child(folder: str) -> str:
    """Start a process that outlives the call and holds its output."""
    return str(_started(Path(folder)).pid)


@tool(effect="none", isolate=True, limits={"output_bytes_max": 100_000})
def prints_without_end() -> None:
    while True:
        print("x" * 1023)


@tool(effect="none", isolate=True, limits={"processes_max": 8})
def multiplies(count: int) -> int:
    """Have so many processes at once."""
    started = [subprocess.Popen(["sleep", "30"]) for _ in range(count)]
    Event().wait(0.5 if count <= 7 else 30)
    for each in started:
        each.kill()
    return count


@tool(effect="none", isolate=True, limits={"memory_bytes_max": 1 << 30})
def takes_memory(bytes_wanted: int) -> int:
    return len(bytearray(bytes_wanted))


@tool(effect="none", isolate=True, environment=["ASKED_FOR"])
def sees() -> dict[str, str]:
    return dict(os.environ)


@tool(effect="none", isolate=True)
def kills_its_parent() -> list[int]:
    """Signal the parent, and every process with a number that it can think of."""
    os.kill(os.getppid(), signal.SIGKILL)
    for number in range(3, 200):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(number, signal.SIGKILL)
    return [os.getpid(), os.getppid()]


@tool(effect="none", isolate=True)
def forges_a_result(text: str) -> None:
    os.write(int(sys.argv[1]), len(text.encode()).to_bytes(8, "big") + text.encode())
    os._exit(0)


@tool(effect="external", isolate=True)
def hangs(folder: str) -> None:
    """Start a process and never return."""
    os.chdir(folder)
    _started(Path(folder))
    _told(Path(folder) / "began", "")
    Event().wait()


@tool(effect="none", isolate=True)
def lingers(folder: str) -> str:
    """Return, but leave a thread that keeps the process from ending."""
    from threading import Thread

    Thread(target=Event().wait).start()
    return "done"


def _started(folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], cwd=folder)


def _told(path: Path, text: str) -> None:
    """Write so that a reader who sees the file sees all of it."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(path)


@tool(effect="none", isolate=True)
def echoes(text: str) -> str:
    return text


@tool(effect="none", isolate=True, secrets={"token": "TOKEN", "wrapped": "OTHER"})
def tells_its_secrets(token: str, wrapped: Secret) -> dict[str, Any]:
    """Say what the process was given, and where it can be seen from outside."""
    print(f"printing {token}")
    command, environment = (Path(f"/proc/self/{name}").read_bytes().decode() for name in ("cmdline", "environ"))
    seen = [value in command + environment for value in (token, wrapped.reveal())]
    return {"token": token, "wrapped": wrapped.reveal(), "shown": str(wrapped), "seen": seen}


@tool(effect="none", isolate=True, secrets={"token": "TOKEN"})
def dies_with_its_secret(token: str) -> None:
    """Print more than is kept of it, and die."""
    print(token * 2_000, flush=True)
    os._exit(7)
