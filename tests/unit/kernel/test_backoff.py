"""A tool that failed is called again after a pause that doubles, if trying again is safe, and never after the deadline."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.commands import CallTool
from remit.core.journal.rulings import RetryPlanned
from remit.core.limits.budget import Budget
from remit.kernel.budget.backoff import BACKOFF_MS_FIRST, backoff_ms, cooled_at_ms
from remit.kernel.results.doubt import LOST
from remit.kernel.tally import Tally
from remit.kernel.traces import Streak
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import Run, known, manifest_of, wants


def failing(run: Run, times: int, code: ErrorCode = ErrorCode.TOOL_UNAVAILABLE) -> list[CallTool]:
    """Calls of a tool that fails each time, with other arguments."""
    calls = []
    for number in range(times):
        run.proposes(wants("look", number))
        calls += run.now(CallTool)
        run.fails(code=code)
    return calls


@pytest.mark.req("4.28")
def test_each_call_after_a_failure_waits_longer_than_the_one_before() -> None:
    run = Run(manifest_of(budget=Budget(retries=4)))
    calls = failing(run, 4)
    assert calls[0].not_before_ms == 0
    ordered_at = [turn.at_ms for turn in run.turns for one in turn.decisions if isinstance(one, CallTool)]
    pauses = [call.not_before_ms - at_ms for call, at_ms in zip(calls[1:], ordered_at[1:], strict=True)]
    assert pauses == [backoff_ms("run", calls[at].id, at + 1) for at in range(3)]
    assert BACKOFF_MS_FIRST // 2 <= pauses[0] <= BACKOFF_MS_FIRST
    assert [(one.command_id, one.attempt, one.code) for one in run.all(RetryPlanned)] == [
        (calls[at].id, at + 2, ErrorCode.TOOL_UNAVAILABLE) for at in range(3)
    ]
    assert run.state == fold_journal(run.journal)


def test_the_retries_are_capped_and_the_cap_ends_the_run() -> None:
    run = Run(manifest_of(budget=Budget(retries=2)))
    failing(run, 3)
    assert run.state.end.ending is Ending.UNAVAILABLE_DEP


def test_a_success_lets_the_next_call_go_at_once() -> None:
    run = Run()
    failing(run, 1)
    run.proposes(wants("look", 7))
    run.returns()
    run.proposes(wants("look", 8))
    assert run.now(CallTool)[0].not_before_ms == 0


def test_other_tools_are_not_kept_waiting() -> None:
    run = Run(manifest_of(tools=(known("look"), known("look", name="watch"))))
    failing(run, 1)
    run.proposes(wants("watch"))
    assert run.now(CallTool)[0].not_before_ms == 0


@pytest.mark.parametrize("idempotent", [False, True])
def test_what_a_person_has_just_approved_is_not_kept_waiting(idempotent: bool) -> None:
    run = Run(manifest_of(tools=(known("write", idempotent=idempotent),)))
    run.proposes(wants("write"))
    run.approves()
    run.fails()
    run.proposes(wants("write", 2))
    run.approves()
    assert run.now(CallTool)[0].not_before_ms == 0


def test_an_effect_that_cannot_be_repeated_safely_has_no_pause_of_its_own() -> None:
    for idempotent in (False, True):
        run = Run(manifest_of(tools=(known("write", idempotent=idempotent),)))
        run.proposes(wants("write"))
        run.approves()
        run.fails()
        tally = run.tally()
        assert (cooled_at_ms(tally, run.state.derived.tools["write"]) > 0) == idempotent


@pytest.mark.parametrize("code", [LOST, ErrorCode.CONFIG_NO_ENGINE])
def test_what_is_not_worth_trying_again_is_not_slowed_down(code: str) -> None:
    tally = Run().tally()
    tally.fail("look", Streak(1, code, 1))
    assert cooled_at_ms(tally, tally.state.derived.tools["look"]) == 0


def test_a_failure_of_this_very_turn_counts() -> None:
    run = Run()
    run.proposes(wants("look"))
    (call,) = run.open(CallTool)
    tally = Tally(run.state, run.now_ms, call.id)
    tally.fail("look", Streak(1, ErrorCode.TOOL_TIMEOUT, 1))
    assert cooled_at_ms(tally, run.state.derived.tools["look"]) == run.now_ms + backoff_ms("run", call.id, 1)
    assert tally.decisions == [RetryPlanned(call.id, 2, ErrorCode.TOOL_TIMEOUT)]


def test_no_pause_goes_beyond_the_deadline() -> None:
    run = Run(manifest_of(budget=Budget(wall_clock_ms=100)))
    failing(run, 1)
    run.proposes(wants("look", 2))
    assert run.now(CallTool)[0].not_before_ms == run.state.clock.deadline_at_ms
