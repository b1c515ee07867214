"""The tables of a store, their version, and the way from every earlier version to this one.

Rule 1: the version of a store is how many migrations it has been through; it stands in the file itself.
Rule 2: a migration that was released never changes; a new idea is a new migration at the end of the list.
Rule 3: a store of a later version is not touched.

`turns` is keyed by numbers, not by the id of the run: a rowid table with a unique pair costs a fifth of a text key.
`runs` is the index: all it knows beyond the number can be folded from the turns again. Numbers of runs are never
given twice, so that a process that remembers one can never write into another run.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from remit.backend.embedded.disk.disk_failures import DAMAGED, VERSION_UNKNOWN, disk_failure
from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_turn
from remit.core.journal.storage import StoreUnusable
from remit.core.run.manifest import lineage_of

# "remi": how file(1) and we know whose database it is.
APPLICATION_ID = 0x72656D69

# Runs are numbered from 1, so this one is none; an empty turn of it holds the place of a newest turn that is gone.
NOBODY = 0

# The number of the newest turn. SQLite gives the next one to the next turn; a follower of the turns of a store goes by it.
NEWEST_TURN = "SELECT coalesce(max(turn_no), -1) FROM turns"

# Between the runs of a lineage.
_BETWEEN = "/"

_FIRST = (
    """
    CREATE TABLE runs (
        run_no INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL UNIQUE,
        -- Null for a run that is kept without being listed.
        started_at_ms INTEGER,
        mode TEXT NOT NULL DEFAULT '',
        tenant_id TEXT NOT NULL DEFAULT '',
        session_id TEXT NOT NULL DEFAULT '',
        ordinal INTEGER NOT NULL DEFAULT 0,
        parent_id TEXT NOT NULL DEFAULT '',
        ending TEXT NOT NULL DEFAULT '',
        waiting_for TEXT NOT NULL DEFAULT '',
        ended_at_ms INTEGER
    )
    """,
    "CREATE UNIQUE INDEX places ON runs (session_id, ordinal) WHERE session_id <> ''",
    "CREATE INDEX open_runs ON runs (run_no) WHERE ending = ''",
    """
    CREATE TABLE turns (
        turn_no INTEGER PRIMARY KEY,
        run_no INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (run_no, seq)
    )
    """,
    """
    CREATE TABLE heads (
        run_no INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        head BLOB NOT NULL,
        ending TEXT NOT NULL,
        signer TEXT NOT NULL,
        signature BLOB NOT NULL,
        PRIMARY KEY (run_no, seq)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE blobs (
        blob_no INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        put_at_ms INTEGER NOT NULL,
        data BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE inbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL,
        data BLOB NOT NULL,
        code TEXT,
        message TEXT,
        settled_at_ms INTEGER
    )
    """,
    "CREATE INDEX unsettled ON inbox (number) WHERE settled_at_ms IS NULL",
)

# A cache of states; the signature is that of this deployment's key.
_SNAPSHOTS = (
    """
    CREATE TABLE snapshots (
        run_no INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        head BLOB NOT NULL,
        data BLOB NOT NULL,
        signature BLOB NOT NULL
    )
    """,
)

# What runs count for their tenants: an index of their turns, but for the rows of runs that were deleted. What is asked are
# sums over periods, all of which consist of whole hours, so the sums of each hour follow the rows by themselves.
_ADD = (
    " INSERT INTO charged_hours VALUES (new.tenant_id, new.dimension, new.at_ms / 3600000, new.is_open, new.amount)"
    " ON CONFLICT DO UPDATE SET amount = amount + excluded.amount;"
)
_SUBTRACT = (
    " UPDATE charged_hours SET amount = amount - old.amount WHERE tenant_id = old.tenant_id"
    " AND dimension = old.dimension AND hour_no = old.at_ms / 3600000 AND is_open = old.is_open;"
)
_CHARGES = (
    """
    CREATE TABLE charges (
        run_no INTEGER NOT NULL,
        dimension INTEGER NOT NULL,
        tenant_id TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        is_open INTEGER NOT NULL,
        amount INTEGER NOT NULL,
        PRIMARY KEY (run_no, dimension)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE charged_hours (
        tenant_id TEXT NOT NULL,
        dimension INTEGER NOT NULL,
        hour_no INTEGER NOT NULL,
        is_open INTEGER NOT NULL,
        amount INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, dimension, hour_no, is_open)
    ) WITHOUT ROWID
    """,
    f"CREATE TRIGGER charge_added AFTER INSERT ON charges BEGIN{_ADD} END",
    f"CREATE TRIGGER charge_removed AFTER DELETE ON charges BEGIN{_SUBTRACT} END",
    f"CREATE TRIGGER charge_changed AFTER UPDATE ON charges BEGIN{_SUBTRACT}{_ADD} END",
)

# What was done about the items of queues: their own truth, and none about a run.
_RECEIPTS = (
    """
    CREATE TABLE receipts (
        kind TEXT NOT NULL,
        item TEXT NOT NULL,
        run_id TEXT NOT NULL,
        by TEXT NOT NULL,
        place TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (kind, item, place)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX receipts_of_runs ON receipts (run_id)",
)

# By what runs are alike, so that what earlier ones spent can be found without folding any.
_LIKENESS = (
    "ALTER TABLE runs ADD COLUMN likeness TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX alike ON runs (likeness, run_no) WHERE ending = 'SUCCESS' AND likeness <> ''",
)

# From which runs a run came. Those that are listed already say it in their first turn.
_LINEAGE = (
    "ALTER TABLE runs ADD COLUMN lineage TEXT NOT NULL DEFAULT ''",
    "UPDATE runs SET lineage = lineage_in(turns.data) FROM turns WHERE turns.run_no = runs.run_no AND turns.seq = 0",
)

# The same of a store that may not be brought up to date: its runs seem to have the column.
_LINEAGE_VIEW = (
    "CREATE TEMP VIEW runs AS SELECT *, lineage_in("
    "(SELECT data FROM main.turns WHERE turns.run_no = listed.run_no AND turns.seq = 0)) AS lineage, '' AS name"
    " FROM main.runs AS listed"
)

# Each tenant has sessions of its own; its runs, and those that a run started, are found without looking at others.
_TENANTS = (
    "DROP INDEX places",
    "CREATE UNIQUE INDEX places ON runs (session_id, tenant_id, ordinal) WHERE session_id <> ''",
    "CREATE INDEX runs_of_tenants ON runs (tenant_id, run_no)",
    "CREATE INDEX children ON runs (parent_id, run_no) WHERE parent_id <> ''",
)

# How agents elsewhere name the runs that judge their calls, so that they find those that are open again.
_NAMES = (
    "ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX named ON runs (name) WHERE ending = '' AND name <> ''",
)

# The same of a store that may not be brought up to date, with or without lineages: no run of it has a name.
_NAMES_VIEW = "CREATE TEMP VIEW runs AS SELECT *, '' AS name FROM main.runs"

# Each brings a store from the version of its position to the next one, in one transaction.
MIGRATIONS: Sequence[Sequence[str]] = (_FIRST, _SNAPSHOTS, _CHARGES, _RECEIPTS, _LIKENESS, _LINEAGE, _TENANTS, _NAMES)


def schema_version(connection: sqlite3.Connection, path: Path) -> int:
    """How many migrations a database has been through; raises for a database that is not ours."""
    with _one_view(connection):
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if (application_id, version, tables) == (0, 0, 0):
        return 0
    if application_id != APPLICATION_ID:
        raise disk_failure(DAMAGED, path, f"a database of another program (application_id {application_id:#x})")
    return int(version)


@contextmanager
def _one_view(connection: sqlite3.Connection) -> Iterator[None]:
    """Questions asked inside see one state of the file, even while it is being made."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def refuse_later_version(version: int, path: Path, *, known: int = len(MIGRATIONS)) -> None:
    """Raise when a store was written by a later remit."""
    if version > known:
        message = (
            f"{path}: schema version {version}; this version of remit knows up to {known}. Upgrade remit to use it"
        )
        raise StoreUnusable(VERSION_UNKNOWN, message, {"path": str(path), "version": version, "known": known})


def show_as_newest(connection: sqlite3.Connection, version: int) -> None:
    """Let a connection that only reads a database of an earlier version ask what the index of this version knows."""
    if version < MIGRATIONS.index(_LINEAGE) + 1:
        _offer_functions(connection)
        connection.execute(_LINEAGE_VIEW)
    elif version < len(MIGRATIONS):
        connection.execute(_NAMES_VIEW)


def _offer_functions(connection: sqlite3.Connection) -> None:
    connection.create_function("lineage_in", 1, _lineage_in, deterministic=True)


def migrate(connection: sqlite3.Connection, path: Path, *, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring a database to the newest version: all of the way in one transaction, or none of it."""
    _offer_functions(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again inside the transaction: another process may have been faster.
        version = schema_version(connection, path)
        refuse_later_version(version, path, known=len(migrations))
        for statement in (text for migration in migrations[version:] for text in migration):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def joined_lineage(lineage: Sequence[str]) -> str:
    """A lineage as the index keeps it; no id has a slash."""
    return _BETWEEN.join(lineage)


def split_lineage(text: str) -> tuple[str, ...]:
    """The lineage that the index keeps so."""
    return tuple(text.split(_BETWEEN)) if text else ()


def _lineage_in(data: bytes | None) -> str:
    """The lineage that a first turn tells; none where it cannot be read or is gone, as a reader of the run is told."""
    try:
        arrival = decode_turn(data or b"").arrival
    except InvariantBroken:
        return ""
    return joined_lineage(lineage_of(arrival.manifest)) if isinstance(arrival, RunStarted) else ""
