"""Two tools of a support desk: one reads an order, one pays money back.

They work on a small ledger in SQLite. Its path stands in SUPPORT_LEDGER; without that it is made beside this file on
first use, with three orders in it. `refund` can be called twice with the same key and pays once; asked with a key, it
tells what became of the call. Where it refuses, it raises `NotDone`: nothing was paid, and no person is asked.

    remit run "Refund order 42, it arrived broken." --tools examples/support_tools.py
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from remit import Happened, NotDone, tool

LEDGER = Path(__file__).resolve().parent / "support_ledger.sqlite"

# Another process may be writing; it needs milliseconds.
LOCK_WAIT_S = 5.0

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, customer TEXT NOT NULL, item TEXT NOT NULL, status TEXT NOT NULL, paid_cents INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS refunds (
    key TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders (id), cents INTEGER NOT NULL, reason TEXT NOT NULL
) STRICT;
INSERT OR IGNORE INTO orders VALUES
    ('41', 'Ada', 'desk lamp', 'shipped', 4900),
    ('42', 'Grace', 'tea set', 'delivered', 12900),
    ('43', 'Alan', 'bicycle bell', 'cancelled', 1500);
"""


@dataclass
class Order:
    """An order as the desk sees it."""

    order_id: str
    customer: str
    item: str
    status: str
    paid_cents: int
    refunded_cents: int


@dataclass
class Refund:
    """Money that was paid back."""

    order_id: str
    cents: int
    refund_key: str


@contextmanager
def ledger() -> Iterator[sqlite3.Connection]:
    """The ledger, made if it is not there yet; what the block wrote is committed, or nothing of it."""
    path = os.environ.get("SUPPORT_LEDGER") or LEDGER
    with closing(sqlite3.connect(path, timeout=LOCK_WAIT_S)) as connection:
        connection.executescript(SCHEMA)
        with connection:
            yield connection


def is_open() -> bool:
    """Whether the ledger can be reached."""
    with ledger() as connection:
        return connection.execute("SELECT 1").fetchone() is not None


def is_booked(arguments: dict[str, Any], result: Refund) -> str:
    """Look into the ledger instead of trusting the function that wrote it."""
    with ledger() as connection:
        row = connection.execute("SELECT order_id, cents FROM refunds WHERE key = ?", (result.refund_key,)).fetchone()
    if row != (arguments["order_id"], arguments["cents"]):
        return f"the ledger holds {row} under {result.refund_key}"
    return ""


def what_became_of(key: str) -> Refund | Happened:
    """What the ledger knows about the refund with this key. It is written in one piece, so its absence is a no."""
    with ledger() as connection:
        row = connection.execute("SELECT order_id, cents FROM refunds WHERE key = ?", (key,)).fetchone()
    return Happened.NO if row is None else Refund(row[0], row[1], key)


@tool(effect="read", category="read_only_lookup", network=False, available=is_open)
def lookup_order(order_id: str) -> Order:
    """Look up an order: who ordered what, where it is, what was paid and what was paid back.

    Args:
        order_id: The number of the order, digits only.
    """
    with ledger() as connection:
        query = "SELECT id, customer, item, status, paid_cents FROM orders WHERE id = ?"
        row: tuple[str, str, str, str, int] | None = connection.execute(query, (order_id,)).fetchone()
        if row is None:
            raise LookupError(f"there is no order {order_id!r}")
        return Order(*row, _refunded_cents(connection, order_id))


@tool(
    effect="external",
    category="payment",
    idempotent=True,
    verify=is_booked,
    reconcile=what_became_of,
    available=is_open,
    control_args={"order_id": "id:order", "cents": "amount"},
)
def refund(
    order_id: str,
    cents: Annotated[int, Field(gt=0, le=1_000_000)],
    idempotency_key: str,
    reason: Literal["damaged", "late", "not_wanted", "other"] = "other",
) -> Refund:
    """Pay money back for an order. At most what was paid for it, and not yet paid back.

    Args:
        order_id: The number of the order.
        cents: How much, in cents.
        reason: Why the customer gets it back.
    """
    with ledger() as connection:
        # The first statement that writes takes the lock, so two refunds never see the same rest.
        connection.execute("BEGIN IMMEDIATE")
        known = connection.execute("SELECT order_id, cents FROM refunds WHERE key = ?", (idempotency_key,)).fetchone()
        if known is not None:
            return Refund(known[0], known[1], idempotency_key)
        paid = connection.execute("SELECT paid_cents FROM orders WHERE id = ?", (order_id,)).fetchone()
        if paid is None:
            raise NotDone(f"there is no order {order_id!r}")
        left_cents = paid[0] - _refunded_cents(connection, order_id)
        if cents > left_cents:
            raise NotDone(f"cents={cents} exceeds the {left_cents} cents that are left of order {order_id}")
        connection.execute("INSERT INTO refunds VALUES (?, ?, ?, ?)", (idempotency_key, order_id, cents, reason))
    return Refund(order_id, cents, idempotency_key)


def _refunded_cents(connection: sqlite3.Connection, order_id: str) -> int:
    query = "SELECT coalesce(sum(cents), 0) FROM refunds WHERE order_id = ?"
    (cents,) = connection.execute(query, (order_id,)).fetchone()
    return int(cents)
