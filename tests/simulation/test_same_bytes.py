"""Two processes with different hash seeds must write the same bytes for a whole batch of worlds."""

import os
import subprocess
import sys

import pytest

# Real processes take their time; `make check` leaves them to `make test`.
pytestmark = pytest.mark.slow

# The laws play every seed; that they come out alike elsewhere is seen in some of them.
SEEDS = int(os.environ.get("REMIT_SIMULATION_SEEDS", "200")) // 16

# A mutant whose decisions depend on the order of a set of texts, which differs from process to process.
LEAKING = """
from unittest import mock
from remit.kernel.authority import call_rulings
def leaks(call, tally):
    return tuple({"first reason", "second reason", "third reason", call.tool})
with mock.patch.object(call_rulings, "reasons_to_ask", leaks):
    from tests.simulation.play import hash_of_worlds
    print(hash_of_worlds(range(20)))
"""


def _printed(hash_seed: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_two_processes_with_different_hash_seeds_write_identical_bytes() -> None:
    batch = ("-m", "tests.simulation.play", "0", str(SEEDS))
    assert _printed("1", *batch) == _printed("2", *batch)


@pytest.mark.parametrize("hash_seeds", [("1", "2")])
def test_a_decision_that_depends_on_hash_order_is_noticed(hash_seeds: tuple[str, str]) -> None:
    first, second = (_printed(seed, "-c", LEAKING) for seed in hash_seeds)
    assert first != second
