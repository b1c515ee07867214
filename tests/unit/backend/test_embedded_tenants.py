"""Tenants in a store on disk: stores of earlier versions, and lists that indexes answer."""

import asyncio
from pathlib import Path

import pytest

from remit.backend.embedded.catalogue import _BEFORE, _BEGINS, _CHILDREN, _ENTRY, _OF_TENANT
from remit.backend.embedded.disk import tables
from remit.backend.embedded.disk.database import connect_to_database
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.storage import START, RunListing, SessionConflict

BEFORE = tables.MIGRATIONS.index(tables._TENANTS)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a store from before tenants had sessions of their own, with a session of one of them."""
    home = tmp_path / "store"
    asyncio.run(EmbeddedStore.open(home).close())
    path = home / "remit.db"
    path.unlink()
    path.touch(0o600)
    connection = connect_to_database(path)
    connection.execute("PRAGMA journal_mode = WAL")
    tables.migrate(connection, path, migrations=tables.MIGRATIONS[:BEFORE])
    for number in (1, 2):
        connection.execute(
            "INSERT INTO runs (run_no, run_id, started_at_ms, tenant_id, session_id, ordinal)"
            " VALUES (?, ?, 1, 'acme', 'talk', ?)",
            (number, f"old{number}", number - 1),
        )
        connection.execute("INSERT INTO turns (run_no, seq, data) VALUES (?, 0, x'00')", (number,))
    connection.close()
    return home


def test_a_store_that_is_brought_up_to_date_keeps_its_sessions_and_lets_other_tenants_have_theirs(home: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(home)
        assert [one.run_id for one in await store.catalogue.session("talk", tenant_id="acme")] == ["old1", "old2"]
        taken = RunListing(1, tenant_id="acme", session_id="talk", ordinal=1)
        with pytest.raises(SessionConflict):
            await store.journal.append("rival", b"turn", START, listing=taken)
        other = RunListing(1, tenant_id="globex", session_id="talk")
        await store.journal.append("new", b"turn", START, listing=other)
        assert [one.run_id for one in await store.catalogue.session("talk", tenant_id="globex")] == ["new"]
        await store.close()

    asyncio.run(scene())


def test_a_store_that_is_only_read_lists_by_tenant_and_stays_as_it_is(home: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open_to_read(home)
        found = await store.catalogue.entries(tenant_id="acme", before="old2", limit=5)
        assert [one.run_id for one in found] == ["old1"]
        assert list(await store.catalogue.entries(tenant_id="globex")) == []
        await store.close()

    asyncio.run(scene())
    assert connect_to_database(home / "remit.db").execute("PRAGMA user_version").fetchone() == (BEFORE,)


@pytest.mark.parametrize(
    ("clause", "values", "index"),
    [
        (_OF_TENANT, ("acme",), "runs_of_tenants"),
        (_OF_TENANT + _BEFORE, ("acme", "run"), "runs_of_tenants"),
        (_CHILDREN, ("run",), "children"),
        (_BEGINS, ("a", "b"), "sqlite_autoindex_runs_1"),
        (" AND session_id = ? AND session_id <> ''", ("talk",), "places"),
    ],
)
def test_a_list_is_answered_by_an_index(home: Path, clause: str, values: tuple[str, ...], index: str) -> None:
    asyncio.run(EmbeddedStore.open(home).close())
    plan = connect_to_database(home / "remit.db").execute(
        f"EXPLAIN QUERY PLAN {_ENTRY}{clause} ORDER BY run_no DESC", values
    )
    assert any(f"INDEX {index}" in str(row) for row in plan)
