"""Print what remit does, scenario by scenario, for the person who has to answer for it.

python -m tests.scenarios                     every scenario, then the tables
python -m tests.scenarios payment SUCCESS     those whose file or places contain one of the words
python -m tests.scenarios --tables            the tables alone
"""

import argparse
import os
import sys
from collections.abc import Sequence

from tests.scenarios.report import coverage_lines, story_lines
from tests.scenarios.runner import scenario_at, scenario_files, verdict


def main(arguments: Sequence[str]) -> int:
    """Play the scenarios and print them; 1 when one did not come out as its file says."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.scenarios", description="What remit does, in plain sentences."
    )
    parser.add_argument("words", nargs="*", help="only scenarios whose file or places contain one of these")
    parser.add_argument("--tables", action="store_true", help="only which file shows which row of which table")
    asked = parser.parse_args(arguments)
    scenarios = {path: scenario_at(path) for path in scenario_files()}
    broken = 0
    for path, scenario in {} if asked.tables else scenarios.items():
        labels = " ".join([scenario.name, *map(str, scenario.shows)]).casefold()
        if asked.words and not any(word.casefold() in labels for word in asked.words):
            continue
        played, complaints = verdict(path)
        broken += bool(complaints)
        sys.stdout.write("\n".join([*story_lines(played, complaints), "", ""]))
    sys.stdout.write("\n".join([*coverage_lines(scenarios.values()), ""]))
    if broken:
        sys.stdout.write(f"\n{broken} scenarios did not come out as their files say.\n")
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        # The reader has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
