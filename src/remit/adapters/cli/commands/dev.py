"""The command that begins a cluster on this machine: a NATS server and a prompt on it."""

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.commands.chat import chat
from remit.adapters.cli.inputs import wrong_usage
from remit.adapters.cli.options import COMMON, LOCAL, CommonOptions
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
    """Start a NATS server here and talk with a model whose runs it keeps."""
    from remit.assemble import local_server

    if not nats or common.store:
        raise wrong_usage("dev --nats starts a server of its own; for one that runs use `remit chat --store ADDRESS`")
    with local_server(common.settings(), port) as address:
        terminal.remark(f"runs are kept at {address}; other commands reach them with: --store {address}")
        return chat(
            engine=engine, tools=tools, boundary=boundary, common=replace(common, store=address), terminal=terminal
        )
