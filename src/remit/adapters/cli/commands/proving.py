"""The commands that prove a run: that it is as it was written, and that the rules lead to it.

Rule 1: nothing here calls a model or a tool, and nothing is repaired.
Rule 2: what is a file is taken as an export of a run, anything else as the name of one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.inputs import InputUnusable, wrong_usage
from remit.adapters.cli.options import COMMON, Common, RunName
from remit.adapters.cli.outputs import STDOUT_NAMES, OutputRefused, write_output
from remit.adapters.cli.screen.colours import print_prose
from remit.adapters.cli.screen.terminal import Terminal, plain_values
from remit.core.failure import EXIT_FAILED, EXIT_OK, RemitError
from remit.core.journal.storage import SignedHead
from remit.core.record import JsonObject, Record
from remit.observe.proof.export import read_export, read_lines, verify_export
from remit.observe.proof.findings import Verification

EXPORT_FILE_UNUSABLE = "EXPORT_FILE_UNUSABLE"
SAME = "same"
# How the name of every signer begins.
DID = "did:key:z"
_SHOWN_CHARS_MAX = 80

RunOrFile: TypeAlias = Annotated[
    str, Parameter(name="RUN", help="A run: its id, the beginning of it, or `last`; or a file made by `remit export`.")
]


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
    common: Common = COMMON,
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
        raise _file_unusable(output, error) from error
    if terminal.is_json:
        terminal.values({"run_id": run_id, "file": str(output), "lines": len(lines)})
    else:
        terminal.line(f"run {run_id} exported to {output}: {len(lines)} lines")
    return EXIT_OK


def verify(
    run: RunOrFile = "",
    /,
    *,
    every: Annotated[
        bool, Parameter(name="--all", help="Every run of the store, the journal of halts, and the log of heads itself.")
    ] = False,
    key: Annotated[
        str, Parameter(help="The did:key to trust; without it this store's own, or for a file whoever signed it.")
    ] = "",
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Check that a run, or an export of one, is as it was written."""
    if key and not key.startswith(DID):
        raise wrong_usage(f"--key {key[:_SHOWN_CHARS_MAX]!r} is no key; one begins with {DID}, as `remit show` has it")
    if every == bool(run):
        raise wrong_usage("give a run or a file, or --all, and not both")
    if every:
        return in_loop(_verify_all(key, common, terminal))
    path = Path(run)
    if _is_file(path):
        found, is_trusted = _verified_file(path, key, common, terminal), bool(key)
        whose = "the signer is whoever the file names; pass --key to say whom you trust"
    else:
        found, is_trusted = in_loop(_verified_run(run, key, common))
        whose = "the key of this store is not one of yours, or is gone; pass --key to say whom you trust"
    if not is_trusted:
        terminal.remark(whose)
    if terminal.is_json:
        terminal.values({"ok": found.ok, "signer_trusted": is_trusted, **_fields(found)})
        return EXIT_OK if found.ok else EXIT_FAILED
    for finding in found.findings:
        terminal.line(f"{finding.code.value}: {finding.message}")
    if found.findings_left_out:
        terminal.line(f"and {found.findings_left_out} more findings")
    how = f"ended as {found.ending}" if found.ending else "is open"
    signed = f"{found.signed_turns} of {found.turns} turns are vouched for by {found.signer or 'nobody'}"
    print_prose(
        terminal,
        f"run {found.run_id} {'is as it was written' if found.ok else 'FAILED verification'}: it {how}; {signed}",
    )
    return EXIT_OK if found.ok else EXIT_FAILED


def replay(run: RunOrFile, /, *, common: Common = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """Decide a run again, with no model and no tool, and compare."""
    path = Path(run)
    export = read_export(_lines_in(path)) if _is_file(path) else None

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
            terminal.values({"run_id": run_id, "ok": is_same, **_fields(found)})
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


async def _verify_all(key: str, common: Common, terminal: Terminal) -> int:
    """Verify everything that a store holds, a line or an object for each run, and one for all of them at the end."""
    from remit.assemble import is_ours, opened_to_read

    runs = failed = 0
    async with opened_to_read(common.settings()) as system:
        is_trusted = bool(key) or (system.archive.has_key and is_ours(common.settings()))
        async for found in system.archive.verify_all(key or None):
            runs, failed = runs + 1, failed + (not found.ok)
            if terminal.is_json:
                terminal.values({"ok": found.ok, **_fields(found)})
            elif not found.ok:
                for finding in found.findings:
                    terminal.line(f"{found.run_id or 'the store'}: {finding.code.value}: {finding.message}")
    if not is_trusted:
        terminal.remark("the key of this store is not one of yours, or is gone; pass --key to say whom you trust")
    if terminal.is_json:
        terminal.values({"ok": not failed, "signer_trusted": is_trusted, "verified": runs, "failed": failed})
    else:
        said = f"{failed} of {runs} FAILED verification" if failed else f"all {runs} are as they were written"
        terminal.line(said)
    return EXIT_FAILED if failed else EXIT_OK


async def _verified_run(name: str, key: str, common: Common) -> tuple[Verification, bool]:
    """The verdict on a run of this store, and whether it is known whose signature counts."""
    from remit.assemble import is_ours, opened_to_read

    async with opened_to_read(common.settings()) as system:
        run_id = (await system.archive.find(name)).run_id
        is_trusted = bool(key) or (system.archive.has_key and is_ours(common.settings()))
        return await system.archive.verify(run_id, key or None), is_trusted


def _verified_file(path: Path, key: str, common: Common, terminal: Terminal) -> Verification:
    """The verdict on a file. Heads that this store has of the same run show whether the file is an older copy."""
    logged: list[SignedHead] = []
    if (common.settings().home / "heads.log").exists():
        try:
            logged = in_loop(_known_heads(path, common))
        except RemitError as error:
            terminal.remark(f"heads known to this store were not compared: {error}")
    return verify_export(_lines_in(path), signer=key or None, logged=logged)


async def _known_heads(path: Path, common: Common) -> list[SignedHead]:
    from remit.assemble import opened_to_read

    async with opened_to_read(common.settings()) as system:
        return list(await system.store.log.heads(read_export(_lines_in(path)).run_id))


def _is_file(path: Path) -> bool:
    """Whether a file is named; what no file can be called names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _lines_in(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            yield from read_lines(stream)
    except OSError as error:
        raise _file_unusable(path, error) from error


def _file_unusable(path: Path, error: OSError | ValueError) -> InputUnusable:
    # A ValueError is a path that no file can have, for instance one with a zero byte.
    why = getattr(error, "strerror", None) or error
    return InputUnusable(EXPORT_FILE_UNUSABLE, f"{str(path)!r}: {why}", {"file": str(path)})


def _fields(record: Record) -> JsonObject:
    fields = plain_values(record)
    assert isinstance(fields, dict), "a record has fields"
    return fields
