"""A subscription: what one listener has heard, and where it goes on."""

import asyncio
import hmac
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from hashlib import sha256
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from weakref import WeakSet

from remit.core.failure import RequestRejected
from remit.core.journal.storage import START, Place, StoreUnusable
from remit.core.record import replace
from remit.core.run.run_events import (
    CURSOR_INVALID,
    AnswerPiece,
    EventKind,
    RunBelonging,
    RunEvent,
    Subject,
    cursor_invalid,
    system_closed,
)
from remit.orchestrate.ports import SigningKey

if TYPE_CHECKING:
    from remit.orchestrate.bus.bus import Bus

_MARK = "at:"
_PLACE_BYTES, _PROOF_BYTES, _SECRET_BYTES = 8, 16, 32
# What the key of the store signs so that the key of its cursors can be made from the signature, which no other process has.
_PURPOSE = b"remit cursors 1"

# Raises where what is followed does not exist for the subscriber.
Expect: TypeAlias = Callable[[], Awaitable[object]]
# Letters of answers that wait for one slow subscriber.
LETTERS_MAX = 64 << 10


# So many runs without a subscription may be remembered before they are looked through.
ROOMS_MIN = 64


# For so long what was written or read is told without another look at the store.
FRESH_S = 1.0


def now_s() -> float:
    """The time of the loop."""
    return asyncio.get_running_loop().time()


def is_fresh(since_s: float) -> bool:
    """Whether what was written or read at a moment may be told without another look at the store."""
    return now_s() - since_s < FRESH_S


class Delivered(NamedTuple):
    """A turn in the order of all runs; no event where it cannot be told, or its run is gone."""

    place: Place
    event: RunEvent | None
    whose: RunBelonging


class _Waiting(NamedTuple):
    """A piece of an answer that waits to be told, and the child of the run followed through which it came."""

    event: RunEvent
    # The turn of the run that it follows; where many runs are followed, the look at the feed that it waits for.
    behind: int
    through: str


