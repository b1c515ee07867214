"""A whole store of an earlier version stays usable: its runs are listed, folded, verified, shown, audited and gone on with."""

import asyncio
import tarfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from remit.assemble import new_run_id, opened_to_read, settings_of
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import Ending
from remit.core.run.lineage import is_safe_id
from remit.core.run.signals import Signal
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.facade import System
from remit.orchestrate.history.replay import AuditVerdict
from remit.orchestrate.setup.kit import Kit
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry
from tests.e2e.house import calls, says, tell

STORES = sorted((Path(__file__).parent / "stores").glob("*.tar.gz"))
every_store = pytest.mark.parametrize("packed", STORES, ids=lambda path: path.name.partition(".")[0])

# What the stores hold, newest first. The first: a run that was killed, two exchanges of a session, one that waits for a
# person, one that a person approved, and a plain one. The second: a plan, one with a secret, one that waits and one that
# ended under a quota, one that was cancelled, a retry, a fork and the run that both come from, one that was killed, a
# vote, two exchanges of a session, one that waits, and three that ended.
_DONE, _OPEN, _CANCELLED = "SUCCESS", None, "USER_CANCEL"
ENDINGS = {
    "v1": [_OPEN, _DONE, _DONE, _OPEN, _DONE, _DONE],
    "v2": [
        *(_DONE, _DONE, _OPEN, _DONE, _CANCELLED, _DONE, _DONE, _DONE),
        *(_OPEN, _DONE, _DONE, _DONE, _OPEN, _DONE, _DONE, _DONE),
    ],
}
ASKED = {"v1": 1, "v2": 2}

V2 = STORES[1]
# Runs of the second store, whose children and retries were named after them.
PLAN, VOTE, TRIED, KILLED, WAITING = (
    "1m7j682yrckcz7jw",
    "1m7j674bpfcgy3qk",
    "1m7j67a8f926baap",
    "1m7j676ny198a30t",
    "1m7j66gwpjdyzp1y",
)
RETRY = f"{TRIED}.4.1"
LINEAGES = {
    **{f"{PLAN}.{command_id}": (PLAN,) for command_id in ("0.5", "1.3")},
    **{f"{VOTE}.{command_id}": (VOTE,) for command_id in ("0.4", "1.3", "2.3")},
    RETRY: (TRIED,),
}
# A minute after the store was left: what people are asked is still open.
LATER_MS = 1_794_833_200_000


class Clock:
    """A clock that stands."""

    def now_ms(self) -> int:
        """A minute after the store was left."""
        return LATER_MS


@tool(effect="read", network=False)
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is fine"


@tool(effect="write", network=False)
def keep(text: str) -> Literal["kept"]:
    """Keep a text."""
    return "kept"


@tool(effect="external", network=True)
def pay(to: str) -> Literal["paid"]:
    """Pay."""
    return "paid"


def unpacked(packed: Path, folder: Path) -> Path:
    with tarfile.open(packed) as archive:
        # Filters came with Python 3.11.4, and are asked for by its successors.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / ".remit"


@asynccontextmanager
async def reopened(home: Path) -> AsyncIterator[System]:
    """A system that goes on with what is in the second store."""
    store = EmbeddedStore.open(home)

    async def find_kit(state: RunState) -> Kit:
        replies = {
            "scripted:keeps": [calls("keep", {"text": "a note"}), says("Kept.")],
            "scripted:pays": [calls("pay", {"to": "acme"}), says("Paid.")],
            "scripted:looks": [calls("look", {"what": "the sky"}), says("It is fine.")],
        }
        return Kit({name: ScriptedEngine(said) for name, said in replies.items()}, Registry((look, keep, pay)))

    system = System(store, clock=Clock(), find_kit=find_kit, new_id=new_run_id, signer=lambda: store.signer)
    try:
        yield system
    finally:
        await system.close()
        await store.close()


