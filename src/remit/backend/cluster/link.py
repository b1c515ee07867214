"""A connection in a thread of its own, so that any event loop may use it and code that blocks one ends no lease.

Rule 1: whatever speaks to the server runs in the loop of the thread; callers wait for it in theirs.
Rule 2: a write that was begun is finished, also when its caller stops waiting, so that no batch is left open.
"""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from nats.errors import Error as NatsError

from remit.backend.cluster.connection import connect, prepare, shown
from remit.backend.cluster.jetstream import JetMessage, JetStream, Overtaken
from remit.backend.cluster.layout import ALIVE, ENTRY, HEARTBEAT, log_subject
from remit.backend.cluster.tail import Tail, in_header
from remit.backend.folded.log import LogEntry
from remit.core.failure import RemitError
from remit.core.journal.signing import Signer
from remit.core.journal.storage import START, AppendConflict, Place, StoreUnusable
from remit.core.task_end import end_tasks

T = TypeVar("T")

# How long a process may be silent before its runs go to others: longer than a server takes to follow a leader that was killed.
LEASE_MS = 10_000
# Three heartbeats may be lost.
_HEARTBEATS = 4
TTL = "Nats-TTL"


class Link:
    """One process on the cluster."""

    def __init__(self, address: str, *, lease_ms: int = LEASE_MS, signer: Callable[[], Signer] | None = None) -> None:
        self.address = shown(address)
        self.worker = secrets.token_hex(8)
        self.lease_ms = lease_ms
        # Called in the thread for every entry that arrives.
        self.on_entry: Callable[[LogEntry], None] = lambda _: None
        self.replicas = 1
        self.is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="remit-nats", daemon=True)
        self._thread.start()
        self._beating: asyncio.Task[None] | None = None
        try:
            self.call_now(self._open(address, signer))
        except BaseException:
            self._end()
            raise

    async def _open(self, address: str, signer: Callable[[], Signer] | None) -> None:
        name = f"remit {self.worker}"
        client = await connect(address, name=name, on_reconnected=self._reconnected, signer=signer)
        self.jet = JetStream(client, self.address)
        self._tail = Tail(self.jet, self._heard)
        try:
            self.replicas = await prepare(client, address)
            await self._tail.open()
            await self._beat()
        except BaseException:
            await self._tail.close()
            await client.close()
            raise
        self._beating = asyncio.create_task(self._keep_beating())

    def _reconnected(self) -> None:
        self._tail.begin_again()

    def _heard(self, found: LogEntry) -> None:
        self.on_entry(found)

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """What some work in the loop of the connection comes to."""
        return await asyncio.wrap_future(self._begun(work))

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """The same for work that is finished whether or not its caller waits."""
        return await asyncio.shield(asyncio.wrap_future(self._begun(work)))

    def call_now(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """The same for callers without a loop."""
        return self._begun(work).result(timeout_s)

    def ring(self, subject: str, word: bytes) -> None:
        """Send a word that is not kept, without waiting."""
        if not self.is_closed:
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._publish(subject, word)))

    async def _publish(self, subject: str, word: bytes) -> None:
        with contextlib.suppress(NatsError):  # A ring may be lost.
            await self.jet.client.publish(subject, word)

    def _begun(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        if self.is_closed:
            work.close()
            raise StoreUnusable("STORE_CLOSED", f"the store at {self.address} was closed; open it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    # Logs.

    async def append(self, name: str, data: bytes, after: Place) -> Place:
        """Write the next entry of a log that stands at `after`, or raise AppendConflict when another was faster."""
        return await self.write(entry(name, data, after=after))

    async def write(self, *messages: JetMessage) -> Place:
        """Write entries together or not at all; gives the place of the first. AppendConflict says that another was faster."""
        try:
            return await self.finish(self.jet.write(*messages))
        except Overtaken as error:
            raise AppendConflict(error.subject) from None

    async def write_and_hear(
        self, after: Place, *messages: JetMessage, unheard: int = 0
    ) -> tuple[Place, list[LogEntry]]:
        """The same, with the entries of all logs after a place up to the last of these; `unheard` of them are of no log."""
        try:
            return await self.finish(self._write_and_hear(after, messages, unheard))
        except Overtaken as error:
            raise AppendConflict(error.subject) from None

    async def _write_and_hear(
        self, after: Place, messages: Sequence[JetMessage], unheard: int
    ) -> tuple[Place, list[LogEntry]]:
        place = await self.jet.write(*messages)
        return place, await self._tail.news(after, place + len(messages) - unheard - 1)

    async def news(self, after: Place, up_to: Place = 0) -> list[LogEntry]:
        """The entries of all logs after a place, oldest first."""
        return await self.call(self._tail.news(after, up_to))

    # Liveness.

    async def is_alive(self, worker: str) -> bool:
        """Whether a process has been heard of within the time of its leases."""
        return await self.call(self._is_alive(worker))

    async def _is_alive(self, worker: str) -> bool:
        return await self.jet.last(HEARTBEAT + worker, ALIVE) is not None

    async def _beat(self) -> None:
        ttl = {TTL: f"{max(1, round(self.lease_ms / 1000))}s"}
        await self.jet.write(JetMessage(HEARTBEAT + self.worker, headers=ttl))

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self.lease_ms / _HEARTBEATS / 1000)
            with contextlib.suppress(RemitError):  # The next one may come through.
                await self._beat()

    def stop_beating(self) -> None:
        """Fall silent, as a process that was stopped does; its leases end with their time."""
        if self._beating is not None:
            self._loop.call_soon_threadsafe(self._beating.cancel)

    async def close(self) -> None:
        """Leave the cluster; runs that are held are free at once."""
        await asyncio.to_thread(self.let_go)

    def let_go(self) -> None:
        """The same, for callers without a loop."""
        if self.is_closed:
            return
        closing = self._begun(self._close())
        self.is_closed = True
        try:
            closing.result()
        finally:
            self._end()

    async def _close(self) -> None:
        await end_tasks((self._beating,))
        await self._tail.close()
        if self.jet.client.is_connected:
            await self.jet.purge(HEARTBEAT + self.worker, stream=ALIVE)
        await self.jet.client.close()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def entry(name: str, data: bytes, *, after: Place | None, bulk: bytes = b"") -> JetMessage:
    """An entry of a log as it is sent; `bulk` is what is too long to be heard by everybody."""
    expected = None if after is None else 0 if after == START else after
    return JetMessage(log_subject(name), bulk, {ENTRY: in_header(name, data)}, expected)
