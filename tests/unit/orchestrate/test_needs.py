"""What a run needs: code, models and tools that its manifest names, wherever in its graphs, and nothing of the house's own."""

from collections.abc import Sequence
from typing import Any

import pytest

from remit.core.failure import Ending, RequestRejected
from remit.core.limits.profiles import STANDARD
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import EXITS, TERMINALS, Ask, Graph, Node, NodeKind
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.loop.needs import RUN_PARTS_MISSING, check_needs, missing_parts
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.orchestrate.setup.kit import Kit
from remit.tool.declare.decorator import Tool
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import helper, keep, look

ASKED = SystemRequest((user_message("please"),), request_id="r", trace_id="t")
ENGINE = ScriptedEngine([{"text": "hello"}])
MODELS = (ModelInfo("m", context_window=1000), ModelInfo("n", context_window=1000))
NOTHING = Kit({})


def graph(*nodes: Node) -> Graph:
    """These nodes, in no order: they are not run."""
    return Graph("g", nodes[0].name, (*nodes, *TERMINALS), (), EXITS)


def started(asks: Graph, given: Sequence[Tool] = (), goal: Goal | None = None, **said: Any) -> Manifest:
    """What a run of a graph is started with, whose first model is called `m`."""
    manifest = make_manifest(
        run_id="run",
        request=replace(ASKED, **said),
        boundary=STANDARD,
        graph=chat_graph(),
        models=MODELS,
        tools=Registry(given).definitions,
        goal=goal,
    )
    return replace(manifest, graph=asks)


CODE = Node("c", NodeKind.VALIDATE, code="step:c")
CALL = Node("t", NodeKind.DECIDE, code="call:keep")
MODEL = Node("m", NodeKind.MODEL)
OFFER = Node("o", NodeKind.MODEL, ask=Ask(tools=("keep",)))
CHAT = Node("h", NodeKind.CHILD)
INNER = Node("i", NodeKind.CHILD, inner=graph(CODE, MODEL), model="n")
DEEP = Node("d", NodeKind.MAP, inner=graph(INNER, Node("last", NodeKind.MODEL)))


@pytest.mark.parametrize(
    ("nodes", "missing"),
    [
        ((CODE,), ["code 'step:c'"]),
        ((CALL,), ["tool 'keep'"]),
        ((MODEL,), ["model 'm'"]),
        ((OFFER,), ["model 'm'", "tool 'keep'"]),
        ((CHAT,), ["model 'm'"]),
        ((INNER,), ["code 'step:c'", "model 'n'"]),
        # The child of a child asks the model of its own node; a node that names none asks the first.
        ((DEEP,), ["code 'step:c'", "model 'n'", "model 'm'"]),
        ((CODE, INNER, CALL), ["code 'step:c'", "model 'n'", "tool 'keep'"]),
        ((Node("r", NodeKind.RETRIEVE),), []),
    ],
)
def test_whatever_a_graph_names_and_a_kit_lacks_is_missing_once(nodes: tuple[Node, ...], missing: list[str]) -> None:
    manifest = started(graph(*nodes))
    assert list(missing_parts(manifest, NOTHING)) == missing
    full = Kit({"m": ENGINE, "n": ENGINE}, Registry([keep]), {"step:c": str})
    assert missing_parts(manifest, full) == ()


@pytest.mark.parametrize(
    ("voting", "missing"), [("majority", ()), ("unanimity", ()), ("custom", ("code 'vote:custom'",))]
)
def test_a_vote_of_the_house_is_never_missing_and_any_other_is(voting: str, missing: tuple[str, ...]) -> None:
    manifest = started(redundant_graph('{"type":"object"}', "", Redundancy(3, voting)))
    assert missing_parts(manifest, Kit({"m": ENGINE})) == missing


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ({}, ("tool 'keep'", "tool 'look'")),
        ({"tools": ("look",)}, ("tool 'look'",)),
        ({"tool_choice": ToolChoice(ToolChoiceMode.NONE)}, ()),
    ],
)
def test_what_a_model_is_offered_is_needed_and_a_tool_that_delegates_is_no_code(
    said: dict[str, Any], missing: tuple[str, ...]
) -> None:
    manifest = started(chat_graph(), (keep, look, helper), **said)
    assert missing_parts(manifest, Kit({"m": ENGINE})) == missing
    assert missing_parts(manifest, Kit({"m": ENGINE}, Registry([keep, look]))) == ()


def test_a_run_that_offers_its_tools_to_nobody_does_not_need_them() -> None:
    manifest = started(graph(CODE), (keep,))
    assert missing_parts(manifest, Kit({}, code={"step:c": str})) == ()


def test_what_judges_a_goal_is_needed() -> None:
    criteria = (Criterion("desk", validator="rules:desk"), Criterion("kind", judge="Is it kind?"))
    manifest = started(chat_graph(), goal=Goal("be kind", criteria, judge_model="n"))
    assert missing_parts(manifest, Kit({"m": ENGINE})) == ("code 'rules:desk'", "model 'n'")
    assert missing_parts(manifest, Kit({"m": ENGINE, "n": ENGINE}, code={"rules:desk": str})) == ()
    guarded = started(chat_graph(), goal=Goal("be brief", (Criterion("brief", guard="true"),)))
    assert missing_parts(guarded, Kit({"m": ENGINE})) == ()


def test_who_lacks_something_is_told_what_and_the_way_out_and_an_ended_run_needs_nothing() -> None:
    state = RunState(run_id="run", manifest=started(graph(CODE)))
    with pytest.raises(RequestRejected) as refused:
        check_needs(state, NOTHING)
    assert refused.value.code == RUN_PARTS_MISSING
    assert refused.value.message == (
        "run run needs what is not here: code 'step:c'; "
        "resume it from the program that started it, or with the same parts"
    )
    assert refused.value.details == {"run_id": "run", "missing": ["code 'step:c'"]}
    state.end.ending = Ending.SUCCESS
    check_needs(state, NOTHING)
