"""The commands that write a run to a file, and take one from a file into a store."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.export_files import file_unusable, is_folder, lines_in
from remit.adapters.cli.arguments.inputs import expect_did, wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions, RunName
from remit.adapters.cli.arguments.outputs import STDOUT_NAMES, OutputRefused, write_output
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK


def export(
    run: RunName,
    /,
    *,
    output: Annotated[
        Path | None,
        Parameter(
            help="The file to write, for its owner alone; a pipe or a device is written into. Without it stdout."
        ),
    ] = None,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Write a run to a file that can be verified and replayed anywhere."""
    if output in STDOUT_NAMES:
        output = None
    if output is None and terminal.is_a_terminal:
        raise wrong_usage("an export must arrive byte by byte: name a file with --output, or pipe it somewhere")

    async def carry() -> tuple[str, list[bytes]]:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            run_id = (await system.archive.find(run)).run_id
            return run_id, list(await system.archive.export(run_id))

    run_id, lines = in_loop(carry())
    if output is None:
        for line in lines:
            terminal.data(line)
        return EXIT_OK
    try:
        if output.resolve().parent == common.settings().home.resolve():
            raise OutputRefused("is in the folder of the store, which is for its own files; name a place elsewhere")
        write_output(output, lines)
    except (OSError, ValueError) as error:
        raise file_unusable(output, error) from error
    if terminal.is_json:
        terminal.values({"run_id": run_id, "file": str(output), "lines": len(lines)})
    else:
        terminal.line(f"run {run_id} exported to {output}: {len(lines)} lines")
    return EXIT_OK


def bring(
    *files: Annotated[
        Path, Parameter(name="FILE", help="Exports of runs, a parent before its children; or the folder of a backup.")
    ],
    key: Annotated[
        str, Parameter(help="The did:key of the store that it comes from, where that is not one of yours.")
    ] = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Take exported runs into this store, of whatever kind, so that they go on here."""
    if not files:
        raise wrong_usage("name the files that `remit export` wrote, or the folder that `remit backup` made")

    if key:
        expect_did(key)

    async def take() -> None:
        from remit.assemble_wire import import_export, restore_store

        for file in files:
            if is_folder(file):
                copied = await restore_store(common.settings(), file)
                if terminal.is_json:
                    terminal.values(copied)
                else:
                    terminal.line(f"{copied.runs} runs of {file} are here, {copied.turns} turns were written")
                continue
            run_id, turns, is_over = await import_export(common.settings(), lines_in(file), key=key)
            if terminal.is_json:
                terminal.values({"run_id": run_id, "turns": turns})
            else:
                way = "" if is_over else f"; go on with: remit resume {run_id}"
                terminal.line(f"run {run_id} is here, {turns} turns were written{way}")

    in_loop(take())
    return EXIT_OK
