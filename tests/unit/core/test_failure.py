"""One table for every code: complete, consistent, and the same for programs and people."""

import pickle
from collections import Counter

import pytest

from remit.core.failure import (
    BY_STAKES,
    CATEGORIES,
    ENDING_ALIASES,
    ENDINGS,
    ERRORS,
    REFUSALS,
    ArrivalFault,
    Ending,
    EndingKind,
    ErrorCode,
    EscalationRoute,
    Failure,
    IllegalArrival,
    InvariantBroken,
    Refusal,
    RemitError,
    RequestRejected,
    failure_of,
    gravest,
)
from remit.core.failure_families import FailureCategory, Retryable
from remit.core.run.lifecycle import LifecycleState, LoopState, Outcome, default_loop_state

REACHES = [ArrivalFault, Ending, EndingKind, ErrorCode, EscalationRoute, FailureCategory, Refusal, Retryable]

SUSPENDING = {
    Ending.MISSING_INFO,
    Ending.AMBIGUOUS_INTENT,
    Ending.CONFIRM_REQUIRED,
    Ending.REVIEW_REQUIRED,
    Ending.LOW_CONFIDENCE,
}


@pytest.mark.req("0.22")
def test_there_are_seven_categories_and_each_has_its_row() -> None:
    assert [category.value for category in FailureCategory] == [
        "InferenceFailure",
        "ToolFailure",
        "ConstraintFailure",
        "ValidationFailure",
        "OrchestrationFailure",
        "ConfigurationFailure",
        "Cancellation",
    ]
    assert set(CATEGORIES) == set(FailureCategory)


@pytest.mark.req("0.22")
def test_every_code_is_in_exactly_one_category() -> None:
    assert set(ERRORS) == set(ErrorCode)
    assert set(ENDINGS) == set(Ending)
    assert set(REFUSALS) == set(Refusal)
    assert [ending for ending, row in ENDINGS.items() if row.category is None] == [Ending.SUCCESS]


def test_the_error_codes_are_spread_over_the_categories_as_the_taxonomy_says() -> None:
    assert Counter(row.category for row in ERRORS.values()) == {
        FailureCategory.INFERENCE: 4,
        FailureCategory.TOOL: 4,
        FailureCategory.CONSTRAINT: 4,
        FailureCategory.VALIDATION: 2,
        # The taxonomy's three, and one for plans that could not be made.
        FailureCategory.ORCHESTRATION: 4,
        # The taxonomy's three, and one for handlers that lack what they work with.
        FailureCategory.CONFIGURATION: 4,
        FailureCategory.CANCELLATION: 2,
    }


@pytest.mark.req("0.22")
@pytest.mark.parametrize("code", ErrorCode)
def test_the_beginning_of_a_code_tells_its_category(code: ErrorCode) -> None:
    fitting = [category for category, row in CATEGORIES.items() if code.startswith(row.prefix)]
    assert fitting == [ERRORS[code].category]


@pytest.mark.req("0.26")
@pytest.mark.parametrize(
    ("category", "room", "retryable"),
    [
        (FailureCategory.INFERENCE, "inference", {Retryable.YES, Retryable.NO}),
        (FailureCategory.TOOL, "tool", {Retryable.IF_IDEMPOTENT}),
        (FailureCategory.CONSTRAINT, "constraint", {Retryable.YES}),
        (FailureCategory.VALIDATION, "validate", {Retryable.YES}),
        (FailureCategory.ORCHESTRATION, "orchestrate", {Retryable.NO}),
        (FailureCategory.CONFIGURATION, "any", {Retryable.NO}),
        (FailureCategory.CANCELLATION, "any", {Retryable.NO}),
    ],
)
def test_a_category_says_who_emits_it_and_whether_to_retry(
    category: FailureCategory, room: str, retryable: set[Retryable]
) -> None:
    rows = [row for row in ERRORS.values() if row.category is category]
    assert {row.emitted_by for row in rows} == {room}
    assert {row.retryable for row in rows} == retryable


