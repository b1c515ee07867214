"""The command line on JetStream: every command works there, and a run whose process was killed goes on in another one."""

import asyncio
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

import remit as public
from remit.adapters.cli.main import EXIT_USAGE
from remit.backend.cluster.server.nats_server import NatsServer
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING
from tests import warm
from tests.e2e.command import COMMAND, PATIENCE_S, Answer, Remit, until
from tests.e2e.house import calls, says
from tests.nats_server import clear, free_ports

# A payment notes that it was asked for, and waits where there is no gate; it is made once per key.
TOOLS = """
import os, time
from pathlib import Path
from remit import tool

HERE = Path(__file__).parent

@tool(effect="write", idempotent=True, verify=lambda arguments, result: result.startswith("paid"))
def pay(idempotency_key: str) -> str:
    \"\"\"Pay once per key.\"\"\"
    (HERE / "asked").touch()
    while not (HERE / "gate").exists():
        time.sleep(0.01)
    try:
        os.close(os.open(HERE / f"paid {idempotency_key.replace('/', '-')}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "paid before"
    return "paid"
"""


class OnCluster:
    """The command in a folder, with runs on the server."""

    def __init__(self, folder: Path) -> None:
        self.remit = Remit(folder)
        self.remit.write(TOOLS, [calls("pay"), says("Paid.")])
        self.store = ("--store", f"{clear()}?lease_ms=1000")

    def here(self, *words: str) -> Answer:
        return self.remit.here(*words, *self.store)


@pytest.fixture
def cluster(tmp_path: Path) -> OnCluster:
    return OnCluster(tmp_path)


def test_every_view_and_answer_of_a_run_works_on_a_cluster(cluster: OnCluster) -> None:
    (cluster.remit.folder / "gate").touch()
    begun = cluster.remit.run_here(*cluster.store)
    assert begun.exit_code == EXIT_WAITING
    packet = begun.values["waiting_for"]["packet_ids"][0]
    assert not (cluster.remit.home / "remit.db").exists()
    assert cluster.here("approve", packet, "--json").values["terminal_code"] == "SUCCESS"
    assert len(list(cluster.remit.folder.glob("paid *"))) == 1
    exported = cluster.remit.folder / "run.jsonl"
    for words in (
        ("runs",),
        ("show", "last"),
        ("trace", "last"),
        ("explain", "last"),
        ("cost", "last"),
        ("verify", "last"),
        ("verify", "--all"),
        ("replay", "last"),
        ("queues",),
        ("quotas",),
        ("rebuild",),
        ("export", "last", "--output", str(exported)),
        ("verify", str(exported)),
        ("halt", "--why", "a test"),
        ("halt", "--lift", "--why", "a test"),
        ("doctor",),
        ("gc", "--older-than", "9"),
        ("delete", "last"),
    ):
        answer = cluster.here(*words)
        assert answer.exit_code == EXIT_OK, (words, answer)


def test_a_run_whose_process_was_killed_goes_on_in_another_one_and_pays_once(cluster: OnCluster) -> None:
    remit, store = cluster.remit, cluster.store
    packet = remit.run_here(*store).values["waiting_for"]["packet_ids"][0]
    driver = remit.start("approve", packet, *store)
    until((remit.folder / "asked").exists, "the tool is at work")
    held = cluster.here("resume", "last", "--json")
    assert (held.exit_code, held.error_code) == (EXIT_FAILED, "RUN_HELD")
    driver.kill()
    (remit.folder / "gate").touch()
    answers: list[Answer] = []

    def is_free() -> bool:
        answers.append(cluster.here("resume", "last", "--json"))
        return answers[-1].error_code != "RUN_HELD"

    until(is_free, "the lease of a process that is gone has ended")
    assert answers[-1].values["terminal_code"] == "SUCCESS", answers[-1]
    assert len(list(remit.folder.glob("paid *"))) == 1
    assert cluster.here("verify", "last").exit_code == EXIT_OK
    assert cluster.here("replay", "last").exit_code == EXIT_OK


