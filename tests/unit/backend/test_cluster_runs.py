"""Whole systems on JetStream: runs go on elsewhere, words are taken out of the server's disk, signals cross processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.cluster.store import ClusterStore
from remit.core.failure import Ending
from remit.core.run.signals import Signal
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit
from remit.tool.declare.decorator import tool
from tests.e2e.house import asking, calls, says, scripted, tell
from tests.nats_server import clear, opened, server
from tests.text_files import bytes_below

WORDS = "the north gate opens at nine"


@tool(effect="read")
def look(what: dict[str, str]) -> str:
    """Look something up."""
    return f"{WORDS} " * (200 if "long" in what else 1)


def kit() -> Kit:
    return scripted(
        [calls("look", {"what": {"short": WORDS}}), calls("look", {"what": {"long": "1"}}), says(WORDS)], look
    )


@pytest.fixture(autouse=True)
def _empty() -> None:
    clear()


@asynccontextmanager
async def system_in(home: Path) -> AsyncIterator[System]:
    store = opened(home)
    system = system_on(store, signer=lambda: store.key.signer)
    try:
        yield system
    finally:
        await system.close()


def bytes_on_the_server() -> bytes:
    return bytes_below(server().folder)


def test_words_are_taken_out_of_the_disk_of_the_server_and_the_chain_holds(tmp_path: Path) -> None:
    async def story() -> None:
        async with system_in(tmp_path) as system:
            first = await system.run(asking(f"I say {WORDS}."), kit())
            second = await system.run(asking("Nothing."), scripted([says("Nothing.")]))
            before = [turn.place for turn in await system.store.feed.since(-1, limit=99)]
            assert WORDS.encode() in bytes_on_the_server()
            done = [
                await system.store.redactions.redact(first.run_id, text=WORDS, by="ann", why="a mistake")
                for _ in range(2)
            ]
            assert [one.turns > 0 for one in done] == [True, False], "the second time there is nothing left to take out"
            assert WORDS.encode() not in bytes_on_the_server()
            again = await system.store.redactions.redact(first.run_id, text="look", by="ann", why="another")
            assert again.turns
            async with system_in(tmp_path) as later:
                for one in (system, later):
                    assert (await one.archive.verify(first.run_id)).ok
                    assert (await one.archive.verify(second.run_id)).ok
                    assert [run.run_id for run in await one.archive.runs()] == [second.run_id, first.run_id]
                    assert [turn.place for turn in await one.store.feed.since(-1, limit=99)] == before
                turns = [list(await one.store.journal.read(first.run_id)) for one in (system, later)]
                assert turns[0] == turns[1]

    asyncio.run(story())


def test_a_turn_whose_redaction_was_cut_off_leaves_the_server_with_the_next_collection(tmp_path: Path) -> None:
    async def story() -> None:
        async with system_in(tmp_path) as system:
            run = await system.run(asking(f"I say {WORDS}."), scripted([says("Fine.")]))
            store = system.store
            assert isinstance(store, ClusterStore)
            remove = store.link.jet.remove

            async def kept(seq: int, stream: str = "") -> None:
                """Nothing is removed by a process that was killed before it could."""

            store.link.jet.remove = kept  # type: ignore[method-assign]
            await store.redactions.redact(run.run_id, text=WORDS, by="ann", why="a mistake")
            store.link.jet.remove = remove  # type: ignore[method-assign]
            assert WORDS.encode() in bytes_on_the_server()
            async with system_in(tmp_path) as later:
                turns = list(await later.store.journal.read(run.run_id))
                assert turns == list(await store.journal.read(run.run_id))
                await later.store.retention.gc(ended_before_ms=0)
                assert WORDS.encode() not in bytes_on_the_server()
                assert (await later.archive.verify(run.run_id)).ok

    asyncio.run(story())


def test_a_signal_reaches_a_run_that_another_process_drives(tmp_path: Path) -> None:
    async def story() -> None:
        started, release = asyncio.Event(), asyncio.Event()

        @tool(effect="read")
        async def wait() -> str:
            """Wait."""
            started.set()
            await release.wait()
            return "waited"

        async with system_in(tmp_path) as driver, system_in(tmp_path) as elsewhere:
            running = asyncio.ensure_future(
                driver.run(asking("Wait."), scripted([calls("wait", {}), says("Done.")], wait))
            )
            await started.wait()
            (run,) = await elsewhere.archive.runs()
            async with asyncio.timeout(20):
                await tell(elsewhere, Signal.CANCEL, run.run_id)
                ended = await running
            assert ended.terminal_code is Ending.USER_CANCEL

    asyncio.run(story())
