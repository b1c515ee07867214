"""The graph of a plan: a node for every step, bounds on every way back, and a form that compiles."""

from typing import Any

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.lifecycle import LifecycleState
from remit.core.schema.schema_source import SCHEMA_SOURCE_INVALID
from remit.core.work.graph import Graph, Node, NodeKind
from remit.core.work.plan import RUN_THE_PLAN, ExecutionPlan, PlanPolicy, RerankInput, Step
from remit.core.work.values import ValueKind
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.graph.compiled import compile_graph
from remit.orchestrate.patterns.handlers import (
    Handler,
    InferHandler,
    RerankHandler,
    RetrieveHandler,
    ToolHandler,
    ValidateHandler,
)
from remit.orchestrate.patterns.plan_graph import finished_steps, plan_graph
from tests.unit.orchestrate.house import look

HANDLERS: dict[str, Handler] = {
    "infer": InferHandler(ScriptedEngine([{"text": "x"}]), tools=[look]),
    "tool": ToolHandler([look]),
    "retrieve": RetrieveHandler(lambda query: []),
    "rerank": RerankHandler(lambda query, found: found),
    "validate": ValidateHandler(lambda text: None),
    "code": lambda step: step,
}
OBJECT = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
EVERYTHING = (
    Step("find", "retrieve", "q"),
    Step("order", "rerank"),
    Step("think", "infer", schema=OBJECT, timeout_ms=5_000),
    Step("act", "tool", tool="look", retries=1),
    Step("tell", "infer", retries=1),
    Step("look", "validate", retries=2),
    Step("end", "code", retries=1),
)


def graph_of(*steps: Step, policy: PlanPolicy = PlanPolicy(), prompt: str = "") -> Graph:
    return plan_graph(ExecutionPlan(steps), policy, HANDLERS, prompt)


def node_of(graph: Graph, name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name)


def test_a_plan_with_every_type_of_step_compiles() -> None:
    graph = graph_of(*EVERYTHING)
    compile_graph(graph)
    kinds = {node.name: node.kind for node in graph.nodes if node.feed is not None}
    assert kinds == {
        "find": NodeKind.RETRIEVE,
        "order": NodeKind.RERANK,
        "think": NodeKind.CHILD,
        "act:arguments": NodeKind.DECIDE,
        "act": NodeKind.TOOL,
        "tell": NodeKind.CHILD,
        "look": NodeKind.VALIDATE,
        "end": NodeKind.DECIDE,
    }


@pytest.mark.req("0.21")
def test_every_step_has_its_place_in_the_lifecycle() -> None:
    graph = graph_of(*EVERYTHING)
    states = [node.lifecycle for node in graph.nodes if node.kind is not NodeKind.TERMINAL]
    assert states[:2] == [LifecycleState.PLAN, LifecycleState.PREPARE]
    assert set(states[2:]) == {LifecycleState.EXECUTE, LifecycleState.VALIDATE}
    assert node_of(graph, "look").lifecycle is LifecycleState.VALIDATE


def test_a_step_may_be_entered_once_again_for_each_retry_and_when_it_is_sent_back() -> None:
    graph = graph_of(*EVERYTHING)
    bounds = {name: node_of(graph, name).visits_max for name in ("find", "act", "tell", "look", "end")}
    assert bounds == {"find": 1, "act": 2, "tell": 4, "look": 3, "end": 2}


@pytest.mark.req("0.34")
def test_the_least_of_the_limits_on_the_time_of_a_step_holds() -> None:
    steps = (Step("a", "infer", "x", timeout_ms=9), Step("b", "infer"), Step("c", "tool", {"at": "x"}, tool="look"))
    graph = graph_of(*steps, policy=PlanPolicy(timeout_per_step_ms=7))
    assert [node_of(graph, name).timeout_ms for name in "ab"] == [7, 7]
    rules = node_of(graph, "c").rules
    assert rules is not None
    assert rules.timeout_ms == 7
    assert node_of(graph_of(steps[0]), "a").timeout_ms == 9


