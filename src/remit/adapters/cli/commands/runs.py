"""The command that lists runs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.inputs import wrong_usage
from remit.adapters.cli.options import COMMON, CommonOptions, whole_number
from remit.adapters.cli.response_lines import time_text
from remit.adapters.cli.screen.colours import columns_of, wrapped_text
from remit.adapters.cli.screen.terminal import Terminal
from remit.adapters.cli.screen.widths import fitted
from remit.core.failure import EXIT_FAILED, EXIT_OK, RemitError
from remit.core.journal.codec import plain_value as as_plain
from remit.core.journal.storage import RunEntry
from remit.core.record import Text
from remit.core.run.contract import Mode
from remit.core.run.lifecycle import AgentRole
from remit.observe.plain import printable_line

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

# A screenful; to read further is to look for something.
RUNS_SHOWN = 20


NAME_CHARS_MAX = 80


# How much a list shows of what was asked. Where a line has less room than the least, it stands on a line of its own.
ASKED_CHARS_MAX = 80
ASKED_CHARS_MIN = 24
# As much as is looked at for its first words.
ASKED_READ_CHARS = 2_000


# Where the line of a run goes on, and what stands between its parts.
_SET_IN = 4
_GAP = "  "


def runs(
    *,
    limit: Annotated[
        int, Parameter(converter=whole_number, help="How many to list at most, 20 unless said; 0 lists all.")
    ] = RUNS_SHOWN,
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
            seen = [await system.archive.glimpse(entry) for entry in found]
            asked = [await asked_in(system, entry.run_id, one.asked) for entry, one in zip(found, seen, strict=True)]
        if terminal.is_json:
            for entry, one, words in zip(found, seen, asked, strict=True):
                terminal.values({**as_plain(entry), "role": one.role, "loop_state": one.loop, "asked": words})
        else:
            width = max((len(entry.run_id) for entry in found), default=0)
            columns = columns_of(terminal) if terminal.is_a_terminal else 0
            for entry, one, words in zip(found, seen, asked, strict=True):
                for line in entry_lines(_standing_of(entry, one.role, one.loop, width), words, columns):
                    terminal.line(line)
        return [entry.run_id for entry, one in zip(found, seen, strict=True) if not one.loop]

    unread = in_loop(look())
    for run_id in unread:
        terminal.remark(f"run {run_id} cannot be read; `remit verify {run_id}` says what is wrong")
    return EXIT_FAILED if unread else EXIT_OK


async def asked_in(system: "System", run_id: str, asked: Text) -> str:
    """The first words that a run was asked with, on one line."""
    try:
        text = await system.text(asked, run_id=run_id)
    except RemitError:
        return ""  # It was taken out of the store.
    return printable_line(" ".join(text[:ASKED_READ_CHARS].split()), ASKED_CHARS_MAX)


def entry_lines(standing: str, asked: str, columns: int) -> Iterator[str]:
    """The line of a run, and what was asked behind it, or below it where a terminal of so many columns has no room."""
    room = columns - len(standing) - len(_GAP)
    if not asked or not columns or room >= ASKED_CHARS_MIN:
        yield f"{standing}{_GAP}{fitted(asked, room) if columns else asked}".rstrip()
    else:
        yield from wrapped_text(standing, columns)
        yield f"{' ' * _SET_IN}{fitted(asked, columns - _SET_IN)}"


def _standing_of(entry: RunEntry, role: str, loop: str, width: int) -> str:
    listing = entry.listing
    more = [printable_line(listing.mode, NAME_CHARS_MAX)] if listing.mode not in ("", Mode.CHAT) else []
    more += [f"named {printable_line(listing.name, NAME_CHARS_MAX)}"] if listing.name else []
    more += [f"session {printable_line(listing.session_id, NAME_CHARS_MAX)}"] if listing.session_id else []
    more += [f"child of {printable_line(listing.parent_id, NAME_CHARS_MAX)}"] if listing.parent_id else []
    more += [loop] if loop else []
    more += [f"as {role}"] if role not in ("", AgentRole.GENERAL) else []
    return _GAP.join([run_line(entry, width), *more])


def run_line(entry: RunEntry, width: int = 0) -> str:
    """A run, when it began, its turns, and how it stands."""
    return _GAP.join(
        [
            printable_line(entry.run_id, NAME_CHARS_MAX).ljust(width),
            time_text(entry.listing.started_at_ms),
            f"{entry.turns:>4} turn{'s' if entry.turns != 1 else ' '}",
            entry.ending or (f"waits: {entry.waiting_for}" if entry.waiting_for else "open"),
        ]
    )
