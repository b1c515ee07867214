"""The commands that look at runs."""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.looping import in_loop
from remit.adapters.cli.options import COMMON, Common, RunName
from remit.adapters.cli.responses import moment, question_lines
from remit.adapters.cli.terminal import Terminal, json_line
from remit.core.arrivals import ToolFailed
from remit.core.failure import EXIT_OK
from remit.core.storage import RunEntry
from remit.observe.plain import plain
from remit.observe.sentence import sentence
from remit.observe.trace import trace_lines, trace_rows

# A screenful; nobody reads further without looking for something.
RUNS_SHOWN = 20
# Enough to recognise what went wrong; `remit trace --json` has all of it.
ERROR_CHARS_SHOWN = 300


def runs(
    *,
    limit: Annotated[int, Parameter(help="How many to list at most, 20 unless said; 0 lists all.")] = RUNS_SHOWN,
    open: Annotated[bool, Parameter(help="Only runs that have not ended.")] = False,  # noqa: A002  # its name at the door
    waiting: Annotated[bool, Parameter(help="Only runs that wait for a person.")] = False,
    children: Annotated[bool, Parameter(help="Runs that other runs started, too.")] = False,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """List the runs, newest first."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            found = await system.archive.runs(
                open_only=open, waiting_only=waiting, with_children=children, limit=max(limit, 0)
            )
        for entry in found:
            if terminal.is_json:
                terminal.values(entry)
            else:
                terminal.line(_entry_line(entry))

    in_loop(look())
    return EXIT_OK


def show(run: RunName, /, *, common: Common = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """Show one run: how it stands, what it called and spent, and its answer."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            told = await system.archive.told((await system.archive.find(run)).run_id)
            response = await system.result(told.entry.run_id)
            asked = [] if response.waiting_for is None else await question_lines(system, told.entry.run_id)
        explained = told.explanation
        if terminal.is_json:
            terminal.values({"entry": told.entry, "response": response, "explanation": explained})
            return
        standing = explained.standing
        terminal.line(f"run       {told.entry.run_id}")
        terminal.line(f"started   {moment(told.entry.listing.started_at_ms)} for {told.request.user_id or 'nobody'}")
        terminal.line(f"stands    {_standing(told.entry, standing.status, standing.reason)}")
        terminal.line(f"session   {told.request.session_id or '-'}")
        terminal.line(f"boundary  {explained.allowed.boundary} ({', '.join(explained.allowed.tools) or 'no tools'})")
        terminal.line(f"models    {', '.join(explained.models)}")
        terminal.line(f"path      {' > '.join(explained.path)}")
        for call in response.tool_calls_made:
            terminal.line(f"call      {call.name} {json_line(call.arguments)}: {call.status.value}")
        for turn in told.history.turns:
            if isinstance(turn.arrival, ToolFailed):
                terminal.line(f"failed    {turn.arrival.code}: {plain(turn.arrival.error, ERROR_CHARS_SHOWN)}")
        for spent in explained.spent:
            terminal.line(f"spent     {spent.used} of {spent.cap} {spent.dimension}")
        for line in asked:
            terminal.line(line)
        if response.content:
            terminal.line("")
            terminal.text(response.content)

    in_loop(look())
    return EXIT_OK


def explain(run: RunName, /, *, common: Common = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """Say in one sentence what a run was allowed, did, spent, and why it ended."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            explained = (await system.archive.told((await system.archive.find(run)).run_id)).explanation
        said = sentence(explained)
        if terminal.is_json:
            terminal.values({"run_id": explained.run_id, "sentence": said, "explanation": explained})
        else:
            terminal.line(said)

    in_loop(look())
    return EXIT_OK


def trace(run: RunName, /, *, common: Common = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """List the turns of a run: what arrived, what was ruled, what was ordered."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            turns = (await system.archive.history((await system.archive.find(run)).run_id)).turns
        if terminal.is_json:
            for row in trace_rows(turns):
                terminal.values(row)
        else:
            for line in trace_lines(turns):
                terminal.line(line)

    in_loop(look())
    return EXIT_OK


def _entry_line(entry: RunEntry) -> str:
    listing = entry.listing
    more = [f"session {listing.session_id}"] if listing.session_id else []
    more += [f"child of {listing.parent_id}"] if listing.parent_id else []
    return "  ".join([entry.run_id, moment(listing.started_at_ms), f"{entry.turns:>4} turns", _standing(entry), *more])


def _standing(entry: RunEntry, status: str = "open", reason: str = "") -> str:
    if entry.ending:
        return f"{entry.ending}: {reason}" if reason else entry.ending
    return f"waits: {entry.waiting_for}" if entry.waiting_for else status
