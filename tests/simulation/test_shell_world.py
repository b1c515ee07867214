"""Worlds of whole systems: each weather can be played, keeps the law, and comes out the same for the same seed."""

import asyncio
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from random import Random
from typing import Any, TypeVar

import pytest

from remit.core.failure import RemitError
from remit.core.journal.arrivals import Happened, ToolReconciled
from remit.core.journal.commands import ReconcileTool, StartChild
from remit.core.journal.storage import SessionConflict
from remit.core.record import BlobRef
from remit.core.run.signals import Signal
from remit.kernel.state import RunState, questions
from remit.testing.runs import LawBroken, SimulatedRun
from tests.simulation import shell_world
from tests.simulation.shared_store import at_once
from tests.simulation.shell_world import ShellWorld, earlier_scenario, shell_scenario
from tests.simulation.weather import ALONE, WEATHERS, Weather
from tests.unit.kernel.builders import Run, wants

T = TypeVar("T")

# A world is only looked at once it was played.
played = cache(shell_scenario)

QUIET = Weather(processes=1, actions=0)


@pytest.mark.parametrize("seed", [3, 12])
def test_the_same_seed_gives_the_same_bytes(seed: int) -> None:
    first, second = played(seed), shell_scenario(seed)
    assert first.journals() == second.journals()
    assert first.told == second.told
    assert (first.loop.steps, first.crashes, first.halted) == (second.loop.steps, second.crashes, second.halted)


def test_another_seed_gives_another_history() -> None:
    first, second = ShellWorld(1, ALONE).play(), ShellWorld(2, ALONE).play()
    assert first.journals() != second.journals()


def test_runs_of_these_worlds_have_children_and_effects() -> None:
    seeds = range(len(WEATHERS))
    assert any(has_child(played(seed)) for seed in seeds), "what the laws say of children is said of nothing"
    assert any(played(seed).stage.effects for seed in seeds), "nothing is ever done"


def has_child(world: ShellWorld) -> bool:
    return any(world.run(run_id).all(StartChild) for run_id in world.run_ids())


def test_a_world_that_waits_for_ever_breaks_a_law() -> None:
    class Stuck(ShellWorld):
        async def _calm(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
            await asyncio.get_running_loop().create_future()

    with pytest.raises(LawBroken, match="nothing will happen any more") as broken:
        Stuck(5, QUIET).play()
    assert (broken.value.law, broken.value.seed) == ("nothing_waits_for_ever", 5)


def test_a_world_that_is_never_done_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_world, "STEPS_MAX", 100)
    with pytest.raises(LawBroken, match="still busy after 100 callbacks") as broken:
        ShellWorld(5, ALONE).play()
    assert broken.value.law == "nothing_waits_for_ever"


def test_a_caller_who_does_not_come_back_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_world, "REST_WAIT_S_MAX", 0.0)
    world = ShellWorld(1, ALONE).play()
    assert any(
        law == "nothing_waits_for_ever" and "has not come back after 0.0 s" in what for law, _, what in world.offences
    )


def test_two_runs_at_one_place_of_a_session_break_a_law() -> None:
    class Shared(ShellWorld):
        async def _calm(self) -> None:  # type: ignore[explicit-override]
            raise SessionConflict("s1", 3)

    with pytest.raises(LawBroken, match="exchange 3 of session 's1'") as broken:
        Shared(5, QUIET).play()
    assert broken.value.law == "a_session_is_one_chain"


def test_a_journal_that_cannot_be_folded_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ShellWorld(1, ALONE).play()
    run_id = world.run_ids()[0]
    turns = world.ground.turns(run_id)
    monkeypatch.setattr(world.ground, "turns", lambda _: turns[1:])
    world._read.clear()
    with pytest.raises(LawBroken, match="its journal cannot be folded") as broken:
        world.run(run_id)
    assert broken.value.law == "journals_add_up"


def test_a_text_of_a_run_is_read_in_full() -> None:
    world = ShellWorld(1, QUIET)
    digest = sha256(b"long").digest()
    at_once(world.ground.blobs.put(digest, b"long"))
    assert world.text("short") == "short"
    assert world.text(BlobRef(digest, 4)) == "long"
    world.loop.close()


def test_a_process_that_leaves_something_running_is_noted() -> None:
    world = ShellWorld(1, QUIET)

    async def leave() -> None:
        process = world._start()
        world.loop.spawn(process.name, asyncio.sleep(1))
        await world.loop.spawn(process.name, world._close(process))

    world.loop.run_until_complete(leave())
    world.loop.close()
    [(law, _, what)] = world.offences
    assert law == "nothing_outlives_closing"
    assert what.startswith("p1 was closed and left <coroutine object sleep")


@pytest.mark.parametrize(
    ("code", "is_noted"), [("INVARIANT_BROKEN", True), ("JOURNAL_BROKEN", True), ("RUN_ENDED", False)]
)
def test_a_caller_who_meets_a_bug_says_so(code: str, is_noted: bool) -> None:
    world = ShellWorld(1, QUIET)

    async def break_down() -> None:
        raise RemitError(code, "it broke")

    world.loop.run_until_complete(world._quietly(break_down()))
    world.loop.close()
    assert [law for law, _, _ in world.offences] == (["no_caller_meets_a_bug"] if is_noted else [])


def test_nobody_says_anything_where_no_run_is() -> None:
    world = ShellWorld(1, QUIET)
    process = world._start()
    world._signal()
    world._act(world._resume)
    world._act(world._fork)
    world._act(world._note)
    assert world.told == {}
    assert not process.callers
    world.loop.close()


class Insistent(Random):
    """A chooser that takes the last."""

    def choice(self, seq: Sequence[T]) -> T:  # type: ignore[explicit-override, override]
        return seq[-1]


def doubting() -> RunState:
    """A run in which a person is asked what became of a call."""
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.loses("pay")
    run.take(ToolReconciled(run.open(ReconcileTool)[0].id, Happened.UNKNOWN))
    return SimulatedRun("r1", run.journal).state


@pytest.mark.parametrize("is_done", [True, False])
def test_a_person_who_is_asked_about_an_outcome_says_what_they_see(
    is_done: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, state = ShellWorld(1, QUIET), doubting()
    [question] = questions(state)
    assert question.packet is not None
    call: Any = state.commands.open[question.packet.about]
    if is_done:
        world.stage.effects[call.key] = "1"
    monkeypatch.setattr(world, "chance", Insistent(1))
    monkeypatch.setattr(world, "run_ids", lambda: ["r1"])
    monkeypatch.setattr(world, "state_of", lambda _: state)
    world._start()
    world._signal()
    world.loop.close()
    assert {told.signal.type for told in world.told.values()} == {Signal.APPROVE if is_done else Signal.REJECT}


def test_an_effect_belongs_to_the_lease_of_its_run_under_which_it_began() -> None:
    world = earlier_scenario(5000831)
    lives = [performed.life for performed in world.hands.performed if performed.key == "r3:2.1"]
    assert len(lives) == 2
    assert lives[0] < lives[1] <= len(world.ground.tokens["r3"])
