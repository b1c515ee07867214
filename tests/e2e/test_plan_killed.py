"""A plan is killed at any of its steps, and another process goes on without repeating one that was finished."""

import json
import signal
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.e2e.command import PATIENCE_S, until
from tests.e2e.plan_errand import HANGING, LOG, PLACES

ROOT = Path(__file__).resolve().parents[2]
ERRAND = [sys.executable, "-m", "tests.e2e.plan_errand"]
OUTPUTS = {
    "code": "code of begin",
    "infer": "an answer",
    "object": {"at": "an answer"},
    "tool": "seen an answer",
    "validate": "seen an answer",
    "vote": {"ok": True},
    "last": "last of {'ok': True}",
}


def begun_after_a_kill(deed: str, place: str, tmp_path: Path) -> list[str]:
    """Kill a plan at a place and resume it: what was begun, in its order; everything was done once in the end."""
    with warm.Popen([*ERRAND, str(tmp_path), deed, place], cwd=ROOT) as process:
        try:
            until((tmp_path / HANGING).exists, f"the plan has come to {place}")
        finally:
            process.send_signal(signal.SIGKILL)
    resumed = warm.run(
        [*ERRAND, str(tmp_path), "resume"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    told = json.loads(resumed.stdout)
    assert told == {"ending": "SUCCESS", "outputs": OUTPUTS, "verified": True, "replayed": "same"}
    lines = (tmp_path / LOG).read_text().splitlines()
    done = [line.removeprefix("- ") for line in lines if line.startswith("-")]
    assert [one for one in done if one != "planner"] == list(PLACES)
    return [line.removeprefix("+ ") for line in lines if line.startswith("+")]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_plan_killed_at_any_step_goes_on_and_repeats_no_finished_one(place: str, tmp_path: Path) -> None:
    begun = begun_after_a_kill("begin", place, tmp_path)
    # Only what was cut off is begun a second time.
    assert [one for one in PLACES if begun.count(one) != 1] == [place]
    assert begun.count(place) == 2


@pytest.mark.slow
@pytest.mark.req("0.32")
@pytest.mark.parametrize("place", ["planner", "infer"])
def test_a_planner_that_was_killed_is_asked_again_and_one_that_was_done_is_not(place: str, tmp_path: Path) -> None:
    begun = begun_after_a_kill("plan", place, tmp_path)
    assert [one for one in ("planner", *PLACES) if begun.count(one) != 1] == [place]
    assert begun.count(place) == 2
