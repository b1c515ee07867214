"""A state that was kept is the state: equal in every field and every order, and the run goes on from it as before."""

from collections.abc import Iterator
from functools import cache
from operator import attrgetter
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.backend.memory.snapshots import MemorySnapshots
from remit.core.journal.codec import decode_turn, encode_turn, hash_turn
from remit.core.journal.storage import Snapshot
from remit.core.record import replace
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.fold.snapshot import layout_of, snapshot_of, state_from
from remit.kernel.state import RunState, pinned
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner
from remit.testing.hands import Hands
from remit.testing.trouble import STORM
from remit.testing.world import SimulatedWorld
from tests.simulation.scenarios import played_world, scenario

SEEDS = 100
# Some fields are filled only in the third of the worlds that plays votes and plans, others in those that are governed.
FIELD_SEEDS = (*range(150), *range(156, 320, 12), *range(160, 320, 12), 408)
WHOLE_SEEDS = 12
WORLDS = 40


class Written(NamedTuple):
    """A run as its journal keeps it."""

    run_id: str
    data: tuple[bytes, ...]


@cache
def runs(seed: int) -> tuple[Written, ...]:
    """Every run of a scenario."""
    return runs_of(played_world(seed))


def runs_of(world: SimulatedWorld) -> tuple[Written, ...]:
    """Every run of a world, children and forks included."""
    return tuple(Written(run_id, tuple(world.run(run_id).journal)) for run_id in world.run_ids())


def states(run: Written) -> Iterator[tuple[int, RunState]]:
    """The one state of a run, after each of its turns."""
    state = RunState()
    for seq, stored in enumerate(run.data):
        apply(state, decode_turn(stored), hash_turn(stored))
        yield seq, state


def kept(state: RunState) -> RunState:
    """The state, after it was written and read."""
    data = snapshot_of(state)
    assert data is not None
    restored = state_from(data)
    assert restored is not None
    assert snapshot_of(restored) == data
    return restored


def expect_same(restored: RunState, state: RunState) -> None:
    for name in (field.name for field in layout_of(RunState).fields):
        ours, theirs = attrgetter(name)(restored), attrgetter(name)(state)
        assert ours == theirs, name
        # A member of an enum may stand where a text is declared, and comes back as that text.
        assert isinstance(theirs, type(ours)), name
        if isinstance(theirs, dict):
            assert list(ours) == list(theirs), f"the order of {name}"
        entries = zip(_entries(ours), _entries(theirs), strict=True)
        assert all(isinstance(their, type(our)) for our, their in entries), name
    assert restored == state


def _entries(value: object) -> list[object]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return list(value) if isinstance(value, list | tuple) else []


def expect_same_next_turn(restored: RunState, run: Written) -> None:
    """The next turn that was recorded is the one that would be taken."""
    if restored.seq + 1 == len(run.data):
        return
    origin = pinned(restored).forked_from
    if origin is not None and restored.seq < origin.seq:
        return  # It was decided for the run this one is a copy of.
    recorded = decode_turn(run.data[restored.seq + 1])
    taken = take_turn(restored, recorded.arrival, recorded.at_ms)
    assert encode_turn(taken) == run.data[restored.seq + 1]


@given(st.integers(0, SEEDS - 1))
def test_a_state_that_was_kept_after_any_turn_is_that_state_and_takes_the_same_next_turn(seed: int) -> None:
    for run in runs(seed):
        for _, state in states(run):
            restored = kept(state)
            expect_same(restored, state)
            expect_same_next_turn(restored, run)


@given(st.integers(0, WHOLE_SEEDS - 1))
def test_a_run_goes_on_from_any_snapshot_exactly_as_it_did(seed: int) -> None:
    for run in runs(seed):
        *_, (_, end) = states(run)
        for seq, state in states(run):
            restored = kept(state)
            for stored in run.data[seq + 1 :]:
                expect_same_next_turn(restored, run)
                apply(restored, decode_turn(stored), hash_turn(stored))
            expect_same(restored, end)


def test_worlds_whose_processes_take_runs_up_from_snapshots_write_the_same_journals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stormy = replace(STORM, crash=0.06, rival=0.2)
    without = {seed: runs_of(scenario(seed, faults=stormy)) for seed in range(WORLDS)}
    taken_up = list[str]()
    after_turn = Hands.after_turn

    def new_runner(world: SimulatedWorld) -> Runner:
        snapshots.setdefault(world.seed, MemorySnapshots())
        return Runner(
            journal=world.journal, blobs=world.blobs, clock=world, dispatch=world, snapshots=snapshots[world.seed]
        )

    def after_turn_and_keep(hands: Hands, live: Live) -> None:
        after_turn(hands, live)
        if live.snapshot_seq >= 0:
            taken_up.append(live.run_id)
        # Not after every turn, so that there are turns to fold after a snapshot.
        if live.state.seq % 3 == 1 and (data := snapshot_of(live.state)) is not None:
            kept = Snapshot(live.run_id, live.state.seq, live.state.head, data)
            snapshots[hands._world.seed]._kept[live.run_id] = kept

    snapshots = dict[int, MemorySnapshots]()
    monkeypatch.setattr(SimulatedWorld, "_new_runner", new_runner)
    monkeypatch.setattr(Hands, "after_turn", after_turn_and_keep)
    for seed, expected in without.items():
        assert runs_of(scenario(seed, faults=stormy)) == expected, f"seed {seed}"
    assert len(set(taken_up)) > WORLDS // 2


def test_the_scenarios_leave_something_in_every_field() -> None:
    empty, unseen = RunState(), {field.name for field in layout_of(RunState).fields}
    for seed in FIELD_SEEDS:
        for run in runs(seed):
            for _, state in states(run):
                unseen -= {name for name in unseen if attrgetter(name)(state) != attrgetter(name)(empty)}
    # Sessions, halts and the code of tools belong to real systems, few models repeat themselves so stubbornly, few tools
    # stand in for another one, and the tools of simulated worlds declare neither flags nor money.
    rare = {
        "session",
        "sources",
        "counts.repeats_blocked",
        "calls.flags",
        "effects.purchased",
        "result.ungrounded",
        "place.halted",
        "commands.withheld",
        "calls.replaced",
        # What people refused a foreign agent.
        "people.turned_away",
        # What comes after the end, in time to be heard.
        "end.late",
        # Servers that would say the same again belong to real systems.
        "end.is_final",
    }
    assert unseen <= rare
