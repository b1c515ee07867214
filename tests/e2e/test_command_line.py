"""The installed command, as a process of its own: exit codes, JSON, hostile texts, signals, pipes and terminals.

Where starting is what is tested, and once from a run to its replay, the process starts from nothing; elsewhere it starts warm.
"""

import json
import os
import pty
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from remit.core.record import JsonObject
from tests import warm

REMIT = str(Path(sys.executable).with_name("remit"))
# Longer than any command here takes by far, on a machine that is busy with other tests.
PATIENCE_S = 60
POLL_S = 0.01
# Of the processor. A fifth of a second is what `make bench` looks for; this only notices that help has begun to load the house.
HELP_S_MAX = 2.0

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"
TOOLS = '''
import asyncio
from pathlib import Path

from remit.tool.declare.decorator import tool

HERE = Path(__file__).parent


@tool(effect="read")
def look(place: str) -> str:
    """Look somewhere."""
    print("\\x1b[2J printed by a tool")
    return "\\x1b]0;owned\\x07 found \\u202e nothing"


@tool(effect="write", idempotent=True)
def write(text: str, idempotency_key: str) -> str:
    """Write a note."""
    with (HERE / "notes.txt").open("a") as notes:
        notes.write(text + "\\n")
    return text


@tool(effect="read", timeout_ms=60_000)
async def wait() -> str:
    """Wait for a person to open the door."""
    (HERE / "waits").touch()
    while not (HERE / "door").exists():
        await asyncio.sleep(0.01)
    return "open"
'''


