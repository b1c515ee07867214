"""The crash law: killed at any moment, a run goes on; nothing that was acknowledged is lost, nothing is done twice.

A process kills itself with SIGKILL before, during and after every append, and after every effect, of a run with reads,
a slow tool, parallel calls, approvals, an idempotent, a reconcilable and a plain effect, and a child. Another process
takes the run up; tests/e2e/crash_law.py says what is checked then.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import Any

import pytest

from tests.e2e.crash_law import MUTANTS

PARTS = 4
RANDOM_KILLS = int(os.environ.get("REMIT_RANDOM_KILLS", "20"))
SEED = int(os.environ.get("REMIT_RANDOM_SEED") or SystemRandom().randrange(1 << 32))

Record = Callable[[str, object], None]


def play(folder: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.e2e.crash_law", str(folder), *arguments]
    played = subprocess.run(command, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stdout + played.stderr
    tallied: dict[str, Any] = json.loads(played.stdout)
    return tallied


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_run_that_is_killed_at_any_position_ends_as_if_it_had_not_been(
    part: int, tmp_path: Path, record_property: Record
) -> None:
    tallied = play(tmp_path, "part", str(part), str(PARTS))
    assert tallied["faults"] == []
    assert tallied["kills"] >= tallied["positions"] > 0
    record_property("figure: crash law, positions", tallied["positions"])
    record_property("figure: crash law, kills", tallied["kills"])


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_house_that_breaks_the_crash_law_is_found_out(mutant: str, tmp_path: Path) -> None:
    assert play(tmp_path, "mutant", mutant)["faults"] != []


@pytest.mark.slow
@pytest.mark.soak
def test_a_run_that_is_killed_at_random_times_ends_as_if_it_had_not_been(
    tmp_path: Path, record_property: Record
) -> None:
    tallied = play(tmp_path, "random", str(RANDOM_KILLS), str(SEED))
    assert tallied["faults"] == [], f"REMIT_RANDOM_SEED={SEED}"
    record_property(f"figure: crash law, kills at random times, seed {SEED}", tallied["kills"])
