"""Forking: an ended run is never reopened; it is copied up to a turn, and the copy goes on under its own name."""

from remit.core.arrivals import ResumeRequested
from remit.core.codec import decode_turn
from remit.core.commands import ForkRun
from remit.core.manifest import Origin
from remit.orchestrate.offspring import copy_turns
from remit.orchestrate.ports import Live
from remit.orchestrate.recover import recover
from remit.orchestrate.runner import Runner


async def fork(runner: Runner, run_id: str, command: ForkRun, *, live: Live | None = None) -> Live:
    """Make the fork a retry orders and let it go on. Forking it twice forks it once.

    Whoever holds the fork already passes it as `live`: then it is only resumed, if nobody has resumed it yet.
    """
    if live is None:
        await copy_turns(runner.journal, Origin(run_id, command.id, command.at_seq), command.run_id)
        live = await recover(runner, command.run_id)
    if not await is_resumed(runner, command):
        await runner.advance(live, ResumeRequested(command.by))
    return live


async def is_resumed(runner: Runner, command: ForkRun) -> bool:
    """Whether somebody has let a fork go on."""
    since = [decode_turn(data) for data in await runner.journal.read(command.run_id, after=command.at_seq)]
    return any(isinstance(turn.arrival, ResumeRequested) for turn in since)