def play(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def lineages_in(system: System) -> dict[str, tuple[str, ...]]:
    every = await system.archive.runs(with_children=True)
    return {entry.run_id: entry.listing.lineage for entry in every if entry.listing.lineage}


def test_there_is_a_store_of_every_earlier_version() -> None:
    assert [path.name.partition(".")[0] for path in STORES] == list(ENDINGS)


@every_store
def test_an_old_store_is_listed_verified_and_audited(packed: Path, tmp_path: Path) -> None:
    version = packed.name.partition(".")[0]

    async def look_around() -> None:
        async with opened_to_read(settings_of({}, home=unpacked(packed, tmp_path))) as system:
            entries = await system.archive.runs()
            assert [entry.ending or None for entry in entries] == ENDINGS[version]
            for entry in await system.archive.runs(with_children=True):
                assert (await system.archive.verify(entry.run_id)).ok
                audit = await system.archive.replay(entry.run_id)
                assert audit.verdict is AuditVerdict.OTHER_VERSION
                assert audit.difference is None
                assert (await system.archive.told(entry.run_id)).explanation.path
            assert len(await system.archive.approvals()) == ASKED[version]

    play(look_around())


def test_who_only_reads_an_old_store_is_told_from_which_runs_a_run_came(tmp_path: Path) -> None:
    async def look_around() -> None:
        async with opened_to_read(settings_of({}, home=unpacked(V2, tmp_path))) as system:
            assert await lineages_in(system) == LINEAGES
            assert await system.archive.family(VOTE) == [f"{VOTE}.{place}" for place in ("0.4", "1.3", "2.3")] + [VOTE]
            assert (await system.archive.find(TRIED[:10])).run_id == TRIED
            assert (await system.archive.find(f"{RETRY[:-1]}")).run_id == RETRY
            assert len((await system.execution(VOTE)).candidates) == 3

    play(look_around())


def test_an_old_store_that_is_gone_on_with_keeps_its_names_and_its_lineages(tmp_path: Path) -> None:
    home = unpacked(V2, tmp_path)

    async def look_around() -> None:
        for _ in range(2):
            async with reopened(home) as system:
                assert await lineages_in(system) == LINEAGES
                assert (await system.archive.verify(RETRY)).ok

    play(look_around())


def test_an_old_run_that_waits_hears_its_answer_and_ends(tmp_path: Path) -> None:
    async def answer() -> None:
        async with reopened(unpacked(V2, tmp_path)) as system:
            await tell(system, Signal.APPROVE, WAITING, {"packet_id": f"{WAITING}/1.2"})
            await system.settle(WAITING)
            assert (await system.result(WAITING)).terminal_code is Ending.SUCCESS
            assert (await system.archive.verify(WAITING)).ok
            assert (await system.archive.replay(WAITING)).difference is None

    play(answer())


def test_an_old_run_that_was_killed_amid_a_payment_asks_what_became_of_it(tmp_path: Path) -> None:
    async def resume() -> None:
        async with reopened(unpacked(V2, tmp_path)) as system:
            response = await system.resume(KILLED)
            assert response.waiting_for is not None
            assert [packet.partition("/")[0] for packet in response.waiting_for.packet_ids] == [KILLED]

    play(resume())


def test_a_retry_of_an_old_retry_has_an_id_of_its_own_and_both_in_its_lineage(tmp_path: Path) -> None:
    async def retry() -> None:
        async with reopened(unpacked(V2, tmp_path)) as system:
            fork_id = await tell(system, Signal.RETRY, RETRY, {"reason": "once more"})
            await system.settle(fork_id)
            assert is_safe_id(fork_id)
            assert fork_id not in (TRIED, RETRY)
            assert await system.lineages.of(fork_id) == (TRIED, RETRY)
            assert (await system.result(fork_id)).terminal_code is Ending.SUCCESS
            assert (await system.archive.verify(fork_id)).ok

    play(retry())


def test_a_halt_of_an_old_run_holds_back_what_comes_from_its_old_retry(tmp_path: Path) -> None:
    async def retry() -> None:
        async with reopened(unpacked(V2, tmp_path)) as system:
            await system.halt("it is enough", by="ada", run=TRIED)
            fork_id = await tell(system, Signal.RETRY, RETRY, {"reason": "once more"})
            await system.settle(fork_id)
            assert (await system.result(fork_id)).halted is not None
            await system.lift(by="ada", run=TRIED)
            assert (await system.resume(fork_id)).terminal_code is Ending.SUCCESS

    play(retry())


def test_an_old_family_is_deleted_as_one(tmp_path: Path) -> None:
    async def delete() -> None:
        async with reopened(unpacked(V2, tmp_path)) as system:
            assert isinstance(system.store, EmbeddedStore)
            assert (await system.store.retention.delete(VOTE)).runs == 4
            assert set(await lineages_in(system)) == {name for name in LINEAGES if not name.startswith(VOTE)}

    play(delete())
