"""What a store names that would be loaded or asked: every path and every address, as its runs recorded them.

Rule 1: nothing is looked up and nothing judged; it is text of the writer of the store, and shown as such, in full.
Rule 2: a run that cannot be read is counted, not passed over.
"""

from collections.abc import Iterable, Sequence

from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import RunStarted, SourcesAccepted
from remit.core.journal.codec import decode_turn
from remit.core.record import Record


class NamedAddresses(Record):
    """What the runs of a store name: files and modules of code, and specs of engines with the addresses in them."""

    runs: int = 0
    runs_unreadable: int = 0
    paths: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()


class StoreNamed(Record):
    """A store as a person must see it who decides whether it is theirs."""

    store: str
    key: str
    owner: int
    is_trusted: bool
    # Who signed runs of it and has not been accepted, and how many runs have no signature.
    signers: tuple[str, ...]
    runs_unsigned: int
    named: NamedAddresses
    # Addresses in queues.yaml, and files of the folder that would be read.
    webhooks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


# A turn in which a person accepted other code says so in its bytes.
_ACCEPTED = SourcesAccepted.__name__.encode()


def named_in(journals: Iterable[Sequence[bytes]]) -> NamedAddresses:
    """What these runs name, each path and each engine once."""
    runs = unreadable = 0
    paths: dict[str, None] = {}
    engines: dict[str, None] = {}
    for turns in journals:
        runs += 1
        try:
            found = [
                decode_turn(data).arrival for data in (*turns[:1], *(one for one in turns[1:] if _ACCEPTED in one))
            ]
        except InvariantBroken:
            unreadable += 1
            continue
        for arrival in found:
            if isinstance(arrival, RunStarted):
                engines |= dict.fromkeys(spec for spec in arrival.manifest.engines if spec)
                paths |= dict.fromkeys(source.place for source in arrival.manifest.sources if source.place)
            elif isinstance(arrival, SourcesAccepted):
                paths |= dict.fromkeys(source.place for source in arrival.sources if source.place)
        unreadable += not found
    return NamedAddresses(runs, unreadable, tuple(paths), tuple(engines))
