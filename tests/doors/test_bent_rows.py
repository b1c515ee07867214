"""A guarded conversation goes on although its row in the list of runs, which is made from its turns, is bent."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

import remit
from tests.unit.orchestrate.test_told_later import Host

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
