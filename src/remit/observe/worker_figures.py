"""The figures of a worker, for Prometheus, and whether it is well, for a supervisor of processes.

Rule 1: nothing is served unless a port is asked for; then every interface of this machine answers on it.
Rule 2: looking at the figures changes nothing.
Rule 3: /health says whether the worker can do its work, so 503 while no server answers; /live says that its process goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

_READ_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """How a worker stands: its part, what it has under way, and what it did, by how it came out."""

    kind: str
    under_way: int
    done: Mapping[str, int]


def exposition(figures: WorkerFigures) -> bytes:
    """The figures as Prometheus reads them."""
    # Only workers that are asked for figures need it.
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    under_way = Gauge("remit_worker_under_way", "What a worker has under way.", ["kind"], registry=registry)
    under_way.labels(figures.kind).set(figures.under_way)
    done = Gauge("remit_worker_done", "What a worker has done since it began.", ["kind", "came"], registry=registry)
    for came, count in figures.done.items():
        done.labels(figures.kind, came).set(count)
    return generate_latest(registry)


async def _answer(
    path: bytes, figures: Callable[[], WorkerFigures], is_ready: Callable[[], Awaitable[bool]]
) -> tuple[bytes, bytes]:
    """The status and the body for what is asked."""
    if path == b"/metrics":
        return b"200 OK", exposition(figures())
    if path == b"/live":
        return b"200 OK", b"ok\n"
    if path == b"/health":
        return (b"200 OK", b"ok\n") if await is_ready() else (b"503 Service Unavailable", b"no server answers\n")
    return b"404 Not Found", b"not found\n"


@asynccontextmanager
async def serve_figures(
    port: int, figures: Callable[[], WorkerFigures], is_ready: Callable[[], Awaitable[bool]]
) -> AsyncIterator[None]:
    """Answer /metrics, /health and /live on a port while this lasts; nothing with port 0."""
    if not port:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_READ_S_MAX):
                line = (await reader.readline()).split()
            path = line[1] if len(line) > 1 else b""
            status, body = await _answer(path, figures, is_ready)
            writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n" % status)
            writer.write(b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
            await writer.drain()
        except (TimeoutError, ConnectionError, ValueError):
            return  # The client has left, or asked nothing.
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", port)  # noqa: S104  # watched from other machines
    async with server:
        yield
