"""Playing prints what happened, turn by turn, and nothing that a terminal would obey."""

import sys
from hashlib import sha256

import pytest

from remit.core.failure import Ending
from remit.core.journal.rulings import ToolCallRefused
from remit.observe.views.trace import LINE_CHARS_MAX
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import in_turn, says
from remit.testing.world import SimulatedWorld
from tests import warm
from tests.simulation.laws.every_law import LAWS, keep_the_law
from tests.simulation.laws.shells import SHELL_LAWS
from tests.simulation.play import demo_manifest, demo_world, hash_of_worlds, lines_of, main
from tests.simulation.scenarios import played_world
from tests.simulation.shell_world import shell_scenario


def test_the_demo_refunds_an_order_with_an_approval_and_refuses_what_nobody_registered() -> None:
    world = demo_world()
    run = world.finish(demo_manifest())
    assert run.ending is Ending.SUCCESS
    assert run.last(ToolCallRefused).tool == "find_order"
    assert [call.tool for call in world.tool_calls] == ["lookup_order", "refund"]
    keep_the_law(world)


def test_every_turn_has_its_line_and_every_command_an_arrow() -> None:
    run = demo_world().finish(demo_manifest())
    lines = lines_of(run)
    assert len(lines) == len(run.turns) + sum(len(turn.decisions) for turn in run.turns)
    assert sum("-> " in line for line in lines) >= 5


def test_no_line_is_longer_than_a_line() -> None:
    lines = [line for seed in range(10) for run in runs_of(seed) for line in lines_of(run)]
    assert max(map(len, lines)) <= LINE_CHARS_MAX + len("  0      0.0 s     ")


def test_whatever_is_said_is_printed_as_data() -> None:
    world = SimulatedWorld(model=in_turn(says("\x1b[2Jowned\x07\r\n")))
    text = "\n".join(lines_of(world.finish(demo_manifest())))
    assert "\x1b" not in text
    assert "\\x1b[2Jowned" in text


def test_without_an_argument_the_demo_is_played(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    printed = capsys.readouterr().out
    assert "SUCCESS: Order 42 is refunded." in printed
    assert f"{len(LAWS)} laws kept, seed 7" in printed


def test_with_the_word_shell_a_world_of_whole_systems_is_played(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shell", "3"]) == 0
    printed = capsys.readouterr().out
    assert all(f"run {run_id}: " in printed for run_id in shell_scenario(3).run_ids())
    assert f"{len(SHELL_LAWS)} laws kept, seed 3" in printed
    assert main(["shell", "3", "4"]) == main(["shell", "3", "4"]) == 0
    first, second = capsys.readouterr().out.split()
    assert first == second


def test_with_a_seed_every_run_of_its_scenario_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    seed = next(seed for seed in range(50) if len(played_world(seed).run_ids()) > 1)
    assert main([str(seed)]) == 0
    printed = capsys.readouterr().out
    assert all(f"run {run_id}: " in printed for run_id in played_world(seed).run_ids())
    assert f"seed {seed}" in printed


def test_the_command_plays_the_demo() -> None:
    command = [sys.executable, "-m", "tests.simulation.play"]
    done = warm.run(command, capture_output=True, text=True, check=True)
    assert "laws kept" in done.stdout


def runs_of(seed: int) -> list[SimulatedRun]:
    world = played_world(seed)
    return [world.run(run_id) for run_id in world.run_ids()]


def test_the_hash_covers_every_turn_of_every_run() -> None:
    world, digest = played_world(4), sha256()
    for run_id in world.run_ids():
        digest.update(run_id.encode())
        for data in world.run(run_id).journal:
            digest.update(data)
    assert hash_of_worlds(range(4, 5)) == digest.hexdigest()


@pytest.mark.req("1.20")
def test_the_same_seeds_have_the_same_hash_and_others_another() -> None:
    assert hash_of_worlds(range(3)) == hash_of_worlds(range(3)) != hash_of_worlds(range(4))
