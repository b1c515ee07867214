"""The story that `remit demo` plays: a ticket is handled by a real model, within its remit, and proven afterwards.

Rule 1: every step is a command that is printed before it is run, in a folder that stays, so that each can be typed again.
Rule 2: a person decides. Without a terminal the demo plays the person, as identity `demo`, and says so.
Rule 3: it ends with 0 only if every command did what it should.
"""

import asyncio
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.options import COMMON, CommonOptions
from remit.adapters.cli.screen.live_lines import clear_remains
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_STOPPED, EXIT_WAITING, RemitError, RequestRejected

FOLDER = Path("remit-demo")
LOCAL = "local"
FOLDER_UNUSABLE = "DEMO_FOLDER_UNUSABLE"
DEMO_STALLED = "DEMO_STALLED"

# What the desk consists of; a file that was changed stays as it is.
FILES = ("ticket.txt", "desk.graph.yaml", "desk.py")
LEDGER = "ledger.sqlite"
# The start and the first answer are written; the model is being asked for the second.
TURNS_BEFORE_KILL = 2
# A model that has to be loaded first, on a busy machine, takes its time; beyond that something is wrong.
KILL_WAIT_S = 120.0
POLL_S = 0.02

BEGIN = shlex.split("run --file ticket.txt --graph desk.graph.yaml --tools desk.py --boundary customer_support")

ABOUT_MODEL = (
    "The model is SmolLM2-135M-Instruct, on this machine's processor, with no network and no key.",
    "It is small (98 MB) and answers within seconds; a grammar holds it to the shapes that it is asked for.",
)
ABOUT_RUN = ("It may look orders up by itself, and pay money back only when a person approves.",)

# What to try next, and what it shows.
NEXT = (
    ("remit demo --kill", "kill it while it works, and see it resumed"),
    ("remit chat --tools builtin:calculator,files=.", "talk to the model; /help lists what can be said"),
    ("remit graph draw {folder}/desk.graph.yaml", "the way the ticket took, as a picture"),
)


