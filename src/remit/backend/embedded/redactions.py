"""Redactions: taking out of the runs of a store what should never have been written.

Rule 1: a text that holds it is removed whole and leaves its digest. A turn is written anew without it and keeps the hash that
        it had, signed, with who did it and why; so the chain and every signed head hold.
Rule 2: a run is redacted with the runs beneath it, while nobody drives any of them.
Rule 3: caches go: snapshots are made again, and settled entries of the inbox were heard.
Rule 4: what was freed is overwritten, and the log of the database is cleared; where another process keeps that from happening,
        whoever asked is told.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from remit.backend.embedded.database import DATABASE
from remit.backend.embedded.retention import Retention
from remit.backend.embedded.sweep import digests_in, transaction
from remit.core.codec import decode_turn, encode_redacted, encode_turn, hash_turn
from remit.core.events import RedactedTurn
from remit.core.failure import InvariantBroken
from remit.core.person import check_person
from remit.core.record import Record, replace
from remit.core.secret_search import covered
from remit.core.signing import Signer, sign_redaction
from remit.tool.redaction import Find, finder_of

# What stands in the place of what was taken out: a handle without a value, so that no tool is ever called with it.
MARK = "secret:redacted#000000000000"

_TURNS = "SELECT turn_no, seq, data FROM turns WHERE run_no = ? ORDER BY seq"
_WRITE = "UPDATE turns SET data = ? WHERE turn_no = ?"
_TEXT = "SELECT data FROM blobs WHERE digest = ?"
_REMOVE_TEXT = "DELETE FROM blobs WHERE digest = ?"
_REMOVE_SNAPSHOTS = "DELETE FROM snapshots WHERE run_no = ?"
_INBOX = "SELECT number, data FROM inbox WHERE run_id = ?"
_REMOVE_ENTRY = "DELETE FROM inbox WHERE number = ?"


class Redacted(Record):
    """What was redacted; `is_cleared` says that no freed page and no log still holds it."""

    runs: int = 0
    turns: int = 0
    texts: int = 0
    is_cleared: bool = True


class Redactions:
    """Redacts runs of one store."""

    def __init__(
        self, home: Path, retention: Retention, signer: Callable[[], Signer], now_ms: Callable[[], int]
    ) -> None:
        self._home = home
        self._retention = retention
        self._signer = signer
        self._now_ms = now_ms

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        """Take a text in each of its forms, or every secret of a kind, out of a run and those beneath it.

        Nothing where nobody started it; refused with STORE_BUSY while one of them is driven.
        """
        return await asyncio.to_thread(self._redact, run_id, finder_of(text, kind), check_person(by), covered(why))

    def _redact(self, run_id: str, find: Find, by: str, why: str) -> Redacted:
        with self._retention.cleaning() as connection, self._retention.held_family(connection, run_id) as runs:
            values = self._found(connection, runs, find)
            if not values:
                return Redacted(len(runs))
            turns = texts = 0
            for run_no, member in runs.items():
                with transaction(connection):
                    said = RedactedTurn(b"", b"", by, why, self._now_ms(), "", b"")
                    written, removed = self._redact_run(connection, run_no, member, values, said)
                turns, texts = turns + written, texts + removed
            self._retention.shrink(connection)
            is_cleared = self._clear(connection)
        return Redacted(len(runs), turns, texts, is_cleared)

    def _found(self, connection: sqlite3.Connection, runs: Iterable[int], find: Find) -> tuple[str, ...]:
        """What is to be taken out, the longest first, so that no part of it is left."""
        values: dict[str, None] = {}
        for run_no in runs:
            for _, _, data in connection.execute(_TURNS, (run_no,)).fetchall():
                for text in _texts_in(_read(data)):
                    values |= dict.fromkeys(find(text))
                for _, blob in _blobs_of(connection, data):
                    values |= dict.fromkeys(find(blob.decode(errors="replace")))
        return tuple(sorted((value for value in values if value), key=len, reverse=True))

    def _redact_run(
        self, connection: sqlite3.Connection, run_no: int, run_id: str, values: tuple[str, ...], said: RedactedTurn
    ) -> tuple[int, int]:
        """Redact one run; gives the numbers of turns that were written anew and of texts that were removed."""
        turns, removed = 0, set[bytes]()
        for turn_no, seq, data in connection.execute(_TURNS, (run_no,)).fetchall():
            held = {digest for digest, blob in _blobs_of(connection, data) if _holds(blob, values)}
            for digest in held:
                connection.execute(_REMOVE_TEXT, (digest,))
            removed |= held
            turn = _read(data)
            changed = _without(turn, values)
            if changed is turn and not any(digest in removed for digest in digests_in(data)):
                continue
            left = replace(said, link=hash_turn(data), data=encode_turn(changed))
            signed = sign_redaction(self._signer(), run_id, seq, left)
            connection.execute(_WRITE, (encode_redacted(signed), turn_no))
            turns += 1
        connection.execute(_REMOVE_SNAPSHOTS, (run_no,))
        for number, entry in connection.execute(_INBOX, (run_id,)).fetchall():
            if _holds(entry, values):
                connection.execute(_REMOVE_ENTRY, (number,))
        return turns, len(removed)

    def _clear(self, connection: sqlite3.Connection) -> bool:
        """Leave no page of the log that held it; false where a reader of another process keeps it."""
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        wal = self._home / f"{DATABASE}-wal"
        return not is_busy and (not wal.exists() or wal.stat().st_size == 0)


def _read(data: bytes) -> Any:
    try:
        return decode_turn(data)
    except InvariantBroken:
        return None  # Whoever verifies finds it.


def _blobs_of(connection: sqlite3.Connection, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The long texts that a turn refers to, as far as they are kept."""
    for digest in dict.fromkeys(digests_in(data)):
        found = connection.execute(_TEXT, (digest,)).fetchone()
        if found is not None:
            yield digest, found[0]


def _holds(data: bytes, values: tuple[str, ...]) -> bool:
    return any(value.encode(errors="surrogatepass") in data for value in values)


def _texts_in(value: Any) -> Iterator[str]:
    if type(value) is str:
        yield value
    elif isinstance(value, Record):
        for name in value.__struct_fields__:
            yield from _texts_in(getattr(value, name))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _texts_in(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts_in(key)
            yield from _texts_in(part)


def _without(value: Any, values: tuple[str, ...]) -> Any:
    """The value without any of the texts; the very same where none stands in it."""
    if type(value) is str:
        for taken in values:
            value = value.replace(taken, MARK) if taken in value else value
        return value
    if isinstance(value, Record):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        changes = {name: new for name, old in fields if (new := _without(old, values)) is not old}
        return replace(value, **changes) if changes else value
    if isinstance(value, tuple | list):
        parts = [_without(part, values) for part in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else type(value)(parts)
    if isinstance(value, dict):
        items = [(_without(key, values), _without(part, values)) for key, part in value.items()]
        is_same = all(
            new is old
            for pair, old_pair in zip(items, value.items(), strict=True)
            for new, old in zip(pair, old_pair, strict=True)
        )
        return value if is_same else dict(items)
    return value
