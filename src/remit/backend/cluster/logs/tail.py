"""The end of the logs: every entry reaches this process as it is written, in order and once, without being asked for.

Rule 1: the consumer behind it may be lost at any time, with its server or with the connection; a gap in its numbers, silence
        or a new connection has another one begin behind the last entry that was seen.
Rule 2: only headers are sent; the bytes of turns and letters are read by those who need them.
Rule 3: a process that folds no logs, as a worker that only performs, keeps UNREAD_MAX entries at most: then it hears nothing
        more until it asks for news, and begins behind the last entry that it folded.
"""

import asyncio
import contextlib
import logging
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Mapping

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from remit.backend.cluster.layout import ENTRY, EVERY_LOG, log_subject
from remit.backend.cluster.server.connection import unreachable
from remit.backend.cluster.server.jetstream import JetStream
from remit.backend.folded.log import LogEntry
from remit.core.failure import InvariantBroken, RemitError
from remit.core.journal.codec import decode_record, encode_record
from remit.core.record import Record
from remit.core.task_end import end_tasks
from remit.wire.subjects import STREAM

# How often a server says that it has nothing to say, and how long its silence is believed.
HEARTBEAT_S = 2.0
SILENCE_S_MAX = 3 * HEARTBEAT_S
# How long an entry that the leader has may take to arrive before a new consumer is tried.
ARRIVAL_S_MAX = 1.0
# How many entries are kept for a process that asks for none; one that drives runs asks every few seconds.
UNREAD_MAX = 5_000
# A consumer that its process left is forgotten by the server after that.
_LEFT_NS = 30_000_000_000
_NS_PER_S = 1_000_000_000
# Where the numbers stand in the subject that a delivered message would be acknowledged at.
_OF_STREAM, _OF_CONSUMER, _AT_NS = -4, -3, -2
_NS_PER_MS = 1_000_000

# How the name begins of the log of an entry that some other program wrote; its subject follows.
UNREADABLE = "?"

_log = logging.getLogger(__name__)


class HeardEntry(LogEntry):
    """An entry as it was heard: under which subject, with which headers, and when the server took it in."""

    subject: str = ""
    headers: Mapping[str, str] = {}
    at_ms: int = 0


class NamedEntry(Record):
    """An entry as it stands in a header: the log that it is of, and its bytes."""

    name: str
    data: bytes


def in_header(name: str, data: bytes) -> str:
    """An entry as it is written into a header."""
    return b64encode(encode_record(NamedEntry(name, data))).decode()


def from_header(place: int, subject: str, headers: Mapping[str, str], at_ms: int = 0) -> HeardEntry:
    """The entry in headers; one that cannot be read, or belongs to another subject, is of no log but the subject."""
    try:
        named: NamedEntry = decode_record(b64decode(headers.get(ENTRY, "")), NamedEntry)
        name, data = (named.name, named.data) if log_subject(named.name) == subject else (UNREADABLE + subject, b"")
    except (InvariantBroken, ValueError):
        name, data = UNREADABLE + subject, b""
    return HeardEntry(place, name, data, subject, headers=headers, at_ms=at_ms)


