"""Tools that try to get out of their sandbox, each in one way, and say how far they came."""

# ruff: noqa: BLE001, T201  # whatever holds a tool back is what is looked for, and so is what it prints

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from remit import tool


def _connected(port: str) -> str:
    socket.create_connection(("127.0.0.1", int(port)), 2).close()
    return "connected"


def _signalled(number: str = "") -> str:
    os.kill(int(number) if number else os.getppid(), signal.SIGKILL)
    return "signalled"


def _became(user: str) -> str:
    os.setuid(int(user))
    return "became"


ATTEMPTS: dict[str, Callable[..., str]] = {
    "read": lambda place: Path(place).read_text(),
    "list": lambda place: " ".join(sorted(entry.name for entry in Path(place).iterdir())),
    "write": lambda place: str(Path(place).write_text("mine")),
    "variable": lambda name: os.environ.get(name, "unset"),
    "connect": _connected,
    "signal": _signalled,
    "become": _became,
}


def _tried(what: str, arguments: list[str]) -> str:
    """What came of one attempt: its gain, or the error that was in its way."""
    try:
        return ATTEMPTS[what](*arguments)
    except Exception as error:
        return type(error).__name__


@tool(effect="none", sandbox=True)
def boxed(what: str, arguments: list[str]) -> str:
    """Try something in a sandbox."""
    return _tried(what, arguments)


@tool(effect="read", sandbox=True, network=True, environment=["ASKED_FOR"])
def boxed_with_network(what: str, arguments: list[str]) -> str:
    """Try something in a sandbox that has the network."""
    return _tried(what, arguments)


@tool(effect="none", sandbox=True, limits={"memory_bytes_max": 1 << 30})
def eats(bytes_wanted: int) -> int:
    """Take memory."""
    return len(bytearray(bytes_wanted))


@tool(effect="none", sandbox=True, limits={"processes_max": 16}, timeout_ms=60_000)
def multiplies() -> str:
    """Fork without end."""
    while True:
        try:
            os.fork()
        except OSError:
            continue


@tool(effect="none", sandbox=True, limits={"output_bytes_max": 100_000})
def floods() -> str:
    """Print without end."""
    while True:
        print("x" * 1000)
