"""Coverage: which lines and branches of the house a run of tests on several workers reaches.

A worker counts from before the house is imported, and hands over its count with the last word it says; one that ends
without is named. A place that was reached is not looked at again, so counting takes little longer than not counting.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import slipcover

SOURCE = "src/remit"
NOT_COUNTED = [
    # Read by type checkers, never by the interpreter.
    "@overload",
    # The body of a protocol's method.
    r"^\s*\.\.\.$",
    # Proves to the type checker that a match is exhaustive.
    r"assert_never\(",
]
# What a worker's last word calls its count.
COUNT = "coverage"
# Names the file that the whole count is written to; without it nothing is counted.
REPORT = os.environ.get("REMIT_COVERAGE", "")


class Counter:
    """What one worker has reached so far."""

    def __init__(self) -> None:
        self._seen = slipcover.Slipcover(branch=True, source=[SOURCE], exclude_also=NOT_COUNTED)
        slipcover.ImportManager(self._seen, slipcover.FileMatcher(sources=[SOURCE])).__enter__()

    def tell(self, config: pytest.Config) -> None:
        """Say what was reached."""
        config.workeroutput[COUNT] = json.dumps(self._seen.get_coverage())  # type: ignore[attr-defined]


class Sum:
    """What all workers have reached, and which of them did not say."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self._counted: dict[str, Any] | None = None

    def hear(self, worker: str, said: dict[str, Any]) -> None:
        """Add what a worker says when it ends."""
        if COUNT not in said:
            self.lost.append(f"worker {worker} ended without saying what it reached")
            return
        count = json.loads(said[COUNT])
        self._counted = count if self._counted is None else slipcover.merge_coverage(self._counted, count)

    def write(self, report: Path) -> None:
        """Write the whole count; where something was lost there is none, since it would read as untested."""
        report.unlink(missing_ok=True)
        if not self.lost:
            report.write_text(json.dumps(self._counted))


def is_worker() -> bool:
    """Whether this process runs tests for another one."""
    return "PYTEST_XDIST_WORKER" in os.environ