@pytest.mark.req("0.26")
def test_a_prompt_that_does_not_fit_is_the_one_inference_failure_not_worth_retrying() -> None:
    inference = {code: row for code, row in ERRORS.items() if row.category is FailureCategory.INFERENCE}
    assert [code for code, row in inference.items() if row.retryable is Retryable.NO] == [
        ErrorCode.INFERENCE_CONTEXT_EXCEEDED
    ]


@pytest.mark.req("0.26")
def test_every_category_and_every_code_offers_a_way_to_recover() -> None:
    recoveries = [row.recovery for row in CATEGORIES.values()] + [row.recovery for row in ERRORS.values()]
    assert all(recovery.endswith(".") and len(recovery) > 10 for recovery in recoveries)
    assert len(set(recoveries)) == len(recoveries)


def test_there_are_seventeen_endings_of_which_five_suspend() -> None:
    assert len(Ending) == 17
    assert {ending for ending, row in ENDINGS.items() if row.kind is EndingKind.SUSPENDED} == SUSPENDING


@pytest.mark.parametrize("ending", Ending)
def test_an_ending_stands_at_a_terminal_state_that_fits_its_outcome(ending: Ending) -> None:
    row = ENDINGS[ending]
    assert row.lifecycle.is_terminal
    assert row.loop_state is default_loop_state(row.lifecycle)
    assert row.outcome is {
        LifecycleState.COMPLETE: Outcome.SUCCESS,
        LifecycleState.ERROR: Outcome.FAILED,
        LifecycleState.CANCELLED: Outcome.CANCELLED,
    }.get(row.lifecycle)


def test_both_successes_complete_with_exit_code_zero_and_without_an_error() -> None:
    complete = {ending for ending, row in ENDINGS.items() if row.lifecycle is LifecycleState.COMPLETE}
    assert complete == {Ending.SUCCESS, Ending.PARTIAL_SUCCESS}
    assert {ENDINGS[ending].exit_code for ending in complete} == {0}
    assert {failure_of(ending) for ending in complete} == {None}
    assert {ENDINGS[ending].error for ending in complete} == {None}


def test_policy_and_budget_endings_are_orchestration_failures_with_two_exceptions() -> None:
    exceptions = {
        ending: row.category
        for ending, row in ENDINGS.items()
        if row.category not in {None, FailureCategory.ORCHESTRATION, FailureCategory.CANCELLATION}
    }
    assert exceptions == {
        Ending.VALIDATION_FAIL: FailureCategory.VALIDATION,
        Ending.UNAVAILABLE_DEP: FailureCategory.TOOL,
    }


def test_exit_codes_tell_waiting_stopped_and_failed_apart() -> None:
    by_exit_code: dict[int, set[Ending]] = {}
    for ending, row in ENDINGS.items():
        by_exit_code.setdefault(row.exit_code, set()).add(ending)
    assert by_exit_code.pop(0) == {Ending.SUCCESS, Ending.PARTIAL_SUCCESS}
    assert by_exit_code.pop(3) == SUSPENDING
    assert by_exit_code.pop(4) == {
        Ending.BUDGET_EXHAUSTED,
        Ending.TIMEOUT,
        Ending.REPEATED_FAILURE,
        Ending.PERMISSION_DENIED,
        Ending.UNSAFE_DETECTION,
    }
    assert set(by_exit_code) == {1}


def test_a_wait_that_nobody_answers_ends_as_a_refusal_or_a_failure() -> None:
    ended = {ending: ENDINGS[ending].exit_code_when_ended for ending in SUSPENDING}
    assert ended == {
        Ending.MISSING_INFO: 1,
        Ending.AMBIGUOUS_INTENT: 1,
        Ending.CONFIRM_REQUIRED: 4,
        Ending.REVIEW_REQUIRED: 4,
        Ending.LOW_CONFIDENCE: 4,
    }


