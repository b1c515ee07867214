"""The command that takes out of a run what should never have been written."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import InputUnusable, wrong_usage
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, RunName, keyboard_user
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, RemitError

# Less would be found in many words, and every turn would lose some.
TEXT_CHARS_MIN = 4
TEXT_BYTES_MAX = 1024 * 1024


def redact(
    run: RunName,
    /,
    *,
    why: Annotated[str, Parameter(help="Why it is taken out; readers of the run are told.")],
    text_file: Annotated[Path | None, Parameter(help="A file with the text to take out, in each of its forms.")] = None,
    stdin: Annotated[bool, Parameter(help="Read the text from standard input.", negative="")] = False,
    pattern: Annotated[
        str, Parameter(help="Take out what looks like a secret of this kind, such as github_token, or `any`.")
    ] = "",
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Take a secret out of a run that was written before; the chain still verifies."""
    if sum((text_file is not None, stdin, bool(pattern))) != 1:
        raise wrong_usage("say what to take out with one of --text-file, --stdin and --pattern")
    text = "" if pattern else _text(text_file)

    async def take_out() -> int:
        from remit.assemble import reopened_store, system_on, vault_for

        settings, who = common.settings(), by or keyboard_user()
        vault = None
        # Secrets that cannot be read do not prevent a redaction.
        with suppress(RemitError):
            vault = vault_for(settings)
        if vault is not None:
            vault.check_name("by", who)
        reason = why if vault is None else vault.masker.masked(why)
        system = system_on(reopened_store(settings))
        try:
            run_id = (await system.archive.find(run)).run_id
            done = await system.redact(run_id, text=text, kind=pattern, by=who, why=reason)
        finally:
            await system.close()
        if terminal.is_json:
            counts = {"runs": done.runs, "turns": done.turns, "texts": done.texts, "cleared": done.is_cleared}
            terminal.values({"run_id": run_id, **counts})
        elif done.turns:
            terminal.line(f"run {run_id} redacted: {done.turns} turns written anew, {done.texts} texts removed")
        else:
            terminal.line(f"run {run_id} holds nothing of it; nothing was changed")
        if not done.is_cleared:
            terminal.remark(
                "another process has the store open, and its log still holds what was taken out; run it again"
            )
        return EXIT_OK if done.is_cleared else EXIT_FAILED

    return in_loop(take_out())


def _text(path: Path | None) -> str:
    try:
        data = sys.stdin.buffer.read(TEXT_BYTES_MAX + 1) if path is None else path.read_bytes()
        text = data.decode().strip("\r\n")
    except (OSError, ValueError) as error:
        raise InputUnusable("REDACT_TEXT_UNUSABLE", f"the text to take out cannot be read: {error}") from error
    if not TEXT_CHARS_MIN <= len(text) <= TEXT_BYTES_MAX:
        limits = f"text_chars_min={TEXT_CHARS_MIN}, text_chars_max={TEXT_BYTES_MAX}"
        raise InputUnusable("REDACT_TEXT_UNUSABLE", f"the text to take out has {len(text)} characters; {limits}")
    return text
