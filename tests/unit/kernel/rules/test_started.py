"""A run starts: its deadline is set and the first node entered."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.journal.commands import CallModel, SetTimer, TimerPurpose
from remit.core.journal.rulings import NodeEntered, RunAccepted
from remit.core.limits.boundary import Boundary
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import Graph
from remit.kernel.rules.started import STARTED
from tests.unit.kernel.builders import BEGINS_AT_MS, Run, manifest_of


def test_the_first_turn_accepts_the_run_sets_its_timer_and_enters_its_first_nodes() -> None:
    decisions = Run().turns[0].decisions
    deadline = BEGINS_AT_MS + 600_000
    assert decisions[:4] == (
        RunAccepted(deadline),
        SetTimer("0.1", deadline, TimerPurpose.DEADLINE),
        NodeEntered("prepare", STARTED),
        NodeEntered("think", "found"),
    )
    assert isinstance(decisions[4], CallModel)


def test_a_graph_that_may_not_run_is_refused_before_anything_is_written() -> None:
    with pytest.raises(RequestRejected, match="GRAPH_REFUSED"):
        Run(manifest_of(graph=Graph("empty", "nowhere", (), ())))


def test_a_goal_that_no_code_could_verify_is_refused_before_anything_is_written() -> None:
    with pytest.raises(RequestRejected, match="GOAL_INVALID"):
        Run(manifest_of(goal=Goal("do it", (Criterion("empty"),))))


def test_a_goal_that_can_be_verified_is_taken() -> None:
    run = Run(manifest_of(goal=Goal("do it", (Criterion("short", guard="answer_bytes < 9"),))))
    assert run.path() == ["prepare", "think"]


def test_the_manifest_is_pinned_with_the_version_of_its_boundary() -> None:
    narrow = Run(manifest_of(boundary=Boundary("narrow"))).state.manifest
    wide = Run(manifest_of(boundary=Boundary("wide"))).state.manifest
    assert narrow is not None
    assert wide is not None
    assert narrow.versions.boundary != wide.versions.boundary
