"""The tools of the desk: one reads an order, one pays it back. Their ledger lies beside this file and is made on first use.

`refund_order` may be called twice with the same key and pays once; asked with a key, it tells what became of the call.
Its check looks into the ledger instead of believing the function that wrote it.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

import remit

LEDGER = Path(__file__).with_name("ledger.sqlite")
# Another process may be writing; it needs milliseconds.
LOCK_WAIT_S = 5.0
# How long the bank takes to answer once it has paid; `remit demo --kill` makes it slow, and kills the process that waits for it.
BANK_S = float(os.environ.get("DESK_BANK_S", "0"))

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, item TEXT NOT NULL, paid_cents INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS refunds (key TEXT PRIMARY KEY, order_id TEXT NOT NULL, cents INTEGER NOT NULL) STRICT;
INSERT OR IGNORE INTO orders VALUES ('4711', 'lamp', 5900), ('4712', 'kettle', 2450), ('4713', 'chair', 12900);
"""

OrderId = Annotated[str, Field(pattern="^[0-9]{4}$", description="The number of the order, four digits.")]


@dataclass
class ShopOrder:
    """An order as the desk sees it."""

    order_id: str
    item: str
    paid_cents: int


@dataclass
class Refund:
    """Money that was paid back."""

    order_id: str
    cents: int
    refund_key: str


@contextmanager
def ledger() -> Iterator[sqlite3.Connection]:
    """The ledger; what the block wrote is committed, or nothing of it."""
    with closing(sqlite3.connect(LEDGER, timeout=LOCK_WAIT_S)) as connection:
        connection.executescript(SCHEMA)
        with connection:
            yield connection


def booked(key: str) -> Refund | remit.Happened:
    """What the ledger knows about the refund with this key. It is written in one piece, so its absence is a no."""
    with ledger() as connection:
        row = connection.execute("SELECT order_id, cents FROM refunds WHERE key = ?", (key,)).fetchone()
    return remit.Happened.NO if row is None else Refund(row[0], row[1], key)


def is_booked(arguments: dict[str, Any], result: Refund) -> str:
    """What is wrong with a refund, by the ledger; nothing, as a rule."""
    found = booked(result.refund_key)
    is_right = found == result and result.order_id == arguments["order_id"]
    return "" if is_right else f"the ledger holds {found} under {result.refund_key}"


@remit.tool(effect="read", category="read_only_lookup", network=False)
def lookup_order(order_id: OrderId) -> ShopOrder:
    """Look an order up: what was ordered and what was paid."""
    with ledger() as connection:
        row = connection.execute("SELECT id, item, paid_cents FROM orders WHERE id = ?", (order_id,)).fetchone()
    if row is None:
        raise LookupError(f"there is no order {order_id!r}")
    return ShopOrder(*row)


@remit.tool(effect="external", category="payment", idempotent=True, verify=is_booked, reconcile=booked)
def refund_order(order_id: OrderId, idempotency_key: str) -> Refund:
    """Pay an order back, all of it, once."""
    with ledger() as connection:
        # The first statement takes the lock, so two refunds never see the same order unpaid.
        connection.execute("BEGIN IMMEDIATE")
        order = connection.execute("SELECT paid_cents FROM orders WHERE id = ?", (order_id,)).fetchone()
        if order is None:
            raise remit.NotDone(f"there is no order {order_id!r}")
        paid = connection.execute("SELECT key, cents FROM refunds WHERE order_id = ?", (order_id,)).fetchone()
        if paid is None:
            connection.execute("INSERT INTO refunds VALUES (?, ?, ?)", (idempotency_key, order_id, order[0]))
        elif paid[0] != idempotency_key:
            raise remit.NotDone(f"order {order_id} was paid back already")
    time.sleep(BANK_S)
    return Refund(order_id, order[0], idempotency_key)
