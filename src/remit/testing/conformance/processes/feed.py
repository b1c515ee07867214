"""What every Feed must do.

A check is a coroutine function. It opens an empty journal and its feed with the function it is given, uses them, and raises
AssertionError with a sentence when they do not do what is relied on. Run each of FEED_CHECKS against your backend,
with any test runner.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from remit.core.journal.storage import START, AppendConflict, Barrier, Place, RunListing, WrittenTurn
from remit.orchestrate.ports import Feed, Journal
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import add

# Opens an empty journal and its feed, and closes them afterwards.
OpenFeed = Callable[[], AbstractAsyncContextManager[tuple[Journal, Feed]]]
FeedCheck = Callable[[OpenFeed], Coroutine[Any, Any, None]]

ALL_OF_THEM = 1_000
# More than a store keeps that keeps only what is new.
MANY = 300


async def an_empty_feed_has_nothing(open_feed: OpenFeed) -> None:
    """Nothing was written, and the end is the beginning."""
    async with open_feed() as (_, feed):
        assert list(await feed.since(START, limit=ALL_OF_THEM)) == [], "an empty feed has turns"
        assert await feed.end() == START, "an empty feed ends behind its beginning"


async def turns_of_all_runs_come_in_the_order_written(open_feed: OpenFeed) -> None:
    """Each with its run, its number and its bytes, under places that grow."""
    async with open_feed() as (journal, feed):
        await _write(journal, ("a", b"a0"), ("b", b"b0"), ("a", b"a1"), ("b", b"b1"), ("a", b"a2"))
        found = list(await feed.since(START, limit=ALL_OF_THEM))
        told = [(turn.run_id, turn.seq, turn.data) for turn in found]
        expected = [("a", 0, b"a0"), ("b", 0, b"b0"), ("a", 1, b"a1"), ("b", 1, b"b1"), ("a", 2, b"a2")]
        assert told == expected, f"turns were written as {expected}, and are told as {told}"
        places = [turn.place for turn in found]
        assert places == sorted(set(places)), f"places do not grow: {places}"
        assert await feed.end() == places[-1], "the end of a feed is not the place of its newest turn"


async def reading_goes_on_behind_any_place(open_feed: OpenFeed) -> None:
    """From each place on comes exactly what was written after it, in pieces of any size, and no turn twice."""
    async with open_feed() as (journal, feed):
        await _write(journal, *[("ab"[number % 2], b"%d" % number) for number in range(7)])
        whole = list(await feed.since(START, limit=ALL_OF_THEM))
        for position, turn in enumerate(whole):
            rest = list(await feed.since(turn.place, limit=ALL_OF_THEM))
            assert rest == whole[position + 1 :], f"behind place {turn.place}, something else follows than was written"
        for limit in (1, 2, 3):
            pieces = await _in_pieces(feed, limit)
            assert pieces == whole, f"read {limit} at a time, a feed tells something else than at once"


async def what_is_written_later_stands_behind_the_end(open_feed: OpenFeed) -> None:
    """A reader that begins at the end hears of everything that is written from then on, and of nothing before."""
    async with open_feed() as (journal, feed):
        await _write(journal, ("a", b"a0"))
        end = await feed.end()
        assert list(await feed.since(end, limit=ALL_OF_THEM)) == [], "something stands behind the end"
        await _write(journal, ("a", b"a1"))
        later = [turn.data for turn in await feed.since(end, limit=ALL_OF_THEM)]
        assert later == [b"a1"], f"one turn was written behind the end, and {later} are told"


async def a_run_that_is_not_listed_is_not_told(open_feed: OpenFeed) -> None:
    """What was written without a listing is no run that a reader follows, and leaves no gap that stops a reader."""
    async with open_feed() as (journal, feed):
        await journal.append("unlisted", b"u0", START)
        await _write(journal, ("a", b"a0"))
        told = [turn.run_id for turn in await feed.since(START, limit=ALL_OF_THEM)]
        assert told == ["a"], f"one run is listed, and turns of {told} are told"


async def _write(journal: Journal, *turns: tuple[str, bytes]) -> None:
    """Write the next turn of each of these runs, one after the other; those that are new are listed."""
    for run_id, data in turns:
        place = (await journal.read(run_id)).place
        await journal.append(run_id, data, place, listing=RunListing(1) if place == START else None)


async def _in_pieces(feed: Feed, limit: int) -> list[WrittenTurn]:
    found: list[WrittenTurn] = []
    place: Place = START
    while piece := await feed.since(place, limit=limit):
        assert len(piece) <= limit, f"{len(piece)} turns are told where {limit} were asked for"
        found += piece
        assert len(found) <= ALL_OF_THEM, f"{ALL_OF_THEM} turns were told, and the feed does not come to its end"
        place = piece[-1].place
    return found


async def a_long_feed_is_told_whole(open_feed: OpenFeed) -> None:
    """However much was written since, and whatever became of a run; what was refused is not told."""
    async with open_feed() as (journal, feed):
        written = [("ab"[number % 2], b"%d" % number) for number in range(MANY)]
        await _write(journal, *written)
        await add(journal, "a", b"end", Barrier("SUCCESS"))
        with suppress(AppendConflict):
            await journal.append("a", b"late", START, None, RunListing(1))
        whole = list(await feed.since(START, limit=ALL_OF_THEM))
        told = [(turn.run_id, turn.data) for turn in whole]
        assert told == [*written, ("a", b"end")], f"of {MANY + 1} turns that were written, {len(told)} are told"
        assert await feed.end() == whole[-1].place, "the end of a feed is not the place of its newest turn"


FEED_CHECKS: Sequence[FeedCheck] = in_words(
    an_empty_feed_has_nothing,
    turns_of_all_runs_come_in_the_order_written,
    reading_goes_on_behind_any_place,
    what_is_written_later_stands_behind_the_end,
    a_run_that_is_not_listed_is_not_told,
    a_long_feed_is_told_whole,
)
