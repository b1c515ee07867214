"""The files beside the database: the key, the locks and the log of heads; and the thread that syncs."""

import asyncio
import fcntl
import json
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.disk import locks
from remit.backend.embedded.disk.locks import FileLocks
from remit.backend.embedded.heads_file import HeadsFile
from remit.backend.embedded.owner import key_file
from remit.backend.embedded.owner.key_file import load_signer
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.signing import Signer, sign_deletion, sign_head
from remit.core.journal.storage import Barrier, SignedHead, StoreUnusable
from tests.unit.backend.signed import journal_of


def head(signer: Signer, run_id: str = "run", seq: int = 0) -> SignedHead:
    return sign_head(signer, run_id=run_id, seq=seq, head=bytes(32), ending="")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    made = load_signer(tmp_path)
    assert load_signer(tmp_path).did == made.did
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_the_second_writer_of_a_key_leaves_the_first_one(tmp_path: Path) -> None:
    made = load_signer(tmp_path)
    key_file._make(tmp_path / "key")
    assert load_signer(tmp_path).did == made.did
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_key_is_made_only_when_something_is_to_be_signed(tmp_path: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        await journal_of(store).append("run", b"turn", after=-1)
        assert not (tmp_path / "key").exists()
        await journal_of(store).append("run", b"turn", after=0, barrier=Barrier())
        assert (tmp_path / "key").exists()
        await store.close()

    asyncio.run(scene())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_may_read_is_refused_and_nothing_is_written(tmp_path: Path, mode: int) -> None:
    load_signer(tmp_path)
    (tmp_path / "key").chmod(mode)

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        with pytest.raises(StoreUnusable, match=r"STORE_KEY_UNUSABLE.*chmod 600"):
            await journal_of(store).append("run", b"turn", after=-1, barrier=Barrier())
        assert await store.journal.read("run") == []
        await store.close()

    asyncio.run(scene())


@pytest.mark.parametrize("text", [b"", b"00", b"\xff" * 64, b"x" * 64, b"0" * 5000])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "key").write_bytes(text)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(StoreUnusable, match=r"STORE_KEY_UNUSABLE.*holds no private key"):
        load_signer(tmp_path)


@pytest.mark.parametrize("lost", ["heads.log", "heads"])
def test_a_key_that_was_lost_is_not_replaced_where_heads_were_signed(tmp_path: Path, lost: str) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        await journal_of(store).append("run", b"turn", after=-1, barrier=Barrier())
        await store.close()

    asyncio.run(scene())
    (tmp_path / "key").unlink()
    if lost == "heads":
        with closing(sqlite3.connect(tmp_path / "remit.db")) as connection, connection:
            connection.execute("DELETE FROM heads")
    else:
        (tmp_path / lost).unlink()
    for attempt in (EmbeddedStore.open, load_signer):
        with pytest.raises(StoreUnusable, match=r"STORE_KEY_MISSING.*put back a backup"):
            attempt(tmp_path)
    assert not (tmp_path / "key").exists()


def test_a_key_is_refused_where_nobody_can_tell_whether_heads_were_signed(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection, connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(StoreUnusable, match=r"STORE_DAMAGED.*another program"):
        load_signer(tmp_path)


def test_a_key_that_another_process_makes_meanwhile_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def just_signed(home: Path, _: str) -> bool:
        key_file._make(home / "key")
        return True

    monkeypatch.setattr(key_file, "holds_any", just_signed)
    assert load_signer(tmp_path).did == load_signer(tmp_path).did


def test_a_key_cannot_be_made_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="STORE_NOT_FOUND"):
        load_signer(tmp_path / "nowhere")


def test_a_thousand_locks_take_one_descriptor(tmp_path: Path) -> None:
    before = descriptors()
    held = FileLocks(tmp_path)
    assert all(held.take(f"run{number}") for number in range(1000))
    assert descriptors() == before + 1
    held.close()
    assert descriptors() == before
    assert (tmp_path / "locks").stat().st_size == 0