def test_an_ending_that_does_not_wait_keeps_its_exit_code() -> None:
    assert all(row.exit_code_when_ended == row.exit_code for ending, row in ENDINGS.items() if ending not in SUSPENDING)


def test_a_wait_for_knowledge_pauses_and_a_wait_for_a_decision_awaits_approval() -> None:
    overlays = {ending: row.waits_as for ending, row in ENDINGS.items() if row.waits_as is not None}
    assert overlays == {
        Ending.MISSING_INFO: LoopState.PAUSED,
        Ending.AMBIGUOUS_INTENT: LoopState.PAUSED,
        Ending.CONFIRM_REQUIRED: LoopState.AWAITING_APPROVAL,
        Ending.REVIEW_REQUIRED: LoopState.AWAITING_APPROVAL,
        Ending.LOW_CONFIDENCE: LoopState.AWAITING_APPROVAL,
    }


def test_every_code_that_suspends_has_its_place_by_what_is_at_stake() -> None:
    assert len(BY_STAKES) == len(SUSPENDING)
    assert set(BY_STAKES) == SUSPENDING
    assert gravest([Ending.MISSING_INFO, Ending.CONFIRM_REQUIRED, Ending.REVIEW_REQUIRED]) is Ending.CONFIRM_REQUIRED
    assert gravest([]) is None
    assert gravest([*BY_STAKES, Ending.BUDGET_EXHAUSTED]) is Ending.BUDGET_EXHAUSTED, "what is unknown is the worst"


def test_all_five_routes_are_taken_and_each_trigger_takes_its_own() -> None:
    routes = {ending: row.route for ending, row in ENDINGS.items() if row.route is not None}
    assert set(routes.values()) == set(EscalationRoute)
    assert routes[Ending.UNSAFE_DETECTION] is routes[Ending.PERMISSION_DENIED] is EscalationRoute.FAIL_CLOSED
    assert routes[Ending.CONFIRM_REQUIRED] is routes[Ending.BUDGET_EXHAUSTED] is EscalationRoute.HUMAN_APPROVAL
    assert routes[Ending.MISSING_INFO] is routes[Ending.AMBIGUOUS_INTENT] is EscalationRoute.ASK_USER
    assert routes[Ending.LOW_CONFIDENCE] is routes[Ending.SOURCE_CONFLICT] is EscalationRoute.REVIEW_QUEUE
    assert routes[Ending.REVIEW_REQUIRED] is routes[Ending.VALIDATION_FAIL] is EscalationRoute.REVIEW_QUEUE
    assert routes[Ending.UNAVAILABLE_DEP] is routes[Ending.REPEATED_FAILURE] is EscalationRoute.DEGRADED_MODE


def test_every_ending_says_who_receives_authority_next() -> None:
    assert all(row.receives for row in ENDINGS.values())


def test_timeout_and_user_cancel_are_cancellations_with_two_names() -> None:
    assert ENDING_ALIASES == {"CANCELLED_TIMEOUT": Ending.TIMEOUT, "CANCELLED_SIGNAL": Ending.USER_CANCEL}
    for alias, ending in ENDING_ALIASES.items():
        assert ENDINGS[ending].error == alias
        assert ENDINGS[ending].category is FailureCategory.CANCELLATION


def test_a_failure_reports_its_closest_cause() -> None:
    limit = ErrorCode.ORCHESTRATION_ITERATION_LIMIT
    assert failure_of(Ending.BUDGET_EXHAUSTED, limit) == Failure(
        "ORCHESTRATION_ITERATION_LIMIT", FailureCategory.ORCHESTRATION, Retryable.NO
    )
    assert failure_of(Ending.UNAVAILABLE_DEP, ErrorCode.INFERENCE_MODEL_UNAVAILABLE) == Failure(
        "INFERENCE_MODEL_UNAVAILABLE", FailureCategory.INFERENCE, Retryable.YES
    )
    assert failure_of(Ending.REPEATED_FAILURE, ErrorCode.TOOL_EXECUTION_FAILED) == Failure(
        "TOOL_EXECUTION_FAILED", FailureCategory.TOOL, Retryable.IF_IDEMPOTENT
    )


