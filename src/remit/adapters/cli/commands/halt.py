"""The command that stops dispatch on a store, lifts that, and shows what is halted.

Rule 1: to halt needs nothing but the store: no quotas, tools or engines are loaded for it, and the spec of an engine is
        only read. Secrets are looked for in what is said where they can be read.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, keyboard_user
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.response_lines import time_text
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, RemitError
from remit.core.run.halt import HALTED, Halt
from remit.observe.plain import printable_line

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

TEXT_CHARS_MAX = 300
# As many as fit a line; `remit runs` lists all.
RUNS_MAX = 10


def halt(
    *,
    tenant: Annotated[str, Parameter(help="Only what runs of this tenant do.")] = "",
    tool: Annotated[str, Parameter(help="Only calls of this tool.")] = "",
    model: Annotated[str, Parameter(help="Only calls of this model, by its name or a spec as for --engine.")] = "",
    run: Annotated[str, Parameter(help="Only this run, and the runs beneath it.")] = "",
    why: Annotated[str, Parameter(help="Why; callers that are held back are told, and the journal keeps it.")] = "",
    lift: Annotated[bool, Parameter(help="Lift the halt of exactly this, so that runs can be resumed.")] = False,
    listed: Annotated[bool, Parameter(name="--list", help="Show what is halted, by whom and why.")] = False,
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Stop dispatch for everything, a tenant, a tool, a model or a run; or lift that."""
    named = {"--tenant": tenant, "--tool": tool, "--model": model, "--run": run}
    said = [option for option, name in named.items() if name]
    if len(said) > 1:
        raise wrong_usage(f"{' and '.join(said)} are {len(said)} halts; halt one after the other")
    if listed and (lift or said or why):
        raise wrong_usage("--list shows what is halted and takes nothing beside it")
    if not (listed or lift or why.strip()):
        raise wrong_usage("a halt needs a reason that others can read: --why TEXT")
    who = by or keyboard_user()

    async def play() -> int:
        if listed:
            return await _list(terminal, common)
        async with _opened(common) as system:
            run_id = (await system.archive.find(run)).run_id if run else ""
            if lift:
                lifted = await system.lift(by=who, why=why, tenant=tenant, tool=tool, model=model, run=run_id)
                await _tell_lifted(terminal, system, lifted)
                return EXIT_OK
            done = await system.halt(why, by=who, tenant=tenant, tool=tool, model=model, run=run_id)
            is_known = await system.archive.has_met(done.halt.scope)
        if not is_known:
            what = printable_line(str(done.halt.scope), TEXT_CHARS_MAX)
            terminal.remark(
                f"no run of this store has used {what}; the halt stands all the same: look whether it is spelled right"
            )
        if terminal.is_json:
            terminal.values(done)
            return EXIT_OK
        terminal.line(
            f"{printable_line(str(done.halt.scope), TEXT_CHARS_MAX)} is halted: nothing of it goes out any more"
        )
        for one in done.under_way:
            terminal.remark(
                f"run {one.run_id} has not yet put down {printable_line(one.what, TEXT_CHARS_MAX)}; it was told"
            )
        return EXIT_OK

    return in_loop(play())


@asynccontextmanager
async def _opened(common: CommonOptions) -> "AsyncIterator[System]":
    from remit.assemble import reopened_store, signer_of, system_on, vault_for

    settings = common.settings()
    store = reopened_store(settings)
    try:
        system = system_on(store, signer=signer_of(store), secrets=vault_for(settings))
    except RemitError:
        # Secrets that cannot be read do not prevent a halt.
        system = system_on(store, signer=signer_of(store))
    try:
        yield system
    finally:
        await system.close()


async def _list(terminal: Terminal, common: CommonOptions) -> int:
    from remit.assemble import opened_to_read

    async with opened_to_read(common.settings()) as system:
        found = await system.archive.verify_halts()
        halts = system.halts() if not found else ()
    if terminal.is_json:
        terminal.values({"halts": halts, "findings": found})
    else:
        for one in found:
            terminal.remark(f"the journal of halts is not as it was written: {one}")
        for line in _lines(halts):
            terminal.line(line)
        if not halts and not found:
            terminal.remark("nothing is halted")
    return EXIT_FAILED if found else EXIT_OK


async def _tell_lifted(terminal: Terminal, system: "System", lifted: Halt) -> None:
    waiting = [entry.run_id for entry in await system.archive.runs(open_only=True) if entry.waiting_for == HALTED]
    if terminal.is_json:
        terminal.values({"halt": lifted, "waiting": waiting})
        return
    terminal.line(f"the halt of {printable_line(str(lifted.scope), TEXT_CHARS_MAX)} is lifted")
    if waiting:
        more = f" and {len(waiting) - RUNS_MAX} more" if len(waiting) > RUNS_MAX else ""
        terminal.remark(f"runs that were halted: {', '.join(waiting[:RUNS_MAX])}{more}; go on with: remit resume RUN")


def _lines(halts: Sequence[Halt]) -> list[str]:
    return [
        f"{printable_line(str(one.scope), TEXT_CHARS_MAX)}  since {time_text(one.at_ms)}  by {printable_line(one.by, TEXT_CHARS_MAX)}: "
        f"{printable_line(one.why, TEXT_CHARS_MAX)}"
        for one in halts
    ]
