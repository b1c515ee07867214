"""A guarded conversation goes on although its row in the list of runs, which is made from its turns, is bent; none begins
where its row is gone."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

import remit
from remit.core.journal.storage import STORE_INDEX_LOST
from remit.core.run.lineage import derived_id
from tests.unit.orchestrate.test_told_later import PAY, Host

BENT = [
    "UPDATE runs SET name = ''",
    "UPDATE runs SET ending = 'SUCCESS', ended_at_ms = started_at_ms + 1",
]


@pytest.mark.parametrize("sql", BENT)
def test_a_conversation_whose_row_is_bent_is_gone_on_with_and_no_second_one_begins(sql: str, tmp_path: Path) -> None:
    async def begin() -> str:
        async with remit.open(tmp_path) as system:
            host = Host(system)
            await host.paid()
            await host.told("paid")
            return host.guard.run_id_of("talk")

    async def go_on() -> str:
        async with remit.open(tmp_path) as system:
            host = Host(system)
            await host.start()
            assert "returned and was not verified" in (await host.pay("2"))["reasons"][-1]
            return host.guard.run_id_of("talk")

    run_id = asyncio.run(begin())
    with sqlite3.connect(tmp_path / "remit.db") as database:
        database.execute(sql)
    database.close()
    assert asyncio.run(go_on()) == run_id


@pytest.mark.parametrize("before", [0, 1])
def test_no_second_conversation_begins_where_the_row_of_the_first_is_gone(before: int, tmp_path: Path) -> None:
    run_id = asyncio.run(_open_one(tmp_path, before))
    _change(tmp_path, "DELETE FROM runs WHERE run_id = ?", run_id)
    assert asyncio.run(_started(tmp_path)) == (STORE_INDEX_LOST, "")
    asyncio.run(_rebuilt(tmp_path))
    assert asyncio.run(_started(tmp_path)) == ("", run_id)


def test_no_conversation_begins_where_the_turns_of_another_are_listed_as_those_of_the_last(tmp_path: Path) -> None:
    run_id = asyncio.run(_open_one(tmp_path, 1))
    first = derived_id("guard", "", "talk", "0")
    for was, becomes in ((first, "aside"), (run_id, first), ("aside", run_id)):
        _change(tmp_path, "UPDATE runs SET run_id = ? WHERE run_id = ?", becomes, was)
    assert asyncio.run(_started(tmp_path)) == (STORE_INDEX_LOST, "")
    asyncio.run(_rebuilt(tmp_path))
    assert asyncio.run(_started(tmp_path)) == ("", run_id)


def test_the_open_conversation_is_taken_up_where_an_ended_one_is_listed_as_open(tmp_path: Path) -> None:
    run_id = asyncio.run(_open_one(tmp_path, 1))
    _change(tmp_path, "UPDATE runs SET ending = '' WHERE run_id <> ?", run_id)
    _change(tmp_path, "UPDATE runs SET ending = 'SUCCESS' WHERE run_id = ?", run_id)
    assert asyncio.run(_started(tmp_path)) == ("", run_id)


async def _open_one(path: Path, before: int) -> str:
    """The id of a conversation in which eve was paid, and that is open, after so many that ended; another one is beside it."""
    async with remit.open(path) as system:
        await Host(system).guard.answer({"op": "start", "run": "beside", "prompt": "Hello.", "tools": [PAY]})
        host = Host(system)
        for _ in range(before):
            await host.start()
            await host.say("end")
        await host.paid()
        await host.told("paid")
        return host.guard.run_id_of("talk")


async def _started(path: Path) -> tuple[str, str]:
    """The code that a start is refused with, or the run that it goes on with."""
    async with remit.open(path) as system:
        host = Host(system)
        said = await host.say("start", prompt="Hello.", tools=[PAY]) or {}
        return said.get("code", ""), "" if "code" in said else host.guard.run_id_of("talk")


async def _rebuilt(path: Path) -> None:
    async with remit.open(path) as system:
        await system.rebuild()


def _change(path: Path, sql: str, *values: str) -> None:
    with sqlite3.connect(path / "remit.db") as database:
        assert database.execute(sql, values).rowcount
    database.close()


def test_a_conversation_that_has_ended_is_followed_by_another(tmp_path: Path) -> None:
    async def scene() -> list[str]:
        ids = []
        async with remit.open(tmp_path) as system:
            for _ in range(3):
                host = Host(system)
                await host.start()
                ids.append(host.guard.run_id_of("talk"))
                await host.say("end")
        return ids

    assert len(set(asyncio.run(scene()))) == len(range(3))
