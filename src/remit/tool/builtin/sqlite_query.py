"""`sqlite_query` and `sqlite_tables`: questions to one SQLite file, which nothing asked can change.

Rule 1: a query runs in a process of its own, which bounds itself and is killed when it does not end: some functions of the
        engine cannot be interrupted, and its memory is not ours to give.
Rule 2: only a few queries run at a time, in all runs together: a model may ask a hundred at once, and each
        may take all it is given.
Rule 3: which file is asked was said once by the operator. A model sees its tables, never its path.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from time import monotonic
from typing import Annotated, Any, Literal

from pydantic import Field

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.sqlite_child import SQL_CHARS_MAX, SQLITE_FAILED, SQLITE_TOO_SLOW
from remit.tool.call.cancel_token import CancelToken
from remit.tool.declare.decorator import Tool, tool

CHILD = Path(__file__).with_name("sqlite_child.py")

# The child gives up by itself long before; this is for one that cannot.
CHILD_MS_MAX = 12_000
# Longer than the child is given, so that the tool itself says what went wrong.
TIMEOUT_MS = 15_000
# How often a cancelled call is looked for.
LOOK_MS = 50
# As many processes at a time in all runs together; each may take 256 MiB and a core.
QUERIES_MAX = 4

_SLOTS = BoundedSemaphore(QUERIES_MAX)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table. `is_complete` is false where rows were left out; LIMIT and OFFSET lead to them."""

    columns: list[str]
    rows: list[list[Any]]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its declared type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view and its columns."""

    name: str
    kind: Literal["table", "view"]
    columns: list[Column]


@dataclass(frozen=True, slots=True)
class Tables:
    """What a database holds."""

    tables: list[Table]
    is_complete: bool


def sqlite_tools(file: Path) -> tuple[Tool, ...]:
    """The tools that ask a database."""

    @tool(effect=Effect.READ, category=ToolCategory.DATABASE, network=False, idempotent=True, timeout_ms=TIMEOUT_MS)
    def sqlite_query(
        sql: Annotated[str, Field(min_length=1, max_length=SQL_CHARS_MAX, description="One SELECT statement.")],
        token: CancelToken,
    ) -> Rows:
        """Ask an SQLite database with one SELECT. Nothing can be changed. Use sqlite_tables to see its tables."""
        answer = child_answer({"file": str(file), "sql": sql}, token)
        return Rows(answer["columns"], answer["rows"], answer["is_complete"])

    @tool(effect=Effect.READ, category=ToolCategory.DATABASE, network=False, idempotent=True, timeout_ms=TIMEOUT_MS)
    def sqlite_tables(token: CancelToken) -> Tables:
        """List the tables and views of the SQLite database, with their columns."""
        answer = child_answer({"file": str(file)}, token)
        return Tables([_table(one) for one in answer["tables"]], answer["is_complete"])

    return sqlite_query, sqlite_tables


def child_answer(job: dict[str, str], token: CancelToken, *, child_ms_max: int = CHILD_MS_MAX) -> dict[str, Any]:
    """Run a job in a child process and give its answer; raises ToolRefused for a refusal, and where none comes."""
    ends_s = monotonic() + child_ms_max / 1000
    _wait_for_a_slot(token, ends_s)
    try:
        return _outcome(_asked(json.dumps(job).encode(), token, ends_s, child_ms_max))
    finally:
        _SLOTS.release()


def _wait_for_a_slot(token: CancelToken, ends_s: float) -> None:
    while not _SLOTS.acquire(timeout=LOOK_MS / 1000):
        token.raise_if_cancelled()
        if monotonic() > ends_s:
            message = f"queries_max={QUERIES_MAX} other queries are running; ask again, and for less at a time"
            raise ToolRefused(SQLITE_TOO_SLOW, message)


def _asked(job: bytes, token: CancelToken, ends_s: float, child_ms_max: int) -> bytes:
    # -I and -S: no environment, no packages, nothing of the working directory.
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and file, and no shell
        [sys.executable, "-I", "-S", str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={},
    )
    with process:
        try:
            return _told(process, job, token, ends_s, child_ms_max)
        finally:
            process.kill()


def _told(
    process: "subprocess.Popen[bytes]", job: bytes, token: CancelToken, ends_s: float, child_ms_max: int
) -> bytes:
    rest: bytes | None = job
    while True:
        try:
            return process.communicate(rest, timeout=LOOK_MS / 1000)[0]
        except subprocess.TimeoutExpired:
            # What could not be sent yet is remembered and must not be given again.
            rest = None
            token.raise_if_cancelled()
            if monotonic() > ends_s:
                message = f"the query took longer than child_ms_max={child_ms_max} and was ended; ask for less"
                raise ToolRefused(SQLITE_TOO_SLOW, message) from None


def _outcome(told: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(told)
    except ValueError:
        message = "the query ended without an answer, perhaps because it needed too much; ask for less"
        raise ToolRefused(SQLITE_FAILED, message) from None
    if "code" in answer:
        raise ToolRefused(answer["code"], answer["message"])
    return answer


def _table(answer: dict[str, Any]) -> Table:
    return Table(answer["name"], answer["kind"], [Column(one["name"], one["type"]) for one in answer["columns"]])
