"""Modes: which pattern each of them runs, and which fields of the response it fills."""

from dataclasses import replace as replace_parts

import pytest

from remit.core.failure import Ending
from remit.core.record import replace
from remit.core.run.contract import ConfidenceSource, Mode, OutputContract, SystemRequest, SystemResponse
from remit.core.work.plan import ExecutionPlan, Step, StepType
from remit.kernel.state import pinned
from remit.orchestrate.patterns.handlers import ToolHandler
from remit.orchestrate.setup.kit import STANDARD_TERMS, Kit, Terms
from tests.unit.orchestrate.house import calls, in_memory, look, request, scripted
from tests.unit.orchestrate.stage import play

OUTPUT = OutputContract({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
PLAN = ExecutionPlan((Step("see", StepType.TOOL, {"at": "shelf"}, tool="look"), Step("tell", "tell")))


def answered(asked: SystemRequest, kit: Kit, terms: Terms = STANDARD_TERMS) -> tuple[str, SystemResponse]:
    """The name of the graph that ran, and what came of it."""

    async def story() -> tuple[str, SystemResponse]:
        async with in_memory() as system:
            response = await system.run(asked, kit, terms)
            return pinned(await system.state_of(response.run_id)).graph.name, response

    graph, response = play(story())
    assert response.terminal_code is Ending.SUCCESS
    return graph, response


@pytest.mark.req("0.13", "0.14")
def test_mode_chat_talks_and_tells_content_calls_and_usage() -> None:
    kit = scripted(calls("look", at="shelf"), {"text": "tea"}, tools=(look,))
    graph, response = answered(request(), kit)
    assert (graph, response.content, len(response.tool_calls_made)) == (Mode.CHAT, "tea", 1)
    assert response.token_usage.total_tokens > 0
    assert (response.structured_output, response.confidence, response.validation) == (None, None, None)


@pytest.mark.req("0.13", "0.14")
def test_mode_structured_tells_the_value_and_what_was_checked() -> None:
    asked = replace(request(), mode=Mode.STRUCTURED, output=OUTPUT)
    graph, response = answered(asked, scripted({"text": '{"a":7}'}))
    assert (graph, response.content, response.structured_output) == (Mode.STRUCTURED, '{"a":7}', {"a": 7})
    assert response.validation is not None
    assert response.token_usage.total_tokens > 0


@pytest.mark.req("0.13", "0.14")
def test_mode_plan_tells_what_every_step_gave() -> None:
    kit = replace_parts(
        scripted({"text": "unused"}, tools=(look,)),
        handlers={"tool": ToolHandler([look]), "tell": lambda step: step},
        code={"step:tell": lambda step: {"said": step.input}},
    )
    graph, response = answered(replace(request(), mode=Mode.PLAN), kit, Terms(plan=PLAN))
    assert (graph, response.structured_output) == (
        Mode.PLAN,
        {"see": "seen shelf", "tell": {"said": "seen shelf"}},
    )
    assert (response.content, len(response.tool_calls_made)) == ('{"said":"seen shelf"}', 1)


@pytest.mark.req("0.8", "0.13", "0.14")
def test_mode_redundant_tells_the_value_and_how_surely() -> None:
    asked = replace(request(), mode=Mode.REDUNDANT, output=OUTPUT)
    graph, response = answered(asked, scripted({"text": '{"a":7}'}))
    assert (graph, response.content, response.structured_output) == (Mode.REDUNDANT, '{"a":7}', {"a": 7})
    assert (response.confidence, response.confidence_source) == (1.0, ConfidenceSource.VOTING)
    assert response.token_usage.total_tokens > 0
