"""Which store is opened: the folder of this machine, or a cluster of NATS servers where an address names one.

Rule 1: keys, sealed values, secrets and limits are in the folder in either case; an address says where the runs are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.home import HOME_INVALID, expect_place
from remit.orchestrate.ports import Checkup, Store

if TYPE_CHECKING:
    from remit.backend.cluster.store import ClusterStore
    from remit.backend.embedded.owner.trusted_stores import TrustList
    from remit.core.run.halt import HaltStanding
    from remit.orchestrate.ports import Clock

# Where a server of this machine keeps its streams, in the folder.
SERVER_FOLDER = "nats"
# What workers of this machine say, there too.
WORKERS_LOG = "workers.log"


def is_address(said: object) -> bool:
    """Whether this names servers, of whatever kind, and not a folder."""
    return isinstance(said, str) and "://" in said


def expect_no_place(home: object) -> None:
    """Raise HOME_INVALID where a folder is named for what is kept in memory."""
    expect_place(home)
    if home is not None:
        message = f"home={clipped(str(home))} keeps what memory=True forgets; give one of them"
        raise RequestRejected(HOME_INVALID, message)


def store_at(address: str, home: Path, *, trusted: "TrustList", mends: bool = False) -> Store:
    """The store, made if it is not there; on a cluster, what keys of the list have signed counts besides that of the folder."""
    if address:
        return _cluster(address, home, trusted)
    from remit.backend.embedded.store import EmbeddedStore

    return EmbeddedStore.open(home, mends=mends)


def expect_there(address: str, home: Path) -> None:
    """Raise STORE_NOT_FOUND where a folder holds no store; a cluster says so itself when it is opened."""
    if not address:
        from remit.backend.embedded.head_log import expect_store_in

        expect_store_in(home)


def open_to_read(address: str, home: Path, *, trusted: "TrustList") -> Store:
    """A store that is there, for a process that writes nothing to it."""
    if address:
        return _cluster(address, home, trusted)
    from remit.backend.embedded.store import EmbeddedStore

    return EmbeddedStore.open_to_read(home)


def believed_there(address: str, home: Path, trusted: "TrustList") -> frozenset[str]:
    """Whose signatures count besides that of the folder: of several machines that share a cluster each vouches for its turns."""
    if not address:
        return frozenset()
    from remit.backend.embedded.owner.trusted_stores import believed_in

    return believed_in(home, trusted)


def _cluster(address: str, home: Path, trusted: "TrustList") -> "ClusterStore":
    try:
        from remit.backend.cluster.store import ClusterStore
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "nats":
            raise
        from remit.core.installing import install_command

        message = f"runs on a cluster need the client of NATS, which is not installed: {install_command('nats')}"
        raise RequestRejected("STORE_EXTRA_MISSING", message, {"extra": "nats"}) from None
    from remit.backend.embedded.owner.trusted_stores import believed_in

    return ClusterStore.open(address, home, signers=believed_in(home, trusted))


@contextmanager
def standing_halts(
    address: str, home: Path, clock: "Clock", *, trusted: "TrustList"
) -> "Iterator[Callable[[], HaltStanding]]":
    """Says what is halted on a store, also on one that another process makes meanwhile."""
    from remit.backend.embedded.disk.database import DATABASE
    from remit.backend.embedded.store import EmbeddedStore
    from remit.core.run.halt import NOTHING_HALTED
    from remit.orchestrate.loop.halt_switch import Halts

    found: list[Halts] = []
    with ExitStack() as closing:
        if address:
            cluster = _cluster(address, home, trusted)
            closing.callback(cluster.let_go)
            halts = Halts(cluster.halts, clock)

            def standing_there() -> "HaltStanding":
                cluster.refresh_now()
                return halts.standing

            yield standing_there
            return

        def standing() -> "HaltStanding":
            if not found and (home / DATABASE).exists():
                store = EmbeddedStore.open_to_read(home)
                closing.callback(store.let_go)
                found.append(Halts(store.halts, clock))
            return found[0].standing if found else NOTHING_HALTED

        yield standing


def checkup_of(address: str, home: Path, trusted: "TrustList", webhooks: Callable[[], Sequence[str]]) -> Checkup:
    """What looks at a store; one that cannot be opened is looked at, too."""
    if address:
        from remit.backend.cluster.checkup import AddressCheckup

        return AddressCheckup(lambda: _cluster(address, home, trusted))
    from remit.backend.embedded.checkup import FolderCheckup

    return FolderCheckup(home, trusted, webhooks)


@contextmanager
def server_at(home: Path, port: int) -> Iterator[str]:
    """A NATS server of this machine that keeps its streams in the folder; gives its address, and ends it at last."""
    from remit.backend.cluster.server.nats_server import NatsServer

    with NatsServer(home / SERVER_FOLDER, port=port, is_tethered=True) as server:
        yield server.address
