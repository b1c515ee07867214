"""The store on JetStream: everything the runner asks of a backend, shared by any number of processes.

Rule 1: the logs of the stream are all there is; every process folds their ends into an index of its own (log_copy.py).
Rule 2: keys and sealed values stay in the folder of the process, and never go to the server.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from remit.backend.clock import wall_clock_ms
from remit.backend.cluster.keys.signet import Signet
from remit.backend.cluster.logs.blobs import ClusterBlobs, ClusterSnapshots
from remit.backend.cluster.logs.journal import ClusterFeed, ClusterJournal
from remit.backend.cluster.logs.leases import ClusterLeases
from remit.backend.cluster.logs.log_copy import ClusterLogCopy
from remit.backend.cluster.retention import ClusterHeadLog, ClusterRedactions, ClusterRetention
from remit.backend.cluster.server.address import LEASE_MS, read_address
from remit.backend.cluster.server.jetstream import JetMessage
from remit.backend.cluster.server.link import Link
from remit.backend.cluster.work.claim_words import ClusterClaims, claim_message
from remit.backend.cluster.work.errand_queue import ErrandQueue
from remit.backend.cluster.work.letters import ClusterBell, ClusterInbox
from remit.backend.embedded.owner.key_file import FileKey, login_key
from remit.backend.embedded.seals import FileSeals
from remit.backend.folded.store import FoldedCatalogue, FoldedHalts, FoldedIndex, FoldedLedger, FoldedReceipts
from remit.core.home import expect_place
from remit.core.journal.commands import CallTool, Command, place_in_journal
from remit.core.journal.queued import Claim, ClaimWord

if TYPE_CHECKING:
    from remit.backend.cluster.checkup import ClusterCheckup


class ClusterStore:
    """An open store. It serves one event loop at a time, and several one after the other."""

    def __init__(
        self, link: Link, home: Path, now_ms: Callable[[], int] = wall_clock_ms, *, leaves: bool = False
    ) -> None:
        self.link = link
        # Whether runs that are begun here are left to loop workers.
        self.leaves = leaves
        self.key = link.signet.key
        log_copy = self.log_copy = ClusterLogCopy(link)
        self.blobs = ClusterBlobs(link, now_ms)
        self.snapshots = ClusterSnapshots(link)
        self.leases = ClusterLeases(link, log_copy)
        self.journal = ClusterJournal(link, log_copy, self.blobs, now_ms)
        self.feed = ClusterFeed(log_copy, self.journal)
        self.bell = ClusterBell(link)
        self.inbox = ClusterInbox(link, log_copy, self.blobs, now_ms)
        self.catalogue = FoldedCatalogue(log_copy)
        self.index = FoldedIndex(log_copy)
        self.log = ClusterHeadLog(log_copy, link)
        self.ledger = FoldedLedger(log_copy, log_copy)
        self.receipts = FoldedReceipts(log_copy)
        self.halts = FoldedHalts(log_copy)
        self.seals = FileSeals(home, lambda: self.key.signer)
        self.signet = link.signet
        self.claims = ClusterClaims(link, self.signet, log_copy)
        self.queue = ErrandQueue(link, self.blobs, leases=self.leases, claims=self.claims, now_ms=now_ms)
        self.journal.errands = self._offered_again
        self.retention = ClusterRetention(self, now_ms)
        self.redactions = ClusterRedactions(self, self.retention, now_ms)

    @classmethod
    def open(
        cls,
        address: str,
        home: Path,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        lease_ms: int = LEASE_MS,
        signers: Collection[str] = (),
    ) -> "ClusterStore":
        """The store on the servers at an address, its streams made when there are none; keys are in the folder.

        `signers` are the keys besides that of the folder whose word counts.

        An address may say how long leases last, and that workers drive: nats://HOST:PORT?lease_ms=5000&drive=workers.
        """
        expect_place(home)
        said = read_address(address)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        signet = Signet(FileKey(home))
        signet.keyring.believe(signers)
        link = Link(said.servers, signet, lease_ms=said.lease_ms or lease_ms, signer=lambda: login_key(home))
        return cls(link, home, now_ms, leaves=said.leaves)

    def _offered_again(self, run_id: str, orders: Sequence[Command]) -> Iterator[JetMessage]:
        """What lets calls begin that were held back and are ordered again: written with the turn, so by its holder alone."""
        seq = len(self.log_copy.journal.turns_of(run_id))
        for command in orders:
            if isinstance(command, CallTool) and command.mutating and place_in_journal(command.id)[0] < seq:
                yield claim_message(self.signet, run_id, command.id, Claim(ClaimWord.OFFERED, self.link.worker), None)

    @property
    def checkup(self) -> "ClusterCheckup":
        """What says whether the store is well; loaded by those who ask."""
        from remit.backend.cluster.checkup import ClusterCheckup

        return ClusterCheckup(self)

    def refresh_now(self) -> None:
        """Know everything that was written by now, for a caller that cannot wait in an event loop."""
        self.link.call_now(self.log_copy.refresh())

    def let_go(self) -> None:
        """Close a store that was only read, without an event loop."""
        self.link.let_go()

    async def close(self) -> None:
        """Leave the cluster; again, nothing."""
        await self.link.close()
