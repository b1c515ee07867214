"""Coverage: which lines and branches of the house a process of tests reaches.

It counts from before the house is imported, and writes its count at its end. Several processes share the tests, each with
files of its own: reading all tests in each of them takes longer than workers that help each other save. A place that was
reached is not looked at again, so counting takes little longer than not counting.
"""

import json
import os
from pathlib import Path

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
# Names the file that the count is written to; without it nothing is counted.
REPORT = os.environ.get("REMIT_COVERAGE", "")


class Counter:
    """What this process has reached so far; a count of an earlier one is gone when it begins."""

    def __init__(self, report: Path) -> None:
        assert "PYTEST_XDIST_WORKER" not in os.environ, "a worker would write over the count of another"
        self._report = report
        report.unlink(missing_ok=True)
        self._seen = slipcover.Slipcover(branch=True, source=[SOURCE], exclude_also=NOT_COUNTED)
        slipcover.ImportManager(self._seen, slipcover.FileMatcher(sources=[SOURCE])).__enter__()

    def write(self) -> None:
        """Write what was reached."""
        self._report.write_text(json.dumps(self._seen.get_coverage()))
