"""A small HTTP server on this machine that speaks chat completions, and misbehaves as it is told.

It is no double of our own code: engines reach it through real sockets, and it sees when one of them hangs up.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

# Longer than any test waits for something that does happen.
PATIENCE_S = 10.0


@dataclass
class Call:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def answers(self) -> int:
        """How often the model has spoken in the conversation."""
        return sum(message["role"] == "assistant" for message in self.body["messages"])

    @property
    def last(self) -> str:
        return str(self.body["messages"][-1]["content"])


class Peer:
    """The end of a connection that the server holds."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def status(self, code: int, body: Any = "", **headers: str) -> None:
        """A whole response: JSON unless the body is a text."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"content_type": "text/html" if isinstance(body, str) else "application/json", **headers}
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        head = "\r\n".join([f"HTTP/1.1 {code} Status", *lines, f"content-length: {len(data)}", "", ""])
        await self.send(head.encode() + data)

    async def begin(self, content_type: str = "text/event-stream") -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        await self.send(head.encode())

    async def raw(self, data: bytes) -> None:
        """Bytes of the body, as one chunk."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, value: Any) -> None:
        await self.raw(b"data: " + json.dumps(value).encode() + b"\n\n")

    async def delta(self, delta: dict[str, Any], reason: str | None = None) -> None:
        await self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    async def usage(self, prompt: int, completion: int, **more: Any) -> None:
        figures = {"prompt_tokens": prompt, "completion_tokens": completion, **more}
        await self.event({"choices": [], "usage": figures})

    async def done(self) -> None:
        await self.raw(b"data: [DONE]\n\n")
        await self.send(b"0\r\n\r\n")

    async def end(self) -> None:
        """The end of the body without a word that it is one."""
        await self.send(b"0\r\n\r\n")

    async def says(self, *pieces: str, reason: str = "stop") -> None:
        """A whole answer in pieces of a token each."""
        await self.begin()
        for piece in pieces:
            await self.delta({"content": piece})
        await self.delta({}, reason)
        await self.usage(7, len(pieces))
        await self.done()

    def drop(self) -> None:
        """Hang up in the middle of a word."""
        self._writer.transport.abort()

    async def wait_for_hanging_up(self) -> bool:
        """Whether the other side hangs up within the patience of a test."""
        with suppress(ConnectionError, TimeoutError):
            return await asyncio.wait_for(self._reader.read(), PATIENCE_S) == b""
        return False


Play = Callable[[Call, Peer], Awaitable[None]]


@dataclass
class ChatServer:
    """Plays one situation to every caller, and keeps what it was sent."""

    play: Play
    calls: list[Call] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # A client that hangs up, or speaks another language, is no fault of this server.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                call = await read_call(reader)
                self.calls.append(call)
                await self.play(call, Peer(reader, writer))
        finally:
            writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def read_call(reader: asyncio.StreamReader) -> Call:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    lines = [line.partition(": ") for line in head[1:] if line]
    headers = {name.lower(): value for name, _, value in lines}
    body = json.loads(await reader.readexactly(int(headers["content-length"])))
    return Call(head[0].split(" ")[1], headers, body)


@asynccontextmanager
async def serving(play: Play) -> AsyncIterator[ChatServer]:
    """A server in this loop."""
    chat = ChatServer(play)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(chat.answer(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    chat.port = server.sockets[0].getsockname()[1]
    try:
        yield chat
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


@contextmanager
def served(play: Play) -> Iterator[ChatServer]:
    """A server in a thread of its own, for callers that have no loop or another process."""
    ready: list[ChatServer] = []
    is_up, loop_of = threading.Event(), []
    over = asyncio.Event()

    async def serve() -> None:
        async with serving(play) as chat:
            ready.append(chat)
            loop_of.append(asyncio.get_running_loop())
            is_up.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert is_up.wait(PATIENCE_S), "the server did not come up"
    try:
        yield ready[0]
    finally:
        loop_of[0].call_soon_threadsafe(over.set)
        thread.join(PATIENCE_S)


async def free_port() -> int:
    """A port at which no server answers."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port
