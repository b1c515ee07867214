"""Trust of tools: what a tool says of where the values of its calls may come from, and whose knowledge its results are.

Rule 1: what a tool does not say counts as the worst: every argument steers, no field of a result supplies a value, an
        effect happens once, and what was read is private.
Rule 2: these are words of the tool's author. The gate of provenance alone judges by them.
"""

from enum import StrEnum

from remit.core.limits.authority import Stakes
from remit.core.record import MadeByHand


class Repeat(StrEnum):
    """How often an effect may happen unattended: once in a run, once per target, or freely."""

    ONCE = "once"
    TARGET = "target"
    FREE = "free"


class Reads(StrEnum):
    """Whose knowledge a result is, from public to kept from all who may not hold it."""

    PUBLIC = "public"
    PRIVATE = "private"
    SECRET = "secret"  # noqa: S105 - a label, no password


# How much each of them takes to be read.
READS_RANK: dict[Reads, int] = {Reads.PUBLIC: 0, Reads.PRIVATE: 1, Reads.SECRET: 2}


class Trust(MadeByHand):
    """What one tool declares beyond its schema. Paths and kinds are those of the gate, such as `[].id` and `id:file`."""

    payload_args: tuple[str, ...] = ()
    # Path in the result, and the kind of value there.
    fields: tuple[tuple[str, str], ...] = ()
    author: str = ""
    directory: bool = False
    locator_args: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    repeat: Repeat = Repeat.ONCE
    reads: Reads = Reads.PRIVATE
    readers: str = ""
    # None is what category and `destructive` tell.
    stakes: Stakes | None = None
    # The hosts that its calls reach, where these are always the same.
    hosts: tuple[str, ...] = ()


UNTRUSTING = Trust()
