"""What the laws counted is said at the end of the tests, whichever process ran them."""

from collections.abc import Iterator

import pytest

# The properties of a test that begin with this are figures for people.
FIGURE = "figure: "


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up the figures of all tests, by name, and print a line for each."""
    sums: dict[str, int] = {}
    for name, amount in _figures(terminalreporter):
        sums[name] = sums.get(name, 0) + amount
    for name, amount in sums.items():
        terminalreporter.write_line(f"{name}: {amount}")


def _figures(terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[str, int]]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, amount in report.user_properties:
                    if name.startswith(FIGURE):
                        yield name.removeprefix(FIGURE), int(amount)
