"""The installed command, as a process; and the same command line in this process, where a second one shows nothing more."""

import asyncio
import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple

from remit.adapters.cli.main import main
from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.store import EmbeddedStore
from tests import warm
from tests.e2e.crash_law import journals, prove

COMMAND = Path(sys.executable).parent / "remit"

# Longer than anything takes here on a machine that does other things as well.
PATIENCE_S = 60
POLL_S = 0.02

TOOLS, SCRIPT = "tools.py", "script.json"


class Answer(NamedTuple):
    """What a command came to."""

    exit_code: int
    out: str
    err: str

    @property
    def values(self) -> dict[str, Any]:
        """The last JSON object that it printed."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found

    @property
    def error_code(self) -> str:
        """The code it complained with, to programs or to people; empty when it did not."""
        if self.out.startswith('{"error"'):
            return str(self.values["error"]["code"])
        complaints = [line for line in self.err.splitlines() if line.startswith("error ")]
        return complaints[-1].removeprefix("error ").partition(":")[0] if complaints else ""


class Running:
    """A command under way."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def answer(self) -> Answer:
        """What it comes to, within seconds."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Answer(self.process.returncode, out, err)

    def kill(self) -> None:
        """End it at once, without a chance to clean up."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == -signal.SIGKILL


class Remit:
    """The command in one folder, with the store, the tools and the script that lie there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "store"

    def write(self, tools: str = "", replies: list[dict[str, Any]] | None = None) -> None:
        """Put a tool file and a script into the folder."""
        if tools:
            (self.folder / TOOLS).write_text(tools)
        if replies is not None:
            (self.folder / SCRIPT).write_text(json.dumps({"replies": replies}))

    def start(self, *arguments: str) -> Running:
        """The installed command, under way."""
        process = warm.Popen(
            [COMMAND, *arguments, "--home", self.home],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Running(process)

    def start_run(self, *arguments: str) -> Running:
        """A run with the tools and the script of this folder, under way in a process."""
        return self.start(*self._run(*arguments))

    def __call__(self, *arguments: str) -> Answer:
        """The installed command, to its end."""
        return self.start(*arguments).answer()

    def here(self, *arguments: str) -> Answer:
        """The same command line, in this process."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            exit_code = main([*arguments, "--home", str(self.home)])
        out.flush()
        written = out.buffer
        assert isinstance(written, io.BytesIO)
        return Answer(exit_code, written.getvalue().decode(), err.getvalue())

    def run_here(self, *arguments: str) -> Answer:
        """A run with the tools and the script of this folder, in this process."""
        return self.here(*self._run(*arguments))

    def open_run(self) -> str:
        """The one run that is open, once it is there."""
        until(self._open_runs, "a run has begun")
        (found,) = self._open_runs()
        return found

    def _open_runs(self) -> list[str]:
        if not (self.home / DATABASE).exists():
            return []
        listed = self.here("runs", "--open", "--json")
        return [json.loads(line)["run_id"] for line in listed.out.splitlines()] if listed.exit_code == 0 else []

    def _run(self, *arguments: str) -> tuple[str, ...]:
        tools = ("--tools", str(self.folder / TOOLS)) if (self.folder / TOOLS).exists() else ()
        prompt = () if any(argument == "--file" for argument in arguments) else ("Do it.",)
        return ("run", *prompt, "--engine", f"scripted:{self.folder / SCRIPT}", *tools, "--json", *arguments)


@contextmanager
def remit_in(folder: Path) -> Iterator[Remit]:
    """The command in a folder; on leaving, every run there verifies and decides to the same bytes again."""
    folder.mkdir(parents=True, exist_ok=True)
    remit = Remit(folder)
    yield remit
    if remit.home.exists():
        prove_all(remit.home)


def prove_all(home: Path) -> int:
    """Verify and audit every run of a store; gives how many there are."""

    async def look() -> int:
        store = EmbeddedStore.open(home)
        try:
            found = await journals(store)
            await prove(store, found)
        finally:
            await store.close()
        return len(found)

    return asyncio.run(look())


def until(condition: Callable[[], object], what: str) -> None:
    """Go on when something has come about; fail when it does not within seconds."""
    pause, deadline_s = Event(), monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline_s, f"not within {PATIENCE_S} s: {what}"
        pause.wait(POLL_S)
