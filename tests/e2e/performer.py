"""A process that performs errands and knows nothing else of their runs.

    python -m tests.e2e.performer HOME [MODULE]

A line of its input holds an errand and the long texts that it names, a line of its output the report: bytes, in base64.
Between the two it asks whether a call may begin, and says where it is, so that it can be killed there.
Its kits are made again from the sources that the manifests name; of a module, `kit()` is taken instead.
"""

import asyncio
import importlib
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from remit.backend.embedded.store import EmbeddedStore
from remit.core.record import Text, digest_of
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.inference.engine import Engine, StreamHandler
from remit.observe.history import fold, read_history
from remit.orchestrate.executors.errands import Errand, decode_errand, encode_report, unpacked
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.setup.reloaded_kit import kit_again
from tests.e2e.moments import ACTING, CLAIMED, DONE, RECEIVED, reach, say


async def serve(home: Path, module: str) -> None:
    """Perform one errand a line."""
    kept: dict[bytes, bytes] = {}

    async def text(text: Text) -> str:
        reach(ACTING)
        if isinstance(text, str):
            return text
        if text.digest in kept:
            return kept[text.digest].decode()
        store = EmbeddedStore.open_to_read(home)
        try:
            return (await store.blobs.get(text.digest)).decode()
        finally:
            await store.close()

    performers = Performers(ProcessResources(text, claim=claim))
    line = sys.stdin.readline()
    while line:
        reach(RECEIVED)
        told = json.loads(line)
        kept |= {digest_of(data): data for data in map(b64decode, told["texts"])}
        errand = await unpacked(decode_errand(b64decode(told["errand"])), text)
        report = await performers.perform(errand, await kit_for(errand, home, module))
        reach(DONE)
        line = say(report=b64encode(encode_report(report)).decode())


async def claim(run_id: str, command_id: str) -> bool:
    """Ask whoever sent a call whether it may begin."""
    may_begin: bool = json.loads(say(claim=[run_id, command_id]))
    if may_begin:
        reach(CLAIMED)
    return may_begin


class Mortal:
    """A model that can be killed while it answers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer of the engine, if anybody lives to hear it."""
        reach(ACTING)
        return await self._engine.infer(request, on_chunk)

    def model_info(self) -> ModelInfo:
        """What the engine says of itself."""
        return self._engine.model_info()


async def kit_for(errand: Errand, home: Path, module: str) -> Kit:
    """What the run of an errand works with, made here."""
    made: Kit = importlib.import_module(module).kit() if module else await kit_of_run(errand, home)
    engines: Mapping[str, Engine] = {name: Mortal(engine) for name, engine in made.engines.items()}
    return replace(made, engines=engines)


async def kit_of_run(errand: Errand, home: Path) -> Kit:
    """The kit that the manifest of a run names."""
    store = EmbeddedStore.open_to_read(home)
    try:
        run_id = errand.sender.run_id
        return await kit_again(fold(read_history(run_id, await store.journal.read(run_id))))
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), *(sys.argv[2:] or [""])))