class Tail:
    """What was written to the logs, as far as this process has heard of it. It lives in the loop of its connection."""

    def __init__(self, jet: JetStream, on_entry: Callable[[HeardEntry], None]) -> None:
        self._jet = jet
        self._on_entry = on_entry
        self._entries: deque[HeardEntry] = deque()
        self._seen = 0
        self._expected = 1
        self._heard = asyncio.Event()
        self._heard_at_s = 0.0
        self._subscription: Subscription | None = None
        self._inbox = ""
        # How far it was folded, how many wait to be told, and how many entries were heard since the last was.
        self._folded = self._readers = self._unread = 0
        # Whether nothing is heard until a reader asks.
        self._is_paused = False
        self._beginning: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin with the first entry."""
        await self._begin()
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Hear nothing more."""
        await end_tasks((self._watching, self._beginning))
        await self._leave()

    async def _leave(self) -> None:
        if self._subscription is not None:
            with contextlib.suppress(NatsError):  # It went with its connection.
                await self._subscription.unsubscribe()

    def begin_again(self) -> None:
        """Have another consumer begin behind the last entry that was seen."""
        if not self._is_paused and (self._beginning is None or self._beginning.done()):
            self._beginning = asyncio.create_task(self._try_to_begin())

    async def news(self, after: int, up_to: int = 0) -> list[HeardEntry]:
        """Every entry after a place that was written by now; those up to a place alone where one is named.

        Entries up to `after` are forgotten here: they were folded.
        """
        self._folded = max(self._folded, after)
        if self._is_paused:
            self._is_paused, self._seen = False, self._folded
            self.begin_again()
        self._readers += 1
        try:
            await (self._arrived(up_to) if up_to else self._caught_up())
        finally:
            self._readers -= 1
        self._unread = 0
        while self._entries and self._entries[0].place <= after:
            self._entries.popleft()
        return list(self._entries)

    async def _caught_up(self) -> None:
        """Wait until everything has arrived that the leader had when it was asked."""
        last = 0
        while (following := await self._jet.following(EVERY_LOG, self._seen)) is not None:
            if last and following.seq > last:
                return
            if not last:
                info = await self._jet.asked(f"$JS.API.STREAM.INFO.{STREAM}")
                last = max(int(info["state"]["last_seq"]), following.seq)
            await self._arrived(following.seq)

    async def _arrived(self, place: int) -> None:
        while self._seen < place:
            self._heard.clear()
            try:
                await asyncio.wait_for(self._heard.wait(), ARRIVAL_S_MAX)
            except TimeoutError:
                # The entry may have been removed meanwhile, or the consumer may be gone.
                following = await self._jet.following(EVERY_LOG, self._seen)
                if following is None or following.seq > place:
                    return
                self.begin_again()

    async def _try_to_begin(self) -> None:
        try:
            await self._begin()
        except (RemitError, NatsError, OSError) as error:
            # It is tried again as soon as a reader waits, or after a silence.
            _log.warning("the end of the logs cannot be heard just now: %s", str(error) or type(error).__name__)

    async def _begin(self) -> None:
        await self._leave()
        inbox = self._inbox = self._jet.client.new_inbox()

        async def hear(message: Msg) -> None:
            if self._inbox == inbox:  # Else of a consumer before.
                await self._hear(message)

        self._expected = 1
        self._subscription = await self._jet.client.subscribe(inbox, cb=hear)
        self._heard_at_s = asyncio.get_running_loop().time()
        begins = {"deliver_policy": "by_start_sequence", "opt_start_seq": self._seen + 1}
        config = begins | {
            "ack_policy": "none",
            "deliver_subject": inbox,
            "filter_subject": EVERY_LOG,
            "headers_only": True,
            "mem_storage": True,
            "num_replicas": 1,
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_S * _NS_PER_S),
            "inactive_threshold": _LEFT_NS,
        }
        made = await self._jet.asked(f"$JS.API.CONSUMER.CREATE.{STREAM}", {"stream_name": STREAM, "config": config})
        if "error" in made:
            raise unreachable(self._jet.address, f"no consumer: {made['error'].get('description')}")

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            if not self._is_paused and loop.time() - self._heard_at_s > SILENCE_S_MAX:
                self._heard_at_s = loop.time()
                self.begin_again()

    async def _hear(self, message: Msg) -> None:
        self._heard_at_s = asyncio.get_running_loop().time()
        headers = message.headers or {}
        if headers.get("Status") == "100":
            answer_to = message.reply or headers.get("Nats-Consumer-Stalled", "")
            if answer_to:
                await self._jet.client.publish(answer_to, b"")
            return
        parts = message.reply.split(".")
        place, number = int(parts[_OF_STREAM]), int(parts[_OF_CONSUMER])
        if number != self._expected:
            self.begin_again()
            return
        self._expected += 1
        if place > self._seen:
            self._seen = place
            entry = from_header(place, message.subject, headers, int(parts[_AT_NS]) // _NS_PER_MS)
            self._entries.append(entry)
            self._unread += 1
            self._on_entry(entry)
            self._heard.set()
            if self._unread > UNREAD_MAX and not self._readers:
                await self._pause()

    async def _pause(self) -> None:
        """Hear nothing more until a reader asks, and keep nothing: this process folds no logs just now."""
        self._is_paused, self._inbox, self._unread = True, "", 0
        self._entries.clear()
        await self._leave()
        self._subscription = None
