"""What the tests of the doors share."""

from pathlib import Path

import pytest

from tests.unit.adapters.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    """A desk of the test's own."""
    return Desk(tmp_path, capsys)
