"""Runs carried as files from one store into another: they go on there, and back again, and only where they are believed."""

import asyncio
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RequestRejected
from remit.core.journal.storage import AppendConflict
from remit.core.run.signals import Signal
from remit.observe.linked_turns import linked_turns
from remit.orchestrate.facade import System
from remit.orchestrate.history.import_run import expect_no_open_children, import_run
from remit.orchestrate.setup.kit import Kit
from remit.tool.declare.decorator import tool
from tests.e2e.house import asking, calls, says, scripted, tell
from tests.golden.views import golden_stores
from tests.nats_server import clear, opened

LONG = "w" * 40_000


@tool(effect="write", network=False, verify=lambda arguments, result: arguments["text"] in result)
def keep(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"


def kit() -> Kit:
    return scripted([calls("keep", {"text": "lamp"}), says("It is kept."), says("Again.")], keep)


def system_of(store: object) -> System:
    return system_on(store, signer=lambda: store.key.signer, signers=lambda: frozenset({store.key.signer.did}))  # type: ignore[arg-type,attr-defined]


async def exported(system: System, run_id: str) -> list[bytes]:
    return list(await system.archive.export(run_id))


async def imported(system: System, lines: list[bytes]) -> tuple[str, int]:
    key = system.store.key
    assert key is not None
    return await import_run(system.store, lines, lambda: frozenset({key.signer.did}))


def test_a_paused_run_goes_on_in_a_cluster_and_back_in_a_folder(tmp_path: Path) -> None:
    clear()

    async def story() -> None:
        folder, cluster = system_of(EmbeddedStore.open(tmp_path)), system_of(opened(tmp_path))
        try:
            waiting = await folder.run(asking(f"Keep it. {LONG}", session_id="s1"), kit())
            run_id = waiting.run_id
            await tell(folder, Signal.PAUSE, run_id, kit=kit())
            lines = await exported(folder, run_id)
            await folder.delete(run_id)
            name, written = await imported(cluster, lines)
            assert (name, written) == (run_id, len((await cluster.archive.history(run_id)).turns))
            assert (await cluster.archive.verify(run_id)).ok
            assert await imported(cluster, lines) == (run_id, 0)
            await tell(cluster, Signal.RESUME, run_id, kit=kit())
            lines = await exported(cluster, run_id)
            await cluster.delete(run_id)
            assert (await imported(folder, lines))[0] == run_id
            assert waiting.waiting_for is not None
            packet = waiting.waiting_for.packet_ids[0]
            await tell(folder, Signal.APPROVE, run_id, {"packet_id": packet}, kit=kit())
            # It was told at once: the tokens of the cluster, which are greater, say nothing about who drives it here.
            assert await folder.store.inbox.outcome(1) is None
            done = await folder.result(run_id)
            assert (done.terminal_code, done.content) == (Ending.SUCCESS, "It is kept.")
            assert (await folder.archive.verify(run_id)).ok
            again = await folder.run(asking("And?", session_id="s1"), kit())
            assert again.terminal_code is not None
        finally:
            await folder.close()
            await cluster.close()

    asyncio.run(story())


def test_an_export_that_is_not_believed_or_differs_from_what_is_there_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        one, other = system_of(EmbeddedStore.open(tmp_path / "a")), system_of(EmbeddedStore.open(tmp_path / "b"))
        try:
            run_id = (await one.run(asking(), scripted([says("Done.")]))).run_id
            lines = await exported(one, run_id)
            with pytest.raises(RequestRejected, match="IMPORT_NOT_TRUSTED"):
                await imported(other, lines)
            key = one.store.key
            assert key is not None
            accepted = frozenset({key.signer.did})
            forged = [line.replace(b'"seq":1,', b'"seq":2,') for line in lines]
            with pytest.raises(RequestRejected, match="IMPORT_UNVERIFIED"):
                await import_run(other.store, forged, lambda: accepted)
            token = await other.store.leases.take(run_id)
            with pytest.raises(RequestRejected, match="IMPORT_HELD"):
                await import_run(other.store, lines, lambda: accepted)
            await other.store.leases.release(run_id, token or 0)
            await import_run(other.store, lines, lambda: accepted)
            assert (await other.archive.verify(run_id)).ok
            waiting = await one.run(asking(), kit())
            early = await exported(one, waiting.run_id)
            await import_run(other.store, early, lambda: accepted)
            await tell(other, Signal.CANCEL, waiting.run_id, kit=kit())
            await tell(one, Signal.PAUSE, waiting.run_id, kit=kit())
            with pytest.raises(RequestRejected, match="IMPORT_DIFFERS"):
                await import_run(other.store, await exported(one, waiting.run_id), lambda: accepted)
        finally:
            await one.close()
            await other.close()

    asyncio.run(story())


def test_a_run_of_which_a_part_was_imported_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        one, other = system_of(EmbeddedStore.open(tmp_path / "a")), system_of(EmbeddedStore.open(tmp_path / "b"))
        try:
            run_id = (await one.run(asking(), kit())).run_id
            lines = await exported(one, run_id)
            key, count = one.store.key, 0
            assert key is not None
            append = other.store.journal.append

            async def cut(*arguments: object) -> object:
                nonlocal count
                count += 1
                if count > 1:
                    raise AppendConflict("cut off")
                return await append(*arguments)  # type: ignore[arg-type]

            with monkeypatch.context() as patch:
                patch.setattr(other.store.journal, "append", cut)
                with pytest.raises(AppendConflict):
                    await import_run(other.store, lines, lambda: frozenset({key.signer.did}))
            with pytest.raises(RequestRejected, match="RUN_NOT_VOUCHED"):
                await other.resume(run_id, kit=kit())
            await import_run(other.store, lines, lambda: frozenset({key.signer.did}))
            assert (await other.resume(run_id, kit=kit())).waiting_for is not None
        finally:
            await one.close()
            await other.close()

    asyncio.run(story())


def test_a_store_without_a_key_takes_a_run_unsigned(tmp_path: Path) -> None:
    async def story() -> None:
        one, store = system_of(EmbeddedStore.open(tmp_path)), MemoryStore()
        run_id = (await one.run(asking(), scripted([says("Done.")]))).run_id
        key = one.store.key
        assert key is not None
        assert (await import_run(store, await exported(one, run_id), lambda: frozenset({key.signer.did})))[0] == run_id
        assert len(await store.journal.read(run_id)) == len(await one.store.journal.read(run_id))
        await one.close()

    asyncio.run(story())


def test_a_run_that_waits_for_a_run_beneath_it_is_refused_until_that_has_ended() -> None:
    """Its file does not hold the other one, so what that did would be done again."""
    journals = next(kept for _, kept in golden_stores() if not isinstance(kept, Path) and "parent" in kept)
    turns = journals["parent"]

    def is_refused(count: int) -> bool:
        try:
            expect_no_open_children("parent", linked_turns("parent", turns[:count]))
        except RequestRejected as error:
            return error.code == "IMPORT_FAMILY_OPEN"
        return False

    refused = [is_refused(count) for count in range(1, len(turns) + 1)]
    assert any(refused)
    assert not refused[-1]
