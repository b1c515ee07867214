"""A check-up of a store on JetStream: what it holds, whether turns are missing that were signed, and how its server keeps it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from remit.backend.cluster.logs.log_copy import ClusterLogCopy, told_refused
from remit.backend.cluster.retention import ClusterHeadLog
from remit.backend.cluster.server.link import Link
from remit.backend.embedded.owner.key_file import FileKey
from remit.backend.memory.checkup import MemoryCheckup
from remit.core.failure import RemitError
from remit.observe.checkup import Check, CheckState
from remit.wire.subjects import STREAM

# Of so many logs it is said by name that something foreign stands in them.
_SUBJECTS_SHOWN = 5


class Looked(Protocol):
    """What is looked at."""

    link: Link
    log_copy: ClusterLogCopy
    key: FileKey
    log: ClusterHeadLog


class OpenedStore(Looked, Protocol):
    """A store that was opened to be looked at."""

    async def close(self) -> None:
        """Leave it."""


class AddressCheckup:
    """Looks at the store at an address, also where none can be opened."""

    def __init__(self, opened: Callable[[], OpenedStore]) -> None:
        self._opened = opened

    async def look(self) -> Sequence[Check]:
        """How the store is."""
        try:
            store = await asyncio.to_thread(self._opened)
        except RemitError as error:
            seen, _, way_out = error.message.partition("; ")
            way_out = way_out or "start a server that can, or name another address"
            return [Check("store", CheckState.PROBLEM, f"{error.code}: {seen}", way_out, error.code)]
        try:
            return await ClusterCheckup(store).look()
        finally:
            await store.close()


class ClusterCheckup:
    """Looks at one store."""

    def __init__(self, store: Looked) -> None:
        self._store = store

    async def look(self) -> Sequence[Check]:
        """How the store is."""
        store = self._store
        await store.log_copy.refresh()
        info = await store.link.call(store.link.jet.asked(f"$JS.API.STREAM.INFO.{STREAM}"))
        signer = store.key.signer if store.key.is_made else None
        size_mb = info["state"]["bytes"] / 1e6
        lasts = f"{info['state']['messages']} messages, {size_mb:.1f} MB"
        checkup = MemoryCheckup(
            store.log_copy.journal,
            signer,
            kept=store.link.address,
            lasts=lasts,
            losses=store.log.losses,
            way_out="see which keys may purge (`remit keys`, the accounts of the servers), and put back a backup",
        )
        return [*await checkup.look(), self._nodes(), self._entries(), *self._refused()]

    def _nodes(self) -> Check:
        replicas = self._store.link.replicas
        if replicas > 1:
            return Check("store.nodes", CheckState.OK, f"every turn is kept on {replicas} nodes")
        way_out = "three nodes survive the loss of one; docs/cluster.md says how"
        return Check("store.nodes", CheckState.DOUBTFUL, "every turn is kept on one node", way_out)

    def _entries(self) -> Check:
        unreadable = self._store.log_copy.unreadable
        if not unreadable:
            return Check("store.entries", CheckState.OK, "every entry of the logs can be read")
        seen = f"{len(unreadable)} entries of the logs cannot be read, the first at sequence {unreadable[0]}"
        way_out = "upgrade remit where a later version writes there"
        return Check("store.entries", CheckState.PROBLEM, seen, way_out, "STORE_ENTRIES_UNREADABLE")

    def _refused(self) -> list[Check]:
        """What stands in the logs and counts for nothing: no key that counts has signed it, or it is a copy."""
        refused = self._store.log_copy.refused
        if not refused:
            return []
        seen = told_refused([one for found in refused.values() for one in found])
        seen = f"{seen}; they stand in {', '.join(sorted(refused)[:_SUBJECTS_SHOWN])}"
        way_out = "see who may publish to agent.log.>; REMIT_TRUST names the keys of other machines of this deployment"
        return [Check("store.refused", CheckState.PROBLEM, seen, way_out, "STORE_ENTRIES_REFUSED")]
