"""The story that `remit demo` plays: a ticket is handled by a real model, within its remit, and proven afterwards.

Rule 1: every step is a command that is printed before it is run, in a folder that stays, so that each can be typed again.
Rule 2: a person decides: at a terminal the run asks them. Elsewhere the demo plays the person, as identity `demo`, and says so.
Rule 3: it ends with 0 only if every command did what it should.
"""

import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.answers.attendance import is_attended
from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.screen.live_lines import clear_remains
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_STOPPED, EXIT_WAITING, RequestRejected

FOLDER = Path("remit-demo")
LOCAL = "local"
FOLDER_UNUSABLE = "DEMO_FOLDER_UNUSABLE"

# What the desk consists of; a file that was changed stays as it is.
FILES = ("ticket.txt", "desk.graph.yaml", "desk.py")
LEDGER = "ledger.sqlite"
# With --kill the bank takes so long to answer that it is killed meanwhile, and answers at once when it is asked again.
SLOW_BANK = MappingProxyType({"DESK_BANK_S": "60"})
POLL_S = 0.02

BEGIN = shlex.split("run --file ticket.txt --graph desk.graph.yaml --tools desk.py --boundary customer_support")

ABOUT_MODEL = (
    "The model is SmolLM2-135M-Instruct, on this machine's processor, with no network and no key.",
    "It is small (98 MB) and answers within seconds; a grammar holds it to the shapes that it is asked for.",
)
ABOUT_RUN = ("It may look orders up by itself, and pay money back only when a person approves.",)

# What to try next, and what it shows.
NEXT = (
    ("remit demo --kill", "kill it while it pays, and see that it is paid once"),
    ("remit chat --tools builtin:calculator,files=.", "talk to the model; /help lists what can be said"),
    ("remit graph draw {folder}/desk.graph.yaml", "the way the ticket took, as a picture"),
)


