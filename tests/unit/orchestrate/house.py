"""Whole systems on real stores, with scripted models, and the few words tests need to talk to them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import WithJsonSchema

from remit.assemble import system_on
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.record import JsonObject
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.core.run.signals import Signal, UserSignal
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.facade import System
from remit.orchestrate.history.replay import AuditVerdict, audit, kept_texts
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.declare.decorator import tool
from remit.tool.delegate import delegate
from remit.tool.registry import Registry

# Longer than anything here takes by far.
PATIENCE_S = 20
STORES = ("memory", "embedded")
# What a child of these tests needs at most.
LEASE = {
    "input_tokens": 50_000,
    "output_tokens": 10_000,
    "tool_calls": 5,
    "steps": 20,
    "human_reviews": 3,
    "child_runs": 2,
}


def store_of(kind: str, home: Path) -> Store:
    """A new store of a kind; the embedded one lives in the folder."""
    return MemoryStore() if kind == "memory" else EmbeddedStore.open(home)


@asynccontextmanager
async def systems(*stores: Store) -> AsyncIterator[list[System]]:
    """A system per store, as many processes would have them; every journal they leave is audited, then they are closed."""
    async with unaudited(*stores) as made:
        yield made
        for store in stores:
            await _audit_all(store)


@asynccontextmanager
async def unaudited(*stores: Store) -> AsyncIterator[list[System]]:
    """The same for tests that forge turns, or leave a store closed."""
    made = [system_on(store) for store in stores]
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield made
    finally:
        for system in made:
            await system.close()


async def _audit_all(store: Store) -> None:
    """Every journal that a test leaves behind decides to the same bytes again, facts included."""
    for entry in await store.catalogue.entries():
        data = await store.journal.read(entry.run_id)
        texts = await kept_texts(store.blobs, data)
        audited = audit(data, texts.get)
        assert audited.verdict is AuditVerdict.SAME, f"run {entry.run_id}: {audited.difference}"


@asynccontextmanager
async def in_memory() -> AsyncIterator[System]:
    """One system that forgets everything."""
    async with systems(MemoryStore()) as (system,):
        yield system


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something has come about; the caller has patience only for so long."""
    while True:
        if await condition():
            return
        await asyncio.sleep(0.005)


def scripted(*replies: JsonObject, tools: Iterable[object] = ()) -> Kit:
    """A kit with a scripted model."""
    return engine_kit(ScriptedEngine(replies), Registry(tools))


def calls(name: str, **arguments: object) -> JsonObject:
    """A reply that wants a tool called."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def request(text: str = "please", *, session_id: str = "") -> SystemRequest:
    """What a user says."""
    return SystemRequest((user_message(text),), session_id=session_id)


_NUMBERS = count()


def signal(kind: Signal, run_id: str, by: str = "ada", **payload: object) -> UserSignal:
    """What a person tells a run, each time something new."""
    return UserSignal(f"signal-{next(_NUMBERS)}", kind, run_id, by, payload=payload)


def approval(packet_id: str, kind: Signal = Signal.APPROVE, **payload: object) -> UserSignal:
    """A yes, or a no, to a packet."""
    return UserSignal("signal", kind, packet_id.rpartition("/")[0], "ada", payload={"packet_id": packet_id, **payload})


class Listening:
    """A scripted model that keeps what it was asked."""

    def __init__(self, *replies: JsonObject) -> None:
        self.engine = ScriptedEngine(replies)
        self.asked: list[ModelRequest] = []

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """What the script says."""
        self.asked.append(request)
        return await self.engine.infer(request, on_chunk)

    def model_info(self) -> ModelInfo:
        """The model that the script plays."""
        return self.engine.model_info()


@tool(effect="read", network=False)
def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


# What a tool says that a check could have refused: not nothing, and no error.
NO_ERROR = "^(?!error|Error|ERROR|failed|no$|null|None|false)."
Said: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "pattern": NO_ERROR})]


def is_kept(arguments: dict[str, str], result: str) -> bool:
    """Whether a text was kept, as the function says."""
    return result == f"kept {arguments['text']}"


@tool(effect="write", idempotent=True, verify=is_kept)
def keep(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"


helper = delegate("helper", description="Have a helper do a task.", lease=LEASE)