@pytest.mark.req("2.15")
def test_a_step_without_input_is_fed_by_the_one_before_and_the_first_by_the_prompt() -> None:
    graph = graph_of(Step("a", "code"), Step("b", "code"), prompt="hello")
    first, second = node_of(graph, "a").feed, node_of(graph, "b").feed
    assert first is not None
    assert second is not None
    assert (first.kind, first.value, first.source) == (ValueKind.TEXT, "hello", "")
    assert (second.kind, second.value, second.source) == ("", "", "a")


@pytest.mark.parametrize("prompt", ["", RUN_THE_PLAN])
def test_without_a_prompt_a_first_function_gets_nothing_and_anything_else_is_refused(prompt: str) -> None:
    feed = node_of(graph_of(Step("a", "code"), prompt=prompt), "a").feed
    assert feed is not None
    assert (feed.kind, feed.value) == (ValueKind.JSON, "null")
    with pytest.raises(RequestRejected, match="give it an input, or the plan a prompt"):
        graph_of(Step("a", "retrieve"), prompt=prompt)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            (Step("a", "infer", "x"), Step("b", "rerank")),
            "step 'b' of type 'rerank' takes candidates and step 'a' gives",
        ),
        ((Step("a", "rerank", "x"),), "takes candidates and its input is text"),
        ((Step("a", "infer", "x", schema={"type": "array"}), Step("b", "tool", tool="look")), "gives json"),
        ((Step("a", "tool", {}, tool="look"), Step("b", "tool", tool="look")), "gives result"),
        ((Step("a", "rerank", RerankInput("q")), Step("b", "validate")), "takes text and step 'a' gives candidates"),
        ((Step("a", "validate", "x"), Step("b", "rerank")), "gives text"),
    ],
)
def test_kinds_that_are_known_and_do_not_fit_are_refused(steps: tuple[Step, ...], message: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        graph_of(*steps)
    assert refused.value.code == ErrorCode.ORCHESTRATION_STEP_MISMATCH
    assert message in refused.value.message


@pytest.mark.parametrize("schema", [True, 7])
def test_a_schema_that_says_nothing_is_refused(schema: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        graph_of(Step("a", "infer", "x", schema=schema))
    assert refused.value.code == SCHEMA_SOURCE_INVALID


def test_an_infer_step_has_the_tools_of_its_handler_and_two_phases_where_it_has_a_schema() -> None:
    graph = graph_of(Step("a", "infer", "x"), Step("b", "infer", schema=OBJECT))
    chat, structured = node_of(graph, "a"), node_of(graph, "b")
    assert chat.inner is not None
    assert structured.inner is not None
    assert (chat.inner.name, structured.inner.name) == ("chat", "structured")
    assert chat.ask is not None
    assert chat.ask.tools == ("look",)
    assert [node.name for node in structured.inner.nodes[:3]] == ["think", "act", "produce"]


def test_finished_steps_come_in_the_order_of_the_plan_with_what_they_worked_on() -> None:
    graph = graph_of(Step("a", "code", {"at": "x"}), Step("b", "tool", tool="look"), Step("c", "code"))
    steps = finished_steps(graph, {"b": "seen", "a": {"at": "y"}})
    assert steps == (Step("a", "code", {"at": "x"}, {"at": "y"}), Step("b", "tool", {"at": "y"}, "seen"))


def test_what_is_sent_back_goes_to_the_step_that_made_it_and_not_to_the_one_before() -> None:
    steps = (
        Step("draft", "infer", "q"),
        Step("other", "infer", "r"),
        Step("short", "code", source="draft"),
        Step("look", "validate", source="short", retries=1),
    )
    graph = plan_graph(ExecutionPlan(steps), PlanPolicy(require_linear=False), HANDLERS)
    assert [edge.target for edge in graph.edges if edge.outcome == "repairable"] == ["draft"]


def test_what_the_plan_itself_says_cannot_be_sent_back() -> None:
    steps = (Step("draft", "infer", "q"), Step("look", "validate", "a text of the plan's own", retries=1))
    with pytest.raises(RequestRejected) as refused:
        graph_of(*steps)
    assert "no model did a step before it that could mend it" in refused.value.message
