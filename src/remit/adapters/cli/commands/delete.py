"""The command that removes a run. Every other run verifies as before, and the log of heads keeps that it was there."""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions, RunName
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.amounts import counts_line
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK


def delete(
    run: RunName, /, *, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]
) -> int:
    """Remove a run, the runs beneath it, and the texts that only they need."""

    async def remove() -> None:
        from remit.assemble import reopened_store, system_on

        system = system_on(reopened_store(common.settings()))
        try:
            run_id = (await system.archive.find(run)).run_id
            removed = await system.delete(run_id)
        finally:
            await system.close()
        counts = {"runs": removed.runs, "turns": removed.turns, "texts": removed.texts}
        if terminal.is_json:
            terminal.values({"run_id": run_id, **counts})
        else:
            terminal.line(f"run {run_id} deleted: {counts_line(counts)}")

    in_loop(remove())
    return EXIT_OK
