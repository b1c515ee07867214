"""A query runs in a process that is ended when it does not end by itself."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from threading import BoundedSemaphore

import pytest

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin import sqlite_query
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.sqlite_child import (
    MEMORY_BYTES_MAX,
    QUERY_MS_MAX,
    SQLITE_FAILED,
    SQLITE_FILE_MISSING,
    SQLITE_REFUSED,
    SQLITE_TOO_LARGE,
    SQLITE_TOO_SLOW,
)
from remit.tool.builtin.sqlite_query import CHILD, CHILD_MS_MAX, QUERIES_MAX, TIMEOUT_MS, child_answer, sqlite_tools
from remit.tool.call.cancel_token import CancelToken, ToolCancelled
from tests.unit.tool.watching import content, fault

# Together they take seconds.
pytestmark = pytest.mark.slow

ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) "


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE ware (name TEXT); INSERT INTO ware VALUES ('lamp'), (x'00');")
    return path


def test_the_tools_declare_what_they_do_and_tell_no_path(shop: Path) -> None:
    for one in sqlite_tools(shop):
        assert one.definition.effect is Effect.READ
        assert one.definition.category is ToolCategory.DATABASE
        assert one.definition.untrusted_output
        assert str(shop.parent) not in str(one.definition)
    assert QUERY_MS_MAX < CHILD_MS_MAX < TIMEOUT_MS


def test_a_query_comes_back_as_a_table(shop: Path) -> None:
    query, tables = sqlite_tools(shop)
    assert json.loads(content(query, sql="SELECT name FROM ware")) == {
        "columns": ["name"],
        "rows": [["lamp"], [{"blob_bytes": 1, "hex": "00"}]],
        "is_complete": True,
    }
    assert json.loads(content(tables))["tables"] == [
        {"name": "ware", "kind": "table", "columns": [{"name": "name", "type": "TEXT"}]}
    ]


def test_a_refusal_of_the_child_reaches_the_model(shop: Path) -> None:
    query, _ = sqlite_tools(shop)
    assert SQLITE_REFUSED in fault(query, sql="DELETE FROM ware").error
    shop.unlink()
    error = fault(query, sql="SELECT 1").error
    assert SQLITE_FILE_MISSING in error
    assert str(shop.parent) not in error


def test_a_query_that_does_not_end_is_ended(shop: Path) -> None:
    job = {"file": str(shop), "sql": ENDLESS + "SELECT count(*) FROM r"}
    with pytest.raises(ToolRefused) as caught:
        child_answer(job, CancelToken(), child_ms_max=300)
    assert caught.value.code == SQLITE_TOO_SLOW


def test_only_a_few_queries_run_at_a_time_and_the_others_wait_in_bounds(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = BoundedSemaphore(1)
    monkeypatch.setattr(sqlite_query, "_SLOTS", taken)
    job = {"file": str(shop), "sql": "SELECT 1"}
    with taken:
        with pytest.raises(ToolRefused) as caught:
            child_answer(job, CancelToken(), child_ms_max=100)
        assert caught.value.code == SQLITE_TOO_SLOW
        assert f"queries_max={QUERIES_MAX} other queries are running" in caught.value.message
        token = CancelToken()
        token.cancel()
        with pytest.raises(ToolCancelled):
            child_answer(job, token)
    # Whatever a query comes to, its place is free again.
    for _ in range(3):
        assert child_answer(job, CancelToken())["rows"] == [[1]]
        with pytest.raises(ToolRefused):
            child_answer({**job, "sql": "DELETE"}, CancelToken())


def test_all_queries_together_take_the_memory_of_a_small_machine() -> None:
    assert QUERIES_MAX * MEMORY_BYTES_MAX <= 1024**3


def test_a_cancelled_query_is_ended(shop: Path) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(ToolCancelled):
        child_answer({"file": str(shop), "sql": ENDLESS + "SELECT count(*) FROM r"}, token)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        # Sorting would fill the memory, or the disk; on a busy machine its time is up before.
        (
            ENDLESS + "SELECT printf('%.90000c', x) FROM r ORDER BY 1",
            {SQLITE_TOO_LARGE, SQLITE_FAILED, SQLITE_TOO_SLOW},
        ),
        (ENDLESS + "SELECT count(*) FROM r", {SQLITE_TOO_SLOW}),
        # One call of a function that never looks at the clock.
        (
            "SELECT trim(a, b) FROM (SELECT printf('%.900000c', 'a') AS a, printf('%.900000c', 'b') || 'a' AS b)",
            {SQLITE_TOO_SLOW, SQLITE_TOO_LARGE, SQLITE_FAILED},
        ),
    ],
)
def test_work_and_memory_without_end_are_stopped_by_the_process_itself(shop: Path, sql: str, codes: set[str]) -> None:
    with pytest.raises(ToolRefused) as caught:
        child_answer({"file": str(shop), "sql": sql}, CancelToken())
    assert caught.value.code in codes
    assert [path.name for path in shop.parent.iterdir()] == ["shop.db"]


def test_a_child_that_says_nothing_is_told(shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text("import sys; sys.stdin.read(); print('{')")
    monkeypatch.setattr(sqlite_query, "CHILD", silent)
    with pytest.raises(ToolRefused) as caught:
        child_answer({"file": str(shop)}, CancelToken())
    assert caught.value.code == SQLITE_FAILED


def test_the_child_imports_nothing_of_ours() -> None:
    imports = [line for line in CHILD.read_text().splitlines() if line.startswith(("import ", "from "))]
    modules = {line.split()[1].split(".")[0] for line in imports}
    assert modules <= set(sys.stdlib_module_names)
