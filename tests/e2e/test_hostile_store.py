"""A store that a stranger made, cloned with git: real commands in it load nothing, ask no server, and write nothing."""

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remit.adapters.cli.table import command_entries
from tests import warm
from tests.e2e.command import COMMAND, PATIENCE_S

TOOLS = '''
from pathlib import Path

from remit import tool

Path(__file__).with_name("LOADED").touch()


@tool(effect="write")
def pay(to: str) -> str:
    """Pay a person."""
    return f"paid {to}"
'''
REPLIES = {"replies": [{"tool_calls": [{"name": "pay", "arguments": {"to": "eve"}}]}, {"text": "done"}]}
QUEUES = "queues:\n  - name: operator\n    webhook: http://127.0.0.1:{port}/hook\n"
TOKEN = "sk-the-key-of-the-victim"


class Bait:
    """A folder with a store that a stranger made, in which a run waits for a person; and who was called from it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.heard: list[bytes] = []
        self.environment = {**os.environ, "REMIT_TRUST": f"{folder}.list", "OPENAI_API_KEY": TOKEN}

    @property
    def is_loaded(self) -> bool:
        return (self.folder / "LOADED").exists()

    @property
    def kept(self) -> dict[str, bytes]:
        """The store as it is, file by file; what SQLite needs to read is no part of it."""
        found = [self.folder / ".remit" / name for name in ("remit.db", "heads.log", "key", "queues.yaml")]
        return {path.name: path.read_bytes() for path in found if path.exists()}

    def say(self, *words: str) -> subprocess.CompletedProcess[str]:
        return warm.run(
            [COMMAND, *words],
            cwd=self.folder,
            env=self.environment,
            input="hello\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def asked(self) -> str:
        (line,) = self.say("approvals", "--json").stdout.splitlines()
        return str(json.loads(line)["id"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def listening(bait: Bait) -> Iterator[None]:
    """A listener at the address that the store names, who hears whatever is sent there."""
    with socket.create_server(("127.0.0.1", bait.port)) as server:
        server.settimeout(0.05)
        is_over = threading.Event()

        def listen() -> None:
            while not is_over.is_set():
                try:
                    caller, _ = server.accept()
                except TimeoutError:
                    continue
                with caller:
                    bait.heard.append(caller.recv(65536))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def made_by_a_stranger(folder: Path) -> Bait:
    """What a stranger puts into a repository: a store with an open run, its tools, its key."""
    folder.mkdir()
    bait = Bait(folder, free_port())
    (folder / "tools.py").write_text(TOOLS)
    (folder / "script.json").write_text(json.dumps(REPLIES))
    # No server listens yet, so the second of the chain answers; both are recorded.
    engine = f"openai:m?url=http://127.0.0.1:{bait.port}/v1|scripted:script.json"
    begun = bait.say("run", "Pay eve", "--engine", engine, "--tools", "tools.py", "--session", "chat")
    assert begun.returncode == 3, begun.stderr
    (folder / ".remit" / "queues.yaml").write_text(QUEUES.format(port=bait.port))
    return bait


@pytest.fixture(scope="module")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bait]:
    """The clone of a stranger's repository, in which a victim types commands."""
    place = tmp_path_factory.mktemp("hostile")
    stranger = made_by_a_stranger(place / "theirs")
    for words in (
        ["init", "-q"],
        ["add", "-A", "-f"],
        ["-c", "user.name=e", "-c", "user.email=e@e", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=stranger.folder, check=True, capture_output=True)
    subprocess.run(["git", "clone", "-q", "theirs", "ours"], cwd=place, check=True, capture_output=True)
    shutil.rmtree(stranger.folder)
    # The paths that were recorded lead to what the stranger wrote, wherever it was cloned to.
    (place / "theirs").symlink_to(place / "ours")
    (place / "ours" / "LOADED").unlink()
    victim = Bait(place / "ours", stranger.port)
    with listening(victim):
        yield victim


READS, REFUSED, ELSEWHERE = "reads", "refused", "elsewhere"
# What each command may do in a store that is not ours: look at it, nothing, or it never looks there. A command that is
# not listed here fails the first test below.
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "demo": (ELSEWHERE, []),
    "dev": (ELSEWHERE, []),
    "chat": (REFUSED, ["chat", "--engine", "scripted:script.json", "--session", "chat"]),
    "run": (REFUSED, ["run", "x", "--engine", "scripted:script.json"]),
    "resume": (REFUSED, ["resume", "--all"]),
    "fork": (REFUSED, ["fork", "last", "--at", "0", "--why", "x"]),
    "halt": (REFUSED, ["halt", "--why", "x"]),
    "signal": (REFUSED, ["signal", "last", "resume"]),
    "approvals": (READS, ["approvals"]),
    "approve": (REFUSED, ["approve", "last"]),
    "reject": (REFUSED, ["reject", "last"]),
    "grants list": (READS, ["grants", "list"]),
    "grants give": (REFUSED, ["grants", "give", "--like", "last", "--times", "1", "--until", "1h"]),
    "grants revoke": (REFUSED, ["grants", "revoke", "g1"]),
    "import": (REFUSED, ["import", "tools.py"]),
    # Without servers, none of these begins anything; what they do there is asked of the servers.
    **dict.fromkeys(
        ["gateway", "channel cli", "channel hook", "keys", "keys account", "keys admit", "keys revoke"], (ELSEWHERE, [])
    ),
    **dict.fromkeys(["worker loop", "worker model", "worker tools", "worker letters"], (ELSEWHERE, [])),
    "queues": (READS, ["queues"]),
    "queues ack": (REFUSED, ["queues", "ack", "last"]),
    "queues drain": (REFUSED, ["queues", "drain", "operator"]),
    "constrain": (ELSEWHERE, []),
    "guard": (REFUSED, ["guard"]),
    "runs": (READS, ["runs"]),
    "show": (READS, ["show", "last"]),
    "explain": (READS, ["explain", "last"]),
    "trace": (READS, ["trace", "last"]),
    "cost": (READS, ["cost"]),
    # It counts what runs that ended elsewhere came to, which writes.
    "quotas": (REFUSED, ["quotas"]),
    "export": (READS, ["export", "last"]),
    "verify": (READS, ["verify", "last"]),
    "replay": (READS, ["replay", "last"]),
    "redact": (REFUSED, ["redact", "last", "--why", "x", "--pattern", "any"]),
    "restore": (READS, ["restore", "--all"]),
    "delete": (REFUSED, ["delete", "last"]),
    "rebuild": (REFUSED, ["rebuild"]),
    "gc": (REFUSED, ["gc"]),
    # The copy stays the stranger's: its key is not in the list of this user's stores.
    "backup": (READS, ["backup", "../copy"]),
    "doctor": (READS, ["doctor"]),
    "trust": (READS, ["trust"]),
    "models list": (ELSEWHERE, []),
    "models add": (ELSEWHERE, []),
    "models show": (ELSEWHERE, []),
    "completion": (ELSEWHERE, []),
    "boundary check": (ELSEWHERE, []),
    "boundary show": (ELSEWHERE, []),
    "boundary diff": (ELSEWHERE, []),
    "graph check": (ELSEWHERE, []),
    "graph draw": (ELSEWHERE, []),
}
ALSO = {
    "restore --accept": ["restore", "last", "--accept", "--why", "x"],
    "resume --accept-tools": ["resume", "last", "--accept-tools"],
    "signal retry": ["signal", "last", "retry"],
    "signal cancel": ["signal", "last", "cancel"],
}


