"""What every Ledger must do, together with the Journal that writes it.

A check opens an empty journal and its ledger with the function it is given, and raises AssertionError with a sentence
when what runs count for their tenants is not kept as the quotas rely on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import START, AppendConflict, Barrier, Place, QuotaConflict, RunListing, SessionConflict
from remit.core.limits.budget import Dimension
from remit.core.limits.quota import HOUR_MS, NEVER_MS, Charge, Committed, Limit, Period, Reservation
from remit.orchestrate.ports import Journal, Ledger
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import OTHER, RUN, add

OpenLedger = Callable[[], AbstractAsyncContextManager[tuple[Journal, Ledger]]]
LedgerCheck = Callable[[OpenLedger], Coroutine[Any, Any, None]]

RIVALS = 20
TOKENS = int(Dimension.OUTPUT_TOKENS)
CALLS = int(Dimension.TOOL_CALLS)


def limit(amount: int, dimension: int = TOKENS, from_ms: int = 0, until_ms: int = NEVER_MS) -> Limit:
    """A limit, for ever unless said."""
    return Limit(Period.TOTAL, dimension, amount, from_ms, until_ms)


async def what_is_reserved_counts(open_ledger: OpenLedger) -> None:
    """A run that begins counts with what it reserves, in each dimension and from its moment on."""
    async with open_ledger() as (journal, ledger):
        await _begin(journal, RUN, ((TOKENS, 60), (CALLS, 3)), limit(100), at_ms=2 * HOUR_MS + 10)
        await _expect(ledger, limit(100), Committed(0, 60))
        await _expect(ledger, limit(100, CALLS), Committed(0, 3))
        await _expect(ledger, limit(100, from_ms=3 * HOUR_MS), Committed())
        await _expect(ledger, limit(100, until_ms=2 * HOUR_MS), Committed())
        await _expect(ledger, limit(100), Committed(), tenant_id="another")


async def what_does_not_fit_begins_nothing(open_ledger: OpenLedger) -> None:
    """A run that finds no room is refused, and neither a turn nor a reservation of it is kept."""
    async with open_ledger() as (journal, ledger):
        await _begin(journal, "first", ((TOKENS, 60),), limit(100))
        assert not await _begin(journal, "second", ((TOKENS, 41),), limit(100)), "60 and 41 were reserved of 100"
        assert not list(await journal.read("second")), "a run that was refused has a turn"
        await _expect(ledger, limit(100), Committed(0, 60))
        assert await _begin(journal, "second", ((TOKENS, 40),), limit(100)), "60 and 40 do not fit 100"


async def nothing_always_fits(open_ledger: OpenLedger) -> None:
    """A run that reserves nothing of a dimension begins, also where more is spent than the limit by now allows."""
    async with open_ledger() as (journal, _):
        await _begin(journal, "first", ((TOKENS, 60),), limit(100))
        assert await _begin(journal, "second", ((CALLS, 1),), limit(50)), "a run that needs nothing was refused"


async def every_limit_holds(open_ledger: OpenLedger) -> None:
    """A run that fits one limit and not another begins nothing, in either order; each refusal names what counts against it."""
    async with open_ledger() as (journal, ledger):
        for number, within in enumerate(((limit(100), limit(2, CALLS)), (limit(2, CALLS), limit(100)))):
            reserves = Reservation(1, ((TOKENS, 10), (CALLS, 3)), within)
            try:
                await journal.append(
                    f"run{number}", b"turn", START, listing=RunListing(1, tenant_id="tenant", reserves=reserves)
                )
            except QuotaConflict:
                continue
            raise AssertionError("a run began that one of its limits has no room for")
        await _begin(journal, RUN, ((TOKENS, 60), (CALLS, 1)), limit(100))
        asked = [limit(100, CALLS), limit(100), limit(100, CALLS)]
        found = [committed.reserved for committed in await ledger.committed("tenant", asked)]
        assert found == [1, 60, 1], f"limits are told {found}, each in its place"
        await _expect(ledger, limit(100), Committed(), tenant_id="Tenant")


async def rivals_never_reserve_more_than_there_is(open_ledger: OpenLedger) -> None:
    """Of runs that begin at the same time, exactly as many do as there is room for."""
    async with open_ledger() as (journal, ledger):
        rivals = [_begin(journal, f"run{number}", ((TOKENS, 30),), limit(100)) for number in range(RIVALS)]
        begun = sum(await asyncio.gather(*rivals))
        assert begun == 3, f"{begun} runs of 30 have begun within 100"
        await _expect(ledger, limit(100), Committed(0, 90))


async def what_a_run_came_to_takes_the_place_of_its_reservation(open_ledger: OpenLedger) -> None:
    """The charge comes with the ending, and once more with what comes after it; the last word counts."""
    async with open_ledger() as (journal, ledger):
        await _begin(journal, RUN, ((TOKENS, 60), (CALLS, 3)), limit(100))
        await _end(journal, RUN, ((TOKENS, 25),))
        await _expect(ledger, limit(100), Committed(25, 0))
        await _expect(ledger, limit(100, CALLS), Committed())
        await _end(journal, RUN, ((TOKENS, 20),))
        await _expect(ledger, limit(100), Committed(20, 0))


async def a_run_stays_in_the_period_it_began_in(open_ledger: OpenLedger) -> None:
    """Whenever it ends, what it came to counts where it was reserved."""
    async with open_ledger() as (journal, ledger):
        await _begin(journal, RUN, ((TOKENS, 60),), limit(100), at_ms=2 * HOUR_MS + 10)
        await _end(journal, RUN, ((TOKENS, 25),), at_ms=9 * HOUR_MS)
        await _expect(ledger, limit(100, from_ms=2 * HOUR_MS, until_ms=3 * HOUR_MS), Committed(25, 0))
        await _expect(ledger, limit(100, from_ms=3 * HOUR_MS), Committed())


async def a_run_may_begin_and_end_in_one_turn(open_ledger: OpenLedger) -> None:
    """Then only what it came to is left."""
    async with open_ledger() as (journal, ledger):
        charge = Charge(RUN, "tenant", 1, ((TOKENS, 5),))
        listing = RunListing(1, tenant_id="tenant", reserves=Reservation(1, ((TOKENS, 60),), (limit(100),)))
        await add(journal, RUN, b"all", listing=listing, barrier=Barrier("SUCCESS", charge=charge))
        await _expect(ledger, limit(100), Committed(5, 0))


async def a_turn_that_loses_changes_nothing(open_ledger: OpenLedger) -> None:
    """Who comes second to a run, or to a place in a session, reserves and settles nothing."""
    async with open_ledger() as (journal, ledger):
        await _begin(journal, RUN, ((TOKENS, 90),), limit(100), session_id="session")
        try:
            await _begin(journal, RUN, ((TOKENS, 90),), limit(100), place=START)
            raise AssertionError("a run was begun twice")
        except AppendConflict:
            pass
        try:
            await _end(journal, RUN, ((TOKENS, 1),), place=START)
            raise AssertionError("a turn was written where its run does not stand")
        except AppendConflict:
            pass
        try:
            await _begin(journal, OTHER, ((TOKENS, 5),), limit(100), session_id="session")
            raise AssertionError("a place in a session was taken twice")
        except SessionConflict:
            pass
        await _expect(ledger, limit(100), Committed(0, 90))


async def runs_that_are_not_counted_as_they_stand_are_named(open_ledger: OpenLedger) -> None:
    """Runs of the tenant since the time that were not counted, or that ended uncounted; children never."""
    async with open_ledger() as (journal, ledger):
        await add(journal, "uncounted", b"turn", listing=RunListing(5, tenant_id="tenant"))
        await add(journal, "child", b"turn", listing=RunListing(5, tenant_id="tenant", parent_id="uncounted"))
        await add(journal, "another's", b"turn", listing=RunListing(5, tenant_id="another"))
        await add(journal, "early", b"turn", listing=RunListing(4, tenant_id="tenant"))
        await _begin(journal, "open", ((TOKENS, 1),), limit(9), at_ms=5)
        await _begin(journal, "ended", ((TOKENS, 1),), limit(9), at_ms=5)
        await add(journal, "ended", b"end", barrier=Barrier("SUCCESS"))
        found = list(await ledger.uncounted("tenant", 5))
        assert found == ["uncounted", "ended"], f"{found} are named as not counted"
        assert list(await ledger.tenants()) == ["another", "tenant"], "the tenants are not those who have runs"


async def runs_are_counted_as_they_stand_or_not_at_all(open_ledger: OpenLedger) -> None:
    """A charge for a run that has ended meanwhile, or is not there, is left out."""
    async with open_ledger() as (journal, ledger):
        await add(journal, RUN, b"turn", listing=RunListing(5, tenant_id="tenant"))
        charge = Charge(RUN, "tenant", 5, ((TOKENS, 7),), is_open=True)
        await ledger.count([charge, Charge("unknown", "tenant", 5, ((TOKENS, 7),))])
        await _expect(ledger, limit(100), Committed(0, 7))
        await add(journal, RUN, b"end", barrier=Barrier("SUCCESS"))
        await ledger.count([Charge(RUN, "tenant", 5, ((TOKENS, 9),), is_open=True)])
        await _expect(ledger, limit(100), Committed(0, 7))
        await ledger.count([Charge(RUN, "tenant", 5, ((TOKENS, 9),))])
        await _expect(ledger, limit(100), Committed(9, 0))


async def a_run_that_is_counted_again_counts_once(open_ledger: OpenLedger) -> None:
    """Nothing of how it was counted is left, neither an amount nor its moment."""
    async with open_ledger() as (journal, ledger):
        await _begin(journal, RUN, ((TOKENS, 60), (CALLS, 3)), limit(100))
        await ledger.count([Charge(RUN, "tenant", 2 * HOUR_MS, ((TOKENS, 50),), is_open=True)])
        await _expect(ledger, limit(100), Committed(0, 50))
        await _expect(ledger, limit(100, CALLS), Committed())
        await _expect(ledger, limit(100, until_ms=2 * HOUR_MS), Committed())
        assert list(await journal.read(RUN)) == [b"turn"], "counting a run changed its turns"


LEDGER_CHECKS: Sequence[LedgerCheck] = in_words(
    what_is_reserved_counts,
    what_does_not_fit_begins_nothing,
    nothing_always_fits,
    every_limit_holds,
    rivals_never_reserve_more_than_there_is,
    what_a_run_came_to_takes_the_place_of_its_reservation,
    a_run_stays_in_the_period_it_began_in,
    a_run_may_begin_and_end_in_one_turn,
    a_turn_that_loses_changes_nothing,
    runs_that_are_not_counted_as_they_stand_are_named,
    runs_are_counted_as_they_stand_or_not_at_all,
    a_run_that_is_counted_again_counts_once,
)


async def _begin(
    journal: Journal,
    run_id: str,
    amounts: tuple[tuple[int, int], ...],
    within: Limit,
    *,
    at_ms: int = 1,
    session_id: str = "",
    place: Place | None = None,
) -> bool:
    """Begin a run that reserves this; says whether there was room."""
    reserves = Reservation(at_ms, amounts, (within,))
    listing = RunListing(at_ms, tenant_id="tenant", session_id=session_id, reserves=reserves)
    try:
        stands_at = (await journal.read(run_id)).place if place is None else place
        await journal.append(run_id, b"turn", stands_at, listing=listing)
    except QuotaConflict:
        return False
    return True


async def _end(
    journal: Journal,
    run_id: str,
    amounts: tuple[tuple[int, int], ...],
    *,
    at_ms: int = 1,
    place: Place | None = None,
) -> None:
    barrier = Barrier("SUCCESS", charge=Charge(run_id, "tenant", at_ms, amounts))
    stands_at = (await journal.read(run_id)).place if place is None else place
    await journal.append(run_id, b"end", stands_at, barrier)


async def _expect(ledger: Ledger, within: Limit, expected: Committed, tenant_id: str = "tenant") -> None:
    (found,) = await ledger.committed(tenant_id, [within])
    assert found == expected, f"{found} counts against {within}, and should be {expected}"
