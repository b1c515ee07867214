"""The command that guards other people's agents: one JSON object a line in, one answer a line out.

Rule 1: every line is answered before the next one is read, so that another program can ask line by line.
Rule 2: what is halted on the store is asked before every call, and what people say to a run is heard between calls.
Rule 3: when the stream ends, runs that were not ended rest in the store and can be gone on with; in memory they are gone.
"""

import asyncio
import os
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, BinaryIO

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import stdin_bytes
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK

if TYPE_CHECKING:
    from remit.orchestrate.guard.guard import Guard

STREAM_UNREADABLE = "STREAM_UNREADABLE"

# As much as a pipe holds.
_CHUNK_BYTES = 65_536


def guard(
    *,
    ndjson: Annotated[
        bool,
        Parameter(help="Speak one JSON object a line over stdin and stdout; there is no other way yet.", negative=""),
    ] = True,
    memory: Annotated[
        bool, Parameter(help="Write nothing to disk: faster, and gone with the process.", negative="")
    ] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Judge the tool calls of an agent that runs elsewhere: allow, refuse or ask."""
    stream = stdin_bytes(STREAM_UNREADABLE)

    async def talk() -> int:
        from remit.assemble import halts_of, opened_system

        if memory:
            from remit.agents.guard_in_memory import guard_in_memory

            with halts_of(common.settings()) as halts:
                await _talk(guard_in_memory(halts), stream, terminal)
        else:
            async with opened_system(common.settings()) as system:
                await _talk(system.guard(), stream, terminal)
        return EXIT_OK

    return in_loop(talk())


async def _talk(judge: "Guard", stream: BinaryIO, terminal: Terminal) -> None:
    """Answer line by line until there is no line more, or no reader of the answers."""
    try:
        async for line, is_whole in _lines(stream, judge.line_bytes_max):
            answer = await judge.line(line) if is_whole else await judge.too_long(line)
            if answer is not None:
                terminal.values(answer)
            if not terminal.is_heard:
                break
    finally:
        await judge.close()


async def _lines(stream: BinaryIO, bytes_max: int) -> AsyncIterator[tuple[bytes, bool]]:
    """The lines that say something, without their ends; of one that is too long, its beginning."""
    cut, is_over = _Lines(bytes_max), False
    loop = asyncio.get_running_loop()
    try:
        descriptor: int | None = stream.fileno()
        loop.add_reader(stream, lambda: None)
        loop.remove_reader(stream)
    except (OSError, ValueError):
        descriptor = None  # A file, or what stands for one: reading it never waits.
    while not is_over:
        data = stream.read(_CHUNK_BYTES) if descriptor is None else await _read(loop, descriptor)
        is_over = not data
        for found in cut.fed(data or b"\n"):
            yield found


async def _read(loop: asyncio.AbstractEventLoop, descriptor: int) -> bytes:
    """Wait until a pipe holds bytes and read them; empty once it is closed. Other tasks run meanwhile."""
    is_readable = loop.create_future()

    def wake() -> None:
        if not is_readable.done():
            is_readable.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await is_readable
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _CHUNK_BYTES)


class _Lines:
    """Cuts what comes in into lines, and passes over the rest of one that is too long."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held = bytearray()
        self._searched = 0
        self._is_passed_over = False

    def fed(self, data: bytes) -> list[tuple[bytes, bool]]:
        """The lines that are whole by now, and the beginning of one that has become too long."""
        found: list[tuple[bytes, bool]] = []
        self._held += data
        while (end := self._held.find(b"\n", self._searched)) >= 0:
            line = bytes(self._held[:end])
            del self._held[: end + 1]
            self._searched = 0
            if not self._is_passed_over and (said := line.removeprefix(BOM_UTF8).strip()):
                found.append((said, len(line) <= self._bytes_max))
            self._is_passed_over = False
        self._searched = len(self._held)
        if self._searched > self._bytes_max:
            if not self._is_passed_over:
                found.append((bytes(self._held), False))
            self._is_passed_over = True
            self._held.clear()
            self._searched = 0
        return found
