"""The command line, with every errand performed by another process.

    python -m tests.e2e.elsewhere LOG MOMENT ARGUMENTS...

The other process gets the bytes of an errand and makes the kit again. LOG gets the kind of each errand, a line for each.
At the moment it is killed, over the first errand of each kind; of this, LOG gets a line with a dash. "-" means never.
"""

import os
import subprocess
import sys
from pathlib import Path

from typing_extensions import override

from remit.adapters.cli.main import main
from remit.orchestrate.executors.performers import Performers
from remit.testing import Elsewhere
from tests import warm


def started(command: list[str]) -> "subprocess.Popen[str]":
    """A performer, which has the house imported already."""
    return warm.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class LoggedElsewhere(Elsewhere):
    """The same for several processes that share a log."""

    def __init__(self, log: Path, home: str, kit: str = "", *, dies_at: str = "", over: str = "") -> None:
        super().__init__(None, kit=kit, home=home, dies_at=dies_at.strip("-"), over=over, start=started)
        self._log = log

    @override
    def note(self, kind: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{kind}\n")

    @override
    def is_to_die(self, kind: str, tool: str) -> bool:
        if f"-{kind}" in self._log.read_text().split() or not super().is_to_die(kind, tool):
            return False
        self.note(f"-{kind}")
        return True


if __name__ == "__main__":
    away = LoggedElsewhere(Path(sys.argv.pop(1)), os.environ["REMIT_HOME"], dies_at=sys.argv.pop(1))
    Performers.perform = lambda self, errand, kit: away.perform(errand, self.resources)  # type: ignore[method-assign]
    try:
        code = main()
    finally:
        away.close()
    sys.exit(code)
