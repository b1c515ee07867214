"""The installed command looks after itself: its check-up, its help, its completion, and a tree at a real terminal."""

import json
import os
import pty
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from remit.backend.embedded.disk.disk_failures import FULL
from tests.e2e.command import COMMAND, PATIENCE_S, Remit
from tests.e2e.house import calls, says

TOOL_FILE = """
from remit import tool

@tool(effect="read")
def look(n: int) -> str:
    \"\"\"Look.\"\"\"
    return f"seen {n}"
"""


@pytest.fixture
def remit(tmp_path: Path) -> Remit:
    """The command in a folder whose store holds a run."""
    remit = Remit(tmp_path)
    remit.write(TOOL_FILE, [calls("look", {"n": 1}), calls("nobody"), says("Seen.")])
    assert remit.run_here().exit_code == 0
    return remit


def test_a_store_that_is_well_passes_its_check_up(remit: Remit) -> None:
    answer = remit("doctor", "--json")
    assert answer.exit_code == 0, answer
    checks = {check["name"]: check for check in answer.values["checks"]}
    assert answer.values["ok"] is True
    for name in ("python", "remit", "store", "store.whole", "store.private", "store.key", "disk.free"):
        assert checks[name]["state"] == "ok", checks[name]
    assert "1 runs, 0 open" in checks["store"]["seen"]


def test_a_damaged_store_fails_its_check_up_and_says_what_to_do(remit: Remit) -> None:
    data = bytearray((remit.home / "remit.db").read_bytes())
    data[100:8_000] = os.urandom(7_900)
    (remit.home / "remit.db").write_bytes(data)
    answer = remit("doctor")
    assert answer.exit_code == 1
    assert "problem  store          STORE_DAMAGED" in answer.out
    assert "-> put back a backup" in answer.out


def test_a_disk_in_memory_is_told_from_a_disk(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or not os.access(memory, os.W_OK):
        pytest.skip("this machine has no disk in memory to be told from a real one")
    checks = json.loads(
        subprocess.run(
            [COMMAND, "doctor", "--json", "--home", memory / f"remit-{os.getpid()}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        ).stdout
    )["checks"]
    (sync,) = [check for check in checks if check["name"] == "disk.sync"]
    assert sync["state"] == "doubtful", sync
    assert not (memory / f"remit-{os.getpid()}").exists()


def test_a_bash_that_was_taught_completes_a_command() -> None:
    program = f"""
        export PATH={COMMAND.parent}:$PATH
        source <(remit completion bash)
        function=$(complete -p remit | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        COMP_WORDS=(remit ru) COMP_CWORD=1 COMP_LINE="remit ru" COMP_POINT=8
        $function remit ru remit
        echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(remit trace --la) COMP_CWORD=2 COMP_LINE="remit trace --la" COMP_POINT=16
        $function remit --la trace
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    commands, options = done.stdout.splitlines()
    assert set(commands.split()) == {"run", "runs"}, done
    assert options.split() == ["--last"]


def test_a_person_at_a_terminal_sees_a_tree_in_colour(remit: Remit) -> None:
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    environment.pop("NO_COLOR", None)
    seen = at_a_terminal(environment, "trace", "last", "--home", str(remit.home))
    assert "├─ " in seen
    assert "█" in seen
    assert "\x1b[32m" in seen
    assert "refused" in seen
    plain = at_a_terminal({**environment, "NO_COLOR": "1"}, "trace", "last", "--home", str(remit.home))
    assert "\x1b" not in plain


def at_a_terminal(environment: dict[str, str], *words: str) -> str:
    """What a command shows at a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([COMMAND, *words], env=environment, stdout=theirs, stderr=theirs) as process:
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
    return seen.decode()


def test_help_of_a_command_loads_nothing_that_paints() -> None:
    program = "import sys; from remit.adapters.cli.main import main; main(['trace', '--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not {"rich", "markdown_it", "sqlite3", "remit.assemble"} & set(loaded.split())


@pytest.mark.parametrize(
    ("words", "code"), [(("run", "--nope"), 2), (("show", "nobody"), 1), (("graph", "check", "x"), 1)]
)
def test_an_error_is_one_line_for_people_and_an_object_for_programs(
    words: tuple[str, ...], code: int, remit: Remit
) -> None:
    answer = remit(*words)
    assert (answer.exit_code, answer.out, answer.err.count("\n")) == (code, "", 1), answer
    assert answer.err.startswith("error ")
    told = remit(*words, "--json")
    assert (told.exit_code, told.err) == (code, "")
    assert told.values["error"]["code"] in answer.err


def test_a_disk_without_room_says_so_without_a_traceback(remit: Remit) -> None:
    done = subprocess.run(
        [COMMAND, "run", "Hi", "--engine", f"scripted:{remit.folder / 'script.json'}", "--home", remit.folder / "new"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096)),
    )
    assert (done.returncode, FULL in done.stderr) == (1, True), done
    assert "Traceback" not in done.stderr
    assert "make room" in done.stderr
