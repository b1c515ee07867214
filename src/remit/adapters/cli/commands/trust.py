"""The command that makes a store yours, after showing what it names.

Rule 1: every path and every address is shown in full before the question; what the store holds is data, and escaped.
Rule 2: only a person at a terminal, or --yes, says yes. Looking enters nothing.
"""

import sys
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import InputUnusable
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.terminal import Terminal, plain_values
from remit.core.failure import EXIT_OK, EXIT_WAITING
from remit.observe.views.named_addresses import StoreNamed

TRUST_NEEDS_FOLDER = "TRUST_NEEDS_FOLDER"
_YES = frozenset({"y", "yes"})


def trust(
    store: Annotated[
        str | None, Parameter(name="STORE", help="The folder of the store; without it that of --home.")
    ] = None,
    /,
    *,
    yes: Annotated[bool, Parameter(help="Say yes without being asked, for scripts that have looked before.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Show every path and address that a store names, and make the store yours."""
    from remit.assemble import accept_store, look_at_store, settings_of

    settings = common.settings() if store is None else settings_of(home=store)
    if settings.store:
        way_out = "name a folder; keys of other machines that share a cluster are named in REMIT_TRUST"
        raise InputUnusable(TRUST_NEEDS_FOLDER, f"a store on servers has no key of its own to trust; {way_out}")
    seen = in_loop(look_at_store(settings))
    if not terminal.is_json:
        for line in _lines(seen):
            terminal.line(line)
    is_accepted = seen.is_trusted or yes or (not terminal.is_json and _asked(terminal, seen))
    if is_accepted and not seen.is_trusted:
        seen = in_loop(accept_store(settings, seen))
    if terminal.is_json:
        terminal.values(plain_values(seen))
    elif is_accepted:
        terminal.line(f"{seen.store} is yours, by its key {seen.key}")
    else:
        terminal.remark("nothing was entered; `remit trust --yes` makes it yours")
    return EXIT_OK if is_accepted else EXIT_WAITING


def _lines(seen: StoreNamed) -> Iterator[str]:
    yield f"store    {seen.store}, owned by user {seen.owner}"
    yield f"key      {seen.key or 'none: one is made when the store becomes yours'}"
    for signer in seen.signers:
        yield f"signer   {signer}, who is not this key"
    unreadable = f", of which {seen.named.runs_unreadable} cannot be read" if seen.named.runs_unreadable else ""
    unsigned = f", {seen.runs_unsigned} without a signature" if seen.runs_unsigned else ""
    yield f"runs     {seen.named.runs}{unreadable}{unsigned}"
    for path in seen.named.paths:
        yield f"loads    {path}"
    for engine in seen.named.engines:
        yield f"asks     {engine}"
    for address in seen.webhooks:
        yield f"sends to {address}"
    for file in seen.files:
        yield f"reads    {file}"


def _asked(terminal: Terminal, seen: StoreNamed) -> bool:
    """Whether the user says yes; without a terminal no question is asked."""
    if not terminal.is_watched or sys.stdin is None or not sys.stdin.isatty():
        return False
    terminal.remark(f"resuming a run of {seen.store} runs the code and asks the addresses above. Is it yours? y/N")
    return sys.stdin.readline().strip().lower() in _YES
