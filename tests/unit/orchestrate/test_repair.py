"""Inputs are kept and everything else is made anew: what became of signals, whom runs heard, and runs that go on meanwhile."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RemitError
from remit.core.journal.codec import decode_turn, encode_signal
from remit.core.limits.budget import Budget
from remit.core.limits.quota import ANYONE, Period, Quota
from remit.core.record import replace
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.history.repair import Rebuilt, derived_from
from remit.testing.conformance.sample_turns import add
from tests.unit.orchestrate.house import calls, helper, keep, request, scripted, store_of, systems, unaudited


@pytest.mark.parametrize("kind", ["memory", "embedded"])
def test_what_became_of_a_signal_is_told_from_the_turn_that_answers_it(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of(kind, tmp_path)
        async with systems(store) as (system,):
            kit = scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep])
            run_id = (await system.run(request(), kit)).run_id
            said = [
                UserSignal("a", Signal.FEEDBACK, run_id, "ada", payload={"text": "hurry"}),
                UserSignal("b", Signal.RESUME, run_id, "ada"),
            ]
            heard, refused = [await store.inbox.put(run_id, encode_signal(one)) for one in said]
            await system.resume(run_id, kit=kit)
            before = [await store.inbox.outcome(number) for number in (heard, refused)]
            assert before[0] == ("", "")
            assert before[1] is not None
            assert before[1][0] == "NOT_PAUSED"
            turns = [decode_turn(data) for data in await store.journal.read(run_id)]
            assert [turn.heard for turn in turns if turn.heard] == [heard]
            entry = await store.catalogue.entry(run_id)
            if kind == "embedded":
                with closing(sqlite3.connect(tmp_path / "remit.db")) as connection, connection:
                    connection.execute("UPDATE inbox SET code = NULL, settled_at_ms = NULL WHERE number = ?", (heard,))
                    connection.execute("UPDATE runs SET waiting_for = '', mode = ''")
                assert await store.inbox.outcome(heard) is None
            assert await system.rebuild() == Rebuilt(1)
            assert [await store.inbox.outcome(number) for number in (heard, refused)] == before
            assert await store.catalogue.entry(run_id) == entry
        await store.close()

    asyncio.run(story())


def test_a_run_that_went_on_meanwhile_is_left_to_its_driver() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with unaudited(store) as (system,):
            run_id = (await system.run(request(), scripted({"text": "hello"}))).run_id
            made = derived_from(run_id, await store.journal.read(run_id))
            assert (made.standing.ending, made.turns) == ("SUCCESS", 2)
            assert await store.index.renew([made]) == [run_id]
            await add(store.journal, run_id, b"later")
            assert await store.index.renew([made]) == []

    asyncio.run(story())


# What is read and never made, and what need not be as it was: states that may be forgotten, and numbers that SQLite gives.
INPUTS = ("turns", "heads", "blobs", "receipts")
FORGOTTEN = ("snapshots", "sqlite_sequence")
# What of a table stays when everything that is derived is lost: how its rows are told apart, and inputs.
KEPT = {"runs": ("run_no", "run_id"), "inbox": ("number", "run_id", "data")}
# Moments by the clock of the store: that there is one is derived, and it may be another.
MOMENTS = ("settled_at_ms", "ended_at_ms")


def rows_of(database: sqlite3.Connection) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table that holds something derived, column by column, as the schema names them."""
    found = {}
    for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        if table not in (*INPUTS, *FORGOTTEN):
            columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
            rows = [dict(zip(columns, row, strict=True)) for row in database.execute(f"SELECT * FROM {table}")]
            for row in rows:
                row |= {name: row[name] is not None for name in columns if name in MOMENTS}
            found[table] = sorted(rows, key=lambda row: str(list(row.values())))
    return found


def lose_all(database: sqlite3.Connection, heard: list[int]) -> None:
    """Lose whatever is derived: rows, and where rows are kept every other column of them, whichever those are."""
    for table in rows_of(database):
        if table not in KEPT:
            database.execute(f"DELETE FROM {table}")
            continue
        columns = database.execute(f"PRAGMA table_info({table})").fetchall()
        lost = [(name, fallback or "NULL") for _, name, _, _, fallback, _ in columns if name not in KEPT[table]]
        # Refusals stand in no turn: what became of those entries is an input.
        of_turns = f" WHERE number IN ({','.join(map(str, heard))})" if table == "inbox" else ""
        database.execute(f"UPDATE {table} SET {', '.join(f'{name} = {value}' for name, value in lost)}{of_turns}")


def test_whatever_is_derived_is_made_anew_column_by_column(tmp_path: Path) -> None:
    async def story() -> None:
        store = store_of("embedded", tmp_path)
        system = system_on(store, quotas=(Quota(ANYONE, Period.DAY, Budget(steps=1_000)),))
        kit = scripted({"text": "hello"})
        for text in ("first", "second"):
            await system.run(replace(request(text, session_id="s"), tenant_id="acme"), kit)
        wants = {**calls("helper", task="x")}
        parent = (
            await system.run(request(), scripted(wants, {"text": "done"}, {"text": "thanks"}, tools=[helper]))
        ).run_id
        waiting = (
            await system.run(request(), keeping := scripted(calls("keep", text="x"), {"text": "kept"}, tools=[keep]))
        ).run_id
        feedback = UserSignal("a", Signal.FEEDBACK, waiting, "ada", payload={"text": "hurry"})
        retry = UserSignal("b", Signal.RETRY, parent, "ada", payload={"reason": "again"})
        heard = [await store.inbox.put(one.run_id, encode_signal(one)) for one in (feedback, retry)]
        refused = await store.inbox.put(waiting, encode_signal(UserSignal("c", Signal.RESUME, waiting, "ada")))
        await system.resume(waiting, kit=keeping)
        fork_id = (await system.fork(waiting, by="ada")).fork_id
        told = [derived_from(run_id, await store.journal.read(run_id)).heard for run_id in (waiting, fork_id)]
        assert told == [((heard[0], ""),), ()], "a fork answers nothing that its origin has answered"
        with suppress(RemitError):
            await system.resume(parent, kit=kit)
        await system.settle()
        await system.guard().answer({"op": "start", "run": "talk", "prompt": "Hello.", "tools": [], "tenant": "acme"})
        with closing(sqlite3.connect(tmp_path / "remit.db")) as database:
            before = rows_of(database)
            with database:
                lose_all(database, heard)
            lost = rows_of(database)
            for table, rows in before.items():
                assert rows, f"{table} has no row: nothing is shown of it"
                for name in rows[0].keys() - KEPT.get(table, ()) if lost[table] else ():
                    was, now = ([row[name] for row in some] for some in (rows, lost[table]))
                    assert was != now, f"{table}.{name} was lost in no row: nothing is shown of it"
        assert [await store.inbox.outcome(number) for number in heard] == [None, None]
        assert await store.inbox.outcome(refused) is not None
        assert not (await system.rebuild()).unread
        with closing(sqlite3.connect(tmp_path / "remit.db")) as database:
            assert rows_of(database) == before
        await system.close()
        await store.close()

    asyncio.run(story())
