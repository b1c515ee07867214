"""The command that makes anew whatever a store derives from turns."""

from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK


def rebuild(*, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """Make the index, sessions and quotas of a store anew from its turns."""

    async def make() -> int:
        from remit.assemble import reopened_store, system_on

        store = reopened_store(common.settings(), mends=True)
        try:
            rebuilt = await system_on(store).rebuild()
        finally:
            await store.close()
        if terminal.is_json:
            left = {"unread": list(rebuilt.unread), "nameless": rebuilt.nameless, "untold": list(rebuilt.untold)}
            terminal.values({"runs": rebuilt.runs, **left})
        else:
            terminal.line(f"{rebuilt.runs} runs are listed as their turns tell")
            for run_id in rebuilt.unread:
                terminal.line(f"run {run_id} cannot be read and is listed as before; `remit verify {run_id}` says why")
            for run_id in rebuilt.untold:
                gone = "has no turn and is listed no more; `remit verify --all` says whether turns of it are missing"
                terminal.line(f"run {run_id} {gone}")
            if rebuilt.nameless:
                what = "no run that could be listed; `remit verify --all` says which runs are missing"
                terminal.line(f"{rebuilt.nameless} journals name {what}")
        return EXIT_FAILED if rebuilt.unread or rebuilt.nameless or rebuilt.untold else EXIT_OK

    return in_loop(make())
