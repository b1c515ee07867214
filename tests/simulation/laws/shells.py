"""Laws of whole systems: who drives, who is told what, and what is left when every process has gone."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import inf
from types import MappingProxyType
from typing import cast

from remit.backend.folded.log import HALT_LOG, RUN, TENANT, Charged, OfRun, Written
from remit.core.failure import ArrivalFault
from remit.core.journal import arrivals
from remit.core.journal.codec import decode_record, decode_signal, decode_turn
from remit.core.journal.commands import CallTool, ForkRun, StartChild
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import SessionConflict
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Dimension
from remit.core.run.halt import halts_in
from remit.core.run.signals import Signal, UserSignal
from remit.kernel.state import pinned
from remit.orchestrate.bus.post import SIGNAL_UNHEARD
from remit.orchestrate.history.fork_run import FORK_DEFERRED
from remit.testing.runs import LawBroken, SimulatedRun
from remit.testing.world import SimulatedWorld
from tests.simulation.laws import every_law
from tests.simulation.laws.shell_ends import ENDS
from tests.simulation.shared_store import at_once
from tests.simulation.shell_world import SENDER_WAIT_S_MAX, ShellWorld, own_turns

# A law of shells yields a run and what is wrong with it, in words.
ShellLaw = Callable[[ShellWorld], Iterator[tuple[str, str]]]

# What each signal is in a journal.
_HEARD_AS: Mapping[Signal, tuple[type, ...]] = MappingProxyType(
    {
        Signal.CANCEL: (arrivals.CancelRequested,),
        Signal.PAUSE: (arrivals.PauseRequested,),
        Signal.RESUME: (arrivals.ResumeRequested,),
        Signal.FEEDBACK: (arrivals.FeedbackGiven,),
        Signal.APPROVE: (arrivals.ApprovalGiven, arrivals.OutcomeJudged, arrivals.FeedbackGiven),
        Signal.REJECT: (arrivals.ApprovalRefused, arrivals.OutcomeJudged),
        Signal.RETRY: (arrivals.RetryRequested,),
    }
)
# Longer than it takes to write the end of a run and to tell its performers, where the store is slow or not.
STOPPED_WITHIN_S, STOPPED_AT_ONCE_S = 5.0, 0.01
# How long a process may take to see that something is halted: it looks ten times a second.
CALLED_OFF_WITHIN_S = 0.5
# Why it is unknown whether a signal was heard: it is still under way, or its sender's process was closed.
_UNDECIDED = (SIGNAL_UNHEARD, "SYSTEM_CLOSED")


def no_signal_is_lost_or_doubled(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """Who was told that a run heard them was heard once; who was refused, not at all; and no signal is heard twice."""
    for told in world.told.values():
        signal = told.signal
        times = len(turns_of(world.run(signal.run_id), signal))
        if times > 1:
            yield signal.run_id, f"{signal.type} {signal.signal_id} was heard {times} times"
        if told.is_known and told.code and told.code not in (*_UNDECIDED, FORK_DEFERRED) and times:
            yield signal.run_id, f"{signal.type} {signal.signal_id} was refused with {told.code} and applied"
        if told.is_known and told.code in ("", FORK_DEFERRED) and not times:
            yield signal.run_id, f"{signal.type} {signal.signal_id} was told to be heard and was not"


def the_inbox_agrees_with_the_journals(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """An entry that is settled as heard stands in a turn, and one that is refused stands in none."""
    for entry, outcome in world.ground.letters():
        signal = decode_signal(entry.data)
        if signal.signal_id not in world.told:
            continue  # A parent's cancel; its turns do not name who asked.
        times = len(turns_of(world.run(entry.run_id), signal))
        if outcome is not None and (outcome[0] == "") != (times == 1):
            yield entry.run_id, f"entry {entry.number}, {signal.type}, is settled as {outcome} and heard {times} times"
        if outcome is None and times:
            yield entry.run_id, f"entry {entry.number}, {signal.type}, was heard and is not settled"


def every_entry_is_answered(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """Whatever was left for a run that is open was heard or refused when a last process had taken it up."""
    known = frozenset(world.run_ids())
    for entry, outcome in world.ground.letters():
        if entry.run_id not in known:
            continue  # A child that was told to end and never began.
        run = world.run(entry.run_id)
        if outcome is None and run.ending is None and not turns_of(run, signal := decode_signal(entry.data)):
            yield entry.run_id, f"entry {entry.number}, {signal.type}, was never answered"


def nobody_is_kept_waiting(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """Who says something to a run learns soon whether it was heard, however long the run goes on."""
    for told in world.told.values():
        if told.took_s > SENDER_WAIT_S_MAX:
            yield (
                told.signal.run_id,
                f"the sender of {told.signal.type} waited {told.took_s:.1f} s for {told.code or 'yes'}",
            )


def a_retry_names_its_own_fork(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """Who asked for a retry is told the fork that was ordered for them."""
    for told in world.told.values():
        if told.fork_id:
            turns = turns_of(world.run(told.signal.run_id), told.signal)
            ordered = [d.run_id for turn in turns for d in turn.decisions if isinstance(d, ForkRun)]
            if told.fork_id not in ordered:
                yield told.signal.run_id, f"{told.signal.signal_id} was told fork {told.fork_id} and ordered {ordered}"


def an_ended_run_leaves_nothing_running(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """When a run has ended, everything beneath it has ended too, once a process could see to it."""
    known = frozenset(world.run_ids())
    for run_id in known:
        run = world.run(run_id)
        for child in run.all(StartChild) if run.ending is not None else ():
            if child.run_id in known and world.run(child.run_id).ending is None:
                yield run_id, f"it ended as {run.ending}, and its child {child.run_id} has not"


def one_driver_at_a_time(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """A turn is written under the lease of its run; once another has taken the run up, nothing under a lease before it.

    Where leases last as long as their holders, no other process writes between two turns of the same lease either.
    """
    taken: dict[str, int] = {}
    for entry in world.ground.log.entries:
        kind, _, run_id = entry.name.partition(":")
        if f"{kind}:" != RUN or entry.place not in world.ground.writers:
            continue  # Its writer crashed before that was noted.
        written = decode_record(entry.data, OfRun)
        arrival = decode_turn(written.data).arrival if isinstance(written, Written) else None
        writer, token = world.ground.writers[entry.place]
        # What was copied of the origin of a fork took that one up, and its token is none.
        is_taken = isinstance(arrival, arrivals.RunTaken) and arrival.token > 0
        if is_taken or not world.weather.lease_ms:
            taken[run_id] = max(token, taken.get(run_id, 0))
        if token < max(1, taken.get(run_id, 0)):
            yield run_id, f"{writer} wrote under token {token} where {taken.get(run_id, 0)} had been taken"


def a_session_is_one_chain(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """Its places are taken once, from the first on, and each run names the one before it."""
    replica = world.ground.look()
    for tenant_id, session_id in replica.claims:
        runs = [entry.run_id for entry in at_once(replica.journal.session(session_id, tenant_id=tenant_id))]
        for ordinal, run_id in enumerate(runs):
            link = pinned(world.run(run_id).state).session
            before = "" if link is None else link.previous_run_id
            expected = runs[ordinal - 1] if ordinal else ""
            if link is None or link.ordinal != ordinal or _root_of(world, before) != expected:
                yield run_id, f"it has place {ordinal} of {session_id} behind {expected!r}, and names {link}"


def _root_of(world: ShellWorld, run_id: str) -> str:
    """The run that has the place, of a retry of it."""
    while run_id and (origin := pinned(world.run(run_id).state).forked_from) is not None:
        run_id = origin.run_id
    return run_id


def no_tenant_exceeds_its_quota(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """What its runs have spent and may spend never comes to more than there is, at any moment."""
    quota, counted = world.weather.steps_quota, dict[str, int]()
    for entry in world.ground.log.entries if quota else ():
        if entry.name.startswith(TENANT):
            charge = decode_record(entry.data, Charged).charge
            counted[charge.run_id] = dict(charge.amounts).get(Dimension.STEPS, 0)
            if (total := sum(counted.values())) > quota:
                yield charge.run_id, f"with it the runs of its tenant may take {total} steps of {quota}"


def nothing_is_done_while_everything_is_halted(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """No call that was ordered since a halt was told begins before that is lifted.

    When it is lifted stands in the journal of halts: who halts waits for other processes to put down what they are at, and
    another may have lifted the halt by the time its sender is told.
    """
    ordered: dict[str, tuple[str, float]] = {}
    for entry in world.ground.log.entries if world.halted else ():
        written = decode_record(entry.data, OfRun) if entry.name.startswith(RUN) else None
        for command in decode_turn(written.data).decisions if isinstance(written, Written) else ():
            if isinstance(command, CallTool):
                at_s = world.ground.written_at_s[entry.place]
                ordered.setdefault(command.key, (entry.name.removeprefix(RUN), at_s))
    lifted = _lifted_s(world) if world.halted else []
    for made in world.stage.made:
        run_id, ordered_s = ordered.get(made.key, ("", 0.0))
        for halted in world.halted:
            until_s = next((at_s for number, at_s in lifted if number > halted.number), inf)
            if halted.from_s < ordered_s and made.began_s < until_s:
                told = f"halted at {halted.from_s:.3f} until {until_s:.3f}"
                yield run_id, f"{made.tool} was ordered at {ordered_s:.3f} and begun at {made.began_s:.3f}, {told}"


def what_a_halt_finds_under_way_is_called_off(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """No call that was under way when a halt was written acts while that stands, once every process could look."""
    within_s = CALLED_OFF_WITHIN_S * (10 if world.weather.slow else 1)
    written = _halted_s(world) if world.halted else []
    for (_, from_s, is_lift), (_, until_s, _) in pairwise([*written, (0, inf, True)]):
        for made in world.stage.made if not is_lift else ():
            if made.began_s < from_s and from_s + within_s < made.acted_s < until_s:
                told = f"halted at {from_s:.3f} until {until_s:.3f}"
                yield (
                    "",
                    f"{made.tool} {made.key} was begun at {made.began_s:.3f} and acted at {made.acted_s:.3f}, {told}",
                )


def _lifted_s(world: ShellWorld) -> list[tuple[int, float]]:
    """The number of each entry that lifts a halt, and when it was written."""
    return [(number, at_s) for number, at_s, is_lift in _halted_s(world) if is_lift]


def _halted_s(world: ShellWorld) -> list[tuple[int, float, bool]]:
    """Each entry that halts or lifts: its number, when it was written, and whether it lifts."""
    written = [entry for entry in world.ground.log.entries if entry.name == HALT_LOG]
    halts = halts_in([decode_record(entry.data, Written).data for entry in written])
    places = [entry.place for entry in written]
    return [(halt.number, world.ground.written_at_s[at], halt.is_lift) for halt, at in zip(halts, places, strict=True)]


def nothing_is_done_for_an_ended_run(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """What a run has under way when it ends is stopped, and has no effect any more.

    Where a lease expires under its holder, that one learns only later that another has ended the run.
    """
    ended = {} if world.weather.lease_ms else _ended_s(world)
    runs = {made.key: made.run_id for made in world.hands.performed}
    within_s = STOPPED_WITHIN_S if world.weather.slow else STOPPED_AT_ONCE_S
    for made in world.stage.made:
        run_id = runs[made.key]
        if made.acted_s > ended.get(run_id, inf) + within_s:
            yield run_id, f"it ended at {ended[run_id]:.3f}, and {made.tool} {made.key} acted at {made.acted_s:.3f}"


def children_end_with_their_parent(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """A run that ends has its children told at once. Where its process may go before that, the next process tells them."""
    weather = world.weather
    ended = {} if weather.crash or weather.leave or weather.lease_ms else _ended_s(world)
    for run_id, ended_s in ended.items():
        for child in world.run(run_id).all(StartChild):
            if ended.get(child.run_id, 0.0) > ended_s + STOPPED_WITHIN_S:
                yield run_id, f"it ended at {ended_s:.3f}, and its child {child.run_id} at {ended[child.run_id]:.3f}"


def _ended_s(world: ShellWorld) -> dict[str, float]:
    """When each run ended."""
    ended: dict[str, float] = {}
    for entry in world.ground.log.entries:
        written = decode_record(entry.data, OfRun) if entry.name.startswith(RUN) else None
        decisions = decode_turn(written.data).decisions if isinstance(written, Written) else ()
        if any(isinstance(decision, RunEnded) for decision in decisions):
            ended.setdefault(entry.name.removeprefix(RUN), world.ground.written_at_s[entry.place])
    return ended


def a_pause_holds_until_a_person_resumes(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """Who asked a run to stand still is told so only where a person did, and nothing but a person's resume ends it."""
    resumed_by = {told.signal.user_id for told in world.told.values() if told.signal.type is Signal.RESUME}
    for told in world.told.values():
        run = world.run(told.signal.run_id)
        asked = any(isinstance(turn.arrival, arrivals.PauseRequested) for turn in own_turns(run))
        if told.code == ArrivalFault.ALREADY_PAUSED and not asked:
            yield (
                run.run_id,
                f"{told.signal.signal_id} was told that it is paused already, and no person had asked for that",
            )
    for run_id in world.run_ids():
        is_asked = False
        for turn in own_turns(world.run(run_id)):
            if is_asked and isinstance(turn.arrival, arrivals.ResumeRequested) and turn.arrival.by not in resumed_by:
                yield run_id, f"turn {turn.seq}: {turn.arrival.by} let it go on, although a person had paused it"
            is_asked = isinstance(turn.arrival, arrivals.PauseRequested) or (
                is_asked and not isinstance(turn.arrival, arrivals.ResumeRequested)
            )