def demo(
    *,
    folder: Annotated[Path, Parameter(help="Where to play; `remit-demo` unless said. It is kept.")] = FOLDER,
    engine: Annotated[str, Parameter(help="Which model to ask; `local` unless said.")] = LOCAL,
    kill: Annotated[bool, Parameter(help="Kill the run with SIGKILL while it asks the model, and resume it.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Watch a real model handle a ticket: stopped for an approval, verified and replayed."""
    from remit.assemble import kit_for

    # A model that cannot be asked is said at once, before anything is made or told.
    kit_for(engine, base=folder.absolute(), settings=common.settings())
    desk = DemoTerminal(terminal, set_up(folder), common.home, shown=str(folder))
    for line in (*(ABOUT_MODEL if engine == LOCAL else [f"The model is {engine}."]), *ABOUT_RUN):
        desk.say(line)
    begin = [*BEGIN, "--engine", engine]
    if kill:
        desk.kill(*begin)
        desk.type("resume", "last", expected=(EXIT_WAITING,))
    else:
        desk.type(*begin, expected=(EXIT_WAITING,))
    if not desk.failures:
        let_person_decide(desk)
        for proof in ("trace", "explain", "verify", "replay"):
            desk.type(proof, "last")
    close_story(desk)
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


def let_person_decide(desk: "DemoTerminal") -> None:
    """Let the person at the terminal decide; without one, approve in their place."""
    if desk.is_attended:
        try:
            is_yes = is_approved()
        except KeyboardInterrupt:
            desk.say("")
            desk.say(f"The run waits. In {desk.folder}: remit approve last  or: remit reject last")
            raise
        if is_yes:
            desk.type("approve", "last")
        else:
            desk.type("reject", "last", "--reason", "not today", expected=(EXIT_WAITING,))
            # A refused effect is no success: the agent was stopped by a person.
            desk.type("signal", "last", "resume", expected=(EXIT_OK, EXIT_FAILED, EXIT_STOPPED))
    else:
        desk.say("")
        desk.say("There is no terminal, so the demo plays the person, as identity `demo`, and approves.")
        desk.type("approve", "last", "--by", "demo")


def is_approved() -> bool:
    """Whether the person says yes; silence is refusal."""
    try:
        return input("\nApprove the refund? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def close_story(desk: "DemoTerminal") -> None:
    """Say what was seen, and what to try next."""
    desk.say("")
    if desk.failures:
        desk.say("The demo failed: see above which command did not end as it should.")
    else:
        desk.say("The run was stopped, decided by a person, verified and replayed. To try next:")
        desk.say("")
        for command, shows in NEXT:
            desk.say(f"  {command.format(folder=desk.folder):<48}# {shows}")
    desk.report()


class DemoTerminal:
    """Types commands in the folder of the demo, and counts those that did not end as they should."""

    def __init__(self, terminal: Terminal, folder: Path, home: Path | None, *, shown: str) -> None:
        self.failures = 0
        # As the user wrote it.
        self.folder = shown
        self._terminal = terminal
        self._folder = folder
        self._home = (home or folder / ".remit").absolute()
        self._typed: list[dict[str, object]] = []

    @property
    def is_attended(self) -> bool:
        """Whether a person is there who can decide."""
        return self._terminal.is_live and sys.stdin is not None and sys.stdin.isatty()

    def say(self, text: str) -> None:
        """Tell the story."""
        if not self._terminal.is_json:
            self._terminal.line(text)

    def type(self, *words: str, expected: Collection[int] = (EXIT_OK,)) -> None:
        """Print a command, then run it and see how it ends."""
        self._print(words)
        with self._begun(words) as process:
            code = process.wait()
        self._typed.append({"command": shlex.join(["remit", *words]), "exit_code": code})
        if code not in expected:
            self.say(f"exit code {code} where {' or '.join(map(str, expected))} was expected")
            self.failures += 1

    def kill(self, *words: str) -> None:
        """Print a command, run it, and kill it without warning while the model is being asked."""
        self._print(words)
        # Before it begins: a run that is quick would be taken for one that was there.
        known = in_loop(self._known())
        with self._begun(words) as process:
            try:
                in_loop(self._under_way(process, known))
            finally:
                process.kill()
        self._typed.append({"command": shlex.join(["remit", *words]), "exit_code": process.returncode})
        clear_remains(self._terminal)
        self.say("The process was killed with SIGKILL in the middle of its work. Whatever it knew is in the store.")

    def report(self) -> None:
        """For programs: every command with its exit code."""
        if self._terminal.is_json:
            self._terminal.values({"ok": not self.failures, "folder": str(self._folder), "commands": self._typed})

    def _print(self, words: tuple[str, ...]) -> None:
        self.say("")
        self.say(f"$ {shlex.join(['remit', *words])}")

    def _begun(self, words: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        # For programs stdout holds one object and nothing else.
        out = subprocess.DEVNULL if self._terminal.is_json else self._terminal.descriptor
        # Typed in this folder, the commands find the store by themselves; here a REMIT_HOME may be in the way.
        command = [sys.executable, "-m", "remit", "--home", str(self._home), *words]
        return subprocess.Popen(command, cwd=self._folder, stdout=out)  # noqa: S603  # remit itself, with words of ours

    async def _known(self) -> set[str]:
        """The runs that are there."""
        from remit.assemble import opened_system, settings_of

        async with opened_system(settings_of(home=self._home)) as system:
            return {entry.run_id for entry in await system.archive.runs()}

    async def _under_way(self, process: "subprocess.Popen[bytes]", known: Collection[str]) -> None:
        """Wait until the run that a process drives asks its model a second time."""
        from remit.assemble import opened_system, settings_of

        until = time.monotonic() + KILL_WAIT_S
        async with opened_system(settings_of(home=self._home)) as system:
            while process.poll() is None and time.monotonic() < until:
                new = [entry for entry in await system.archive.runs() if entry.run_id not in known]
                if any(entry.turns >= TURNS_BEFORE_KILL for entry in new):
                    return
                await asyncio.sleep(POLL_S)
        raise RemitError(DEMO_STALLED, f"the run did not take {TURNS_BEFORE_KILL} turns within {KILL_WAIT_S:g} s")
