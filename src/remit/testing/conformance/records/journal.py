"""What every Journal must do.

A check is a coroutine function. It opens an empty journal with the function it is given, uses it, and raises
AssertionError with a sentence when the journal does not do what the runner relies on. Run each of JOURNAL_CHECKS
against your journal, with any test runner.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import START, AppendConflict, Barrier, Place, RunListing
from remit.orchestrate.ports import Journal
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import OTHER, RUN, add

# Opens a journal that is empty, and closes it afterwards.
OpenJournal = Callable[[], AbstractAsyncContextManager[Journal]]
JournalCheck = Callable[[OpenJournal], Coroutine[Any, Any, None]]

# Enough writers to meet in every backend that can be met, few enough to be quick over a network.
RIVALS = 20
# A long run: more turns than one page, batch or message of any backend holds.
MANY_TURNS = 2_000
# Larger than the turns remit writes, which keep long texts in Blobs, and than what fits one packet anywhere.
LARGE_BYTES = 1 << 20
EVERY_BYTE = bytes(range(256))
# Ids become keys, subjects and file names, so they hold what those cannot.
ODD_IDS = ("a", "a.b", "a.b.c", "a/b", "a b", "a%", "A", "ä", "a'; --", "*", ">", "a" * 200)


async def an_unknown_run_reads_as_nothing(open_journal: OpenJournal) -> None:
    """Reading a run that was never started gives no turns and no error."""
    async with open_journal() as journal:
        read = await journal.read("unknown")
        assert list(read) == [], f"a run that was never started has {len(read)} turns"


async def turns_come_back_in_order(open_journal: OpenJournal) -> None:
    """What was appended is read oldest first."""
    async with open_journal() as journal:
        written = await _written(journal, RUN, 10)
        assert list(await journal.read(RUN)) == written, "turns do not come back in the order they were written"


async def bytes_come_back_exactly(open_journal: OpenJournal) -> None:
    """A turn is bytes; nothing is decoded, trimmed or terminated by a zero."""
    async with open_journal() as journal:
        turns = [EVERY_BYTE, b"\x00\x00", b"", b"\r\n", b"\xff\xfe", b" "]
        for data in turns:
            await add(journal, RUN, data)
        assert list(await journal.read(RUN)) == turns, "bytes changed on their way through the journal"


async def a_large_turn_comes_back(open_journal: OpenJournal) -> None:
    """A turn may be large."""
    async with open_journal() as journal:
        data = EVERY_BYTE * (LARGE_BYTES // len(EVERY_BYTE))
        await journal.append(RUN, data, START)
        assert list(await journal.read(RUN)) == [data], f"a turn of {len(data)} bytes did not come back whole"


async def many_turns_come_back(open_journal: OpenJournal) -> None:
    """A run may be long."""
    async with open_journal() as journal:
        written = await _written(journal, RUN, MANY_TURNS)
        assert list(await journal.read(RUN)) == written, f"{MANY_TURNS} turns did not come back complete"


async def reading_starts_after_the_turn_that_is_named(open_journal: OpenJournal) -> None:
    """`after` skips the turns up to and including that number; beyond the last there is nothing."""
    async with open_journal() as journal:
        written = await _written(journal, RUN, 5)
        for after in range(-1, 7):
            expected = written[after + 1 :]
            read = list(await journal.read(RUN, after=after))
            assert read == expected, f"after={after} gives {len(read)} turns and should give {len(expected)}"


async def a_turn_is_written_once(open_journal: OpenJournal) -> None:
    """The second writer is told so, and the first turn stays."""
    async with open_journal() as journal:
        written = await _written(journal, RUN, 3)
        for place in (START, *written.places[:-1]):
            await _expect_conflict(journal, RUN, place)
        assert list(await journal.read(RUN)) == written, "an append that was refused changed the run"


async def a_gap_is_refused(open_journal: OpenJournal) -> None:
    """Nothing follows a turn that is not there."""
    async with open_journal() as journal:
        written = await _written(journal, RUN, 2)
        await _expect_conflict(journal, "empty", written.places[0])
        longer = await _written(journal, "longer", 3)
        await _expect_conflict(journal, RUN, longer.places[-1])
        assert list(await journal.read("empty")) == [], "an append that was refused began a run"
        assert list(await journal.read(RUN)) == written, "an append that was refused changed the run"


async def a_run_goes_on_after_a_conflict(open_journal: OpenJournal) -> None:
    """A conflict leaves nothing locked."""
    async with open_journal() as journal:
        await _written(journal, RUN, 1)
        await _expect_conflict(journal, RUN, START)
        await add(journal, RUN, b"second")
        assert list(await journal.read(RUN, after=0)) == [b"second"], "after a conflict the run cannot go on"


async def runs_do_not_mix(open_journal: OpenJournal) -> None:
    """Ids that look alike, or like something else, are different runs."""
    async with open_journal() as journal:
        for position in range(2):
            for run_id in ODD_IDS:
                await add(journal, run_id, f"{run_id} {position}".encode())
        for run_id in ODD_IDS:
            expected = [f"{run_id} {position}".encode() for position in range(2)]
            assert list(await journal.read(run_id)) == expected, f"run {run_id!r} holds turns that are not its own"


async def one_of_many_rivals_wins(open_journal: OpenJournal) -> None:
    """Of appends after the same turn, at the same time, exactly one is written and every other one is told."""
    async with open_journal() as journal:
        for after in range(-1, 3):
            place = (await journal.read(RUN)).place
            rivals = [_outcome(journal, f"{after} {rival}".encode(), place) for rival in range(RIVALS)]
            won = [data for data in await asyncio.gather(*rivals) if data is not None]
            read = list(await journal.read(RUN, after=after))
            assert len(won) == 1, f"{len(won)} of {RIVALS} rivals were told that they won"
            assert read == won, "the turn that was written is not the winner's"


async def runs_are_written_beside_each_other(open_journal: OpenJournal) -> None:
    """Appends to different runs at the same time all succeed."""
    async with open_journal() as journal:
        written = await asyncio.gather(*(_written(journal, f"run{number}", 5) for number in range(RIVALS)))
        for number, turns in enumerate(written):
            assert list(await journal.read(f"run{number}")) == turns, f"run{number} did not come back as written"


async def what_was_read_stays_as_it_was(open_journal: OpenJournal) -> None:
    """A reading is a copy: turns that are written later do not appear in it."""
    async with open_journal() as journal:
        written = await _written(journal, RUN, 2)
        read = await journal.read(RUN)
        await add(journal, RUN, b"later")
        assert list(read) == written, "a turn that was written later appeared in an earlier reading"


async def a_turn_with_a_barrier_is_written_like_any_other(open_journal: OpenJournal) -> None:
    """A barrier asks for more and changes nothing of the turn; the second writer learns of the conflict all the same."""
    async with open_journal() as journal:
        turns = [b"first", b"second", b"third"]
        place = await add(journal, RUN, turns[0], listing=RunListing(1))
        await add(journal, RUN, turns[1], barrier=Barrier(waiting_for="REVIEW_REQUIRED"))
        await _expect_conflict(journal, RUN, place, Barrier())
        await add(journal, RUN, turns[2], barrier=Barrier("SUCCESS"))
        assert list(await journal.read(RUN)) == turns, "turns with barriers do not come back as written"


async def an_ended_run_takes_an_addendum(open_journal: OpenJournal) -> None:
    """What comes after the ending is written too; the journal does not judge."""
    async with open_journal() as journal:
        await add(journal, RUN, b"end", listing=RunListing(1), barrier=Barrier("SUCCESS"))
        await add(journal, RUN, b"late", barrier=Barrier("SUCCESS"))
        assert list(await journal.read(RUN)) == [b"end", b"late"], "an addendum is not kept"


async def rivals_with_barriers_are_told_apart(open_journal: OpenJournal) -> None:
    """Of barriers after the same turn, at the same time, exactly one is written; other runs are not held up."""
    async with open_journal() as journal:
        rivals = [_outcome(journal, b"%d" % rival, START, Barrier()) for rival in range(RIVALS)]
        others = [_written(journal, f"other{number}", 2) for number in range(RIVALS)]
        outcomes, _ = await asyncio.gather(asyncio.gather(*rivals), asyncio.gather(*others))
        won = [data for data in outcomes if data is not None]
        assert len(won) == 1, f"{len(won)} of {RIVALS} rivals with barriers were told that they won"
        assert list(await journal.read(RUN)) == won, "the turn that was written is not the winner's"


async def a_cancelled_append_harms_nobody(open_journal: OpenJournal) -> None:
    """A writer that gives up may or may not have written; all others have, and the run goes on from where it stands."""
    async with open_journal() as journal:
        (place,) = (await _written(journal, RUN, 1)).places
        given_up = asyncio.ensure_future(journal.append(RUN, b"given up", place, Barrier()))
        others = [asyncio.ensure_future(_written(journal, f"other{number}", 2)) for number in range(RIVALS)]
        await asyncio.sleep(0)
        given_up.cancel()
        for number, turns in enumerate(await asyncio.gather(*others)):
            assert list(await journal.read(f"other{number}")) == turns, "a cancelled append took another one along"
        await asyncio.wait([given_up])
        await add(journal, RUN, b"next")
        assert (await journal.read(RUN))[-1:] == [b"next"], "after a cancelled append nothing follows"


async def a_place_is_the_same_however_it_was_found(open_journal: OpenJournal) -> None:
    """The writer of the last turn, its readers, and readers of nothing behind it: all may write the next."""
    async with open_journal() as journal:
        place = (await journal.read(RUN)).place
        assert place == START, "a run that was never started does not stand at the start"
        for position in range(3):
            place = await add(journal, RUN, b"turn")
            found = {(await journal.read(RUN, after=after)).place for after in range(-1, position + 1)}
            assert found == {place}, f"the writer of the last turn was told {place}, and a reader {found}"
        await journal.append(OTHER, b"turn", START)
        await journal.append(RUN, b"turn", place)


async def equal_bytes_are_another_turn(open_journal: OpenJournal) -> None:
    """Two drivers may come to the same turn: the second is told that it was second, now, later and at the same moment."""
    async with open_journal() as journal:
        place = await journal.append(RUN, b"turn", START)
        for barrier in (None, Barrier()):
            won = await _outcome(journal, b"turn", START, barrier)
            assert won is None, "a writer of the bytes that stand there already was told that it won"
        rivals = await asyncio.gather(*(_outcome(journal, b"turn", place) for _ in range(RIVALS)))
        winners = sum(won is not None for won in rivals)
        assert winners == 1, f"{winners} of {RIVALS} rivals with the same bytes were told that they won"
        turns = list(await journal.read(RUN))
        assert turns == [b"turn"] * 2, f"two turns of the same bytes came back as {turns}"


JOURNAL_CHECKS: Sequence[JournalCheck] = in_words(
    an_unknown_run_reads_as_nothing,
    turns_come_back_in_order,
    bytes_come_back_exactly,
    a_large_turn_comes_back,
    many_turns_come_back,
    reading_starts_after_the_turn_that_is_named,
    a_turn_is_written_once,
    a_gap_is_refused,
    a_run_goes_on_after_a_conflict,
    runs_do_not_mix,
    one_of_many_rivals_wins,
    runs_are_written_beside_each_other,
    what_was_read_stays_as_it_was,
    a_turn_with_a_barrier_is_written_like_any_other,
    an_ended_run_takes_an_addendum,
    rivals_with_barriers_are_told_apart,
    a_cancelled_append_harms_nobody,
    a_place_is_the_same_however_it_was_found,
    equal_bytes_are_another_turn,
)


class _Written(list[bytes]):
    """Turns that were written, and where the run stood after each."""

    places: list[Place]


async def _written(journal: Journal, run_id: str, count: int) -> _Written:
    turns = _Written(f"turn {position} of {run_id}".encode() for position in range(count))
    place, turns.places = START, []
    for data in turns:
        place = await journal.append(run_id, data, place)
        turns.places.append(place)
    return turns


async def _expect_conflict(journal: Journal, run_id: str, place: Place, barrier: Barrier | None = None) -> None:
    try:
        await journal.append(run_id, b"too late", place, barrier)
    except AppendConflict:
        return
    raise AssertionError("an append where the run does not stand raised no AppendConflict")


async def _outcome(journal: Journal, data: bytes, place: Place, barrier: Barrier | None = None) -> bytes | None:
    """What was written, or None when another was faster."""
    try:
        await journal.append(RUN, data, place, barrier)
    except AppendConflict:
        return None
    return data
