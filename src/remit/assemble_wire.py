"""Picks and wires what joins a store to others: the gateway of the agentic wire, channels of users, runs from files, backups.

Rule 1: gateway and channels speak to the servers of the settings; what they were opened for, the caller closes by leaving.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from remit import stores
from remit.assemble import (
    RunWork,
    Settings,
    expect_ours,
    opened_system,
    opened_to_read,
    quotas_for,
    settings_of,
    system_on,
    vault_for,
)
from remit.backend.clock import WallClock
from remit.backend.embedded.owner.key_file import login_key
from remit.backend.embedded.owner.trusted_stores import believed_in
from remit.core.failure import RequestRejected
from remit.core.journal.signing import is_did, nkey_of
from remit.orchestrate.facade import System
from remit.orchestrate.gateway.broker import Broker
from remit.orchestrate.gateway.clerk import WireWork, read_channels
from remit.orchestrate.gateway.gateway import Gateway
from remit.orchestrate.gateway.key_room import AccountLimits, KeyRoom, SealedLine, account_text
from remit.orchestrate.gateway.teller import Identities
from remit.orchestrate.gateway.told_mark import ToldCheck, ToldMark
from remit.orchestrate.gateway.webhook_channel import PATH, WEBHOOK, WebhookChannel, inlet
from remit.orchestrate.ports import Store
from remit.wire.channels import ChannelRules
from remit.wire.credentials import agent_signer, identity_of
from remit.wire.subjects import SubjectFamily, subject_filter, subject_of

if TYPE_CHECKING:
    from remit.orchestrate.history.copy_store import StoreCopied

# What doors are handed, by its type.
__all__ = ["Broker", "KeyRoom", "ToldCheck"]

WIRE_NEEDS_SERVERS = "WIRE_NEEDS_SERVERS"
# The tenant of a deployment that names none.
TENANT = "default"


def rules_in(path: Path | None) -> ChannelRules:
    """Who may do what in which channel; without a file everybody may do everything but approve and cancel what is others'."""
    return ChannelRules() if path is None else read_channels(path)


@asynccontextmanager
async def serve_wire(
    system: System,
    settings: Settings,
    work: RunWork,
    *,
    tenant_id: str = TENANT,
    rules: ChannelRules | None = None,
    is_sealed: bool = False,
    root: str = "",
) -> AsyncIterator[Gateway]:
    """Speak the wire for a system, on the servers of the settings, while this is entered.

    Sealed, it believes only what a key has signed that the deployment's has admitted: `root`, or that of the settings' folder.
    """
    from remit.backend.cluster.nats_broker import NatsBroker

    wire_work = WireWork(work.kit, work.terms, tenant_id, rules or ChannelRules())
    line = sealed_line(system, tenant_id, root) if is_sealed else None
    mark = _mark(system.store)
    broker = await NatsBroker.open(_servers(settings), signer=lambda: login_key(settings.home))
    gateway = Gateway(
        system, broker, wire_work, clock=WallClock(), line=line, mark=mark, identities=_identities(system)
    )
    try:
        await gateway.start()
        yield gateway
    finally:
        await gateway.close()


def _mark(store: Store) -> ToldMark | None:
    """By which what this process tells is known; raises StoreUnusable where its key may not tell what becomes of runs."""
    from remit.backend.cluster.store import ClusterStore

    if not isinstance(store, ClusterStore):
        return None
    store.link.expect_may_drive()
    return ToldMark(store.key.signer, store.signet.object_to_driver)


def _identities(system: System) -> Identities | None:
    """By which keys the agents that loops run as are known, by their roles: the same wherever the key of the deployment is."""
    key = system.store.key
    if key is None:
        return None
    signer = key.signer
    return cache(lambda role: identity_of(agent_signer(signer, role.value).did, role.value, role=role))


def key_room(system: System, root: str = "") -> KeyRoom:
    """The keys of a deployment whose root is the key of this folder, or the one that is named."""
    from remit.backend.cluster.nats_broker import KeyShelf
    from remit.backend.cluster.store import ClusterStore

    store = system.store
    if not isinstance(store, ClusterStore):
        message = "keys of workers are kept by NATS servers; name them with --store nats://HOST:PORT or REMIT_STORE"
        raise RequestRejected(WIRE_NEEDS_SERVERS, message)
    return KeyRoom(KeyShelf(store.link), store.key.signer, WallClock(), root)


def own_key(settings: Settings) -> tuple[str, str]:
    """The key of the settings' folder, as messages and as servers name it; it is made, and ours, where there is none."""
    from remit.backend.embedded.owner.trusted_stores import enter_new

    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    standing = expect_ours(settings)
    did = enter_new(settings.home, settings.trusted).fingerprint if standing.is_new else standing.fingerprint
    return did, nkey_of(did)


async def account_of(
    settings: Settings, tenant: str, *, disk: str, memory: str, connections: int
) -> tuple[str, list[str]]:
    """The account of a tenant for its servers: the key of this folder, and all that it has admitted where the servers run.

    Beside it, the admitted names that spell no key, which are left out.
    """
    limits = AccountLimits(disk=disk, memory=memory, connections=connections)
    if not settings.store:
        return account_text(tenant, own_key(settings)[0], [], limits), []
    async with opened_system(settings) as system:
        room = key_room(system)
        keys = await room.listed()
    unspelt = [key.did for key in keys if not key.is_revoked and not is_did(key.did)]
    return account_text(tenant, room.root, keys, limits), unspelt


