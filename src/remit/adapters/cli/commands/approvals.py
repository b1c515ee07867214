"""The command that lists what runs ask people."""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions, FullOption
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import SET_IN, print_lines, wrapped_lines
from remit.adapters.cli.screen.packet_lines import VALUE_CHARS_MAX, asked_lines
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.core.record import replace
from remit.observe.people.packets import grouped


def approvals(
    packet: Annotated[
        str, Parameter(name="ID", help="Only this question, or with a + all held together; no value is cut.")
    ] = "",
    /,
    *,
    full: FullOption = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """List what runs ask people."""

    async def look() -> bool:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            asked = await (system.archive.packet(packet) if packet else system.archive.approvals())
            is_whole = True
            for entry in await system.archive.runs(waiting_only=True, with_children=True):
                if doubt := await system.archive.in_doubt(entry):
                    is_whole = False
                    terminal.remark(f"run {entry.run_id} hears no answer: {doubt}; see `remit restore {entry.run_id}`")
            items = [] if packet and not system.queues.limits else await system.queues.items()
            outside = {item.id for item in items if item.is_outside}
            people = {one.name: one.answered_by for one in system.queues.limits}
            asked = [replace(one, is_outside=one.id in outside, answered_by=people.get(one.queue, ())) for one in asked]
        left = [item for item in items if (item.doubted or item.found) and not packet]
        if terminal.is_json:
            for row in (*asked, *left):
                terminal.values(row)
            return is_whole
        for together in grouped(asked):
            lines = asked_lines(together, value_chars_max=0 if packet else VALUE_CHARS_MAX, is_full=full)
            print_lines(terminal, wrapped_lines(terminal, lines, SET_IN))
        if not asked and is_whole:
            terminal.remark("no run asks anything")
        for item in left:
            terminal.remark(
                f"run {item.run_id} {item.summary}; see `remit show {item.run_id}`, and take note of it with "
                f"`remit queues ack {item.run_id}`"
            )
        return is_whole

    # A list that leaves out what a damaged run asks is no answer to a program that looks for questions.
    return EXIT_OK if in_loop(look()) else EXIT_FAILED
