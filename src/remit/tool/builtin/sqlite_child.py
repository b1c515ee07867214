"""The child process of a query: it opens one database, answers one question and ends.

Rule 1: it is started by its path, with an empty environment, and imports nothing but the standard library.
Rule 2: the database is opened to be read. On top of that an authorizer lets only SELECT pass, over the tables of the file
        and a list of functions; anything that is not on the list is denied.
Rule 3: work, time, memory, files and the size of the answer are bounded here; the parent process bounds the time again.
Rule 4: the answer is one JSON object: a table, or a code and a message.
"""

import json
import math
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

SQLITE_FILE_MISSING = "SQLITE_FILE_MISSING"
SQLITE_NOT_A_DATABASE = "SQLITE_NOT_A_DATABASE"
SQLITE_LOCKED = "SQLITE_LOCKED"
SQLITE_REFUSED = "SQLITE_REFUSED"
SQLITE_INVALID = "SQLITE_INVALID"
SQLITE_TOO_SLOW = "SQLITE_TOO_SLOW"
SQLITE_TOO_LARGE = "SQLITE_TOO_LARGE"
SQLITE_FAILED = "SQLITE_FAILED"

# A page of rows, which a model can still read; more is asked for with LIMIT and OFFSET.
ROWS_MAX = 200
COLUMNS_MAX = 200
NAME_CHARS_MAX = 200
TABLES_MAX = 200
# All cells together, and one of them; what is longer is shown by its beginning.
ANSWER_CHARS_MAX = 64_000
CELL_CHARS_MAX = 4_000
BLOB_SHOWN_BYTES = 32
# Seconds of work are enough for a question whose answer is a page; a recursion that never ends is stopped then.
QUERY_MS_MAX = 5_000
# How often the clock is looked at, in steps of the engine: every few dozen microseconds.
STEPS_BETWEEN_LOOKS = 10_000
# Another process may be writing; it needs milliseconds.
LOCK_WAIT_MS = 1_000
# Any value while the query runs. Larger ones are data sets of their own.
VALUE_BYTES_MAX = 1_000_000
SQL_CHARS_MAX = 10_000
# The memory of the whole process, interpreter included; sorting and grouping happen in it, and never on the disk. A few
# such processes run at a time, so it is a small part of what a small machine has.
MEMORY_BYTES_MAX = 256 * 1024 * 1024
# Beyond the time of the query: starting, and functions that do not look at the clock.
CPU_S_MAX = 8
# A database that is written beside us keeps a small file for its readers; nothing else is ever written.
FILE_BYTES_MAX = 1024 * 1024
FILES_OPEN_MAX = 32
MESSAGE_CHARS_MAX = 300

# Functions that compute something from their arguments and do nothing else.
_COMPUTING = """
abs acos asin atan atan2 avg ceil ceiling char coalesce concat cos count cume_dist date datetime degrees
dense_rank exp first_value floor format glob group_concat hex ifnull iif instr json json_array
json_array_length json_extract json_object json_type json_valid julianday lag last_value lead length like ln
log log10 log2 lower ltrim max min mod nth_value ntile nullif percent_rank pi pow power printf quote radians
rank replace round row_number rtrim sign sin sqrt strftime string_agg substr substring sum tan time total trim
trunc typeof unicode unixepoch upper -> ->>
"""
FUNCTIONS = frozenset(_COMPUTING.split())
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})
_DENIALS = ("not authorized", "prohibited", "unsafe use of", "vtable constructor failed")
_SCHEMA = frozenset({"sqlite_master", "sqlite_schema"})

# The schema of the file is read under the same limits, so they leave room for what a strange one may hold.
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_BYTES_MAX,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    # Patterns with many wildcards are the one thing whose work grows faster than its text.
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

