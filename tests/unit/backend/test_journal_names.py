"""What is removed from a store goes by the turns of runs, also where the list of runs lacks one or names another."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import Ending
from remit.core.journal.storage import Barrier, ParentOpen, RunListing, StoreUnusable
from remit.testing.conformance.sample_turns import first_turn, last_turn
from tests.unit.backend.embedded_scenes import play
from tests.unit.backend.signed import journal_of

START_MS = 1_000_000_000_000


async def told_run(
    store: EmbeddedStore, run_id: str, listing: RunListing, ending: Ending | None = Ending.SUCCESS
) -> None:
    """A run whose first turn says where it belongs, and whose last one ends it or not."""
    journal = journal_of(store)
    await journal.append(run_id, first_turn(run_id, listing), after=-1, listing=listing)
    standing = Barrier("" if ending is None else ending.value)
    await journal.append(run_id, last_turn(START_MS, ending), after=0, barrier=standing)


def unlist(home: Path, run_id: str) -> None:
    with closing(sqlite3.connect(home / DATABASE)) as connection, connection:
        connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))


@pytest.mark.parametrize("names", [{}, {"open": "x"}, {"over": "open"}], ids=["none", "another", "of another"])
def test_a_child_stays_while_its_parent_is_open_by_turns_whatever_became_of_the_list(
    tmp_path: Path, names: dict[str, str]
) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await told_run(store, "over", RunListing(1))
        await told_run(store, "open", RunListing(1), ending=None)
        await told_run(store, "child", RunListing(1, parent_id="open", lineage=("open",)))
        if "open" not in names:
            unlist(tmp_path, "open")
        with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
            connection.executemany("UPDATE runs SET run_id = ?2 WHERE run_id = ?1", list(names.items()))
        with pytest.raises(ParentOpen, match="open"):
            await store.retention.delete("child")
        await store.retention.gc(ended_before_ms=START_MS + 1)
        assert await store.catalogue.entry("child") is not None

    play(tmp_path, scene)


def test_a_retry_of_the_newest_run_of_a_session_stays_although_that_is_not_listed(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await told_run(store, "newest", RunListing(1, session_id="talk"))
        await told_run(store, "retry", RunListing(1, lineage=("newest",)))
        unlist(tmp_path, "newest")
        assert (await store.retention.gc(ended_before_ms=START_MS + 1)).runs == 0

    play(tmp_path, scene)


def test_a_run_is_not_deleted_without_the_child_that_is_kept_and_not_listed(tmp_path: Path) -> None:
    async def scene(store: EmbeddedStore) -> None:
        await told_run(store, "root", RunListing(1))
        await told_run(store, "child", RunListing(1, parent_id="root", lineage=("root",)))
        unlist(tmp_path, "child")
        with pytest.raises(StoreUnusable, match="run child beneath root is kept and not listed; `remit rebuild`"):
            await store.retention.delete("root")
        assert await store.catalogue.entry("root") is not None

    play(tmp_path, scene)
