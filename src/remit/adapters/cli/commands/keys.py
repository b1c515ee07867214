"""The commands of the keys room: who is admitted to a cluster, with what, and who no longer is."""

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from remit.adapters.cli.arguments.export_files import plain_fields
from remit.adapters.cli.arguments.options import COMMON, CommonOptions, whole_number
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import EXIT_OK
from remit.core.run.principal import EVERY_TENANT
from remit.observe.plain import printable_line
from remit.wire.message_texts import moment

if TYPE_CHECKING:
    from remit.assemble_wire import KeyRoom

Did = Annotated[str, Parameter(name="DID", help="The did:key of a worker or an agent, as its `remit keys` shows it.")]
Role = Literal["agent", "loop", "model", "tools"]


@asynccontextmanager
async def _room(common: CommonOptions, root: str = "") -> "AsyncIterator[KeyRoom]":
    from remit.assemble import opened_system
    from remit.assemble_wire import key_room

    async with opened_system(common.settings()) as system:
        yield key_room(system, root)


def keys(
    *,
    root: Annotated[str, Parameter(help="The did:key of the deployment, where this folder holds another.")] = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """List the keys of workers and agents, and this folder's own."""

    async def show() -> int:
        from remit.assemble_wire import own_key

        settings = common.settings()
        did, nkey = own_key(settings)
        if not settings.store:
            told = f"the key of this folder is {did}, on servers {nkey}; --store lists those that a cluster admits"
            terminal.values({"did": did, "nkey": nkey}) if terminal.is_json else terminal.line(told)
            return EXIT_OK
        async with _room(common, root) as room:
            terminal.remark(f"the key of this folder is {did}, on servers {nkey}; the deployment's is {room.root}")
            for key in await room.listed():
                if terminal.is_json:
                    terminal.values(plain_fields(key))
                    continue
                until = "revoked" if key.is_revoked else f"until {moment(key.expires_at_ms)}"
                terminal.line(f"{key.did}  {key.name}  {until}  tenant {key.tenant}  {' '.join(key.may)}")
        return EXIT_OK

    return in_loop(show())


def admit(
    did: Did,
    /,
    *,
    role: Annotated[Role, Parameter(help="What it is; `agent` unless said.")] = "agent",
    may: Annotated[
        list[str] | None, Parameter(help="A subject that it may send under, in place of its role's; several times.")
    ] = None,
    tenant: Annotated[str, Parameter(help="For which tenant; every tenant unless said.")] = EVERY_TENANT,
    days: Annotated[int, Parameter(converter=whole_number, help="For how many days; 90 unless said.")] = 90,
    name: Annotated[str, Parameter(help="A name for people.")] = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say what the key of a worker or an agent may send."""

    async def say() -> int:
        async with _room(common) as room:
            stated = await room.admit(did, may=may or room.roles[role], tenant=tenant, days=days, name=name)
        terminal.line(f"{stated.subject} may send {' '.join(stated.may)} until {moment(stated.expires_at_ms)}")
        return EXIT_OK

    return in_loop(say())


def revoke(
    did: Did,
    /,
    *,
    why: Annotated[str, Parameter(help="The reason, which is signed with it.")],
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Believe a key nothing any more, whatever it says."""

    async def say() -> int:
        async with _room(common) as room:
            await room.revoke(did, why=why)
        terminal.line(
            f"{did} is believed nothing any more; take its account away on the servers, so that it gets nothing"
        )
        return EXIT_OK

    return in_loop(say())


def account(
    tenant: Annotated[str, Parameter(name="TENANT", help="The tenant; its account has the same name.")],
    /,
    *,
    disk: Annotated[
        str, Parameter(help="What its streams may take of each server's disk, such as 20G; all of it unless said.")
    ] = "",
    memory: Annotated[
        str, Parameter(help="What its streams may take of their memory, such as 1G; all of it unless said.")
    ] = "",
    connections: Annotated[
        int, Parameter(converter=whole_number, help="How many connections it may have; 256 unless said.")
    ] = 256,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Print the account of a tenant for the configuration of NATS servers."""
    from remit.assemble_wire import account_of

    made = account_of(common.settings(), tenant, disk=disk, memory=memory, connections=connections)
    text, unspelt = in_loop(made)
    for name in unspelt:
        left = f"{printable_line(name)[:SHOWN_CHARS_MAX]} was admitted and spells no key, so it is left out"
        terminal.remark(f"{left}; take it back: remit keys revoke {shlex.quote(name)} --why typo --store STORE")
    terminal.data(text.encode())
    return EXIT_OK
