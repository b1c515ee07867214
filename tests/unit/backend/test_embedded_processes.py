"""Several processes on one store: rivals, a key made twice, locks that die, and kill -9."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remit.backend.embedded.disk.locks import FileLocks
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.signing import is_head_signed
from remit.core.record import digest_of
from tests import warm

# Real processes take their time; `make check` leaves them to `make test`.
pytestmark = pytest.mark.slow

# No process here takes a tenth of it; it only bounds a test that would hang.
WAIT_S_MAX = 60

START = """
import asyncio, itertools, sys
from pathlib import Path
from remit.backend.embedded.store import EmbeddedStore
from remit.core.record import digest_of
from remit.core.journal.storage import AppendConflict, Barrier, RunListing
from tests.unit.backend.signed import journal_of

home, name = Path(sys.argv[1]), sys.argv[2]

def say(*words):
    print(*words, flush=True)

def wait():
    sys.stdin.readline()
"""

RIVAL = (
    START
    + """
async def whole():
    store = EmbeddedStore.open(home)
    say("ready")
    wait()
    won = 0
    for after in range(-1, 29):
        try:
            await journal_of(store).append("run", name.encode(), after=after, barrier=Barrier() if after % 5 == 0 else None)
            won += 1
        except AppendConflict:
            pass
        listing = RunListing(1) if after == -1 else None
        await journal_of(store).append(name, b"%d" % after, after=after, listing=listing)
    await store.close()
    say(won, store.did)

asyncio.run(whole())
"""
)

ENDLESS = (
    START
    + """
async def drive(store, run_id):
    for after in itertools.count(-1):
        text = f"{run_id} {after + 1}".encode() * 200
        await store.blobs.put(digest_of(text), text)
        await journal_of(store).append(
            run_id, digest_of(text), after=after, barrier=Barrier() if after % 3 == 0 else None,
            listing=RunListing(1) if after == -1 else None,
        )
        say(run_id, after + 1, int(after % 3 == 0))

async def whole():
    store = EmbeddedStore.open(home)
    await asyncio.gather(*(drive(store, f"run{number}") for number in range(10)))

asyncio.run(whole())
"""
)

HOLDER = (
    START
    + """
store = EmbeddedStore.open(home)
say(store.locks.take(name))
wait()
"""
)

KEY = (
    START
    + """
from remit.backend.embedded.owner.key_file import load_signer
from remit.core.journal.signing import Signer
Signer.generate()
say("ready")
wait()
say(load_signer(home).did)
"""
)


@contextmanager
def process(program: str, home: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, str(home), name]
    with warm.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def hear(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    assert select.select([child.stdout], [], [], WAIT_S_MAX)[0], "the process says nothing"
    return child.stdout.readline().strip()


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def test_of_two_processes_one_writes_each_turn_and_both_go_on(tmp_path: Path) -> None:
    with process(RIVAL, tmp_path, "a") as first, process(RIVAL, tmp_path, "b") as second:
        assert hear(first) == hear(second) == "ready"
        tell(first)
        tell(second)
        said = [hear(first).split(), hear(second).split()]
    assert int(said[0][0]) + int(said[1][0]) == 30
    assert said[0][1] == said[1][1]

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        turns = list(await store.journal.read("run"))
        assert [str(turns.count(name)) for name in (b"a", b"b")] == [said[0][0], said[1][0]]
        for name in ("a", "b"):
            assert await store.journal.read(name) == [b"%d" % after for after in range(-1, 29)]
        heads = await store.catalogue.heads("run")
        assert [head.seq for head in heads] == [1, 6, 11, 16, 21, 26]
        assert all(is_head_signed(head) for head in heads)
        assert await store.log.heads("run") == heads
        await store.close()

    asyncio.run(scene())


def test_whatever_was_told_is_there_after_a_kill(tmp_path: Path) -> None:
    with process(ENDLESS, tmp_path, "") as child:
        told = [hear(child).split() for _ in range(500)]
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait(WAIT_S_MAX) == -signal.SIGKILL
        assert child.stdout is not None
        # The kill may have cut the last line.
        told += [words for line in child.stdout.read().splitlines() if len(words := line.split()) == 3]
    last = {run_id: int(seq) for run_id, seq, _ in told}
    barriers = {(run_id, int(seq)) for run_id, seq, is_barrier in told if is_barrier == "1"}
    assert len(last) == 10

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        for run_id, seq in last.items():
            turns = await store.journal.read(run_id)
            assert len(turns) > seq
            for position, digest in enumerate(turns):
                assert await store.blobs.get(digest) == f"{run_id} {position}".encode() * 200
            heads, logged = await store.catalogue.heads(run_id), await store.log.heads(run_id)
            # The log is never ahead of the store, and holds every head that a caller was told of.
            assert logged == heads[: len(logged)]
            assert {seq for other, seq in barriers if other == run_id} <= {head.seq for head in logged}
        await store.close()

    asyncio.run(scene())


def test_a_lock_keeps_other_processes_out_until_its_process_dies(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)
    with process(HOLDER, tmp_path, "run") as child:
        assert hear(child) == "True"
        assert not locks.take("run")
        assert locks.take("other")
        assert not locks.is_alone()
        os.kill(child.pid, signal.SIGKILL)
        child.wait(WAIT_S_MAX)
        assert locks.take("run")
        assert locks.is_alone()
    locks.close()


def test_a_run_held_here_is_refused_to_another_process(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)
    assert locks.take("run")
    with process(HOLDER, tmp_path, "run") as child:
        assert hear(child) == "False"
    locks.release("run")
    with process(HOLDER, tmp_path, "run") as child:
        assert hear(child) == "True"
    locks.close()


def test_processes_that_make_a_key_at_the_same_time_use_the_same(tmp_path: Path) -> None:
    children = [process(KEY, tmp_path, "") for _ in range(4)]
    with children[0] as a, children[1] as b, children[2] as c, children[3] as d:
        everyone = (a, b, c, d)
        assert {hear(child) for child in everyone} == {"ready"}
        for child in everyone:
            tell(child)
        assert len({hear(child) for child in everyone}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_another_process_hears_what_was_left_in_the_inbox(tmp_path: Path) -> None:
    program = START + "say(asyncio.run(EmbeddedStore.open(home).inbox.put(name, b'approve')))"

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        with process(program, tmp_path, "run") as child:
            number = int(await asyncio.to_thread(hear, child))
        (entry,) = await store.inbox.pending(after=0)
        assert (entry.number, entry.run_id, entry.data) == (number, "run", b"approve")
        await store.close()

    asyncio.run(scene())


def test_a_text_of_another_process_is_found_here(tmp_path: Path) -> None:
    program = START + (
        "store = EmbeddedStore.open(home)\n"
        "async def whole():\n"
        "    await store.blobs.put(digest_of(b'text'), b'text')\n"
        "    await store.close()\n"
        "asyncio.run(whole())\n"
        "say('done')\n"
    )

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        with process(program, tmp_path, "") as child:
            assert await asyncio.to_thread(hear, child) == "done"
        assert await store.blobs.get(digest_of(b"text")) == b"text"
        await store.close()

    asyncio.run(scene())
