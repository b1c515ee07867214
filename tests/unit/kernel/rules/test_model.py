"""A model node: what is asked of the model, and what follows when it answers or fails."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import CallModel, SetTimer, TimerPurpose
from remit.core.limits.budget import Budget, Dimension
from remit.core.run.contract import ExecutionHints, SystemRequest
from remit.core.run.manifest import MODEL_TIMEOUT_MS, OUTPUT_TOKENS_DEFAULT
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import EXITS, TERMINALS, Ask, Edge, Graph, Node, NodeKind
from remit.kernel.budget.backoff import BACKOFF_MS_FIRST, BACKOFF_MS_MAX, backoff_ms
from remit.kernel.results.notices import tokens_bound
from remit.kernel.rules.model import ENDING_OF
from tests.unit.kernel.builders import MESSAGES_TOKENS, OFFER_TOKENS, Run, manifest_of, wants

RETRYABLE = [
    ErrorCode.INFERENCE_ENGINE_ERROR,
    ErrorCode.INFERENCE_MODEL_UNAVAILABLE,
    ErrorCode.INFERENCE_MALFORMED_RESPONSE,
]


def hinting(max_tokens: int) -> SystemRequest:
    return SystemRequest((user_message("please"),), hints=ExecutionHints(max_tokens=max_tokens))


def test_a_call_shows_the_whole_context_and_names_its_limits() -> None:
    command = Run().open(CallModel)[0]
    assert (command.model, command.messages_count, command.attempt) == ("scripted", 1, 1)
    assert (command.max_tokens, command.timeout_ms) == (OUTPUT_TOKENS_DEFAULT, MODEL_TIMEOUT_MS)


@pytest.mark.parametrize(
    ("wished", "budget", "asked"), [(0, Budget(), 2048), (100, Budget(), 100), (100, Budget(output_tokens=7), 7)]
)
def test_the_output_is_cut_to_what_is_wished_and_what_is_left(wished: int, budget: Budget, asked: int) -> None:
    run = Run(manifest_of(request=hinting(wished), budget=budget))
    assert run.open(CallModel)[0].max_tokens == asked


def test_the_next_call_reads_everything_that_was_said_meanwhile() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.take(arrivals.FeedbackGiven("ada", "be brief", 12))
    run.returns()
    command = run.open(CallModel)[0]
    assert command.messages_count == 4
    assert dict(command.reserved)[Dimension.INPUT_TOKENS] == MESSAGES_TOKENS + OFFER_TOKENS + 40 + 28 + 12


def asking(ask: Ask) -> Graph:
    nodes = (Node("sort", NodeKind.MODEL, ask=ask), Node("answer", NodeKind.MODEL), *TERMINALS)
    edges = (Edge("sort", "answer", condition="answer == 'refund'"), Edge("sort", "done"), Edge("answer", "done"))
    return Graph("asking", "sort", nodes, edges, EXITS)


def test_what_a_node_asks_is_reserved_for() -> None:
    command = Run(manifest_of(graph=asking(Ask("Sort it.", max_tokens=5)))).open(CallModel)[0]
    assert command.max_tokens == 5
    expected = MESSAGES_TOKENS + OFFER_TOKENS + tokens_bound("Sort it.")
    assert dict(command.reserved)[Dimension.INPUT_TOKENS] == expected


def test_a_node_that_names_no_limit_has_that_of_the_request() -> None:
    run = Run(manifest_of(request=hinting(9), graph=asking(Ask("Sort it."))))
    assert run.open(CallModel)[0].max_tokens == 9


@pytest.mark.parametrize(("answer", "path"), [("refund", ["sort", "answer"]), ("other", ["sort", "done"])])
def test_a_condition_may_look_at_the_answer(answer: str, path: list[str]) -> None:
    run = Run(manifest_of(graph=asking(Ask("Sort it."))))
    run.says(answer)
    assert run.path() == path


def test_an_answer_leads_to_the_check() -> None:
    run = Run()
    run.says("hello")
    assert run.path()[2:] == ["check", "done"]
    assert run.state.result.answer == "hello"


def test_proposed_calls_lead_to_the_tools() -> None:
    run = Run()
    run.proposes(wants("look"))
    assert run.path()[2:] == ["act"]


@pytest.mark.parametrize("code", RETRYABLE)
def test_a_failure_worth_trying_again_is_tried_again_after_a_pause(code: ErrorCode) -> None:
    run = Run()
    failed = run.open(CallModel)[0]
    run.breaks(code)
    assert run.now(rulings.RetryPlanned) == [rulings.RetryPlanned(failed.id, 2, code)]
    timer = run.now(SetTimer)[0]
    assert (timer.purpose, timer.about) == (TimerPurpose.RETRY, failed.id)
    assert timer.due_at_ms == run.now_ms + backoff_ms("run", failed.id, 1)
    run.rings(TimerPurpose.RETRY)
    assert run.open(CallModel)[0].attempt == 2


@pytest.mark.parametrize("code", list(ENDING_OF))
def test_a_failure_that_stays_ends_the_run_with_its_code(code: ErrorCode) -> None:
    run = Run(manifest_of(budget=Budget(retries=2)))
    while run.state.end.ending is None:
        run.breaks(code)
        if run.state.end.ending is None:
            run.rings(TimerPurpose.RETRY)
    assert (run.state.end.ending, run.state.end.error) == (ENDING_OF[code], code)
    attempts = 1 if code is ErrorCode.INFERENCE_CONTEXT_EXCEEDED else 3
    assert [command.attempt for command in run.all(CallModel)] == list(range(1, attempts + 1))


def test_a_prompt_that_does_not_fit_is_not_tried_again() -> None:
    run = Run()
    run.breaks(ErrorCode.INFERENCE_CONTEXT_EXCEEDED)
    assert run.state.end.ending is Ending.IMPOSSIBLE
    assert run.state.end.message == "INFERENCE_CONTEXT_EXCEEDED in attempt 1 of 4"


def test_a_message_of_the_engine_is_kept() -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.take(arrivals.ModelFailed(run.open(CallModel)[0].id, ErrorCode.INFERENCE_ENGINE_ERROR, "connection refused"))
    assert run.state.end.message == "connection refused"


def test_a_failure_nobody_expects_of_a_model_makes_it_unavailable() -> None:
    run = Run()
    run.breaks(ErrorCode.CONFIG_NO_ENGINE)
    assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.CONFIG_NO_ENGINE)


def test_attempts_are_counted_per_call_and_not_per_run() -> None:
    run = Run(manifest_of(budget=Budget(retries=1)))
    for n in range(3):
        run.breaks()
        run.rings(TimerPurpose.RETRY)
        run.proposes(wants("look", n))
        run.returns()
    assert [command.attempt for command in run.all(CallModel)] == [1, 2, 1, 2, 1, 2, 1]


def test_an_answer_without_a_word_or_a_call_is_malformed() -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.says("")
    assert (run.state.end.ending, run.state.end.error) == (
        Ending.REPEATED_FAILURE,
        ErrorCode.INFERENCE_MALFORMED_RESPONSE,
    )
    assert run.state.end.message == "the model said nothing"


def test_a_call_that_never_got_through_costs_nothing() -> None:
    run = Run()
    run.breaks()
    assert run.last(rulings.CommandSettled).charged == ()


def test_a_call_that_was_cut_off_costs_all_it_reserved() -> None:
    run = Run()
    reserved = run.open(CallModel)[0].reserved
    run.breaks(was_cut=True)
    assert run.last(rulings.CommandSettled).charged == reserved


def test_a_failed_call_that_reports_its_usage_costs_that() -> None:
    run = Run()
    usage = TokenUsage(prompt_tokens=8, output_tokens=1)
    run.take(arrivals.ModelFailed(run.open(CallModel)[0].id, ErrorCode.INFERENCE_ENGINE_ERROR, usage=usage))
    assert (run.used(Dimension.INPUT_TOKENS), run.used(Dimension.OUTPUT_TOKENS)) == (8, 1)


def test_a_failed_call_that_used_more_than_it_reserved_stops_the_run() -> None:
    run = Run()
    usage = TokenUsage(output_tokens=5000)
    run.take(
        arrivals.ModelFailed(run.open(CallModel)[0].id, ErrorCode.INFERENCE_ENGINE_ERROR, usage=usage, was_cut=True)
    )
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.used(Dimension.OUTPUT_TOKENS) == 5000


def test_a_retry_that_no_longer_fits_the_budget_stops_the_run() -> None:
    run = Run(manifest_of(budget=Budget(output_tokens=2048)))
    run.breaks(was_cut=True)
    run.rings(TimerPurpose.RETRY)
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED


def test_the_pause_doubles_up_to_a_limit() -> None:
    pauses = [backoff_ms("run", "0.4", attempt) for attempt in range(1, 40)]
    assert BACKOFF_MS_FIRST // 2 <= pauses[0] <= BACKOFF_MS_FIRST
    assert all(BACKOFF_MS_MAX // 2 <= pause <= BACKOFF_MS_MAX for pause in pauses[10:])


def test_runs_that_failed_together_do_not_return_together() -> None:
    assert len({backoff_ms(f"run{n}", "0.4", 3) for n in range(50)}) > 40


def test_a_server_that_asks_for_a_longer_pause_gets_it() -> None:
    run = Run()
    call = run.open(CallModel)[0]
    run.take(arrivals.ModelFailed(call.id, ErrorCode.INFERENCE_ENGINE_ERROR, retry_after_ms=20_000))
    assert run.now(SetTimer)[0].due_at_ms == run.now_ms + 20_000


def test_a_failure_that_would_come_again_ends_the_run_at_once() -> None:
    run = Run()
    call = run.open(CallModel)[0]
    run.take(arrivals.ModelFailed(call.id, ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "no such key", is_final=True))
    assert (run.now(SetTimer), run.now(rulings.RetryPlanned)) == ([], [])
    assert (run.state.end.error, run.state.end.message) == (ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "no such key")


def test_a_pause_is_never_shorter_than_our_own() -> None:
    run = Run()
    call = run.open(CallModel)[0]
    run.take(arrivals.ModelFailed(call.id, ErrorCode.INFERENCE_ENGINE_ERROR, retry_after_ms=1))
    assert run.now(SetTimer)[0].due_at_ms == run.now_ms + backoff_ms("run", call.id, 1)


@pytest.mark.parametrize(("short_by_ms", "ending"), [(1, None), (0, Ending.UNAVAILABLE_DEP)])
def test_a_pause_that_reaches_the_deadline_ends_the_run_with_the_failure(
    short_by_ms: int, ending: Ending | None
) -> None:
    run = Run(manifest_of(budget=Budget(wall_clock_ms=60_000)))
    pause_ms = run.state.clock.deadline_at_ms - (run.now_ms + 10) - short_by_ms
    call = run.open(CallModel)[0]
    run.take(arrivals.ModelFailed(call.id, ErrorCode.INFERENCE_ENGINE_ERROR, "busy", retry_after_ms=pause_ms))
    assert (run.state.end.ending, len(run.now(rulings.RetryPlanned))) == (ending, 1 if ending is None else 0)
    if ending is not None:
        told = (ErrorCode.INFERENCE_ENGINE_ERROR, "busy; the run's deadline comes first")
        assert (run.state.end.error, run.state.end.message) == told
