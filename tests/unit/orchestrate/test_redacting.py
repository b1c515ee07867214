"""No report holds a secret, and what a model said is told apart from what a tool said."""

from typing import Any

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Happened, ModelFailed
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import replace
from remit.core.run.inference import ModelResult
from remit.orchestrate.executors.reports import (
    CodeProposed,
    ContextSaid,
    ModelSaid,
    Report,
    ToolAccounted,
    ToolBroke,
    ToolSaid,
)
from remit.orchestrate.facts.sealing import OF_TOOLS, received, redacted
from remit.tool.secrets.vault import NO_SECRETS, Vault

VALUE = "token-0123456789"
VAULT = Vault({"TOKEN": VALUE})

OF_A_TOOL: list[tuple[Report, Report]] = [
    (
        ToolSaid(
            "1.1", ToolResult("call", "send", VALUE, metadata={VALUE: [f"a {VALUE}", 1, None]}), f"not {VALUE}", 3
        ),
        ToolSaid(
            "1.1",
            ToolResult("call", "send", "[secret TOKEN]", metadata={"[secret TOKEN]": ["a [secret TOKEN]", 1, None]}),
            "not [secret TOKEN]",
            3,
        ),
    ),
    (
        ToolBroke("1.1", ErrorCode.TOOL_TIMEOUT, f"for {VALUE}!"),
        ToolBroke("1.1", ErrorCode.TOOL_TIMEOUT, "for [secret TOKEN]!"),
    ),
    (ToolAccounted("1.1", Happened.YES, VALUE), ToolAccounted("1.1", Happened.YES, "[secret TOKEN]")),
]


def said(text: str, **arguments: Any) -> ModelSaid:
    return ModelSaid("1.1", ModelResult(content=text, tool_calls=(ToolCall("c", "send", arguments),)))


@pytest.mark.parametrize(("report", "clean"), OF_A_TOOL)
def test_every_text_of_a_report_is_redacted(report: Report, clean: Report) -> None:
    assert redacted(report, VAULT) == clean


@pytest.mark.parametrize(("report", "clean"), OF_A_TOOL)
def test_a_report_of_a_tool_was_redacted_by_its_executor(report: Report, clean: Report) -> None:
    assert isinstance(report, OF_TOOLS)
    assert received(report, VAULT) is report
    assert received(clean, VAULT) is clean


def test_what_a_model_said_is_marked_as_exposed() -> None:
    mark = "[exposed secret TOKEN]"
    marked = said(f"it is {mark}", to=[mark])
    assert received(said(f"it is {VALUE}", to=[VALUE]), VAULT) == replace(marked, exposed="TOKEN")
    # One that stands only in the arguments of a call is told of that call.
    assert received(said("here", to=[VALUE]), VAULT) == said("here", to=[mark])


@pytest.mark.parametrize(
    ("report", "clean"),
    [
        (ContextSaid("1.1", f"found {VALUE}."), ContextSaid("1.1", "found [secret TOKEN].")),
        (
            ModelFailed("1.1", ErrorCode.INFERENCE_ENGINE_ERROR, VALUE),
            ModelFailed("1.1", ErrorCode.INFERENCE_ENGINE_ERROR, "[secret TOKEN]"),
        ),
        (
            CodeProposed("1.1", ToolCall("c", "send", {"a": VALUE})),
            CodeProposed("1.1", ToolCall("c", "send", {"a": "[secret TOKEN]"})),
        ),
    ],
)
def test_reports_of_other_executors_are_redacted_where_they_are_received(report: Report, clean: Report) -> None:
    assert received(report, VAULT) == clean


def test_without_secrets_a_report_is_handed_on_as_it_is() -> None:
    report = said(VALUE)
    assert received(report, NO_SECRETS) is report
    assert received(ContextSaid("1.1", "nothing"), VAULT) == ContextSaid("1.1", "nothing")
