"""The dispatch over NATS does what every dispatch must: commands are performed by a worker that knows their errands alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.cluster.work import errand_queue
from remit.core.journal.commands import CallTool, Command
from remit.core.journal.queued import Lane
from remit.core.record import Text
from remit.orchestrate.executors.carrier import CARRIED, Carrier
from remit.orchestrate.executors.errands import Errand, Sender, ToolErrand
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.outlet import Dispatch
from remit.orchestrate.workers.errand_worker import ErrandWorker
from remit.testing.conformance.processes.dispatch import DISPATCH_CHECKS, MANY, DispatchCheck, Perform, a_call
from tests.nats_server import clear, opened
from tests.unit.orchestrate.stage import HandClock

CALL = a_call()


class BareCarrier(Carrier):
    """Makes errands of calls of runs that were never started."""

    async def _prepared(self, live: Live, command: Command) -> Errand:  # type: ignore[explicit-override]
        assert isinstance(command, CallTool)
        return ToolErrand(Sender(live.run_id, live.run_id), command)

    def _may_repeat(self, live: Live, command: Command) -> bool:  # type: ignore[explicit-override]
        return isinstance(command, CallTool) and not command.mutating


@pytest.mark.parametrize("check", DISPATCH_CHECKS, ids=lambda check: check.__name__)
def test_the_dispatch_over_nats_does_what_every_dispatch_must(
    check: DispatchCheck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear()
    # How long a worker that leaves waits for one more errand.
    monkeypatch.setattr(errand_queue, "PULL_S", 0.2)

    async def fetch(text: Text) -> str:
        assert isinstance(text, str)
        return text

    @asynccontextmanager
    async def over_nats(perform: Perform, halts: Halts) -> AsyncIterator[Dispatch]:
        async def performed(errand: Errand) -> Report:
            return await perform(errand.command)

        driver, performer = [await asyncio.to_thread(opened, tmp_path) for _ in range(2)]
        await driver.link.call(driver.link.jet.purge("agent.>"))
        executors: dict[type[Command], Carrier] = {}
        dispatch = InProcessDispatch(executors, HandClock(), halts=halts, shared=driver.claims)
        carrier = BareCarrier(
            driver.queue,
            driver.blobs,
            fetch=fetch,
            look_after=dispatch.look_after,
            revoke=dispatch.revoke,
            tell=lambda run_id, report: None,
        )
        executors |= dict.fromkeys(CARRIED, carrier)
        # What is carried is revoked by its claim alone; the other checks ask about what was sent here.
        dispatch.carried = frozenset(CARRIED if "carried" in check.__name__ else ())
        lane = Lane("tool", CALL.tool, CALL.version)
        worker = ErrandWorker(performer.queue, performer.claims, [lane], concurrency=3 * MANY)
        serving = asyncio.ensure_future(worker.serve(performed, fetch, lambda _: False))
        try:
            yield dispatch
            await dispatch.finish()
        finally:
            await worker.leave()
            await serving
            for store in (driver, performer):
                await store.close()

    asyncio.run(check(over_nats))
