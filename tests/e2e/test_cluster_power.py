"""Power loss under the shipped configuration: every turn that was acknowledged is there, and all that was not synced is gone.

That a file has its name, and a renamed one its new name, is taken for granted: the server syncs no folders.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.cluster.server.nats_server import NatsServer
from remit.backend.cluster.store import ClusterStore
from remit.core.journal.codec import read_json
from tests.e2e.command import until
from tests.e2e.disk import EVERYTHING, NOTHING, STRACE, Disk, Survival, read_trace
from tests.e2e.house import asking, says, scripted

RUNS = 6
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here: what was synced is not known")


class TracedServer(NatsServer):
    """A server whose system calls are noted; its power can fail."""

    def start(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        self.trace = self.folder / "trace"
        begin = subprocess.Popen

        def begun(command: list[object], **options: object) -> "subprocess.Popen[bytes]":
            return begin([*STRACE, "--output", self.trace, *command], **options)  # type: ignore[call-overload,no-any-return]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(subprocess, "Popen", begun)
            super().start()

    def _listening(self) -> str:  # type: ignore[explicit-override]
        found: list[tuple[int, str]] = []

        def is_listening() -> bool:
            texts = {int(path.stem.split("_")[1]): path.read_text() for path in self.folder.glob("nats-server_*.ports")}
            whole = {pid: text for pid, text in texts.items() if text.rstrip().endswith("}")}
            found.extend((pid, str(read_json(text)["nats"][0])) for pid, text in whole.items())
            return bool(found)

        until(is_listening, "the traced server listens")
        self.pid, address = found[0]
        return address

    def fail(self) -> None:
        """Have the power fail: the server is gone at once."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()


async def _acknowledged(address: str, home: Path) -> dict[str, list[bytes]]:
    """The turns of some runs, as they were told to be written."""
    store = ClusterStore.open(address, home)
    system = system_on(store, signer=lambda: store.key.signer)
    try:
        for number in range(RUNS):
            # In a session a first turn is an atomic batch; a long text is kept in chunks.
            asked = asking(f"{number} " + "word " * (8_000 if number == 1 else 1), session_id=f"s{number}")
            await system.run(asked, scripted([says("Yes.")]))
        return {run.run_id: [*await store.journal.read(run.run_id)] for run in await system.archive.runs()}
    finally:
        await system.close()


async def _verified(address: str, home: Path) -> dict[str, list[bytes]]:
    store = ClusterStore.open(address, home)
    system = system_on(store, signer=lambda: store.key.signer)
    try:
        runs = await system.archive.runs()
        assert all([(await system.archive.verify(run.run_id)).ok for run in runs])
        return {run.run_id: [*await store.journal.read(run.run_id)] for run in runs}
    finally:
        await system.close()


@needs_strace
@pytest.mark.parametrize(("sync", "is_kept"), [("always", True), ("5m", False)])
def test_no_acknowledged_turn_is_lost_with_the_power_where_every_write_is_synced(
    sync: str, is_kept: bool, tmp_path: Path
) -> None:
    server = TracedServer(tmp_path / "server", sync=sync)
    told = asyncio.run(_acknowledged(server.address, tmp_path / "home"))
    server.fail()
    assert len(told) == RUNS
    disk = Disk(server.folder)
    for step in read_trace(server.trace.read_text(errors="replace").splitlines()):
        disk.take(*step)
    (tmp_path / "after").mkdir()
    disk.rebuild(tmp_path / "disk", Survival(NOTHING.writes, EVERYTHING.namings))
    shutil.copytree(tmp_path / "disk" / "streams", tmp_path / "after" / "streams")
    with NatsServer(tmp_path / "after", sync="1m") as after:
        found = asyncio.run((_verified if is_kept else _read)(after.address, tmp_path / "home"))
    # Without syncing, turns are lost: the trace would tell if syncing were not what keeps them.
    assert (found == told) == is_kept


async def _read(address: str, home: Path) -> dict[str, list[bytes]]:
    store = ClusterStore.open(address, home)
    try:
        entries = await store.catalogue.entries()
        return {entry.run_id: [*await store.journal.read(entry.run_id)] for entry in entries}
    finally:
        await store.close()
