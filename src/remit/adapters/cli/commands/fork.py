"""The command that reopens a run: as a fork of it, from one of its turns.

Rule 1: the run itself stays as it is, ended or open; the fork says where it came from, and why.
"""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.answers.signal_delivery import at_rest
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, RunName, keyboard_user
from remit.adapters.cli.screen.narration import Narrator, narrated
from remit.adapters.cli.screen.step_lines import answer_with_steps, caught_up
from remit.adapters.cli.screen.terminal import Terminal


def fork(
    run: RunName,
    /,
    *,
    at: Annotated[
        int | None,
        Parameter(
            help="The number of the last turn to keep, from 0; without it the last one, or the last before its ending."
        ),
    ] = None,
    why: Annotated[
        str, Parameter(name=("--why", "--reason"), help="Why; the journal keeps it, and the model is told.")
    ] = "",
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Copy a run up to a turn and let the copy go on; the run stays as it is."""
    narrator = Narrator(terminal)

    async def copy() -> int:
        from remit.assemble import reopened

        async with reopened(common.settings(), watcher=narrator) as system:
            run_id = (await system.archive.find(run)).run_id
            heard = await system.fork(run_id, by=by or keyboard_user(), at=at, why=why)
            narrator.run_id = heard.fork_id
            response = await at_rest(system, heard.fork_id)
            # A fork begins before there is a listener to it; what it came to is read off its turns.
            teller = await caught_up(system, heard.fork_id, terminal)
            return await answer_with_steps(terminal, system, response, teller, said=narrator.shown)

    return narrated(narrator, copy())