def sealed_line(system: System, tenant_id: str = TENANT, root: str = "") -> SealedLine:
    """Seals what this process sends with the key of its folder, and checks what it is sent."""
    key = system.store.key
    assert key is not None, "a store on servers has a key"
    return SealedLine(key_room(system, root), key.signer, WallClock(), tenant_id)


@asynccontextmanager
async def channel_end(
    settings: Settings, channel_type: str, channel_id: str = ""
) -> AsyncIterator[tuple[Broker, ToldCheck]]:
    """The end of a channel at which users are: it publishes what they say, and takes replies; what is none, the check tells."""
    from remit.backend.cluster.layout import token
    from remit.backend.cluster.nats_broker import NatsBroker, heard_keys

    if channel_id:
        subject = subject_of(SubjectFamily.USER_RESPONSE, channel_type, channel_id)
    else:
        family = SubjectFamily.USER_RESPONSE
        subject = subject_filter(family).replace(f"{family.value}.*", f"{family.value}.{channel_type}")
    name = "-".join(("remit-channel", token(channel_type), token(channel_id)))
    broker = await NatsBroker.open(
        _servers(settings),
        subjects=[subject],
        consumer=name,
        is_reader=True,
        signer=lambda: login_key(settings.home),
    )
    try:
        async with heard_keys(broker, settings.home, believed_in(settings.home, settings.trusted)) as object_to:
            yield broker, ToldCheck(object_to)
    finally:
        await broker.close()


@asynccontextmanager
async def webhook_channel(
    settings: Settings, callback: str, key_file: Path | None, *, host: str, port: int
) -> "AsyncIterator[tuple[WebhookChannel, str]]":
    """The channel of an address that speaks for users, and where it takes their messages.

    It is signed with the key in a file, else with the store's secret for it.
    """
    from remit.core.limits.queue import check_webhook
    from remit.orchestrate.people.draining import webhook_key

    check_webhook(callback)
    key = await webhook_key(vault_for(settings), key_file)
    async with channel_end(settings, WEBHOOK) as (broker, check):
        channel = WebhookChannel(broker, key, callback, clock=WallClock(), check=check)
        with inlet(channel.hear, host, port) as heard_at:
            yield channel, f"http://{host}:{heard_at}{PATH}"


async def import_export(settings: Settings, lines: Iterable[bytes], *, key: str = "") -> tuple[str, int, bool]:
    """Write the run of an export into the store of the settings; gives its id, how many turns were written, whether it has ended.

    Its signer must be accepted here, or be the key that is named.
    """
    from remit.orchestrate.history.import_run import import_run

    named = frozenset({key} - {""})
    async with opened_system(settings) as system:
        run_id, turns = await import_run(system.store, lines, lambda: expect_ours(settings).signers | named)
        entry = await system.store.catalogue.entry(run_id)
    return run_id, turns, entry is not None and entry.ending != ""


async def back_up(settings: Settings, to: Path) -> int:
    """Copy the store of the settings, which may be in use, to a new folder; gives its size in bytes.

    The folder is a store: it has the runs of a cluster, and the key and the limits of the settings' folder.
    """
    from remit.backend.embedded.backup import back_up_store, copy_beside, drafted
    from remit.backend.embedded.disk.database import DATABASE

    if not settings.store:
        return back_up_store(settings.home, to)
    async with opened_to_read(settings) as system:
        with drafted(to, to / DATABASE) as (draft, finish):
            copy_beside(settings.home, draft, (stores.SERVER_FOLDER, stores.WORKERS_LOG))
            await _copy_into(system.store, replace(settings, home=draft, store=""))
            return finish()


async def restore_store(settings: Settings, folder: Path) -> "StoreCopied":
    """Write all that a backup holds into the store of the settings, which may be a cluster."""
    from remit.backend.embedded.backup import restore_beside

    backup = settings_of(home=str(folder))
    expect_ours(backup)
    expect_ours(settings)
    restore_beside(backup.home, settings.home)
    async with opened_to_read(backup) as system:
        return await _copy_into(system.store, settings)


async def _copy_into(source: Store, settings: Settings) -> "StoreCopied":
    from remit.orchestrate.history.copy_store import copy_store

    target = stores.store_at(settings.store, settings.home, trusted=settings.trusted)
    try:
        copied = await copy_store(source, target)
        # What is derived from turns, and what they count for their tenants.
        await system_on(target, quotas=quotas_for(settings)).rebuild()
    finally:
        await target.close()
    return copied


def _servers(settings: Settings) -> str:
    if not settings.store:
        message = "the wire is spoken on NATS servers; name them with --store nats://HOST:PORT or REMIT_STORE"
        raise RequestRejected(WIRE_NEEDS_SERVERS, message)
    from remit.backend.cluster.server.address import read_address

    return read_address(settings.store).servers
