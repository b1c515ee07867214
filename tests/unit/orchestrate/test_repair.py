"""Inputs are kept and everything else is made anew: what became of signals, whom runs heard, and runs that go on meanwhile."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.journal.codec import decode_turn, encode_signal
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.history.repair import Rebuilt, derived_from
from remit.testing.conformance.sample_turns import add
from tests.unit.orchestrate.house import calls, keep, request, scripted, store_of, systems, unaudited


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
