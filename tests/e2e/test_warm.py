"""A process that starts warm is the process that a start from nothing makes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.e2e.command import COMMAND, PATIENCE_S

pytestmark = pytest.mark.slow

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Everything that a program can tell of how it was started.
PROBE = """
import json, os, signal, sys, threading
streams = [sys.stdin, sys.stdout, sys.stderr]
print(json.dumps({
    "argv": sys.argv,
    "path": sys.path,
    "main": [sys.modules["__main__"].__name__, getattr(sys.modules["__main__"], "__file__", None)],
    "flags": list(sys.flags),
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "leads": os.getsid(0) == os.getpid(),
    "group": os.getpgid(0) == os.getpid(),
    "files": sorted(name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
    "signals": [str(signal.getsignal(number)).split(" at ")[0] for number in sorted(signal.valid_signals())],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": threading.active_count(),
    "streams": [[s.encoding, s.errors, s.line_buffering, s.write_through, s.fileno(), s.isatty()] for s in streams],
    "heard": sys.stdin.read(),
}))
print("said aside", file=sys.stderr)
"""


def told(run: Run, words: Sequence[object], folder: Path, **how: Any) -> tuple[int, Any, str]:
    environment = {**os.environ, "REMIT_HOME": "elsewhere", "PYTHONPATH": str(folder / "more"), warm.NURSERY: ""}
    done = run(
        [sys.executable, *words, "a word"],
        input="hello",
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        **how,
    )
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("is_session", [False, True])
@pytest.mark.parametrize("words", [["-c", PROBE], ["-m", "probe"], ["probe.py"]], ids=["text", "module", "file"])
def test_a_program_cannot_tell_that_it_started_warm(words: list[str], is_session: bool, tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    first, second = (told(run, words, tmp_path, start_new_session=is_session) for run in (warm.run, subprocess.run))
    assert first == second
    assert first[1]["heard"] == "hello"


@pytest.mark.parametrize(
    "program",
    [
        "import sys; sys.exit(3)",
        "import sys; sys.exit('no')",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.kill(os.getpid(), 15)",
        "import os; os.abort()",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
        "import atexit; atexit.register(print, 'at the end'); print('before')",
        "import threading; threading.Timer(0.1, print, ['a thread is waited for']).start()",
        "import sys\nclass Late:\n    def __del__(self): sys.stderr.write('deleted at the end')\nlate = Late()",
    ],
)
def test_it_ends_as_any_process_ends(program: str) -> None:
    first, second = (
        run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        for run in (warm.run, subprocess.run)
    )
    assert first.returncode == second.returncode
    assert (first.stdout, first.stderr.splitlines()[-1:]) == (second.stdout, second.stderr.splitlines()[-1:])


def test_it_is_killed_by_its_number_and_nobody_else_is() -> None:
    program = "import os, signal\nprint(os.getpid(), flush=True)\nsignal.pause()"
    pair = [warm.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [int(process.stdout.readline()) for process in pair if process.stdout] == [process.pid for process in pair]
    os.kill(pair[0].pid, signal.SIGKILL)
    assert pair[0].wait(PATIENCE_S) == -signal.SIGKILL
    assert pair[1].poll() is None
    pair[1].terminate()
    assert pair[1].wait() == -signal.SIGTERM
    for process in pair:
        process.communicate()


def test_what_is_drawn_by_chance_differs_from_one_to_the_next() -> None:
    program = "import random, uuid, os; print(random.random(), uuid.uuid4(), os.urandom(8))"
    drawn = [warm.run([sys.executable, "-c", program], capture_output=True, text=True).stdout for _ in range(3)]
    assert len({word for line in drawn for word in line.split()}) == sum(len(line.split()) for line in drawn)


def test_what_an_interpreter_reads_before_a_program_is_a_start_from_nothing() -> None:
    program = "import os, sys; print(os.getppid(), sys.flags.hash_randomization)"
    seeded = {**os.environ, "PYTHONHASHSEED": "0"}
    for how in ({"env": seeded}, {"umask": 0o77}, {"preexec_fn": lambda: None}):
        done = warm.run([sys.executable, "-c", program], capture_output=True, text=True, **how)
        parent, randomized = done.stdout.split()
        assert int(parent) == os.getpid(), how
        assert randomized == ("0" if "env" in how else "1")
    dev = warm.run([sys.executable, "-X", "dev", "-c", "import sys; print(sys.flags.dev_mode)"], capture_output=True)
    assert dev.stdout == b"True\n"


def test_the_command_says_the_same_either_way(tmp_path: Path) -> None:
    for words in (["--version"], ["runs"], ["no such"], ["explain", "--help"]):
        first, second = (
            run([COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
            for run in (warm.run, subprocess.run)
        )
        assert (first.returncode, first.stdout, first.stderr) == (second.returncode, second.stdout, second.stderr)


def test_the_process_that_forks_ends_with_the_one_that_asks(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys\nfrom tests import warm\n"
        "done = warm.run([sys.executable, '-c', 'import os; print(os.getsid(0))'], capture_output=True, text=True)\n"
        "print(done.stdout, end='')"
    )
    asked = subprocess.run(
        [sys.executable, "-c", program],
        cwd=warm.ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        check=True,
        timeout=PATIENCE_S,
    )
    # It holds on to stdout and stderr of the one that began it: that this was read to its end says that it is gone.
    assert asked.stdout.strip().isdigit()
