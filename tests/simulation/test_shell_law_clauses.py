"""The clauses of laws of whole systems that no mutant reaches: each finds its fault, and says nothing without it."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cache
from typing import Any, cast

import pytest

from remit.backend.folded.log import RUN, Written
from remit.core.journal.arrivals import ChildEnded, RunTaken
from remit.core.journal.codec import decode_record, decode_signal, decode_turn
from remit.core.journal.commands import StartChild
from remit.core.journal.storage import Place, SessionConflict
from remit.core.record import replace
from remit.core.run.manifest import Origin
from remit.kernel.state import pinned
from remit.orchestrate.bus.post import SIGNAL_UNHEARD
from remit.testing.runs import LawBroken, SimulatedRun
from remit.testing.world import SimulatedWorld
from tests.simulation.laws import shells
from tests.simulation.laws.effects import child_of
from tests.simulation.laws.shells import SHELL_LAWS, keep_the_law
from tests.simulation.shared_store import at_once
from tests.simulation.shell_world import Halted, ShellWorld, Told, shell_scenario
from tests.simulation.weather import WEATHERS, Weather

# Worlds that are looked through for one that has what a fault needs.
SEEDS = 20 * len(WEATHERS)

# Plants a fault in a world that has none; all of it is taken back after the test.
Fault = Callable[[pytest.MonkeyPatch], ShellWorld]

played = cache(shell_scenario)


@cache
def world_where(
    condition: Callable[[ShellWorld], object], weather: Callable[[Weather], object] = lambda _: True
) -> ShellWorld:
    """The first world that has something."""
    seeds = (seed for seed in range(SEEDS) if weather(WEATHERS[seed % len(WEATHERS)]))
    return next(world for seed in seeds if condition(world := played(seed)))


def found(law: str, world: ShellWorld) -> list[str]:
    """What a law has to say about a world."""
    return [what for _, what in SHELL_LAWS[law](world)]


# What worlds have.


def heard(world: ShellWorld) -> list[Told]:
    """Who was told that a run heard them."""
    return [told for told in world.told.values() if told.is_known and not told.code]


def refused(world: ShellWorld) -> list[Told]:
    """Who was refused by a run and not heard by it."""
    return [told for told in world.told.values() if told.code == "RUN_ENDED"]


def letters(world: ShellWorld, *, is_heard: bool) -> list[Any]:
    """Letters of people that were heard, or refused."""
    return [letter for letter in world.ground.look().letters.values() if letter.is_heard is is_heard and letter.outcome]


def both_letters(world: ShellWorld) -> bool:
    return bool(letters(world, is_heard=True) and letters(world, is_heard=False))


def chains(world: ShellWorld) -> list[list[str]]:
    """The runs of sessions of two exchanges or more."""
    journal = world.ground.look().journal
    runs = [[e.run_id for e in at_once(journal.session(name, tenant_id=of))] for of, name in world.ground.look().claims]
    return [chain for chain in runs if len(chain) > 1]


def places(world: ShellWorld) -> Iterator[tuple[str, Place, bool]]:
    """The turns of which it is known who wrote them: their run, their place, and whether the run was taken up by them."""
    for entry in world.ground.log.entries:
        if entry.name.startswith(RUN) and entry.place in world.ground.writers:
            turn = decode_turn(decode_record(entry.data, Written).data)
            yield entry.name.removeprefix(RUN), entry.place, isinstance(turn.arrival, RunTaken)


# Faults.


def retell(patch: pytest.MonkeyPatch, world: ShellWorld, told: Told, **changes: Any) -> None:
    """Let a sender have been told something else."""
    patch.setitem(world.told, told.signal.signal_id, replace(told, **changes))


def reread(patch: pytest.MonkeyPatch, world: ShellWorld, run_id: str, edit: Callable[[SimulatedRun], None]) -> None:
    """Let a run read otherwise than its journal tells it."""
    run = copy(world.run(run_id))
    run.state = copy(run.state)
    edit(run)
    patch.setitem(world._read, run_id, run)


def a_signal_lost(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(refused)
    retell(patch, world, refused(world)[0], code="")
    return world


def a_letter_heard_and_refused(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(both_letters)
    letter = letters(world, is_heard=True)[0]
    patch.setattr(letter, "is_heard", False)
    patch.setattr(letter, "settled", ("RUN_ENDED", "it has ended"))
    return world


def a_letter_heard_and_left_open(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(both_letters)
    letter = letters(world, is_heard=True)[0]
    patch.setattr(letter, "is_heard", False)
    patch.setattr(letter, "settled", None)
    return world


def a_letter_settled_and_not_heard(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(both_letters)
    patch.setattr(letters(world, is_heard=False)[0], "settled", ("", ""))
    return world


def a_turn_without_a_lease(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(heard)
    _, place, _ = list(places(world))[-1]
    patch.setitem(world.ground.writers, place, ("p9", 0))
    return world


def relink(patch: pytest.MonkeyPatch, world: ShellWorld, run_id: str, **changes: Any) -> None:
    """Let a run name another place of its session."""

    def edit(run: SimulatedRun) -> None:
        manifest = pinned(run.state)
        assert manifest.session is not None
        run.state.manifest = replace(manifest, session=replace(manifest.session, **changes))

    reread(patch, world, run_id, edit)


def a_wrong_place_of_a_session(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(chains)
    relink(patch, world, chains(world)[0][1], ordinal=7)
    return world


def a_wrong_run_before(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(chains)
    relink(patch, world, chains(world)[0][1], previous_run_id="")
    return world


def a_run_of_no_session(patch: pytest.MonkeyPatch) -> ShellWorld:
    world = world_where(chains)

    def edit(run: SimulatedRun) -> None:
        run.state.manifest = replace(pinned(run.state), session=None)

    reread(patch, world, chains(world)[0][1], edit)
    return world


# Each fault -> the law that is about it, and a part of what it says.
FAULTS: Mapping[Fault, tuple[str, str]] = {
    a_signal_lost: ("no_signal_is_lost_or_doubled", "was told to be heard and was not"),
    a_letter_heard_and_refused: ("the_inbox_agrees_with_the_journals", "it has ended') and heard 1 times"),
    a_letter_heard_and_left_open: ("the_inbox_agrees_with_the_journals", "was heard and is not settled"),
    a_letter_settled_and_not_heard: ("the_inbox_agrees_with_the_journals", "and heard 0 times"),
    a_turn_without_a_lease: ("one_driver_at_a_time", "p9 wrote under token 0"),
    a_wrong_place_of_a_session: ("a_session_is_one_chain", "it has place 1 of"),
    a_wrong_run_before: ("a_session_is_one_chain", "previous_run_id=''"),
    a_run_of_no_session: ("a_session_is_one_chain", "names None"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_found_by_its_law_and_by_no_other(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    law, what = FAULTS[fault]
    world = fault(monkeypatch)
    assert any(what in said for said in found(law, world)), found(law, world)
    assert [name for name in SHELL_LAWS if found(name, world)] == [law]
    with pytest.raises(LawBroken) as broken:
        keep_the_law(world)
    assert (broken.value.law, broken.value.seed) == (law, world.seed)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_world_without_the_fault_keeps_every_law(fault: Fault) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world = fault(patch)
    assert [name for name in SHELL_LAWS if found(name, world)] == []
    keep_the_law(world)


@pytest.mark.parametrize("changes", [{"code": SIGNAL_UNHEARD}, {"code": "SYSTEM_CLOSED"}, {"is_known": False}])
def test_a_person_who_does_not_know_may_have_been_heard_or_not(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_where(lambda world: heard(world) and refused(world))
    for told in (heard(world)[0], refused(world)[0]):
        retell(monkeypatch, world, told, fork_id="", **changes)
    assert found("no_signal_is_lost_or_doubled", world) == []


def test_a_letter_that_no_person_wrote_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_letter_heard_and_refused(monkeypatch)
    assert found("the_inbox_agrees_with_the_journals", world) != []
    for letter in letters(world, is_heard=False):
        monkeypatch.delitem(world.told, decode_signal(letter.data).signal_id, raising=False)
    assert found("the_inbox_agrees_with_the_journals", world) == []


def test_a_turn_of_which_nobody_knows_the_writer_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_turn_without_a_lease(monkeypatch)
    assert found("one_driver_at_a_time", world) != []
    monkeypatch.delitem(world.ground.writers, list(places(world))[-1][1])
    assert found("one_driver_at_a_time", world) == []


def test_a_retry_of_the_run_before_stands_for_it_in_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_where(lambda world: chains(world) and len(world.run_ids()) > len(chains(world)[0]))
    first, second = chains(world)[0][:2]
    other = next(run_id for run_id in world.run_ids() if run_id not in chains(world)[0])
    relink(monkeypatch, world, second, previous_run_id=other)
    reread(monkeypatch, world, other, lambda run: forked(run, ""))
    assert found("a_session_is_one_chain", world) != []
    reread(monkeypatch, world, other, lambda run: forked(run, first))
    assert found("a_session_is_one_chain", world) == []


def copied_child(world: ShellWorld) -> Iterator[tuple[SimulatedRun, StartChild]]:
    """Delegations that forks copied, and that began in their origins."""
    for run in map(world.run, world.run_ids()):
        origin = pinned(run.state).forked_from
        for turn in run.turns[: origin.seq + 1] if origin is not None else ():
            began = [child for child in turn.decisions if isinstance(child, StartChild)]
            yield from ((run, child) for child in began if isinstance(run.turns[turn.seq + 1].arrival, ChildEnded))


def test_what_a_copied_delegation_came_to_is_read_in_the_run_that_began_it() -> None:
    world = played(49)
    run, copied = next(copied_child(world))
    child = child_of(cast("SimulatedWorld", world), run, copied)
    assert copied.run_id not in world.run_ids()
    assert child is not None
    assert pinned(child.state).parent is not None


def forked(run: SimulatedRun, origin: str) -> None:
    """Let a run be the fork of another, or of none."""
    run.state.manifest = replace(pinned(run.state), forked_from=Origin(origin, "", 0) if origin else None)


def test_an_effect_before_a_halt_breaks_no_law(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_where(lambda world: world.stage.made)
    monkeypatch.setattr(world, "halted", [Halted(1e9, 0)])
    assert found("nothing_is_done_while_everything_is_halted", world) == []


def test_an_effect_breaks_a_halt_that_stands_and_none_that_was_lifted_before_its_sender_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_where(lambda world: world.stage.made)
    name, began_s = "nothing_is_done_while_everything_is_halted", min(made.began_s for made in world.stage.made)
    monkeypatch.setattr(world, "halted", [Halted(-1.0, 7)])
    for lift, is_broken in [(None, True), ((6, began_s / 2), True), ((8, 1e9), True), ((8, began_s / 2), False)]:
        monkeypatch.setattr(shells, "_lifted_s", lambda _, lift=lift: [lift] if lift else [])
        first = [what for what in found(name, world) if f"begun at {began_s:.3f}" in what]
        assert bool(first) == is_broken, lift


def test_what_lifts_a_halt_is_read_from_its_journal() -> None:
    world = world_where(lambda world: world.halted)
    lifted = shells._lifted_s(world)
    assert lifted
    assert all(any(number > halted.number for number, _ in lifted) for halted in world.halted)


def test_what_a_world_has_noted_is_a_broken_law(monkeypatch: pytest.MonkeyPatch) -> None:
    world = played(0)
    monkeypatch.setattr(world, "offences", [("nothing_outlives_closing", "r1", "p1 was closed and still held the run")])
    with pytest.raises(LawBroken, match=r"law nothing_outlives_closing is broken: p1 was closed.*run r1"):
        keep_the_law(world)


def test_logs_in_which_two_runs_share_a_place_break_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> None:
        raise SessionConflict("s1", 3)

    world = played(0)
    monkeypatch.setattr(world.ground, "look", look)
    with pytest.raises(LawBroken, match="exchange 3 of session 's1'") as broken:
        keep_the_law(world)
    assert broken.value.law == "a_session_is_one_chain"


def test_the_laws_of_single_runs_are_kept_in_a_world_of_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    world = played(0)

    def edit(run: SimulatedRun) -> None:
        run.journal = (b"", *run.journal[1:])

    reread(monkeypatch, world, world.run_ids()[0], edit)
    with pytest.raises(LawBroken) as broken:
        keep_the_law(world)
    assert broken.value.law not in SHELL_LAWS
