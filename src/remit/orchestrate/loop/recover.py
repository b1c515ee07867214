"""Recovery: fold the journal, find the open commands, and go on.

Rule 1: recovery folds and never decides anew; a new rule never breaks an old run.
Rule 2: what is safe to repeat is dispatched again, under the same id and key; so is what workers perform, who are given
        nothing twice. Anything else is reported as lost.
Rule 3: an ended run only has its parting commands repeated, which are harmless to repeat.
Rule 4: what a halt withheld was not begun: it waits for the resume, and is neither repeated nor lost.
Rule 5: a fork whose copying was cut off is copied to its end before anything else. Until it goes on, nothing of it is
        sent: the resume does that, which follows at once where no person has told the fork something else.
Rule 6: where leases expire, the driver before may still be at work. So a turn with the token of the new lease is written
        before anything is performed: the next turn of the driver before is refused then.
"""

from remit.core.failure import IllegalArrival, RequestRejected
from remit.core.journal.arrivals import RunTaken, ToolOutcomeLost
from remit.core.journal.commands import CallTool, Command, StartChild
from remit.core.run.recovery import Recovery
from remit.kernel.state import is_safe_to_repeat, pinned
from remit.orchestrate.executors.reports import PERFORMED
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.offspring import copy_turns
from remit.orchestrate.loop.runner import Runner

RUN_NOT_FOUND = "RUN_NOT_FOUND"


async def recover(runner: Runner, run_id: str, live: Live | None = None, *, token: int = 0) -> Live:
    """A run that no process drives any more, taken up where its journal ends.

    A Live of the caller's is gone on with as it was loaded, and loaded first if it was not. `token` is that of a lease
    that may expire.
    """
    if live is None or live.state.seq < 0:
        live = await runner.load(run_id, live)
    if live.state.seq < 0:
        raise RequestRejected(RUN_NOT_FOUND, f"run {run_id!r} has no turn in this journal; start it, or correct its id")
    await copy_whole(runner, live)
    if token and live.state.end.ending is None:
        await _fence(runner, live, token)
    live.recovered_seq = live.state.seq
    repeated: list[Command] = []
    lost, was_open = 0, live.state.end.ending is None
    # Hearing of a lost outcome may end the run, which closes commands further down the list.
    for command in [*live.state.commands.open.values(), *live.state.commands.parting]:
        is_parting = command in live.state.commands.parting
        if not is_parting and (live.state.end.ending is not None or command.id not in live.state.commands.open):
            continue
        if is_safe_to_repeat(live.state, command) or _is_carried(runner, live, command):
            if live.state.place.is_copy or pinned(live.state).host is not None:
                continue
            runner.dispatch.send(live, command)
            repeated.append(command)
        elif command.id not in live.state.commands.doubted and command.id not in live.state.commands.withheld:
            await runner.advance(live, ToolOutcomeLost(command.id))
            lost += 1
    if runner.bus is not None and was_open:
        runner.bus.recovered(live.state, _told(live, repeated, lost))
    return live


def _is_carried(runner: Runner, live: Live, command: Command) -> bool:
    """Whether a worker was given a command, or will be now, so that what came of it will be known."""
    commands = live.state.commands
    is_open = command.id not in commands.doubted and command.id not in commands.withheld
    return is_open and runner.dispatch.carries(command)


async def _fence(runner: Runner, live: Live, token: int) -> None:
    """Keep the driver before from writing; where that one has ended the run just now, nothing is left to keep it from."""
    try:
        await runner.rule_on(live, RunTaken(token))
    except IllegalArrival:
        if live.state.end.ending is None:
            raise


async def copy_whole(runner: Runner, live: Live) -> None:
    """Copy a fork to its end whose copying was cut off; the caller holds it. Nothing else may be written before."""
    origin = None if live.state.manifest is None else live.state.manifest.forked_from
    if origin is not None and live.state.seq <= origin.seq:
        await copy_turns(runner.journal, origin, live.run_id, warrant=live.warrant)
        await runner.catch_up(live)


def _told(live: Live, repeated: list[Command], lost: int) -> Recovery:
    mutating = [command for command in repeated if isinstance(command, CallTool) and command.mutating]
    keyed = sum(live.state.derived.tools[command.tool].idempotent for command in mutating)
    # Questions, timers and children are no calls: a person is not asked twice, a timer costs nothing, and a child that was
    # begun is only looked after.
    calls = sum(type(command) in PERFORMED and type(command) is not StartChild for command in repeated)
    return Recovery(live.recovered_seq, calls - len(mutating), keyed, len(mutating) - keyed, lost)
