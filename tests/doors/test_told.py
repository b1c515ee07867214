"""What a caller is told: events say what was sent, attempts count from one, errors name what failed and why."""

from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    InferHandler,
    InMemoryEventLog,
    PlanExecutor,
    RedundantLoop,
    RequestRejected,
    RerankHandler,
    RetrieveHandler,
    SpecializedLoop,
    Step,
    SystemResponse,
    ToolHandler,
    ValidateHandler,
    tool,
)
from remit.core.failure import ErrorCode
from remit.core.failure_families import FailureCategory
from remit.core.run.correlation import InferenceStartEvent, LifecycleTransitionEvent
from remit.core.run.lifecycle import LifecycleState
from remit.core.work.plan import RerankInput
from tests.doors.desk import MOOD, Desk, Panel, call
from tests.doors.test_two_phases import GRAMMAR, Worker, look

BAD, GOOD = '{"mood":"odd"}', '{"mood":"good"}'
FAILS = ErrorCode.INFERENCE_CONTEXT_EXCEEDED.value


@tool(effect="read", network=False)
def broken() -> int:
    """Count with a broken scale."""
    raise OSError("the scale is broken")


@pytest.mark.req("0.30")
def test_the_start_of_a_model_call_tells_what_this_call_sends(tmp_path: Path) -> None:
    worker, log = Worker(), InMemoryEventLog()
    SpecializedLoop(worker, schema=MOOD, tools=[look], observer=log, home=tmp_path).call_sync("What is the mood?")
    told = [event.what for event in log.events() if isinstance(event.what, InferenceStartEvent)]
    sent = [(len(one.messages), len(one.tools), one.schema is not None, bool(one.grammar)) for one in worker.sent]
    assert sent == [(one.message_count, one.tool_defs_count, one.schema_present, one.grammar_present) for one in told]


@pytest.mark.req("0.18")
def test_attempts_are_counted_from_one(tmp_path: Path) -> None:
    log = InMemoryEventLog()
    SpecializedLoop(Panel(BAD, BAD, GOOD), schema=MOOD, observer=log, home=tmp_path).call_sync("What is the mood?")
    moves = [event.what for event in log.events() if isinstance(event.what, LifecycleTransitionEvent)]
    attempts = [move.attempt for move in moves if LifecycleState.VALIDATE in (move.from_state, move.to_state)]
    assert attempts == [1, 2, 2, 3, 3, 3]


def failed_step(desk: Desk) -> SystemResponse:
    executor = PlanExecutor({"infer": InferHandler(Panel(FAILS))}, home=desk.folder / "store")
    return executor.execute_sync([Step("ask", "infer", "How is it?")]).response


def failed_code(desk: Desk) -> SystemResponse:
    executor = PlanExecutor({"code": lambda step: 1 / 0}, home=desk.folder / "store")
    return executor.execute_sync([Step("divide", "code", "x")]).response


@pytest.mark.req("0.9")
@pytest.mark.parametrize(
    ("scene", "details", "cause"),
    [
        (lambda desk: desk.voted(FAILS), {}, (FAILS, "replica", 3)),
        (failed_step, {"step": "ask", "model": "panel"}, (FAILS, "step", "ask")),
        (failed_code, {"step": "divide"}, None),
        (
            lambda desk: AgentLoop(Panel(FAILS), home=desk.folder / "store").chat_sync("How is it?"),
            {"model": "panel"},
            None,
        ),
    ],
)
def test_an_error_names_what_failed_and_what_it_came_of(scene: Any, details: Any, cause: Any, tmp_path: Path) -> None:
    error = scene(Desk(tmp_path)).error
    assert error is not None
    assert {key: error.details.get(key) for key in details} == details
    if cause is None:
        assert error.caused_by is None
    else:
        code, key, value = cause
        assert error.caused_by is not None
        assert (error.caused_by.code, error.caused_by.details[key]) == (code, value)


@pytest.mark.req("0.9")
def test_a_tool_that_failed_until_the_run_gave_up_is_named(tmp_path: Path) -> None:
    error = Desk(tmp_path).chat(call("broken"), tools=[broken]).error
    assert error is not None
    assert "broken" in (error.details.get("tool"), error.caused_by and error.caused_by.details.get("tool"))


@pytest.mark.req("0.27")
@pytest.mark.parametrize(
    ("handler", "code"),
    [
        (InferHandler(None), "CONFIG_NO_ENGINE"),
        (ToolHandler(None), "CONFIG_PART_MISSING"),
        (RetrieveHandler(None), "CONFIG_PART_MISSING"),
        (RerankHandler(None), "CONFIG_PART_MISSING"),
        (ValidateHandler(None), "CONFIG_PART_MISSING"),
    ],
)
def test_a_handler_without_its_part_is_a_failure_of_the_configuration(handler: Any, code: str, tmp_path: Path) -> None:
    given: Any = "x"
    if isinstance(handler, ToolHandler):
        given = {"word": "x"}
    elif isinstance(handler, RerankHandler):
        given = RerankInput("x")
    error = PlanExecutor({"work": handler}, home=tmp_path).execute_sync([Step("a", "work", given)]).response.error
    assert error is not None
    assert (error.code, error.category) == (code, FailureCategory.CONFIGURATION)


@pytest.mark.req("0.25")
@pytest.mark.parametrize("named", [str, Path])
def test_a_grammar_may_be_a_file_and_a_missing_one_is_named(named: Any, tmp_path: Path) -> None:
    file = tmp_path / "mood.gbnf"
    for made in (
        lambda: AgentLoop(Panel(GOOD), grammar=named(file)),
        lambda: SpecializedLoop(Panel(GOOD), schema=MOOD, grammar=named(file)),
        lambda: RedundantLoop(Panel(GOOD), schema=MOOD, grammar=named(file)),
    ):
        with pytest.raises(RequestRejected) as refused:
            made()
        assert (refused.value.code, refused.value.category) == (
            "CONFIG_GRAMMAR_NOT_FOUND",
            FailureCategory.CONFIGURATION,
        )
    file.write_text(GRAMMAR)
    panel = Panel(GOOD)
    assert (
        SpecializedLoop(panel, schema=MOOD, grammar=named(file), home=tmp_path / "store").call_sync("How?").error
        is None
    )
    assert panel.asked[0].grammar == GRAMMAR
