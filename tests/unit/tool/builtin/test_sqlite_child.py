"""A database is asked with one SELECT and nothing else, within bounds of work, memory and answer."""

import json
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remit.tool.builtin import sqlite_child
from remit.tool.builtin.sqlite_child import (
    ANSWER_CHARS_MAX,
    BLOB_SHOWN_BYTES,
    CELL_CHARS_MAX,
    CODES,
    COLUMNS_MAX,
    FUNCTIONS,
    ROWS_MAX,
    SQLITE_FAILED,
    SQLITE_FILE_MISSING,
    SQLITE_INVALID,
    SQLITE_LOCKED,
    SQLITE_NOT_A_DATABASE,
    SQLITE_REFUSED,
    SQLITE_TOO_LARGE,
    SQLITE_TOO_SLOW,
    TABLES_MAX,
    VALUE_BYTES_MAX,
    WAYS_OUT,
    QueryRefusal,
    query,
    tables,
)

# Together they take seconds.
pytestmark = pytest.mark.slow

SCHEMA = """
CREATE TABLE ware (id INTEGER PRIMARY KEY, name TEXT, price REAL, picture BLOB);
INSERT INTO ware VALUES (1, 'lamp', 49.5, x'00ff'), (2, 'bell', 15.0, NULL);
CREATE VIEW dear AS SELECT name FROM ware WHERE price > 20;
CREATE VIEW broken AS SELECT missing FROM nowhere;
CREATE VIEW evil AS SELECT load_extension('x');
CREATE TRIGGER gone AFTER INSERT ON ware BEGIN DELETE FROM ware; END;
CREATE VIRTUAL TABLE notes USING fts5(text);
INSERT INTO notes VALUES ('hello');
"""

ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) "


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "a shop?#%.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return str(path)


def refusal(file: str, sql: str) -> QueryRefusal:
    with pytest.raises(QueryRefusal) as caught:
        query(file, sql)
    assert str(Path(file).parent) not in caught.value.message
    return caught.value


def test_a_select_gives_columns_and_rows(shop: str) -> None:
    assert query(shop, "SELECT id, name FROM ware ORDER BY id;") == {
        "columns": ["id", "name"],
        "rows": [[1, "lamp"], [2, "bell"]],
        "is_complete": True,
    }
    assert query(shop, "SELECT * FROM dear")["rows"] == [["lamp"]]
    assert query(shop, "SELECT upper(name), count(*) OVER (), round(price) FROM ware")["rows"][0] == ["LAMP", 2, 50.0]
    assert query(shop, "VALUES (1, '->')")["rows"] == [[1, "->"]]
    assert query(shop, """SELECT '{"a": 5}' ->> 'a'""")["rows"] == [[5]]
    assert query(shop, ENDLESS + "SELECT x FROM r LIMIT 3")["rows"] == [[1], [2], [3]]


def test_what_json_cannot_carry_is_shown_as_what_it_is(shop: str) -> None:
    rows = query(shop, "SELECT picture, 9e999, -9e999, CAST(x'ff' AS TEXT), NULL FROM ware WHERE id = 1")["rows"]
    assert rows == [[{"blob_bytes": 2, "hex": "00ff"}, {"number": "inf"}, {"number": "-inf"}, "\ufffd", None]]
    long = query(shop, f"SELECT printf('%.{CELL_CHARS_MAX + 1}c', 'x'), CAST(printf('%.99c', 'x') AS BLOB)")["rows"][0]
    assert long[0] == {"text_chars": CELL_CHARS_MAX + 1, "begins": "x" * CELL_CHARS_MAX}
    assert long[1] == {"blob_bytes": 99, "hex": "78" * BLOB_SHOWN_BYTES}


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO ware VALUES (3, 'x', 1, NULL)",
        "UPDATE ware SET price = 0",
        "UPDATE ware SET price = 0 RETURNING id",
        "DELETE FROM ware",
        "REPLACE INTO ware VALUES (1, 'x', 1, NULL)",
        "WITH a AS (SELECT 1) DELETE FROM ware",
        "CREATE TABLE a (b)",
        "CREATE TEMP TABLE a (b)",
        "CREATE TEMP VIEW a AS SELECT 1",
        "CREATE VIRTUAL TABLE a USING fts5(b)",
        "CREATE TABLE a AS SELECT * FROM ware",
        "DROP TABLE ware",
        "ALTER TABLE ware RENAME TO b",
        "ATTACH '/etc/passwd' AS a",
        "ATTACH ':memory:' AS a",
        "DETACH main",
        "PRAGMA table_info(ware)",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_table_info('ware')",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_compile_options()",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT fts5(NULL)",
        "SELECT randomblob(10)",
        "SELECT zeroblob(1000000000)",
        "SELECT sqlite_version()",
        "SELECT last_insert_rowid()",
        "SELECT random()",
        "SELECT * FROM evil",
        "SELECT * FROM notes",
        "SELECT * FROM notes WHERE notes MATCH 'hello'",
        "INSERT INTO notes (notes) VALUES ('rebuild')",
        "SELECT * FROM dbstat",
        "SELECT * FROM sqlite_stmt",
        "SELECT * FROM json_each('[1]')",
        # Nothing is read of them but their number.
        "SELECT count(*) FROM json_each('[1]')",
        "SELECT count(*) FROM pragma_database_list",
        "SELECT 1 FROM pragma_table_info('ware')",
        "SELECT count(*) FROM dbstat",
        "SELECT count(*) FROM notes('hello')",
        "VACUUM",
        "VACUUM INTO '/tmp/copy.db'",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT a",
        "EXPLAIN DELETE FROM ware",
    ],
)
def test_whatever_is_no_plain_select_is_refused(shop: str, sql: str) -> None:
    before = Path(shop).read_bytes()
    assert refusal(shop, sql).code == SQLITE_REFUSED
    assert Path(shop).read_bytes() == before
    assert sorted(path.name for path in Path(shop).parent.iterdir()) == [Path(shop).name]


