"""Recovery: fold the journal, find the open commands, and go on.

Rule 1: recovery folds and never decides anew; a new rule never breaks an old run.
Rule 2: what is safe to repeat is dispatched again, under the same id and key; anything else is reported as lost.
Rule 3: an ended run only has its parting commands repeated, which are harmless to repeat.
"""

from remit.core.arrivals import ToolOutcomeLost
from remit.kernel.state import is_safe_to_repeat
from remit.orchestrate.ports import Live
from remit.orchestrate.runner import Runner


async def recover(runner: Runner, run_id: str) -> Live:
    """A run that nobody is driving any more, taken up where its journal ends."""
    live = await runner.load(run_id)
    for command in [*live.state.open.values(), *live.state.parting]:
        if live.state.ending is not None and command not in live.state.parting:
            continue
        if is_safe_to_repeat(live.state, command):
            runner.dispatch.send(live, command)
        elif command.id not in live.state.doubted:
            await runner.advance(live, ToolOutcomeLost(command.id))
    return live
