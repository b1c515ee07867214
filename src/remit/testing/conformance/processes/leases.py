"""What Leases of every backend must do within one process, and what its Journal does for those who lost one.

A check is a coroutine function. It opens an empty journal and its leases, of which none is held, with the function it is
given, uses them, and raises AssertionError with a sentence when they do not do what is relied on. Run each of
LEASES_CHECKS against yours, with any test runner. That a lease ends with its process, or with its time, can only be seen
with processes and a clock of your own.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import AppendConflict, Barrier, LeaseLost, RunListing, Warrant
from remit.orchestrate.ports import Journal, Leases
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import OTHER, RUN, add

# Opens an empty journal and its leases, of which none is held, and lets go of them afterwards.
OpenLeases = Callable[[], AbstractAsyncContextManager[tuple[Journal, Leases]]]
LeasesCheck = Callable[[OpenLeases], Coroutine[Any, Any, None]]

MANY_RUNS = 1_000
RIVALS = 20
ODD_IDS = ("", "a", "A", "a/b", "../a", "a\x00b", "ä", "a" * 5000)


async def a_run_is_taken_once(open_leases: OpenLeases) -> None:
    """The second process is told so, until the first lets go; every lease has a token of its own."""
    async with open_leases() as (_, leases):
        first = await leases.take(RUN)
        assert first, f"a run without a holder is taken under {first!r}, which is no token"
        assert await leases.take(RUN) is None, "a run was taken twice"
        await leases.release(RUN, first)
        second = await leases.take(RUN)
        assert second, "a run that was let go cannot be taken"
        assert second > first, f"token {second} of a run comes after {first}; a stale holder could not be told apart"


async def one_of_many_rivals_holds_a_run(open_leases: OpenLeases) -> None:
    """However many ask at once."""
    async with open_leases() as (_, leases):
        taken = [token for token in await asyncio.gather(*(leases.take(RUN) for _ in range(RIVALS))) if token]
        assert len(taken) == 1, f"of {RIVALS} who asked at once, {len(taken)} hold the run"


async def runs_are_held_apart(open_leases: OpenLeases) -> None:
    """Holding one says nothing of any other, however alike their ids are."""
    async with open_leases() as (_, leases):
        tokens = {run_id: await leases.take(run_id) for run_id in ODD_IDS}
        kept_out = [run_id[:20] for run_id, token in tokens.items() if token is None]
        assert not kept_out, f"runs {kept_out} have no holder and cannot be taken"
        await leases.release("a", tokens["a"] or 0)
        held = [run_id for run_id in ODD_IDS if await leases.is_held(run_id)]
        assert held == [run_id for run_id in ODD_IDS if run_id != "a"], f"after one was let go, {held} are held"


async def who_asks_takes_nothing(open_leases: OpenLeases) -> None:
    """Whether a run is held can be asked at any time, without being in the way of a holder."""
    async with open_leases() as (_, leases):
        assert not await leases.is_held(RUN), "a run without a holder is said to be held"
        token = await leases.take(RUN)
        assert token, "asking took the run"
        assert await leases.is_held(RUN), "a run that is held is said to be free"
        assert await leases.renew(RUN, token), "asking took the run from its holder"


async def a_lease_is_renewed_by_its_holder_alone(open_leases: OpenLeases) -> None:
    """A token of another lease, or of one that was let go, renews nothing."""
    async with open_leases() as (_, leases):
        assert not await leases.renew(RUN, 1), "a lease that was never taken was renewed"
        stale = await leases.take(RUN) or 0
        assert await leases.renew(RUN, stale), "the holder cannot renew its lease"
        await leases.release(RUN, stale)
        assert not await leases.renew(RUN, stale), "a lease that was let go was renewed"
        current = await leases.take(RUN) or 0
        assert not await leases.renew(RUN, stale), "a stale token renewed the lease of another"
        assert await leases.renew(RUN, current), "a stale token took the lease from its holder"


async def a_lease_is_let_go_by_its_holder_alone(open_leases: OpenLeases) -> None:
    """Letting go twice, of what was never taken, or of what another holds by now, is no error and changes nothing."""
    async with open_leases() as (_, leases):
        await leases.release(RUN, 1)
        stale = await leases.take(RUN) or 0
        assert stale, "a run without a holder cannot be taken"
        await leases.release(RUN, stale)
        current = await leases.take(RUN) or 0
        await leases.release(RUN, stale)
        assert await leases.renew(RUN, current), "a stale token let go of the lease of another"


async def a_token_is_of_its_run(open_leases: OpenLeases) -> None:
    """The token of another run, or none, renews nothing, lets go of nothing and writes nothing."""
    async with open_leases() as (journal, leases):
        await leases.release(RUN, await leases.take(RUN) or 0)
        own, foreign = await leases.take(OTHER) or 0, await leases.take(RUN) or 0
        for token in {0, foreign} - {own}:
            assert not await leases.renew(OTHER, token), f"token {token} renewed a lease under {own}"
            await leases.release(OTHER, token)
            assert await leases.renew(OTHER, own), f"token {token} let go of a lease under {own}"
        await add(journal, OTHER, b"0", listing=RunListing(1), warrant=Warrant(own))
        if leases.lasts_ms or foreign == own:
            return  # Such a backend need not know who holds what when it writes.
        for barrier in (None, Barrier("SUCCESS")):
            try:
                await add(journal, OTHER, b"foreign", barrier, warrant=Warrant(foreign))
            except LeaseLost:
                continue
            raise AssertionError("a turn was written under the lease of another run")


async def many_runs_may_be_held(open_leases: OpenLeases) -> None:
    """One process drives many runs."""
    async with open_leases() as (_, leases):
        taken = sum([await leases.take(f"run{number}") is not None for number in range(MANY_RUNS)])
        assert taken == MANY_RUNS, f"of {MANY_RUNS} runs without a holder, {taken} could be taken"


async def a_holder_writes_under_its_token(open_leases: OpenLeases) -> None:
    """From the first turn on, with and without a barrier."""
    async with open_leases() as (journal, leases):
        warrant = Warrant(await leases.take(RUN) or 0)
        await add(journal, RUN, b"0", listing=RunListing(1), warrant=warrant)
        await add(journal, RUN, b"1", warrant=warrant)
        await add(journal, RUN, b"2", barrier=Barrier("SUCCESS"), warrant=warrant)
        turns = list(await journal.read(RUN))
        assert turns == [b"0", b"1", b"2"], f"a holder wrote three turns, and there are {turns}"


async def a_stale_holder_writes_nothing(open_leases: OpenLeases) -> None:
    """Once another holds the run and has written its first turn, the holder before is refused."""
    async with open_leases() as (journal, leases):
        stale = Warrant(await leases.take(RUN) or 0)
        place = await add(journal, RUN, b"0", listing=RunListing(1), warrant=stale)
        await leases.release(RUN, stale.token)
        current = Warrant(await leases.take(RUN) or 0)
        await add(journal, RUN, b"taken over", warrant=current)
        for barrier in (None, Barrier("SUCCESS")):
            try:
                await journal.append(RUN, b"stale", place, barrier, None, stale)
            except (LeaseLost, AppendConflict):
                continue
            raise AssertionError("a holder wrote a turn although its lease went to another")
        await add(journal, RUN, b"next", barrier=Barrier(), warrant=current)
        turns = list(await journal.read(RUN))
        assert turns == [b"0", b"taken over", b"next"], f"beside a stale holder the turns are {turns}"


async def who_let_a_run_go_writes_nothing(open_leases: OpenLeases) -> None:
    """Where a lease lasts as long as its process, no turn of the next holder is needed to say so."""
    async with open_leases() as (journal, leases):
        stale = Warrant(await leases.take(RUN) or 0)
        place = await add(journal, RUN, b"0", listing=RunListing(1), warrant=stale)
        await leases.release(RUN, stale.token)
        if leases.lasts_ms:
            return  # Such a backend need not know who holds what when it writes.
        for barrier in (None, Barrier("SUCCESS")):
            try:
                await journal.append(RUN, b"late", place, barrier, None, stale)
            except LeaseLost:
                turns = list(await journal.read(RUN))
                assert turns == [b"0"], f"a turn was refused for its lease and written all the same: {turns}"
                continue
            raise AssertionError("a turn was written under a lease that was let go")


LEASES_CHECKS: Sequence[LeasesCheck] = in_words(
    a_run_is_taken_once,
    one_of_many_rivals_holds_a_run,
    runs_are_held_apart,
    who_asks_takes_nothing,
    a_lease_is_renewed_by_its_holder_alone,
    a_lease_is_let_go_by_its_holder_alone,
    a_token_is_of_its_run,
    many_runs_may_be_held,
    a_holder_writes_under_its_token,
    a_stale_holder_writes_nothing,
    who_let_a_run_go_writes_nothing,
)
