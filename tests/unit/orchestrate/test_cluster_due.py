"""A run that is due is driven although its word was taken: loop workers look for words that none of them has heeded."""

import asyncio
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.cluster.store import ClusterStore
from remit.core.failure import Ending
from remit.core.journal.storage import StoreUnusable
from remit.core.run.signals import Signal
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.loop.driver import Driver
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import engine_kit
from tests.e2e.house import asking, says, tell, until
from tests.nats_server import opened
from tests.unit.orchestrate.test_cluster_workers import Slow
from tests.workforce import Till, approved, crew, hurry, play, rested

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


async def steal_word(thief: ClusterStore) -> None:
    """Take the word that a run is due, and let no other process be given it."""
    while (word := await thief.queue.next_due()) is None:
        pass
    await thief.queue.settle(word.receipt)


async def turns_of(store: ClusterStore, run_id: str) -> int:
    await store.log_copy.refresh()
    return len(store.log_copy.journal.turns_of(run_id))


def test_a_run_whose_word_was_taken_and_acknowledged_by_another_is_driven_all_the_same(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with crew(tmp_path, till.kit()) as workers:
            thief = await workers.store()
            await thief.queue.prepare_words()
            program = await workers.program()
            run_id = await program.submit(asking("Please pay."), workers.kit)
            await steal_word(thief)
            driver, _ = await workers.drives()
            for part in ("model", "tool"):
                await workers.performs(part)
            asks = await rested(program, run_id)
            await driver.leave()
            await approved(program, asks)
            await steal_word(thief)
            await workers.drives()
            assert (await rested(program, run_id)).terminal_code is Ending.SUCCESS
            assert till.paid == 1

    play(story())


def test_a_run_that_rests_or_was_left_by_its_own_program_is_not_taken_up_for_want_of_a_driver(tmp_path: Path) -> None:
    async def story() -> None:
        model = Slow(says("Done."))
        async with crew(tmp_path, engine_kit(model)) as workers:
            driver, _ = await workers.drives()
            await workers.performs("model")
            program = await workers.program()
            paused = await program.submit(asking(), workers.kit)
            await until(lambda: model.asked, "the model is asked")
            await tell(program, Signal.PAUSE, paused)
            model.may_answer.set()
            await until(lambda: not driver.driven, "it rests")
            # Of a program that drives its runs itself, and closes.
            own = await asyncio.to_thread(opened, tmp_path)
            system = system_on(own, signer=lambda: own.key.signer)
            left = await system.submit(asking(), engine_kit(Slow(says("Never."))))
            await system.close()
            store = workers.stores[0]
            before = [await turns_of(store, run_id) for run_id in (paused, left)]
            await asyncio.sleep(3)
            assert [await turns_of(store, run_id) for run_id in (paused, left)] == before
            await tell(program, Signal.RESUME, paused)
            assert (await rested(program, paused)).content == "Done."

    play(story())


def test_a_run_that_is_being_taken_up_by_a_worker_that_leaves_is_announced_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        model = Slow(says("Done."))
        async with crew(tmp_path, engine_kit(model)) as workers:
            first, system = await workers.drives()
            hub, taking, may_go_on = system.driving()[0], asyncio.Event(), asyncio.Event()
            go_on = hub._go_on

            async def slowly(live: Live) -> Driver:
                taking.set()
                await may_go_on.wait()
                return await go_on(live)

            monkeypatch.setattr(hub, "_go_on", slowly)
            await workers.performs("model")
            program = await workers.program()
            run_id = await program.submit(asking(), workers.kit)
            await taking.wait()
            leaving = asyncio.ensure_future(first.leave())
            await asyncio.sleep(0.1)
            may_go_on.set()
            await leaving
            await workers.drives()
            model.may_answer.set()
            assert (await rested(program, run_id)).content == "Done."

    play(story())


def test_runs_that_cannot_be_announced_are_named_and_put_down_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        model = Slow(says("Done."))
        async with crew(tmp_path, engine_kit(model)) as workers:
            first, _ = await workers.drives()
            store = workers.stores[-1]
            await workers.performs("model")
            program = await workers.program()
            run_id = await program.submit(asking(), workers.kit)
            await until(lambda: model.asked, "the model is asked")

            async def unreachable(run_id: str) -> None:
                raise StoreUnusable("STORE_UNREACHABLE", f"nothing can be written of {run_id}")

            monkeypatch.setattr(store.queue, "due", unreachable)
            await first.leave()
            assert first.driven == 0
            assert f"no worker is told of ({run_id}); `remit resume` drives them" in caplog.text
            await workers.drives()
            model.may_answer.set()
            await program.resume(run_id)
            assert (await rested(program, run_id)).content == "Done."

    play(story())


def test_words_that_were_heeded_are_asked_about_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with crew(tmp_path, engine_kit(ScriptedEngine([says("Done.")]))) as workers:
            program, store = await workers.program(), await workers.store()
            run_id = await program.submit(asking(), workers.kit)
            while run_id not in await store.leases.unheld():  # noqa: ASYNC110  # the program lets it go
                await asyncio.sleep(0.05)
            orphans = store.queue.orphans
            assert await orphans() == []
            assert await orphans() == await orphans() == [run_id]
            # Another takes it and lets it go: it has heeded the word.
            token = await store.leases.take(run_id)
            assert token is not None
            await store.leases.release(run_id, token)
            assert await orphans() == await orphans() == await orphans() == []
            # One that leaves says so while it holds the run.
            token = await store.leases.take(run_id)
            assert token is not None
            await store.queue.due(run_id)
            await store.leases.release(run_id, token)
            assert await orphans() == []
            assert await orphans() == [run_id]

    play(story())
