"""A count of coverage is written by each process of tests, and never stands for a run that did not end."""

from pathlib import Path

import pytest

from tests.measured import Counter


def test_a_count_of_an_earlier_run_is_gone_when_one_begins_to_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setattr("tests.measured.slipcover", FakeSlipcover)
    (tmp_path / "report").write_text("of an earlier run")
    counter = Counter(tmp_path / "report")
    assert not (tmp_path / "report").exists()
    counter.write()
    assert (tmp_path / "report").read_text() == '{"files": {}}'


def test_a_worker_does_not_count_since_it_would_write_over_the_count_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    with pytest.raises(AssertionError, match="write over"):
        Counter(tmp_path / "report")


class FakeSlipcover:
    """Counts nothing, so that nothing of this process is counted twice."""

    class Slipcover:
        """What was reached."""

        def __init__(self, **how: object) -> None:
            self.how = how

        def get_coverage(self) -> dict[str, dict[str, object]]:
            """Nothing."""
            return {"files": {}}

    class FileMatcher:
        """Any file."""

        def __init__(self, sources: list[str]) -> None:
            self.sources = sources

    class ImportManager:
        """Watches no import."""

        def __init__(self, *what: object) -> None:
            self.what = what

        def __enter__(self) -> None:
            pass
