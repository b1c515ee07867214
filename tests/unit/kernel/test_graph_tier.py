"""Which tier of autonomy a graph has, and which graph is more autonomous than its boundary allows."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary, BoundaryMode
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import GUARDED, PROFILES, STANDARD
from remit.core.limits.tier import Tier
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.core.work.graph import EXITS, STANDARD_RULES, TERMINALS, Edge, Graph, Node, NodeKind, NodeOutcome, StepInput
from remit.kernel.authority.graph_tier import DEPTH_BOUNDED, TIER_EXCEEDED, check_tier, tier_of
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.scenarios import PARAMETERS, hasty_graph, review_graph
from tests.unit.kernel.builders import in_line, manifest_of

REACHES = [Tier]

LOOK = ToolDefinition("look", "look", PARAMETERS, effect=Effect.READ)
WRITE = ToolDefinition("write", "write", PARAMETERS, effect=Effect.WRITE)
SEND = replace(WRITE, name="send", category=ToolCategory.EMAIL_CALENDAR)
READS, CHANGES = (LOOK,), (LOOK, WRITE)

THINK, AGAIN = Node("think", NodeKind.MODEL), Node("again", NodeKind.MODEL)
ACT = Node("act", NodeKind.TOOL, rules=STANDARD_RULES, visits_max=3)
SORT = Node("sort", NodeKind.DECIDE)

# A boundary under which the model may change things unattended.
FREE = Boundary("free", approval_effects=(), approval_categories=(), budget=Budget(side_effects=3))


def looping(act: Node = ACT) -> Graph:
    edges = (Edge("think", "act", NodeOutcome.CALLED_TOOLS), Edge("act", "think"), Edge("think", "done"))
    return Graph("loop", "think", (THINK, act, *TERMINALS), edges, EXITS)


def nested(inner: Graph | None, kind: NodeKind = NodeKind.CHILD) -> Graph:
    return in_line(Node("part", kind, prompt="do it", inner=inner, children=2 if kind is NodeKind.MAP else 0))


DIRECT, CHAIN = in_line(THINK), in_line(THINK, AGAIN)
CHOOSING = in_line(THINK, SORT, AGAIN, edges=(Edge("sort", "done", condition="answer_bytes > 5"),))


@pytest.mark.req("4.1")
@pytest.mark.req("4.1")
@pytest.mark.parametrize(
    ("graph", "tools", "boundary", "tier"),
    [
        (DIRECT, (), FREE, Tier.DIRECT_RESPONSE),
        (CHAIN, (), FREE, Tier.PROMPT_CHAIN),
        (in_line(THINK, SORT, AGAIN), (), FREE, Tier.DETERMINISTIC_WORKFLOW),
        (CHOOSING, (), FREE, Tier.CONDITIONAL_GRAPH),
        (looping(), CHANGES, STANDARD, Tier.SUPERVISED_LOOP),
        (looping(), CHANGES, FREE, Tier.BOUNDED_LOOP),
        (looping(replace(ACT, visits_max=0)), READS, STANDARD, Tier.OPEN_ENDED_LOOP),
    ],
)
def test_there_is_a_graph_of_each_tier(
    graph: Graph, tools: tuple[ToolDefinition, ...], boundary: Boundary, tier: Tier
) -> None:
    assert tier_of(graph, tools, boundary) is tier


@pytest.mark.parametrize("kind", [NodeKind.RERANK, NodeKind.HUMAN, NodeKind.DECIDE])
def test_a_place_where_no_model_decides_makes_a_workflow(kind: NodeKind) -> None:
    assert tier_of(in_line(THINK, Node("there", kind, prompt="?")), ()) is Tier.DETERMINISTIC_WORKFLOW


def test_a_tool_node_that_no_run_without_tools_comes_to_makes_no_workflow() -> None:
    graph = in_line(THINK, replace(ACT, visits_max=1))
    assert tier_of(graph, ()) is Tier.DIRECT_RESPONSE
    assert tier_of(graph, READS) is Tier.DETERMINISTIC_WORKFLOW


def test_a_call_that_is_a_step_of_a_plan_is_nobodys_choice() -> None:
    step = replace(ACT, feed=StepInput("text"))
    assert tier_of(in_line(step), ()) is Tier.DETERMINISTIC_WORKFLOW
    assert tier_of(looping(step), CHANGES, FREE) is Tier.CONDITIONAL_GRAPH


def test_a_cycle_without_tools_is_a_conditional_graph_and_one_through_a_repair_is_none() -> None:
    check = Node("check", NodeKind.VALIDATE, visits_max=2)
    back = in_line(THINK, check, edges=(Edge("check", "think", NodeOutcome.FAILED),))
    assert tier_of(back, ()) is Tier.CONDITIONAL_GRAPH
    repairing = in_line(THINK, check, edges=(Edge("check", "think", NodeOutcome.REPAIRABLE),))
    assert tier_of(repairing, ()) is Tier.DIRECT_RESPONSE


def test_where_the_passed_answers_have_a_way_of_their_own_any_other_way_out_of_a_check_is_a_repair() -> None:
    check = Node("check", NodeKind.VALIDATE, visits_max=2)

    def checking(passed: Edge) -> Graph:
        edges = (Edge("think", "check"), passed, Edge("check", "think"))
        return Graph("checking", "think", (THINK, check, *TERMINALS), edges, EXITS)

    assert tier_of(checking(Edge("check", "done", NodeOutcome.PASSED)), ()) is Tier.DIRECT_RESPONSE
    assert tier_of(checking(Edge("check", "done", NodeOutcome.FAILED)), ()) is Tier.CONDITIONAL_GRAPH
    picky = Edge("check", "done", NodeOutcome.PASSED, "answer_bytes > 5")
    assert tier_of(checking(picky), ()) is Tier.CONDITIONAL_GRAPH


def test_a_loop_of_tools_that_has_none_is_no_loop() -> None:
    assert tier_of(looping(), ()) is Tier.DIRECT_RESPONSE


def test_a_tool_node_in_a_cycle_without_a_model_is_no_loop_of_choice() -> None:
    edges = (
        Edge("act", "sort", NodeOutcome.SETTLED),
        Edge("sort", "act", condition="visits < 2"),
        Edge("sort", "done"),
    )
    graph = in_line(ACT, SORT, edges=edges)
    assert tier_of(graph, READS) is Tier.CONDITIONAL_GRAPH


@pytest.mark.parametrize(
    ("boundary", "tools", "tier"),
    [
        (FREE, READS, Tier.SUPERVISED_LOOP),
        (replace(FREE, budget=Budget(side_effects=0)), CHANGES, Tier.SUPERVISED_LOOP),
        (replace(FREE, budget=Budget()), CHANGES, Tier.SUPERVISED_LOOP),
        (replace(FREE, approval_effects=(Effect.WRITE,)), CHANGES, Tier.SUPERVISED_LOOP),
        (replace(FREE, approval_categories=(ToolCategory.EMAIL_CALENDAR,)), (SEND,), Tier.SUPERVISED_LOOP),
        (replace(FREE, approval_categories=(ToolCategory.EMAIL_CALENDAR,)), (SEND, WRITE), Tier.BOUNDED_LOOP),
        (replace(FREE, four_eyes=(ToolCategory.EMAIL_CALENDAR,)), (SEND,), Tier.SUPERVISED_LOOP),
        (GUARDED, CHANGES, Tier.BOUNDED_LOOP),
        # A boundary that only records stops no call.
        (Boundary(mode=BoundaryMode.AUDIT), CHANGES, Tier.BOUNDED_LOOP),
        (Boundary(mode=BoundaryMode.AUDIT), READS, Tier.SUPERVISED_LOOP),
    ],
)
def test_a_bounded_loop_is_supervised_when_every_change_is_a_persons_to_allow(
    boundary: Boundary, tools: tuple[ToolDefinition, ...], tier: Tier
) -> None:
    assert tier_of(looping(), tools, boundary) is tier


@pytest.mark.parametrize("kind", [NodeKind.CHILD, NodeKind.MAP])
def test_the_tier_of_a_whole_is_the_highest_of_its_parts(kind: NodeKind) -> None:
    assert tier_of(nested(DIRECT, kind), CHANGES, FREE) is Tier.DIRECT_RESPONSE
    assert tier_of(nested(CHOOSING, kind), CHANGES, FREE) is Tier.CONDITIONAL_GRAPH
    assert tier_of(nested(looping(), kind), CHANGES, FREE) is Tier.BOUNDED_LOOP
    assert tier_of(nested(nested(looping(), kind), kind), CHANGES, FREE) is Tier.BOUNDED_LOOP
    assert tier_of(nested(looping(), kind), ()) is Tier.DIRECT_RESPONSE


@pytest.mark.parametrize("kind", [NodeKind.CHILD, NodeKind.MAP])
def test_a_child_without_a_graph_of_its_own_chats_with_the_tools_of_its_run(kind: NodeKind) -> None:
    assert tier_of(nested(None, kind), CHANGES, FREE) is Tier.BOUNDED_LOOP
    assert tier_of(nested(None, kind), READS, FREE) is Tier.SUPERVISED_LOOP
    assert tier_of(nested(None, kind), ()) is Tier.DIRECT_RESPONSE


def test_a_model_that_may_have_runs_start_runs_is_in_an_open_ended_loop() -> None:
    hire = ToolDefinition("hire", "delegate", PARAMETERS, effect=Effect.NONE, delegates=True)
    deep = replace(FREE, budget=Budget(side_effects=3, depth=DEPTH_BOUNDED + 1))
    shallow = replace(FREE, budget=Budget(side_effects=3, depth=DEPTH_BOUNDED))
    for graph in (looping(), nested(looping()), nested(None)):
        assert tier_of(graph, (LOOK, hire), deep) is Tier.OPEN_ENDED_LOOP
        assert tier_of(graph, (LOOK, hire), shallow) is Tier.SUPERVISED_LOOP
        assert tier_of(graph, (LOOK, hire), FREE) is Tier.SUPERVISED_LOOP
        assert tier_of(graph, CHANGES, deep) is Tier.BOUNDED_LOOP


def test_the_patterns_of_the_house_have_their_tiers() -> None:
    assert tier_of(chat_graph(), ()) is Tier.DIRECT_RESPONSE
    assert tier_of(chat_graph(), READS) is Tier.SUPERVISED_LOOP
    assert tier_of(chat_graph(), CHANGES, FREE) is Tier.BOUNDED_LOOP
    assert tier_of(hasty_graph(), CHANGES, FREE) is Tier.BOUNDED_LOOP
    assert tier_of(review_graph(), ()) is Tier.CONDITIONAL_GRAPH


@pytest.mark.req("4.1")
@pytest.mark.req("4.1")
def test_a_graph_above_the_cap_of_its_boundary_is_turned_away_at_the_door() -> None:
    for tier_max in range(1, 8):
        manifest = manifest_of(graph=looping(), tools=CHANGES, boundary=replace(FREE, tier_max=tier_max))
        if tier_max >= Tier.BOUNDED_LOOP:
            check_tier(manifest)
            continue
        with pytest.raises(RequestRejected) as refused:
            check_tier(manifest)
        assert (refused.value.code, refused.value.details) == (TIER_EXCEEDED, {"tier": 6, "tier_max": tier_max})
        assert "graph loop has tier 6 (bounded agentic loop), and boundary free allows" in refused.value.message


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_every_profile_lets_a_chat_with_tools_through_that_it_supervises(profile: Boundary) -> None:
    check_tier(manifest_of(graph=chat_graph(), tools=READS, boundary=profile))