def test_a_failure_caused_by_a_refusal_carries_the_refusal() -> None:
    assert failure_of(Ending.PERMISSION_DENIED, Refusal.APPROVAL_REJECTED) == Failure(
        "APPROVAL_REJECTED", FailureCategory.ORCHESTRATION, Retryable.NO
    )


def test_a_failure_without_a_cause_falls_back_to_the_row_and_then_to_the_name() -> None:
    assert failure_of(Ending.TIMEOUT) == Failure("CANCELLED_TIMEOUT", FailureCategory.CANCELLATION, Retryable.NO)
    assert failure_of(Ending.IMPOSSIBLE) == Failure("IMPOSSIBLE", FailureCategory.ORCHESTRATION, Retryable.NO)


@pytest.mark.parametrize("ending", [ending for ending in Ending if ENDINGS[ending].outcome is not Outcome.SUCCESS])
def test_every_ending_that_is_no_success_reports_a_failure(ending: Ending) -> None:
    failure = failure_of(ending)
    assert failure is not None
    assert (failure.category, failure.retryable) == (ENDINGS[ending].category, ENDINGS[ending].retryable)


@pytest.mark.req("0.22")
@pytest.mark.parametrize(
    ("refusal", "ending"),
    [
        (Refusal.PERMISSION_DENIED, Ending.PERMISSION_DENIED),
        (Refusal.BUDGET_EXHAUSTED, Ending.BUDGET_EXHAUSTED),
        (Refusal.REPEATED_CALL, Ending.REPEATED_FAILURE),
        (Refusal.APPROVAL_REJECTED, Ending.PERMISSION_DENIED),
        (Refusal.APPROVAL_EXPIRED, Ending.CONFIRM_REQUIRED),
        (Refusal.DEPTH_EXCEEDED, Ending.BUDGET_EXHAUSTED),
        (Refusal.NOT_OFFERED, Ending.PERMISSION_DENIED),
    ],
)
def test_a_refusal_that_ends_a_run_leads_to_one_ending(refusal: Refusal, ending: Ending) -> None:
    assert REFUSALS[refusal].ending is ending
    assert REFUSALS[refusal].category is FailureCategory.ORCHESTRATION


def test_a_coded_error_shows_its_code_and_its_message() -> None:
    error = RequestRejected("TOOL_INVALID", "tool 'x' has no name", {"tool": "x"})
    assert str(error) == "TOOL_INVALID: tool 'x' has no name"
    assert (error.code, error.message, error.details) == ("TOOL_INVALID", "tool 'x' has no name", {"tool": "x"})


def test_errors_without_details_share_nothing() -> None:
    first, second = InvariantBroken("A", "a"), InvariantBroken("A", "a")
    first.details["seen"] = True
    assert second.details == {}


@pytest.mark.parametrize("fault", ArrivalFault)
def test_an_illegal_arrival_carries_its_fault_as_a_stable_code(fault: ArrivalFault) -> None:
    error = IllegalArrival(fault, "command 7 was settled by turn 3; drop the late report")
    assert error.fault is fault
    assert error.code == fault.value
    assert isinstance(error, RemitError)


@pytest.mark.parametrize(
    "error",
    [
        RequestRejected("A", "a", {"n": 1}),
        InvariantBroken("B", "b"),
        IllegalArrival(ArrivalFault.DUPLICATE, "c", {"seq": 2}),
    ],
)
def test_a_coded_error_survives_the_way_to_another_process(error: RemitError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.code, copy.details) == (str(error), error.code, error.details)


def test_an_error_tells_the_kind_of_its_code_and_whether_to_try_again() -> None:
    down = RequestRejected(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "the model is away")
    assert (down.category, down.retryable) == (FailureCategory.INFERENCE, True)
