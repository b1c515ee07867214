"""The dispatch within one process does what every dispatch must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.core.journal.commands import Command
from remit.orchestrate.executors.reports import PERFORMED, Report
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.live import Live
from remit.orchestrate.ports import Dispatch
from remit.testing.conformance.dispatch import DISPATCH_CHECKS, DispatchCheck, Perform
from tests.unit.orchestrate.stage import HandClock


@asynccontextmanager
async def in_process(perform: Perform) -> AsyncIterator[Dispatch]:
    async def performed(_: Live, command: Command) -> Report:
        return await perform(command)

    dispatch = InProcessDispatch(dict.fromkeys(PERFORMED, performed), HandClock())
    yield dispatch
    await dispatch.finish()


@pytest.mark.parametrize("check", DISPATCH_CHECKS, ids=lambda check: check.__name__)
def test_the_dispatch_in_process_does_what_every_dispatch_must(check: DispatchCheck) -> None:
    asyncio.run(check(in_process))
