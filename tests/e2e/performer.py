"""A process that performs errands and knows nothing else of their runs.

    python -m tests.e2e.performer HOME [MODULE]

A line of its input holds an errand and the long texts that it names, a line of its output the report: bytes, in base64.
Its kits are made again from the sources that the manifests name; of a module, `kit()` is taken instead.
"""

import asyncio
import importlib
import json
import sys
from base64 import b64decode, b64encode
from pathlib import Path

from remit.backend.embedded.store import EmbeddedStore
from remit.core.record import Text, digest_of
from remit.observe.history import fold, read_history
from remit.orchestrate.errands import Errand, decode_errand, encode_report, unpacked
from remit.orchestrate.executors.bench import Bench
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.kit import Kit
from remit.orchestrate.kits import kit_again


async def serve(home: Path, module: str) -> None:
    """Perform one errand a line."""
    kept: dict[bytes, bytes] = {}

    async def text(text: Text) -> str:
        if isinstance(text, str):
            return text
        if text.digest in kept:
            return kept[text.digest].decode()
        store = EmbeddedStore.open_to_read(home)
        try:
            return (await store.blobs.get(text.digest)).decode()
        finally:
            await store.close()

    performers = Performers(Bench(text))
    for line in sys.stdin:
        told = json.loads(line)
        kept |= {digest_of(data): data for data in map(b64decode, told["texts"])}
        errand = await unpacked(decode_errand(b64decode(told["errand"])), text)
        report = await performers.perform(errand, await kit_for(errand, home, module))
        sys.stdout.write(b64encode(encode_report(report)).decode() + "\n")
        sys.stdout.flush()


async def kit_for(errand: Errand, home: Path, module: str) -> Kit:
    """What the run of an errand works with, made here."""
    if module:
        made: Kit = importlib.import_module(module).kit()
        return made
    store = EmbeddedStore.open_to_read(home)
    try:
        run_id = errand.sender.run_id
        return await kit_again(fold(read_history(run_id, await store.journal.read(run_id))))
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), *(sys.argv[2:] or [""])))
