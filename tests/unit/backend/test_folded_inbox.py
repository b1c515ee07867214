"""Inboxes of a store over logs: an entry is answered by a turn or refused, never both, whichever process dies or intervenes."""

import asyncio

import pytest

from remit.backend.folded.log import Settled
from remit.backend.folded.store import FoldedStore
from remit.core.journal.codec import encode_record
from remit.core.journal.storage import AppendConflict, Barrier, EntrySettled, InboxEntry, RunListing, Warrant
from tests.unit.backend.logs import Ground, begin, go_on

REFUSAL = ("SIGNAL_REFUSED", "no")


class Letter:
    """A run with something left for it, its holder, and a process that holds nothing."""

    def __init__(self, ground: Ground, number: int) -> None:
        self.ground = ground
        self.holder, self.stranger = ground.process(), ground.process()
        self.number = number
        self.token = 0

    @classmethod
    async def left(cls) -> "Letter":
        """Left by a third process."""
        ground = Ground()
        await begin(ground.process(), "run", RunListing(1))
        letter = cls(ground, await ground.process().inbox.put("run", b"word"))
        letter.token = await letter.holder.leases.take("run") or 0
        return letter

    async def answer(self, store: FoldedStore, answer: str = "heard") -> None:
        """Write the turn that answers it."""
        await go_on(store, "run", Barrier(heard=self.number, answer=answer), Warrant(self.token))

    async def next_holder(self) -> FoldedStore:
        """Have the holder die and another process take the run."""
        await self.ground.leases.release("run", self.token)
        store = self.ground.process()
        self.token = await store.leases.take("run") or 0
        return store

    async def announced(self, store: FoldedStore) -> asyncio.Task[None]:
        """Have a holder announce the turn that answers it, and stop before the turn is written."""
        stop = self.ground.log.stop("run:run")
        answering = asyncio.create_task(self.answer(store))
        await stop.reached.wait()
        self.go = stop.go
        return answering

    async def expect(self, outcome: tuple[str, str] | None) -> None:
        """What became of it is known in every process, and in one that folds from the start."""
        for store in (self.holder, self.stranger, self.ground.process()):
            assert await store.inbox.outcome(self.number) == outcome
            pending = [] if outcome else [InboxEntry(self.number, "run", b"word")]
            assert list(await store.inbox.pending(after=0)) == pending


def test_an_entry_is_heard_by_the_turn_that_answers_it() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        await letter.expect(None)
        await letter.answer(letter.holder, "fork")
        await letter.expect(("", "fork"))
        # Who refuses it afterwards changes nothing.
        await letter.stranger.inbox.settle(letter.number, *REFUSAL)
        await letter.expect(("", "fork"))
        assert list(await letter.holder.inbox.pending(after=letter.number)) == []

    asyncio.run(scene())


def test_an_entry_that_was_refused_is_answered_by_no_turn() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        await letter.stranger.inbox.settle(letter.number, *REFUSAL)
        await letter.expect(REFUSAL)
        with pytest.raises(EntrySettled):
            await letter.answer(letter.holder)
        assert list(await letter.holder.journal.read("run")) == [b"first"]

    asyncio.run(scene())


def test_an_entry_that_nobody_left_is_neither_answered_nor_refused() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        nowhere = letter.number + 1
        await letter.stranger.inbox.settle(nowhere, *REFUSAL)
        await letter.ground.log.append("inbox:other", encode_record(Settled(nowhere, *REFUSAL)), -1)
        assert await letter.stranger.inbox.outcome(nowhere) is None
        with pytest.raises(EntrySettled):
            await go_on(letter.holder, "run", Barrier(heard=nowhere))
        await letter.expect(None)

    asyncio.run(scene())


def test_an_entry_whose_turn_never_came_is_answered_by_the_next_holder() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        answering = await letter.announced(letter.holder)
        answering.cancel()
        await asyncio.wait([answering])
        await letter.expect(None)
        await letter.answer(await letter.next_holder(), "taken over")
        await letter.expect(("", "taken over"))

    asyncio.run(scene())