def test_two_stores_of_one_process_keep_each_other_out(tmp_path: Path) -> None:
    first, second = FileLocks(tmp_path), FileLocks(tmp_path)
    assert first.take("run")
    assert not second.take("run")
    second.release("run")
    assert not second.take("run")
    first.close()
    assert second.take("run")
    second.close()


def test_who_has_the_store_open_is_counted(tmp_path: Path) -> None:
    first, second = FileLocks(tmp_path), FileLocks(tmp_path)
    first.enter()
    assert first.is_alone()
    second.enter()
    assert not first.is_alone()
    assert not second.is_alone()
    second.close()
    assert first.is_alone()
    first.close()


def test_one_at_a_time_cleans_up(tmp_path: Path) -> None:
    first, second = FileLocks(tmp_path), FileLocks(tmp_path)
    assert first.begin_cleaning()
    assert not second.begin_cleaning()
    first.end_cleaning()
    assert second.begin_cleaning()
    first.close()
    second.close()


def test_without_locks_of_open_files_those_of_the_process_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_HAS_OFD", False)
    held = FileLocks(tmp_path)
    held.enter()
    assert held.take("run")
    assert not held.take("run")
    assert not held.is_alone()
    child = os.fork()
    if child == 0:
        os._exit(int(FileLocks(tmp_path).take("run")))
    assert os.waitpid(child, 0)[1] == 0
    held.release("run")
    child = os.fork()
    if child == 0:
        os._exit(int(FileLocks(tmp_path).take("run")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    held.close()


def test_locks_that_cannot_be_had_say_why(tmp_path: Path) -> None:
    held = FileLocks(tmp_path / "nowhere")
    with pytest.raises(StoreUnusable, match="STORE_NOT_FOUND"):
        held.take("run")
    with pytest.raises(StoreUnusable, match="STORE_NOT_FOUND"):
        held.is_alone()
    held.close()


def test_a_system_that_refuses_to_lock_is_not_taken_for_a_rival(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = FileLocks(tmp_path)
    held._descriptor = os.open(tmp_path / "locks", os.O_RDONLY | os.O_CREAT)
    # A lock for writing on a file opened for reading is refused by the system with EBADF.
    with pytest.raises(StoreUnusable, match=r"STORE_DAMAGED.*Bad file descriptor"):
        held.take("run")
    held.close()
    assert hasattr(fcntl, "F_OFD_SETLK")


def test_heads_come_back_from_the_log_in_order(tmp_path: Path) -> None:
    signer = Signer.generate()
    log = HeadsFile(tmp_path)
    assert log.heads("run") == []
    heads = [head(signer, run_id, seq) for seq in range(3) for run_id in ("run", 'odd "id"\n\x1b[31m', "ä")]
    log.append(heads[:4])
    log.append(heads[4:])
    log.sync()
    for run_id in ("run", 'odd "id"\n\x1b[31m', "ä"):
        assert log.heads(run_id) == [entry for entry in heads if entry.run_id == run_id]
    log.close()
    text = (tmp_path / "heads.log").read_bytes()
    assert text.count(b"\n") == len(heads)
    # Nothing in it moves a terminal.
    assert all(byte == 10 or 32 <= byte < 127 for byte in text)


def test_a_deletion_is_found_beside_the_heads_it_speaks_of(tmp_path: Path) -> None:
    signer = Signer.generate()
    log = HeadsFile(tmp_path)
    deletion = sign_deletion(signer, run_id="run", seq=4, head=bytes(32), at_ms=7)
    log.append([head(signer), deletion])
    assert log.heads("run") == [head(signer)]
    assert log.deletion("run") == deletion
    assert log.deletion("other") is None
    log.close()


def test_lines_that_say_nothing_are_passed_over(tmp_path: Path) -> None:
    signer = Signer.generate()
    log = HeadsFile(tmp_path)
    log.append([head(signer)])
    log.close()
    path = tmp_path / "heads.log"
    line = path.read_bytes()
    fields = json.loads(line)
    odd = [{"run_id": "run"}, {**fields, "seq": "x"}, {**fields, "head": 1}, {**fields, "at_ms": "x"}, ["run"], "run"]
    odd_lines = b"".join(json.dumps(entry).encode() + b"\n" for entry in odd)
    deep = b"[" * 100_000 + b'"run"\n'
    path.write_bytes(line[:50] + b"\n" + b'\xff"run"\n' + odd_lines + deep + line)
    assert log.heads("run") == [head(signer)]
    assert log.deletion("run") is None


def test_a_line_after_one_that_was_cut_short_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signer = Signer.generate()
    log = HeadsFile(tmp_path)
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 200:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:150])

    with monkeypatch.context() as full:
        full.setattr(os, "write", half)
        with pytest.raises(StoreUnusable, match="STORE_FULL"):
            log.append([head(signer, seq=1)])
    log.append([head(signer, seq=2)])
    log.close()
    assert [entry.seq for entry in log.heads("run")] == [2]


def test_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "heads.log").mkdir()
    with pytest.raises(StoreUnusable, match="STORE_LINKED"):
        HeadsFile(tmp_path).heads("run")
    with pytest.raises(StoreUnusable, match="STORE_LINKED"):
        HeadsFile(tmp_path).append([])


