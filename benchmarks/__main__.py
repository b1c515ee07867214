"""Run every benchmark and print the report: `python -m benchmarks`, or with `--json` for programs."""

import argparse
import json

from benchmarks.local import local_lines, local_values, measure_local
from benchmarks.measure import FULL
from benchmarks.report import as_text, as_values, measure
from benchmarks.tables import figure_values
from benchmarks.vote import vote_lines, votes_in_rounds


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what remit costs.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    report, votes, local = measure(FULL), votes_in_rounds(FULL), measure_local()
    if options.json:
        voted = [figure_values(figure) for figure in votes]
        print(json.dumps({**as_values(report), "votes": voted, "local": local_values(local)}))
    else:
        print(as_text(report), "", *vote_lines(votes), "", *local_lines(local), sep="\n")


if __name__ == "__main__":
    main()
