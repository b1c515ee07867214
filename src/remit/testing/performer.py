"""A process that performs errands from their bytes, and knows nothing else of their runs.

    python -m remit.testing.performer MODULE:FUNCTION HOME

Its kits are what the function gives; where none is named, they are made again from the sources that the manifests of the runs
name, which are read from the store in the folder. It speaks with remit/testing/elsewhere.py, a message a line, and says
where it is, so that it can be killed there. Whatever its tools print goes to stderr.
"""

import asyncio
import importlib
import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from contextlib import AsyncContextDecorator, ContextDecorator
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RemitError
from remit.core.record import Text, digest_of
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.inference.engine import Engine, StreamHandler
from remit.observe.linked_turns import fold, read_history
from remit.orchestrate.executors.errands import Errand, ModelErrand, ToolErrand, decode_errand, encode_report, unpacked
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import unequipped
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.setup.reloaded_kit import kit_again
from remit.testing.elsewhere import Channel, KillAt
from remit.tool.declare.decorator import Tool
from remit.tool.registry import Registry

# Gives what the run of an errand works with.
KitFor = Callable[[Errand], Awaitable[Kit]]
# Says where a performer is.
Reach = Callable[[KillAt], None]


class PipedPerformer:
    """Performs one errand after the other."""

    def __init__(self, channel: Channel, kit_for: KitFor) -> None:
        self._channel = channel
        self._kit_for = kit_for
        self._kept: dict[bytes, bytes] = {}
        self._performers = Performers(ProcessResources(self._text, claim=self._claim))

    async def serve(self) -> None:
        """Perform an errand a line, until no more come."""
        told = self._channel.hear()
        while told is not None:
            self.reach(KillAt.RECEIVED)
            self._kept |= {digest_of(data): data for data in map(b64decode, told["texts"])}
            errand = await unpacked(decode_errand(b64decode(told["errand"])), self._text)
            try:
                kit = self._watched(await self._kit_for(errand))
            except Exception as error:  # noqa: BLE001  # whatever a kit cannot be made for, another process would meet as well
                why = f"the process that performs errands cannot make its kit: {told_error(error)}"
                told = self._reported(encode_report(unequipped(errand.command, why)))
                continue
            # Models and tools say themselves when they act.
            acts_itself = isinstance(errand, ModelErrand | ToolErrand)
            if not acts_itself:
                self.reach(KillAt.ACTING)
            report = await self._performers.perform(errand, kit)
            if not acts_itself:
                self.reach(KillAt.ACTED)
            self.reach(KillAt.DONE)
            told = self._reported(encode_report(report))

    def _reported(self, report: bytes) -> Any:
        """Give a report; what comes next is the next errand, or nothing."""
        try:
            return self._channel.say({"report": b64encode(report).decode()})
        except OSError:
            return None

    def reach(self, moment: KillAt) -> None:
        """Be killed here, or go on."""
        self._channel.say({"at": moment.value})

    async def _text(self, text: Text) -> str:
        if isinstance(text, str):
            return text
        if text.digest in self._kept:
            return self._kept[text.digest].decode()
        fetched: str = self._channel.say({"text": [text.digest.hex(), text.size_bytes]})
        return fetched

    async def _claim(self, run_id: str, command_id: str) -> bool:
        """Ask the process that sent a call whether it may begin."""
        may_begin: bool = self._channel.say({"claim": [run_id, command_id]})
        if may_begin:
            self.reach(KillAt.CLAIMED)
        return may_begin

    def _watched(self, kit: Kit) -> Kit:
        """A kit whose models and tools say when they act."""
        engines: dict[str, Engine] = {name: _Watched(engine, self.reach) for name, engine in kit.engines.items()}
        return replace(kit, engines=engines, tools=Registry(_watched(one, self.reach) for one in kit.tools))


class _Watched:
    """A model that says when it is asked, and when it has answered."""

    def __init__(self, engine: Any, reach: Reach) -> None:
        self._engine, self._reach = engine, reach

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the engine, if the process lives to give it."""
        self._reach(KillAt.ACTING)
        answer: ModelResult = await self._engine.infer(request, on_chunk)
        self._reach(KillAt.ACTED)
        return answer

    def model_info(self) -> ModelInfo:
        """What the engine says of itself."""
        info: ModelInfo = self._engine.model_info()
        return info


class _Acting(ContextDecorator):
    """Says when a function begins, and when it is over."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def __enter__(self) -> None:
        self._reach(KillAt.ACTING)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reach(KillAt.ACTED)


class _ActingLater(AsyncContextDecorator):
    """A tool of a coroutine function, which says when it acts."""

    def __init__(self, reach: Reach) -> None:
        self._acting = _Acting(reach)

    async def __aenter__(self) -> None:
        self._acting.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._acting.__exit__(kind, error, trace)


def _watched(tool: Tool, reach: Reach) -> Tool:
    """A tool that says when it acts; of one that runs in a process of its own, the process that calls it says so."""
    watched = copy(tool)
    if tool.isolate:
        watched.around = partial(_Acting, reach)
    else:
        watched.__wrapped__ = (_ActingLater if tool.is_async else _Acting)(reach)(tool.function)
    return watched


def told_error(error: Exception) -> str:
    """What is wrong, in words."""
    return f"{error.code}: {error.message}" if isinstance(error, RemitError) else f"{type(error).__name__}: {error}"


def kits(made_by: str, home: Path) -> KitFor:
    """What gives the kits of runs: a function, or what their manifests name."""

    async def made(errand: Errand) -> Kit:
        module, _, function = made_by.partition(":")
        kit: Kit = getattr(importlib.import_module(module), function or "kit")()
        return kit

    async def made_again(errand: Errand) -> Kit:
        store = EmbeddedStore.open_to_read(home)
        try:
            run_id = errand.sender.run_id
            return await kit_again(fold(read_history(run_id, await store.journal.read(run_id))))
        finally:
            await store.close()

    return made if made_by else made_again


def main() -> None:  # pragma: no cover - it is a process of its own, which tests/e2e/test_elsewhere.py starts
    """Serve the process that started this one."""
    sys.path.insert(0, str(Path.cwd()))
    # What tools print must not be taken for a message.
    channel = Channel(sys.stdin, os.fdopen(os.dup(sys.stdout.fileno()), "w"))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    made_by, home = sys.argv[1:]
    asyncio.run(PipedPerformer(channel, kits(made_by, Path(home))).serve())


if __name__ == "__main__":  # pragma: no cover - see main()
    main()
