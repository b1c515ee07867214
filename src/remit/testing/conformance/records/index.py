"""What the Index of every backend must do: runs are listed as they are said to be, unless they have gone on meanwhile.

A check is a coroutine function. It opens an empty store with the function it is given, uses it, and raises AssertionError
with a sentence when it does not do what is relied on. Run each of INDEX_CHECKS against yours, with any test runner.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import Barrier, Derived, RunEntry, RunListing
from remit.orchestrate.ports import Store
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import RUN, add

# Opens a store that is empty, and closes it afterwards.
OpenIndexed = Callable[[], AbstractAsyncContextManager[Store]]
IndexCheck = Callable[[OpenIndexed], Coroutine[Any, Any, None]]


async def every_journal_is_named(open_store: OpenIndexed) -> None:
    """In the order in which they began, whether they are listed or not."""
    async with open_store() as store:
        assert list(await store.index.names()) == [], "an empty store has journals"
        for name in ("b", "a", "c"):
            await add(store.journal, name, b"turn", listing=RunListing(1) if name != "a" else None)
        await add(store.journal, "b", b"turn")
        found = list(await store.index.names())
        assert found == ["b", "a", "c"], f"journals began as b, a, c and are named as {found}"


async def a_run_is_listed_as_its_turns_tell(open_store: OpenIndexed) -> None:
    """Whatever was known of it before; making it anew twice changes nothing."""
    async with open_store() as store:
        listing = RunListing(
            started_at_ms=5,
            mode="chat",
            tenant_id="tenant",
            session_id="session",
            ordinal=0,
            parent_id="",
            lineage=("first",),
        )
        await add(store.journal, RUN, b"0", listing=listing)
        await add(store.journal, RUN, b"1", Barrier(waiting_for="REVIEW_REQUIRED"))
        made = Derived(RUN, 2, listing, Barrier(waiting_for="REVIEW_REQUIRED"))
        for _ in range(2):
            assert list(await store.index.renew([made])) == [RUN], "a run that stands as it was read was not renewed"
            entry = await store.catalogue.entry(RUN)
            expected = RunEntry(RUN, listing, 2, "", "REVIEW_REQUIRED")
            assert entry == expected, f"a run was made anew and is listed as {entry}"
            await store.index.sum_up()
            session = [entry.run_id for entry in await store.catalogue.session("session")]
            assert session == [RUN], f"a session of one run holds {session}"


async def many_runs_are_listed_at_once(open_store: OpenIndexed) -> None:
    """All of them; and a run that has a turn is never forgotten."""
    async with open_store() as store:
        names = [f"run{number}" for number in range(5)]
        for name in names:
            await add(store.journal, name, b"0", listing=RunListing(1, "plan"))
        made = [Derived(name, 1, RunListing(1, "plan"), Barrier()) for name in names]
        assert list(await store.index.renew(made)) == names, "of runs that were made anew together, some are not"
        assert list(await store.index.strike()) == [], "a run that has a turn was forgotten"
        modes = [entry.listing.mode for name in names if (entry := await store.catalogue.entry(name)) is not None]
        assert modes == ["plan"] * 5, f"five plans were made anew, and are listed as {modes}"


async def whom_a_run_heard_is_told_so(open_store: OpenIndexed) -> None:
    """An entry that was refused stays refused."""
    async with open_store() as store:
        await add(store.journal, RUN, b"0", listing=RunListing(1))
        heard, refused = await store.inbox.put(RUN, b"a"), await store.inbox.put(RUN, b"b")
        await store.inbox.settle(refused, "NO", "no")
        await add(store.journal, RUN, b"1", Barrier(heard=heard, answer="fork"))
        await store.index.renew(
            [
                Derived(
                    run_id=RUN,
                    turns=2,
                    listing=RunListing(1),
                    standing=Barrier(),
                    ended_at_ms=None,
                    heard=((heard, "fork"), (refused, "")),
                )
            ]
        )
        assert await store.inbox.outcome(heard) == ("", "fork"), "an entry that a turn answers is not settled"
        assert await store.inbox.outcome(refused) == ("NO", "no"), "a refusal was overwritten"


async def a_verdict_that_was_lost_is_told_anew(open_store: OpenIndexed) -> None:
    """An entry is settled as the turn says that answers it, also where nothing was written with that turn."""
    async with open_store() as store:
        await add(store.journal, RUN, b"0", listing=RunListing(1))
        heard = await store.inbox.put(RUN, b"a")
        await add(store.journal, RUN, b"1", Barrier())
        await store.index.renew(
            [
                Derived(
                    run_id=RUN,
                    turns=2,
                    listing=RunListing(1),
                    standing=Barrier(),
                    ended_at_ms=None,
                    heard=((heard, "fork"),),
                )
            ]
        )
        assert await store.inbox.outcome(heard) == ("", "fork"), "an entry that a turn answers is not settled anew"


async def a_run_that_has_gone_on_is_left_as_it_is(open_store: OpenIndexed) -> None:
    """The driver of the run knows better by now; and a run that is not there is not listed."""
    async with open_store() as store:
        await add(store.journal, RUN, b"0", listing=RunListing(1, "chat"))
        await add(store.journal, RUN, b"1", Barrier("SUCCESS"))
        stale = [Derived(RUN, 1, RunListing(1, "plan"), Barrier()), Derived("unknown", 1, RunListing(1), Barrier())]
        assert list(await store.index.renew(stale)) == [], "a run that has gone on was listed as it was before"
        entry = await store.catalogue.entry(RUN)
        assert entry == RunEntry(RUN, RunListing(1, "chat"), 2, "SUCCESS"), (
            f"a run that has gone on is listed as {entry}"
        )
        assert await store.catalogue.entry("unknown") is None, "a run that is not there is listed"


INDEX_CHECKS: Sequence[IndexCheck] = in_words(
    every_journal_is_named,
    a_run_is_listed_as_its_turns_tell,
    many_runs_are_listed_at_once,
    whom_a_run_heard_is_told_so,
    a_run_that_has_gone_on_is_left_as_it_is,
)

# For stores that keep verdicts beside the turns, and may lose them; others read them off the turns.
KEPT_INDEX_CHECKS: Sequence[IndexCheck] = in_words(a_verdict_that_was_lost_is_told_anew)
