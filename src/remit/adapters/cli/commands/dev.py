"""The command that begins a cluster on this machine: a NATS server, a worker of each kind, and a prompt."""

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, LOCAL, CommonOptions
from remit.adapters.cli.commands.chat import chat
from remit.adapters.cli.event_loop import leaving_by_signals
from remit.adapters.cli.screen.terminal import Terminal

# The port that NATS has everywhere.
PORT = 4222


def dev(
    *,
    nats: Annotated[bool, Parameter(help="Start a NATS server that keeps runs in the folder of --home.", negative="")],
    port: Annotated[
        int, Parameter(help=f"Where the server listens, on this machine alone; {PORT} unless said.")
    ] = PORT,
    engine: Annotated[str, Parameter(help="Which model to ask, such as scripted:FILE; `local` unless said.")] = LOCAL,
    tools: Annotated[
        list[str] | None, Parameter(help="FILE.py, module:NAME or builtin:clock,calculator. May be said several times.")
    ] = None,
    boundary: Annotated[str, Parameter(help="What each exchange may do; `standard` unless said.")] = "standard",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Start a NATS server and workers here, and talk with a model whose runs they drive."""
    from remit.assemble import local_server
    from remit.assemble_workers import WORKERS_LOG, local_workers

    if not nats or common.store:
        raise wrong_usage("dev --nats starts a server of its own; for one that runs use `remit chat --store ADDRESS`")
    for word in (engine, *(tools or ())):
        if "\0" in word:
            raise wrong_usage("the name of an engine or of tools holds a NUL, which no worker can be started with")
    with leaving_by_signals(), local_server(common.settings(), port) as address:
        terminal.remark(f"runs are kept at {address}; other commands reach them with: --store {address}")
        there = replace(common, store=address)
        with local_workers(there.settings(), engine, tools or ()):
            terminal.remark(f"workers drive them; what they say is in {there.settings().home / WORKERS_LOG}")
            driven = replace(common, store=f"{address}?drive=workers")
            return chat(engine=engine, tools=tools, boundary=boundary, common=driven, terminal=terminal)