def demo(
    *,
    folder: Annotated[Path, Parameter(help="Where to play; `remit-demo` unless said. It is kept.")] = FOLDER,
    engine: Annotated[str, Parameter(help="Which model to ask; `local` unless said.")] = LOCAL,
    kill: Annotated[
        bool, Parameter(help="Kill the run with SIGKILL while the money is being paid, and resume it.")
    ] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Watch a real model handle a ticket: stopped for an approval, verified and replayed."""
    from remit.assemble import rooted_spec

    if common.store:
        raise wrong_usage("the demo keeps its runs in a folder of its own; leave --store out")
    # A model that cannot be asked is said at once, before anything is made or told.
    spec = rooted_spec(engine, base=Path.cwd(), settings=common.settings())
    desk = Desk(terminal, set_up(folder), common.home, shown=str(folder))
    for line in (*(ABOUT_MODEL if engine == LOCAL else [f"The model is {engine}."]), *ABOUT_RUN):
        desk.say(line)
    # Its commands are typed in the folder, where a path of the user's leads elsewhere.
    begin = [*BEGIN, "--engine", engine if engine == LOCAL else spec]
    if desk.is_attended:
        # The run asks; a no stops it, and leaving the question open lets it wait.
        code = (desk.kill if kill else desk.type)(*begin, expected=(EXIT_OK, EXIT_FAILED, EXIT_STOPPED, EXIT_WAITING))
        if code == EXIT_WAITING:
            desk.say("")
            desk.say(f"The run waits. In {desk.folder}: remit approve last  or: remit reject last")
            return EXIT_OK
    else:
        desk.type(*begin, expected=(EXIT_WAITING,))
        if not desk.failures:
            desk.say("")
            desk.say("There is no terminal, so the demo plays the person, as identity `demo`, and approves.")
            (desk.kill if kill else desk.type)("approve", "last", "--by", "demo")
    if not desk.failures:
        for proof in ("trace", "explain", "verify", "replay"):
            desk.type(proof, "last")
    close_story(desk, is_killed=kill)
    return EXIT_FAILED if desk.failures else EXIT_OK


def set_up(folder: Path) -> Path:
    """The folder of the desk, with whatever is missing there, and a ledger in which nothing was paid back yet."""
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if not (folder / name).exists():
                shutil.copyfile(Path(__file__).with_name(name), folder / name)
        (folder / LEDGER).unlink(missing_ok=True)
    except OSError as error:
        message = f"the folder {str(folder)!r} cannot be used: {error.strerror}; name another one with --folder"
        raise RequestRejected(FOLDER_UNUSABLE, message) from error
    return folder


def close_story(desk: "Desk", *, is_killed: bool) -> None:
    """Say what was seen, and what to try next."""
    desk.say("")
    if desk.failures:
        desk.say("The demo failed: see above which command did not end as it should.")
    else:
        desk.say("The run was stopped, decided by a person, verified and replayed. To try next:")
        desk.say("")
        for command, shows in NEXT[is_killed:]:
            desk.say(f"  {command.format(folder=desk.folder):<48}# {shows}")
    desk.report()


class Desk:
    """Types commands in the folder of the demo, and counts those that did not end as they should."""

    def __init__(self, terminal: Terminal, folder: Path, home: Path | str | None, *, shown: str) -> None:
        self.failures = 0
        # As the user wrote it.
        self.folder = shown
        self._terminal = terminal
        self._folder = folder
        self._home = Path(home or folder / ".remit").absolute()
        self._typed: list[dict[str, object]] = []

    @property
    def is_attended(self) -> bool:
        """Whether a person is there who can decide."""
        return is_attended(self._terminal)

    def say(self, text: str) -> None:
        """Tell the story."""
        if not self._terminal.is_json:
            self._terminal.line(text)

    def type(self, *words: str, expected: Collection[int] = (EXIT_OK,)) -> int:
        """Print a command, then run it and see how it ends."""
        self._print(words)
        with self._begun(words) as process:
            code = process.wait()
        self._ended(words, code, expected)
        return code

    def kill(self, *words: str, expected: Collection[int] = (EXIT_OK,)) -> int:
        """Print a command, run it, kill it without warning once the money is paid, and go on; it may end before that."""
        self._print(words)
        with self._begun(words, SLOW_BANK) as process:
            try:
                while process.poll() is None and not self._paid():
                    time.sleep(POLL_S)
            finally:
                process.kill()
        if process.returncode != -signal.SIGKILL:
            self._ended(words, process.returncode, expected)
            if self._paid():
                self.say(f"It ended before it was killed: {self.folder}/desk.py was changed; name another --folder.")
            return process.returncode
        self._ended(words, process.returncode, (process.returncode,))
        clear_remains(self._terminal)
        self.say("The process was killed with SIGKILL when the bank had paid and had not answered yet.")
        self._tell_paid()
        code = self.type("resume", "last")
        self.say("")
        self._tell_paid()
        self.failures += self._paid() != 1
        return code

    def _ended(self, words: tuple[str, ...], code: int, expected: Collection[int]) -> None:
        self._typed.append({"command": shlex.join(["remit", *words]), "exit_code": code})
        if code not in expected:
            self.say(f"exit code {code} where {' or '.join(map(str, expected))} was expected")
            self.failures += 1

    def _tell_paid(self) -> None:
        count = self._paid()
        self.say(f"Its ledger, {self.folder}/{LEDGER}, has {count} refund{'' if count == 1 else 's'}.")

    def _paid(self) -> int:
        """How many refunds the ledger has; none while it is not there or is being made."""
        try:
            with closing(sqlite3.connect(f"{(self._folder / LEDGER).as_uri()}?mode=ro", uri=True)) as connection:
                (count,) = connection.execute("SELECT count(*) FROM refunds").fetchone()
        except sqlite3.OperationalError:
            return 0
        return int(count)

    def report(self) -> None:
        """For programs: every command with its exit code."""
        if self._terminal.is_json:
            self._terminal.values({"ok": not self.failures, "folder": str(self._folder), "commands": self._typed})

    def _print(self, words: tuple[str, ...]) -> None:
        self.say("")
        self.say(f"$ {shlex.join(['remit', *words])}")

    def _begun(self, words: tuple[str, ...], extra: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        # For programs stdout holds one object and nothing else.
        out = subprocess.DEVNULL if self._terminal.is_json else self._terminal.descriptor
        # Typed in this folder, the commands find the store by themselves; here a REMIT_HOME may be in the way.
        command = [sys.executable, "-m", "remit", "--home", str(self._home), *words]
        environment = {**os.environ, **(extra or {})}
        return subprocess.Popen(command, cwd=self._folder, stdout=out, env=environment)  # noqa: S603  # remit itself, with words of ours
