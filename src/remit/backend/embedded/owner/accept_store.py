"""Making a store ours that was not made here: what a person is shown, and what their yes does.

Rule 1: looking reads, and nothing more.
Rule 2: a yes enters the key of the store, for any owner of its files, and every signer of its runs until now. What no key
        has signed yet is signed for as it stands, since the person who said yes has seen what it names.
"""

from collections.abc import Iterable
from pathlib import Path

from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.owner.trusted_stores import Trusted, TrustList, owner_of, signers_in, standing_of
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.codec import hash_turn
from remit.core.journal.ended import ending_of
from remit.core.journal.signing import sign_head
from remit.core.journal.storage import Stretch
from remit.observe.views.named_addresses import StoreNamed, named_in


async def look_at(home: Path, trusted: TrustList, webhooks: tuple[str, ...], files: Iterable[str]) -> StoreNamed:
    """What the store in a folder names, and how it stands to this user. `files` are names that would be read there."""
    standing = standing_of(home, trusted, webhooks)
    journals, unsigned = await _runs_in(home) if (home / DATABASE).exists() else ([], 0)
    strangers = signers_in(home) - {standing.fingerprint, *standing.signers}
    return StoreNamed(
        store=str(home),
        key=standing.fingerprint,
        owner=owner_of(home),
        is_trusted=standing.is_ours and not standing.is_new and not strangers and not unsigned,
        signers=tuple(sorted(strangers)),
        runs_unsigned=unsigned,
        named=named_in(journals),
        webhooks=webhooks,
        files=tuple(str(path) for name in files if (path := home / name).exists()),
    )


async def _runs_in(home: Path) -> tuple[list[Stretch], int]:
    """The turns of every run, and how many runs are not signed."""
    store = EmbeddedStore.open_to_read(home)
    try:
        runs = [entry.run_id for entry in await store.catalogue.entries()]
        journals = [await store.journal.read(run_id) for run_id in runs]
        return journals, sum([await store.catalogue.last_head(run_id) is None for run_id in runs])
    finally:
        await store.close()


async def accept(home: Path, trusted: TrustList, seen: StoreNamed) -> None:
    """Enter the key of a store, and sign for those of its runs that are not signed for."""
    store = EmbeddedStore.open(home)
    try:
        trusted.enter(Trusted(store.did, seen.owner, seen.store, seen.signers))
        for entry in await store.catalogue.entries():
            if await store.catalogue.last_head(entry.run_id) is None:
                await _vouch(store, entry.run_id)
    finally:
        await store.close()


async def _vouch(store: EmbeddedStore, run_id: str) -> None:
    """Sign for a run as its turns tell it; one that follows brings a head of its own, or does not need one."""
    turns = await store.journal.read(run_id)
    if turns:
        head, ending = hash_turn(turns[-1]), ending_of(reversed(turns))
        signed = sign_head(store.signer, run_id=run_id, seq=len(turns) - 1, head=head, ending=ending)
        await store.journal.vouch(signed)
