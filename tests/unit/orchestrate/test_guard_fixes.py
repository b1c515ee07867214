"""Fixes: every code that a verdict of the guard may have says what would make the call pass."""

import pytest

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.orchestrate.facts.gate_facts import RESULT_LOST
from remit.orchestrate.guard.shown_verdicts import CALL_ID_HELD, FIXES, RUN_STOPPED
from remit.provenance.gate_verdict import Objection

# What the checks of the kernel refuse with, what the gate objects to, what a boundary demands, and the guard's own.
CODES = [
    *Refusal,
    *Objection,
    ErrorCode.TOOL_NOT_FOUND,
    ErrorCode.CONSTRAINT_SCHEMA_INVALID,
    Ending.CONFIRM_REQUIRED,
    RESULT_LOST,
    CALL_ID_HELD,
    RUN_STOPPED,
]


@pytest.mark.parametrize("code", CODES)
def test_every_code_that_the_guard_can_give_has_a_fix(code: str) -> None:
    assert FIXES[code].strip()


def test_there_is_no_fix_for_what_nobody_gives() -> None:
    assert set(FIXES) == {str(code) for code in CODES}