@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";",
        "-- nothing",
        "SELECT",
        "SELECT * FROM nowhere",
        "SELECT missing FROM ware",
        "SELECT 1; SELECT 2",
        "SELECT '\ud800'",
        "\x00",
        "SELECT 1; DELETE FROM ware",
        "SELECT ?",
        "SELECT :a",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT readfile('a')",
        "SELECT edit('a')",
        "SELECT * FROM broken",
        "SELECT * FROM sqlite_dbpage",
        ".tables",
        "SELECT 'a",
        "SELECT 1 /*;",
        "SELECT * FROM generate_series(1, 2)",
        "SELECT eval('DELETE FROM ware')",
        "SELECT" + "(" * 1000 + "1" + ")" * 1000,
    ],
)
def test_what_is_no_statement_of_this_database_is_invalid_or_gives_one_row(shop: str, sql: str) -> None:
    if sql == "SELECT 1 /*;":
        # A comment may stay open; there is still one statement only.
        assert query(shop, sql)["rows"] == [[1]]
    else:
        assert refusal(shop, sql).code == SQLITE_INVALID


def test_the_functions_that_are_allowed_do_nothing_but_compute() -> None:
    forbidden = {"load_extension", "fts3_tokenizer", "writefile", "readfile", "edit", "eval", "zeroblob", "randomblob"}
    assert not FUNCTIONS & forbidden


def test_rows_beyond_the_limits_are_left_out_and_said_so(shop: str) -> None:
    many = query(shop, ENDLESS + "SELECT x FROM r")
    assert (len(many["rows"]), many["is_complete"]) == (ROWS_MAX, False)
    wide = query(shop, ENDLESS + f"SELECT printf('%.{CELL_CHARS_MAX}c', 'x') FROM r")
    assert not wide["is_complete"]
    assert len(json.dumps(wide["rows"])) <= ANSWER_CHARS_MAX + len(wide["rows"]) * 4


def test_a_table_with_too_many_columns_is_refused(shop: str) -> None:
    assert refusal(shop, "SELECT " + ", ".join(["1"] * (COLUMNS_MAX + 1))).code == SQLITE_TOO_LARGE


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT printf('%.{VALUE_BYTES_MAX - 1}c', 'x') || 'xx'",
        "SELECT hex(printf('%.900000c', 'x'))",
        "SELECT replace(printf('%.900000c', 'x'), 'x', 'xxx')",
    ],
)
def test_a_value_that_grows_too_large_is_refused(shop: str, sql: str) -> None:
    assert refusal(shop, sql).code == SQLITE_TOO_LARGE


@pytest.mark.parametrize(
    "rest", ["SELECT count(*) FROM r", "SELECT x FROM r WHERE x < 0", "SELECT sum(x) OVER () FROM r"]
)
def test_a_recursion_that_never_ends_is_stopped(shop: str, rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_child, "QUERY_MS_MAX", 100)
    assert refusal(shop, ENDLESS + rest).code == SQLITE_TOO_SLOW


