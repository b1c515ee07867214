"""Custody: whether a run that was written down earlier is whole, and whether its code may be loaded.

Rule 1: a run is not driven, and nothing is added to it, while the log of heads knows turns that its journal lacks: what
        was done in those turns would be done again. Most often a backup of the database was put back. So it is while the log
        is damaged where it could have said that.
Rule 2: what a run names (tools, engines, plans, rules, voters) is loaded only where a signer that this user accepts has
        vouched for the turns that name it. A process that can write to a database and lacks the key names nothing. So nothing is
        added to any other run, copied from it or said after it either: our own signature would vouch for all of it.
Rule 3: whether a run is whole costs two lines of the log and one turn of the journal, however long both are.
Rule 4: the log is asked first and the journal then. A head is logged after its turn was written, so what goes on meanwhile
        looks like a loss to none.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.arrivals import SourcesAccepted
from remit.core.journal.codec import decode_turn, hash_turn, redacted_in
from remit.core.journal.signing import SignedDeletion, is_deletion_signed, is_head_signed
from remit.core.journal.storage import (
    RUN_NOT_VOUCHED,
    STORE_INDEX_LOST,
    STORE_LOG_DAMAGED,
    RunBehind,
    RunEntry,
    SignedHead,
)
from remit.kernel.state import RunState
from remit.observe.linked_turns import JOURNAL_CHAIN_BROKEN
from remit.observe.proof.findings import Fault
from remit.orchestrate.loop.durability import ill_listed
from remit.orchestrate.loop.recover import RUN_NOT_FOUND
from remit.orchestrate.ports import Catalogue, HeadLog, Turns

RUN_DELETED = "RUN_DELETED"
RUN_MISSING = "RUN_MISSING"
_NAME_CHARS_MAX = 80

# The names of the keys whose signatures count here.
Signers = Callable[[], frozenset[str]]


class Custody:
    """Looks at runs before they are gone on with. Without signers, as in memory, nothing has to be vouched for."""

    def __init__(self, journal: Turns, catalogue: Catalogue, log: HeadLog, signers: Signers | None = None) -> None:
        self._journal = journal
        self._catalogue = catalogue
        self._log = log
        self._signers = signers

    def accepted(self) -> frozenset[str]:
        """The keys whose signatures on runs of this store count."""
        return frozenset() if self._signers is None else self._signers()

    async def was_begun(self, run_id: str) -> bool:
        """Whether a run of this id was ever begun here: it is listed, or the log of heads tells of it, as of one deleted."""
        if await self._catalogue.entry(run_id) is not None or await self._log.last(run_id) is not None:
            return True
        return await self._log.deletion(run_id) is not None

    async def expect_kept(self, state: RunState, run_id: str) -> None:
        """Raise where a run may not be gone on with: no accepted key vouches for it, or turns of it are missing."""
        if state.manifest is not None:  # What never began names nothing.
            _expect_own(state, run_id)
            await self.expect_vouched(run_id)
        elif (deletion := await self._log.deletion(run_id)) is not None and is_deletion_signed(deletion):
            raise _deleted(deletion)
        await self.expect_whole(state, run_id)

    async def expect_no_other(self, state: RunState, run_id: str) -> None:
        """Raise where a run of this id was begun and is hidden: its turns are kept and not listed, or gone, or another's."""
        if state.manifest is not None:
            return _expect_own(state, run_id)
        absent = await why_absent(self._log, run_id)
        if absent.code in (STORE_INDEX_LOST, RUN_MISSING):
            raise absent
        return None

    async def expect_whole(self, state: RunState, run_id: str) -> None:
        """Raise where turns of a run were signed that its journal does not have, or the log cannot tell that none were."""
        if (head := await self.beyond(run_id, state.seq)) is not None:
            raise RunBehind(run_id, min(state.seq, head.seq - 1), head.seq)
        if why := await self.log_doubt(run_id, state.seq):
            _refuse_unread(run_id, state.seq, why)

    async def log_doubt(self, run_id: str, last: int) -> str:
        """Why it cannot be told whether a journal that ends with turn `last` is whole; empty where the log tells."""
        return await self._log.doubt(run_id, last)

    async def beyond(self, run_id: str, last: int) -> SignedHead | None:
        """The signed head that a journal which ended with turn `last` does not lead to by now; None where it has all of them."""
        logged = await self._log.last(run_id)
        if logged is None:
            return None
        stored = await self._journal.read(run_id, after=logged.seq - 1)
        if not stored and logged.seq <= last:
            message = (
                f"run {run_id} is listed with turn {logged.seq}, and its journal has none; the database is damaged"
            )
            raise InvariantBroken(JOURNAL_CHAIN_BROKEN, message)
        return None if stored and hash_turn(stored[0]) == logged.head else logged

    async def expect_vouched(self, run_id: str) -> None:
        """Raise RUN_NOT_VOUCHED where no key that this user accepts has signed what the run names."""
        if self._signers is None:
            return
        head = await self._catalogue.last_head(run_id)
        if head is None:
            _refuse_unvouched(run_id, "no signed head vouches for it")
        # Who is accepted stands in files, and the loop does not wait for a disk.
        accepted = await asyncio.to_thread(self._signers)
        if head.signer not in accepted:
            _refuse_unvouched(run_id, f"its turns are signed by {head.signer}, a signer that you have not accepted")
        turns = await self._journal.read(run_id)
        if head.seq >= len(turns) or hash_turn(turns[head.seq]) != head.head or not is_head_signed(head):
            _refuse_unvouched(run_id, f"the head of turn {head.seq} is not what was signed")
        # A redacted turn keeps the hash that it had, and says in the name of its own signer what stands in its place.
        if any(redacted.signer not in accepted for stored in turns if (redacted := redacted_in(stored))):
            _refuse_unvouched(run_id, "a turn of it was redacted by a signer that you have not accepted")
        if any(isinstance(decode_turn(stored).arrival, SourcesAccepted) for stored in turns[head.seq + 1 :]):
            _refuse_unvouched(run_id, "changed code was accepted in a turn that was not signed")


