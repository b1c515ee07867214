"""The commands that remove runs. Every other run verifies as before, and the log of heads keeps that they were there."""

import time
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.inputs import wrong_usage
from remit.adapters.cli.looping import in_loop
from remit.adapters.cli.options import COMMON, Common, RunName
from remit.adapters.cli.terminal import Terminal
from remit.core.failure import EXIT_OK

_DAY_MS = 86_400_000
# A quarter: most questions about a run are asked within it.
DAYS_DEFAULT = 90


def delete(run: RunName, /, *, common: Common = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """Remove a run, the runs beneath it, and the texts that only they need."""

    async def remove() -> None:
        from remit.assemble import open_again, system_on

        store = open_again(common.settings())
        try:
            archive = system_on(store).archive
            run_id = (await archive.find(run)).run_id
            removed = [await store.retention.delete(one) for one in await archive.family(run_id)]
        finally:
            await store.close()
        counts = {
            "runs": sum(one.runs for one in removed),
            "turns": sum(one.turns for one in removed),
            "texts": sum(one.texts for one in removed),
        }
        if terminal.is_json:
            terminal.values({"run_id": run_id, **counts})
        else:
            terminal.line(f"run {run_id} deleted: {_counted(counts)}")

    in_loop(remove())
    return EXIT_OK


def gc(
    *,
    older_than: Annotated[
        int, Parameter(help="Remove runs that ended more than so many days ago, 90 unless said.")
    ] = DAYS_DEFAULT,
    dry_run: Annotated[bool, Parameter(help="Only say what would be removed.")] = False,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Remove runs that ended long ago, and texts that nothing refers to."""
    if older_than < 0:
        raise wrong_usage(f"--older-than {older_than} lies in the future; give a number of days from 0 on")

    async def remove() -> None:
        from remit.assemble import open_again

        before_ms = time.time_ns() // 1_000_000 - older_than * _DAY_MS
        store = open_again(common.settings())
        try:
            removed = await store.retention.gc(ended_before_ms=before_ms, dry_run=dry_run)
        finally:
            await store.close()
        if terminal.is_json:
            terminal.values({"dry_run": dry_run, "removed": removed})
        else:
            counts = {"runs": removed.runs, "turns": removed.turns, "texts": removed.texts}
            terminal.line(f"{'would remove' if dry_run else 'removed'} {_counted(counts)}")

    in_loop(remove())
    return EXIT_OK


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items())
