"""The command that explains a run in one sentence."""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions, RunName
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import print_prose
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.observe.views.sentence import sentence


def explain(
    run: RunName, /, *, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]
) -> int:
    """Say in one sentence what a run was allowed, did, spent, and why it ended."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            explained = (await system.archive.told((await system.archive.find(run)).run_id)).explanation
        said = sentence(explained)
        if terminal.is_json:
            terminal.values({"run_id": explained.run_id, "sentence": said, "explanation": explained})
        else:
            print_prose(terminal, said)

    in_loop(look())
    return EXIT_OK
