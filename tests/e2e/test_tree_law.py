"""Fifty children at once, three levels and more, on a real store: what the root used is what all journals add up to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import warm
from tests.e2e.command import PATIENCE_S, Remit, until
from tests.e2e.conftest import FIGURE
from tests.e2e.tree_errand import BUSY, ROOT, STORE
from tests.simulation.tree_scenarios import CHILDREN

FOLDER = Path(__file__).resolve().parents[2]
ERRAND = [sys.executable, "-m", "tests.e2e.tree_errand"]
# Each kill plays a whole tree twice; a soak plays one for every twenty kills of the other laws.
TREES_SOAK = max(int(os.environ.get("REMIT_RANDOM_KILLS", "100")) // 20, 1)

Record = Callable[[str, object], None]
pytestmark = pytest.mark.slow


def played(folder: Path, deed: str, seed: int) -> dict[str, Any]:
    """What a process tells that begins the tree or goes on with it."""
    command = [*ERRAND, str(folder), deed, str(seed), "0"]
    done = warm.run(command, cwd=FOLDER, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def begin_and_kill(folder: Path, seed: int, answers: int) -> bool:
    """Begin the tree and kill its process after so many answers of its models; whether it was still at work."""
    with warm.Popen(
        [*ERRAND, str(folder), "begin", str(seed), str(answers)], cwd=FOLDER, stdout=subprocess.DEVNULL
    ) as process:
        try:
            until(lambda: (folder / BUSY).exists() or process.poll() is not None, f"the tree has had {answers} answers")
        finally:
            process.send_signal(signal.SIGKILL)
    return process.returncode == -signal.SIGKILL


def expect_within_caps(folder: Path, told: dict[str, Any]) -> None:
    """Nothing is overshot, no run is left behind, and every figure is the same from every source."""
    assert told["wrong"] == []
    assert told["open"] == []
    assert told["in_the_tree"] == told["runs"] > CHILDREN
    assert told["levels"] >= 3
    assert told["spent"] == told["used"]
    assert all(amount <= told["caps"][name] for name, amount in told["used"].items()), told
    explained = Remit(folder).here("explain", ROOT, "--json").values
    shown = {spent["dimension"]: spent["used"] for spent in explained["explanation"]["spent"]}
    assert {name: shown.get(name, 0) for name in told["used"]} == told["used"]


def note(record_property: Record, told: dict[str, Any]) -> None:
    """Say the figures at the end of the tests."""
    for name in ("runs", "turns"):
        record_property(f"{FIGURE}{name} of trees on a real store", told[name])
    record_property(f"{FIGURE}milliseconds of trees on a real store", int(told["seconds"] * 1000))


def test_a_tree_with_fifty_children_at_once_spends_what_its_root_was_given_at_most(
    tmp_path: Path, record_property: Record
) -> None:
    assert Remit(tmp_path).home.name == STORE
    told = played(tmp_path, "begin", 1)
    assert told["at_once"] == CHILDREN == 50
    expect_within_caps(tmp_path, told)
    note(record_property, told)


@pytest.mark.parametrize("answers", [20, 120])
def test_a_tree_that_was_killed_in_the_middle_and_resumed_spends_no_more(
    answers: int, tmp_path: Path, record_property: Record
) -> None:
    assert begin_and_kill(tmp_path, 2, answers)
    told = played(tmp_path, "resume", 3)
    expect_within_caps(tmp_path, told)
    note(record_property, told)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(TREES_SOAK))
def test_a_tree_killed_anywhere_and_resumed_spends_no_more(seed: int, tmp_path: Path) -> None:
    begin_and_kill(tmp_path, seed, Random(seed).randrange(1, 250))
    expect_within_caps(tmp_path, played(tmp_path, "resume", seed + 1))
