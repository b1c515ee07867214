"""Bare SQLite: what it costs to keep a loop or a run in a file when nothing is decided, signed or checked.

A row has as many bytes as a loop of remit adds to its journal, so that the disk has the same to do.
"""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from benchmarks.bare import play_bare
from benchmarks.whole import Spent, Watch

ROW = bytes(1_100)
FULL, NORMAL = "FULL", "NORMAL"

_INSERT = "INSERT INTO loops (data) VALUES (?)"


def play_committing(home: Path, loops: int, *, synchronous: str, loops_per_commit: int = 1) -> Spent:
    """A bare tool loop that writes a row for every loop, and commits after so many."""
    with closing(_opened(home, synchronous)) as connection, asyncio.Runner() as runner, Watch() as watch:
        runner.run(play_bare(loops))
        for loop in range(loops):
            if loop % loops_per_commit == 0:
                connection.execute("BEGIN IMMEDIATE")
            connection.execute(_INSERT, (ROW,))
            if (loop + 1) % loops_per_commit == 0 or loop + 1 == loops:
                connection.execute("COMMIT")
    return watch.spent


def play_one_by_one(home: Path, runs: int, loops: int) -> Spent:
    """So many bare runs at once, each with a synced commit of its own."""
    with closing(_opened(home, FULL)) as connection, asyncio.Runner() as runner, Watch() as watch:
        runner.run(_one_by_one(connection, runs, loops))
    return watch.spent


def play_grouped(home: Path, runs: int, loops: int) -> Spent:
    """So many bare runs at once; those that end in one tick of the event loop share a synced commit."""
    with closing(_opened(home, FULL)) as connection, asyncio.Runner() as runner, Watch() as watch:
        runner.run(_grouped(connection, runs, loops))
    return watch.spent


async def _one_by_one(connection: sqlite3.Connection, runs: int, loops: int) -> None:
    async def play() -> None:
        await play_bare(loops)
        connection.execute(_INSERT, (ROW * loops,))

    await asyncio.gather(*[play() for _ in range(runs)])


async def _grouped(connection: sqlite3.Connection, runs: int, loops: int) -> None:
    waiting: list[asyncio.Future[None]] = []

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INSERT, [(ROW * loops,)] * len(waiting))
        connection.execute("COMMIT")
        for future in waiting:
            future.set_result(None)
        waiting.clear()

    async def play() -> None:
        await play_bare(loops)
        loop = asyncio.get_running_loop()
        if not waiting:
            loop.call_soon(commit)
        kept = loop.create_future()
        waiting.append(kept)
        await kept

    await asyncio.gather(*[play() for _ in range(runs)])


def _opened(home: Path, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(home / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE loops (number INTEGER PRIMARY KEY, data BLOB NOT NULL)")
    return connection
