"""What a tool says of a call whose worker fell silent: a no may be early, and what returns after it was believed is told."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit import Happened, tool
from remit.core.failure import Ending
from remit.core.journal.queued import Lane
from remit.core.run.contract import SystemResponse
from remit.core.run.signals import Signal
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.executors import division
from remit.orchestrate.facade import System
from remit.orchestrate.loop.late_delivery import OUTCOME_CONTRADICTED
from remit.orchestrate.setup.kit import Kit, engine_kit
from tests.e2e.house import asking, calls, says, tell, until
from tests.workforce import Crew, crew, hurry, play

pytestmark = pytest.mark.slow


class Bank:
    """A tool that blocks until it may pay, and says no when it is asked before it has."""

    def __init__(self, timeout_ms: int) -> None:
        self.may_pay = threading.Event()
        self.begun = self.paid = self.asked = 0

        def was_paid(key: str) -> Happened:
            self.asked += 1
            return Happened.YES if self.paid else Happened.NO

        @tool(effect="external", network=False, asks=["pay"], timeout_ms=timeout_ms, reconcile=was_paid)
        def pay() -> str:
            """Pay."""
            self.begun += 1
            self.may_pay.wait(30)
            self.paid += 1
            return "paid"

        self.pay = pay

    def kit(self) -> Kit:
        """A run that pays, and says so."""
        return engine_kit(ScriptedEngine([calls("pay"), says("That is all.")]), [self.pay])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(division, "GRACE_MS", 100)


@asynccontextmanager
async def silent(home: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Crew, System, str]]:
    """A crew with a run whose payment was begun by a worker that fell silent within it; another worker has the tool, too."""
    async with crew(home, bank.kit()) as workers:
        await workers.drives()
        await workers.performs("model")
        program = await workers.program()
        try:
            response = await program.run(asking("Please pay."), workers.kit)
            assert response.waiting_for is not None, response
            run_id, packet = response.run_id, response.waiting_for.packet_ids[0]
            await tell(program, Signal.APPROVE, run_id, {"packet_id": packet})
            await workers.performs("tool", concurrency=1)
            stopped = workers.stores[-1].queue

            async def say_nothing(receipt: str) -> None:
                """It is stopped, and tells no server that it is at work."""

            async def take_nothing(lane: Lane) -> None:
                await asyncio.sleep(0.05)

            monkeypatch.setattr(stopped, "keep", say_nothing)
            await until(lambda: bank.begun, "the tool is called")
            monkeypatch.setattr(stopped, "next_errand", take_nothing)
            await workers.performs("tool")
            yield workers, program, run_id
        finally:
            bank.may_pay.set()


async def ended(system: System, run_id: str) -> SystemResponse:
    while (found := await system.result(run_id)).terminal_code is None:  # noqa: ASYNC110  # another process moves it
        await asyncio.sleep(0.05)
    return found


def test_a_no_is_not_believed_while_the_worker_that_fell_silent_may_still_pay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        bank = Bank(timeout_ms=60_000)
        async with silent(tmp_path, bank, monkeypatch) as (_, program, run_id):
            await until(lambda: bank.asked, "the tool is asked what became of it")
            await asyncio.sleep(0.5)
            assert (await program.result(run_id)).terminal_code is None
            bank.may_pay.set()
            response = await ended(program, run_id)
            assert [call.result for call in response.tool_calls_made] == ["paid"]
            assert (bank.begun, bank.paid, bank.asked) == (1, 1, 1)

    play(story())


def test_what_returns_after_a_no_was_believed_is_told_as_what_may_have_happened_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        bank = Bank(timeout_ms=1_000)
        async with silent(tmp_path, bank, monkeypatch) as (workers, program, run_id):
            response = await ended(program, run_id)
            assert bank.asked == 2, "the no was asked for again when the time of the call had passed"
            assert response.terminal_code is not Ending.SUCCESS
            assert not any("returned after all" in warning for warning in response.warnings)
            bank.may_pay.set()
            letters = workers.stores[0].queue.letters
            while not (found := await letters.listed()):  # noqa: ASYNC110  # another process keeps them
                await asyncio.sleep(0.05)
            assert [letter.code for letter in found] == [OUTCOME_CONTRADICTED]
            response = await program.result(run_id)
            (told,) = [warning for warning in response.warnings if "returned after all" in warning]
            assert "pay" in told
            assert "twice" in told
            assert (await program.archive.verify(run_id)).ok

    play(story())


def test_a_call_longer_than_a_run_is_kept_waiting_for_is_for_a_person_who_reads_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(division, "WAIT_MS_MAX", 1_000)
        bank = Bank(timeout_ms=60_000)
        async with silent(tmp_path, bank, monkeypatch) as (_, program, run_id):
            while not (questions := await program.archive.approvals(run_id)):  # noqa: ASYNC110  # another process asks
                await asyncio.sleep(0.05)
            (question,) = questions
            assert any("says that it did not happen, and it may still be under way" in one for one in question.reasons)

    play(story())
