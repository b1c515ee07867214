"""What every Catalogue must say of the runs that its Journal keeps.

A check is a coroutine function. It opens an empty journal and its catalogue with the function it is given, uses them,
and raises AssertionError with a sentence when they do not do what is relied on. Run each of CATALOGUE_CHECKS against
yours, with any test runner.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.storage import (
    START,
    AppendConflict,
    Barrier,
    Listing,
    Place,
    RunEntry,
    SessionConflict,
    SignedHead,
    Warrant,
)
from remit.orchestrate.ports import Catalogue, Journal
from remit.testing.conformance.writing import add

# Opens a journal that is empty, with its catalogue, and closes them afterwards.
OpenCatalogue = Callable[[], AbstractAsyncContextManager[tuple[Journal, Catalogue]]]
CatalogueCheck = Callable[[OpenCatalogue], Coroutine[Any, Any, None]]

RIVALS = 20
# Names that would mean something else if they were pasted into a query, a pattern or a path.
ODD_SESSIONS = ("s", "S", "s'; --", "%", "_", "*", "s.t", "../s", "ä", "s" * 200)


async def an_unknown_run_has_no_entry(open_catalogue: OpenCatalogue) -> None:
    """What nobody started is not listed, and is no error."""
    async with open_catalogue() as (_, catalogue):
        assert await catalogue.entry("nobody") is None, "a run that nobody started has an entry"
        assert list(await catalogue.entries()) == [], "runs are listed where nobody started any"
        assert list(await catalogue.session("nobody")) == [], "a session that nobody began has runs"
        assert list(await catalogue.heads("nobody")) == [], "a run that nobody started has heads"
        assert await catalogue.last_head("nobody") is None, "a run that nobody started has a last head"


async def an_entry_says_what_the_listing_said(open_catalogue: OpenCatalogue) -> None:
    """Nothing of a listing is lost, from the first turn on."""
    async with open_catalogue() as (journal, catalogue):
        lineage = ("first", "parent")
        listing = Listing(1_700_000_000_000, "chat", "tenant", "session", 0, "parent", lineage=lineage)
        await add(journal, "run", b"turn", listing=listing)
        entry = await catalogue.entry("run")
        assert entry == RunEntry("run", listing, 1), f"the run was listed as {listing}, and its entry is {entry}"


async def an_entry_counts_turns(open_catalogue: OpenCatalogue) -> None:
    """The number of turns is that of the journal, also when an append was refused."""
    async with open_catalogue() as (journal, catalogue):
        places = [await add(journal, "run", b"turn", listing=None if n else Listing(1)) for n in range(5)]
        await _expect_refusal(journal, "run", places[1])
        entry = await catalogue.entry("run")
        assert entry is not None, "a run that was listed has no entry"
        assert entry.turns == 5, f"a run of 5 turns is listed with {entry.turns}"


async def a_barrier_says_how_a_run_stands(open_catalogue: OpenCatalogue) -> None:
    """Waiting, going on and ended: the entry follows the last barrier."""
    async with open_catalogue() as (journal, catalogue):
        standings = [Barrier(waiting_for="REVIEW_REQUIRED"), Barrier(), Barrier("SUCCESS")]
        await add(journal, "run", b"turn", listing=Listing(1))
        for barrier in standings:
            await add(journal, "run", b"turn", barrier=barrier)
            entry = await catalogue.entry("run")
            assert entry is not None, "a run that was listed has no entry"
            stands = (entry.ending, entry.waiting_for)
            assert stands == (barrier.ending, barrier.waiting_for), f"after {barrier} the run is listed as {stands}"


async def a_barrier_may_come_with_the_first_turn(open_catalogue: OpenCatalogue) -> None:
    """A run may ask or end with its first turn."""
    async with open_catalogue() as (journal, catalogue):
        await add(journal, "run", b"turn", listing=Listing(1), barrier=Barrier("SUCCESS"))
        entry = await catalogue.entry("run")
        assert entry is not None, "a run that was listed has no entry"
        assert entry.ending == "SUCCESS", "a run that ended with its first turn is listed as open"


async def runs_are_listed_newest_first(open_catalogue: OpenCatalogue) -> None:
    """In the order they were begun here, whatever their clocks say, and never more than asked for."""
    async with open_catalogue() as (journal, catalogue):
        for number, run_id in enumerate("cab"):
            await add(journal, run_id, b"turn", listing=Listing(100 - number))
        await add(journal, "c", b"turn")
        assert [entry.run_id for entry in await catalogue.entries()] == ["b", "a", "c"], "runs are not newest first"
        assert [entry.run_id for entry in await catalogue.entries(limit=2)] == ["b", "a"], "a limit is not kept"


async def runs_are_listed_by_how_they_stand(open_catalogue: OpenCatalogue) -> None:
    """Open ones alone, or those alone that wait for a person."""
    async with open_catalogue() as (journal, catalogue):
        standings = {"ended": Barrier("SUCCESS"), "waiting": Barrier(waiting_for="MISSING_INFO"), "going": None}
        for run_id, barrier in standings.items():
            await add(journal, run_id, b"turn", listing=Listing(1), barrier=barrier)
        found = [entry.run_id for entry in await catalogue.entries(open_only=True)]
        assert found == ["going", "waiting"], f"of one ended and two open runs, {found} are listed as open"
        found = [entry.run_id for entry in await catalogue.entries(waiting_only=True)]
        assert found == ["waiting"], f"one run waits, and {found} are listed"
        found = [entry.run_id for entry in await catalogue.entries(open_only=True, limit=1)]
        assert found == ["going"], "a limit is not kept among open runs"


async def runs_are_found_by_their_likeness(open_catalogue: OpenCatalogue) -> None:
    """Those alone that succeeded and are alike, newest first, never more than asked for; the empty likeness is none."""
    async with open_catalogue() as (journal, catalogue):
        standings = {"c": "SUCCESS", "a": "TIMEOUT", "b": "SUCCESS", "open": "", "d": "SUCCESS"}
        for run_id, ending in standings.items():
            await add(journal, run_id, b"turn", listing=Listing(1, likeness="like"))
            if ending:
                await add(journal, run_id, b"end", barrier=Barrier(ending))
        for run_id, likeness in {"other": "LIKE", "none": ""}.items():
            listing = Listing(1, likeness=likeness)
            await add(journal, run_id, b"turn", listing=listing, barrier=Barrier("SUCCESS"))
        found = list(await catalogue.alike("like", limit=9))
        expected = [RunEntry(run_id, Listing(1), 2, "SUCCESS") for run_id in "dbc"]
        assert found == expected, f"of five runs that are alike, three succeeded, and {found} are given"
        assert list(await catalogue.alike("like", limit=2)) == expected[:2], (
            "a limit is not kept among runs that are alike"
        )
        assert list(await catalogue.alike("", limit=9)) == [], "runs without a likeness are like each other"


async def open_runs_are_found_by_their_name(open_catalogue: OpenCatalogue) -> None:
    """Those alone that are open, of this tenant and named exactly so, newest first; the empty name is none."""
    async with open_catalogue() as (journal, catalogue):
        named = {"a": ("r 1", "t"), "b": ("r 1", "t"), "c": ("R 1", "t"), "d": ("r 1", "u"), "e": ("", "t")}
        for run_id, (name, tenant_id) in {**named, "ended": ("r 1", "t")}.items():
            listing = Listing(1, tenant_id=tenant_id, name=name)
            barrier = Barrier("SUCCESS") if run_id == "ended" else None
            await add(journal, run_id, b"turn", listing=listing, barrier=barrier)
        found = list(await catalogue.named("r 1", "t"))
        expected = [RunEntry(run_id, Listing(1, tenant_id="t", name="r 1"), 1) for run_id in "ba"]
        assert found == expected, f"of three runs of a name and a tenant two are open, and {found} are given"
        assert list(await catalogue.named("", "t")) == [], "runs without a name are found by that"


async def a_session_is_listed_in_order(open_catalogue: OpenCatalogue) -> None:
    """The runs of a session by their places; sessions with names that look alike are different."""
    async with open_catalogue() as (journal, catalogue):
        for ordinal in (0, 1, 2):
            for session_id in ODD_SESSIONS:
                run_id = f"{session_id} {ordinal}"
                listing = Listing(1, session_id=session_id, ordinal=ordinal)
                await add(journal, run_id, b"turn", listing=listing)
        for session_id in ODD_SESSIONS:
            found = [entry.run_id for entry in await catalogue.session(session_id)]
            expected = [f"{session_id} {ordinal}" for ordinal in (0, 1, 2)]
            assert found == expected, f"session {session_id!r} holds {found}"


async def a_place_in_a_session_is_taken_once(open_catalogue: OpenCatalogue) -> None:
    """Whoever comes second is told so, and leaves nothing: neither a run nor a turn."""
    async with open_catalogue() as (journal, catalogue):
        listing = Listing(1, session_id="session", ordinal=0)
        begun = await asyncio.gather(*(_begun(journal, f"run{number}", listing) for number in range(RIVALS)))
        won = [run_id for run_id in begun if run_id is not None]
        assert len(won) == 1, f"{len(won)} of {RIVALS} rivals were told that they have the place"
        listed = [entry.run_id for entry in await catalogue.entries()]
        assert listed == won, f"{won} has the place, and {listed} are listed"
        kept = [f"run{number}" for number in range(RIVALS) if await journal.read(f"run{number}")]
        assert kept == won, f"{won} has the place, and {kept} have turns"
        await add(journal, "next", b"turn", listing=Listing(1, session_id="session", ordinal=1))


async def runs_without_a_session_share_no_place(open_catalogue: OpenCatalogue) -> None:
    """The empty session is none: any number of runs belong to it, and none is listed under it."""
    async with open_catalogue() as (journal, catalogue):
        for number in range(3):
            await add(journal, f"run{number}", b"turn", listing=Listing(1))
        assert len(await catalogue.entries()) == 3, "runs without a session keep each other out"


async def a_refused_first_turn_is_not_listed(open_catalogue: OpenCatalogue) -> None:
    """A conflict changes the index no more than it changes the journal."""
    async with open_catalogue() as (journal, catalogue):
        await add(journal, "run", b"turn", listing=Listing(1, "chat"))
        try:
            await journal.append("run", b"turn", START, Barrier("SUCCESS"), Listing(2, "plan"))
        except AppendConflict:
            pass
        else:
            raise AssertionError("a run was begun twice")
        entry = await catalogue.entry("run")
        assert entry == RunEntry("run", Listing(1, "chat"), 1), f"a refused first turn changed the entry to {entry}"


async def heads_are_kept_with_their_turns(open_catalogue: OpenCatalogue) -> None:
    """What somebody vouched for comes back as it was, with the run it belongs to; a turn without a head has none."""
    async with open_catalogue() as (journal, catalogue):
        heads = [
            SignedHead("run", seq, bytes([seq]) * 32, ending, "did", b"s") for seq, ending in ((0, ""), (2, "END"))
        ]
        await add(journal, "run", b"0", listing=Listing(1), warrant=Warrant(head=heads[0]))
        assert await catalogue.last_head("run") == heads[0], "a head that came with a listing alone was not kept"
        await add(journal, "run", b"1", barrier=Barrier())
        await add(journal, "run", b"2", barrier=Barrier("END"), warrant=Warrant(head=heads[1]))
        await add(journal, "other", b"0", barrier=Barrier(), listing=Listing(1))
        found = list(await catalogue.heads("run"))
        assert found == heads, f"of two heads came back {found}"
        assert await catalogue.last_head("run") == heads[1], "the last head is not that of the highest turn"
        assert list(await catalogue.heads("other")) == [], "a run that nobody signed for has heads"


async def a_refused_turn_leaves_no_head(open_catalogue: OpenCatalogue) -> None:
    """A head without its turn would vouch for what is not there."""
    async with open_catalogue() as (journal, catalogue):
        await add(journal, "run", b"turn", listing=Listing(1))
        late = Warrant(head=SignedHead("run", 0, bytes(32), "", "did", b"s"))
        try:
            await journal.append("run", b"late", START, Barrier(), None, late)
        except AppendConflict:
            pass
        else:
            raise AssertionError("a run was begun twice")
        assert await catalogue.last_head("run") is None, "the head of a refused turn was kept"


CATALOGUE_CHECKS: Sequence[CatalogueCheck] = (
    an_unknown_run_has_no_entry,
    an_entry_says_what_the_listing_said,
    an_entry_counts_turns,
    a_barrier_says_how_a_run_stands,
    a_barrier_may_come_with_the_first_turn,
    runs_are_listed_newest_first,
    runs_are_listed_by_how_they_stand,
    runs_are_found_by_their_likeness,
    open_runs_are_found_by_their_name,
    a_session_is_listed_in_order,
    a_place_in_a_session_is_taken_once,
    runs_without_a_session_share_no_place,
    a_refused_first_turn_is_not_listed,
    heads_are_kept_with_their_turns,
    a_refused_turn_leaves_no_head,
)


async def _expect_refusal(journal: Journal, run_id: str, place: Place) -> None:
    try:
        await journal.append(run_id, b"too late", place)
    except AppendConflict:
        return
    raise AssertionError("an append where the run does not stand any more raised no AppendConflict")


async def _begun(journal: Journal, run_id: str, listing: Listing) -> str | None:
    """The run, or None when its place was taken."""
    try:
        await add(journal, run_id, b"turn", listing=listing)
    except SessionConflict:
        return None
    return run_id
