"""The Turn: one arrival and what was decided about it. The atom of the journal.

Rule 1: a turn is written whole, after the turn before it, or not at all.
Rule 2: it carries the hash of the one before, so nothing can be changed, dropped or reordered unnoticed.
Rule 3: a turn that was redacted keeps the hash that it had, under a signature that says who did it and why.
Rule 4: checkpoint, trace step and trajectory step are this record, seen from different sides.
"""

from typing import TypeAlias

from remit.core.journal.arrivals import Arrival
from remit.core.journal.commands import Command
from remit.core.journal.rulings import Ruling
from remit.core.record import Record

# Which rules decided a turn. Raised with every change that could make decide() answer differently;
# an audit compares only turns of its own version.
KERNEL_VERSION = 5

Decision: TypeAlias = Ruling | Command


class Turn(Record):
    """What arrived as number `seq` of a run, when, and what the kernel made of it."""

    seq: int
    at_ms: int
    previous: bytes
    # Which rules decided it. It has no default: what is not written would be read as the newest.
    kernel: int
    arrival: Arrival
    decisions: tuple[Decision, ...] = ()
    # The entry of the inbox that it answers, so that what became of an entry can be told from turns; 0 for none.
    heard: int = 0


class RedactedTurn(Record):
    """A turn that something was taken out of: its bytes as they are now, and the hash that they had before.

    `by`, `why` and `at_ms` say who took it out; the signature is the store's, over all of it.
    """

    link: bytes
    data: bytes
    by: str
    why: str
    at_ms: int
    signer: str
    signature: bytes