def test_the_same_program_runs_on_a_cluster(
    cluster: OnCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "home"))
    script = tmp_path / "hello.json"
    script.write_text('{"replies": [{"text": "Hello."}]}')

    async def program() -> str:
        async with public.open(cluster.store[1]) as system:
            agent = public.AgentLoop(f"scripted:{script}", system=system)
            return str((await agent.chat(f"Hello {uuid4()}")).content)

    async def by_address() -> str:
        async with public.AgentLoop(f"scripted:{script}", home=cluster.store[1]) as agent:
            return str((await agent.chat("Hello")).content)

    assert asyncio.run(program()) == "Hello."
    assert asyncio.run(by_address()) == "Hello."
    monkeypatch.setenv("REMIT_STORE", cluster.store[1])
    assert asyncio.run(_runs()) == 2
    assert not (tmp_path / "home" / "remit.db").exists()


async def _runs() -> int:
    async with public.open() as system:
        return len(await system.archive.runs())


def test_dev_begins_a_server_whose_runs_outlive_it(tmp_path: Path) -> None:
    script = tmp_path / "hello.json"
    script.write_text('{"replies": [{"text": "Hello."}]}')
    home, (port,) = tmp_path / "home", free_ports(1)
    words = ["dev", "--nats", "--port", str(port), "--engine", f"scripted:{script}", "--home", str(home)]
    said = warm.run([COMMAND, *words], input="Hi.\n", capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stdout.count("Hello.")) == (EXIT_OK, 1), said
    assert f"--store nats://127.0.0.1:{port}" in said.stderr
    with NatsServer(home / "nats", port=port) as server:
        stranger = Remit(tmp_path).here("runs", "--json", "--store", server.address)
        assert stranger.out == "", stranger
        assert "SIGNER_UNKNOWN" in stranger.err, stranger
        runs = Remit(tmp_path).here("runs", "--json", "--store", server.address, "--home", str(home))
    assert len(runs.out.splitlines()) == 1, runs
    refused = Remit(tmp_path).here("dev", "--nats", "--store", "nats://h")
    assert refused.exit_code == EXIT_USAGE


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("is_at_work", [False, True], ids=["at the prompt", "in a run"])
def test_dev_takes_its_server_and_its_workers_along_however_it_ends(
    tmp_path: Path, number: signal.Signals, is_at_work: bool
) -> None:
    remit, (port,) = Remit(tmp_path), free_ports(1)
    remit.write(TOOLS.replace('effect="write", ', 'effect="read", '), [calls("pay"), says("Paid.")])
    words = [
        "--port",
        str(port),
        "--engine",
        f"scripted:{tmp_path / 'script.json'}",
        "--tools",
        str(tmp_path / "tools.py"),
    ]
    with (tmp_path / "said").open("w") as said:
        dev = subprocess.Popen(
            [COMMAND, "dev", "--nats", *words, "--home", str(remit.home)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
        )
    assert dev.stdin is not None
    until(lambda: "workers drive them" in (tmp_path / "said").read_text(), "everything has begun")
    until(lambda: len(processes_of(remit.home)) == len(["dev", "server", "loop", "model", "tools"]), "all are there")
    if is_at_work:
        dev.stdin.write(b"Pay.\n")
        dev.stdin.flush()
        until((tmp_path / "asked").exists, "a tool is at work")
    dev.send_signal(number)
    (tmp_path / "gate").touch()
    assert dev.wait(PATIENCE_S) == (-number if number == signal.SIGKILL else 128 + signal.SIGTERM)
    until(lambda: not processes_of(remit.home), "nothing of it runs")
    dev.stdin.close()


def processes_of(home: Path) -> list[int]:
    """The processes whose command lines name a folder, or what is in it."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            is_dead = (entry / "stat").read_text().rpartition(")")[2].split()[:1] == ["Z"]
            if entry.name.isdecimal() and str(home).encode() in (entry / "cmdline").read_bytes() and not is_dead:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("address", ["nats://", "nats://host?lease_ms=5", "nats://host?x=1", "nats://u:pass@?"])
def test_an_address_that_is_none_is_wrong_usage(address: str, tmp_path: Path) -> None:
    answer = Remit(tmp_path).here("runs", "--store", address)
    assert answer.error_code == "STORE_ADDRESS_INVALID"
    assert "pass" not in answer.err