class Subscription:
    """What happens in the runs of a subject, one event after the other, without gap and without duplicate."""

    def __init__(
        self,
        bus: "Bus",
        subject: Subject,
        at: Place | None,
        *,
        chunks: bool,
        beneath: bool = False,
        expect: Expect | None = None,
        whose: str = "",
    ) -> None:
        self.subject = subject
        # What is said beneath a run belongs to it where its children do its work.
        self._voices = replace(subject, children=subject.children or beneath)
        self._expect = expect
        self._bus = bus
        # Behind which turn of the run, or which place of the feed, everything was heard; None: from now on.
        self._at = at
        self._wants_chunks = chunks
        # The tenant whose cursors are given; empty where places may be seen.
        self._whose = whose
        self._is_standing = False
        # Pieces of answers, each with the look at the feed that it waits for where many runs are followed.
        self._pieces: deque[_Waiting] = deque()
        # Which part of the run its children are, as far as they were heard; and its last turn that was told of here.
        self._parts: dict[str, str] = {}
        self._newest = START
        self._letters = 0
        # Runs of whose answers more came than there was room for.
        self._overfull: set[str] = set()
        # What was read and not told yet, when that was, and whether everything that was there was told once.
        self._read: deque[Delivered] = deque()
        self._read_s = 0.0
        self._is_live = at is None
        self._woken = asyncio.Event()
        self._is_closed = False

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> RunEvent:
        while not self._is_closed:
            event = await self.taken()
            if event is not None:
                return event
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

    def forget(self, gone: set[str]) -> None:
        """Read anew what was not told yet, and tell no more of what is being said in runs of which something was removed."""
        self._read.clear()
        dropped = [piece for piece in self._pieces if piece.event.run_id in gone]
        for piece in dropped:
            self._drop(piece)
        self._overfull.update([piece.event.run_id for piece in dropped])
        self.wake()

    def tell_of(self, seq: int) -> None:
        """Say that a turn of the run followed was written."""
        self._newest = max(self._newest, seq)
        self.wake()

    def wake(self) -> None:
        """Say that there may be news."""
        self._woken.set()

    def hears(self, whose: RunBelonging) -> bool:
        """Whether what a model says in a run is wanted."""
        return self._wants_chunks and self._voices.covers(whose)

    def offer(self, piece: AnswerPiece, look: int) -> None:
        """Take a piece of an answer, as long as there is room."""
        run_id, letters = piece.whose.run_id, len(piece.text) + len(piece.reasoning)
        if not piece.number:
            self._overfull.discard(run_id)
        if run_id in self._overfull or self._letters + letters > LETTERS_MAX:
            self._overfull.add(run_id)
            return
        self._letters += letters
        kind = EventKind.RESTARTED if piece.is_restart else EventKind.SAID
        event = RunEvent(run_id=run_id, kind=kind, seq=piece.seq, turn=None, text=piece.text, reasoning=piece.reasoning)
        root, lineage = self.subject.run_id, (*piece.whose.lineage, run_id)
        through = lineage[lineage.index(root) + 1] if root in lineage[:-1] else ""
        # What a child says follows no turn of the run but the last one that was told of.
        behind = look if not self.subject.is_one_run else self._newest if through else piece.seq
        self._pieces.append(_Waiting(event, behind, through))
        self.wake()

    async def more(self, wait_s: float | None = None) -> bool:
        """Wait until there may be more, for so long at most; says whether there may be."""
        try:
            async with asyncio.timeout(wait_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    async def taken(self) -> RunEvent | None:
        """The next event that is there already; None where nothing is. Raises SYSTEM_CLOSED where nothing is told any more.

        A piece of an answer comes behind the turn that it follows, and before the one that holds the answer.
        """
        try:
            self._expect_open()
            at = await self._standing()
            return await self._next_of_run(at) if self.subject.is_one_run else await self._next_of_many(at)
        except StoreUnusable:
            self._expect_open()
            raise

    def _expect_open(self) -> None:
        if self._bus.is_closed:
            raise system_closed(self.subject.run_id)

    async def _standing(self) -> Place:
        """Behind which place everything was heard; for one that begins now, that is found out when it is first asked."""
        if not self._is_standing:
            if self._expect is not None:
                await self._expect()
            if self._at != START:
                end = await self._bus.standing(self.subject)
                if self._at is not None and self._at > end:
                    raise cursor_invalid(self.subject, self._at)
                self._at = end if self._at is None else self._at
            self._is_standing = True
        assert self._at is not None, "it was just found out"
        return self._at

    async def _next_of_run(self, after: int) -> RunEvent | None:
        if self._pieces and self._pieces[0].behind <= after:
            return await self._piece(0)
        await self._read_on(after)
        if not self._read:
            return None
        self._at, event, _ = self._read.popleft()
        return event

    async def _next_of_many(self, place: Place) -> RunEvent | None:
        while True:
            await self._read_on(place)
            if not self._read:
                is_due = bool(self._pieces) and self._pieces[0].behind <= self._bus.looks
                return await self._piece(0) if is_due else None
            event = self._read[0].event if self.subject.covers(self._read[0].whose) else None
            if event is not None:
                for number, (piece, _, _) in enumerate(self._pieces):
                    if piece.run_id == event.run_id and piece.seq < event.seq:
                        return await self._piece(number)
            self._at = place = self._read.popleft().place
            if event is not None:
                return self._bus.sealed(event, place, self._whose) if self._whose else event

    async def _read_on(self, at: Place) -> None:
        """Read what comes next where nothing is at hand, or may have been removed since it was read."""
        if self._read and is_fresh(self._read_s):
            return
        self._read.clear()
        found: list[Delivered] = []
        removals = -1
        while removals != self._bus.removals:
            self._read_s, removals = now_s(), self._bus.removals
            if self.subject.is_one_run:
                found = await self._bus.of_run(self.subject, at, is_live=self._is_live)
            else:
                found = await self._bus.of_many(at, is_live=self._is_live)
        self._is_live = self._is_live or not found
        self._read.extend(found)

    async def _piece(self, number: int) -> RunEvent | None:
        """Take a piece out; None where its run was removed meanwhile."""
        piece = self._pieces[number]
        event, _, through = piece
        if through and through not in self._parts:
            self._parts[through] = await self._bus.part_of(self.subject.run_id, through)
        if piece not in self._pieces:
            return None
        self._drop(piece)
        return replace(event, part=self._parts[through]) if through else event

    def _drop(self, piece: _Waiting) -> None:
        self._pieces.remove(piece)
        self._letters -= len(piece.event.text) + len(piece.event.reasoning)


class Cursors:
    """Cursors of a tenant, in a form that tells nothing of other tenants.

    The place of a turn counts the turns of all tenants, so it is sealed: encrypted and vouched for, for one tenant, with a key
    that is made from the store's; a store without one has cursors for as long as its process lives.
    """

    def __init__(self, key: SigningKey | None) -> None:
        self._store_key = key
        self._secret = b""

    def sealed(self, tenant_id: str, place: Place) -> str:
        """The cursor of a tenant behind a place."""
        plain = place.to_bytes(_PLACE_BYTES)
        proof = self._mac(b"proof", tenant_id.encode(), plain)[:_PROOF_BYTES]
        return f"{_MARK}{(proof + self._masked(proof, plain)).hex()}"

    def opened(self, tenant_id: str, since: str | int | None) -> Place | None:
        """Behind which place a cursor of a tenant stands; None stands for now. Raises CURSOR_INVALID for any other."""
        if since is None:
            return None
        if type(since) is int and since == START:
            return START
        data = _bytes_in(since)
        proof, plain = data[:_PROOF_BYTES], self._masked(data[:_PROOF_BYTES], data[_PROOF_BYTES:])
        if not hmac.compare_digest(proof, self._mac(b"proof", tenant_id.encode(), plain)[:_PROOF_BYTES]):
            message = "since is no cursor of an event here; give one of an event, -1 for everything, or leave it out"
            raise RequestRejected(CURSOR_INVALID, message)
        return int.from_bytes(plain)

    def _masked(self, proof: bytes, data: bytes) -> bytes:
        return bytes(one ^ other for one, other in zip(data, self._mac(b"mask", proof), strict=False))

    def _mac(self, *parts: bytes) -> bytes:
        # A length before each part: no two lists of them are written alike.
        return hmac.digest(self._key(), b"".join([b"%d:%b" % (len(part), part) for part in parts]), "sha256")

    def _key(self) -> bytes:
        if not self._secret:
            key = self._store_key
            self._secret = os.urandom(_SECRET_BYTES) if key is None else sha256(key.signer.sign(_PURPOSE)).digest()
        return self._secret


def _bytes_in(since: str | int) -> bytes:
    """What a cursor is made of; nothing where it cannot be one."""
    said = since if isinstance(since, str) else ""
    try:
        data = bytes.fromhex(said.removeprefix(_MARK)) if said.startswith(_MARK) else b""
    except ValueError:
        data = b""
    return data if len(data) == _PROOF_BYTES + _PLACE_BYTES else bytes(_PROOF_BYTES + _PLACE_BYTES)


class Subscriptions:
    """The open subscriptions of a process, by the run that each follows; one that no caller holds any more is gone."""

    def __init__(self) -> None:
        self._all: WeakSet[Subscription] = WeakSet()
        # Those of several runs, by session, by tenant or with children, and those of each name of a run; empty for none.
        self._of_many: WeakSet[Subscription] = WeakSet()
        self._by_run: dict[str, WeakSet[Subscription]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(tuple(self._all))

    def add(self, ear: Subscription) -> None:
        """Keep a subscription for as long as its caller does."""
        if len(self._by_run) > 2 * len(self._all) + ROOMS_MIN:
            self._by_run = {run_id: room for run_id, room in self._by_run.items() if room}
        self._all.add(ear)
        self._by_run.setdefault(ear.subject.run_id, WeakSet()).add(ear)
        if not ear.subject.is_one_run:
            self._of_many.add(ear)

    def discard(self, ear: Subscription) -> None:
        """Let a subscription go."""
        self._all.discard(ear)
        self._of_many.discard(ear)
        if (room := self._by_run.get(ear.subject.run_id)) is not None:
            room.discard(ear)
            if not room:
                del self._by_run[ear.subject.run_id]

    def follows(self, run_id: str) -> bool:
        """Whether any subscription follows many runs, or this one."""
        return bool(self._of_many or self._by_run.get(run_id))

    def of_run(self, run_id: str) -> tuple[Subscription, ...]:
        """The subscriptions that follow the run of this name."""
        return tuple(self._by_run.get(run_id, ()))

    def of_many(self) -> tuple[Subscription, ...]:
        """The subscriptions that follow more than the turns of one run."""
        return tuple(self._of_many)

    def hearing(self, whose: RunBelonging) -> list[Subscription]:
        """The subscriptions that want what a model says in a run."""
        near = [ear for run_id in ("", whose.run_id, *whose.lineage) for ear in self._by_run.get(run_id, ())]
        return [ear for ear in near if ear.hears(whose)]
