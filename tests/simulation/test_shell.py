"""Whole systems, several on one store, in many seeded worlds: every law holds, and one seed gives one history."""

import os

import pytest

from tests.simulation.laws.shells import keep_the_law
from tests.simulation.shell_world import earlier_scenario, shell_scenario

SEEDS = int(os.environ.get("REMIT_SIMULATION_SEEDS", "200"))
# Small enough that two workers share the load evenly, large enough that starting a test costs nothing.
CHUNK = 25


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_world_of_whole_systems_keeps_the_law(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        keep_the_law(shell_scenario(seed))


# Worlds that broke a law once, each with what was wrong, as they were before there were small troubles.
BROKEN = {
    2001217: "a person who retried was told that the run had ended, since the driver before ended the fork as it was taken up",
    2004948: "the same, of a fork that another process made",
    2101070: "a caller that waited for a slow store counted how often it had looked, and not for how long",
    7435: "a call that may be repeated, and that a halt called off after it had acted, was taken for one that was issued twice",
    4003466: "a halt that another process had lifted by the time its sender was told was taken for one that stands",
    4006105: "the same, of a halt that was written while an earlier one stood, and that one lift ended with it",
    4008984: "what the child of an origin committed was looked for in a child of the fork, which never began",
    5000831: "a call that a process began while it was closing was taken for one of the process that had to repeat it",
    5000083: "a driver that had read that another took its run up still began what it had ordered itself",
    9100863: "an alarm that rang for a deadline moved by a wait was dated before it by a clock that was set back",
    2001607: "what a fork copied of its origin was taken for a taking up of the fork",
}


@pytest.mark.parametrize("seed", BROKEN)
def test_a_world_that_broke_a_law_once_keeps_it(seed: int) -> None:
    keep_the_law(earlier_scenario(seed))


# The same, of worlds as they are now.
BROKEN_SINCE = {
    20: "a parent rested for good: another process ended its child while the parent was being told that the child waits",
    209: "a call began although the lease of its run had gone to another process while the approval was heard",
}


@pytest.mark.parametrize("seed", BROKEN_SINCE)
def test_a_world_that_broke_a_law_since_keeps_it(seed: int) -> None:
    keep_the_law(shell_scenario(seed))


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_one_seed_gives_the_same_journals_byte_for_byte(seed: int) -> None:
    first, second = shell_scenario(seed), shell_scenario(seed)
    assert first.journals() == second.journals()
    assert first.told == second.told
    assert first.loop.steps == second.loop.steps
