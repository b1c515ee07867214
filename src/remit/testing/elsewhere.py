"""Errands that another process performs from their bytes, and that process killed at a chosen moment.

Rule 1: the performer has the bytes of an errand and a kit made there; it asks here for long texts and whether a call may begin.
Rule 2: a death that was ordered and never came is an error: a test that passed without it would have tried nothing.
Rule 3: of a process that was killed, the run learns what it would learn of a worker that died: what changes nothing is performed
        again by another one, and what may have changed something was certainly not done, or is in doubt.
"""

import asyncio
import json
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.record import BlobRef
from remit.core.run.request_checks import REQUEST_MALFORMED
from remit.orchestrate.executors.errands import Errand, decode_report, encode_errand, packed
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facade import System
from remit.orchestrate.loop.claims import PerformerLost
from remit.orchestrate.setup.kit import Kit

PERFORMER_NOT_KILLED = "PERFORMER_NOT_KILLED"

# Starts the program of a performer with pipes to its input and output.
Start = Callable[[list[str]], "subprocess.Popen[str]"]


class KillAt(StrEnum):
    """Where a performer is with an errand, and may be killed.

    It has it and has not looked at it; was allowed to make a call that changes something; is about to act; has acted;
    has a report.
    """

    RECEIVED = "received"
    CLAIMED = "claimed"
    ACTING = "acting"
    ACTED = "acted"
    DONE = "done"


class Channel:
    """The two ends of a performer's pipes: a message a line, and a line in answer to each."""

    def __init__(self, source: IO[str], target: IO[str]) -> None:
        self._source, self._target = source, target

    def say(self, message: object) -> Any:
        """Say something, and give the answer; raises OSError where the other end is gone."""
        self._target.write(json.dumps(message) + "\n")
        self._target.flush()
        answer = self.hear()
        if answer is None:
            raise BrokenPipeError("the other end is gone")
        return answer

    def hear(self) -> Any:
        """What comes next; None where the other end is gone."""
        line = self._source.readline()
        return json.loads(line) if line else None


def _started(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program


class Elsewhere:
    """Has every errand of a system performed by another process: `with Elsewhere(system, kit="module:function") as away`.

    The process calls the function for the kit. Without one the kit is made again from the sources that the manifest of the run
    names, which are read from the store in `home`. With `dies_at`, it is killed at that moment over the first errand of each
    kind, or of the kind or the tool `over` alone; a block that ends without such a death raises PERFORMER_NOT_KILLED.
    `performed` and `killed` are the kinds of errands, in order.
    """

    def __init__(
        self,
        system: System | None,
        *,
        kit: str = "",
        home: Path | str = "",
        dies_at: KillAt | str = "",
        over: str = "",
        start: Start = _started,
    ) -> None:
        self.performed: list[str] = []
        self.killed: list[str] = []
        self._performers = None if system is None else system._performers  # noqa: SLF001 - what performs is no verb of a system
        self._command = [sys.executable, "-m", "remit.testing.performer", kit, str(home)]
        if dies_at and dies_at not in list(KillAt):
            message = f"dies_at={clipped(dies_at)} is no moment; use one of {', '.join(KillAt)}"
            raise RequestRejected(REQUEST_MALFORMED, message, {"field": "dies_at"})
        self._dies_at, self._over = dies_at, over
        self._start = start
        self._process: subprocess.Popen[str] | None = None
        self._turn = asyncio.Lock()

    def __enter__(self) -> "Elsewhere":
        if self._performers is not None:
            self._performers.perform = self.performing(self._performers)  # type: ignore[method-assign,assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._performers is not None:
            del self._performers.perform
        self.close()
        if self._dies_at and not self.killed and error is None:
            seen = ", ".join(dict.fromkeys(self.performed)) or "no errand"
            message = (
                f"no process was killed: dies_at={str(self._dies_at)!r} was not reached over {self._over or 'any errand'!r}, "
                f"and {seen} was performed; name a kind or a tool that comes to this moment, so that the test tries it"
            )
            raise RequestRejected(PERFORMER_NOT_KILLED, message)

    def performing(self, performers: Performers) -> Callable[[Errand, Kit], Coroutine[Any, Any, Report]]:
        """What performs in the place of these performers."""

        async def perform(errand: Errand, _: Kit) -> Report:
            return await self.perform(errand, performers.resources)

        return perform

    async def perform(self, errand: Errand, resources: ProcessResources) -> Report:
        """Carry an errand there as bytes, and its report back; raises PerformerLost where that process is gone."""
        async with self._turn:
            self.note(type(errand).__name__)
            return await asyncio.to_thread(self._carried, errand, resources, asyncio.get_running_loop())

    def note(self, kind: str) -> None:
        """Remember an errand that was sent."""
        self.performed.append(kind)

    def is_to_die(self, kind: str, tool: str) -> bool:
        """Whether a performer that is at the moment is killed over an errand of this kind; it is, once."""
        if kind in self.killed or self._over not in ("", kind, tool):
            return False
        self.killed.append(kind)
        return True

    def _carried(self, errand: Errand, resources: ProcessResources, loop: asyncio.AbstractEventLoop) -> Report:
        light, texts = packed(errand)
        if self._process is None:
            self._process = self._start(self._command)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        channel = Channel(self._process.stdout, self._process.stdin)
        kind, tool = type(errand).__name__, getattr(errand.command, "tool", "")
        message: object = {"errand": _text(encode_errand(light)), "texts": [_text(data) for _, data in texts]}
        try:
            while "report" not in (said := channel.say(message)):
                if said.get("at") == self._dies_at and self.is_to_die(kind, tool):
                    raise BrokenPipeError("it is killed here")
                message = self._answer(said, resources, loop)
        except OSError as gone:
            self.close()
            raise PerformerLost from gone
        return decode_report(b64decode(said["report"]))

    def _answer(self, said: dict[str, Any], resources: ProcessResources, loop: asyncio.AbstractEventLoop) -> object:
        """What a performer is told that asks something, or says where it is."""
        if "claim" in said:
            return asyncio.run_coroutine_threadsafe(_claimed(resources, *said["claim"]), loop).result()
        if "text" in said:
            digest, size_bytes = said["text"]
            wanted = BlobRef(bytes.fromhex(digest), size_bytes)
            return asyncio.run_coroutine_threadsafe(_fetched(resources, wanted), loop).result()
        return "go on"

    def close(self) -> None:
        """Let the other process go."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


async def _claimed(resources: ProcessResources, run_id: str, command_id: str) -> bool:
    return await resources.claim(run_id, command_id)


async def _fetched(resources: ProcessResources, wanted: BlobRef) -> str:
    return await resources.text(wanted)


def _text(data: bytes) -> str:
    return b64encode(data).decode()
