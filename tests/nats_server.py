"""One NATS server for all tests of a process, and stores on it that begin empty."""

import asyncio
import atexit
import shutil
import socket
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from remit.backend.clock import wall_clock_ms
from remit.backend.cluster.layout import ALIVE, KEYS_BUCKET, TEXTS
from remit.backend.cluster.server.connection import connect, server_answer
from remit.backend.cluster.server.link import LEASE_MS, Link
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


def fall_silent(link: Link) -> None:
    """Send no heartbeat any more, as a process that was stopped does; its leases end with their time."""
    if link._beating is not None:
        link._loop.call_soon_threadsafe(link._beating.cancel)
