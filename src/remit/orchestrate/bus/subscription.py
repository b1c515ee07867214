"""A subscription: what one listener has heard, and where it goes on."""

import asyncio
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from remit.core.journal.storage import Place
from remit.core.run.run_events import NOBODY, EventKind, Piece, RunEvent, Subject, Whose

if TYPE_CHECKING:
    from remit.orchestrate.bus.bus import Bus

# Letters of answers that wait for one slow subscriber.
LETTERS_MAX = 64 << 10


class Delivered(NamedTuple):
    """A turn in the order of all runs; no event where it cannot be told, or its run is gone."""

    place: Place
    event: RunEvent | None
    whose: Whose


class Subscription:
    """What happens in the runs of a subject, one event after the other, without gap and without duplicate."""

    def __init__(self, bus: "Bus", subject: Subject, at: Place | None, *, chunks: bool) -> None:
        self.subject = subject
        self._bus = bus
        # Behind which turn of the run, or which place of the feed, everything was heard; None: from now on.
        self._at = at
        self._wants_chunks = chunks
        # Pieces of answers, each with the look at the feed that it waits for where many runs are followed.
        self._pieces: deque[tuple[RunEvent, int]] = deque()
        self._letters = 0
        # Runs of whose answers more came than there was room for.
        self._overfull: set[str] = set()
        self._read: deque[Delivered] = deque()
        self._woken = asyncio.Event()
        self._is_closed = False

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> RunEvent:
        while not self._is_closed:
            event = await self.taken()
            if event is not None:
                return event
            if self._bus.is_closed:
                break
            await self.more()
        raise StopAsyncIteration

    async def __aenter__(self) -> "Subscription":
        await self._standing()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hear nothing more; a caller that waits for the next event is told that there is none."""
        self._is_closed = True
        self._bus.leave(self)
        self.wake()

    @property
    def is_over(self) -> bool:
        """Whether nothing is told any more."""
        return self._bus.is_closed

    def wake(self) -> None:
        """Say that there may be news."""
        self._woken.set()

    def hears(self, whose: Whose) -> bool:
        """Whether what a model says in a run is wanted."""
        return self._wants_chunks and self.subject.covers(whose)

    def offer(self, piece: Piece, look: int) -> None:
        """Take a piece of an answer, as long as there is room."""
        run_id, letters = piece.whose.run_id, len(piece.text) + len(piece.reasoning)
        if not piece.number:
            self._overfull.discard(run_id)
        if run_id in self._overfull or self._letters + letters > LETTERS_MAX:
            self._overfull.add(run_id)
            return
        self._letters += letters
        kind = EventKind.RESTARTED if piece.is_restart else EventKind.SAID
        self._pieces.append(
            (
                RunEvent(
                    run_id=run_id, kind=kind, seq=piece.seq, turn=None, text=piece.text, reasoning=piece.reasoning
                ),
                look,
            )
        )
        self.wake()

    async def more(self, wait_s: float | None = None) -> bool:
        """Wait until there may be more, for so long at most; says whether there may be."""
        if wait_s is None:
            await self._woken.wait()
        else:
            try:
                await asyncio.wait_for(self._woken.wait(), wait_s)
            except TimeoutError:
                return False
        self._woken.clear()
        return True

    async def taken(self) -> RunEvent | None:
        """The next event that is there already; None where nothing is.

        A piece of an answer comes behind the turn that it follows, and before the one that holds the answer.
        """
        at = await self._standing()
        return await self._next_of_run(at) if self.subject.is_one_run else await self._next_of_many(at)

    async def _standing(self) -> Place:
        """Behind which place everything was heard; for one that begins now, that is found out when it is first asked."""
        if self._at is None:
            self._at = await self._bus.standing(self.subject)
        return self._at

    async def _next_of_run(self, after: int) -> RunEvent | None:
        if self._pieces and self._pieces[0][0].seq <= after:
            return self._piece(0)
        if not self._read:
            events = await self._bus.of_run(self.subject, after)
            self._read.extend(Delivered(event.seq, event, NOBODY) for event in events)
        if not self._read:
            return None
        self._at, event, _ = self._read.popleft()
        return event

    async def _next_of_many(self, place: Place) -> RunEvent | None:
        while True:
            if not self._read:
                self._read.extend(await self._bus.of_many(place))
            if not self._read:
                return self._piece(0) if self._pieces and self._pieces[0][1] <= self._bus.looks else None
            event = self._read[0].event if self.subject.covers(self._read[0].whose) else None
            if event is not None:
                for number, (piece, _) in enumerate(self._pieces):
                    if piece.run_id == event.run_id and piece.seq < event.seq:
                        return self._piece(number)
            self._at = place = self._read.popleft().place
            if event is not None:
                return event

    def _piece(self, number: int) -> RunEvent:
        """Take a piece out."""
        piece, _ = self._pieces[number]
        del self._pieces[number]
        self._letters -= len(piece.text) + len(piece.reasoning)
        return piece
