"""The bus: who is told what, here and in other processes, and what becomes of those who are slow, late or broken."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.bell import MemoryBell
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RemitError, RequestRejected
from remit.core.journal.codec import encode_record
from remit.core.journal.storage import START, RunListing, StoreUnusable, Topic
from remit.core.journal.turn import Turn
from remit.core.run.recovery import Recovery
from remit.core.run.run_events import CURSOR_INVALID, AnswerPiece, EventKind, RunBelonging, RunEvent, Subject
from remit.inference.engine import Restarted, StreamChunk
from remit.kernel.state import RunState
from remit.orchestrate.bus import bus as bus_module
from remit.orchestrate.bus import subscription as subscription_module
from remit.orchestrate.bus.bus import Bus, Listener
from remit.orchestrate.bus.subscription import Subscription, Subscriptions
from tests.unit.orchestrate.house import scripted, store_of
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.told import Written, come_true


@asynccontextmanager
async def in_memory() -> AsyncIterator[tuple[Bus, Written]]:
    written = Written(MemoryStore(), tenant_id="acme", session_id="desk")
    bus = Bus(written.store)
    yield bus, written
    await bus.close()


@asynccontextmanager
async def two_processes(home: Path) -> AsyncIterator[tuple[Bus, Written, Bus]]:
    """A bus, what another process writes, and the bus over there."""
    here, there = EmbeddedStore.open(home), EmbeddedStore.open(home)
    buses = Bus(here), Bus(there)
    yield buses[0], Written(there, tenant_id="acme", session_id="desk"), buses[1]
    for bus, store in zip(buses, (here, there), strict=True):
        await bus.close()
        await store.close()


async def take(ear: Subscription, count: int) -> list[RunEvent]:
    return [await anext(ear) for _ in range(count)]


def places(events: list[RunEvent]) -> list[tuple[str, int]]:
    return [(event.run_id, event.seq) for event in events]


# Listeners.


def test_a_listener_that_breaks_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[object] = []

    def breaks(*_: object) -> None:
        raise ValueError("no ears")

    async def scene() -> None:
        async with in_memory() as (bus, written):
            bus.listen(Listener(breaks, breaks, breaks))
            bus.listen(Listener(lambda _, turn: heard.append(turn.seq), lambda _, chunk: heard.append(chunk)))
            await written.turn("a", bus)
            bus.recovered(written.state("a"), Recovery(0))
            answer = bus.answer("a", 0)
            assert answer is not None
            for _ in range(2):
                answer.send(StreamChunk("hi"))

    play(scene())
    assert heard == [0, StreamChunk("hi"), StreamChunk("hi")]
    assert caplog.text.count("a listener broke over") == len(("turn 0", "a recovery", "a piece of an answer"))


def test_a_listener_of_a_run_hears_of_its_children_too_and_is_let_go_when_it_ends() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            heard: list[tuple[str, int]] = []

            def hear(state: RunState, turn: Turn) -> None:
                heard.append((state.run_id, turn.seq))

            bus.listen(Listener(hear), Subject("a", children=True))
            for run_id in ("a", "b", "a-child"):
                await written.turn(run_id, bus)
            written.state("a").end.ending = Ending.SUCCESS
            await written.turn("a", bus)
            await written.turn("a", bus)
            assert heard == [("a", 0), ("a-child", 0), ("a", 1)]

    play(scene())


def test_a_subscriber_that_stops_hears_no_more() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            heard: list[int] = []
            end = bus.listen(Listener(lambda _, turn: heard.append(turn.seq)))
            await written.turn("a", bus)
            end()
            end()
            await written.turn("a", bus)
            assert heard == [0]

    play(scene())


def test_a_turn_asks_no_listener_and_no_subscriber_of_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def covers(subject: Subject, whose: RunBelonging) -> bool:
        asked.append(subject.run_id)
        return subject.run_id in ("", whose.run_id)

    async def scene() -> None:
        async with in_memory() as (bus, written):
            others = [f"other-{number}" for number in range(100)]
            ears = [bus.subscribe(Subject(run_id), chunks=True) for run_id in (*others, "a", "")]
            for run_id in (*others, "a", ""):
                bus.listen(Listener(lambda *_: None, lambda *_: None), Subject(run_id))
            await written.turn("a", bus)
            monkeypatch.setattr(Subject, "covers", covers)
            await written.turn("a", bus)
            answer = bus.answer("a", 1)
            assert answer is not None
            answer.send(StreamChunk("hi"))
            assert set(asked) == {"", "a"}
            assert len(ears) == 102

    play(scene())


@pytest.mark.slow
def test_runs_whose_subscribers_were_dropped_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription_module, "ROOMS_MIN", 4)

    async def scene() -> None:
        async with in_memory() as (bus, _):
            ears = Subscriptions()
            for number in range(50):
                ears.add(Subscription(bus, Subject(f"dropped-{number}"), None, chunks=False))
                gc.collect()
            kept = Subscription(bus, Subject("kept"), None, chunks=False)
            ears.add(kept)
            assert [ear.subject.run_id for ear in ears] == ["kept"]
            assert len(vars(ears)["_by_run"]) <= 7

    play(scene())


# Subscribers.


@pytest.mark.parametrize(("since", "first"), [(-1, 0), (0, 1), (2, 3), ("turn:a:1", 2), (None, 4)])
def test_one_run_is_followed_from_any_turn_on(since: str | int | None, first: int) -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            for _ in range(4):
                await written.turn("a", bus)
            async with bus.subscribe(Subject("a"), since) as ear:
                await written.turn("b", bus)
                await written.turn("a", bus)
                events = await take(ear, 5 - first)
            assert [event.seq for event in events] == list(range(first, 5))
            assert [event.cursor for event in events] == [f"turn:a:{event.seq}" for event in events]
            assert all(event.kind is EventKind.TURN and event.turn is not None for event in events)

    play(scene())


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject("a"), ["a", "a"]),
        (Subject("a", children=True), ["a", "a-child", "a"]),
        (Subject(session_id="desk", children=True), ["a", "b", "a-child", "a"]),
        (Subject(session_id="desk"), ["a", "b", "a"]),
        (Subject(session_id="other"), []),
        (Subject(tenant_id="acme"), ["a", "b", "a"]),
        (Subject(tenant_id="other", children=True), []),
        (Subject(), ["a", "b", "a"]),
    ],
)
@pytest.mark.parametrize("is_foreign", [True, False])
def test_a_subject_is_a_run_a_session_a_tenant_or_everything(
    subject: Subject, expected: list[str], is_foreign: bool, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with two_processes(tmp_path) as (bus, written, there):
            # A run of a session has a place in it; its children belong to it without one.
            for run_id in ("a", "b"):
                await written.turn(run_id, there, ordinal="ab".index(run_id))
            await written.turn("a-child", there)
            await written.turn("a", there)
            async with (bus if is_foreign else there).subscribe(subject, -1) as ear:
                assert places(await take(ear, len(expected))) == [
                    (run_id, expected[:number].count(run_id)) for number, run_id in enumerate(expected)
                ]
                assert await ear.taken() is None

    play(scene())


def test_a_run_of_another_process_is_followed_through_restarts_of_both(tmp_path: Path) -> None:
    async def scene() -> None:
        told: list[RunEvent] = []
        for round_number in range(3):
            async with two_processes(tmp_path) as (bus, written, _):
                written.state("a").seq = 4 * round_number - 1
                since = told[-1].cursor if told else -1
                async with bus.subscribe(Subject("a"), since) as ear:
                    for _ in range(4):
                        await written.turn("a")
                    # One of them is not taken before this process leaves; the next one begins with it.
                    told += await take(ear, 3)
        assert [event.seq for event in told] == list(range(9))

    play(scene())


def test_many_runs_are_followed_from_a_cursor_on_in_another_process(tmp_path: Path) -> None:
    async def scene() -> None:
        async with two_processes(tmp_path) as (bus, written, there):
            async with bus.subscribe(Subject(), -1) as ear:
                for run_id in ("a", "b", "a"):
                    await written.turn(run_id, ordinal="ab".index(run_id))
                first = await take(ear, 2)
            async with there.subscribe(Subject(), first[-1].cursor) as again:
                await written.turn("b")
                assert places(await take(again, 2)) == [("a", 1), ("b", 1)]

    play(scene())


def test_a_ring_that_was_lost_is_made_good_by_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBell, "look_ms", 1)

    async def scene() -> None:
        async with in_memory() as (bus, written):
            one, every = bus.subscribe(Subject("a"), -1), bus.subscribe(Subject(), -1)
            await written.turn("a", is_rung=False)
            assert places(await take(one, 1)) == places(await take(every, 1)) == [("a", 0)]

    play(scene())


def test_a_subscriber_to_many_runs_after_turns_that_nobody_wanted_finds_them(tmp_path: Path) -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written), bus.subscribe(Subject("a"), -1) as one:
            await come_true(lambda: bus._row_from is not None)
            await written.turn("b")
            await come_true(lambda: bus._seen == 0)
            async with bus.subscribe(Subject(), -1) as every:
                await written.turn("a")
                assert places(await take(every, 2)) == [("b", 0), ("a", 0)]
                assert places(await take(one, 1)) == [("a", 0)]

    play(scene())


def test_a_slow_subscriber_reads_the_store_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "RECENT_MAX", 4)
    monkeypatch.setattr(bus_module, "READ_MAX", 3)

    async def scene() -> None:
        async with in_memory() as (bus, written):
            bus = Bus(written.store)
            async with bus.subscribe(Subject("a"), -1) as slow, bus.subscribe(Subject(), -1) as wide:
                async with bus.subscribe(Subject("a"), -1) as quick:
                    for number in range(20):
                        await written.turn("a", bus)
                        assert (await anext(quick)).seq == number
                assert len(bus._recent) == 4
                assert [event.seq for event in await take(slow, 20)] == list(range(20))
                assert [event.seq for event in await take(wide, 20)] == list(range(20))
            await bus.close()

    play(scene())


def test_a_turn_that_cannot_be_read_is_left_out_of_what_many_runs_tell(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            await written.store.journal.append("broken", b"no turn", START, listing=RunListing(1))
            await written.turn("a")
            async with bus.subscribe(Subject(), -1) as ear:
                assert places(await take(ear, 1)) == [("a", 0)]

    play(scene())
    assert "cannot be told" in caplog.text


def test_a_run_that_was_deleted_is_told_to_nobody() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            await written.turn("a")
            async with bus.subscribe(Subject(), -1) as ear:
                entry = written.store.catalogue.entry

                async def gone(run_id: str) -> None:
                    return None

                written.store.catalogue.entry = gone  # type: ignore[method-assign]
                bus._catalogue.entry = gone  # type: ignore[method-assign]
                assert await ear.taken() is None
                assert await bus.standing(Subject("a")) == START
                written.store.catalogue.entry = entry  # type: ignore[method-assign]

    play(scene())


SUBJECTS = [Subject("a"), Subject(), Subject(tenant_id="acme")]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_who_comes_for_the_past_is_told_what_the_store_has_and_nothing_that_is_remembered(subject: Subject) -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written), bus.subscribe(Subject()) as console:
            await written.turn("a", bus)
            assert places(await take(console, 1)) == [("a", 0)]
            await written.store.retention.delete("a")
            async with bus.subscribe(subject, -1) as late:
                assert await late.taken() is None

    play(scene())


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("is_here", [True, False])
def test_who_is_slow_is_not_told_what_was_deleted_meanwhile(
    subject: Subject, is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written), bus.subscribe(subject) as slow, bus.subscribe(Subject()) as quick:
            for _ in range(3):
                await written.turn("a", bus)
            await take(quick, 3)
            assert places(await take(slow, 1)) == [("a", 0)]
            await written.store.retention.delete("a")
            if is_here:
                bus.forget("a")
            else:
                monkeypatch.setattr(subscription_module, "FRESH_S", 0)
            assert await slow.taken() is None
            await written.turn("b", bus)
            assert places(await take(quick, 1)) == [("b", 0)]

    play(scene())


def test_what_was_removed_while_it_was_read_is_read_anew() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            since, removed = written.store.feed.since, [2, 1]

            async def removed_meanwhile(place: int, *, limit: int) -> object:
                found = await since(place, limit=limit)
                if found and removed:
                    removed.pop()
                    bus.forget("a")
                return found

            bus._feed.since = removed_meanwhile  # type: ignore[method-assign,assignment]
            async with bus.subscribe(Subject(), -1) as ear, bus.subscribe(Subject()) as live:
                await written.turn("a", bus)
                assert places(await take(ear, 1)) == places(await take(live, 1)) == [("a", 0)]
                assert not removed

    play(scene())


def test_what_was_being_said_in_a_run_that_was_deleted_is_told_to_nobody() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            whose = written.whose
            async with bus.subscribe(Subject(), chunks=True) as ear:
                for run_id in ("a", "a-child", "b"):
                    bus.learn(written.state(run_id))
                    bus.tell(AnswerPiece(whose[run_id], 0, 0, "secret" if run_id != "b" else "plain"), is_ours=True)
                bus.forget("a")
                bus.tell(AnswerPiece(whose["a"], 0, 1, "secret"), is_ours=True)
                assert [event.text for event in await take(ear, 1)] == ["plain"]
                assert await ear.taken() is None

    play(scene())


def test_a_piece_of_a_child_that_was_deleted_while_its_part_was_looked_up_is_not_told() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            whose = written.whose
            await written.turn("a")

            async def deleted_meanwhile(run_id: str, child_id: str) -> str:
                bus.forget(run_id)
                return ""

            bus.part_of = deleted_meanwhile  # type: ignore[method-assign]
            async with bus.subscribe(Subject("a"), -1, chunks=True, beneath=True) as ear:
                bus.learn(written.state("a-child"))
                bus.tell(AnswerPiece(whose["a-child"], 0, 0, "secret"), is_ours=True)
                assert places(await take(ear, 1)) == [("a", 0)]
                assert await ear.taken() is None

    play(scene())


@pytest.mark.parametrize("way", ["delete", "redact"])
def test_what_a_system_removes_is_told_to_none_of_its_subscribers(way: str, tmp_path: Path) -> None:
    async def scene() -> None:
        system = system_on(store_of("embedded", tmp_path))
        slow, console = system.subscribe(Subject()), system.subscribe(Subject())
        async with slow, console:
            run_id = (await system.run("MY-WORD please", scripted({"text": "ok"}))).run_id
            first = await anext(slow)
            assert (first.seq, len(await take(console, 2))) == (0, 2)
            if way == "delete":
                await system.delete(run_id)
            else:
                await system.redact(run_id, text="MY-WORD", by="ann", why="asked to")
            told = []
            for subject in (Subject(), *([Subject(run_id)] if way == "redact" else [])):
                ear = system.subscribe(subject, since=-1)
                told += [await ear.taken(), await ear.taken()]
                ear.close()
            assert "MY-WORD" not in repr([told, await slow.taken()])
            assert (way == "redact") == any(told)
        await system.close()

    play(scene())


def test_a_store_that_cannot_be_read_for_a_while_is_asked_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryBell, "look_ms", 1)

    async def scene() -> None:
        async with in_memory() as (bus, written):
            since, failures = written.store.feed.since, [StoreUnusable("STORE_BUSY", "not now")]

            async def fails_once(place: int, *, limit: int) -> object:
                if failures:
                    raise failures.pop()
                return await since(place, limit=limit)

            written.store.feed.since = fails_once  # type: ignore[method-assign,assignment]
            async with bus.subscribe(Subject("a"), -1) as ear:
                await come_true(lambda: not failures)
                await written.turn("a")
                assert places(await take(ear, 1)) == [("a", 0)]

    with caplog.at_level(logging.WARNING):
        play(scene())
    assert "could not be read: STORE_BUSY" in caplog.text


def test_a_subscription_ends_when_it_is_closed_and_says_so_when_its_system_is() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, _):
            ears = [bus.subscribe(Subject("a")), bus.subscribe(Subject())]
            waiting = [asyncio.create_task(anext(ear, None)) for ear in ears]
            await asyncio.sleep(0)
            ears[0].close()
            assert await waiting[0] is None
            await bus.close()
            with pytest.raises(RemitError, match="SYSTEM_CLOSED"):
                await waiting[1]

    play(scene())


def test_nobody_follows_the_store_when_the_last_subscriber_was_dropped() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            ear: Subscription | None = bus.subscribe(Subject())
            await come_true(lambda: written.store.bell.is_heard(Topic.TURNS))
            del ear
            gc.collect()
            await written.turn("a")
            await come_true(lambda: not written.store.bell.is_heard(Topic.TURNS))
            async with bus.subscribe(Subject(), -1) as again:
                assert places(await take(again, 1)) == [("a", 0)]

    play(scene())


@pytest.mark.parametrize(
    ("subject", "since"),
    [
        (Subject("a"), "place:3"),
        (Subject("a"), "turn:"),
        (Subject("a"), "turn:-1"),
        (Subject("a"), "turn:" + "9" * 30),
        (Subject("a"), True),
        (Subject("a"), -2),
        (Subject(), -2),
        (Subject("a"), 1.5),
        (Subject("a"), "turn:b:0"),
        (Subject("a"), "turn:0"),
        (Subject(), "turn:a:3"),
        (Subject(), 3),
        (Subject("a", children=True), 0),
        (Subject(), "nonsense"),
    ],
)
def test_a_cursor_of_something_else_is_refused(subject: Subject, since: object) -> None:
    async def scene() -> None:
        async with in_memory() as (bus, _):
            with pytest.raises(RequestRejected, match="is nowhere in what was subscribed to") as refused:
                bus.subscribe(subject, since)  # type: ignore[arg-type]
            assert refused.value.code == CURSOR_INVALID

    play(scene())


@pytest.mark.parametrize(("subject", "since"), [(Subject("a"), 4), (Subject("a"), "turn:a:4"), (Subject(), "place:99")])
def test_a_cursor_beyond_what_was_written_is_refused_when_events_are_asked_for(
    subject: Subject, since: str | int
) -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            for _ in range(4):
                await written.turn("a", bus)
            with pytest.raises(RequestRejected) as refused:
                await anext(bus.subscribe(subject, since))
            assert refused.value.code == CURSOR_INVALID

    play(scene())


# What models say.


def test_an_answer_is_passed_on_to_nobody_where_nobody_listens() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            await written.turn("a", bus)
            quiet = bus.subscribe(Subject("a"))
            others = bus.subscribe(Subject("b"), chunks=True)
            assert bus.answer("a", 0) is None
            quiet.close()
            others.close()

    play(scene())


def test_pieces_come_behind_the_turn_that_they_follow_and_before_the_one_that_holds_them() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written):
            async with bus.subscribe(Subject("a"), -1, chunks=True) as ear:
                for number in range(2):
                    await written.turn("a", bus)
                    answer = bus.answer("a", number)
                    assert answer is not None
                    answer.send(StreamChunk("he", "hm"))
                    answer.send(Restarted())
                    answer.send(StreamChunk("hello"))
                events = await take(ear, 8)
            assert [(event.kind, event.seq, event.text) for event in events] == [
                (kind, seq, text)
                for seq in range(2)
                for kind, text in [
                    (EventKind.TURN, ""),
                    (EventKind.SAID, "he"),
                    (EventKind.RESTARTED, ""),
                    (EventKind.SAID, "hello"),
                ]
            ]
            assert events[1].reasoning == "hm"

    play(scene())


def test_of_an_answer_that_is_too_long_for_a_slow_subscriber_a_beginning_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscription_module, "LETTERS_MAX", 4)

    async def scene() -> None:
        async with in_memory() as (bus, written):
            await written.turn("a", bus)
            async with bus.subscribe(Subject("a"), 0, chunks=True) as ear:
                answer = bus.answer("a", 0)
                assert answer is not None
                for text in ("abc", "de", "f"):
                    answer.send(StreamChunk(text))
                assert [event.text for event in await take(ear, 1)] == ["abc"]
                answer.send(StreamChunk("g"))
                answer.send(Restarted())
                answer.send(StreamChunk("a"))
                await written.turn("a", bus)
                kinds = [(event.kind, event.text) for event in await take(ear, 3)]
                assert kinds == [(EventKind.RESTARTED, ""), (EventKind.SAID, "a"), (EventKind.TURN, "")]

    play(scene())


def test_what_a_model_says_is_heard_in_another_process(tmp_path: Path) -> None:
    async def scene() -> None:
        async with two_processes(tmp_path) as (bus, written, there):
            await written.turn("a", there, ordinal=0)
            there.learn(written.state("a"))
            async with bus.subscribe(Subject(tenant_id="acme"), chunks=True) as ear:
                await come_true(lambda: there._bell.is_heard(Topic.CHUNKS))
                answer = there.answer("a", 0)
                assert answer is not None
                answer.send(StreamChunk("he"))
                answer.send(StreamChunk("llo"))
                assert [event.text for event in await take(ear, 2)] == ["he", "llo"]

    play(scene())


def test_of_an_answer_elsewhere_of_which_a_piece_was_lost_nothing_more_is_told_until_it_begins_anew() -> None:
    async def scene() -> None:
        async with in_memory() as (bus, written), bus.subscribe(Subject("a"), -1, chunks=True) as ear:
            await come_true(lambda: written.store.bell.is_heard(Topic.CHUNKS))
            whose = RunBelonging("a")

            def ring(number: int, text: str, *, is_restart: bool = False) -> None:
                piece = AnswerPiece(whose, -1, number, text, is_restart=is_restart)
                written.store.bell.ring(Topic.CHUNKS, encode_record(piece))

            # A subscriber who comes in the middle hears it from there on.
            ring(5, "f")
            ring(6, "g")
            ring(8, "i")
            written.store.bell.ring(Topic.CHUNKS, b"\xc1 no piece")
            ring(0, "", is_restart=True)
            ring(0, "a")
            ring(1, "b")
            ring(3, "d")
            texts = [event.text for event in await take(ear, 5)]
            assert texts == ["f", "g", "", "a", "b"]
            assert await ear.taken() is None

    play(scene())


def test_of_only_so_many_runs_it_is_remembered_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "KNOWN_MAX", 1)

    async def scene() -> None:
        async with in_memory() as (bus, written):
            pieces = bus_module._Pieces()
            async with bus.subscribe(Subject(), -1) as ear:
                for run_id in ("a", "b", "a"):
                    await written.turn(run_id, bus)
                    assert pieces.is_next(AnswerPiece(RunBelonging(run_id), 0, 0))
                assert places(await take(ear, 3)) == [("a", 0), ("b", 0), ("a", 1)]
            assert (len(bus._known), len(pieces._next)) == (1, 1)

    play(scene())
