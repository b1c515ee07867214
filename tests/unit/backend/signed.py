"""The journal and the snapshots of a store as a system has them: signed with its key."""

from remit.backend.embedded.store import EmbeddedStore
from remit.orchestrate.ports import Journal, Snapshots
from remit.orchestrate.signatures import signed_journal, signed_snapshots


def journal_of(store: EmbeddedStore) -> Journal:
    """Whose turns are signed."""
    return signed_journal(store.journal, store.key)


def snapshots_of(store: EmbeddedStore) -> Snapshots:
    """Which are signed."""
    return signed_snapshots(store.snapshots, store.key)
