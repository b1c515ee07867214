"""The bus: any number of listeners are told what happens in runs, here and in other processes.

Rule 1: the journal is the truth and the only queue. A subscriber holds a cursor: it takes what was just written from memory
        that all share, reads the store where it is behind, and is woken when there is more. A slow one loses nothing, holds
        up no listener and costs no memory.
Rule 2: a listener is called while the turn is told, in the process that wrote it. One that breaks is logged, and the run
        goes on.
Rule 3: what a model is saying passes beside the journal, to those who listen when its answer begins. It is provisional, and
        bounded for each subscriber: of an answer that is too long for a slow one the rest is left out until its turn comes.
Rule 4: other processes are heard of by the bell of the store, read once for all listeners here; a look now and then makes good
        what a bell lost.
Rule 5: what was deleted or redacted is not told from memory. The past is read from the store; what is remembered goes with what
        is removed here, and is told for no longer than FRESH_S, since another process may remove it.
"""

import asyncio
import logging
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, TypeAlias
from uuid import uuid4

from remit.core.declared_arguments import expect_plain
from remit.core.failure import RemitError
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.codec import decode_record, decode_turn, encode_record
from remit.core.journal.commands import StartChild, place_in_journal
from remit.core.journal.storage import START, Place, Topic, WrittenTurn
from remit.core.journal.turn import Turn
from remit.core.record import replace
from remit.core.run.recovery import Recovery
from remit.core.run.run_events import (
    ALL,
    NOBODY,
    AnswerPiece,
    RunBelonging,
    RunEvent,
    Subject,
    cursor_place,
    placed,
    turn_event,
    whose_of,
)
from remit.inference.engine import Restarted, StreamChunk
from remit.kernel.state import RunState, pinned
from remit.observe.logs import NO_RUN, run_fields
from remit.orchestrate.bus.subscription import Cursors, Delivered, Expect, Subscription, Subscriptions, is_fresh, now_s
from remit.orchestrate.ports import Store

# Turns that are kept at hand for all subscribers together; one that is further behind reads the store.
RECENT_MAX = 1_024
# Turns that are read at once, for one subscriber or for all.
READ_MAX = 64
# Of so many runs it is remembered whose they are; of others the catalogue is asked again.
KNOWN_MAX = 4_096

# Looking a member up in its enum takes longer than asking the bell.
_CHUNKS = Topic.CHUNKS

_log = logging.getLogger(__name__)

