"""remit beside other frameworks, in one run with a bare loop: each contender in a process and an environment of its own.

Who is not installed is left out. `make peers` installs them below `.peers`, which no lock of this project knows; another
folder is named by `BENCH_PEERS`. The contenders of a round follow each other, so that a ratio compares neighbours in time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("BENCH_PEERS", HERE.parent.parent / ".peers"))
ROUNDS = 2
FLOOR = "floor"
# Contender -> the package in its environment; what runs in ours has none.
CONTENDERS: Mapping[str, str] = {
    FLOOR: "",
    "remit": "",
    "remit@agent": "",
    "agno": "agno",
    "pydantic_ai": "pydantic-ai-slim",
}
TITLES: Mapping[str, str] = {
    "start": "a run without a loop",
    "loop": "a loop of a run of 50",
    "many": "one of 200 runs of 5 loops",
    "structured": "a schema, asked again",
}
_VERSION = "from importlib.metadata import version; import sys; print(version(sys.argv[1]))"

Figures = Mapping[str, Mapping[str, float]]


def python_of(contender: str) -> Path | None:
    """The interpreter of a contender; None where it is not installed."""
    if not CONTENDERS[contender]:
        return Path(sys.executable)
    python = FOLDER / contender / "bin" / "python"
    return python if python.exists() else None


def version_of(contender: str) -> str:
    """Which release of a contender is measured."""
    package = CONTENDERS[contender]
    if not package:
        try:
            return "" if contender == FLOOR else version("remit")
        except PackageNotFoundError:
            return ""
    command = [str(python_of(contender)), "-c", _VERSION, package]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def measure_peers(rounds: int = ROUNDS) -> Figures:
    """The best of each figure of each contender that is here."""
    found: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for contender in CONTENDERS:
            if (python := python_of(contender)) is None:
                continue
            name, _, flavour = contender.partition("@")
            command = [str(python), "-P", str(HERE / "worker.py"), name, flavour]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            before = found.setdefault(contender, told)
            found[contender] = {figure: min(micros, before[figure]) for figure, micros in told.items()}
    return found


def peer_lines(figures: Figures) -> Iterator[str]:
    """A table: CPU microseconds, and how many floors that is."""
    yield "Beside others, through their public classes, in memory (CPU microseconds, and times the bare loop)"
    yield "  " + " ".join([f"{'contender':28}", *(f"{title:>28}" for title in TITLES.values())])
    for contender, told in figures.items():
        # A bare run without a loop is one call of a function, which nothing is a multiple of.
        cells = [_cell(told.get(figure), figures[FLOOR][figure] if figure != "start" else 0) for figure in TITLES]
        yield "  " + " ".join([f"{f'{contender} {version_of(contender)}'.strip():28}", *cells])
    if missing := [contender for contender in CONTENDERS if contender not in figures]:
        yield f"  not installed: {', '.join(missing)}; `make peers` brings them"


def _cell(micros: float | None, floor: float) -> str:
    if micros is None:
        return f"{'-':>28}"
    return f"{f'{micros:,.1f}  ({micros / floor:,.1f}x)' if floor else f'{micros:,.1f}':>28}"


if __name__ == "__main__":
    print(*peer_lines(measure_peers()), sep="\n")
