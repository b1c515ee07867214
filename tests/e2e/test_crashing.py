"""A process dies exactly at the moment that was chosen, and what it said before arrives."""

import asyncio
import os
import subprocess
import sys

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.journal.storage import AppendConflict, RunListing
from tests.e2e.crashing import CrashingStore, Fuse, Moment, Position

# Real processes take their time; `make check` leaves them to `make test`.
pytestmark = pytest.mark.slow

# Forking belongs into a process without threads, which the one that runs tests may not be.
PROGRAM = """
import os, sys
from threading import Event
from tests.e2e.crashing import Fuse, Moment, Position, in_fork, kill_this_process

def work(tell):
    tell("begun")
    {work}
    tell("ended")

forked = in_fork(work{options})
print(forked.was_killed, forked.has_ended_well, forked.said[0], forked.said[-1])
"""


def forked(work: str, options: str = "") -> str:
    program = PROGRAM.format(work=work, options=options)
    played = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return played.stdout.strip()


def test_a_fuse_kills_at_its_position_and_at_no_other() -> None:
    killed: list[str] = []
    fuse = Fuse(Position(Moment.AFTER_EFFECT, 1), kill=lambda: killed.append("killed"))
    for moment in (Moment.AFTER_EFFECT, Moment.AFTER_APPEND, Moment.AFTER_APPEND):
        fuse.passes(moment)
    assert killed == []
    fuse.passes(Moment.AFTER_EFFECT)
    assert killed == ["killed"]


def test_a_fuse_without_a_position_counts_every_moment() -> None:
    fuse = Fuse()
    for moment in (Moment.AFTER_EFFECT, Moment.BEFORE_APPEND, Moment.AFTER_EFFECT):
        fuse.passes(moment)
    assert fuse.positions() == [
        Position(Moment.BEFORE_APPEND, 0),
        Position(Moment.AFTER_EFFECT, 0),
        Position(Moment.AFTER_EFFECT, 1),
    ]


def test_an_append_passes_three_moments_and_is_told_between_the_last_two() -> None:
    seen: list[str] = []

    class Watching(Fuse):
        def passes(self, moment: Moment) -> None:  # type: ignore[explicit-override]  # typing.override is of 3.12
            seen.append(moment.value)

    async def append() -> None:
        store = CrashingStore(MemoryStore(), Watching(), lambda run_id, seq, data: seen.append(f"{run_id} {seq}"))
        await store.journal.append("run", b"first", after=-1, listing=RunListing(0))
        assert await store.journal.read("run") == [b"first"]
        entry = await store.catalogue.entry("run")
        assert entry is not None
        await store.close()

    asyncio.run(append())
    assert seen == ["before_append", "during_append", "run 0", "after_append"]


def test_an_append_that_is_refused_is_not_told() -> None:
    told: list[int] = []

    async def append() -> None:
        store = CrashingStore(MemoryStore(), Fuse(), lambda run_id, seq, data: told.append(seq))
        await store.journal.append("run", b"late", after=7)

    with pytest.raises(AppendConflict):
        asyncio.run(append())
    assert told == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize(
    ("work", "options", "came_to"),
    [
        ("pass", "", "False True begun ended"),
        ("kill_this_process()", "", "True False begun begun"),
        ("Fuse(Position(Moment.AFTER_EFFECT, 0)).passes(Moment.AFTER_EFFECT)", "", "True False begun begun"),
        ("Event().wait()", ", kill_after_s=0.5", "True False begun begun"),
        ("raise OSError('no luck')", "", "False False begun OSError: no luck"),
    ],
)
def test_a_forked_process_says_what_it_did_until_it_ends_or_dies(work: str, options: str, came_to: str) -> None:
    assert forked(work, options) == came_to
