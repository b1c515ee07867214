"""Repair of a store: what is in doubt after a database was put back, and whatever is derived from turns, made anew.

Rule 1: a run of which signed turns are missing is never gone on with. A person may accept the loss, and then a fork of it
        goes on: it names the run, the person and the reason, and asks a person before it changes anything.
Rule 2: what the missing turns did is not known, and nothing here guesses. What the run was about to do when the backup was
        made is listed, because it may have been done.
Rule 3: turns, texts, signed heads, entries of the inbox that were not settled, refusals, receipts of people and what
        deleted runs cost are inputs: they are read and never made. What is derived from them is made anew: the index of runs,
        places of sessions, quotas, and what became of entries.
Rule 4: a run that cannot be folded, or whose place in a session another has, is left as it is, and named. One that is listed
        and has no turn is listed no more, and named. A run that goes on meanwhile is left to its driver.
"""

from collections.abc import Sequence

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.commands import AskHuman, CallTool
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import Derived, SignedHead
from remit.core.record import Record
from remit.core.run.halt import HALTS
from remit.core.run.manifest import EarlierEffect
from remit.kernel.state import RunState, pinned
from remit.observe.linked_turns import fold, read_history
from remit.observe.proof.findings import RunInDoubt, StoreInDoubt
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.loop.durability import answer_of, run_listing, standing_after
from remit.orchestrate.ports import Catalogue, HeadLog, Store, Turns
from remit.orchestrate.tenants.quota_ledger import Quotas

RUN_WHOLE = "RUN_WHOLE"
REASON_MISSING = "REASON_MISSING"


async def doubts(journal: Turns, catalogue: Catalogue, log: HeadLog, run_id: str = "") -> StoreInDoubt:
    """The doubts that missing turns leave: of one run, or of all."""
    lost = await log.losses()
    custody = Custody(journal, catalogue, log)
    named = [entry.run_id for entry in await catalogue.entries()] if not run_id else [run_id]
    behind = [found for name in named if (found := await _doubt(journal, custody, name)) is not None]
    missing = [] if run_id else [_gone(name, await log.last(name)) for name in lost.missing]
    return StoreInDoubt(tuple(behind), tuple(missing), lost.is_log_lost, lost.is_log_damaged)


def _gone(run_id: str, head: SignedHead | None) -> RunInDoubt:
    """A run that is gone; of one whose heads went with it, it is not known how far it came."""
    return RunInDoubt(run_id, -1, -1) if head is None else RunInDoubt(run_id, -1, head.seq, head.ending)


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
        return (
            None
            if state.end.ending is not None
            else RunInDoubt(run_id=run_id, last=state.seq, signed=state.seq, ending="", may_have_done=pending, why=why)
        )
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
    """What the fork of a run with missing turns is told; refuses where nothing is missing, or no reason is given.

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


# So many runs are written at once, so that others wait for no longer than that takes.
_AT_ONCE = 100


class Rebuilt(Record):
    """What came of making everything anew: how many runs are listed again, and which could not be."""

    runs: int
    unread: tuple[str, ...] = ()
    # Journals that tell no name, or one that another has.
    nameless: int = 0
    # Runs that were listed, and that no turn tells of.
    untold: tuple[str, ...] = ()


async def rebuild(store: Store, quotas: Quotas) -> Rebuilt:
    """Make anew whatever is derived from turns."""
    made, unread, renewed = list[Derived](), list[str](), 0
    nameless, untold = await store.index.mend(), await store.index.strike()
    for name in await store.index.names():
        if name == HALTS:
            continue  # The journal of halts is no run.
        try:
            made.append(derived_from(name, await store.journal.read(name)))
        except InvariantBroken:
            unread.append(name)
    for _ in range(
        2
    ):  # A place in a session may be free once the run that had it without right is listed as it should be.
        left = list[Derived]()
        for start in range(0, len(made), _AT_ONCE):
            some = made[start : start + _AT_ONCE]
            listed = frozenset(await store.index.renew(some))
            renewed += len(listed)
            left += [run for run in some if run.run_id not in listed]
        made = left
    unread += [run.run_id for run in made if len(await store.journal.read(run.run_id)) == run.turns]
    await quotas.rebuild()
    await store.index.sum_up()
    return Rebuilt(renewed, tuple(unread), nameless, tuple(untold))


def derived_from(run_id: str, data: Sequence[bytes]) -> Derived:
    """What a store knows of a run beyond these turns of it; raises InvariantBroken where they are none."""
    history = read_history(run_id, data)
    turns = history.turns
    manifest = pinned(fold(history))
    copied = -1 if manifest.forked_from is None else manifest.forked_from.seq
    return Derived(
        run_id=run_id,
        turns=len(turns),
        listing=run_listing(manifest, turns[0].at_ms),
        standing=standing_after(turns),
        ended_at_ms=next(
            (turn.at_ms for turn in turns if any(isinstance(one, RunEnded) for one in turn.decisions)), None
        ),
        heard=tuple((turn.heard, answer_of(turn)) for turn in turns if turn.heard and turn.seq > copied),
    )
