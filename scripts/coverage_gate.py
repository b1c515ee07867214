"""Hold every room to its share of covered lines and branches.

The words and the judge are covered completely, because a rule without a test is no rule. Elsewhere the
last twentieth is trouble of the world that costs more to stage than it teaches.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import Any

import slipcover

PACKAGE = PurePosixPath("src/remit")
PERCENT_MIN_BY_ROOM = {"core": 100.0, "kernel": 100.0}
PERCENT_MIN = 95.0
# Programs of processes of their own, where coverage is not counted; tests start them and look at what they do.
ELSEWHERE = frozenset({"__main__.py", "tool/process/warden.py", "tool/process/isolated_child.py"})
# A file with more gaps than this has not been tested at all; listing them would hide the others.
GAPS_SHOWN_MAX = 20


@dataclass(frozen=True)
class Tally:
    """What could be covered in a room, what was, and where something is missing."""

    covered: int = 0
    total: int = 0
    gaps: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """An empty room is covered."""
        return 100.0 * self.covered / self.total if self.total else 100.0


def main(*reports: Path) -> int:
    """Print a line per room; the exit code says whether one fell short. What any of the reports reached is reached."""
    counted = reduce(slipcover.merge_coverage, (json.loads(report.read_text()) for report in reports))
    tallies = tally_rooms(counted)
    if not tallies:
        print(f"{', '.join(map(str, reports))}: no file of {PACKAGE} is named", file=sys.stderr)
        return 1
    for room, tally in sorted(tallies.items()):
        print(f"{room:<14}{tally.percent:6.2f} % of {percent_min(room):g} %")
    short = rooms_below(tallies)
    for room in short:
        for gap in tallies[room].gaps:
            print(gap, file=sys.stderr)
    return 1 if short else 0


def tally_rooms(report: Mapping[str, Any]) -> dict[str, Tally]:
    """Lines and branches per room, from the report of a counted run."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for name, entry in report["files"].items():
        path = PurePosixPath(name)
        if not path.is_relative_to(PACKAGE):
            continue
        place = path.relative_to(PACKAGE)
        if str(place) in ELSEWHERE:
            continue
        room = place.parts[0].removesuffix(".py")
        covered = len(entry["executed_lines"]) + len(entry["executed_branches"])
        total = covered + len(entry["missing_lines"]) + len(entry["missing_branches"])
        before = tallies[room]
        gaps = () if covered == total else (gap_of(name, entry),)
        tallies[room] = Tally(before.covered + covered, before.total + total, before.gaps + gaps)
    return dict(tallies)


def gap_of(name: str, entry: Mapping[str, Any]) -> str:
    """Where a file is not covered: line numbers, then branches as from->to."""
    lines = [str(line) for line in entry["missing_lines"]]
    branches = [f"{start}->{end}" for start, end in entry["missing_branches"]]
    gaps = lines + branches
    rest = f" and {len(gaps) - GAPS_SHOWN_MAX} more" if len(gaps) > GAPS_SHOWN_MAX else ""
    return f"{name}: {', '.join(gaps[:GAPS_SHOWN_MAX])}{rest}"


def rooms_below(tallies: Mapping[str, Tally]) -> list[str]:
    """The rooms that fall short of their share."""
    return [room for room, tally in sorted(tallies.items()) if tally.percent < percent_min(room)]


def percent_min(room: str) -> float:
    """The share a room must reach."""
    return PERCENT_MIN_BY_ROOM.get(room, PERCENT_MIN)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
