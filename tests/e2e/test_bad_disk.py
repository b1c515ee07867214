"""A disk that fails: damaged, of another version, read-only, full. Each has its code, and what was written stays written.

A disk that is read-only or full is made with mounts of our own (`unshare --mount`): root, as which tests run in many a
container, may write into a folder whatever its mode says.
"""

import os
import resource
import shlex
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random, SystemRandom

import pytest

from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.disk.disk_failures import (
    DAMAGED,
    FULL,
    NOT_FOUND,
    READ_ONLY,
    VERSION_UNKNOWN,
)
from remit.backend.embedded.disk.tables import MIGRATIONS
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING
from tests.e2e.command import COMMAND, PATIENCE_S, SCRIPT, TOOLS, Answer, Remit, prove_all
from tests.e2e.house import calls, says

SEED = int(os.environ.get("REMIT_RANDOM_SEED") or SystemRandom().randrange(1 << 32))

TOOL_FILE = """
from remit import tool

@tool(effect="write")
def note(words: int) -> str:
    \"\"\"Keep a note of so many words.\"\"\"
    return "word " * words
"""

# What is said while an outcome waits for the disk.
KEPT = "is kept and tried again"
# Half a megabyte.
WORDS = 100_000

# Codes with which a store, or a run in it, may say that its bytes are not what they were.
OF_DAMAGE = {DAMAGED, "JOURNAL_UNREADABLE", "JOURNAL_CHAIN_BROKEN", "JOURNAL_FORMAT_UNKNOWN", "RUN_MISSING"}
ATTEMPTS = 6


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, in which one run has ended and another waits."""
    remit = Remit(tmp_path_factory.mktemp("filled"))
    remit.write(TOOL_FILE, [calls("note", {"words": WORDS}), says("Noted.")])
    assert remit.run_here().exit_code == EXIT_WAITING
    assert remit.here("approve", "last").exit_code == EXIT_OK
    # One word more: what is kept already would need no room.
    remit.write(replies=[calls("note", {"words": WORDS + 1}), says("Noted.")])
    assert remit.run_here().exit_code == EXIT_WAITING
    return remit.folder


@pytest.fixture
def remit(filled: Path, tmp_path: Path) -> Remit:
    """The same folder, to be spoiled."""
    return Remit(shutil.copytree(filled, tmp_path / "work"))


READING = (("runs",), ("show", "last"), ("trace", "last"), ("approvals",), ("verify", "last"))


def looks(remit: Remit) -> list[Answer]:
    """What every way to look at the store comes to, and one to write."""
    return [remit.here(*command) for command in (*READING, ("approve", "last"))]


def overwritten(path: Path, chance: Random) -> None:
    """Random bytes, up to a page of them. Between the ends of this file lies one long text."""
    data = bytearray(path.read_bytes())
    at = chance.choice([chance.randrange(100, 60_000), chance.randrange(len(data) - 60_000, len(data) - 4_096)])
    size = chance.choice([8, 100, 4_096])
    data[at : at + size] = chance.randbytes(size)
    path.write_bytes(data)


def truncated(path: Path, chance: Random) -> None:
    """Not all of it."""
    os.truncate(path, chance.randrange(1, path.stat().st_size))


def no_database(path: Path, chance: Random) -> None:
    """Something else."""
    path.write_text("This is not the database you are looking for.\n" * 1000)


def of_another_program(path: Path, chance: Random) -> None:
    """A database of another program."""
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE turns (song TEXT)")


@pytest.mark.parametrize("spoil", [no_database, of_another_program])
def test_what_is_no_store_is_refused_and_left_alone(spoil: Callable[[Path, Random], None], remit: Remit) -> None:
    path = remit.home / DATABASE
    spoil(path, Random(SEED))
    before = path.read_bytes()
    for answer in looks(remit):
        assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, DAMAGED), answer
        assert DATABASE in answer.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("spoil", [overwritten, truncated])
@pytest.mark.parametrize("attempt", range(ATTEMPTS))
def test_damage_anywhere_in_the_database_is_told_and_never_taken_for_something_else(
    attempt: int, spoil: Callable[[Path, Random], None], remit: Remit, tmp_path: Path
) -> None:
    before, exported = [remit.here(*command) for command in READING], remit.here("export", "last").out
    backup = tmp_path / "backup"
    shutil.copytree(remit.home, backup)
    spoil(remit.home / DATABASE, Random(f"{SEED} {attempt}"))
    *read, written = looks(remit)
    for was, answer in zip(before, read, strict=True):
        where = f"REMIT_RANDOM_SEED={SEED}, attempt {attempt}: {answer}"
        # A reader that meets the damage is told; one that does not, or only meets a damaged cache, gets what was there.
        is_as_before = (answer.exit_code, answer.out) == (was.exit_code, was.out)
        is_warned = answer.err == was.err or DAMAGED in answer.err
        assert (is_as_before and is_warned) or answer.exit_code == EXIT_FAILED, where
        assert answer.error_code in {"", *OF_DAMAGE}, where
    assert written.error_code in {"", *OF_DAMAGE}, f"REMIT_RANDOM_SEED={SEED}, attempt {attempt}: {written}"
    # What left the store before is as good as ever, and so is the backup.
    (tmp_path / "run.jsonl").write_text(exported)
    assert Remit(tmp_path).here("verify", str(tmp_path / "run.jsonl")).exit_code == EXIT_OK
    shutil.rmtree(remit.home)
    shutil.move(backup, remit.home)
    assert remit.here("approve", "last").exit_code == EXIT_OK
    assert prove_all(remit.home) == 2


def test_a_store_of_a_later_version_is_refused_and_left_alone(remit: Remit) -> None:
    later = len(MIGRATIONS) + 1
    with closing(sqlite3.connect(remit.home / DATABASE)) as connection:
        connection.execute(f"PRAGMA user_version = {later}")
    for answer in looks(remit):
        assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, VERSION_UNKNOWN), answer
        assert f"version {later}" in answer.err
    with closing(sqlite3.connect(remit.home / DATABASE)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    assert prove_all(remit.home) == 2


def test_a_store_that_is_not_there_is_missed_by_a_reader_and_not_made(tmp_path: Path) -> None:
    for answer in looks(Remit(tmp_path)):
        assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, NOT_FOUND), answer
    assert list(tmp_path.iterdir()) == []


def mounted(remit: Remit, mounts: str, command: str) -> Answer:
    """What a shell command comes to where other mounts hold; they end with it."""
    unshare = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    done = subprocess.run(
        [*unshare, "sh", "-c", f"({mounts}) || exit 99; {command}"],
        cwd=remit.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def mounting(remit: Remit) -> Remit:
    """The same folder, where this system lets us mount something."""
    if shutil.which("unshare") is None or mounted(remit, "mount -t tmpfs tmpfs /mnt", "true").exit_code != 0:
        assert os.environ.get("CI") != "true", "no mounts: give the tests a system on which unshare --mount works"
        pytest.skip("no mounts: `unshare --mount` is missing or not allowed here, so a disk cannot be made to fail")
    return remit


def run_command(store: Path) -> str:
    run = [COMMAND, "run", "Do it.", "--engine", f"scripted:{SCRIPT}", "--tools", TOOLS, "--home", store, "--json"]
    return shlex.join(map(str, run))


def test_a_read_only_disk_can_be_read_and_says_so_when_something_is_to_be_written(mounting: Remit) -> None:
    remit, store = mounting, mounting.home
    home = shlex.quote(str(store))
    read_only = f"mount --bind {home} {home} && mount -o remount,ro,bind {home}"
    remit_ = f"{shlex.quote(str(COMMAND))} --home {home}"
    reading = mounted(remit, read_only, f"{remit_} runs && {remit_} verify last && {remit_} replay last")
    assert reading.exit_code == EXIT_OK, reading
    writing = mounted(remit, read_only, run_command(store))
    assert (writing.exit_code, writing.error_code) == (EXIT_FAILED, READ_ONLY), writing
    answering = mounted(remit, read_only, f"{remit_} approve last --json")
    assert (answering.exit_code, answering.error_code) == (EXIT_FAILED, READ_ONLY), answering
    assert remit.here("approve", "last").exit_code == EXIT_OK
    assert prove_all(store) == 2


def test_a_disk_that_is_full_after_an_effect_loses_neither_its_outcome_nor_anything_before(mounting: Remit) -> None:
    """A small disk of its own takes the store; what is left of it is filled, and a thread makes room after a while."""
    remit = mounting
    disk = remit.folder / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=4m tmpfs {disk} && cp -a {remit.home} {disk}/store"
    remit_ = f"{shlex.quote(str(COMMAND))} --home {disk}/store"
    keep = f"cp -a {disk}/store {remit.folder}/kept"
    # Room is made once the outcome is said to be kept; what was said is said again, for those who look.
    making_room = f"until grep -q '{KEPT}' {disk}/../err; do sleep 0.05; done; rm {disk}/ballast"
    # The room that is left takes the lock file and a page or two, and not the text that the run is about.
    fill = f"dd if=/dev/zero of={disk}/ballast bs=64k count=1000 2>/dev/null; truncate -s -128k {disk}/ballast"
    approving = f"{remit_} approve last --json 2>{disk}/../err & pid=$!; {making_room}; wait $pid; code=$?"
    answer = mounted(remit, mount, f"{fill}; {approving}; {keep}; cat {disk}/../err >&2; exit $code")
    assert (answer.exit_code, FULL in answer.err, answer.values["content"]) == (EXIT_OK, True, "Noted."), answer
    shutil.rmtree(remit.home)
    shutil.move(remit.folder / "kept", remit.home)
    assert prove_all(remit.home) == 2
    assert remit.here("verify", "--all").exit_code == EXIT_OK


def expect_to_go_on(remit: Remit) -> None:
    assert prove_all(remit.home) == 2
    waiting = remit.here("approvals", "--json").out.splitlines()
    # The answer was heard or it was not; either way the run goes on to its end.
    answer = remit.here("approve", "last", "--json") if waiting else remit.here("resume", "last", "--json")
    assert answer.exit_code in (EXIT_OK, EXIT_WAITING), answer
    assert prove_all(remit.home) == 2


def limited(remit: Remit, limit: int) -> "subprocess.Popen[str]":
    """An answer in a process whose files may not grow beyond a limit (RLIMIT_FSIZE), which it may be freed of."""
    return subprocess.Popen(
        [COMMAND, "approve", "last", "--json", "--home", remit.home],
        cwd=remit.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),  # noqa: PLW1509  # no thread runs here
    )


def test_a_store_that_cannot_be_opened_for_want_of_room_says_so(remit: Remit) -> None:
    """Too little for the shared memory of the database: nothing was done, so nothing is waited for."""
    out, err = limited(remit, 4_096).communicate(timeout=PATIENCE_S)
    assert Answer(EXIT_FAILED, out, err).error_code == FULL
    expect_to_go_on(remit)


# Too little for the first commit, for the long text, for what comes after it.
@pytest.mark.parametrize("limit", [33_000, 60_000, 300_000])
def test_a_file_that_may_not_grow_any_more_is_a_full_disk_and_outcomes_wait_for_room(limit: int, remit: Remit) -> None:
    process = limited(remit, limit)
    assert process.stderr is not None
    said = process.stderr.readline()
    if KEPT in said:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
    out, err = process.communicate(timeout=PATIENCE_S)
    answer = Answer(process.returncode, out, said + err)
    assert FULL in said + out, answer
    if KEPT in said:
        assert (answer.exit_code, answer.values["content"]) == (EXIT_OK, "Noted."), answer
        assert remit.here("verify", "--all").exit_code == EXIT_OK
    else:
        # What was not heard was not done.
        assert (answer.exit_code, answer.error_code) == (EXIT_FAILED, FULL), answer
        expect_to_go_on(remit)


def test_a_user_who_does_not_want_to_wait_for_room_ends_the_process_and_the_call_is_in_doubt(remit: Remit) -> None:
    process = limited(remit, 300_000)
    assert process.stderr is not None
    assert KEPT in process.stderr.readline()
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    # What cannot be written cannot be written when the store is closed, either.
    assert process.returncode in (EXIT_FAILED, 128 + signal.SIGTERM)
    expect_to_go_on(remit)
