"""The law of the bus: a subscriber hears what was written behind its cursor, all of it, once, in order."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.backend.memory.store import MemoryStore
from remit.core.journal.storage import START, Topic
from remit.core.run.run_events import EventKind, Subject
from remit.inference.engine import StreamChunk
from remit.orchestrate.bus import bus as bus_module
from remit.orchestrate.bus import subscription as subscription_module
from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.bus.subscription import Subscription
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.told import Written

RUNS = ("a", "b", "a-child")


class Write(NamedTuple):
    """A turn is written, by this process or by another one, whose ring may be lost."""

    run_id: str
    is_own: bool
    is_rung: bool


class Subscribe(NamedTuple):
    """A subscriber comes, for one run or for all, and wants everything from now on or behind some turn."""

    subject: Subject
    behind: int | None


class Take(NamedTuple):
    """One of the subscribers takes so many events, if there are so many."""

    who: int
    events: int


class Leave(NamedTuple):
    """One of the subscribers goes, and comes back with its last cursor, perhaps to another process."""

    who: int
    is_elsewhere: bool


class Rest(NamedTuple):
    """Everybody has time for what they have to do."""

    turns: int


Act = Write | Subscribe | Take | Leave | Rest
SUBJECTS = [Subject("a"), Subject("b"), Subject("a", children=True), Subject(children=True), Subject()]
ACTS = st.lists(
    st.one_of(
        st.builds(Write, st.sampled_from(RUNS), st.booleans(), st.booleans()),
        st.builds(Subscribe, st.sampled_from(SUBJECTS), st.none() | st.integers(START, 3)),
        st.builds(Take, st.integers(0, 5), st.integers(1, 4)),
        st.builds(Rest, st.integers(1, 20)),
        st.builds(Leave, st.integers(0, 5), st.booleans()),
    ),
    max_size=40,
)


class Heard:
    """A subscriber, and what it was told."""

    def __init__(self, bus: Bus, act: Subscribe, written: Written) -> None:
        self.subject, self.told = act.subject, list[tuple[str, int]]()
        # Behind what was written by then at most: a cursor beyond that is refused.
        mine = [run_id for run_id, _ in written.order if not act.subject.is_one_run or run_id == act.subject.run_id]
        behind = None if act.behind is None else min(act.behind, len(mine) - 1)
        self._cursor: str | int | None = behind
        if not act.subject.is_one_run and behind is not None:
            self._cursor = START if behind == START else f"place:{behind}"
        # From now on means behind what was written when it came.
        self.came_at, self.behind = len(written.order), behind
        self.ear: Subscription = bus.subscribe(act.subject, self._cursor)

    def wants(self, place: int, entry: tuple[str, int], written: Written) -> bool:
        """Whether it has to hear of a turn."""
        is_later = place >= self.came_at
        if self.behind is not None:
            is_later = (entry[1] if self.subject.is_one_run else place) > self.behind
        return is_later and self.subject.covers(written.whose[entry[0]])

    async def take(self, count: int) -> None:
        """Take so many events, or as many as there are."""
        for _ in range(count):
            event = await self.ear.taken()
            if event is None:
                return
            assert event.kind is EventKind.TURN
            self.told.append((event.run_id, event.seq))
            self._cursor = event.cursor

    async def take_all(self) -> None:
        """Take events until there are no more."""
        before = -1
        while len(self.told) > before:
            before = len(self.told)
            await rest(20)
            await self.take(100)

    async def come_back(self, bus: Bus) -> None:
        """Leave, and go on from the last cursor."""
        if self.told:
            self.ear.close()
            self.ear = bus.subscribe(self.subject, self._cursor)


async def story(acts: Sequence[Act]) -> None:
    written = Written(MemoryStore())
    buses = [Bus(written.store), Bus(written.store)]
    heard: list[Heard] = []
    for act in acts:
        match act:
            case Write():
                await written.turn(act.run_id, buses[0] if act.is_own else None, is_rung=act.is_rung)
            case Subscribe():
                heard.append(Heard(buses[0], act, written))
                await heard[-1].ear.__aenter__()
            case Take() if heard:
                await heard[act.who % len(heard)].take(act.events)
            case Leave() if heard:
                await heard[act.who % len(heard)].come_back(buses[act.is_elsewhere])
            case Rest():
                await rest(act.turns)
    # Whatever was rung for no listener is found by looking.
    written.store.bell.ring(Topic.TURNS)
    for one in heard:
        await one.take_all()
        expected = [entry for place, entry in enumerate(written.order) if one.wants(place, entry, written)]
        assert one.told == expected, f"{one.subject} behind {one.behind}"
    for bus in buses:
        await bus.close()


async def rest(turns: int) -> None:
    """Let others go on for so many turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("recent", "read"), [(1_024, 64), (2, 1), (3, 2)])
@given(acts=ACTS)
def test_a_subscriber_hears_every_turn_behind_its_cursor_once_and_in_order(
    recent: int, read: int, acts: list[Act]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bus_module, "RECENT_MAX", recent)
        patch.setattr(bus_module, "READ_MAX", read)
        play(story(acts))


@given(pieces=st.lists(st.sampled_from(["", "a", "bc"]), max_size=30), taken=st.lists(st.booleans(), max_size=30))
def test_a_slow_subscriber_hears_a_beginning_of_each_answer_and_then_its_turn(
    pieces: list[str], taken: list[bool]
) -> None:
    async def scene() -> None:
        written = Written(MemoryStore())
        bus = Bus(written.store)
        await written.turn("a", bus)
        ear, said = bus.subscribe(Subject("a"), 0, chunks=True), list[str]()
        answer = bus.answer("a", 0)
        assert answer is not None
        for number, text in enumerate(pieces):
            answer.send(StreamChunk(text))
            if number < len(taken) and taken[number] and (event := await ear.taken()) is not None:
                said.append(event.text)
        await written.turn("a", bus)
        kinds: list[EventKind] = []
        while (event := await ear.taken()) is not None:
            kinds.append(event.kind)
            said.append(event.text)
        assert "".join(pieces).startswith("".join(said))
        assert kinds[-1] is EventKind.TURN
        assert EventKind.TURN not in kinds[:-1]
        await bus.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subscription_module, "LETTERS_MAX", 6)
        play(scene())
