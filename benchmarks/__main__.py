"""Run every benchmark and print the report: `python -m benchmarks`, or with `--json` for programs."""

import argparse
import json

from benchmarks.measure import FULL
from benchmarks.report import as_text, as_values, measure


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what remit costs.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    report = measure(FULL)
    print(json.dumps(as_values(report)) if options.json else as_text(report))


if __name__ == "__main__":
    main()
