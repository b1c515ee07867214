"""One NATS server for all tests of a process, and stores on it that begin empty."""

import asyncio
import atexit
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from remit.backend.clock import wall_clock_ms
from remit.backend.cluster.layout import ALIVE, KEYS_BUCKET, TEXTS
from remit.backend.cluster.server.address import LEASE_MS
from remit.backend.cluster.server.connection import connect, server_answer
from remit.backend.cluster.server.link import Link
from remit.backend.cluster.server.nats_server import NatsServer
from remit.backend.cluster.store import ClusterStore
from remit.wire.subjects import LOOPS_BUCKET, STREAM, TRAJECTORIES_BUCKET


@cache
def server() -> NatsServer:
    """The server, started by the first who needs it; nothing is synced, since nothing is kept."""
    folder = Path(tempfile.mkdtemp(prefix="remit-nats-"))
    started = NatsServer(folder, sync="1m")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(started.stop)
    return started


def clear() -> str:
    """Remove everything from the server; gives its address."""
    address = server().address

    async def cleared() -> None:
        client = await connect(address, name="test")
        for stream in (STREAM, TEXTS, ALIVE):
            await server_answer(client, f"$JS.API.STREAM.PURGE.{stream}")
        for name in (LOOPS_BUCKET, TRAJECTORIES_BUCKET, KEYS_BUCKET, "AGENT_CURSORS"):
            await server_answer(client, f"$JS.API.STREAM.DELETE.KV_{name}")
        await client.close()

    asyncio.run(cleared())
    return address


def opened(home: Path, now_ms: Callable[[], int] = wall_clock_ms, *, lease_ms: int = LEASE_MS) -> ClusterStore:
    """The store as one more process has it open."""
    return ClusterStore.open(server().address, home, now_ms=now_ms, lease_ms=lease_ms)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on just now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def three_nodes(folder: Path, sync: str = "1m", *, advertise: bool = True) -> list[NatsServer]:
    """A cluster of three, each with a folder of its own; it needs some seconds until it can lead.

    Without `advertise`, who is told of one node does not learn of the others.
    """
    told = "" if advertise else ", no_advertise: true"
    routes = free_ports(3)
    others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    return [
        NatsServer(
            folder / f"node{number}",
            sync=sync,
            port=port,
            more=f'server_name: node{number}\ncluster {{ name: test, listen: "127.0.0.1:{route}", routes: [{others}]{told} }}',
        )
        for number, (route, port) in enumerate(zip(routes, free_ports(3), strict=True))
    ]


class Proxy:
    """A way to a node that can be cut: then nothing passes, and neither side is told."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.removeprefix("nats://").partition(":")
        self._port = int(port)
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._piping: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> str:
        """Listen; gives the address."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Let everybody go."""
        self._server.close()
        for task in self._piping:
            task.cancel()
        await asyncio.gather(*self._piping, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        # A transport lets its socket go in the next round of the loop.
        await asyncio.sleep(0.01)

    def cut(self, *, is_shut: bool = False) -> None:
        """Let nothing pass; who comes now is kept waiting, too, or turned away where it is shut."""
        self._is_whole.clear()
        if is_shut:
            self._server.close()

    def mend(self) -> None:
        """Let everything pass that waits, and what comes."""
        self._is_whole.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        self._writers.append(there_writer)
        for task in (
            asyncio.create_task(self._pipe(reader, there_writer)),
            asyncio.create_task(self._pipe(there_reader, writer)),
        ):
            self._piping.add(task)
            task.add_done_callback(self._piping.discard)

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                await self._is_whole.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return  # One of them has left.
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def fall_silent(link: Link) -> None:
    """Send no heartbeat any more, as a process that was stopped does; its leases end with their time."""
    if link._beating is not None:
        link._loop.call_soon_threadsafe(link._beating.cancel)
