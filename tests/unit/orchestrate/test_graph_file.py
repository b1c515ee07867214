"""Graph files: the friendly spelling, and what becomes of a wrong one."""

import re
from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.core.run.lifecycle import LifecycleState, LoopState
from remit.core.work.graph import (
    EXITS,
    OWN_OUTCOMES,
    TERMINALS,
    Ask,
    Edge,
    EndingClass,
    Graph,
    JoinRule,
    Node,
    NodeKind,
    Sees,
    TerminalWrite,
    ToolRules,
    graph_version,
)
from remit.kernel.graph.compiled import GraphRefused, compile_graph
from remit.kernel.graph.draw import draw_mermaid
from remit.kernel.graph.graph_checks import GraphFault
from remit.orchestrate.setup.graph_file import read_graph
from tests.text_files import from_text

DOCS = Path(__file__).parents[3] / "docs" / "graphs.md"

ENDS = """
  done: {kind: terminal, ending: success}
  failed: {kind: terminal, ending: failure}
  cancelled: {kind: terminal, ending: cancellation}
  escalated: {kind: terminal, ending: escalation}
  exhausted: {kind: terminal, ending: exhaustion}
exits: {failed: failed, cancelled: cancelled, escalated: escalated, exhausted: exhausted}
"""


def example_in_docs(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def rejection_of(text: str) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        from_text(read_graph, text, "flow.yaml")
    return caught.value


def test_a_file_and_python_build_the_same_graph() -> None:
    text = f"""
name: pair
start: think
nodes:
  think:
    kind: model
    visits_max: 5
    edges:
      - {{outcome: called_tools, when: left_tool_calls > 0, to: act}}
      - done
  act:
    kind: tool
    rules: {{permission: boundary, schema: registry, budget: tool_calls, timeout_ms: 500, verification: result_schema}}
    edges: [think]
{ENDS}"""
    rules = ToolRules("boundary", "registry", "tool_calls", 500, "result_schema")
    expected = Graph(
        "pair",
        "think",
        (Node("think", NodeKind.MODEL, visits_max=5), Node("act", NodeKind.TOOL, rules=rules), *TERMINALS),
        (Edge("think", "act", "called_tools", "left_tool_calls > 0"), Edge("think", "done"), Edge("act", "think")),
        EXITS,
    )
    graph = from_text(read_graph, text, "flow.yaml")
    assert graph == expected
    assert graph_version(graph) == graph_version(expected)
    assert compile_graph(graph).version == graph_version(expected)


def test_every_key_of_a_node_is_read() -> None:
    text = """
name: keys
start: all
nodes:
  all:
    kind: map
    lifecycle: PLAN
    loop_state: architecting
    visits_max: 2
    code: rank
    prompt: Answer the request.
    children: 3
    join: quorum
    lease: {tool_calls: 5, steps: 9}
  end: {kind: terminal, ending: failure, writes: [trace]}
"""
    every, end = from_text(read_graph, text, "flow.yaml").nodes
    assert every == Node(
        "all",
        NodeKind.MAP,
        LifecycleState.PLAN,
        LoopState.ARCHITECTING,
        visits_max=2,
        code="rank",
        prompt="Answer the request.",
        children=3,
        join=JoinRule.QUORUM,
        lease=(("tool_calls", 5), ("steps", 9)),
    )
    assert (end.ending, end.writes) == (EndingClass.FAILURE, (TerminalWrite.TRACE,))


def test_reading_judges_the_spelling_and_leaves_the_meaning_to_the_compiler() -> None:
    graph = from_text(read_graph, "name: lost\nstart: nowhere\nnodes: {here: {kind: model}}\n", "flow.yaml")
    with pytest.raises(GraphRefused) as caught:
        compile_graph(graph)
    assert GraphFault.START_UNKNOWN in {problem.code for problem in caught.value.problems}


def test_a_graph_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "support.yaml"
    path.write_text(example_in_docs("yaml"), encoding="utf-8")
    assert compile_graph(read_graph(path)).graph.name == "support"


def test_a_file_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as caught:
        read_graph(tmp_path / "missing.yaml")
    assert caught.value.code == "FILE_UNREADABLE"


@pytest.mark.parametrize(
    ("text", "code", "line", "says"),
    [
        ("", "FILE_VALUE_INVALID", 0, "the file must be a mapping with the keys name, start, nodes, exits"),
        ("[]", "FILE_VALUE_INVALID", 0, "not a list"),
        ("start: a\nnodes: {}", "FILE_VALUE_INVALID", 0, "missing required field `name`"),
        ("name: 5\nstart: a", "FILE_VALUE_INVALID", 1, "name: Expected `str`, got `int`; found 5"),
        ("name: a\nstart: no", "FILE_VALUE_INVALID", 2, "start: Expected `str`, got `bool`; found False"),
        ("name: a\nstrat: b", "FILE_KEY_UNKNOWN", 2, "unknown key 'strat'; did you mean 'start'?"),
        ("name: a\nzzz: b", "FILE_KEY_UNKNOWN", 2, "known are name, start, nodes, exits"),
        ("name: a\nstart: b\nnodes: [b]", "FILE_VALUE_INVALID", 3, "nodes must be a mapping, not a list"),
        ("name: a\nstart: b\nexits: [b]", "FILE_VALUE_INVALID", 3, "exits must be a mapping"),
        (
            "name: a\nstart: b\nnodes:\n  b: model",
            "FILE_VALUE_INVALID",
            4,
            "nodes.b must be a mapping with the keys kind",
        ),
        ("name: a\nstart: b\nnodes:\n  b: {}", "FILE_VALUE_INVALID", 4, "missing required field `kind`"),
        ("name: a\nstart: b\nnodes:\n  b:\n    kind: modle", "FILE_VALUE_INVALID", 5, "use one of model, tool,"),
        ("name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    visit_max: 3", "FILE_KEY_UNKNOWN", 6, "'visits_max'"),
        (
            "name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    visits_max: many",
            "FILE_VALUE_INVALID",
            6,
            "found 'many'",
        ),
        ("name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    edges: c", "FILE_VALUE_INVALID", 6, "must be a list"),
        ("name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    edges:\n      - 7", "FILE_VALUE_INVALID", 7, "not 7"),
        (
            "name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    edges:\n      - c\n      - {outcome: failed}",
            "FILE_VALUE_INVALID",
            8,
            "nodes.b.edges[1] has no 'to'",
        ),
        (
            "name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    edges:\n      - to: c\n        if: x",
            "FILE_KEY_UNKNOWN",
            8,
            "nodes.b.edges[0] has the unknown key 'if'; known are to, outcome, when",
        ),
        (
            "name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    edges:\n      - to: c\n        when: true",
            "FILE_VALUE_INVALID",
            8,
            "nodes.b.edges[0].when: Expected `str`, got `bool`; found True",
        ),
        (
            "name: a\nstart: b\nnodes:\n  b:\n    kind: tool\n    rules:\n      timeout: 3",
            "FILE_KEY_UNKNOWN",
            7,
            "nodes.b.rules has the unknown key 'timeout'; did you mean 'timeout_ms'?",
        ),
        ("name: a\nstart: b\nnodes:\n  b:\n    kind: tool\n    rules: none", "FILE_VALUE_INVALID", 6, "not 'none'"),
        (
            "name: a\nstart: b\nnodes:\n  b:\n    kind: child\n    lease: 3",
            "FILE_VALUE_INVALID",
            6,
            "nodes.b.lease must",
        ),
        (
            "name: a\nstart: b\nnodes:\n  b:\n    kind: child\n    lease: {tool_calls: -1}",
            "FILE_VALUE_INVALID",
            6,
            "nodes.b.lease: Expected `int` >= 0",
        ),
        ("name: a\nstart: b\nnodes:\n  b:\n    kind: model\n    kind: tool", "FILE_KEY_REPEATED", 6, "line 5"),
    ],
)
def test_a_misspelled_file_is_rejected_with_its_line_and_what_would_be_right(
    text: str, code: str, line: int, says: str
) -> None:
    rejected = rejection_of(text)
    assert rejected.code == code
    assert rejected.details == {"source": "flow.yaml", "line": line}
    assert rejected.message.startswith(f"flow.yaml:{line}: " if line else "flow.yaml: ")
    assert says in rejected.message


def test_the_example_in_the_documentation_compiles_and_its_picture_is_the_one_shown() -> None:
    compiled = compile_graph(from_text(read_graph, example_in_docs("yaml"), "docs/graphs.md"))
    assert example_in_docs("mermaid") == draw_mermaid(compiled)


def test_the_python_example_in_the_documentation_compiles() -> None:
    names: dict[str, Graph] = {}
    exec(example_in_docs("python"), names)
    assert compile_graph(names["graph"]).graph.name == "short"


def test_the_documentation_shows_the_outcomes_of_every_kind() -> None:
    rows = "\n".join(
        f"| {kind} | {', '.join(f'`{outcome}`' for outcome in own)} |" for kind, own in OWN_OUTCOMES.items() if own
    )
    assert rows in DOCS.read_text(encoding="utf-8")


ASKING = (
    """
name: asking
start: think
nodes:
  think:
    kind: model
    ask: {ask}
    edges: [done]
"""
    + ENDS
)


def test_an_ask_holds_what_its_node_wants_of_the_model() -> None:
    ask = "{instruction: Sort it., tools: [look], must_call: true, max_tokens: 9, sees: results}"
    node = from_text(read_graph, ASKING.replace("{ask}", ask), "flow.yaml").nodes[0]
    assert node.ask == Ask("Sort it.", ("look",), must_call=True, max_tokens=9, sees=Sees.RESULTS)


@pytest.mark.parametrize("schema", ["{type: object, required: [a]}", """'{"type":"object","required":["a"]}'"""])
def test_a_schema_is_written_as_a_mapping_or_as_its_text(schema: str) -> None:
    node = from_text(read_graph, ASKING.replace("{ask}", f"{{schema: {schema}}}"), "flow.yaml").nodes[0]
    assert node.ask is not None
    assert node.ask.schema == '{"type":"object","required":["a"]}'


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        ("{sees: results_only}", "everything, request, results"),
        ("{instructions: x}", "did you mean 'instruction'"),
        ("{schema: {maximum: .inf}}", "not finite"),
        ("politely", "must be a mapping"),
    ],
)
def test_a_wrong_ask_is_refused_with_its_place(ask: str, expected: str) -> None:
    rejection = rejection_of(ASKING.replace("{ask}", ask))
    assert expected in rejection.message
    assert "nodes.think.ask" in rejection.message


def test_what_a_node_sees_is_one_of_three() -> None:
    for sees in Sees:
        node = from_text(read_graph, ASKING.replace("{ask}", f"{{sees: {sees}}}"), "flow.yaml").nodes[0]
        assert node.ask is not None
        assert node.ask.sees is sees


@pytest.mark.parametrize("key", ["inner", "model", "feed", "ballot"])
def test_what_patterns_put_into_their_nodes_is_no_key_of_a_file(key: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        from_text(read_graph, f"name: a\nstart: b\nnodes:\n  b: {{kind: child, {key}: x}}\n", "a.yaml")
    assert refused.value.code == "FILE_KEY_UNKNOWN"


def test_a_file_may_say_how_long_a_child_takes() -> None:
    graph = from_text(read_graph, "name: a\nstart: b\nnodes:\n  b: {kind: child, timeout_ms: 500}\n", "a.yaml")
    assert graph.nodes[0].timeout_ms == 500
