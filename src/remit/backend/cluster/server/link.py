"""A connection in a thread of its own, so that any event loop may use it and code that blocks one ends no lease.

Rule 1: whatever speaks to the server runs in the loop of the thread; callers wait for it in theirs.
Rule 2: a write that was begun is finished, also when its caller stops waiting, so that no batch is left open.
"""

import asyncio
import contextlib
import logging
import secrets
import threading
from base64 import b64decode
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from nats.errors import Error as NatsError

from remit.backend.cluster.keys.believed_keys import Keyring
from remit.backend.cluster.keys.signet import Signet
from remit.backend.cluster.layout import (
    ALIVE,
    ANY,
    ASIDE,
    CODE,
    ENTRY,
    HEARTBEAT,
    KEYS,
    KEYS_STREAM,
    LOGS,
    REASON,
    SUBJECT,
    log_subject,
)
from remit.backend.cluster.logs.entries import GONE
from remit.backend.cluster.logs.tail import HeardEntry, Tail, in_header
from remit.backend.cluster.server.address import LEASE_MS
from remit.backend.cluster.server.connection import STORE_SHUT_OUT, STREAM_NOT_FOUND, connect, prepare_streams, shown
from remit.backend.cluster.server.jetstream import NO_MESSAGE, JetMessage, JetStream, Overtaken
from remit.core.failure import RemitError
from remit.core.journal.signing import Signer
from remit.core.journal.storage import START, AppendConflict, Place, StoreUnusable
from remit.core.task_end import end_tasks
from remit.wire.credentials import CAPABILITY_EXPIRED, CAPABILITY_LACKING

T = TypeVar("T")

# How often a process renews its leases within their time (address.py): three heartbeats may be lost.
_HEARTBEATS = 4
# How a server refuses a key, and after how many refusals in a row the cause is not that it reloads its configuration.
_REFUSED, REFUSALS_MAX = "authorization violation", 10
# How many messages a process puts aside at most, and for how long their letters are kept.
SUBJECT_CHARS_MAX = 500
ASIDE_MAX, ASIDE_KEPT_S = 1_000, 30 * 24 * 3600
TTL = "Nats-TTL"
# How far the clocks of two processes may differ. So long, at most, a copy of a heartbeat keeps the runs of one that is gone.
CLOCKS_DIFFER_MS = 300_000

# How much is shown of what a key was admitted for.
_MAY_CHARS_MAX = 200

# How long a word of a ring is heard, by clocks that differ.
WORD_MS = CLOCKS_DIFFER_MS

# Twice within the time in which a revocation is promised to count.
LOOK_S = 1.0
# What a server answers where nothing was ever said of keys, or nothing more was.
_NOTHING = (STREAM_NOT_FOUND, NO_MESSAGE)


_log = logging.getLogger(__name__)


