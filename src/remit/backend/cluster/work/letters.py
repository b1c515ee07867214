"""What people left for runs, and the bell that wakes those who wait.

Rule 1: an entry of an inbox is answered by a turn, in its batch, or settled in the log of the inbox; whichever is first stays.
Rule 2: turns, letters and halts ring by being written: every process hears the end of the logs. Other words go by core subjects.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from remit.backend.cluster.keys.signet import is_as_signed
from remit.backend.cluster.layout import CHUNK_BYTES, LOGS, RING
from remit.backend.cluster.logs.blobs import ClusterBlobs
from remit.backend.cluster.logs.entries import Answered, Left
from remit.backend.cluster.logs.log_copy import ClusterLogCopy
from remit.backend.cluster.server.jetstream import Stored
from remit.backend.cluster.server.link import Link
from remit.backend.folded.log import HALT_LOG, INBOX, RUN, TRIES_MAX, LogEntry
from remit.core.journal.codec import encode_record
from remit.core.journal.storage import AppendConflict, InboxEntry, Topic
from remit.core.record import digest_of

# How long a listener elsewhere may take to say that it is there.
EAR_S_MAX = 0.5


class ClusterInbox:
    """Inboxes on JetStream. The number of an entry is its place."""

    def __init__(self, link: Link, log_copy: ClusterLogCopy, blobs: ClusterBlobs, now_ms: Callable[[], int]) -> None:
        self._link = link
        self._log_copy = log_copy
        self._blobs = blobs
        self._now_ms = now_ms

    async def put(self, run_id: str, data: bytes) -> int:
        """Leave something for a run."""
        left = Left(self._now_ms())
        if len(data) > CHUNK_BYTES:
            left = Left(left.at_ms, digest_of(data))
            await self._blobs.put(left.kept_as, data)
            data = b""
        return await self._log_copy.add(INBOX + run_id, encode_record(left), data)

    async def pending(self, *, after: int) -> Sequence[InboxEntry]:
        """Entries after this number that are not settled."""
        await self._log_copy.refresh()
        letters = self._log_copy.inbox
        return await self.entries([number for number, one in letters.items() if number > after and one.outcome is None])

    async def entries(self, numbers: Sequence[int]) -> list[InboxEntry]:
        """These entries with their bytes."""
        letters = self._log_copy.inbox
        short = [number for number in numbers if not letters[number].kept_as]
        stored = await self._link.call(self._link.jet.many(short, f"{LOGS}inbox.>")) if short else {}
        found = []
        for number in numbers:
            letter = letters.get(number)
            if letter is not None and (letter.kept_as or _is_there(stored.get(number))):
                data = await self._blobs.get(letter.kept_as) if letter.kept_as else stored[number].data
                found.append(InboxEntry(number, letter.run_id, data))
        return found

    async def settle(self, number: int, code: str, message: str, *, token: int = 0) -> None:
        """Say that an entry was heard or refused; the first word stays."""
        for _ in range(TRIES_MAX):
            await self._log_copy.refresh()
            letter = self._log_copy.inbox.get(number)
            if letter is None or letter.outcome is not None:
                return
            name, said = INBOX + letter.run_id, Answered(number, code, message, self._now_ms())
            try:
                await self._link.append(name, encode_record(said), self._log_copy.place(name))
            except AppendConflict:
                continue
            return

    async def outcome(self, number: int) -> tuple[str, str] | None:
        """Code and message of a settled entry."""
        await self._log_copy.refresh()
        letter = self._log_copy.inbox.get(number)
        return None if letter is None else letter.outcome


def _is_there(stored: Stored | None) -> bool:
    return stored is not None and is_as_signed(stored.data, stored.headers)


class ClusterBell:
    """Rings in every process that has the store open."""

    # A net: whatever is written reaches a listener by itself.
    look_ms = 2_000

    def __init__(self, link: Link) -> None:
        self._link = link
        self._ears: dict[Topic, list[tuple[asyncio.AbstractEventLoop, Callable[[bytes], None]]]] = {
            topic: [] for topic in Topic
        }
        self._subscribed: dict[Topic, tuple[Subscription, Subscription]] = {}
        link.on_entry = self._hear

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Call `hear` in the running event loop for every word rung for a topic; gives what ends it."""
        ear = (asyncio.get_running_loop(), hear)
        self._ears[topic] = [*self._ears[topic], ear]
        if topic not in self._subscribed:
            self._subscribed[topic] = self._link.call_now(self._subscribe(topic))

        def end() -> None:
            self._ears[topic] = [one for one in self._ears[topic] if one is not ear]
            if not self._ears[topic] and (subscription := self._subscribed.pop(topic, None)) is not None:
                self._link.call_now(self._unsubscribe(subscription))

        return end

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Ring for a topic without waiting; here, too. A word is signed, since it is shown to people."""
        self._link.ring(RING + topic, word, is_signed=bool(word))

    def is_heard(self, topic: Topic) -> bool:
        """Whether a topic has a listener: the server knows at once where there is none."""
        if self._ears[topic]:
            return True
        if self._link.is_closed or not self._link.jet.client.is_connected:
            return False
        return self._link.call_now(self._is_answered(topic))

    async def _is_answered(self, topic: Topic) -> bool:
        with suppress(NatsError, TimeoutError):
            await self._link.jet.client.request(f"{RING}{topic}.who", b"", timeout=EAR_S_MAX)
            return True
        return False

    async def _subscribe(self, topic: Topic) -> tuple[Subscription, Subscription]:
        client = self._link.jet.client

        async def hear(message: Msg) -> None:
            # A ring alone says nothing; who forges one has others look.
            if not message.data or self._link.is_word(message.subject, message.data, message.headers or {}):
                self._tell(topic, message.data)

        async def answer(message: Msg) -> None:
            await message.respond(b"")

        found = await client.subscribe(RING + topic, cb=hear), await client.subscribe(f"{RING}{topic}.who", cb=answer)
        # From here on the server knows.
        await client.flush()
        return found

    async def _unsubscribe(self, subscriptions: tuple[Subscription, Subscription]) -> None:
        for one in subscriptions:
            await one.unsubscribe()
        await self._link.jet.client.flush()

    def _hear(self, found: LogEntry) -> None:
        """Ring for what was written; called in the thread of the connection."""
        if found.name.startswith(RUN):
            self._tell(Topic.TURNS, b"")
        elif found.name.startswith(INBOX) or found.name == HALT_LOG:
            self._tell(Topic.POST, b"")

    def _tell(self, topic: Topic, word: bytes) -> None:
        for loop, hear in self._ears[topic]:
            with suppress(RuntimeError):  # Its loop is closed.
                loop.call_soon_threadsafe(self._hear_if_listening, topic, hear, word)

    def _hear_if_listening(self, topic: Topic, hear: Callable[[bytes], None], word: bytes) -> None:
        if any(one is hear for _, one in self._ears[topic]):
            hear(word)
