"""The command that removes old runs. Every other run verifies as before, and the log of heads keeps that they were there."""

import time
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import age_ms_from
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.amounts import counts_line
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.observe.proof.findings import Fault

# A quarter: most questions about a run are asked within it.
AGE_DEFAULT = "90d"
# As many as fit a line; `--json` has all of them.
SHOWN_MAX = 4


def gc(
    *,
    older_than: Annotated[
        str, Parameter(help="Remove runs that ended longer ago: days, or 12h, 30d, 4w; 90 days unless said.")
    ] = AGE_DEFAULT,
    dry_run: Annotated[bool, Parameter(help="Only say what would be removed.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Remove runs that ended long ago, and texts that nothing refers to."""
    age_ms = age_ms_from(older_than)

    async def remove() -> None:
        from remit.assemble import reopened_store

        before_ms = time.time_ns() // 1_000_000 - age_ms
        store = reopened_store(common.settings())
        try:
            removed = await store.retention.gc(ended_before_ms=before_ms, dry_run=dry_run)
        finally:
            await store.close()
        if terminal.is_json:
            terminal.values({"dry_run": dry_run, "removed": removed})
        else:
            counts = {"runs": removed.runs, "turns": removed.turns, "texts": removed.texts}
            terminal.line(f"{'would remove' if dry_run else 'removed'} {counts_line(counts)}")
        if stays := removed.ill_listed:
            named = ", ".join(stays[:SHOWN_MAX]) + (", ..." if len(stays) > SHOWN_MAX else "")
            terminal.remark(
                f"{Fault.INDEX_DIFFERS}: {len(stays)} runs stay, whose turns do not end them before that time, as ending and ended_at_ms"
                f" of the list do: {named}; `remit rebuild` lists them anew"
            )

    in_loop(remove())
    return EXIT_OK
