"""The crash law: killed at any moment, a run goes on; nothing that was acknowledged is lost, nothing is done twice.

A process kills itself with SIGKILL before, during and after every append, and after every effect, of a run with reads,
a slow tool, parallel calls, approvals, an idempotent, a reconcilable and a plain effect, and a child. Another process
takes the run up; tests/e2e/crash_law.py says what is checked then.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import SystemRandom

import pytest

from tests import warm
from tests.e2e.crash_law import MUTANTS, Tallied

# Processes that share the positions.
PARTS = 2
RANDOM_KILLS = int(os.environ.get("REMIT_RANDOM_KILLS", "20"))
SEED = int(os.environ.get("REMIT_RANDOM_SEED") or SystemRandom().randrange(1 << 32))

Record = Callable[[str, object], None]


def play(*commands: Sequence[str]) -> list[Tallied]:
    """Let a process play each of the commands, all at the same time."""
    program = [sys.executable, "-m", "tests.e2e.crash_law"]
    running = [warm.Popen([*program, *command], stdout=subprocess.PIPE, text=True) for command in commands]
    said = [process.communicate()[0] for process in running]
    assert all(process.returncode == 0 for process in running), said
    return [Tallied(**json.loads(text)) for text in said]


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_position_ends_as_if_it_had_not_been(
    tmp_path: Path, record_property: Record
) -> None:
    (listed,) = play((str(tmp_path), "positions"))
    tallied = play(*((str(tmp_path), "part", str(part), str(PARTS)) for part in range(PARTS)))
    assert [fault for each in tallied for fault in each.faults] == []
    positions, kills = sum(each.positions for each in tallied), sum(each.kills for each in tallied)
    assert positions == listed.of
    assert kills >= positions > 0
    record_property("figure: crash law, positions", positions)
    record_property("figure: crash law, kills", kills)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_house_that_breaks_the_crash_law_is_found_out(mutant: str, tmp_path: Path) -> None:
    (tallied,) = play((str(tmp_path), "mutant", mutant))
    assert tallied.faults != []


@pytest.mark.slow
@pytest.mark.soak
def test_a_run_that_is_killed_at_random_times_ends_as_if_it_had_not_been(
    tmp_path: Path, record_property: Record
) -> None:
    (tallied,) = play((str(tmp_path), "random", str(RANDOM_KILLS), str(SEED)))
    assert tallied.faults == [], f"REMIT_RANDOM_SEED={SEED}"
    record_property(f"figure: crash law, kills at random times, seed {SEED}", tallied.kills)
