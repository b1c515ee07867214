"""Defects that were found by reading: each test failed before its repair."""

from remit.core import arrivals, rulings
from remit.core.commands import CallTool
from remit.core.failure import Ending, Refusal
from remit.core.graph import EXITS, Edge, Graph, Node, NodeKind, ToolRules
from remit.orchestrate.patterns.chat import chat_graph
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

RULES = ToolRules("boundary", "registry", "tool_calls", 1000, "result_schema")


def wrapping_up() -> Graph:
    """A chat that asks the model for a last word when it is exhausted."""
    chat = chat_graph(tool_rounds_max=1)
    last = Node("last", NodeKind.MODEL, visits_max=1)
    exits = tuple((name, "last" if name == "exhausted" else target) for name, target in EXITS)
    onward = (Edge("last", "exhausted", "exhausted"), Edge("last", "done"))
    return Graph("wrapping up", chat.start, (*chat.nodes, last), (*chat.edges, *onward), exits)


def test_calls_that_can_no_longer_be_made_are_refused_before_the_model_has_its_last_word() -> None:
    run = Run(manifest_of(graph=wrapping_up()))
    run.proposes(wants("look"))
    run.returns()
    run.proposes(wants("write"))
    assert run.path()[-1] == "last"
    assert [refused.code for refused in run.now(rulings.ToolCallRefused)] == [Refusal.BUDGET_EXHAUSTED]
    assert run.messages()[-1].startswith("Not called. BUDGET_EXHAUSTED")
    run.says("written")
    assert run.state.ending is Ending.BUDGET_EXHAUSTED


def test_a_change_proposed_where_no_tool_is_called_is_no_success() -> None:
    run = Run(manifest_of(graph=in_line(Node("think", NodeKind.MODEL))))
    run.proposes(wants("write"), text="written")
    assert run.state.ending is Ending.PERMISSION_DENIED


def test_calls_are_not_made_again_when_a_tool_node_is_entered_without_a_new_answer() -> None:
    act = Node("act", NodeKind.TOOL, rules=RULES, visits_max=3)
    again = Node("again", NodeKind.TOOL, rules=RULES)
    run = Run(manifest_of(graph=in_line(Node("think", NodeKind.MODEL), act, again)))
    run.proposes(wants("look"))
    run.returns()
    assert len(run.all(CallTool)) == 1
    assert run.path() == ["think", "act", "again", "done"]


def test_calls_proposed_before_a_pause_are_judged_after_the_resume() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.proposes(wants("look"))
    run.take(arrivals.ResumeRequested("ada"))
    assert len(run.open(CallTool)) == 1
