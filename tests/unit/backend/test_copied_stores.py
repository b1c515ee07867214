"""A whole store copied into another of any kind: what is in it is in the copy, and nothing is overwritten."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RequestRejected
from remit.core.journal.signing import Signer
from remit.core.journal.storage import START, BlobMissing, RunListing
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.run.signals import Signal
from remit.orchestrate.facade import System
from remit.orchestrate.history.copy_store import copy_store
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit
from remit.tool.declare.decorator import tool
from tests.e2e.house import asking, calls, says, scripted, tell
from tests.nats_server import clear, opened

LONG = "w" * 40_000
KINDS = ("folder", "cluster", "memory")


@tool(effect="write", network=False, verify=lambda arguments, result: arguments["text"] in result)
def keep(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"


def kit() -> Kit:
    return scripted([calls("keep", {"text": "lamp"}), says("It is kept.")], keep)


def store_in(kind: str, folder: Path) -> Store:
    if kind == "folder":
        return EmbeddedStore.open(folder)
    return opened(folder) if kind == "cluster" else MemoryStore(Signer.generate())


def system_of(store: Store) -> System:
    key = store.key
    assert key is not None
    return system_on(store, signer=lambda: key.signer, signers=lambda: frozenset({key.signer.did}))


def between(source: str, target: str, tmp_path: Path, story: Callable[[System, System], Awaitable[None]]) -> None:
    clear()

    async def played() -> None:
        one, other = store_in(source, tmp_path / "one"), store_in(target, tmp_path / "other")
        systems = system_of(one), system_of(other)
        try:
            await story(*systems)
        finally:
            for system in systems:
                await system.close()

    asyncio.run(played())


async def waiting_in(system: System, session: str) -> tuple[str, str]:
    response = await system.run(asking(f"Keep it. {LONG}", session_id=session), kit())
    assert response.waiting_for is not None
    return response.run_id, response.waiting_for.packet_ids[0]


@pytest.mark.parametrize(
    ("source", "target"),
    [pair for pair in itertools.permutations(KINDS, 2) if "memory" not in pair] + [("memory", "folder")],
)
def test_all_that_a_store_holds_is_in_its_copy_and_a_second_copy_writes_nothing(
    source: str, target: str, tmp_path: Path
) -> None:
    async def story(here: System, there: System) -> None:
        run_id, packet = await waiting_in(here, "s1")
        await tell(here, Signal.APPROVE, run_id, {"packet_id": packet}, kit=kit())
        await here.settle()
        waits, _ = await waiting_in(here, "s2")
        await here.halt("a test", by="ada", tool="other")
        receipt = Receipt(kind=ReceiptKind.ACKNOWLEDGED, item="i", run_id=run_id, by="ada", at_ms=1)
        await here.store.receipts.keep(receipt)
        await here.store.inbox.put(waits, b"a letter")
        copied = await copy_store(here.store, there.store)
        await there.rebuild()
        assert (copied.runs, copied.left) == (2, 1)
        for name in (run_id, waits):
            assert list(await there.store.journal.read(name)) == list(await here.store.journal.read(name))
            heads = [head.seq for head in await here.store.catalogue.heads(name)]
            assert [head.seq for head in await there.store.catalogue.heads(name)] == heads
            ours, theirs = [await one.store.catalogue.entry(name) for one in (here, there)]
            assert ours is not None
            assert theirs is not None
            assert (ours.ending, ours.waiting_for, ours.turns) == (theirs.ending, theirs.waiting_for, theirs.turns)
        result = await there.result(run_id)
        assert (result.terminal_code, result.content) == (Ending.SUCCESS, "It is kept.")
        assert [entry.data for entry in await there.store.inbox.pending(after=0)] == [b"a letter"]
        assert await there.store.receipts.kept(ReceiptKind.ACKNOWLEDGED) == [receipt]
        assert [str(halt.scope) for halt in there.halts()] == ["tool other"]
        again = await copy_store(here.store, there.store)
        assert (again.runs, again.turns, again.left) == (2, 0, 0)

    between(source, target, tmp_path, story)


def test_what_is_answered_while_a_store_is_copied_is_not_left_twice(tmp_path: Path) -> None:
    async def story(here: System, there: System) -> None:
        run_id, packet = await waiting_in(here, "s1")
        number = await here.store.inbox.put(run_id, b"a letter")
        entries, asked = here.store.catalogue.entries, 0

        async def answered_meanwhile(**wanted: object):  # type: ignore[no-untyped-def]
            nonlocal asked
            found = await entries(**wanted)  # type: ignore[arg-type]
            asked += 1
            if asked == 1:
                await here.store.inbox.settle(number, "", "")
                await tell(here, Signal.APPROVE, run_id, {"packet_id": packet}, kit=kit())
            return found

        here.store.catalogue.entries = answered_meanwhile  # type: ignore[method-assign]
        copied = await copy_store(here.store, there.store)
        assert (asked, copied.left) == (2, 0)
        assert list(await there.store.journal.read(run_id)) == list(await here.store.journal.read(run_id))

    between("memory", "folder", tmp_path, story)


def test_a_target_that_holds_something_else_or_is_driven_is_left_as_it_is(tmp_path: Path) -> None:
    async def story(here: System, there: System) -> None:
        run_id, _ = await waiting_in(here, "s1")
        token = await there.store.leases.take(run_id)
        assert token is not None
        with pytest.raises(RequestRejected, match="IMPORT_HELD"):
            await copy_store(here.store, there.store)
        await there.store.leases.release(run_id, token)
        await there.store.journal.append(run_id, b"another", START, None, RunListing(1))
        with pytest.raises(RequestRejected, match=f"IMPORT_DIFFERS: run {run_id}"):
            await copy_store(here.store, there.store)
        assert list(await there.store.journal.read(run_id)) == [b"another"]

    between("memory", "memory", tmp_path, story)


def test_a_target_that_halts_otherwise_is_left_as_it_is(tmp_path: Path) -> None:
    async def story(here: System, there: System) -> None:
        await here.halt("a test", by="ada", tool="other")
        await there.halt("a test", by="eve", tool="that")
        with pytest.raises(RequestRejected, match="halts of its own"):
            await copy_store(here.store, there.store)

    between("memory", "memory", tmp_path, story)


def test_what_cannot_be_read_is_copied_as_it_is_and_a_text_that_is_gone_is_left_out(tmp_path: Path) -> None:
    async def story(here: System, there: System) -> None:
        await here.store.journal.append("odd", b"\x00" * 40, START, None, RunListing(1))
        run_id, _ = await waiting_in(here, "s1")

        async def gone(digest: bytes) -> bytes:
            raise BlobMissing(digest)

        here.store.blobs.get = gone  # type: ignore[method-assign]
        assert (await copy_store(here.store, there.store)).runs == 2
        assert list(await there.store.journal.read("odd")) == [b"\x00" * 40]
        assert list(await there.store.journal.read(run_id)) == list(await here.store.journal.read(run_id))

    between("memory", "memory", tmp_path, story)
