"""Run every benchmark and print the report: `python -m benchmarks`, or with `--json` for programs."""

import argparse
import json

from benchmarks.authorization import authorization_lines, authorization_values, measure_authorization
from benchmarks.constrain import constrain_in_rounds, constrain_lines
from benchmarks.doors import door_lines, doors_in_rounds
from benchmarks.local import local_lines, local_values, measure_local
from benchmarks.measure import FULL
from benchmarks.peers.contest import measure_peers, peer_lines
from benchmarks.report import as_text, as_values, measure
from benchmarks.tables import figure_values
from benchmarks.vote import vote_lines, votes_in_rounds


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what remit costs.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    report, votes, constrained = measure(FULL), votes_in_rounds(FULL), constrain_in_rounds(FULL)
    doors, authorized, local = doors_in_rounds(FULL), measure_authorization(), measure_local()
    peers = measure_peers()
    if options.json:
        voted = [figure_values(figure) for figure in votes]
        shaped = [figure_values(figure) for figure in constrained]
        more = {"votes": voted, "structured": shaped, "authorization": authorization_values(authorized)}
        told = {"doors": [figure_values(figure) for figure in doors], "local": local_values(local), "peers": peers}
        print(json.dumps({**as_values(report), **more, **told}))
    else:
        shown = (
            *door_lines(doors),
            "",
            *peer_lines(peers),
            "",
            *constrain_lines(constrained),
            "",
            *vote_lines(votes),
            "",
            *authorization_lines(authorized),
        )
        parts = (*shown, "", *local_lines(local))
        print(as_text(report), "", *parts, sep="\n")


if __name__ == "__main__":
    main()
