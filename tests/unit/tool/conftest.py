"""Isolated tools see few variables; those that count what they cover are passed on where it is counted."""

import pytest

from remit.tool.process import confinement

COUNTING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "PASSED_ON", confinement.PASSED_ON.union(COUNTING))
