"""The command line, with every errand performed by another process.

    python -m tests.e2e.elsewhere LOG MOMENT ARGUMENTS...

The other process gets the bytes of an errand and makes the kit again. LOG gets the kind of each errand, a line for each.
At the moment it is killed, over the first errand of each kind; of this, LOG gets a line with a dash. "-" means never.
"""

import asyncio
import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

from remit.adapters.cli.main import main
from remit.orchestrate.executors.errands import Errand, decode_report, encode_errand, packed
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.loop.claims import PerformerLost
from tests import warm


class Elsewhere:
    """Has errands performed by another process, one after the other."""

    def __init__(self, home: str, module: str, log: Path, *, dies_at: str = "", over: str = "Errand") -> None:
        self._command = [sys.executable, "-m", "tests.e2e.performer", home, *([module] if module else [])]
        self._process: subprocess.Popen[str] | None = None
        self._log = log
        self._turn = asyncio.Lock()
        # At which moment it is killed, and over errands whose kind ends with these words.
        self._dies_at, self._over = dies_at, over

    async def perform(self, performers: Performers, errand: Errand) -> Report:
        """Carry an errand there as bytes, and its report back; raises PerformerLost where that process is gone."""
        async with self._turn:
            self._note(type(errand).__name__)
            loop, claim = asyncio.get_running_loop(), performers._resources.claim

            def may_begin(run_id: str, command_id: str) -> bool:
                return asyncio.run_coroutine_threadsafe(_claimed(claim, run_id, command_id), loop).result()

            return await asyncio.to_thread(self._carried, errand, may_begin)

    def _note(self, line: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{line}\n")

    def _carried(self, errand: Errand, may_begin: Callable[[str, str], bool]) -> Report:
        light, texts = packed(errand)
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = warm.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        written = [b64encode(data).decode() for _, data in texts]
        told = {"errand": b64encode(encode_errand(light)).decode(), "texts": written}
        answer: object = told
        while True:
            self._process.stdin.write(json.dumps(answer) + "\n")
            self._process.stdin.flush()
            said = json.loads(self._process.stdout.readline() or "{}")
            answer = "go on"
            if "report" in said:
                return decode_report(b64decode(said["report"]))
            if "claim" in said:
                answer = may_begin(*said["claim"])
            elif not said or self._is_to_die(type(errand).__name__, said["at"]):
                self.close()
                raise PerformerLost

    def _is_to_die(self, kind: str, moment: str) -> bool:
        line = f"-{kind}"
        if moment != self._dies_at or not kind.endswith(self._over) or line in self._log.read_text().split():
            return False
        self._note(line)
        return True

    def close(self) -> None:
        """Let the other process go."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


async def _claimed(claim: Callable[[str, str], Awaitable[bool]], run_id: str, command_id: str) -> bool:
    return await claim(run_id, command_id)


if __name__ == "__main__":
    log, moment = Path(sys.argv.pop(1)), sys.argv.pop(1)
    elsewhere = Elsewhere(os.environ["REMIT_HOME"], "", log, dies_at=moment)
    Performers.perform = lambda self, errand, kit: elsewhere.perform(self, errand)  # type: ignore[method-assign]
    try:
        code = main()
    finally:
        elsewhere.close()
    sys.exit(code)
