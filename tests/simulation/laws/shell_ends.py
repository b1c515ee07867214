"""Laws of how things end in whole systems: calls, children, time, leases and charges. None is forgotten, none lasts too long."""

from collections.abc import Iterator
from math import inf

from remit.backend.folded.log import RUN, TENANT, Charged
from remit.core.journal.arrivals import Arrival, CancelRequested, TimerFired
from remit.core.journal.codec import decode_record, hash_turn
from remit.core.journal.commands import CallTool, StartChild
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import Place
from remit.core.limits.quota import Charge
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.orchestrate.executors.reports import PERFORMED
from remit.orchestrate.executors.timer import cuts_off, moment_of, timers_of
from remit.testing.runs import SimulatedRun
from tests.simulation.shell_stage import IDEMPOTENT
from tests.simulation.shell_world import BEGINS_AT_MS, ShellWorld

# Longer than it takes to write a turn, and performers to clean up once they were told to stop, where the store is slow or not.
SLOW_S, SOON_S = 10.0, 0.5


def no_call_stays_open_for_ever(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """When a last process has taken up every open run, each call is settled, in doubt, or waits for the lift of a halt."""
    for run_id in world.run_ids():
        state = world.state_of(run_id)
        commands = state.commands
        if state.end.ending is not None or state.place.is_copy:
            continue
        for command in commands.open.values():
            is_known = command.id in commands.doubted or command.id in commands.withheld
            if type(command) in PERFORMED and not isinstance(command, StartChild) and not is_known:
                yield (
                    run_id,
                    f"its {type(command).__name__} {command.id} has no outcome, and nothing will ever bring one",
                )


def a_parent_goes_on_when_its_child_has_ended(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """Once nothing moves any more, no run waits for a child that has ended, unless the process that knew is gone.

    A child that a person told to end where no process drove it loads nothing, and its parent goes on when it is resumed.
    """
    weather = world.weather
    for run_id, child in () if weather.crash or weather.leave or weather.halt else world.forsaken:
        if not isinstance(_ended_by(world.run(child)), CancelRequested):
            yield run_id, f"it rests, although its child {child} has ended"


def _ended_by(run: SimulatedRun) -> Arrival:
    """What a run that has ended ended by."""
    return next(turn.arrival for turn in run.turns if any(isinstance(one, RunEnded) for one in turn.decisions))


def a_deadline_is_kept(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """A run that a process holds, and whose time is up, takes its next turn then."""
    weather = world.weather
    if weather.clock_jump or weather.apart_ms:
        return
    slack_s = SLOW_S if weather.slow else SOON_S
    places = places_of(world)
    for run_id in world.run_ids():
        run = world.run(run_id)
        times = [world.ground.written_at_s[place] for place in places[run_id]]
        for place, due_s in _cut_offs(run, times, slack_s):
            for hold in world.ground.holds.get(run_id, ()):
                next_s = times[place + 1]
                if min(hold.until_s, next_s) > max(due_s, hold.from_s) + slack_s:
                    yield (
                        run_id,
                        f"{hold.process} held it when its time was up at {due_s:.3f}, and turn {place + 1} came at {next_s:.3f}",
                    )


def _cut_offs(run: SimulatedRun, times: list[float], slack_s: float) -> Iterator[tuple[int, float]]:
    """The turns behind which a run waited for longer than the time that it had, and when that was up."""
    gaps = [place for place in range(len(times) - 1) if times[place + 1] > times[place] + slack_s]
    state, folded = RunState(), 0
    for place in gaps:
        for turn, data in zip(run.turns[folded : place + 1], run.journal[folded : place + 1], strict=True):
            apply(state, turn, hash_turn(data))
        folded = place + 1
        for timer in timers_of(state):
            due_ms = moment_of(state, timer)
            if cuts_off(state, timer, due_ms):
                yield place, (due_ms - BEGINS_AT_MS) / 1000


def a_run_that_was_lost_is_put_down(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """No call acts once its process knows that its run is held under a lease of its own no longer."""
    slack_s = SLOW_S if world.weather.slow and not world.weather.lease_ms else SOON_S
    runs = {made.key: made.run_id for made in world.hands.performed}
    for made in world.stage.made:
        run_id = runs[made.key]
        holds = [hold for hold in world.ground.holds.get(run_id, ()) if hold.process == made.process]
        known_s = max([hold.known_s for hold in holds], default=inf)
        if made.acted_s > known_s + slack_s:
            yield (
                run_id,
                f"{made.process} had lost it at {known_s:.3f}, and its {made.tool} acted at {made.acted_s:.3f}",
            )


def what_was_not_begun_has_no_effect(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """A call that a run was told will certainly not be made is never made."""
    done = {made.key: made for made in world.stage.made if made.tool != IDEMPOTENT}
    for run_id in world.run_ids():
        keys: dict[str, str] = {}
        for turn in world.run(run_id).turns:
            unbegun = turn.arrival.unbegun if isinstance(turn.arrival, CancelRequested | TimerFired) else ()
            for made in [done[keys[name]] for name in unbegun if keys.get(name) in done]:
                yield (
                    run_id,
                    f"turn {turn.seq} says that {made.tool} {made.key} was not begun, and it acted at {made.acted_s:.3f}",
                )
            keys |= {one.id: one.key for one in turn.decisions if isinstance(one, CallTool)}


def what_an_ended_run_reserved_is_given_back(world: ShellWorld) -> Iterator[tuple[str, str]]:
    """A run whose process lived to see its end written counts for its tenant what it spent, and no more what it might have."""
    charges: dict[str, Charge] = {}
    for entry in world.ground.log.entries if world.weather.steps_quota else ():
        if entry.name.startswith(TENANT):
            charge = decode_record(entry.data, Charged).charge
            charges[charge.run_id] = charge
    places = places_of(world) if charges else {}
    for run_id, charge in charges.items():
        if charge.is_open and run_id in places and world.run(run_id).ending is not None:
            ends = [any(isinstance(one, RunEnded) for one in turn.decisions) for turn in world.run(run_id).turns]
            if places[run_id][ends.index(True)] in world.ground.writers:
                yield (
                    run_id,
                    f"it ended as {world.run(run_id).ending}, and {dict(charge.amounts)} are still reserved for it",
                )


def places_of(world: ShellWorld) -> dict[str, list[Place]]:
    """Where each turn of each run stands in the log."""
    places: dict[str, list[Place]] = {}
    for entry in world.ground.log.entries:
        if entry.name.startswith(RUN):
            places.setdefault(entry.name.removeprefix(RUN), []).append(entry.place)
    return places


ENDS = (
    no_call_stays_open_for_ever,
    a_parent_goes_on_when_its_child_has_ended,
    a_deadline_is_kept,
    a_run_that_was_lost_is_put_down,
    what_was_not_begun_has_no_effect,
    what_an_ended_run_reserved_is_given_back,
)
