"""A store from before lineages were listed: brought up to date, or only read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.backend.embedded.disk import tables
from remit.backend.embedded.disk.database import connect_to_database
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.arrivals import FeedbackGiven, RunStarted
from remit.core.journal.codec import NO_HASH, encode_turn
from remit.core.journal.turn import Turn
from remit.core.record import replace
from remit.core.run.manifest import Origin
from tests.unit.kernel.builders import manifest_of
from tests.unit.orchestrate.stage import play

# How many migrations there were before.
BEFORE = 5


def old_runs() -> Iterator[tuple[str, bytes]]:
    """Runs with their first turns, as they were written before."""
    manifest = manifest_of()
    retried = Origin("run.1.2", "4.1", 3)
    for old in (
        manifest,
        replace(manifest, run_id="run.1.2", parent=Origin("run", "1.2")),
        replace(manifest, run_id="run.1.2.4.1", forked_from=retried),
        replace(manifest, run_id="fork", forked_from=Origin("run", "", 3)),
    ):
        yield old.run_id, encode_turn(Turn(0, 1, NO_HASH, 2, RunStarted(old, 0)))
    yield "damaged.1.2", b"no turn"
    yield "odd.1.2", encode_turn(Turn(0, 1, NO_HASH, 2, FeedbackGiven("ada", "so be it")))


LISTED = {
    "run": (),
    "run.1.2": ("run",),
    "run.1.2.4.1": ("run", "run.1.2"),
    "fork": (),
    "damaged.1.2": (),
    "odd.1.2": (),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of an old store with these runs."""
    home = tmp_path / "store"
    play(EmbeddedStore.open(home).close())
    path = home / "remit.db"
    path.unlink()
    path.touch(0o600)
    connection = connect_to_database(path)
    connection.execute("PRAGMA journal_mode = WAL")
    tables.migrate(connection, path, migrations=tables.MIGRATIONS[:BEFORE])
    for number, (run_id, data) in enumerate(old_runs(), 1):
        connection.execute("INSERT INTO runs (run_no, run_id, started_at_ms) VALUES (?, ?, 1)", (number, run_id))
        connection.execute("INSERT INTO turns (run_no, seq, data) VALUES (?, 0, ?)", (number, data))
    connection.execute("INSERT INTO runs (run_no, run_id, started_at_ms) VALUES (99, 'empty.1.2', 1)")
    connection.close()
    return home


async def listed(store: EmbeddedStore) -> dict[str, tuple[str, ...]]:
    return {entry.run_id: entry.listing.lineage for entry in await store.catalogue.entries()}


def test_a_store_that_is_opened_learns_the_lineages_of_its_runs_from_their_first_turns(home: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(home)
        assert await listed(store) == {**LISTED, "empty.1.2": ()}
        await store.close()

    play(scene())


def test_a_store_that_is_only_read_tells_the_same_and_stays_as_it_is(home: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open_to_read(home)
        assert await listed(store) == {**LISTED, "empty.1.2": ()}
        entry = await store.catalogue.entry("run.1.2.4.1")
        assert entry is not None
        assert (entry.listing.lineage, entry.turns) == (("run", "run.1.2"), 1)
        await store.close()

    play(scene())
    connection = connect_to_database(home / "remit.db")
    assert connection.execute("PRAGMA user_version").fetchone() == (BEFORE,)
    connection.close()
