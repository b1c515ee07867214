"""What keeps a run from being read is told apart: a closed system, and a run that is to blame."""

import pytest

from remit.core.failure import RemitError
from remit.core.run.run_events import expect_unreadable, system_closed


def test_a_closed_system_is_no_fault_of_a_run() -> None:
    expect_unreadable(RemitError("JOURNAL_UNREADABLE", "turn 3"))
    with pytest.raises(RemitError, match="closed"):
        expect_unreadable(system_closed("r"))
