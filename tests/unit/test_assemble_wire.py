"""What is assembled for clusters: a copy of one in a folder, and a folder written into another store."""

import asyncio
from pathlib import Path

import pytest

from remit.assemble import Settings, opened_system, settings_of
from remit.assemble_wire import back_up, restore_store
from remit.core.failure import Ending
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import user_message
from tests.e2e.house import says, scripted
from tests.nats_server import clear


async def said_in(settings: Settings) -> list[tuple[str, str]]:
    async with opened_system(settings) as system:
        runs = [entry.run_id for entry in await system.archive.runs()]
        return [(run_id, str((await system.result(run_id)).content)) for run_id in runs]


@pytest.mark.parametrize("is_cluster", [True, False], ids=["cluster", "folder"])
def test_a_store_is_copied_into_a_folder_and_from_there_into_another_store(tmp_path: Path, *, is_cluster: bool) -> None:
    source = settings_of(home=tmp_path / "home", store=clear() if is_cluster else "")

    async def scene() -> None:
        async with opened_system(source) as system:
            response = await system.run(SystemRequest((user_message("hello"),)), scripted([says("hello")]))
            assert response.terminal_code is Ending.SUCCESS
        before = await said_in(source)
        assert await back_up(source, tmp_path / "copy") > 0
        assert await said_in(settings_of(home=tmp_path / "copy")) == before
        other = settings_of(home=tmp_path / "other")
        for turns in (before and 1, 0):
            copied = await restore_store(other, tmp_path / "copy")
            assert (copied.runs, copied.turns > 0) == (1, bool(turns))
        assert await said_in(other) == before

    asyncio.run(scene())
