"""Every law, on many seeded worlds: crashes, duplicates, delays, rivals, clock jumps, hostile answers, lost children."""

import os

import pytest

from tests.simulation.laws.every_law import keep_the_law
from tests.simulation.scenarios import scenario

SEEDS = int(os.environ.get("REMIT_SIMULATION_SEEDS", "200"))
# Small enough that two workers share the load evenly, large enough that starting a test costs nothing.
CHUNK = 50


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_run_of_a_stormy_world_keeps_the_law(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        keep_the_law(scenario(seed))