# What the engine's own codes mean to the caller. The rest is a mistake in the statement.
CODES = {
    sqlite3.SQLITE_AUTH: SQLITE_REFUSED,
    sqlite3.SQLITE_READONLY: SQLITE_REFUSED,
    sqlite3.SQLITE_BUSY: SQLITE_LOCKED,
    sqlite3.SQLITE_LOCKED: SQLITE_LOCKED,
    sqlite3.SQLITE_NOTADB: SQLITE_NOT_A_DATABASE,
    sqlite3.SQLITE_CORRUPT: SQLITE_NOT_A_DATABASE,
    sqlite3.SQLITE_CANTOPEN: SQLITE_FILE_MISSING,
    sqlite3.SQLITE_INTERRUPT: SQLITE_TOO_SLOW,
    sqlite3.SQLITE_TOOBIG: SQLITE_TOO_LARGE,
    sqlite3.SQLITE_NOMEM: SQLITE_TOO_LARGE,
    sqlite3.SQLITE_FULL: SQLITE_TOO_LARGE,
    sqlite3.SQLITE_IOERR: SQLITE_FAILED,
}


class QueryRefusal(Exception):
    """Why there is no answer: a code, and a message for the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def main() -> None:
    """Answer the job that stands in standard input."""
    limit_query_process()
    job = json.load(sys.stdin)
    try:
        answer = query(job["file"], job["sql"]) if "sql" in job else tables(job["file"])
    except QueryRefusal as refusal:
        answer = {"code": refusal.code, "message": refusal.message}
    sys.stdout.write(json.dumps(answer))


def limit_query_process() -> None:
    """Take away from this process what no question needs."""
    for kind, wanted in (
        (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
        (resource.RLIMIT_CPU, CPU_S_MAX),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_NOFILE, FILES_OPEN_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))


def query(file: str, sql: str) -> dict[str, Any]:
    """The rows that one SELECT gives."""

    def ask(connection: sqlite3.Connection) -> dict[str, Any]:
        connection.set_authorizer(_authorizer(_table_names(connection)))
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise QueryRefusal(SQLITE_INVALID, "the statement gives no table; write one SELECT")
        if len(cursor.description) > COLUMNS_MAX:
            message = (
                f"the table has {len(cursor.description)} columns, more than columns_max={COLUMNS_MAX}; name fewer"
            )
            raise QueryRefusal(SQLITE_TOO_LARGE, message)
        columns = [str(column[0])[:NAME_CHARS_MAX] for column in cursor.description]
        rows, is_complete = _fitting(([_cell(value) for value in row] for row in _each(cursor)), ROWS_MAX)
        return {"columns": columns, "rows": rows, "is_complete": is_complete}

    return _asked(file, ask)


def tables(file: str) -> dict[str, Any]:
    """The tables and views of the file, with their columns."""

    def ask(connection: sqlite3.Connection) -> dict[str, Any]:
        described: Iterator[Any] = (
            {"name": name, "kind": kind, "columns": _columns(connection, name)} for name, kind in _schema(connection)
        )
        found, is_complete = _fitting(described, TABLES_MAX)
        return {"tables": found, "is_complete": is_complete}

    return _asked(file, ask)


def _asked(file: str, ask: Callable[[sqlite3.Connection], dict[str, Any]]) -> dict[str, Any]:
    name = Path(file).name
    if not Path(file).is_file():
        raise QueryRefusal(SQLITE_FILE_MISSING, f"the database {name!r} is not there; its operator has to look")
    try:
        connection = _opened(file)
        try:
            return ask(connection)
        finally:
            connection.close()
    except MemoryError:
        raise QueryRefusal(SQLITE_TOO_LARGE, f"the query needs more than memory_bytes_max={MEMORY_BYTES_MAX}") from None
    except sqlite3.Error as error:
        raise _refusal(error, name) from None
    except (sqlite3.Warning, UnicodeError) as error:
        # How older versions of Python say that there is more than one statement; and texts and names that are no Unicode.
        raise QueryRefusal(SQLITE_INVALID, str(error)[:MESSAGE_CHARS_MAX]) from None


def _opened(file: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(file)}?mode=ro", uri=True, timeout=LOCK_WAIT_MS / 1000, isolation_level=None
    )
    connection.text_factory = lambda data: data.decode(errors="replace")
    for kind, most in LIMITS.items():
        connection.setlimit(kind, most)
    ends_s = monotonic() + QUERY_MS_MAX / 1000
    connection.set_progress_handler(lambda: monotonic() > ends_s, STEPS_BETWEEN_LOOKS)
    for pragma in ("query_only=ON", "trusted_schema=OFF", "temp_store=MEMORY", "mmap_size=0", "cell_size_check=ON"):
        connection.execute(f"PRAGMA {pragma}").close()
    return connection


def _authorizer(known: frozenset[str]) -> Callable[..., int]:
    def judge(action: int, first: str | None, second: str | None, *place: str | None) -> int:
        """Allow what is listed. What the engine asks about without a name is denied, too."""
        if action in _ALLOWED:
            return sqlite3.SQLITE_OK
        # Without a column nothing is read; so the engine asks about names that the statement itself has made.
        if action == sqlite3.SQLITE_READ and (second == "" or (first or "").lower() in known):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FUNCTIONS:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    return judge


def _table_names(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(name.lower() for name, _ in _schema(connection)) | _SCHEMA


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """The tables and views by name. Virtual tables run code of their modules and are left out."""
    sql = (
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND upper(ltrim(coalesce(sql, ''))) NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    )
    return [(str(name), str(kind)) for name, kind in connection.execute(sql)]


def _columns(connection: sqlite3.Connection, table: str) -> list[dict[str, str]]:
    try:
        rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        # A view over something that is gone or forbidden; the others are still worth seeing.
        return []
    return [{"name": str(name), "type": str(kind)} for name, kind in rows]


def _fitting(items: Iterator[Any], count_max: int) -> tuple[list[Any], bool]:
    """As many items as fit into an answer, and whether these were all."""
    taken: list[Any] = []
    chars = 0
    for item in items:
        chars += len(json.dumps(item))
        if len(taken) >= count_max or chars > ANSWER_CHARS_MAX:
            return taken, False
        taken.append(item)
    return taken, True


def _each(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    while (row := cursor.fetchone()) is not None:
        yield row


def _cell(value: Any) -> Any:
    """A value as JSON can carry it; bytes, long texts and numbers without end are shown as what they are."""
    if isinstance(value, bytes):
        return {"blob_bytes": len(value), "hex": value[:BLOB_SHOWN_BYTES].hex()}
    if isinstance(value, str) and len(value) > CELL_CHARS_MAX:
        return {"text_chars": len(value), "begins": value[:CELL_CHARS_MAX]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def _refusal(error: sqlite3.Error, name: str) -> QueryRefusal:
    code = CODES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, SQLITE_INVALID)
    # Where a function or a virtual table was denied, the engine says so in words alone.
    code = SQLITE_REFUSED if any(word in str(error) for word in _DENIALS) else code
    return QueryRefusal(code, WAYS_OUT[code].format(name=repr(name), error=str(error)[:MESSAGE_CHARS_MAX]))


WAYS_OUT = {
    SQLITE_FILE_MISSING: "the database {name} cannot be opened; its operator has to look",
    SQLITE_NOT_A_DATABASE: "{name} is no SQLite database, or a damaged one; its operator has to look",
    SQLITE_LOCKED: f"the database {{name}} is locked by another program for more than {LOCK_WAIT_MS} ms; try again",
    SQLITE_REFUSED: "only SELECT over the tables of the file, with common functions, is allowed: {error}",
    SQLITE_INVALID: "the statement cannot be executed: {error}; sqlite_tables shows what there is",
    SQLITE_TOO_SLOW: f"the query took longer than query_ms_max={QUERY_MS_MAX}; ask for less",
    SQLITE_TOO_LARGE: f"a value has more than value_bytes_max={VALUE_BYTES_MAX}, or the query needs too much memory; ask for less",
    SQLITE_FAILED: "the database {name} cannot be read; its operator has to look",
}


if __name__ == "__main__":
    main()
