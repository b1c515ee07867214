"""The command that speaks the agentic wire: programs of any language start and steer runs over NATS."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import as_usage, boundary_given, budget_from
from remit.adapters.cli.arguments.options import COMMON, LOCAL, CommonOptions
from remit.adapters.cli.event_loop import in_loop, served
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK


def gateway(
    *,
    engine: Annotated[str, Parameter(help="Which model to ask, such as scripted:FILE; `local` unless said.")] = LOCAL,
    tools: Annotated[
        list[str] | None, Parameter(help="FILE.py, module:NAME or builtin:clock,calculator. May be said several times.")
    ] = None,
    boundary: Annotated[
        str, Parameter(help="What each run may do: a boundary's name or a file; `standard` unless said.")
    ] = "standard",
    budget: Annotated[
        list[str] | None, Parameter(help="Caps of each run such as tool_calls=5,steps=20. May be said several times.")
    ] = None,
    channels: Annotated[
        Path | None,
        Parameter(help="Who may do what in which channel; without it no user approves what others started."),
    ] = None,
    tenant: Annotated[str, Parameter(help="The tenant that runs belong to; `default` unless said.")] = "default",
    sealed: Annotated[
        bool, Parameter(help="Believe only messages that an admitted key has signed (`remit keys`).", negative="")
    ] = False,
    root: Annotated[
        str, Parameter(help="With --sealed, the did:key of the deployment, where this folder holds another.")
    ] = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Speak the agentic wire: programs of any language run loops over NATS."""

    async def serve() -> int:
        from remit.assemble import RunWork, kit_for, opened_system, terms_for
        from remit.assemble_wire import rules_in, serve_wire

        with as_usage():
            terms = terms_for(boundary_given(boundary), budget_from(budget or ()))
            work, rules = RunWork(kit_for(engine, tools or (), base=Path.cwd()), terms), rules_in(channels)
        settings = common.settings()
        async with (
            opened_system(settings) as system,
            serve_wire(system, settings, work, tenant_id=tenant, rules=rules, is_sealed=sealed, root=root),
        ):
            terminal.remark(
                f"the wire is spoken for tenant {tenant} with {', '.join(work.kit.engines)}; Ctrl-C ends it"
            )
            await served(asyncio.Event().wait())
        return EXIT_OK

    return in_loop(serve())