def _expect_own(state: RunState, run_id: str) -> None:
    if state.run_id != run_id:
        message = f"run {run_id} is listed with the turns of run {state.run_id}; `remit rebuild` lists both as they are"
        raise RequestRejected(STORE_INDEX_LOST, message, {"run_id": run_id})


def _refuse_unread(run_id: str, seq: int, why: str) -> NoReturn:
    message = (
        f"run {run_id} stands at turn {seq}, and it cannot be told whether later turns of it were signed: {why}. What they "
        f"did would be done again, so the run is not gone on with. Put back a copy of heads.log, or see `remit restore {run_id}`"
    )
    raise RequestRejected(STORE_LOG_DAMAGED, message, {"run_id": run_id, "last": seq})


def _refuse_unvouched(run_id: str, why: str) -> NoReturn:
    message = (
        f"nothing that run {run_id} names is loaded: {why}. `remit verify {run_id}` says more; `remit trust` shows what the "
        "store names, and lets you accept it"
    )
    raise RequestRejected(RUN_NOT_VOUCHED, message, {"run_id": run_id})


def _deleted(deletion: SignedDeletion) -> RequestRejected:
    shown = deletion.run_id[:_NAME_CHARS_MAX]
    message = f"run {shown} was deleted after turn {deletion.seq}; the log of heads says so"
    return RequestRejected(RUN_DELETED, message, {"run_id": shown})


async def why_absent(log: HeadLog, name: str) -> RequestRejected:
    """Why a run is not there: it was never started, it was deleted, it is not listed, or it was taken out of the store."""
    shown = name[:_NAME_CHARS_MAX]
    code, message = RUN_NOT_FOUND, f"there is no run {shown!r} in this store; `remit runs` lists those there are"
    deletion = await log.deletion(name)
    logged = [head.seq for head in await log.heads(name) if is_head_signed(head)]
    if deletion is not None and is_deletion_signed(deletion):
        return _deleted(deletion)
    lost = await log.losses()
    if logged and name in lost.unlisted:
        message = f"run {shown} is kept and not listed, so that no reader sees it; `remit rebuild` lists it again"
        code = STORE_INDEX_LOST
    elif logged:
        message = f"run {shown} is gone, although turn {max(logged)} of it was signed and it was not deleted"
        code, message = RUN_MISSING, f"{message}: it was taken out of the store; put back a backup"
    elif name in lost.missing:
        message = f"run {shown} is gone, although it was there and was not deleted: it was taken out of the store"
        code, message = RUN_MISSING, f"{message}; put back a backup"
    return RequestRejected(code, message, {"run_id": shown})


async def expect_left_behind(journal: Turns, catalogue: Catalogue, log: HeadLog, orphan: RunEntry) -> None:
    """Raise where only the list of runs says that the run above one has ended or is gone, and its turns do not."""
    parent_id = orphan.listing.parent_id
    parent = await catalogue.entry(parent_id)
    if parent is None:
        absent = await why_absent(log, parent_id)
        if absent.code == STORE_INDEX_LOST:
            raise absent
        return
    with suppress(InvariantBroken):  # Of one that cannot be read the list alone tells.
        if message := ill_listed(parent, await journal.read(parent_id)):
            raise RequestRejected(Fault.INDEX_DIFFERS.value, message, {"run_id": parent_id})
