"""What runs count for their tenants in a store on disk: deleted runs, lost rows, other processes, earlier versions."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.disk import tables
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.storage import Barrier, QuotaConflict, RunListing
from remit.core.limits.budget import Dimension
from remit.core.limits.quota import NEVER_MS, Charge, Committed, Limit, Period, Reservation
from remit.testing.conformance.sample_turns import last_turn
from tests.unit.backend.embedded_scenes import open_at

TOKENS = int(Dimension.OUTPUT_TOKENS)
LIMIT = Limit(Period.TOTAL, TOKENS, 100, 0, NEVER_MS)


async def begin(store: EmbeddedStore, run_id: str, amount: int = 30, parent_id: str = "") -> None:
    reserves = None if parent_id else Reservation(1, ((TOKENS, amount),), (LIMIT,))
    listing = RunListing(1, tenant_id="acme", parent_id=parent_id, reserves=reserves)
    await store.journal.append(run_id, b"first", after=-1, listing=listing)


async def end(store: EmbeddedStore, run_id: str, amount: int) -> None:
    charge = Charge(run_id, "acme", 1, ((TOKENS, amount),))
    await store.journal.append(run_id, last_turn(1), after=0, barrier=Barrier("SUCCESS", charge=charge))


async def committed(store: EmbeddedStore) -> Committed:
    (found,) = await store.ledger.committed("acme", [LIMIT])
    return found


def test_a_deleted_run_stays_counted_in_its_period(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_at(tmp_path) as store:
            await begin(store, "ended")
            await end(store, "ended", 12)
            await begin(store, "open", 20)
            await begin(store, "open.1", parent_id="open")
            await store.retention.delete("ended")
            assert await committed(store) == Committed(12, 20)
            # It will never be known what became of an open one, so it counts as having spent all it might.
            await store.retention.delete("open")
            assert await committed(store) == Committed(32, 0)
            assert await store.catalogue.entries() == []
            assert list(await store.ledger.tenants()) == ["acme"]
            assert list(await store.ledger.uncounted("acme", 0)) == []

    asyncio.run(scene())


def test_what_is_collected_stays_counted_too(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_at(tmp_path) as store:
            await begin(store, "ended")
            await end(store, "ended", 12)
            removed = await store.retention.gc(ended_before_ms=NEVER_MS)
            assert (removed.runs, await committed(store)) == (1, Committed(12, 0))

    asyncio.run(scene())


def test_rows_that_are_lost_are_named_by_their_runs_and_the_sums_follow(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_at(tmp_path) as store:
            for run_id in ("gone", "kept"):
                await begin(store, run_id)
                await end(store, run_id, 12)
            await store.retention.delete("gone")
            assert await committed(store) == Committed(24, 0)
            with closing(sqlite3.connect(tmp_path / "remit.db")) as connection, connection:
                connection.execute("DELETE FROM charges WHERE run_no IN (SELECT run_no FROM runs)")
            # What the deleted run left is all that there is of it, and stays.
            assert await committed(store) == Committed(12, 0)
            assert list(await store.ledger.uncounted("acme", 0)) == ["kept"]

    asyncio.run(scene())


def test_a_reservation_outlives_its_process_and_binds_every_other(tmp_path: Path) -> None:
    async def begun(amount: int, run_id: str) -> None:
        async with open_at(tmp_path) as store:
            await begin(store, run_id, amount)

    asyncio.run(begun(70, "first"))
    with pytest.raises(QuotaConflict, match="output_tokens=30 left this total and 31 were to be reserved"):
        asyncio.run(begun(31, "second"))
    asyncio.run(begun(30, "third"))


def test_a_refused_reservation_leaves_the_rest_of_its_batch_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_at(tmp_path) as store:
            begun = [begin(store, f"run{number}", 60) for number in range(3)]
            others = [store.journal.append(f"other{number}", b"turn", after=-1) for number in range(3)]
            outcomes = await asyncio.gather(*begun, *others, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [
                type(None),
                QuotaConflict,
                QuotaConflict,
                *[int] * 3,
            ]
            assert await committed(store) == Committed(0, 60)

    asyncio.run(scene())


def test_a_run_without_a_quota_leaves_no_rows(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_at(tmp_path) as store:
            await store.journal.append("run", b"first", after=-1, listing=RunListing(1, tenant_id="acme"))
            await store.journal.append("run", b"last", after=0, barrier=Barrier("SUCCESS"))

    asyncio.run(scene())
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        assert connection.execute("SELECT count(*) FROM charges").fetchone() == (0,)


def test_a_store_of_an_earlier_version_gets_the_table_and_names_its_runs(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "remit.db", isolation_level=None)) as connection:
        tables.migrate(connection, tmp_path / "remit.db", migrations=tables.MIGRATIONS[:2])
        connection.execute("INSERT INTO runs (run_id, started_at_ms, tenant_id) VALUES ('old', 5, 'acme')")

    async def scene() -> None:
        async with open_at(tmp_path) as store:
            assert await committed(store) == Committed()
            assert list(await store.ledger.uncounted("acme", 5)) == ["old"]

    asyncio.run(scene())
