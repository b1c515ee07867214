"""Forking: a run is never reopened; it is copied up to a turn, and the copy goes on under its own name.

Rule 1: the origin stays as it is, open or ended. A retry is ordered by a turn of it, any other fork leaves no trace there.
Rule 2: what the origin and its children did after that turn, or were doing, the fork is told: it asks a person before it
        changes the like. Of an origin that is open it is unknown what it will do, so its fork asks before any change.
Rule 3: what a person tells a fork while it is being made is heard and holds: a fork that was paused, cancelled or resumed
        by then is not let go on in the name of the person who asked for it.
Rule 4: a fork that was cut off while it was copied, or before it went on, is copied to its end and let go on by the process that
        takes it up, in the name of the person who asked for it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from remit.core.failure import IllegalArrival, RequestRejected
from remit.core.journal.arrivals import CancelRequested, PauseRequested, ResumeRequested
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import CallTool, ForkRun, StartChild
from remit.core.journal.rulings import OUTCOME_UNKNOWN, UNVERIFIED, Rung
from remit.core.journal.storage import Warrant
from remit.core.journal.turn import Turn
from remit.core.run.manifest import EarlierEffect, Origin
from remit.kernel.state import RunState, pinned
from remit.kernel.traces import CallTrace
from remit.observe.linked_turns import fold as folded
from remit.observe.linked_turns import read_history
from remit.observe.views.late_outcomes import late_outcome
from remit.orchestrate.facts.texts import name, note
from remit.orchestrate.loop.child_runs import run_beneath
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.offspring import copy_turns
from remit.orchestrate.loop.recover import recover
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.ports import Journal

FORK_INVALID = "FORK_INVALID"
# A retry stands in the journal of its run, and its fork is made when that is resumed.
FORK_DEFERRED = "FORK_DEFERRED"
# What is said of an effect whose outcome is unknown.
_IN_DOUBT = "in doubt"
# What is said of one that a halt keeps from being sent.
_WITHHELD = "held back by a halt, and not sent by then"
_NOTHING_BEFORE = -1
# Codes of calls that were observed and may have happened.
_OPEN = (UNVERIFIED, OUTCOME_UNKNOWN)


async def fork(runner: Runner, run_id: str, command: ForkRun, *, live: Live | None = None) -> Live:
    """Make the fork a retry orders and let it go on. Forking it twice forks it once.

    A caller that holds the fork already passes it as `live`: then it is only resumed, if it was not resumed yet.
    """
    if live is None:
        origin = origin_of(run_id, command, runner.clock.now_ms())
        await begin_fork(runner.journal, origin, command.run_id)
        live = await recover(runner, command.run_id)
    if awaits_resume(live.state):
        await runner.advance(live, ResumeRequested(command.by))
    return live


def origin_of(run_id: str, command: ForkRun, now_ms: int) -> Origin:
    """Where the fork that a retry orders comes from."""
    return Origin(
        run_id=run_id, command_id=command.id, seq=command.at_seq, by=command.by, why=command.why, at_ms=now_ms
    )


def origin_at(state: RunState, at_seq: int | None, by: str, why: str, now_ms: int) -> Origin:
    """Where a fork of this run at a turn comes from, its last one without a turn; refuses a turn it cannot go on from."""
    last = state.seq if state.end.ending is None else state.end.seq - 1
    if pinned(state).host is not None:
        message = f"the calls of run {state.run_id} are made elsewhere, so a fork could not go on; start it anew"
        raise RequestRejected(FORK_INVALID, message, {"run_id": state.run_id})
    if last < 0:
        message = f"run {state.run_id} ended in its first turn, so there is nothing to go on from; submit it anew"
        raise RequestRejected(FORK_INVALID, message, {"run_id": state.run_id})
    seq = last if at_seq is None else at_seq
    if type(seq) is not int or not 0 <= seq <= last:
        what = "its last" if state.end.ending is None else "the last before its ending"
        message = f"run {state.run_id} cannot be forked at turn {str(at_seq)[:80]}; take 0 to {last}, which is {what}"
        raise RequestRejected(FORK_INVALID, message, {"run_id": state.run_id, "limit": last})
    return Origin(run_id=state.run_id, command_id="", seq=seq, by=name(by), why=note(why), at_ms=now_ms)


async def begin_fork(
    journal: Journal,
    origin: Origin,
    fork_id: str,
    lost: tuple[EarlierEffect, ...] = (),
    warrant: Warrant | None = None,
) -> None:
    """Copy a run up to a turn, with what it did since, and what it may have done in turns that are missing."""
    earlier = [effect async for effect in _effects_since(journal, origin.run_id, origin.seq)]
    await copy_turns(journal, origin, fork_id, (*lost, *earlier), warrant)


async def is_settled(runner: Runner, fork_id: str, at_seq: int) -> bool:
    """Whether a person has said already how a fork goes on: that it does, that it stands still, or that it ends."""
    since = [decode_turn(data) for data in await runner.journal.read(fork_id, after=at_seq)]
    return any(isinstance(turn.arrival, ResumeRequested | PauseRequested | CancelRequested) for turn in since)


def awaits_resume(state: RunState) -> bool:
    """Whether a fork stands still because no person has said yet how it goes on."""
    return state.place.is_copy and not state.place.paused_by


async def let_go_on(
    state: RunState, resume: Callable[[ResumeRequested], Awaitable[Turn]], report: ResumeRequested | None = None
) -> None:
    """Resume a fork that stands still because no person has said yet how it goes on; the first who says so is heard.

    Without a report, in the name of the person who wanted the fork.
    """
    try:
        if awaits_resume(state):
            origin = pinned(state).forked_from
            assert origin is not None, "what stands still as a copy was copied from a run"
            await resume(report or ResumeRequested(origin.by))
    except IllegalArrival:
        if awaits_resume(state):
            raise


def rests_because(state: RunState) -> str:
    """Why a fork does not go on although it was made; empty where it does, or has ended."""
    return f"{state.place.paused_by} paused it; resume it" if state.place.is_copy and state.place.paused_by else ""


async def _effects_since(
    journal: Journal, run_id: str, seq: int, *, with_failed: bool = True
) -> AsyncIterator[EarlierEffect]:
    """What a run and its children changed, or may have changed, beyond what its turns up to this one tell."""
    data = await journal.read(run_id)
    if not data:
        return  # A child that was ordered and never began, or was deleted.
    history = read_history(run_id, data)
    state = folded(history)
    before = folded(read_history(run_id, data[: seq + 1])) if seq >= 0 else RunState()
    if state.end.ending is None:
        yield EarlierEffect(run_id)
    for command_id, call in state.calls.made.items():
        if not with_failed and _is_undone(state, command_id, call):
            continue
        if call.mutating and _standing(state, command_id, call) != _standing(before, command_id):
            late = state.end.late.get(command_id)
            at_seq = late.seq if late is not None else call.seq or int(command_id.partition(".")[0])
            standing, key = _standing(state, command_id, call), _key(state, command_id, call)
            yield EarlierEffect(
                run_id=run_id, tool=call.tool, arguments_hash=call.arguments_hash, seq=at_seq, how=standing, key=key
            )
    for turn in history.turns:
        for decision in turn.decisions:
            if isinstance(decision, StartChild) and (turn.seq > seq or decision.id in before.commands.open):
                begun = await child_begun(journal, state, decision.id)
                beneath = _effects_since(journal, begun, _NOTHING_BEFORE, with_failed=with_failed)
                async for effect in beneath:
                    yield effect


async def child_begun(journal: Journal, state: RunState, command_id: str) -> str:
    """The run that a delegation began, for a fork that copied it the child of its origin; empty where none has a turn."""

    async def load(run_id: str) -> RunState | None:
        data = await journal.read(run_id)
        return folded(read_history(run_id, data)) if data else None

    child = await run_beneath(state, command_id, load)
    return "" if child is None else child.run_id


def _is_undone(state: RunState, command_id: str, call: CallTrace) -> bool:
    """Whether a call is known not to have changed anything."""
    if (late := state.end.late.get(command_id)) is not None:
        return not late.is_returned
    is_known = command_id not in state.commands.withheld and command_id not in state.commands.open
    return is_known and call.rung is Rung.OBSERVED and bool(call.code) and call.code not in _OPEN


def _key(state: RunState, command_id: str, call: CallTrace) -> str:
    """The key of a call whose outcome is unknown; empty of any other."""
    command = state.commands.open.get(command_id)
    if isinstance(command, CallTool):
        return command.key
    return state.effects.unknown.get((call.tool, call.arguments_hash), "") if call.code == OUTCOME_UNKNOWN else ""


async def effects_of(journal: Journal, run_id: str) -> tuple[EarlierEffect, ...]:
    """What a run that is over and its children changed, or may have changed; what is known not to be done is left out."""
    return tuple([effect async for effect in _effects_since(journal, run_id, _NOTHING_BEFORE, with_failed=False)])


def _standing(state: RunState, command_id: str, call: CallTrace | None = None) -> str:
    """How far a call got, and with which code, as a run knows it; empty where it knows nothing of it."""
    known = call or state.calls.made.get(command_id)
    if known is None:
        return ""
    if (late := state.end.late.get(command_id)) is not None:
        return f"it {late_outcome(late)}"
    if command_id in state.commands.withheld:
        return _WITHHELD
    if command_id in state.commands.open:
        return _IN_DOUBT
    return f"{known.rung.value}, {known.code}" if known.code else known.rung.value