class Shop:
    """A folder with a store, tools and scripts, and the command to use them."""

    def __init__(self, folder: Path, run: Callable[..., "subprocess.CompletedProcess[Any]"] = warm.run) -> None:
        self.folder = folder
        self.run = run
        self.tools = folder / "tools.py"
        self.tools.write_text(TOOLS)
        self.environment = {**os.environ, "REMIT_HOME": str(folder / "home")}

    def words(self, *replies: JsonObject) -> list[str]:
        """A run of this script, with the tools."""
        script = self.folder / "script.json"
        script.write_text(json.dumps({"replies": replies}))
        return ["run", "Do it", "--engine", f"scripted:{script}", "--tools", str(self.tools)]

    def say(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a command answers."""
        done = self.run(
            [REMIT, *words], env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        return warm.Popen(
            [REMIT, *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def await_file(self, name: str, process: subprocess.Popen[str]) -> None:
        """Look until a file is there."""
        until = monotonic() + PATIENCE_S
        while not (self.folder / name).exists():
            assert monotonic() < until, "it never came"
            assert process.poll() is None, process.communicate()
            Event().wait(POLL_S)


def calls(*names: str) -> JsonObject:
    """A reply that calls tools."""
    arguments: dict[str, JsonObject] = {"look": {"place": "here"}, "write": {"text": "hello"}, "wait": {}}
    return {"tool_calls": [{"name": name, "arguments": arguments[name]} for name in names]}


WRITES = (calls("write"), {"text": "Written."})


@pytest.mark.parametrize(
    ("replies", "options", "code"),
    [
        (({"text": "Done."},), (), 0),
        (({"error": "INFERENCE_CONTEXT_EXCEEDED"},), (), 1),
        (({"text": "Done."},), ("--nope",), 2),
        (WRITES, (), 3),
        ((calls("look"), {"text": "Done."}), ("--budget", "steps=1"), 4),
    ],
)
def test_every_exit_code_comes_with_json_that_parses(
    tmp_path: Path, replies: tuple[JsonObject, ...], options: tuple[str, ...], code: int
) -> None:
    shop = Shop(tmp_path)
    done = shop.say(*shop.words(*replies), *options, "--json")
    assert done.returncode == code
    assert isinstance(json.loads(done.stdout), dict)
    assert shop.say(*shop.words(*replies), *options).returncode == code


def test_a_run_is_approved_verified_and_replayed_from_one_process_to_the_next(tmp_path: Path) -> None:
    shop = Shop(tmp_path, subprocess.run)
    assert shop.say(*shop.words(*WRITES)).returncode == 3
    done = shop.say("approve", "last", "--by", "ann")
    assert (done.returncode, done.stdout) == (0, "Written.\n")
    assert (tmp_path / "notes.txt").read_text() == "hello\n"
    for proof in ("verify", "replay"):
        assert shop.say(proof, "last").returncode == 0


def test_nothing_hostile_reaches_stdout_or_stderr(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    answer = {"text": f"{HOSTILE} said the model"}
    runs = shop.say(*shop.words(calls("look"), answer))
    assert "said the model" in runs.stdout
    assert "printed by a tool" in runs.stderr
    shown = [runs.stdout, runs.stderr]
    for words in (("show",), ("trace",), ("explain",), ("show", "--json"), ("trace", "--json"), ("explain", "--json")):
        done = shop.say(words[0], "last", *words[1:])
        shown += [done.stdout, done.stderr]
    assert all(text.replace("\n", "").isprintable() for text in shown)


def test_a_person_at_a_terminal_sees_the_answer_once_as_it_comes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    ours, theirs = pty.openpty()
    words = shop.words({"text": f"One {HOSTILE} two three.", "chunks": 3})
    with warm.Popen([REMIT, *words], env=shop.environment, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:
            pass  # This is how a terminal says that the other side has hung up.
        finally:
            os.close(ours)
        assert process.wait(PATIENCE_S) == 0
    assert seen.count(b"two three.") == 1
    assert b"\x1b" not in seen


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_can_be_resumed(tmp_path: Path, number: int, code: int) -> None:
    shop = Shop(tmp_path)
    process = shop.begin(*shop.words(calls("wait"), {"text": "Open."}))
    shop.await_file("waits", process)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert "stopped; go on with: remit resume " in said
    assert "Traceback" not in said
    (tmp_path / "door").touch()
    assert shop.say("resume", "last").stdout == "Open.\n"


def test_the_driver_of_a_run_hears_what_another_process_approves(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    process = shop.begin(*shop.words(calls("write", "wait"), {"text": "Both."}))
    shop.await_file("waits", process)
    held = shop.say("resume", "last", "--json")
    assert (held.returncode, json.loads(held.stdout)["error"]["code"]) == (1, "RUN_HELD")
    with shop.begin("approve", "last") as approving:
        shop.await_file("notes.txt", process)
        is_waiting = approving.poll() is None
        (tmp_path / "door").touch()
        told = approving.communicate(timeout=PATIENCE_S)
    assert is_waiting, "the approving process waits until the run rests"
    assert (approving.returncode, told[0]) == (0, "Both.\n")
    assert process.communicate(timeout=PATIENCE_S)[0] == "Both.\n"
    assert process.returncode == 0
    assert (tmp_path / "notes.txt").read_text() == "hello\n"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.say(*shop.words(calls("look"), {"text": "Done."}))
    with warm.Popen(
        [REMIT, "trace", "last"], env=shop.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(PATIENCE_S) == 0


def test_a_disk_without_room_for_the_answer_is_an_error_with_a_code(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with Path("/dev/full").open("w") as full:
        done = warm.run(
            [REMIT, *shop.words({"text": "Done."})],
            env=shop.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error OUTPUT_UNWRITABLE: ")
    assert done.stderr.count("\n") == 1
    assert "SUCCESS" in shop.say("runs").stdout


def test_help_answers_soon_and_without_loading_the_house(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = Shop(tmp_path, subprocess.run).say("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < HELP_S_MAX
    assert done.returncode == 0
    program = "import sys; from remit.adapters.cli.main import main; main(['--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"cyclopts", "msgspec", "asyncio", "rich"} & set(loaded.split())


def test_the_package_is_the_command_too(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "remit", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == Shop(tmp_path, subprocess.run).say("--version").stdout
