"""Signals become reports, and a command whose executor broke is reported with a code."""

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import Happened, ModelFailed
from remit.core.journal.commands import Command
from remit.core.limits.tools import ToolResult
from remit.core.run.inference import ModelResult
from remit.core.run.lineage import derived_id
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.executors.reports import (
    PERFORMED,
    FilterSaid,
    ModelSaid,
    PersonApproved,
    PersonSaid,
    Report,
    ToolAccounted,
    ToolBroke,
    ToolSaid,
    report_of,
    report_of_broken,
    report_words,
    unperformed,
)
from tests.unit.orchestrate.stage import ALL_PERFORMED

REACHES = [Signal]

SIGNALS: list[tuple[Signal, dict[str, object], Report]] = [
    (Signal.CANCEL, {}, arrivals.CancelRequested("ada")),
    (Signal.CANCEL, {"reason": "enough"}, arrivals.CancelRequested("ada", "enough")),
    (Signal.PAUSE, {}, arrivals.PauseRequested("ada")),
    (Signal.RESUME, {}, arrivals.ResumeRequested("ada")),
    (Signal.APPROVE, {"packet_id": "3.1"}, PersonApproved("3.1", "ada")),
    (Signal.APPROVE, {"packet_id": "3.1", "arguments": {"n": 1}}, PersonApproved("3.1", "ada", {"n": 1})),
    (Signal.REJECT, {"packet_id": "3.1"}, arrivals.ApprovalRefused("3.1", "ada")),
    (Signal.REJECT, {"packet_id": "3.1", "reason": "no"}, arrivals.ApprovalRefused("3.1", "ada", "no")),
    (Signal.FEEDBACK, {"text": "be quick"}, PersonSaid("ada", "be quick")),
    (Signal.RETRY, {}, arrivals.RetryRequested("ada", key=derived_id("run", "s1"))),
]

CALL = commands.CallTool("1.0", "call", "look", "v1", "{}", b"", "run:1.0", 1000, ())
COMMANDS: dict[type[Command], Command] = {
    commands.CallModel: commands.CallModel("1.0", "model", 1, 100, 1000, ()),
    commands.CallTool: CALL,
    commands.ReconcileTool: commands.ReconcileTool("1.0", "0.1", "pay", "key", 1000),
    commands.CallCode: commands.CallCode("1.0", "polite", "text", 1000),
    commands.Retrieve: commands.Retrieve("1.0", 1000),
    commands.StartChild: commands.StartChild("1.0", "run.1.0", "go", (), 1, 0, ()),
}


@pytest.mark.parametrize(("kind", "payload", "report"), SIGNALS)
@pytest.mark.req("3.8")
def test_a_signal_reports_what_its_sender_wants(kind: Signal, payload: dict[str, object], report: Report) -> None:
    assert report_of(UserSignal("s1", kind, "run", "ada", payload=payload)) == report


def test_every_signal_has_a_report() -> None:
    assert {kind for kind, _, _ in SIGNALS} == set(Signal)


def test_every_command_that_is_performed_can_break() -> None:
    assert set(ALL_PERFORMED) == set(COMMANDS) == PERFORMED


@pytest.mark.parametrize("kind", COMMANDS)
def test_what_broke_is_told_of_the_command_that_broke(kind: type[Command]) -> None:
    report = report_of_broken(COMMANDS[kind], "because")
    assert getattr(report, "command_id", None) == "1.0"


def test_a_model_call_that_broke_may_have_cost_all_it_reserved() -> None:
    report = report_of_broken(COMMANDS[commands.CallModel], "because")
    assert report == arrivals.ModelFailed("1.0", ErrorCode.INFERENCE_ENGINE_ERROR, "because", was_cut=True)


def test_a_reading_call_that_broke_has_failed() -> None:
    assert report_of_broken(CALL, "because") == ToolBroke("1.0", ErrorCode.TOOL_EXECUTION_FAILED, "because")


def test_a_mutating_call_that_broke_is_in_doubt_like_one_that_ran_out_of_time() -> None:
    mutating = commands.CallTool("1.0", "call", "pay", "v1", "{}", b"", "run:1.0", 1000, (), mutating=True)
    assert report_of_broken(mutating, "because") == ToolBroke("1.0", ErrorCode.TOOL_TIMEOUT, "because")


def test_an_inquiry_that_broke_found_nothing_out() -> None:
    assert report_of_broken(COMMANDS[commands.ReconcileTool], "because") == ToolAccounted("1.0", Happened.UNKNOWN)


def test_code_context_and_children_that_broke_have_their_own_arrivals() -> None:
    assert report_of_broken(COMMANDS[commands.CallCode], "because") == arrivals.CodeFailed("1.0", "because")
    assert report_of_broken(COMMANDS[commands.Retrieve], "because") == arrivals.ContextFailed("1.0", "because")
    assert report_of_broken(COMMANDS[commands.StartChild], "because") == arrivals.ChildLost("1.0")


def test_a_call_that_nobody_performs_is_unavailable_and_not_in_doubt() -> None:
    mutating = commands.CallTool("1.0", "call", "pay", "v1", "{}", b"", "run:1.0", 1000, (), mutating=True)
    report = unperformed(mutating)
    assert isinstance(report, ToolBroke)
    assert report.code is ErrorCode.TOOL_UNAVAILABLE


def test_a_model_call_that_nobody_performs_lacks_an_engine_and_costs_nothing() -> None:
    report = unperformed(COMMANDS[commands.CallModel])
    assert isinstance(report, arrivals.ModelFailed)
    assert (report.code, report.was_cut) == (ErrorCode.CONFIG_NO_ENGINE, False)


def test_anything_else_that_nobody_performs_is_broken() -> None:
    report = unperformed(COMMANDS[commands.CallCode])
    assert report == arrivals.CodeFailed("1.0", "there is no performer for CallCode here")


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (ToolSaid("1.1", ToolResult("c", "look", "blue")), "it was performed: blue"),
        (ToolSaid("1.1", ToolResult("c", "look", error="dark")), "it was performed, and its tool says: dark"),
        (ToolBroke("1.1", ErrorCode.TOOL_EXECUTION_FAILED, "oh"), "it failed with TOOL_EXECUTION_FAILED: oh"),
        (ModelSaid("1.1", ModelResult("Blue.")), "the model answered: Blue."),
        (ModelFailed("1.1", ErrorCode.TOOL_EXECUTION_FAILED, "no"), "it failed with TOOL_EXECUTION_FAILED: no"),
        (FilterSaid("1.1", ()), "it was performed"),
    ],
)
def test_what_came_of_an_errand_is_said_in_words(report: Report, words: str) -> None:
    assert report_words(report) == words
