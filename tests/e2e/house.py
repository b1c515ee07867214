"""A system on a real store, for what needs no second process; and the proof of every run that was made in it.

A test that leaves the house has it proven: each run verifies, and decides to the same bytes again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from remit.assemble import new_run_id
from remit.backend.clock import WallClock
from remit.backend.embedded.store import EmbeddedStore
from remit.core.record import JsonObject
from remit.core.run.contract import SystemRequest, SystemResponse
from remit.core.run.messages import user_message
from remit.core.run.signals import Signal, UserSignal
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.declare.decorator import Tool
from remit.tool.registry import Registry
from tests.e2e.crash_law import journals, prove

# Longer than anything takes here on a machine that does other things as well.
PATIENCE_S = 30
POLL_S = 0.01

ERIN = "erin"


@asynccontextmanager
async def house(home: Path, kit: Kit | None = None) -> AsyncIterator[System]:
    """A system on the store in this folder. Runs that are taken up again work with the kit."""
    store = EmbeddedStore.open(home)

    async def find_kit(state: RunState) -> Kit:
        assert kit is not None, f"run {state.run_id} was taken up and has no kit"
        return kit

    system = System(store, clock=WallClock(), find_kit=find_kit, new_id=new_run_id, signer=lambda: store.signer)
    try:
        yield system
        await prove(store, turns := await journals(store))
        for run_id in turns:
            # Beyond the proof, the list of runs says what their turns say.
            assert (found := await system.archive.verify(run_id)).ok, found.findings
    finally:
        await system.close()


def scripted(replies: Sequence[JsonObject], *tools: Tool) -> Kit:
    """A kit that plays these replies."""
    return engine_kit(ScriptedEngine(replies), Registry(tools))


def calls(name: str, arguments: JsonObject | None = None) -> JsonObject:
    """A reply that proposes one call."""
    return {"tool_calls": [{"name": name, "arguments": arguments or {}}]}


def says(text: str) -> JsonObject:
    """A reply in words."""
    return {"text": text}


def asking(text: str = "Do it.", session_id: str = "") -> SystemRequest:
    """A request."""
    return SystemRequest(messages=(user_message(text),), session_id=session_id)


async def tell(
    system: System, kind: Signal, run_id: str, payload: JsonObject | None = None, *, kit: Kit | None = None
) -> str:
    """Tell a run something; gives the run that goes on, which after a retry is a fork."""
    heard = await system.signal(UserSignal(uuid4().hex, kind, run_id, ERIN, payload=payload or {}), kit=kit)
    return heard.fork_id or run_id


async def answer(
    system: System, kind: Signal, response: SystemResponse, arguments: JsonObject | None = None
) -> SystemResponse:
    """Answer everything that a run and its children ask, all in one way, and give how it stands then."""
    assert response.waiting_for is not None, response
    for packet in response.waiting_for.packet_ids:
        payload: JsonObject = {"packet_id": packet} | ({"arguments": arguments} if arguments is not None else {})
        await tell(system, kind, packet.partition("/")[0], payload)
    await system.settle()
    return await system.result(response.run_id)


async def until(condition: Callable[[], object], what: str) -> None:
    """Go on when something has come about; fail when it does not within seconds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # another thread or process brings it about
            await asyncio.sleep(POLL_S)
    assert condition(), what
