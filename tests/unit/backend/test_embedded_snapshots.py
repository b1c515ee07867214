"""Snapshots in a store: signed, replaced, deleted with their run, and worth nothing once anybody touched them."""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.disk import tables
from remit.backend.embedded.owner.key_file import KEY
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.signing import Signer, sign_snapshot
from remit.core.journal.storage import Barrier, RunListing, Snapshot, StoreUnusable
from remit.core.record import replace
from remit.testing.conformance.sample_turns import last_turn
from tests.unit.backend.embedded_scenes import play
from tests.unit.backend.signed import journal_of, snapshots_of

HEAD = bytes(range(32))
KEPT = Snapshot("run", 1, HEAD, b"state")


async def run(store: EmbeddedStore, run_id: str = "run", ending: str = "SUCCESS") -> None:
    """A run of two turns with a snapshot after its last."""
    await journal_of(store).append(run_id, b"one", after=-1, listing=RunListing(1))
    await journal_of(store).append(run_id, last_turn(1), after=0, barrier=Barrier(ending))
    await snapshots_of(store).keep(run_id, KEPT.seq, KEPT.head, KEPT.data)


def change(home: Path, statement: str, values: Sequence[object] = ()) -> None:
    """What another program does to the store."""
    with closing(sqlite3.connect(home / "remit.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def found_after(home: Path, statement: str, values: Sequence[object] = ()) -> Snapshot | None:
    """What is found of a snapshot after it was changed."""
    found: list[Snapshot | None] = []

    async def look(store: EmbeddedStore) -> None:
        found.append(await snapshots_of(store).latest("run"))

    play(home, run)
    change(home, statement, values)
    play(home, look)
    return found[0]


def unsigned(snapshot: Snapshot | None) -> Snapshot | None:
    """A snapshot without its signature, which is not what is asked about."""
    return None if snapshot is None else replace(snapshot, signature=b"")


def test_a_snapshot_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    async def look(store: EmbeddedStore) -> None:
        assert unsigned(await snapshots_of(store).latest("run")) == KEPT

    play(tmp_path, run)
    play(tmp_path, look)


def test_one_snapshot_is_kept_of_a_run(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await run(store)
        await snapshots_of(store).keep("run", 2, bytes(32), b"later")
        assert unsigned(await snapshots_of(store).latest("run")) == Snapshot("run", 2, bytes(32), b"later")

    play(tmp_path, scene)
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        assert connection.execute("SELECT count(*) FROM snapshots").fetchone() == (1,)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("seq", 0),
        ("seq", -1),
        ("seq", 2**62),
        ("seq", "one"),
        ("head", bytes(32)),
        ("head", b""),
        ("head", "text"),
        ("data", b"stat"),
        ("data", b"State"),
        ("data", b""),
        ("data", 7),
        ("signature", bytes(64)),
        ("signature", b""),
        ("signature", "text"),
    ],
)
def test_a_snapshot_with_anything_changed_is_none(column: str, value: object, tmp_path: Path) -> None:
    assert found_after(tmp_path, f"UPDATE snapshots SET {column} = ?", (value,)) is None


def test_a_snapshot_under_the_name_of_another_run_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "remit.orchestrate.loop.signatures"):
        assert found_after(tmp_path, "UPDATE runs SET run_id = 'other' WHERE run_id = 'run'") is None
        assert caplog.text == ""

        async def look(store: EmbeddedStore) -> None:
            assert await snapshots_of(store).latest("other") is None

        play(tmp_path, look)
    assert "a snapshot is not signed by this deployment" in caplog.text


def test_a_snapshot_that_another_key_signed_is_none(tmp_path: Path) -> None:
    mallory = Signer.generate()
    forged = Snapshot("run", 1, HEAD, b"forged")
    values = (forged.data, sign_snapshot(mallory, forged))
    assert found_after(tmp_path, "UPDATE snapshots SET data = ?, signature = ?", values) is None


def test_a_snapshot_is_none_once_the_key_is_another_one(tmp_path: Path) -> None:
    play(tmp_path, run)
    (tmp_path / KEY).write_text(Signer.generate().private_bytes().hex())

    async def look(store: EmbeddedStore) -> None:
        assert await snapshots_of(store).latest("run") is None

    play(tmp_path, look)


def test_looking_for_a_snapshot_makes_no_key(tmp_path: Path) -> None:
    play(tmp_path, run)
    (tmp_path / KEY).unlink()

    async def look() -> None:
        store = EmbeddedStore.open_to_read(tmp_path)
        assert await snapshots_of(store).latest("run") is None
        assert await snapshots_of(store).latest("nobody") is None
        await store.close()

    asyncio.run(look())
    assert not (tmp_path / KEY).exists()


def test_a_key_that_cannot_be_used_is_said_to_be_so(tmp_path: Path) -> None:
    play(tmp_path, run)
    (tmp_path / KEY).chmod(0o644)

    async def look(store: EmbeddedStore) -> None:
        with pytest.raises(StoreUnusable, match="STORE_KEY_UNUSABLE"):
            await snapshots_of(store).latest("run")

    play(tmp_path, look)


def test_nothing_is_kept_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await snapshots_of(store).keep("nobody", 1, HEAD, b"state")
        assert await snapshots_of(store).latest("nobody") is None

    play(tmp_path, scene)
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        assert connection.execute("SELECT count(*) FROM snapshots").fetchone() == (0,)


@pytest.mark.parametrize("by", ["delete", "gc"])
def test_a_snapshot_goes_with_its_run_and_leaves_no_trace(by: str, tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await run(store)
        await run(store, "other", ending="")
        await snapshots_of(store).keep("run", 1, HEAD, b"a secret that was in a state")
        if by == "delete":
            await store.retention.delete("run")
        else:
            await store.retention.gc(ended_before_ms=2**62)
        assert await snapshots_of(store).latest("run") is None
        assert await snapshots_of(store).latest("other") is not None

    play(tmp_path, scene)
    assert b"a secret" not in (tmp_path / "remit.db").read_bytes()


def old_store(home: Path) -> None:
    """A store as the first version left it: with a run, and without a place for snapshots."""
    home.mkdir(exist_ok=True)
    with closing(sqlite3.connect(home / "remit.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        tables.migrate(connection, home / "remit.db", migrations=tables.MIGRATIONS[:1])
        connection.execute("INSERT INTO runs (run_id, started_at_ms) VALUES ('run', 1)")
        connection.execute("INSERT INTO turns (run_no, seq, data) VALUES (1, 0, x'00')")
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_store_of_the_first_version_gets_a_place_for_snapshots(tmp_path: Path) -> None:
    old_store(tmp_path)

    async def scene(store: EmbeddedStore) -> None:
        assert await store.journal.read("run") == [b"\0"]
        assert await snapshots_of(store).latest("run") is None
        await journal_of(store).append("run", b"two", after=0)
        await snapshots_of(store).keep("run", 1, HEAD, b"state")
        assert unsigned(await snapshots_of(store).latest("run")) == KEPT

    play(tmp_path, scene)
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(tables.MIGRATIONS),)


def test_a_store_of_the_first_version_that_is_only_read_has_no_snapshots(tmp_path: Path) -> None:
    old_store(tmp_path)

    async def scene() -> None:
        store = EmbeddedStore.open_to_read(tmp_path)
        assert await snapshots_of(store).latest("run") is None
        assert await store.journal.read("run") == [b"\0"]
        await store.close()

    asyncio.run(scene())
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
