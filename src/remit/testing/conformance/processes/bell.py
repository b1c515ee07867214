"""What every Bell must do.

A check is a coroutine function. It opens two stores that share what is written, as two processes have one open, uses their
bells, and raises AssertionError with a sentence when they do not do what is relied on. Run each of BELL_CHECKS against your
backend, with any test runner. A bell that never rings passes where its `look_ms` says that looking is all there is.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.journal.storage import START, RunListing, Topic
from remit.orchestrate.ports import Store
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import RUN

# Opens one store twice, and closes both afterwards.
OpenTwice = Callable[[], AbstractAsyncContextManager[tuple[Store, Store]]]
BellCheck = Callable[[OpenTwice], Coroutine[Any, Any, None]]

# A store that cannot ring has every process look so often that no caller waits longer than people are promised.
SILENT_LOOK_MS_MAX = 200
_RING_S_MAX = 5.0


class _Ear:
    """Hears, and says when it did."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self._heard = asyncio.Event()

    def __call__(self, word: bytes) -> None:
        self.words.append(word)
        self._heard.set()

    async def is_rung(self) -> bool:
        """Whether something was heard in time; it is forgotten then."""
        try:
            await asyncio.wait_for(self._heard.wait(), _RING_S_MAX)
        except TimeoutError:
            return False
        self._heard.clear()
        return True


async def whatever_is_written_rings_for_those_who_listen(open_twice: OpenTwice) -> None:
    """A turn for those who follow turns, a letter and a halt for those who drive runs; each after it can be read."""
    async with open_twice() as (writer, listener):
        turns, post = _Ear(), _Ear()
        ends = [listener.bell.listen(Topic.TURNS, turns), listener.bell.listen(Topic.POST, post)]
        if listener.bell.look_ms <= SILENT_LOOK_MS_MAX:
            return
        place = await writer.journal.append(RUN, b"turn", START, listing=RunListing(1))
        assert await turns.is_rung(), "a turn was written, and no listener was told"
        assert list(await listener.journal.read(RUN)) == [b"turn"], "a turn was told of that cannot be read"
        await writer.inbox.put(RUN, b"letter")
        assert await post.is_rung(), "a letter was left, and no listener was told"
        assert await listener.inbox.pending(after=0), "a letter was told of that is not there"
        await writer.halts.append(b"halt", after=0)
        assert await post.is_rung(), "a halt was written, and no listener was told"
        for end in ends:
            end()
        turns.words.clear()
        await writer.journal.append(RUN, b"more", place)
        assert turns.words == [], "a listener that has stopped was told"


async def words_reach_everybody_who_listens_to_their_topic(open_twice: OpenTwice) -> None:
    """As they are, in their order, and only those of the topic."""
    async with open_twice() as (writer, listener):
        ears = [_Ear(), _Ear()]
        ends = [listener.bell.listen(Topic.CHUNKS, ear) for ear in ears]
        if not writer.bell.is_heard(Topic.CHUNKS):
            assert listener.bell.look_ms <= SILENT_LOOK_MS_MAX, "no process is heard, and none looks in time either"
            return
        writer.bell.ring(Topic.POST, b"not for them")
        for word in (b"one", b"", bytes(range(256))):
            writer.bell.ring(Topic.CHUNKS, word)
        for ear in ears:
            while len(ear.words) < len((b"one", b"", b"all")):
                assert await ear.is_rung(), f"of three words, {ear.words} were heard"
            assert ear.words == [b"one", b"", bytes(range(256))], f"other words were heard than rung: {ear.words}"
        for end in ends:
            end()
        assert not writer.bell.is_heard(Topic.CHUNKS), "a topic is heard after every listener has stopped"


async def whoever_stops_listening_stops_alone(open_twice: OpenTwice) -> None:
    """Others hear on, those of the same topic too; and to stop again changes nothing for them."""
    async with open_twice() as (writer, listener):
        first, second, elsewhere = _Ear(), _Ear(), _Ear()
        end = listener.bell.listen(Topic.CHUNKS, first)
        ends = [listener.bell.listen(Topic.CHUNKS, second), listener.bell.listen(Topic.POST, elsewhere)]
        end()
        if not writer.bell.is_heard(Topic.CHUNKS):
            assert listener.bell.look_ms <= SILENT_LOOK_MS_MAX, "one stopped listening, and no other is heard any more"
            return
        writer.bell.ring(Topic.CHUNKS, b"word")
        assert await second.is_rung(), "one stopped listening, and others are told nothing"
        assert (first.words, elsewhere.words) == ([], []), "a process that does not listen to a topic was told of it"
        for left in ends:
            left()


async def a_listener_that_does_not_hear_holds_up_nobody(open_twice: OpenTwice) -> None:
    """However often is rung while a listener is busy, ringing returns at once."""
    async with open_twice() as (writer, listener):
        ear = _Ear()
        end = listener.bell.listen(Topic.TURNS, ear)
        for _ in range(10_000):
            writer.bell.ring(Topic.TURNS)
        is_told = await ear.is_rung() if listener.bell.look_ms > SILENT_LOOK_MS_MAX else True
        assert is_told, "of ten thousand rings none was heard"
        end()


BELL_CHECKS: Sequence[BellCheck] = in_words(
    whatever_is_written_rings_for_those_who_listen,
    words_reach_everybody_who_listens_to_their_topic,
    whoever_stops_listening_stops_alone,
    a_listener_that_does_not_hear_holds_up_nobody,
)
