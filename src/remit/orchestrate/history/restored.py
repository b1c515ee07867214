"""Restoring: what is in doubt after a database was put back, and how a person lets such a run go on.

Rule 1: a run of which signed turns are missing is never gone on with. A person may accept the loss, and then a fork of it
        goes on: it names the run, the person and the reason, and asks a person before it changes anything.
Rule 2: what the missing turns did is not known, and nothing here guesses. What the run was about to do when the backup was
        made is listed, because it may have been done.
"""

from remit.core.failure import RequestRejected
from remit.core.journal.commands import AskHuman, CallTool
from remit.core.journal.storage import SignedHead
from remit.core.run.manifest import EarlierEffect
from remit.kernel.state import RunState
from remit.observe.history import fold, read_history
from remit.observe.proof.findings import RunInDoubt, StoreInDoubt
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.ports import Catalogue, HeadLog, Turns

RUN_WHOLE = "RUN_WHOLE"
REASON_MISSING = "REASON_MISSING"


async def doubts(journal: Turns, catalogue: Catalogue, log: HeadLog, run_id: str = "") -> StoreInDoubt:
    """What is in doubt: of one run, or of all."""
    lost = await log.losses()
    custody = Custody(journal, catalogue, log)
    named = [entry.run_id for entry in await catalogue.entries()] if not run_id else [run_id]
    behind = [found for name in named if (found := await _doubt(journal, custody, name)) is not None]
    gone = [] if run_id else [await log.last(name) for name in lost.missing]
    missing = tuple(RunInDoubt(head.run_id, -1, head.seq, head.ending) for head in gone if head is not None)
    return StoreInDoubt(tuple(behind), missing, lost.is_log_lost, lost.is_log_damaged)


async def _doubt(journal: Turns, custody: Custody, run_id: str) -> RunInDoubt | None:
    data = await journal.read(run_id)
    head = await custody.beyond(run_id, len(data) - 1)
    why = await custody.log_doubt(run_id, len(data) - 1) if head is None else ""
    if head is None and not why:
        return None
    state = fold(read_history(run_id, data))
    if head is None:
        # Of a run that has ended nothing is left to be done.
        pending = tuple(_pending(state))
        return None if state.end.ending is not None else RunInDoubt(run_id, state.seq, state.seq, "", pending, why)
    last = min(len(data) - 1, head.seq - 1)
    return RunInDoubt(run_id, last, head.seq, head.ending, tuple(_pending(state)))


def _pending(state: RunState) -> list[str]:
    """The mutating calls that a run had ordered, or was asking a person about."""
    found = []
    for command in state.commands.open.values():
        if isinstance(command, CallTool) and command.mutating:
            found.append(f"{command.tool} ({command.key}) was under way")
        elif isinstance(command, AskHuman) and command.packet is not None:
            found.append(f"{command.packet.call.tool} was held for a person")
    return found


def lost_turns(run_id: str, last: int, head: SignedHead | None, why: str, doubt: str = "") -> EarlierEffect:
    """What the fork of a run with missing turns is told; refuses where nothing is missing, or nobody says why.

    `doubt` says why turns may be missing where that is not known.
    """
    if head is None and not doubt:
        message = f"run {run_id} has every turn that was signed; there is nothing to restore, so resume it"
        raise RequestRejected(RUN_WHOLE, message, {"run_id": run_id})
    if not why.strip():
        message = f"to accept that turns of run {run_id} are missing takes a reason; say why with --why"
        raise RequestRejected(REASON_MISSING, message, {"run_id": run_id})
    if head is None:
        how = f"turns of it from {last + 1} on may be missing, and what they did is unknown: {doubt}"
        return EarlierEffect(run_id, seq=last + 1, how=how)
    first = min(last + 1, head.seq)
    return EarlierEffect(
        run_id, seq=first, how=f"turns {first} to {head.seq} of it are missing, and what they did is unknown"
    )
