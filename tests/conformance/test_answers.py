"""Entries are answered as they must be, halts are read and values sealed as they must be, by the stores that ship."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.journal.signing import Signer
from remit.orchestrate.ports import HaltLog, Inbox, Journal, Key, Seals, Store
from remit.testing.conformance.custody.key import KEY_CHECKS, KeyCheck
from remit.testing.conformance.custody.seals import SEALS_CHECKS, SealsCheck
from remit.testing.conformance.processes.halts import HALTS_CHECKS, HaltsCheck
from remit.testing.conformance.records.answers import ANSWERS_CHECKS, AnswersCheck
from remit.testing.conformance.records.index import INDEX_CHECKS, KEPT_INDEX_CHECKS, IndexCheck
from tests.simulation.shared_store import GuardParts, SharedStore

OpenStore = Callable[[Path], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def memory(home: Path) -> AsyncIterator[Store]:
    yield MemoryStore()


@asynccontextmanager
async def embedded(home: Path) -> AsyncIterator[Store]:
    store = EmbeddedStore.open(home)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def poor(home: Path) -> AsyncIterator[Store]:
    yield SharedStore(GuardParts(), "process", lambda: asyncio.sleep(0), 600_000)


every_store = pytest.mark.parametrize("opened", [memory, embedded, poor], ids=lambda opened: opened.__name__)


@every_store
@pytest.mark.parametrize("check", ANSWERS_CHECKS, ids=lambda check: check.__name__)
def test_entries_are_answered_as_in_every_store(check: AnswersCheck, opened: OpenStore, tmp_path: Path) -> None:
    @asynccontextmanager
    async def both() -> AsyncIterator[tuple[Journal, Inbox]]:
        async with opened(tmp_path) as store:
            yield store.journal, store.inbox

    asyncio.run(check(both))


@every_store
@pytest.mark.parametrize("check", HALTS_CHECKS, ids=lambda check: check.__name__)
def test_halts_are_kept_as_in_every_store(check: HaltsCheck, opened: OpenStore, tmp_path: Path) -> None:
    @asynccontextmanager
    async def halts() -> AsyncIterator[HaltLog]:
        async with opened(tmp_path) as store:
            yield store.halts

    asyncio.run(check(halts))


@every_store
@pytest.mark.parametrize("check", SEALS_CHECKS, ids=lambda check: check.__name__)
def test_values_are_sealed_as_in_every_store(check: SealsCheck, opened: OpenStore, tmp_path: Path) -> None:
    @asynccontextmanager
    async def seals() -> AsyncIterator[Seals]:
        async with opened(tmp_path) as store:
            yield store.seals

    asyncio.run(check(seals))


@every_store
@pytest.mark.parametrize("check", INDEX_CHECKS, ids=lambda check: check.__name__)
def test_runs_are_listed_anew_as_in_every_store(check: IndexCheck, opened: OpenStore, tmp_path: Path) -> None:
    asyncio.run(check(lambda: opened(tmp_path)))


# The poor store keeps nothing beside its turns.
@pytest.mark.parametrize("opened", [memory, embedded], ids=lambda opened: opened.__name__)
@pytest.mark.parametrize("check", KEPT_INDEX_CHECKS, ids=lambda check: check.__name__)
def test_what_is_kept_beside_turns_is_made_anew(check: IndexCheck, opened: OpenStore, tmp_path: Path) -> None:
    asyncio.run(check(lambda: opened(tmp_path)))


@pytest.mark.parametrize("check", KEY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ["memory", "embedded"])
def test_a_key_signs_as_every_key_must(kind: str, check: KeyCheck, tmp_path: Path) -> None:
    @asynccontextmanager
    async def key() -> AsyncIterator[Key]:
        store: Store = MemoryStore(Signer.generate()) if kind == "memory" else EmbeddedStore.open(tmp_path)
        assert store.key is not None
        try:
            yield store.key
        finally:
            await store.close()

    asyncio.run(check(key))
