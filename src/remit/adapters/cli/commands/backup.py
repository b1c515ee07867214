"""The command that copies a store which is in use, and looks whether the copy is as it was written."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.amounts import size
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK

_WAY_BACK = "put the folder in the place of the store"


def backup(
    folder: Annotated[Path, Parameter(name="FOLDER", help="Where to; a folder that is not there yet.")],
    /,
    *,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Copy a store that may be in use to a new folder, and verify the copy."""

    async def copy() -> int:
        from remit.assemble import opened_to_read, settings_of
        from remit.assemble_wire import back_up

        settings = common.settings()
        size_bytes = await back_up(settings, folder)
        async with opened_to_read(settings_of(home=str(folder))) as system:
            runs = await system.archive.runs(with_children=True)
            found = [await system.archive.verify(entry.run_id) for entry in runs]
        bad = [entry.run_id for entry, one in zip(runs, found, strict=True) if not one.ok]
        if terminal.is_json:
            terminal.values({"folder": str(folder), "bytes": size_bytes, "runs": len(runs), "failed": bad})
        else:
            count = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
            terminal.line(f"{count}, {size(size_bytes)}, copied to {folder}")
            for run_id in bad:
                terminal.remark(f"run {run_id} FAILED verification; `remit verify {run_id}` says what is wrong with it")
            if not bad:
                way = f"remit import {folder} --store ADDRESS" if settings.store else _WAY_BACK
                terminal.line(f"all are as they were written; to restore, {way}")
        return EXIT_FAILED if bad else EXIT_OK

    return in_loop(copy())
