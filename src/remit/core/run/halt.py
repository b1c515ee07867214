"""Halts: dispatch stops for everything, a tenant, a tool, a model or a run, until that is lifted.

Rule 1: a halt and its lifting are entries of one journal of the store, chained by hash and signed like turns.
Rule 2: what stands is the fold of those entries: the newest entry about a scope decides.
Rule 3: entries that do not add up halt everything, since it is unknown what was halted.
Rule 4: standing grants stand in the same journal: they too are decided for every process of the store, one entry at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

import msgspec

from remit.core.failure import InvariantBroken
from remit.core.journal.codec import NO_HASH, hash_turn
from remit.core.limits.grant import NO_GRANTS, GrantEntry, GrantStanding, grants_after
from remit.core.record import Record

# The journal of halts is kept under this name, as a run is kept under its id. No run is named so, and none is listed.
HALTS = "halts"
HALTED = "HALTED"
HALT_UNKNOWN = "HALT_UNKNOWN"
HALTS_DAMAGED = "HALTS_DAMAGED"

# How the reason begins for which a person is asked about a call that a halt withheld before the run was copied.
HELD_BACK = "a halt held it back, so it was not sent"

# A reason that is longer is a document; it belongs elsewhere, and its address here.
WHY_CHARS_MAX = 1_000
NAME_CHARS_MAX = 256


class HaltKind(StrEnum):
    """The kinds of things that a halt may hold back."""

    EVERYTHING = "everything"
    TENANT = "tenant"
    TOOL = "tool"
    MODEL = "model"
    RUN = "run"


class HaltScope(Record):
    """Everything, or the tenant, tool, model or run of this name."""

    kind: HaltKind = HaltKind.EVERYTHING
    name: str = ""

    def __str__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """As a sentence names it."""
        return f"{self.kind} {self.name}".rstrip()


class Halt(Record):
    """An entry of the journal of halts: a halt, or the lifting of one. `previous` is the hash of the entry before it."""

    number: int
    at_ms: int
    previous: bytes
    scope: HaltScope
    by: str
    why: str = ""
    is_lift: bool = False
    # The tenant of the principal who wrote it; empty where the operator of the store did, who alone lifts it then.
    tenant_id: str = ""
    # What it says of a standing grant; it halts and lifts nothing then.
    grant: GrantEntry | None = None


class HaltStanding(Record):
    """What is halted after so many entries, and the hash that the next one carries."""

    number: int = 0
    head: bytes = NO_HASH
    halts: Mapping[HaltScope, Halt] = MappingProxyType({})
    # Who lifted a halt last; a run that was halted is resumed in that name.
    lifted_by: str = ""
    grants: Mapping[str, GrantStanding] = NO_GRANTS


NOTHING_HALTED = HaltStanding()

_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(Halt).decode


def encode_halt(entry: Halt) -> bytes:
    """The bytes that a journal stores for an entry."""
    return _encode(entry)


def halts_in(data: Iterable[bytes]) -> list[Halt]:
    """The entries in these bytes; raises InvariantBroken for what is none."""
    try:
        return [_decode(stored) for stored in data]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvariantBroken(HALTS_DAMAGED, f"an entry of the journal of halts does not decode: {error}") from error


def halts_after(standing: HaltStanding, data: Sequence[bytes]) -> HaltStanding:
    """What is halted once these entries follow; raises InvariantBroken when they do not add up."""
    halts, number, head, lifted_by = dict(standing.halts), standing.number, standing.head, standing.lifted_by
    grants = standing.grants
    for stored, entry in zip(data, halts_in(data), strict=True):
        if entry.number != number + 1 or entry.previous != head:
            raise InvariantBroken(
                HALTS_DAMAGED, f"entry {entry.number} of the journal of halts does not follow {number}"
            )
        number, head = entry.number, hash_turn(stored)
        if entry.grant is not None:
            grants = grants_after(grants, entry.grant, by=entry.by, at_ms=entry.at_ms)
        elif entry.is_lift:
            halts.pop(entry.scope, None)
            lifted_by = entry.by
        else:
            halts[entry.scope] = entry
    return HaltStanding(number, head, MappingProxyType(halts), lifted_by, grants)
