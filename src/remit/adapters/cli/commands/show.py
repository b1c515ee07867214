"""The command that shows one run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions, FullOption, RunName, whole_number
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import Ink, columns_of, print_lines, wrapped_lines
from remit.adapters.cli.screen.glance import glance_at, glance_lines, glance_values
from remit.adapters.cli.screen.response_lines import LINE_CHARS_MAX
from remit.adapters.cli.screen.single_turn import folded_lines, turn_lines, turn_values
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.core.journal.turn import Turn

if TYPE_CHECKING:
    from remit.orchestrate.facade import System


def show(
    run: RunName,
    /,
    *,
    turn: Annotated[
        int | None, Parameter(converter=whole_number, help="Only this turn, with everything it holds.")
    ] = None,
    full: FullOption = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Show one run: how it stands, what to do next, what it called and spent, its answer."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            entry = await system.archive.find(run)
            run_id = entry.run_id
            if turn is not None:
                await _show_turn(terminal, system, (await system.archive.history(run_id)).turns, turn)
                return
            seen = await glance_at(system, run_id, is_full=full)
            doubt = "" if seen.entry.ending else await system.archive.in_doubt(entry)
        if doubt:
            terminal.remark(f"run {run_id} is not gone on with: {doubt}; see `remit restore {run_id}`")
        if terminal.is_json:
            terminal.values(glance_values(seen))
            return
        print_lines(terminal, glance_lines(terminal, seen))
        if seen.response.content:
            terminal.line("")
            if seen.response.error is not None:
                terminal.line(f"{'finished' if seen.explanation.steps else 'said'} last, and no answer:")
            content = ([(line, Ink.PLAIN)] for line in folded_lines(seen.response.content, LINE_CHARS_MAX))
            print_lines(terminal, wrapped_lines(terminal, content, 0))

    in_loop(look())
    return EXIT_OK


async def _show_turn(terminal: Terminal, system: "System", turns: Sequence[Turn], seq: int) -> None:
    if not 0 <= seq < len(turns):
        raise wrong_usage(f"--turn {seq} is none of this run; its turns are 0 to {len(turns) - 1}")
    values = await turn_values(turns[seq], system.text)
    if terminal.is_json:
        terminal.values(values)
    else:
        print_lines(terminal, turn_lines(values, columns_of(terminal)))
