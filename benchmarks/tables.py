"""How figures are shown: as lines of a table, and as plain values."""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.measure import Figure

HEAD = f"  {'':<38}{'µs':>11}{'floor µs':>11}{'ratio':>8}{'spread':>8}  floor"


def table(figures: Sequence[Figure]) -> Iterator[str]:
    """One line per figure."""
    yield HEAD
    for figure in figures:
        yield (
            f"  {figure.name:<38}{figure.micros:>11,.2f}{figure.floor_micros:>11,.2f}{figure.ratio:>8,.1f}"
            f"{figure.spread:>8.0%}  {figure.floor}"
        )


def figure_values(figure: Figure) -> dict[str, Any]:
    """A figure without its single repeats."""
    return {
        "name": figure.name,
        "micros": figure.micros,
        "floor": figure.floor,
        "floor_micros": figure.floor_micros,
        "ratio": figure.ratio,
        "spread": figure.spread,
    }
