"""The benchmarks of the cluster measure what they say, on nodes and workers as processes of their own."""

import asyncio
import os
from pathlib import Path

import pytest

from benchmarks import cluster, workers
from benchmarks.nodes import cpu_s, held_kb, nodes

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]


def test_a_turn_is_timed_beside_its_floors_and_its_bytes_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(cluster.measure_turns(1, 2))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["ms", "ms", "ms", "ms", "bytes"]
    assert all(float(line.split()[0].replace(",", "")) > 0 for line in lines)


def test_runs_that_wait_are_told_by_what_workers_hold_of_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "REST_S", 0.1)
    asyncio.run(cluster.measure_suspended(3))
    told = capsys.readouterr().out
    assert "3 in all" in told
    assert [f"in the {part} worker that has just begun" in told for part in workers.PARTS] == [True] * 3


def test_three_nodes_do_the_bare_protocol_and_tell_what_they_used(tmp_path: Path) -> None:
    with nodes(tmp_path, 3) as three:
        assert asyncio.run(workers.bare_protocol(three.address, 2)) > 0
        assert three.bytes_of_clients() > len(workers.TURN) * workers.TURNS
        assert cpu_s(*three.pids) >= 0
        assert held_kb(os.getpid()) > 0