class Link:
    """One process on the cluster."""

    def __init__(
        self, address: str, signet: Signet, *, lease_ms: int = LEASE_MS, signer: Callable[[], Signer] | None = None
    ) -> None:
        self.address = shown(address)
        self.signet = signet
        self.worker = secrets.token_hex(8)
        self.lease_ms = lease_ms
        # Called in the thread for every entry that arrives.
        self.on_entry: Callable[[HeardEntry], None] = lambda _: None
        # Behind which place what is written under a subject stands at least: where its run was removed, that word's.
        self.floors: Mapping[str, Place] = {}
        self.replicas = 1
        self.is_closed = False
        self._is_introduced = False
        self._refusals = 0
        self._aside: set[Place | str] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="remit-nats", daemon=True)
        self._thread.start()
        self._beating: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        try:
            self.call_now(self._open(address, signer))
        except BaseException:
            self._end()
            raise

    async def _open(self, address: str, signer: Callable[[], Signer] | None) -> None:
        name = f"remit {self.worker}"
        client = await connect(
            address, name=name, on_reconnected=self._reconnected, on_failed=self._failed, signer=signer
        )
        self.jet = JetStream(client, self.address)
        self._tail, self._keys = Tail(self.jet, self._heard), KeysWatch(self.jet, self.signet.keyring)
        try:
            self.replicas = await prepare_streams(client, address)
            await self._keys.open()
            await self._tail.open()
            await self._beat()
        except BaseException:
            await self._keys.close()
            await self._tail.close()
            await client.close()
            raise
        self._beating = asyncio.create_task(self._keep_beating())

    def _reconnected(self) -> None:
        self._refusals = 0
        self._tail.begin_again()

    def _failed(self, error: Exception) -> None:
        """Count how often the servers have refused the key of this process in a row."""
        self._refusals = self._refusals + 1 if _REFUSED in str(error).lower() else 0

    def expect_admitted(self) -> None:
        """Raise StoreUnusable where this process has been shut out: its key was revoked, or the servers let it in no more."""
        if why := self.signet.own_objection():
            raise lacking_right(self.signet, why)
        if self._refusals >= REFUSALS_MAX or (self.jet.client.is_closed and not self.is_closed):
            message = (
                f"the servers at {self.address} let the key of this process in no more; an operator admits it again"
            )
            raise StoreUnusable(STORE_SHUT_OUT, message, {"address": self.address})

    def expect_may(self, subject: str) -> None:
        """Raise StoreUnusable where no other process would believe what this one writes under a subject: so it writes nothing."""
        if why := self.signet.own_lack(subject):
            raise lacking_right(self.signet, why)

    def expect_may_drive(self) -> None:
        """Raise StoreUnusable where this process may say nothing of runs: then it does nothing with them."""
        self.expect_may(LOGS + ANY)

    def expect_may_remove(self) -> None:
        """Raise StoreUnusable where this process may not say that anything was removed: then it removes nothing."""
        self.expect_may(log_subject(GONE + ANY))

    def _heard(self, found: HeardEntry) -> None:
        self.on_entry(found)

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """What some work in the loop of the connection comes to."""
        return await asyncio.wrap_future(self._begun(work))

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work of the link's own loop that is finished whether or not its caller waits."""
        return await asyncio.shield(asyncio.wrap_future(self._begun(work)))

    def call_now(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work of the link's own loop to its end, for callers without a loop."""
        return self._begun(work).result()

    def ring(self, subject: str, word: bytes, *, is_signed: bool = False) -> None:
        """Send a word that is not kept, without waiting."""
        if not self.is_closed:
            headers = self.signet.signed(subject, word, self.signet.until(WORD_MS)) if is_signed else None
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._publish(subject, word, headers)))

    async def _publish(self, subject: str, word: bytes, headers: dict[str, str] | None) -> None:
        with contextlib.suppress(NatsError):  # A ring may be lost.
            await self.jet.client.publish(subject, word, headers=headers)

    def is_word(self, subject: str, word: bytes, headers: Mapping[str, str]) -> bool:
        """Whether one who may say what becomes of runs has rung with a word, just now."""
        return not self.signet.objection(subject, word, headers, may=LOGS + ANY)

    def _begun(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        if self.is_closed:
            work.close()
            raise StoreUnusable("STORE_CLOSED", f"the store at {self.address} was closed; open it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def append(self, name: str, data: bytes, after: Place) -> Place:
        """Write the next entry of a log that stands at `after`, or raise AppendConflict when another was faster."""
        return await self.write(entry(name, data, after=after))

    async def write(self, *messages: JetMessage) -> Place:
        """Write entries together or not at all; gives the place of the first. AppendConflict says that another was faster."""
        try:
            return await self.finish(self._write(self._signed(messages)))
        except Overtaken as error:
            raise AppendConflict(error.subject) from None

    async def _write(self, messages: Sequence[JetMessage]) -> Place:
        if not self._is_introduced:
            # Before it says anything, others must be able to tell that it lives.
            await self._beat()
        return await self.jet.write(*messages)

    async def write_and_hear(
        self, after: Place, *messages: JetMessage, unheard: int = 0
    ) -> tuple[Place, list[HeardEntry]]:
        """Write messages; gives the entries of all logs after a place up to the last; `unheard` messages are of no log."""
        try:
            return await self.finish(self._write_and_hear(after, self._signed(messages), unheard))
        except Overtaken as error:
            raise AppendConflict(error.subject) from None

    async def _write_and_hear(
        self, after: Place, messages: Sequence[JetMessage], unheard: int
    ) -> tuple[Place, list[HeardEntry]]:
        place = await self._write(messages)
        return place, await self._tail.news(after, place + len(messages) - unheard - 1)

    def _signed(self, messages: Sequence[JetMessage]) -> list[JetMessage]:
        """Messages with the signature of this process on those that are entries of logs."""
        return [self._signed_entry(one) if one.subject.startswith(LOGS) else one for one in messages]

    def _signed_entry(self, message: JetMessage) -> JetMessage:
        assert message.after is not None, "an entry of a log stands behind the last one that is known"
        self.expect_may(message.subject)
        since = max(message.after, self.floors.get(message.subject, 0))
        headers = self.signet.signed_entry(message.subject, message.data, message.headers, since)
        return replace(message, headers=headers)

    def put_aside(self, place: Place | str, subject: str, code: str, why: str) -> None:
        """Keep a dead letter, once for all processes, about a message that is not believed or cannot be read.

        `place` is where it stands, or the name of what the letter is about.
        """
        if self.is_closed or place in self._aside or len(self._aside) >= ASIDE_MAX:
            return
        self._aside.add(place)
        headers = {CODE: code, REASON: why, SUBJECT: subject[:SUBJECT_CHARS_MAX], TTL: f"{ASIDE_KEPT_S}s"}
        message = JetMessage(f"{ASIDE}{place}", b"", headers, 0)
        self._loop.call_soon_threadsafe(lambda: self._keep_task(self._keep_aside(message)))

    def _keep_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep_aside(self, message: JetMessage) -> None:
        with contextlib.suppress(Overtaken, RemitError, NatsError):  # Another process has put it aside.
            await self.jet.write(message)

    async def news(self, after: Place, up_to: Place = 0) -> list[HeardEntry]:
        """The entries of all logs after a place, oldest first."""
        return await self.call(self._tail.news(after, up_to))

    async def is_alive(self, worker: str) -> bool:
        """Whether a process has been heard of within the time of its leases."""
        return await self.call(self._is_alive(worker))

    async def _is_alive(self, worker: str) -> bool:
        stored = await self.jet.last(HEARTBEAT + worker, ALIVE)
        if stored is None:
            return False
        return not self.signet.objection(stored.subject, stored.data, stored.headers, may=LOGS + ANY)

    async def _beat(self) -> None:
        subject, headers = HEARTBEAT + self.worker, {TTL: f"{max(1, round(self.lease_ms / 1000))}s"}
        # A process without a key has made none yet, and so holds no run.
        if self.signet.key.is_made:
            headers = self.signet.signed(subject, b"", headers | self.signet.until(self.lease_ms + CLOCKS_DIFFER_MS))
            self._is_introduced = True
        await self.jet.write(JetMessage(subject, headers=headers))

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self.lease_ms / _HEARTBEATS / 1000)
            with contextlib.suppress(RemitError):  # The next one may come through.
                await self._beat()

    async def close(self) -> None:
        """Leave the cluster; runs that are held are free at once."""
        await asyncio.to_thread(self.let_go)

    def let_go(self) -> None:
        """Leave the cluster, for callers without a loop."""
        if self.is_closed:
            return
        closing = self._begun(self._close())
        self.is_closed = True
        try:
            closing.result()
        finally:
            self._end()

    async def _close(self) -> None:
        await end_tasks((self._beating, *self._tasks))
        await self._keys.close()
        await self._tail.close()
        # Who may drive nothing holds nothing that its heartbeat would keep from others, and may purge nothing either.
        if self.jet.client.is_connected and not self.signet.own_lack(LOGS + ANY):
            await self.jet.purge(HEARTBEAT + self.worker, stream=ALIVE)
        await self.jet.client.close()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def lacking_right(signet: Signet, code: str) -> StoreUnusable:
    """Why a process is refused what it wanted to do with its key."""
    own = signet.keyring.own
    if code == CAPABILITY_LACKING:
        may = " ".join(signet.keyring.admitted_for(own))[:_MAY_CHARS_MAX]
        message = (
            f"the key of this process, {own}, was admitted for {may} alone, so no other process would believe this and nothing was done; "
            "do it with the key of the deployment, or have this one admitted for it with `remit keys admit`"
        )
    elif code == CAPABILITY_EXPIRED:
        message = f"what the key of this process, {own}, was admitted for has expired; have it admitted anew"
    else:
        message = f"the key of this process, {own}, was revoked; it is given nothing"
    return StoreUnusable(code, message, {"key": own})


class KeysWatch:
    """Tells a keyring of every statement and revocation. It lives in the loop of its connection."""

    def __init__(self, jet: JetStream, keyring: Keyring) -> None:
        self._jet, self._keyring = jet, keyring
        self._last = 0
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Know what was said by now, and from here on."""
        await self.catch_up()
        self._looking = asyncio.create_task(self._keep_looking())

    async def close(self) -> None:
        """Hear nothing more."""
        await end_tasks((self._looking,))

    async def catch_up(self) -> None:
        """Hear what was said since the last look."""
        while True:
            question = {"seq": self._last + 1, "next_by_subj": KEYS + ">"}
            found = await self._jet.asked(f"$JS.API.STREAM.MSG.GET.{KEYS_STREAM}", question)
            if "message" not in found:
                if found.get("error", {}).get("err_code") not in _NOTHING:
                    _log.warning("it cannot be read which keys were revoked: %s", found.get("error"))
                return
            message = found["message"]
            self._last = int(message["seq"])
            self._keyring.hear(b64decode(message.get("data", "")))

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.catch_up()
            except (RemitError, NatsError, OSError) as error:
                _log.warning("it cannot be read just now which keys were revoked: %s", error)


def entry(name: str, data: bytes, *, after: Place, bulk: bytes = b"") -> JetMessage:
    """An entry of a log as it is sent; `bulk` is what is too long to be heard by everybody."""
    return JetMessage(log_subject(name), bulk, {ENTRY: in_header(name, data)}, 0 if after == START else after)