def test_of_every_command_it_is_known_what_it_may_do_in_a_store_that_is_not_ours() -> None:
    assert sorted(COMMANDS) == sorted(entry.words for entry in command_entries())


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(0o644, id="key as git leaves it", marks=pytest.mark.soak),
        pytest.param(0o600, id="key as its maker had it"),
    ],
)
@pytest.mark.parametrize("words", [*(words for words, (how, _) in COMMANDS.items() if how != ELSEWHERE), *ALSO])
def test_nothing_runs_nothing_leaves_and_nothing_is_written_in_a_cloned_store(
    cloned: Bait, words: str, mode: int
) -> None:
    (cloned.folder / ".remit" / "key").chmod(mode)
    how, said = (REFUSED, ALSO[words]) if words in ALSO else COMMANDS[words]
    before = cloned.kept
    done = cloned.say(*said)
    if how == REFUSED:
        assert done.returncode == 1, done.stderr
        assert "error STORE_NOT_TRUSTED: " in done.stderr
        assert "`remit trust`" in done.stderr
    else:
        assert "STORE_NOT_TRUSTED: " not in done.stderr
        assert "Traceback" not in done.stderr
    assert not cloned.is_loaded
    assert cloned.heard == []
    assert cloned.kept == before


def test_a_user_who_trusts_a_store_has_seen_every_path_and_address_in_it(cloned: Bait) -> None:
    (cloned.folder / ".remit" / "key").chmod(0o600)
    looked = cloned.say("trust")
    assert looked.returncode == 3
    for named in ("theirs/tools.py", "theirs/script.json", f"http://127.0.0.1:{cloned.port}/v1", "/hook", "did:key:z"):
        assert named in looked.stdout
    assert cloned.say("reject", "last").returncode == 1


def test_after_a_person_said_so_a_store_is_used_and_its_address_gets_no_key(tmp_path: Path) -> None:
    stranger = made_by_a_stranger(tmp_path / "store")
    (stranger.folder / "LOADED").unlink()
    victim = Bait(stranger.folder, stranger.port)
    victim.environment["REMIT_TRUST"] = str(tmp_path / "list of the victim.jsonl").replace(" ", "-")
    with listening(victim):
        assert victim.say("approve", "last").returncode == 1
        assert victim.say("trust", "--yes", "--json").returncode == 0
        # A no loads nothing, in a store of the user's own too.
        assert victim.say("reject", "last").returncode == 3
        assert (victim.is_loaded, victim.heard) == (False, [])
        victim.say("signal", "last", "resume")
        assert (victim.is_loaded, bool(victim.heard)) == (True, True)
    assert not any(TOKEN.encode() in said for said in victim.heard)
