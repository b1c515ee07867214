"""What every Catalogue must say of the runs that its Journal keeps.

A check is a coroutine function. It opens an empty journal and its catalogue with the function it is given, uses them,
and raises AssertionError with a sentence when they do not do what is relied on. Run each of CATALOGUE_CHECKS against
yours, with any test runner.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import product
from typing import Any

from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    Place,
    RunEntry,
    RunListing,
    SessionConflict,
    SignedHead,
    Warrant,
)
from remit.core.record import replace
from remit.orchestrate.ports import Catalogue, Journal
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import OTHER, RUN, add

# Opens a journal that is empty, with its catalogue, and closes them afterwards.
OpenCatalogue = Callable[[], AbstractAsyncContextManager[tuple[Journal, Catalogue]]]
CatalogueCheck = Callable[[OpenCatalogue], Coroutine[Any, Any, None]]

RIVALS = 20
# Names that would mean something else if they were pasted into a query, a pattern or a path.
ODD_SESSIONS = ("s", "S", "s'; --", "%", "_", "*", "s.t", "../s", "ä", "s" * 200)
ODD_TENANTS = ("t", "T", "t/s", "t%2Fs", "t'; --", "*", "ä", "t:s")


async def an_unknown_run_has_no_entry(open_catalogue: OpenCatalogue) -> None:
    """A run that was never started is not listed, and is no error."""
    async with open_catalogue() as (_, catalogue):
        assert await catalogue.entry("unknown") is None, "a run that was never started has an entry"
        assert list(await catalogue.entries()) == [], "runs are listed where none was started"
        assert list(await catalogue.session("unknown")) == [], "a session that was never begun has runs"
        assert list(await catalogue.heads("unknown")) == [], "a run that was never started has heads"
        assert await catalogue.last_head("unknown") is None, "a run that was never started has a last head"


async def an_entry_says_what_the_listing_said(open_catalogue: OpenCatalogue) -> None:
    """Nothing of a listing is lost, from the first turn on."""
    async with open_catalogue() as (journal, catalogue):
        lineage = ("first", "parent")
        listing = RunListing(
            started_at_ms=1_700_000_000_000,
            mode="chat",
            tenant_id="tenant",
            session_id="session",
            ordinal=0,
            parent_id="parent",
            lineage=lineage,
        )
        await add(journal, RUN, b"turn", listing=listing)
        entry = await catalogue.entry(RUN)
        assert entry == RunEntry(RUN, listing, 1), f"the run was listed as {listing}, and its entry is {entry}"


async def an_entry_counts_turns(open_catalogue: OpenCatalogue) -> None:
    """The number of turns is that of the journal, also when an append was refused."""
    async with open_catalogue() as (journal, catalogue):
        places = [await add(journal, RUN, b"turn", listing=None if n else RunListing(1)) for n in range(5)]
        await _expect_refusal(journal, RUN, places[1])
        entry = await catalogue.entry(RUN)
        assert entry is not None, "a run that was listed has no entry"
        assert entry.turns == 5, f"a run of 5 turns is listed with {entry.turns}"


async def a_barrier_says_how_a_run_stands(open_catalogue: OpenCatalogue) -> None:
    """Waiting, going on and ended: the entry follows the last barrier."""
    async with open_catalogue() as (journal, catalogue):
        standings = [Barrier(waiting_for="REVIEW_REQUIRED"), Barrier(), Barrier("SUCCESS")]
        await add(journal, RUN, b"turn", listing=RunListing(1))
        for barrier in standings:
            await add(journal, RUN, b"turn", barrier=barrier)
            entry = await catalogue.entry(RUN)
            assert entry is not None, "a run that was listed has no entry"
            stands = (entry.ending, entry.waiting_for)
            assert stands == (barrier.ending, barrier.waiting_for), f"after {barrier} the run is listed as {stands}"
            await add(journal, RUN, b"turn")
            entry = await catalogue.entry(RUN)
            assert entry is not None, "a run that was listed has no entry"
            later = (entry.ending, entry.waiting_for)
            assert later == stands, f"a turn without a barrier lists the run as {later}, which stood as {stands}"


async def a_barrier_may_come_with_the_first_turn(open_catalogue: OpenCatalogue) -> None:
    """A run may ask or end with its first turn."""
    async with open_catalogue() as (journal, catalogue):
        await add(journal, RUN, b"turn", listing=RunListing(1), barrier=Barrier("SUCCESS"))
        entry = await catalogue.entry(RUN)
        assert entry is not None, "a run that was listed has no entry"
        assert entry.ending == "SUCCESS", "a run that ended with its first turn is listed as open"


async def runs_are_listed_newest_first(open_catalogue: OpenCatalogue) -> None:
    """In the order they were begun here, whatever their clocks say, and never more than asked for."""
    async with open_catalogue() as (journal, catalogue):
        for number, run_id in enumerate("cab"):
            await add(journal, run_id, b"turn", listing=RunListing(100 - number))
        await add(journal, "c", b"turn")
        assert [entry.run_id for entry in await catalogue.entries()] == ["b", "a", "c"], "runs are not newest first"
        assert [entry.run_id for entry in await catalogue.entries(limit=2)] == ["b", "a"], "a limit is not kept"


async def runs_are_listed_by_how_they_stand(open_catalogue: OpenCatalogue) -> None:
    """Open ones alone, or those alone that wait for a person."""
    async with open_catalogue() as (journal, catalogue):
        standings = {"ended": Barrier("SUCCESS"), "waiting": Barrier(waiting_for="MISSING_INFO"), "going": None}
        for run_id, barrier in standings.items():
            await add(journal, run_id, b"turn", listing=RunListing(1), barrier=barrier)
        found = [entry.run_id for entry in await catalogue.entries(open_only=True)]
        assert found == ["going", "waiting"], f"of one ended and two open runs, {found} are listed as open"
        found = [entry.run_id for entry in await catalogue.entries(waiting_only=True)]
        assert found == ["waiting"], f"one run waits, and {found} are listed"
        found = [entry.run_id for entry in await catalogue.entries(open_only=True, limit=1)]
        assert found == ["going"], "a limit is not kept among open runs"


async def runs_are_listed_by_tenant(open_catalogue: OpenCatalogue) -> None:
    """Runs of one tenant alone are listed; requests that named none are a tenant of their own."""
    async with open_catalogue() as (journal, catalogue):
        for number, tenant_id in enumerate(("", *ODD_TENANTS, *ODD_TENANTS)):
            await add(journal, f"run{number}", b"turn", listing=RunListing(1, tenant_id=tenant_id))
        for number, tenant_id in enumerate(ODD_TENANTS, 1):
            found = [entry.run_id for entry in await catalogue.entries(tenant_id=tenant_id)]
            expected = [f"run{number + len(ODD_TENANTS)}", f"run{number}"]
            assert found == expected, f"tenant {tenant_id!r} has {expected}, and {found} are listed"
        found = [entry.run_id for entry in await catalogue.entries(tenant_id="")]
        assert found == ["run0"], f"one run names no tenant, and {found} are listed"
        assert list(await catalogue.entries(tenant_id="unknown")) == [], "a tenant without runs has some"


async def runs_are_listed_by_their_parent(open_catalogue: OpenCatalogue) -> None:
    """Runs that one run started are listed alone, or those that none did."""
    async with open_catalogue() as (journal, catalogue):
        for run_id, parent_id in {"top": "", "one": "top", "two": "top", "deep": "one", OTHER: ""}.items():
            await add(journal, run_id, b"turn", listing=RunListing(1, parent_id=parent_id))
        for parent_id, expected in {"top": ["two", "one"], "one": ["deep"], "": [OTHER, "top"], "x": []}.items():
            found = [entry.run_id for entry in await catalogue.entries(parent_id=parent_id)]
            assert found == expected, f"run {parent_id!r} started {expected}, and {found} are listed"


async def runs_are_found_by_how_their_ids_begin(open_catalogue: OpenCatalogue) -> None:
    """By the letters themselves, also where they would mean something in a pattern."""
    async with open_catalogue() as (journal, catalogue):
        for run_id in ("ab", "abc", "aB", "a_c", "a%", "b"):
            await add(journal, run_id, b"turn", listing=RunListing(1))
        for begins, expected in {"ab": ["abc", "ab"], "a_": ["a_c"], "a%": ["a%"], "abcd": [], "b": ["b"]}.items():
            found = [entry.run_id for entry in await catalogue.entries(begins=begins)]
            assert found == expected, f"{expected} begin with {begins!r}, and {found} are listed"


async def runs_are_listed_page_by_page(open_catalogue: OpenCatalogue) -> None:
    """Pages of any size come to the whole list, however narrowed, also while runs begin; none follows an unknown run."""
    async with open_catalogue() as (journal, catalogue):
        for number in range(9):
            listing = RunListing(1, tenant_id="even" if number % 2 == 0 else "odd", parent_id="0" if number % 3 else "")
            barrier = Barrier("END") if number % 4 else Barrier(waiting_for="REVIEW_REQUIRED" if number % 8 else "")
            await add(journal, str(number), b"turn", listing=listing, barrier=barrier)
        every = await catalogue.entries()
        for tenant_id, parent_id, stand in product((None, "even", "odd"), (None, "", "0"), ("", "open", "waiting")):
            open_only, waiting_only = stand == "open", stand == "waiting"
            whole = await catalogue.entries(
                tenant_id=tenant_id, parent_id=parent_id, open_only=open_only, waiting_only=waiting_only
            )
            narrowed = [
                entry
                for entry in every
                if tenant_id in (None, entry.listing.tenant_id)
                and parent_id in (None, entry.listing.parent_id)
                and not (stand and entry.ending)
                and (entry.waiting_for or not waiting_only)
            ]
            asked = f"tenant {tenant_id}, parent {parent_id}, {stand or 'any'}"
            assert list(whole) == narrowed, f"of {asked} are listed {whole}, and there are {narrowed}"
            for limit in (1, 2, 4):
                paged: list[RunEntry] = []
                while page := await catalogue.entries(
                    tenant_id=tenant_id,
                    parent_id=parent_id,
                    open_only=open_only,
                    waiting_only=waiting_only,
                    before=paged[-1].run_id if paged else "",
                    limit=limit,
                ):
                    assert len(page) <= limit, f"a page of {limit} holds {len(page)}"
                    paged += page
                    found = [entry.run_id for entry in paged]
                    assert len(paged) <= len(whole), (
                        f"{len(whole)} runs are listed, and their pages go on behind {found}"
                    )
                assert paged == list(whole), f"pages of {limit} come to {paged}, and the list is {whole}"
        await add(journal, "new", b"turn", listing=RunListing(1))
        after = [entry.run_id for entry in await catalogue.entries(before="8", limit=2)]
        assert after == ["7", "6"], f"behind a page that ended with run 8 come {after}"
        assert list(await catalogue.entries(before="unknown")) == [], "runs follow one that is not there"


async def a_session_is_of_its_tenant(open_catalogue: OpenCatalogue) -> None:
    """Two tenants have sessions of the same name, each with places of its own."""
    async with open_catalogue() as (journal, catalogue):
        for tenant_id in ("", *ODD_TENANTS):
            for ordinal in (0, 1):
                listing = RunListing(1, tenant_id=tenant_id, session_id="s", ordinal=ordinal)
                await add(journal, f"{tenant_id} {ordinal}", b"turn", listing=listing)
        for tenant_id in ("", *ODD_TENANTS):
            found = [entry.run_id for entry in await catalogue.session("s", tenant_id=tenant_id)]
            assert found == [f"{tenant_id} 0", f"{tenant_id} 1"], f"session s of {tenant_id!r} holds {found}"
        listing = RunListing(1, tenant_id=ODD_TENANTS[0], session_id="s", ordinal=1)
        assert await _begun(journal, "rival", listing) is None, "a place in a session of a tenant was taken twice"
        assert list(await catalogue.session("s", tenant_id="unknown")) == [], "a tenant without runs has a session"
        every = {entry.listing.tenant_id for entry in await catalogue.session("s")}
        assert every == {"", *ODD_TENANTS}, f"of all tenants, {every} have a session s"


async def runs_are_found_by_their_likeness(open_catalogue: OpenCatalogue) -> None:
    """Runs that are alike and succeeded, newest first, never more than asked for; the empty likeness is none."""
    async with open_catalogue() as (journal, catalogue):
        standings = {
            "c": "SUCCESS",
            "a": "TIMEOUT",
            "b": "SUCCESS",
            "open": "",
            "half": "PARTIAL_SUCCESS",
            "d": "SUCCESS",
        }
        for run_id, ending in standings.items():
            await add(journal, run_id, b"turn", listing=RunListing(1, likeness="like"))
            if ending:
                await add(journal, run_id, b"end", barrier=Barrier(ending))
        for run_id, likeness in {OTHER: "LIKE", "none": ""}.items():
            listing = RunListing(1, likeness=likeness)
            await add(journal, run_id, b"turn", listing=listing, barrier=Barrier("SUCCESS"))
        found = list(await catalogue.alike("like", limit=9))
        expected = [RunEntry(run_id, RunListing(1), 2, "SUCCESS") for run_id in "dbc"]
        assert found == expected, f"of six runs that are alike, three succeeded, and {found} are given"
        assert list(await catalogue.alike("like", limit=2)) == expected[:2], (
            "a limit is not kept among runs that are alike"
        )
        assert list(await catalogue.alike("", limit=9)) == [], "runs without a likeness are like each other"


async def open_runs_are_found_by_their_name(open_catalogue: OpenCatalogue) -> None:
    """Open runs of a tenant that are named exactly so, newest first; the empty name is none."""
    async with open_catalogue() as (journal, catalogue):
        named = {"a": ("r 1", "t"), "b": ("r 1", "t"), "c": ("R 1", "t"), "d": ("r 1", "u"), "e": ("", "t")}
        for run_id, (name, tenant_id) in {**named, "ended": ("r 1", "t")}.items():
            listing = RunListing(1, tenant_id=tenant_id, name=name)
            barrier = {"ended": Barrier("SUCCESS"), "a": Barrier(waiting_for="REVIEW_REQUIRED")}.get(run_id)
            await add(journal, run_id, b"turn", listing=listing, barrier=barrier)
        found = list(await catalogue.named("r 1", "t"))
        listing, waits = RunListing(1, tenant_id="t", name="r 1"), {"a": "REVIEW_REQUIRED", "b": ""}
        expected = [RunEntry(run_id, listing, 1, waiting_for=waits[run_id]) for run_id in "ba"]
        assert found == expected, f"of three runs of a name and a tenant two are open, and {found} are given"
        assert list(await catalogue.named("", "t")) == [], "runs without a name are found by that"


async def a_session_is_listed_in_order(open_catalogue: OpenCatalogue) -> None:
    """The runs of a session by their places; sessions with names that look alike are different."""
    async with open_catalogue() as (journal, catalogue):
        for ordinal in (0, 2, 1):
            for session_id in ODD_SESSIONS:
                run_id = f"{session_id} {ordinal}"
                listing = RunListing(1, session_id=session_id, ordinal=ordinal)
                await add(journal, run_id, b"turn", listing=listing, barrier=None if ordinal else Barrier("SUCCESS"))
        for session_id in ODD_SESSIONS:
            found = [entry.run_id for entry in await catalogue.session(session_id)]
            expected = [f"{session_id} {ordinal}" for ordinal in (0, 1, 2)]
            assert found == expected, f"session {session_id!r} holds {found}"


async def a_place_in_a_session_is_taken_once(open_catalogue: OpenCatalogue) -> None:
    """The second writer is told so, and leaves nothing: neither a run nor a turn."""
    async with open_catalogue() as (journal, catalogue):
        listing = RunListing(1, session_id="session", ordinal=0)
        begun = await asyncio.gather(*(_begun(journal, f"run{number}", listing) for number in range(RIVALS)))
        won = [run_id for run_id in begun if run_id is not None]
        assert len(won) == 1, f"{len(won)} of {RIVALS} rivals were told that they have the place"
        listed = [entry.run_id for entry in await catalogue.entries()]
        assert listed == won, f"{won} has the place, and {listed} are listed"
        kept = [f"run{number}" for number in range(RIVALS) if await journal.read(f"run{number}")]
        assert kept == won, f"{won} has the place, and {kept} have turns"
        await add(journal, won[0], b"end", barrier=Barrier("SUCCESS"))
        assert await _begun(journal, "late", listing) is None, "the place of a run that has ended was taken again"
        await add(journal, "next", b"turn", listing=RunListing(1, session_id="session", ordinal=1))


async def runs_without_a_session_share_no_place(open_catalogue: OpenCatalogue) -> None:
    """The empty session is none: any number of runs belong to it, and none is listed under it."""
    async with open_catalogue() as (journal, catalogue):
        for number in range(3):
            await add(journal, f"run{number}", b"turn", listing=RunListing(1))
        assert len(await catalogue.entries()) == 3, "runs without a session keep each other out"


async def a_refused_first_turn_is_not_listed(open_catalogue: OpenCatalogue) -> None:
    """A conflict changes the index no more than it changes the journal."""
    async with open_catalogue() as (journal, catalogue):
        await add(journal, RUN, b"turn", listing=RunListing(1, "chat"))
        try:
            await journal.append(RUN, b"turn", START, Barrier("SUCCESS"), RunListing(2, "plan"))
        except AppendConflict:
            pass
        else:
            raise AssertionError("a run was begun twice")
        entry = await catalogue.entry(RUN)
        assert entry == RunEntry(RUN, RunListing(1, "chat"), 1), f"a refused first turn changed the entry to {entry}"


async def heads_are_kept_with_their_turns(open_catalogue: OpenCatalogue) -> None:
    """A signed head comes back as it was, with the run it belongs to; a turn without a head has none."""
    async with open_catalogue() as (journal, catalogue):
        heads = [
            SignedHead(run_id=RUN, seq=seq, head=bytes([seq]) * 32, ending=ending, signer="did", signature=b"s")
            for seq, ending in ((0, ""), (2, "END"))
        ]
        await add(journal, RUN, b"0", listing=RunListing(1), warrant=Warrant(head=heads[0]))
        assert await catalogue.last_head(RUN) == heads[0], "a head that came with a listing alone was not kept"
        await add(journal, RUN, b"1", barrier=Barrier())
        await add(journal, RUN, b"2", barrier=Barrier("END"), warrant=Warrant(head=heads[1]))
        await add(journal, OTHER, b"0", barrier=Barrier(), listing=RunListing(1))
        found = list(await catalogue.heads(RUN))
        assert found == heads, f"of two heads came back {found}"
        assert await catalogue.last_head(RUN) == heads[1], "the last head is not that of the highest turn"
        assert list(await catalogue.heads(OTHER)) == [], "a run without a signature has heads"
        await add(
            journal,
            RUN.upper(),
            b"0",
            listing=RunListing(1),
            warrant=Warrant(head=replace(heads[0], run_id=RUN.upper())),
        )
        assert list(await catalogue.heads(RUN)) == heads, "a run has the heads of one whose id looks alike"


async def a_refused_turn_leaves_no_head(open_catalogue: OpenCatalogue) -> None:
    """A head without its turn would vouch for what is not there."""
    async with open_catalogue() as (journal, catalogue):
        await add(journal, RUN, b"turn", listing=RunListing(1))
        late = Warrant(head=SignedHead(run_id=RUN, seq=0, head=bytes(32), ending="", signer="did", signature=b"s"))
        try:
            await journal.append(RUN, b"late", START, Barrier(), None, late)
        except AppendConflict:
            pass
        else:
            raise AssertionError("a run was begun twice")
        assert await catalogue.last_head(RUN) is None, "the head of a refused turn was kept"


CATALOGUE_CHECKS: Sequence[CatalogueCheck] = in_words(
    an_unknown_run_has_no_entry,
    an_entry_says_what_the_listing_said,
    an_entry_counts_turns,
    a_barrier_says_how_a_run_stands,
    a_barrier_may_come_with_the_first_turn,
    runs_are_listed_newest_first,
    runs_are_listed_by_how_they_stand,
    runs_are_listed_by_tenant,
    runs_are_listed_by_their_parent,
    runs_are_found_by_how_their_ids_begin,
    runs_are_listed_page_by_page,
    runs_are_found_by_their_likeness,
    open_runs_are_found_by_their_name,
    a_session_is_listed_in_order,
    a_session_is_of_its_tenant,
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


async def _begun(journal: Journal, run_id: str, listing: RunListing) -> str | None:
    """The run, or None when its place was taken."""
    try:
        await add(journal, run_id, b"turn", listing=listing)
    except SessionConflict:
        return None
    return run_id
