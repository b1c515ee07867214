"""The command that proves that the rules lead to a run. It calls no model and no tool, and repairs nothing."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.export_files import RunOrFile, is_file, lines_in, plain_fields
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import print_prose
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.observe.proof.export import read_export

SAME = "same"


def replay(
    run: RunOrFile, /, *, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]
) -> int:
    """Decide a run again, with no model and no tool, and compare."""
    path = Path(run)
    export = read_export(lines_in(path)) if is_file(path) else None

    async def decide_again() -> int:
        from remit.assemble import opened_to_read
        from remit.orchestrate.facade import replay_export

        if export is not None:
            run_id, found = export.run_id, replay_export(export)
        else:
            async with opened_to_read(common.settings()) as system:
                run_id = (await system.archive.find(run)).run_id
                found = await system.archive.replay(run_id)
        is_same = found.verdict.value == SAME
        if terminal.is_json:
            terminal.values({"run_id": run_id, "ok": is_same, **plain_fields(found)})
            return EXIT_OK if is_same else EXIT_FAILED
        if (difference := found.difference) is not None:
            terminal.line(f"turn {difference.seq} differs in {difference.what}")
            terminal.line(f"    recorded:   {difference.recorded}")
            terminal.line(f"    recomputed: {difference.recomputed}")
        for what, turns in (("decided by other rules", found.other_version), ("lacking a text", found.redacted)):
            if turns:
                terminal.line(
                    f"{len(turns)} turns {what}, so not all of them could be compared: from turn {turns[0]} on"
                )
        compared = f"{found.same} of {found.turns} turns came out the same, with no model and no tool called"
        print_prose(terminal, f"run {run_id} replayed as {found.verdict.value}: {compared}")
        return EXIT_OK if is_same else EXIT_FAILED

    return in_loop(decide_again())
