"""Picks and wires what joins a store to others: the gateway of the agentic wire, channels of users, and runs from files.

Rule 1: both speak to the servers of the settings; what they were opened for, the caller closes by leaving.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from remit.assemble import RunWork, Settings, expect_ours, opened_system, vault_for
from remit.backend.clock import WallClock
from remit.backend.embedded.owner.keys import login_key
from remit.core.failure import RequestRejected
from remit.core.journal.signing import nkey_of
from remit.orchestrate.facade import System
from remit.orchestrate.gateway.broker import Broker
from remit.orchestrate.gateway.clerk import WireWork, read_channels
from remit.orchestrate.gateway.gateway import Gateway
from remit.orchestrate.gateway.key_room import AccountLimits, KeyRoom, SealedLine, account_text
from remit.orchestrate.gateway.webhook_channel import PATH, WEBHOOK, WebhookChannel, inlet
from remit.wire.channels import ChannelRules
from remit.wire.credentials import agent_signer, identity_of
from remit.wire.subjects import SubjectFamily, subject_filter, subject_of
from remit.wire.wire_records import AgentIdentity

# What doors are handed, by its type.
__all__ = ["Broker", "KeyRoom"]

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
    scopes: Sequence[str] = (),
    is_sealed: bool = False,
) -> AsyncIterator[Gateway]:
    """Speak the wire for a system, on the servers of the settings, while this is entered.

    Sealed, it believes only what an admitted key has signed.
    """
    from remit.backend.cluster.nats_broker import NatsBroker

    wire_work = WireWork(work.kit, work.terms, tenant_id, rules or ChannelRules(), tuple(scopes))
    line = sealed_line(system, tenant_id) if is_sealed else None
    broker = await NatsBroker.open(_servers(settings), signer=lambda: login_key(settings.home))
    gateway = Gateway(system, broker, wire_work, clock=WallClock(), line=line, identity=_identity(system, work))
    try:
        await gateway.start()
        yield gateway
    finally:
        await gateway.close()


def _identity(system: System, work: RunWork) -> AgentIdentity | None:
    """By which key the agent that loops run as is known: the same wherever the key of the deployment is."""
    key, role = system.store.key, work.terms.role
    if key is None:
        return None
    return identity_of(agent_signer(key.signer, role.value).did, role.value, role=role)


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
    from remit.backend.embedded.owner.trusted_keys import enter_new

    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    standing = expect_ours(settings)
    did = enter_new(settings.home, settings.trusted).fingerprint if standing.is_new else standing.fingerprint
    return did, nkey_of(did)


async def account_of(settings: Settings, tenant: str, *, disk: str, memory: str, connections: int) -> str:
    """The account of a tenant for its servers: the key of this folder, and all that it has admitted where the servers run."""
    limits = AccountLimits(disk=disk, memory=memory, connections=connections)
    if not settings.store:
        return account_text(tenant, own_key(settings)[0], [], limits)
    async with opened_system(settings) as system:
        room = key_room(system)
        return account_text(tenant, room.root, await room.listed(), limits)


def sealed_line(system: System, tenant_id: str = TENANT, root: str = "") -> SealedLine:
    """Seals what this process sends with the key of its folder, and checks what it is sent."""
    key = system.store.key
    assert key is not None, "a store on servers has a key"
    return SealedLine(key_room(system, root), key.signer, WallClock(), tenant_id)


@asynccontextmanager
async def channel_end(settings: Settings, channel_type: str, channel_id: str = "") -> AsyncIterator[Broker]:
    """The end of a channel at which users are: it publishes what they say, and takes replies to them."""
    from remit.backend.cluster.layout import token
    from remit.backend.cluster.nats_broker import NatsBroker

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
        yield broker
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
    async with channel_end(settings, WEBHOOK) as broker:
        channel = WebhookChannel(broker, key, callback, clock=WallClock())
        with inlet(channel.hear, host, port) as heard_at:
            yield channel, f"http://{host}:{heard_at}{PATH}"


async def imported_run(settings: Settings, lines: Iterable[bytes], *, key: str = "") -> tuple[str, int]:
    """Write the run of an export into the store of the settings; gives its id, and how many turns were written.

    Its signer must be accepted here, or be the key that is named.
    """
    from remit.orchestrate.history.import_run import import_run

    named = frozenset({key} - {""})
    async with opened_system(settings) as system:
        return await import_run(system.store, lines, lambda: expect_ours(settings).signers | named)


def _servers(settings: Settings) -> str:
    if not settings.store:
        message = "the wire is spoken on NATS servers; name them with --store nats://HOST:PORT or REMIT_STORE"
        raise RequestRejected(WIRE_NEEDS_SERVERS, message)
    return settings.store.partition("?")[0]
