"""Turns, halts and snapshots are signed before a store is given them, whichever store it is."""

from pathlib import Path

from remit.assemble import system_on
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import Signer, is_head_signed, sign_head
from remit.core.journal.storage import Barrier, RunListing, SignedHead, Snapshot, Warrant
from remit.core.record import replace
from remit.core.run.halt import HALTS
from remit.orchestrate.loop.signatures import signed_journal, signed_snapshots
from tests.unit.orchestrate.house import request, scripted
from tests.unit.orchestrate.stage import play

SIGNER, STRANGER = Signer.generate(), Signer.generate()


async def heads_of_a_run(store: MemoryStore | EmbeddedStore, signer: Signer) -> list[SignedHead]:
    """The heads of a run that was played on a store and verified there."""
    system = system_on(store, signer=lambda: signer)
    try:
        response = await system.run(request("hello"), scripted({"text": "hi"}))
        verification = await system.archive.verify(response.run_id)
        assert verification.ok, verification.findings
        assert verification.signer == signer.did
        return list(await store.catalogue.heads(response.run_id))
    finally:
        await system.close()


def test_a_run_in_memory_is_signed_and_verified_as_one_on_disk_is(tmp_path: Path) -> None:
    async def scene() -> None:
        disk = EmbeddedStore.open(tmp_path)
        stored = await heads_of_a_run(disk, disk.signer)
        kept = await heads_of_a_run(MemoryStore(SIGNER), SIGNER)
        assert all(map(is_head_signed, kept))
        assert [(head.seq, head.ending) for head in kept] == [(head.seq, head.ending) for head in stored]

    play(scene())


def test_nothing_is_signed_in_memory_unless_the_caller_brings_a_signer() -> None:
    async def scene() -> None:
        store = MemoryStore()
        system = system_on(store)
        response = await system.run(request("hello"), scripted({"text": "hi"}))
        await system.halt("maintenance", by="ada")
        await system.close()
        assert list(await store.catalogue.heads(response.run_id)) == []
        assert store.halts.signed() == (0, b"")

    play(scene())


def test_a_halt_in_memory_is_signed() -> None:
    async def scene() -> None:
        store = MemoryStore(SIGNER)
        system = system_on(store)
        await system.halt("maintenance", by="ada")
        await system.close()
        (entry,) = store.halts.since(0)
        assert store.halts.signed() == (1, hash_turn(entry))

    play(scene())


def test_an_entry_of_halts_that_was_signed_and_is_gone_halts_everything() -> None:
    async def scene() -> None:
        store = MemoryStore(SIGNER)
        gone = SignedHead(HALTS, 4, bytes(32), "", SIGNER.did, b"")
        await store.halts.append(b"entry", after=0, head=gone)
        store.halts._entries.clear()
        system = system_on(store)
        assert [halt.number for halt in system.halts()] == [5]
        await system.close()

    play(scene())


def test_a_first_turn_and_a_barrier_are_signed_and_no_other_turn_is() -> None:
    async def scene() -> None:
        store = MemoryStore(SIGNER)
        journal = signed_journal(store.journal, store.key)
        await journal.append("run", b"0", -1, None, RunListing(1))
        await journal.append("run", b"1", 0)
        await journal.append("run", b"2", 1, Barrier("SUCCESS", seq=2), None, Warrant())
        assert list(await store.catalogue.heads("run")) == [
            sign_head(SIGNER, run_id="run", seq=0, head=hash_turn(b"0"), ending=""),
            sign_head(SIGNER, run_id="run", seq=2, head=hash_turn(b"2"), ending="SUCCESS"),
        ]
        assert list(await journal.read("run", after=0)) == [b"1", b"2"]

    play(scene())


def test_a_snapshot_that_this_deployment_did_not_sign_is_none() -> None:
    async def scene() -> None:
        store, another = MemoryStore(SIGNER), MemoryStore(STRANGER)
        ours, theirs = (signed_snapshots(store.snapshots, key) for key in (store.key, another.key))
        assert await ours.latest("run") is None
        await ours.keep("run", 1, bytes(32), b"state")
        found = await ours.latest("run")
        assert found is not None
        assert replace(found, signature=b"") == Snapshot("run", 1, bytes(32), b"state")
        assert await theirs.latest("run") is None
        await store.snapshots.keep("run", 1, bytes(32), b"state")
        assert await ours.latest("run") is None

    play(scene())
