"""Finding the texts that no turn refers to, and removing them.

Rule 1: a turn refers to a text by its 32-byte digest, and whatever in a turn has that shape counts as a reference. A
        text may be kept in error, never removed in error.
Rule 2: nothing is counted when a turn is written, which keeps appending fast. A sweep reads the turns instead: most of
        them while others write, and the few that came meanwhile inside the transaction that removes.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from remit.core.journal.codec import digests_in

# Turns and texts per query or transaction: milliseconds each, so that nobody who writes waits longer.
_TURNS_AT_ONCE = 1_000
_TEXTS_AT_ONCE = 100

_TURNS = "SELECT turn_no, run_no, data FROM turns WHERE turn_no > ? ORDER BY turn_no LIMIT ?"
_TURNS_OF_RUN = "SELECT data FROM turns WHERE run_no = ?"
_OLD_TEXTS = "SELECT digest, length(data) FROM blobs WHERE put_at_ms < ?"
_TEXT = "SELECT length(data) FROM blobs WHERE digest = ?"
_REMOVE = "DELETE FROM blobs WHERE digest = ? AND put_at_ms < ?"


class Sweep:
    """One pass over a store. `texts` are the candidates: digest and size of those nobody was seen to refer to."""

    def __init__(self, connection: sqlite3.Connection, texts: dict[bytes, int]) -> None:
        self._connection = connection
        self._turn_no = 0
        self.texts = texts

    def spare_referred(self, *, besides: Collection[int] = ()) -> None:
        """Strike out what the turns refer to that were not looked at yet, those of some runs excepted."""
        while rows := self._connection.execute(_TURNS, (self._turn_no, _TURNS_AT_ONCE)).fetchall():
            self._turn_no = rows[-1][0]
            for _, run_no, data in rows:
                if run_no not in besides:
                    for digest in digests_in(data):
                        self.texts.pop(digest, None)

    def remove(self, put_before_ms: Callable[[], int]) -> tuple[int, int]:
        """Remove the candidates that were put before a time, asked anew for each piece; gives number and bytes."""
        count = size_bytes = 0
        self.spare_referred()
        for start in range(0, len(garbage := list(self.texts)), _TEXTS_AT_ONCE):
            with transaction(self._connection):
                self.spare_referred()
                cutoff_ms = put_before_ms()
                for digest in garbage[start : start + _TEXTS_AT_ONCE]:
                    if digest in self.texts and self._connection.execute(_REMOVE, (digest, cutoff_ms)).rowcount:
                        count, size_bytes = count + 1, size_bytes + self.texts.pop(digest)
        return count, size_bytes


def texts_of_run(connection: sqlite3.Connection, run_no: int) -> dict[bytes, int]:
    """The texts that a run refers to, with their sizes."""
    found = {digest for (data,) in connection.execute(_TURNS_OF_RUN, (run_no,)) for digest in digests_in(data)}
    sizes = ((digest, connection.execute(_TEXT, (digest,)).fetchone()) for digest in found)
    return {digest: size[0] for digest, size in sizes if size is not None}


def old_texts(connection: sqlite3.Connection, put_before_ms: int) -> dict[bytes, int]:
    """All texts that were put before a time, with their sizes."""
    return dict(connection.execute(_OLD_TEXTS, (put_before_ms,)).fetchall())


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of what is written inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
