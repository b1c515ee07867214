"""A run that goes on while it is looked at is whole: a head that was signed meanwhile is no sign of a loss."""

import asyncio
from pathlib import Path

import pytest

from remit import Signer
from remit.assemble import system_on
from remit.backend.embedded import head_log
from remit.backend.embedded.heads_file import HeadsFile
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.folded.log import LogEntry
from remit.backend.folded.store import FoldedStore
from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.leases import MemoryLeases
from remit.backend.memory.store import MemoryStore
from remit.core.journal.storage import Losses, Place, Stretch
from remit.observe.proof.export import verify_export
from remit.observe.proof.findings import StoreInDoubt
from remit.orchestrate.ports import Store
from tests.simulation.shared_store import PoorLog
from tests.unit.orchestrate.house import request, scripted
from tests.unit.orchestrate.stage import play


class FarLog(PoorLog):
    """A log that takes a millisecond to answer."""

    async def append(self, name: str, data: bytes, after: Place) -> Place:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Write an entry, later."""
        await asyncio.sleep(0.001)
        return await super().append(name, data, after)

    async def news(self, after: Place) -> list[LogEntry]:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """What is new by then."""
        await asyncio.sleep(0.001)
        return await super().news(after)


def stores(kind: str, home: Path) -> Store:
    """A store that signs."""
    if kind == "folded":
        return FoldedStore(FarLog(), MemoryLeases(), MemoryBlobs(), signer=Signer.generate())
    return EmbeddedStore.open(home) if kind == "embedded" else MemoryStore(Signer.generate())


@pytest.mark.parametrize("kind", ["folded", "embedded", "memory"])
def test_a_run_that_is_cancelled_while_it_is_forked_is_forked(kind: str, tmp_path: Path) -> None:
    async def story(home: Path) -> None:
        system = system_on(stores(kind, home))
        kit = scripted({"text": "Done.", "delay_ms": 60_000})
        run = await system.start(request(), kit)
        await system.begun()
        _, forked = await asyncio.gather(run.cancel(), system.fork(run.id, by="ann", kit=kit))
        assert forked.fork_id
        await system.close()

    for number in range(5):
        play(story(tmp_path / str(number)))


@pytest.mark.parametrize("kind", ["folded", "embedded", "memory"])
def test_a_run_that_goes_on_while_it_is_verified_exported_or_doubted_is_whole(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = stores(kind, tmp_path)
        assert store.key is not None
        signer = store.key.signer
        system = system_on(store, signer=lambda: signer)
        run = await system.start(request(), scripted({"text": "Done.", "delay_ms": 60_000}))
        await system.begun()
        read, goes_on = store.journal.read, True

        async def read_before_it_goes_on(run_id: str, *, after: int = -1) -> Stretch:
            nonlocal goes_on
            found = await read(run_id, after=after)
            if goes_on:
                goes_on = False
                await run.pause()  # A turn that has to be signed.
                await run.resume()
            return found

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(store.journal, "read", read_before_it_goes_on)
            verified = await system.archive.verify(run.id)
            goes_on = True
            doubted = await system.archive.doubts(run.id)
            goes_on = True
            exported = verify_export(await system.archive.export(run.id), signer=signer.did)
        assert (verified.findings, doubted, exported.findings) == ((), StoreInDoubt(), ())
        await system.close()

    play(story())


def test_a_run_that_goes_on_or_begins_while_a_store_is_looked_through_has_lost_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        store = EmbeddedStore.open(tmp_path)
        system = system_on(store)
        run = await system.start(request(), scripted({"text": "Done.", "delay_ms": 60_000}))
        await system.begun()
        loop, rows = asyncio.get_running_loop(), store._reader.rows

        def rows_before_it_goes_on(query: str, values: tuple[object, ...] = ()) -> list[object]:
            found = rows(query, values)
            if query == head_log._STANDS:
                for going_on in (run.feedback("more"), system.run(request(), scripted({"text": "Done."}))):
                    asyncio.run_coroutine_threadsafe(going_on, loop).result(10)
            return found

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(store._reader, "rows", rows_before_it_goes_on)
            assert await asyncio.to_thread(head_log.losses_in, store._reader, HeadsFile(tmp_path)) == Losses()
        await system.close()

    play(story())