def test_an_entry_whose_turn_never_came_may_be_refused_by_the_next_holder() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        answering = await letter.announced(letter.holder)
        answering.cancel()
        await asyncio.wait([answering])
        store = await letter.next_holder()
        await store.inbox.settle(letter.number, *REFUSAL, token=letter.token)
        await letter.expect(REFUSAL)

    asyncio.run(scene())


def test_a_holder_that_lost_the_run_cannot_refuse_what_the_next_one_answers() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        lost = letter.token
        answering = await letter.announced(await letter.next_holder())
        await letter.holder.inbox.settle(letter.number, *REFUSAL, token=lost)
        await letter.expect(None)
        letter.go.set()
        await answering
        await letter.expect(("", "heard"))

    asyncio.run(scene())


def test_a_stranger_cannot_refuse_an_entry_while_the_turn_that_answers_it_is_written() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        answering = await letter.announced(letter.holder)
        await letter.stranger.inbox.settle(letter.number, *REFUSAL)
        await letter.expect(None)
        letter.go.set()
        await answering
        await letter.expect(("", "heard"))

    asyncio.run(scene())


def test_a_refusal_that_comes_behind_the_announcement_of_a_turn_is_none() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        stop = letter.ground.log.stop("inbox:run")
        refusing = asyncio.create_task(letter.stranger.inbox.settle(letter.number, *REFUSAL))
        await stop.reached.wait()
        answering = await letter.announced(letter.holder)
        stop.go.set()
        await refusing
        await letter.expect(None)
        letter.go.set()
        await answering
        await letter.expect(("", "heard"))

    asyncio.run(scene())


def test_a_turn_that_is_announced_behind_a_refusal_is_not_written() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        stop = letter.ground.log.stop("inbox:run")
        answering = asyncio.create_task(letter.answer(letter.holder))
        await stop.reached.wait()
        await letter.stranger.inbox.settle(letter.number, *REFUSAL)
        stop.go.set()
        with pytest.raises(EntrySettled):
            await answering
        await letter.expect(REFUSAL)
        assert list(await letter.holder.journal.read("run")) == [b"first"]

    asyncio.run(scene())


def test_of_two_refusals_the_first_counts() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        stop = letter.ground.log.stop("inbox:run")
        late = asyncio.create_task(letter.stranger.inbox.settle(letter.number, "LATE", "late"))
        await stop.reached.wait()
        await letter.holder.inbox.settle(letter.number, *REFUSAL)
        stop.go.set()
        await late
        await letter.expect(REFUSAL)

    asyncio.run(scene())


def test_a_holder_announces_an_entry_once_though_its_turn_is_written_later() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        answering = await letter.announced(letter.holder)
        await go_on(letter.stranger, "run", Barrier())
        letter.go.set()
        with pytest.raises(AppendConflict):
            await answering
        await letter.answer(letter.holder)
        await letter.expect(("", "heard"))
        assert [entry.name for entry in letter.ground.log.entries].count("inbox:run") == 2

    asyncio.run(scene())


def test_what_two_processes_leave_at_the_same_time_is_pending_twice() -> None:
    async def scene() -> None:
        ground = Ground()
        one, other = ground.process(), ground.process()
        numbers = await asyncio.gather(one.inbox.put("run", b"a"), other.inbox.put("run", b"b"))
        assert [entry.number for entry in await ground.process().inbox.pending(after=0)] == sorted(numbers)
        assert [entry.data for entry in await one.inbox.pending(after=min(numbers))] == [b"b"]

    asyncio.run(scene())


def test_what_always_comes_second_is_neither_left_nor_answered() -> None:
    async def scene() -> None:
        letter = await Letter.left()
        letter.ground.log.crowded = "inbox:run"
        with pytest.raises(AppendConflict):
            await letter.stranger.inbox.put("run", b"word")
        with pytest.raises(AppendConflict):
            await letter.answer(letter.holder)
        await letter.expect(None)
        assert list(await letter.holder.journal.read("run")) == [b"first"]

    asyncio.run(scene())
