"""The power law: whatever led to an effect, an approval, an answer or an ending survives a power loss at any point.

A real run is traced, and the disk is rebuilt as a power loss after every write, sync and promise would have left it:
without anything unsynced, with everything, and with some of it by a seed. `kill -9` leaves the page cache alone and
could not show any of this. tests/e2e/disk.py has the rules of the disk, tests/e2e/power_law.py what is checked.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import warm
from tests.e2e.disk import STRACE
from tests.e2e.power_law import MUTANTS

# Processes that check the points of one trace.
PARTS = 2
IS_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
# Where strace must be there, its absence is a failure of the test and no reason to leave it out.
needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None and not IS_CI,
    reason="THE POWER LAW WAS NOT TESTED: no strace here; install it (scripts/system_tools.sh says how)",
)


class Found(NamedTuple):
    """What losing the power at many points came to."""

    points: int
    losses: int
    faults: list[str]


pytestmark = [pytest.mark.slow, needs_strace]


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.e2e.power_law", *arguments]


def trace(folder: Path, errand: str, *mutant: str) -> None:
    """Trace an errand, with a fault of the house if one is named."""
    (folder / "disk").mkdir()
    traced = [*STRACE, "--output", str(folder / "trace"), *program(errand, str(folder / "disk"), *mutant)]
    played = subprocess.run(traced, capture_output=True, text=True, check=False)
    assert played.returncode == 0, played.stderr


def lose_the_power(folder: Path, which: str) -> Found:
    """Check the points of the trace, a part of them in each of a few processes."""
    checked = ("check", str(folder / "disk"), str(folder / "trace"), which)
    checks = [program(*checked, str(part), str(PARTS)) for part in range(PARTS)]
    running = [warm.Popen(check, stdout=subprocess.PIPE, text=True) for check in checks]
    found = [Found(**json.loads(process.communicate()[0] or "{}")) for process in running]
    return Found(
        sum(each.points for each in found),
        sum(each.losses for each in found),
        [fault for each in found for fault in each.faults],
    )


@pytest.mark.parametrize(
    ("errand", "which"),
    [
        ("errand", "marked"),
        # Whatever the process does, also while it opens and closes its store.
        pytest.param("errand", "all", marks=pytest.mark.soak),
        # A person who speaks through a second process is told no sooner than the first has synced.
        ("errand-with-two", "marked"),
        # What a killed process committed and did not sync is synced by the next one, before it acts.
        ("errand-after-a-kill", "marked"),
    ],
)
def test_nothing_that_was_acted_on_is_lost_with_the_power(
    errand: str, which: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    trace(tmp_path, errand)
    found = lose_the_power(tmp_path, which)
    assert found.faults == []
    assert found.points > 0
    record_property("figure: power law, points", found.points)
    record_property("figure: power law, losses of power", found.losses)


@pytest.mark.parametrize(
    "mutant", [pytest.param(one, marks=pytest.mark.soak) if one == "logs_heads_first" else one for one in MUTANTS]
)
def test_a_house_that_breaks_the_power_law_is_found_out(mutant: str, tmp_path: Path) -> None:
    trace(tmp_path, "errand", mutant)
    # A head that is logged too soon is lost between two marks.
    found = lose_the_power(tmp_path, "all" if mutant == "logs_heads_first" else "marked")
    assert any(MUTANTS[mutant][1] in fault for fault in found.faults), found