def test_a_missing_file_a_folder_and_what_is_no_database_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is no database. " * 100)
    assert refusal(str(tmp_path / "none.db"), "SELECT 1").code == SQLITE_FILE_MISSING
    assert refusal(str(tmp_path), "SELECT 1").code == SQLITE_FILE_MISSING
    assert refusal(str(tmp_path / "text.db"), "SELECT 1").code == SQLITE_NOT_A_DATABASE
    assert not (tmp_path / "none.db").exists()


def test_a_column_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("PRAGMA writable_schema = ON")
        odd = "CAST('CREATE TABLE t (\"' AS BLOB) || x'ff' || CAST('\")' AS BLOB)"
        connection.execute(f"UPDATE sqlite_master SET sql = CAST({odd} AS TEXT)")
        connection.commit()
    assert refusal(str(path), "SELECT * FROM t").code == SQLITE_INVALID


def test_asking_a_database_with_a_write_ahead_log_changes_none_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    before = path.read_bytes()
    assert query(str(path), "SELECT a FROM t")["rows"] == [[1]]
    assert path.read_bytes() == before
    log = path.with_name("log.db-wal")
    assert not log.exists() or log.stat().st_size == 0


def test_a_locked_database_is_told(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_child, "LOCK_WAIT_MS", 10)
    with closing(sqlite3.connect(shop, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert refusal(shop, "SELECT * FROM ware").code == SQLITE_LOCKED


def test_a_database_that_is_being_written_can_be_asked(shop: str) -> None:
    with closing(sqlite3.connect(shop, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE ware SET name = 'other'")
        assert query(shop, "SELECT name FROM ware WHERE id = 1")["rows"] == [["lamp"]]


def test_memory_that_runs_out_is_told(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: str) -> Any:
        raise MemoryError

    monkeypatch.setattr(sqlite_child, "_opened", full)
    assert refusal(shop, "SELECT 1").code == SQLITE_TOO_LARGE


def test_the_way_older_pythons_refuse_a_second_statement_is_understood(
    shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warns(file: str) -> Any:
        raise sqlite3.Warning("You can only execute one statement at a time.")

    monkeypatch.setattr(sqlite_child, "_opened", warns)
    assert refusal(shop, "SELECT 1; SELECT 2").code == SQLITE_INVALID


def test_every_code_of_the_engine_leads_to_words_for_the_model() -> None:
    assert set(CODES.values()) | {SQLITE_INVALID} == set(WAYS_OUT)
    assert CODES[sqlite3.SQLITE_IOERR] == SQLITE_FAILED


def test_the_tables_are_listed_with_their_columns(shop: str) -> None:
    found = tables(shop)
    by_name = {table["name"]: table for table in found["tables"]}
    assert by_name["ware"] == {
        "name": "ware",
        "kind": "table",
        "columns": [
            {"name": "id", "type": "INTEGER"},
            {"name": "name", "type": "TEXT"},
            {"name": "price", "type": "REAL"},
            {"name": "picture", "type": "BLOB"},
        ],
    }
    assert by_name["dear"]["kind"] == "view"
    assert by_name["broken"]["columns"] == []
    assert "notes" not in by_name
    assert found["is_complete"]


def test_a_database_with_many_tables_is_cut_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("".join(f"CREATE TABLE t{number} (a);" for number in range(TABLES_MAX + 1)))
    found = tables(str(path))
    assert (len(found["tables"]), found["is_complete"]) == (TABLES_MAX, False)


def test_a_listing_that_takes_too_long_is_stopped(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hurried:
        def execute(self, *values: Any) -> Any:
            error = sqlite3.OperationalError("interrupted")
            error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
            raise error

    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        sqlite_child._columns(Hurried(), "ware")  # type: ignore[arg-type]


def played(job: dict[str, str], program: str = "main()") -> subprocess.CompletedProcess[str]:
    """The child with its limits, in a process of its own."""
    code = f"from remit.tool.builtin.sqlite_child import *; {program}"
    return subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(job), capture_output=True, text=True, check=False
    )


def test_the_child_answers_a_job_in_json(shop: str) -> None:
    assert json.loads(played({"file": shop, "sql": "SELECT 1 AS a"}).stdout)["columns"] == ["a"]
    assert json.loads(played({"file": shop, "sql": "DELETE FROM ware"}).stdout)["code"] == SQLITE_REFUSED
    assert json.loads(played({"file": shop}).stdout)["is_complete"]


def test_the_child_takes_its_own_means_away() -> None:
    program = (
        "import resource; limit_query_process(); limit_query_process(); "
        "print(resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CORE))"
    )
    most = sqlite_child.MEMORY_BYTES_MAX
    assert played({}, program).stdout.strip() == f"({most}, {most}) (0, 0)"
    assert resource.getrlimit(resource.RLIMIT_CORE) is not None