def test_barriers_that_wait_together_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    real = os.fdatasync

    def counted(descriptor: int) -> None:
        syncs.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        # Opening has synced what other processes may have left.
        syncs.clear()
        runs = [journal_of(store).append(f"run{number}", b"turn", after=-1, barrier=Barrier()) for number in range(50)]
        await asyncio.gather(*runs)
        assert len(syncs) == 1
        await store.close()

    asyncio.run(scene())


def test_what_nobody_waits_for_is_synced_before_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = asyncio.Event()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        real = os.fdatasync

        def sync(descriptor: int) -> None:
            real(descriptor)
            loop.call_soon_threadsafe(synced.set)

        store = EmbeddedStore.open(tmp_path)
        monkeypatch.setattr(os, "fdatasync", sync)
        await journal_of(store).append("run", b"turn", after=-1)
        await journal_of(store).append("run", b"turn", after=0)
        assert not synced.is_set()
        await asyncio.wait_for(synced.wait(), timeout=60)
        monkeypatch.undo()
        await store.close()

    asyncio.run(scene())


def test_after_a_failed_sync_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        await journal_of(store).append("run", b"turn", after=-1, barrier=Barrier())
        monkeypatch.setattr(os, "fdatasync", broken)
        with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
            await journal_of(store).append("run", b"turn", after=0, barrier=Barrier())
        monkeypatch.undo()
        with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
            await journal_of(store).append("run", b"turn", after=1)
        assert [entry.seq for entry in await store.log.heads("run")] == [0]
        await store.close()

    asyncio.run(scene())


def test_a_log_that_cannot_be_written_fails_the_barrier_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        (tmp_path / "heads.log").unlink()
        (tmp_path / "heads.log").mkdir()
        with pytest.raises(StoreUnusable, match=r"STORE_LINKED.*heads\.log"):
            await journal_of(store).append("run", b"turn", after=-1, barrier=Barrier())
        # The turn is kept, and the process that resumes the run finds it.
        assert await store.journal.read("run") == [b"turn"]
        (tmp_path / "heads.log").rmdir()
        await journal_of(store).append("run", b"turn", after=0, barrier=Barrier())
        await store.close()

    asyncio.run(scene())


def test_a_loop_that_closed_while_its_barrier_was_synced_is_not_told(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path)
    loop = asyncio.new_event_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.close()
    assert store._syncer is not None
    store._syncer.settle([(future, head(store.signer))])
    asyncio.run(store.close())
    assert [entry.seq for entry in HeadsFile(tmp_path).heads("run")] == [0]
