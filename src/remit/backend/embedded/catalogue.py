"""The catalogue: which runs there are, how they stand, and who vouches for them."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from remit.backend.embedded.database import Reader
from remit.backend.embedded.heads_log import HeadsLog
from remit.backend.embedded.losses import losses_in
from remit.backend.embedded.schema import split_lineage
from remit.core.signing import SignedDeletion
from remit.core.storage import Listing, Losses, RunEntry, SignedHead

# The number of turns is asked of the turns themselves; a counter could disagree with them.
_ENTRY = (
    "SELECT run_id, (SELECT coalesce(max(seq), -1) + 1 FROM turns WHERE turns.run_no = runs.run_no), ending, waiting_for,"
    " lineage, started_at_ms, mode, tenant_id, session_id, ordinal, parent_id FROM runs WHERE started_at_ms IS NOT NULL"
)
_HEADS = (
    "SELECT seq, head, ending, signer, signature FROM heads"
    " WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) ORDER BY seq"
)
_TOLD = "SELECT 1 FROM heads WHERE run_no = (SELECT run_no FROM runs WHERE run_id = ?) AND seq > 0 LIMIT 1"
_LAST_HEAD = _HEADS.replace("ORDER BY seq", "ORDER BY seq DESC LIMIT 1")


class SQLiteCatalogue:
    """The index of a store, and its log of heads."""

    def __init__(self, reader: Reader, log: HeadsLog) -> None:
        self._reader = reader
        self._log = log

    async def entry(self, run_id: str) -> RunEntry | None:
        """One run, or None when nobody started it here."""
        found = self._reader.rows(f"{_ENTRY} AND run_id = ?", (run_id,))
        return _entry(found[0]) if found else None

    async def entries(
        self, *, open_only: bool = False, waiting_only: bool = False, limit: int = 0
    ) -> Sequence[RunEntry]:
        """The runs, newest first; `limit` 0 means all of them."""
        query = _ENTRY
        if open_only or waiting_only:
            query += " AND ending = ''"
        if waiting_only:
            query += " AND waiting_for <> ''"
        rows = self._reader.rows(f"{query} ORDER BY run_no DESC LIMIT ?", (limit or -1,))
        return [_entry(row) for row in rows]

    async def session(self, session_id: str) -> Sequence[RunEntry]:
        """The runs of a session, in order."""
        query = f"{_ENTRY} AND session_id = ? AND session_id <> '' ORDER BY ordinal"
        return [_entry(row) for row in self._reader.rows(query, (session_id,))]

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        """The newest runs of a likeness that succeeded, newest first, at most so many."""
        query = f"{_ENTRY} AND ending = 'SUCCESS' AND likeness <> '' AND likeness = ? ORDER BY run_no DESC LIMIT ?"
        return [_entry(row) for row in self._reader.rows(query, (likeness, limit))]

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The signed heads kept with a run, oldest first."""
        return [SignedHead(run_id, *row) for row in self._reader.rows(_HEADS, (run_id,))]

    async def last_head(self, run_id: str) -> SignedHead | None:
        """The signed head of the highest turn that is kept with a run."""
        rows = self._reader.rows(_LAST_HEAD, (run_id,))
        return SignedHead(run_id, *rows[0]) if rows else None

    async def last_logged(self, run_id: str) -> SignedHead | None:
        """The signed head of the highest turn of a run in heads.log."""
        return await asyncio.to_thread(self._log.last, run_id)

    async def log_doubt(self, run_id: str, last: int) -> str:
        """Why heads.log may have known of a later turn of a run; empty where it can be relied on."""
        is_told = bool(self._reader.rows(_TOLD, (run_id,)))
        return await asyncio.to_thread(partial(self._log.doubt, run_id, last, is_told=is_told))

    async def losses(self) -> Losses:
        """How heads.log and the database differ."""
        return await asyncio.to_thread(losses_in, self._reader, self._log)

    async def logged_heads(self, run_id: str) -> Sequence[SignedHead]:
        """The signed heads of a run in heads.log, oldest first."""
        return await asyncio.to_thread(self._log.heads, run_id)

    async def logged_deletion(self, run_id: str) -> SignedDeletion | None:
        """What heads.log says of the deletion of a run."""
        return await asyncio.to_thread(self._log.deletion, run_id)


def _entry(row: Sequence[Any]) -> RunEntry:
    run_id, turns, ending, waiting_for, lineage, started_at_ms, *listed = row
    mode, tenant_id, session_id, ordinal, parent_id = listed
    listing = Listing(
        started_at_ms=started_at_ms,
        mode=mode,
        tenant_id=tenant_id,
        session_id=session_id,
        ordinal=ordinal,
        parent_id=parent_id,
        lineage=split_lineage(lineage),
    )
    return RunEntry(run_id, listing, turns, ending, waiting_for)
