"""Redactions: taking out of the runs of a store what should never have been written.

Rule 1: a text that holds it is removed whole and leaves its digest. A turn is written anew without it and keeps the hash that
        it had, signed, with who did it and why; so the chain and every signed head hold.
Rule 2: a run is redacted with the runs beneath it, while none of them is driven.
Rule 3: caches go: snapshots are made again, and settled entries of the inbox were heard.
Rule 4: what was freed is overwritten, and the log of the database is cleared; where another process keeps that from happening,
        the caller is told.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from remit.backend.embedded.blobs import TEXT
from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.retention import SQLiteRetention, transaction
from remit.backend.redacted_turns import FindSecrets, finder_of, holds_value, longest_first, without, words_to_redact
from remit.core.journal.codec import digests_in, encode_redacted
from remit.core.journal.signing import Signer, sign_redaction
from remit.core.journal.storage import Redacted
from remit.core.journal.turn import RedactedTurn
from remit.core.run.person import check_person
from remit.core.secrets.secret_search import covered

_TURNS = "SELECT turn_no, seq, data FROM turns WHERE run_no = ? ORDER BY seq"
_WRITE = "UPDATE turns SET data = ? WHERE turn_no = ?"
_REMOVE_TEXT = "DELETE FROM blobs WHERE digest = ?"
_REMOVE_SNAPSHOTS = "DELETE FROM snapshots WHERE run_no = ?"
_INBOX = "SELECT number, data FROM inbox WHERE run_id = ?"
_REMOVE_ENTRY = "DELETE FROM inbox WHERE number = ?"


class SQLiteRedactions:
    """Redacts runs of one store."""

    def __init__(
        self, home: Path, retention: SQLiteRetention, signer: Callable[[], Signer], now_ms: Callable[[], int]
    ) -> None:
        self._home = home
        self._retention = retention
        self._signer = signer
        self._now_ms = now_ms

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        """Take a text in each of its forms, or every secret of a kind, out of a run and those beneath it.

        Nothing where it was not started; refused with STORE_BUSY while one of them is driven.
        """
        return await asyncio.to_thread(self._redact, run_id, finder_of(text, kind), check_person(by), covered(why))

    def _redact(self, run_id: str, find: FindSecrets, by: str, why: str) -> Redacted:
        with (
            self._retention.cleaning() as connection,
            self._retention.hold_family(connection, run_id, what="redacted") as runs,
        ):
            values = self._found(connection, runs, find)
            if not values:
                return Redacted(len(runs))
            turns = texts = 0
            for run_no, member in runs.items():
                with transaction(connection):
                    said = RedactedTurn(
                        link=b"", data=b"", by=by, why=why, at_ms=self._now_ms(), signer="", signature=b""
                    )
                    written, removed = self._redact_run(connection, run_no, member, values, said)
                turns, texts = turns + written, texts + removed
            self._retention.shrink(connection)
            is_cleared = self._clear(connection)
        return Redacted(len(runs), turns, texts, is_cleared)

    def _found(self, connection: sqlite3.Connection, runs: Iterable[int], find: FindSecrets) -> tuple[str, ...]:
        """What is to be taken out, the longest first, so that no part of it is left."""
        values: dict[str, None] = {}
        for run_no in runs:
            for _, _, data in connection.execute(_TURNS, (run_no,)).fetchall():
                values |= words_to_redact(find, data, (blob for _, blob in _blobs_of(connection, data)))
        return longest_first(values)

    def _redact_run(
        self, connection: sqlite3.Connection, run_no: int, run_id: str, values: tuple[str, ...], said: RedactedTurn
    ) -> tuple[int, int]:
        """Redact one run; gives the numbers of turns that were written anew and of texts that were removed."""
        turns, removed = 0, set[bytes]()
        for turn_no, seq, data in connection.execute(_TURNS, (run_no,)).fetchall():
            held = {digest for digest, blob in _blobs_of(connection, data) if holds_value(blob, values)}
            for digest in held:
                connection.execute(_REMOVE_TEXT, (digest,))
            removed |= held
            left = without(values, data, removed, said)
            if left is not None:
                signed = sign_redaction(self._signer(), run_id, seq, left)
                connection.execute(_WRITE, (encode_redacted(signed), turn_no))
                turns += 1
        connection.execute(_REMOVE_SNAPSHOTS, (run_no,))
        for number, entry in connection.execute(_INBOX, (run_id,)).fetchall():
            if holds_value(entry, values):
                connection.execute(_REMOVE_ENTRY, (number,))
        return turns, len(removed)

    def _clear(self, connection: sqlite3.Connection) -> bool:
        """Leave no page of the log that held it; false where a reader of another process keeps it."""
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        wal = self._home / f"{DATABASE}-wal"
        return not is_busy and (not wal.exists() or wal.stat().st_size == 0)


def _blobs_of(connection: sqlite3.Connection, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The long texts that a turn refers to, as far as they are kept."""
    for digest in dict.fromkeys(digests_in(data)):
        found = connection.execute(TEXT, (digest,)).fetchone()
        if found is not None:
            yield digest, found[0]
