"""SimulatedWorld: one seed gives one world, nothing sleeps, and a crash takes only what the process had."""

from collections.abc import Iterator

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import PauseRequested, ToolReturned
from remit.core.journal.commands import CallModel
from remit.core.limits.budget import Budget
from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, replace
from remit.testing import world as worlds
from remit.testing.runs import LawBroken, SimulatedRun
from remit.testing.scripts import Breaks, Reply, in_turn, proposes, says
from remit.testing.trouble import CALM, STORM, WEATHER, Faults
from remit.testing.world import CRASHES_MAX, SimulatedWorld
from tests.simulation.laws.every_law import keep_the_law
from tests.simulation.scenarios import random_person, scenario, tools
from tests.unit.kernel.builders import manifest_of

LOOKS = in_turn(proposes("look", {"n": 1}), says("done"))
WRITES = in_turn(proposes("write", {"n": 1}), says("done"))


def test_a_run_is_played_to_its_end() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    assert world.finish(manifest_of()).ending is Ending.SUCCESS


def test_a_run_without_tools_needs_none() -> None:
    assert SimulatedWorld(model=in_turn(says("done"))).finish(manifest_of()).ending is Ending.SUCCESS


def test_several_runs_are_played_beside_each_other() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    first = world.finish(manifest_of(), replace(manifest_of(), run_id="other"))
    assert first.run_id == "run"
    assert {world.run(run_id).ending for run_id in world.run_ids()} == {Ending.SUCCESS}


def test_every_tool_call_that_was_performed_is_known() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    world.finish(manifest_of())
    assert [(call.tool, call.arguments) for call in world.tool_calls] == [("look", '{"n":1}')]


def test_a_refused_call_is_never_performed() -> None:
    world = SimulatedWorld(model=in_turn(proposes("no_such_tool"), says("sorry")), tools=tools())
    world.finish(manifest_of())
    assert world.tool_calls == []


@pytest.mark.parametrize(
    ("reply", "calls"), [(Reply.APPROVE, 1), (Reply.MODIFY, 1), (Reply.REJECT, 0), (Reply.IGNORE, 0)]
)
def test_a_scripted_person_decides_what_is_done(reply: Reply, calls: int) -> None:
    world = SimulatedWorld(model=WRITES, tools=tools(), person=lambda chance: reply)
    world.finish(manifest_of())
    assert len(world.tool_calls) == calls
    keep_the_law(world)


def test_time_is_what_the_events_say() -> None:
    world = SimulatedWorld(model=WRITES, tools=tools(), person=lambda chance: Reply.IGNORE)
    began_at_ms = world.now_ms()
    world.finish(manifest_of())
    assert world.now_ms() - began_at_ms >= manifest_of().boundary.approval_wait_ms_max


@pytest.mark.req("1.20")
def test_the_same_seed_writes_the_same_bytes() -> None:
    for seed in range(5):
        first, second = scenario(seed), scenario(seed)
        assert [first.run(run_id).journal for run_id in first.run_ids()] == [
            second.run(run_id).journal for run_id in second.run_ids()
        ]


def test_another_seed_writes_other_bytes() -> None:
    assert scenario(1).run("run1").journal != scenario(2).run("run2").journal


def test_a_long_text_can_be_read_in_full() -> None:
    long = "x" * (TEXT_INLINE_BYTES_MAX + 1)
    world = SimulatedWorld(model=in_turn(says(long)))
    run = world.finish(manifest_of())
    assert isinstance(run.state.result.answer, BlobRef)
    assert world.text(run.state.result.answer) == long


def test_long_arguments_reach_the_tool_in_full() -> None:
    long = "x" * (TEXT_INLINE_BYTES_MAX + 1)
    seen: list[str] = []

    def look(arguments: dict[str, str]) -> str:
        seen.append(arguments["note"])
        return '{"ok": true}'

    world = SimulatedWorld(model=in_turn(proposes("look", {"n": 1, "note": long}), says("done")), tools={"look": look})
    world.finish(manifest_of())
    assert seen == [long]


def test_a_scripted_model_reads_long_messages_in_full() -> None:
    long = '{"ok": true, "text": "' + "x" * TEXT_INLINE_BYTES_MAX + '"}'
    seen: list[object] = []

    def model(messages: object, chance: object) -> object:
        seen.extend(message.content for message in messages)  # type: ignore[attr-defined]
        return LOOKS(messages, chance)  # type: ignore[arg-type]

    world = SimulatedWorld(model=model, tools={"look": lambda arguments: long})  # type: ignore[arg-type]
    world.finish(manifest_of())
    assert long in seen


@pytest.mark.parametrize("seed", range(10))
def test_a_crash_at_every_turn_changes_nothing_that_was_written(seed: int) -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools(), faults=Faults(crash=0.3), seed=seed)
    run = world.finish(manifest_of())
    assert run.ending is Ending.SUCCESS
    keep_the_law(world)