SHELL_LAWS: Mapping[str, ShellLaw] = MappingProxyType(
    {
        law.__name__: law
        for law in (
            no_signal_is_lost_or_doubled,
            the_inbox_agrees_with_the_journals,
            every_entry_is_answered,
            nobody_is_kept_waiting,
            a_retry_names_its_own_fork,
            an_ended_run_leaves_nothing_running,
            one_driver_at_a_time,
            a_session_is_one_chain,
            no_tenant_exceeds_its_quota,
            nothing_is_done_while_everything_is_halted,
            nothing_is_done_for_an_ended_run,
            children_end_with_their_parent,
            a_pause_holds_until_a_person_resumes,
            what_a_halt_finds_under_way_is_called_off,
            *ENDS,
        )
    }
)


def turns_of(run: SimulatedRun, signal: UserSignal) -> list[Turn]:
    """The turns in which a run heard a signal, those that a fork copied left out."""
    kinds = _HEARD_AS[signal.type]
    own = (turn for turn in own_turns(run) if isinstance(turn.arrival, kinds))
    return [turn for turn in own if getattr(turn.arrival, "by", "") == signal.user_id]


def keep_the_law(world: ShellWorld) -> None:
    """Check every law of shells and of runs on a world that was played; raise LawBroken for the first that does not hold."""
    try:
        world.ground.look()
    except SessionConflict as shared:
        raise world.shared_place(shared) from None
    for name, law in SHELL_LAWS.items():
        for run_id, what in law(world):
            raise LawBroken(name, world.seed, run_id, what)
    for name, run_id, what in world.offences:
        raise LawBroken(name, world.seed, run_id, what)
    # A shell world answers what these laws ask of a world.
    every_law.keep_the_law(cast("SimulatedWorld", world))
