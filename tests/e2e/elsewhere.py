"""The command line, with every errand performed by another process.

    python -m tests.e2e.elsewhere LOG ARGUMENTS...

The other process gets the bytes of an errand and makes the kit again. LOG gets the kind of each errand, a line for each.
"""

import asyncio
import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path

from remit.adapters.cli.main import main
from remit.orchestrate.errands import Errand, decode_report, encode_errand, packed
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.kit import Kit
from remit.orchestrate.reports import Report


class Elsewhere:
    """Has errands performed by another process, one after the other."""

    def __init__(self, home: str, module: str = "", log: Path | None = None) -> None:
        self._command = [sys.executable, "-m", "tests.e2e.performer", home, *([module] if module else [])]
        self._process: subprocess.Popen[str] | None = None
        self._log = log
        self._turn = asyncio.Lock()

    async def perform(self, errand: Errand, _: Kit) -> Report:
        """Carry an errand there as bytes, and its report back."""
        async with self._turn:
            if self._log is not None:
                with self._log.open("a") as log:
                    log.write(f"{type(errand).__name__}\n")
            return await asyncio.to_thread(self._carried, errand)

    def _carried(self, errand: Errand) -> Report:
        light, texts = packed(errand)
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        written = [b64encode(data).decode() for _, data in texts]
        told = {"errand": b64encode(encode_errand(light)).decode(), "texts": written}
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return decode_report(b64decode(self._process.stdout.readline()))

    def close(self) -> None:
        """Let the other process go."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


if __name__ == "__main__":
    elsewhere = Elsewhere(os.environ["REMIT_HOME"], log=Path(sys.argv.pop(1)))
    Performers.perform = lambda _, errand, kit: elsewhere.perform(errand, kit)  # type: ignore[method-assign,assignment]
    try:
        code = main()
    finally:
        elsewhere.close()
    sys.exit(code)