def test_a_process_dies_a_limited_number_of_times() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools(), faults=Faults(crash=0.9))
    world.finish(manifest_of())
    assert world.crashes == CRASHES_MAX
    assert world.life == CRASHES_MAX + 1


def test_a_report_that_comes_twice_is_taken_once() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools(), faults=Faults(duplicate=1.0))
    run = world.finish(manifest_of())
    assert len(run.all(ToolReturned)) == 1
    assert world.ignored > 0
    keep_the_law(world)


def test_a_rival_at_every_write_only_adds_what_it_says() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools(), faults=Faults(rival=0.5), seed=3)
    run = world.finish(manifest_of())
    assert run.ending is Ending.SUCCESS
    assert len(run.turns) > 4
    keep_the_law(world)


def test_a_clock_that_jumps_never_turns_time_back() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools(), faults=Faults(clock_jump=1.0))
    run = world.finish(manifest_of())
    times = [turn.at_ms for turn in run.turns]
    assert times == sorted(times)
    keep_the_law(world)


def test_a_model_that_breaks_is_asked_again() -> None:
    world = SimulatedWorld(model=in_turn(Breaks(ErrorCode.INFERENCE_ENGINE_ERROR)))
    run = world.finish(manifest_of(budget=Budget(retries=2)))
    assert run.ending is Ending.UNAVAILABLE_DEP
    assert [call.attempt for call in run.all(CallModel)] == [1, 2, 3]


def test_a_world_full_of_signals_comes_to_rest() -> None:
    worlds = [
        SimulatedWorld(model=WRITES, tools=tools(), person=random_person, faults=Faults(signal=1.0), seed=seed)
        for seed in range(10)
    ]
    for world in worlds:
        world.finish(manifest_of())
        keep_the_law(world)
    assert any(world.run("run").all(PauseRequested) for world in worlds)


def test_a_world_that_never_comes_to_rest_is_a_broken_law() -> None:
    world = SimulatedWorld(model=LOOKS)

    async def again() -> None:
        world.later(again)

    world.later(again)
    with pytest.raises(LawBroken, match="still busy"):
        world.play()


def test_an_arrival_that_is_refused_and_leaves_a_mark_is_a_broken_law() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    world.finish(manifest_of())
    world.lives["run"].state.counts.denials += 1
    world.later(lambda: world.deliver("run", PauseRequested("ada")))
    with pytest.raises(LawBroken, match="illegal_arrivals_change_nothing"):
        world.play()


def test_a_report_for_a_run_that_nobody_holds_is_lost() -> None:
    world = SimulatedWorld(model=LOOKS)
    world.later(lambda: world.deliver("nobody", PauseRequested("ada")))
    world.play()
    assert list(world.run_ids()) == []


def test_starting_a_run_again_takes_it_up() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    first = world.finish(manifest_of())
    world.lives.clear()
    assert world.finish(manifest_of()).journal == first.journal


def test_nothing_waits_to_be_received_in_a_world_of_events() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    world.finish(manifest_of())
    live = world.lives["run"]
    assert world._drive(world.receive(live)) is None
    world.forget(live)
    assert live.state.end.ending is Ending.SUCCESS


def test_calm_is_the_absence_of_trouble_and_every_weather_is_known() -> None:
    assert Faults() == CALM
    assert {CALM, STORM} <= set(WEATHER)


def nothing_is_looked_up(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    yield from (f"{call.tool} was called" for call in world.tool_calls)


def everything_is_fine(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    yield from ()


def test_a_broken_law_names_itself_the_run_and_the_seed() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools(), seed=3)
    world.finish(manifest_of())
    with pytest.raises(LawBroken, match=r"nothing_is_looked_up.*look was called.*run run.*seed 3"):
        worlds.keep_the_law(world, {"nothing_is_looked_up": nothing_is_looked_up})


def test_only_the_laws_that_are_given_are_checked() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    world.finish(manifest_of())
    worlds.keep_the_law(world, {"everything_is_fine": everything_is_fine})


@pytest.mark.parametrize(("reason", "calls"), [("", 1), ("not today", 0)])
def test_a_scripted_filter_changes_a_call_or_refuses_it(reason: str, calls: int) -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools(), filters={"sevens": lambda tool, arguments: ({"n": 7}, reason)})
    world.finish(replace(manifest_of(), filters=("sevens",)))
    assert [call.arguments for call in world.tool_calls] == ['{"n":7}'] * calls


def test_a_filter_that_the_world_does_not_have_lets_nothing_pass() -> None:
    world = SimulatedWorld(model=LOOKS, tools=tools())
    world.finish(replace(manifest_of(), filters=("unknown",)))
    assert world.tool_calls == []
