"""The structured graph: one shape, two phases with tools, and a bound on asking again."""

from remit.core.run.contract import OutputContract, SystemRequest
from remit.core.run.messages import user_message
from remit.core.work.graph import NodeKind, graph_version
from remit.kernel.graph.compiled import compile_graph
from remit.orchestrate.patterns.structured_graph import PRODUCE, REASKS_DEFAULT, structured_for, structured_graph

SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}}


def names(**terms: int) -> list[str]:
    return [node.name for node in compile_graph(structured_graph("{}", **terms)).nodes]


def test_without_tools_there_is_one_phase_and_with_them_there_are_two() -> None:
    assert names()[:3] == ["prepare", "produce", "check"]
    assert names(tool_rounds_max=3)[:5] == ["prepare", "think", "act", "produce", "check"]


def test_the_second_phase_says_what_is_wanted_and_offers_no_tools() -> None:
    (produce,) = [node for node in structured_graph("{}", tool_rounds_max=3).nodes if node.name == "produce"]
    assert produce.ask is not None
    assert (produce.ask.instruction, produce.ask.tools, produce.ask.schema) == (PRODUCE, (), "{}")


def test_an_output_is_asked_for_again_as_often_as_its_check_allows() -> None:
    (check,) = [node for node in structured_graph("{}").nodes if node.kind is NodeKind.VALIDATE]
    assert check.visits_max == REASKS_DEFAULT + 1


def test_a_request_has_the_graph_of_its_schema_in_the_order_of_its_author() -> None:
    request = SystemRequest((user_message("x"),), output=OutputContract(SCHEMA, 'root ::= "{}"'))
    graph = structured_for(request, has_tools=False)
    (produce,) = [node for node in graph.nodes if node.name == "produce"]
    assert produce.ask is not None
    assert produce.ask.schema.index('"b"') < produce.ask.schema.index('"a"')
    assert produce.ask.grammar == 'root ::= "{}"'
    assert graph_version(graph) != graph_version(structured_for(request, has_tools=True))
