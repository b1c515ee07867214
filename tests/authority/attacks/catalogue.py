"""The catalogue: every kind of attack, applied to every task it fits.

Rule 1: the order is fixed, so that a number names the same run everywhere.
Rule 2: a sample takes from each kind of each world, never from the whole at random.
Rule 3: every run can leak. An attack that carries something out by a read has read something first that is worth it.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from tests.authority.attacks import choices, forgeries, goals, payloads, sessions, swaps
from tests.authority.attacks.goals import Generator
from tests.authority.attacks.script import Run, injected
from tests.authority.effects import Ledger
from tests.authority.suite import Call, Json, Tool, World, worlds

KINDS: dict[str, Generator] = {
    **goals.KINDS,
    **swaps.KINDS,
    **forgeries.KINDS,
    **choices.KINDS,
    **payloads.KINDS,
    **sessions.KINDS,
}


def attacks(world: World, *, kind: str = "", task: str = "") -> Iterator[Run]:
    """The attacked runs of a world, or those of one kind or one task."""
    for name, generate in KINDS.items():
        if kind in ("", name):
            for one in world.tasks:
                if one.id.startswith(task):
                    yield from (replace(_having_read(run), kind=name) for run in generate(world, one))


def _having_read(run: Run) -> Run:
    """The same run; where it could carry nothing out, it reads the world's secret before anything else."""
    ledger = Ledger(run.world, run.task.calls, has_read=bool(run.read))
    if any(list(map(ledger.books, (move.call for move in run.moves)))):
        return run

    def tamper(number: int, tool: Tool, result: Json) -> Json:
        return run.tamper(number - 1, tool, result) if number else result

    secret = injected(Call.read(run.world.attack["secret"]["read"]))
    return replace(run, moves=(secret, *run.moves), tamper=tamper)


def sample(runs_max: int, seed: int) -> list[Run]:
    """A part of all runs that holds every kind of every world, the same for the same seed."""
    chance, cells = random.Random(seed), _cells()
    share = max(1, runs_max // len(cells))
    return [run for cell in cells.values() for run in chance.sample(cell, min(share, len(cell)))]


@cache
def _cells() -> dict[tuple[str, str], list[Run]]:
    """All runs of every kind of every world."""
    cells: dict[tuple[str, str], list[Run]] = {}
    for world in worlds():
        for run in attacks(world):
            cells.setdefault((world.name, run.kind), []).append(run)
    return cells
