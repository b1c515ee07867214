"""The command that lists runs."""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.inputs import wrong_usage
from remit.adapters.cli.options import COMMON, CommonOptions
from remit.adapters.cli.response_lines import time_text
from remit.adapters.cli.screen.colours import Ink, print_lines, wrapped
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.core.journal.codec import plain_value as as_plain
from remit.core.journal.storage import RunEntry
from remit.core.run.contract import Mode
from remit.core.run.lifecycle import AgentRole
from remit.observe.plain import printable_line

# A screenful; to read further is to look for something.
RUNS_SHOWN = 20


NAME_CHARS_MAX = 80


# Where the line of a run goes on.
_SET_IN = 4


def runs(
    *,
    limit: Annotated[int, Parameter(help="How many to list at most, 20 unless said; 0 lists all.")] = RUNS_SHOWN,
    open: Annotated[bool, Parameter(help="Only runs that have not ended.")] = False,  # noqa: A002  # its name at the door
    waiting: Annotated[bool, Parameter(help="Only runs that wait for a person.")] = False,
    children: Annotated[bool, Parameter(help="Runs that other runs started, too.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """List the runs, newest first."""
    if limit < 0:
        raise wrong_usage(f"--limit {limit} is less than 0; 0 lists all")

    async def look() -> list[str]:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            found = await system.archive.runs(open_only=open, waiting_only=waiting, with_children=children, limit=limit)
            loops = [await system.archive.loop_of(entry) for entry in found]
        if terminal.is_json:
            for entry, (role, loop) in zip(found, loops, strict=True):
                terminal.values({**as_plain(entry), "role": role, "loop_state": loop})
        else:
            lines = (_entry_line(entry, *told) for entry, told in zip(found, loops, strict=True))
            print_lines(terminal, wrapped(terminal, ([(line, Ink.PLAIN)] for line in lines), _SET_IN))
        return [entry.run_id for entry, (_, loop) in zip(found, loops, strict=True) if not loop]

    unread = in_loop(look())
    for run_id in unread:
        terminal.remark(f"run {run_id} cannot be read; `remit verify {run_id}` says what is wrong")
    return EXIT_FAILED if unread else EXIT_OK


def _entry_line(entry: RunEntry, role: str = "", loop: str = "") -> str:
    listing = entry.listing
    more = [printable_line(listing.mode, NAME_CHARS_MAX)] if listing.mode not in ("", Mode.CHAT) else []
    more += [f"named {printable_line(listing.name, NAME_CHARS_MAX)}"] if listing.name else []
    more += [f"session {printable_line(listing.session_id, NAME_CHARS_MAX)}"] if listing.session_id else []
    more += [f"child of {printable_line(listing.parent_id, NAME_CHARS_MAX)}"] if listing.parent_id else []
    more += [loop] if loop else []
    more += [f"as {role}"] if role not in ("", AgentRole.GENERAL) else []
    return "  ".join(
        [
            printable_line(entry.run_id, NAME_CHARS_MAX),
            time_text(listing.started_at_ms),
            f"{entry.turns:>4} turn{'s' if entry.turns != 1 else ' '}",
            _standing(entry),
            *more,
        ]
    )


def _standing(entry: RunEntry) -> str:
    return entry.ending or (f"waits: {entry.waiting_for}" if entry.waiting_for else "open")
