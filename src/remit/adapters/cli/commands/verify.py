"""The command that proves that a run is as it was written. It calls no model and no tool, and repairs nothing."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.export_files import RunOrFile, is_file, lines_in, plain_fields
from remit.adapters.cli.arguments.inputs import expect_did, wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import print_prose
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, RemitError
from remit.core.journal.storage import SignedHead
from remit.observe.proof.export import read_export, verify_export
from remit.observe.proof.findings import Verification


def verify(
    run: RunOrFile = "",
    /,
    *,
    every: Annotated[
        bool, Parameter(name="--all", help="Every run of the store, the journal of halts, and the log of heads itself.")
    ] = False,
    key: Annotated[
        str, Parameter(help="The did:key to trust; without it this store's own, or for a file its signer.")
    ] = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Check that a run, or an export of one, is as it was written."""
    if key:
        expect_did(key)
    if every == bool(run):
        raise wrong_usage("give a run or a file, or --all, and not both")
    if every:
        return in_loop(_verify_all(key, common, terminal))
    path = Path(run)
    if is_file(path):
        found, is_trusted = _verified_file(path, key, common, terminal), bool(key)
        whose = "the signer is the one that the file names; pass --key to say whom you trust"
    else:
        found, is_trusted = in_loop(_verified_run(run, key, common))
        whose = "the key of this store is not one of yours, or is gone; pass --key to say whom you trust"
    if not is_trusted:
        terminal.remark(whose)
    if terminal.is_json:
        terminal.values({"ok": found.ok, "signer_trusted": is_trusted, **plain_fields(found)})
        return EXIT_OK if found.ok else EXIT_FAILED
    for finding in found.findings:
        terminal.line(f"{finding.code.value}: {finding.message}")
    if found.findings_left_out:
        terminal.line(f"and {found.findings_left_out} more findings")
    how = f"ended as {found.ending}" if found.ending else "is open"
    signed = f"{found.signed_turns} of {found.turns} turns are vouched for by {found.signer or 'no signer'}"
    print_prose(
        terminal,
        f"run {found.run_id} {'is as it was written' if found.ok else 'FAILED verification'}: it {how}; {signed}",
    )
    return EXIT_OK if found.ok else EXIT_FAILED


async def _verify_all(key: str, common: CommonOptions, terminal: Terminal) -> int:
    """Verify everything that a store holds, a line or an object for each run, and one for all of them at the end."""
    from remit.assemble import is_ours, opened_to_read

    runs = failed = 0
    async with opened_to_read(common.settings()) as system:
        is_trusted = bool(key) or (system.archive.has_key and is_ours(common.settings()))
        async for found in system.archive.verify_all(key or None):
            runs, failed = runs + 1, failed + (not found.ok)
            if terminal.is_json:
                terminal.values({"ok": found.ok, **plain_fields(found)})
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


async def _verified_run(name: str, key: str, common: CommonOptions) -> tuple[Verification, bool]:
    """The verdict on a run of this store, and whether it is known whose signature counts."""
    from remit.assemble import is_ours, opened_to_read

    async with opened_to_read(common.settings()) as system:
        run_id = (await system.archive.find(name)).run_id
        is_trusted = bool(key) or (system.archive.has_key and is_ours(common.settings()))
        return await system.archive.verify(run_id, key or None), is_trusted


def _verified_file(path: Path, key: str, common: CommonOptions, terminal: Terminal) -> Verification:
    """The verdict on a file. Heads that this store has of the same run show whether the file is an older copy."""
    logged: list[SignedHead] = []
    settings = common.settings()
    if settings.store or (settings.home / "heads.log").exists():
        try:
            logged = in_loop(_known_heads(path, common))
        except RemitError as error:
            terminal.remark(f"heads known to this store were not compared: {error}")
    return verify_export(lines_in(path), signer=key or None, logged=logged)


async def _known_heads(path: Path, common: CommonOptions) -> list[SignedHead]:
    from remit.assemble import opened_to_read

    async with opened_to_read(common.settings()) as system:
        return list(await system.store.log.heads(read_export(lines_in(path)).run_id))