# Told of every turn after it was written, with the run as it stands then.
OnTurn: TypeAlias = Callable[[RunState, Turn], None]
# Told what a model is saying, by the run it says it in. It is provisional until its turn is written.
OnChunk: TypeAlias = Callable[[str, StreamChunk | Restarted], None]
# Told what was done about the open calls of a run when it was taken up again.
OnRecovered: TypeAlias = Callable[[str, Recovery], None]
# Gives the identifiers that a line of the log carries.
Fields: TypeAlias = Callable[[], dict[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """Plain functions that are called with what happens in runs that this process drives, as it happens."""

    on_turn: OnTurn | None = None
    on_chunk: OnChunk | None = None
    on_recovered: OnRecovered | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be called, or would have to be awaited."""
        for name in ("on_turn", "on_chunk", "on_recovered"):
            expect_plain(name, getattr(self, name))


class Bus:
    """The listeners of one process, and the events that each of them gets."""

    def __init__(self, store: Store) -> None:
        self._journal, self._feed, self._catalogue, self._bell = store.journal, store.feed, store.catalogue, store.bell
        self._cursors = Cursors(store.key)
        # By the run that each wants to hear of, empty for those of many; so a turn is no dearer for the listeners of others.
        self._listeners: defaultdict[str, dict[Listener, Subject]] = defaultdict(dict)
        self._ears = Subscriptions()
        self._known: OrderedDict[str, RunBelonging] = OrderedDict()
        # The newest turns, by run and number; and the last of the feed, in a row; each with the moment it was written or read.
        self._recent: OrderedDict[tuple[str, int], tuple[float, RunEvent]] = OrderedDict()
        self._row: deque[tuple[float, Delivered]] = deque()
        # How often something was removed here.
        self.removals = 0
        # Behind which place the row has every turn; None while no listener follows the feed. And up to where it was followed.
        self._row_from: Place | None = None
        self._seen: Place = START
        self._follower: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        # How often the feed was looked at, and whether it is being.
        self.looks = 0
        self._is_looking = False
        self.is_closed = False
        self._name = str(uuid4())

    def listen(self, listener: Listener, subject: Subject = ALL) -> Callable[[], None]:
        """Have functions called with what happens in runs that are driven here; gives what ends it.

        The listener of one run is let go when the run has ended.
        """
        self._listeners[subject.run_id][listener] = subject
        return partial(self._let_go, listener, subject.run_id)

    def _let_go(self, listener: Listener, run_id: str) -> None:
        if (room := self._listeners.get(run_id)) is not None:
            room.pop(listener, None)
            if not room:
                del self._listeners[run_id]

    def subscribe(
        self,
        subject: Subject,
        since: str | int | None = None,
        *,
        chunks: bool = False,
        beneath: bool = False,
        expect: Expect | None = None,
        whose: str = "",
    ) -> "Subscription":
        """What happens in runs from now on, or from a cursor on, no matter which process drives them; raises CURSOR_INVALID.

        `whose` is the tenant that is told; its cursors tell nothing of others.
        """
        is_sealed = bool(whose) and not subject.is_one_run
        at = self._cursors.opened(whose, since) if is_sealed else cursor_place(subject, since)
        told = whose if is_sealed else ""
        ear = Subscription(self, subject, at, chunks=chunks, beneath=beneath, expect=expect, whose=told)
        self._ears.add(ear)
        if self._follower is None or self._follower.done():
            self._follower = asyncio.create_task(self._follow())
        return ear

    def leave(self, ear: "Subscription") -> None:
        """Tell a subscriber nothing more."""
        self._ears.discard(ear)
        self._news.set()

    def learn(self, state: RunState) -> RunBelonging:
        """Note whose a run is that is driven here."""
        return self._known.get(state.run_id) or self._keep(whose_of(pinned(state)))

    def turned(self, state: RunState, turn: Turn) -> None:
        """Tell all listeners of a turn that was written here."""
        # Until the first subscription there is no follower, and as a rule there is never one.
        if not self._listeners and (self._follower is None or not self._ears):
            return
        whose, fields = self.learn(state), partial(run_fields, state.run_id, state)
        for listener in self._covering(whose):
            _call(listener.on_turn, state, turn, of=f"turn {turn.seq}", fields=fields)
        if state.end.ending is not None:
            self._listeners.pop(whose.run_id, None)
        if self._ears:
            self._publish(turn_event(whose.run_id, turn))
            if self._ears.of_many():
                self._news.set()

    def recovered(self, state: RunState, recovery: Recovery) -> None:
        """Tell listeners what was done about the open calls of a run that was taken up."""
        fields = partial(run_fields, state.run_id, state)
        for listener in self._covering(self.learn(state)):
            _call(listener.on_recovered, state.run_id, recovery, of="a recovery", fields=fields)

    def forget(self, run_id: str) -> None:
        """Tell nothing from memory any more: something of a run, or of those beneath it, was removed from the store."""
        self.removals += 1
        self._recent.clear()
        self._row.clear()
        if self._row_from is not None:
            self._row_from = self._seen
        gone = {run_id, *[name for name, whose in self._known.items() if run_id in whose.lineage]}
        for ear in self._ears:
            ear.forget(gone)

    def wake(self, run_id: str) -> None:
        """Let the subscribers of a run look at it: it may rest now."""
        for ear in self._ears.of_run(run_id):
            ear.wake()

    @property
    def is_heard(self) -> bool:
        """Whether there is anyone at all who may want to hear what a model is saying."""
        has_ears = self._follower is not None and len(self._ears) > 0
        return bool(self._listeners or has_ears or self._bell.is_heard(_CHUNKS))

    def answer(self, run_id: str, seq: int) -> "AnswerRelay | None":
        """What passes an answer on that a model begins after a turn; None without a listener."""
        whose = self._known.get(run_id, RunBelonging(run_id))
        listeners = [listener for listener in self._covering(whose) if listener.on_chunk is not None]
        is_heard_here = bool(listeners) or bool(self._ears.hearing(whose))
        is_heard = is_heard_here or self._bell.is_heard(Topic.CHUNKS)
        return AnswerRelay(self, whose, seq, listeners) if is_heard else None

    def tell(self, piece: AnswerPiece, *, is_ours: bool) -> None:
        """Pass on a piece of an answer, to other processes too where the answer is given here."""
        # By the look after this one, the turn that it follows has been read.
        look = self.looks + 1 + self._is_looking
        for ear in self._ears.hearing(piece.whose):
            ear.offer(piece, look)
            if not ear.subject.is_one_run:
                self._news.set()
        if is_ours and self._bell.is_heard(Topic.CHUNKS):
            self._bell.ring(Topic.CHUNKS, encode_record(replace(piece, teller=self._name)))

    async def close(self) -> None:
        """End every subscription; nothing is told any more."""
        self.is_closed = True
        self._wake_all()
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)

    def sealed(self, event: RunEvent, place: Place, whose: str) -> RunEvent:
        """An event with the cursor of a tenant."""
        return replace(event, cursor=self._cursors.sealed(whose, place))

    async def standing(self, subject: Subject) -> Place:
        """Where a listener begins that wants to hear of what comes from now on."""
        if not subject.is_one_run:
            return await self._feed.end()
        entry = await self._catalogue.entry(subject.run_id) if await self._covers(subject) else None
        return START if entry is None else entry.turns - 1

    async def part_of(self, run_id: str, child_id: str) -> str:
        """Which part of a run a child of it is: the number of a replica, the name of a step, or the tool that delegated it."""
        arrival = decode_turn((await self._journal.read(child_id))[0]).arrival
        if not isinstance(arrival, RunStarted) or arrival.manifest.parent is None:
            return ""
        if arrival.manifest.replica:
            return str(arrival.manifest.replica)
        ordered = arrival.manifest.parent.command_id
        for stored in await self._journal.read(run_id, after=place_in_journal(ordered)[0] - 1):
            for decision in decode_turn(stored).decisions:
                if isinstance(decision, StartChild) and decision.id == ordered:
                    return decision.tool or decision.node
        return ""

    async def of_run(self, subject: Subject, after: int, *, is_live: bool) -> list[Delivered]:
        """The next turns of one run: from memory where one who is live wants them, else from its journal; none of another's."""
        if not await self._covers(subject):
            return []
        run_id = subject.run_id
        known = self._remembered(run_id, after + 1) if is_live else None
        events = [known] if known is not None else []
        if known is None:
            turns = await self._journal.read(run_id, after=after)
            events = [turn_event(run_id, decode_turn(data)) for data in turns[:READ_MAX]]
        return [Delivered(event.seq, event, NOBODY) for event in events]

    async def _covers(self, subject: Subject) -> bool:
        """Whether the run of a subject is one that its subscriber may hear of."""
        if not subject.tenant_id and not subject.session_id:
            return True
        whose = await self._whose(subject.run_id)
        return whose is not None and subject.covers(whose)

    async def of_many(self, place: Place, *, is_live: bool) -> list[Delivered]:
        """The next turns of all runs behind a place: from memory where one who is live wants them, else from the feed."""
        self._drop_stale()
        if is_live and self._row_from is not None and place >= self._row_from:
            later = takewhile(lambda told: told.place > place, (told for _, told in reversed(self._row)))
            return list(later)[::-1][:READ_MAX]
        return [await self._told(written) for written in await self._feed.since(place, limit=READ_MAX)]

    def _remembered(self, run_id: str, seq: int) -> RunEvent | None:
        self._drop_stale()
        found = self._recent.get((run_id, seq))
        return None if found is None else found[1]

    def _drop_stale(self) -> None:
        """Let go of what was remembered for too long, or is too much."""
        while self._recent and (len(self._recent) > RECENT_MAX or not is_fresh(next(iter(self._recent.values()))[0])):
            self._recent.popitem(last=False)
        while self._row and (len(self._row) > RECENT_MAX or not is_fresh(self._row[0][0])):
            _, told = self._row.popleft()
            if self._row_from is not None:
                self._row_from = told.place

    async def _told(self, written: WrittenTurn, known: RunEvent | None = None) -> Delivered:
        whose = await self._whose(written.run_id)
        if whose is None:
            return Delivered(written.place, None, NOBODY)
        try:
            event = known or turn_event(written.run_id, decode_turn(written.data))
        except RemitError as error:
            _log.warning("turn %s cannot be told: %s", written.seq, error, extra=run_fields(written.run_id, None))
            return Delivered(written.place, None, whose)
        return Delivered(written.place, placed(event, written.place), whose)

    async def _whose(self, run_id: str) -> RunBelonging | None:
        """Whose a run is; None for one that is not listed any more."""
        if (known := self._known.get(run_id)) is not None:
            return known
        if (entry := await self._catalogue.entry(run_id)) is None:
            return None
        listing, first = entry.listing, None
        if listing.lineage and not listing.session_id:
            first = await self._catalogue.entry(listing.lineage[0])
        session_id = listing.session_id if first is None else first.listing.session_id
        return self._keep(RunBelonging(run_id, listing.tenant_id, session_id, listing.parent_id, listing.lineage))

    def _keep(self, whose: RunBelonging) -> RunBelonging:
        self._known[whose.run_id] = whose
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return whose

    def _covering(self, whose: RunBelonging) -> list[Listener]:
        heard = [self._listeners.get(run_id) for run_id in ("", whose.run_id, *whose.lineage)]
        rooms = [room for room in heard if room]
        return [listener for room in rooms for listener, subject in room.items() if subject.covers(whose)]

    def _publish(self, event: RunEvent) -> None:
        """Put a turn where subscribers of its run find it, and wake them."""
        self._recent[event.run_id, event.seq] = now_s(), event
        self._recent.move_to_end((event.run_id, event.seq))
        self._drop_stale()
        for ear in self._ears.of_run(event.run_id):
            ear.tell_of(event.seq)

    def _wake_all(self) -> None:
        for ear in self._ears:
            ear.wake()

    async def _follow(self) -> None:
        """Read what is new for all subscribers together, as long as there are any."""
        bell, pieces = self._bell, _Pieces()
        ends = (
            bell.listen(Topic.TURNS, lambda _: self._news.set()),
            bell.listen(Topic.CHUNKS, lambda word: self._overhear(word, pieces)),
        )
        try:
            self._seen = self._row_from = await self._feed.end()
            self._row.clear()
            # What was written before this place was known, subscribers find by themselves.
            self._wake_all()
            while self._ears and not self.is_closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(bell.look_ms / 1000):
                        await self._news.wait()
                self._news.clear()
                self._is_looking = True
                try:
                    await self._look()
                except RemitError as error:
                    _log.warning("turns of other processes could not be read: %s", error, extra=NO_RUN)
                self._is_looking = False
                self.looks += 1
                for ear in self._ears.of_many():
                    ear.wake()
        finally:
            self._row_from = None
            for end in ends:
                end()

    async def _look(self) -> None:
        while True:
            removals, read_s = self.removals, now_s()
            found = await self._feed.since(self._seen, limit=READ_MAX)
            if not found:
                return
            for written in found:
                if self._ears.follows(written.run_id):
                    told = await self._told(written, self._remembered(written.run_id, written.seq))
                    if self.removals != removals:
                        break  # It may have been removed since it was read.
                    self._row.append((read_s, told))
                    self._drop_stale()
                    if told.event is not None and (written.run_id, written.seq) not in self._recent:
                        assert told.event.turn is not None
                        self._publish(turn_event(written.run_id, told.event.turn))
                else:
                    self._row.clear()
                    self._row_from = written.place
                self._seen = written.place

    def _overhear(self, word: bytes, pieces: "_Pieces") -> None:
        """Pass on what a model says in another process; of an answer of which a piece was lost, nothing more."""
        with suppress(RemitError):
            piece = decode_record(word, AnswerPiece)
            if piece.teller != self._name and pieces.is_next(piece):
                self.tell(piece, is_ours=False)


class AnswerRelay:
    """Passes the pieces of one answer on to those who listen when it begins, each for as long as it can take them."""

    def __init__(self, bus: Bus, whose: RunBelonging, seq: int, listeners: list[Listener]) -> None:
        self._bus, self._whose, self._seq, self._listeners = bus, whose, seq, listeners
        self._number = 0

    def send(self, chunk: StreamChunk | Restarted) -> None:
        """Pass a piece on, or that the answer begins anew."""
        run_id, fields = self._whose.run_id, partial(run_fields, self._whose.run_id)
        for listener in tuple(self._listeners):
            if not _call(
                listener.on_chunk, run_id, chunk, of="a piece of an answer; it hears no more of it", fields=fields
            ):
                self._listeners.remove(listener)
        if isinstance(chunk, Restarted):
            self._number = 0
            piece = AnswerPiece(self._whose, self._seq, 0, is_restart=True)
        else:
            piece = AnswerPiece(self._whose, self._seq, self._number, chunk.text, chunk.reasoning)
            self._number += 1
        self._bus.tell(piece, is_ours=True)


class _Pieces:
    """Which answers of other processes are heard without a gap."""

    def __init__(self) -> None:
        self._next: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_next(self, piece: AnswerPiece) -> bool:
        """Take note of a piece; False where one before it was lost. A listener that comes late hears the rest of an answer."""
        run_id, at = piece.whose.run_id, (piece.seq, piece.number)
        if piece.number and self._next.get(run_id, at) != at:
            return False
        self._next[run_id] = (piece.seq, piece.number + (not piece.is_restart))
        if len(self._next) > KNOWN_MAX:
            self._next.popitem(last=False)
        return True


def _call(told: Callable[..., None] | None, *what: Any, of: str, fields: Fields) -> bool:
    """Tell a listener something; False where it broke, which harms no other."""
    try:
        if told is not None:
            told(*what)
    except Exception:  # noqa: BLE001  # no listener may break the run
        _log.exception("a listener broke over %s", of, extra=fields())
        return False
    return True
