from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.limits.boundary import Boundary, boundary_version
from remit.core.limits.budget import STANDARD, Budget, Dimension
from remit.core.limits.tools import Effect, ToolDefinition, tool_version
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, SystemRequest
from remit.core.run.inference import ModelInfo
from remit.core.run.lifecycle import AgentRole
from remit.core.run.manifest import MODEL_TIMEOUT_MS, Manifest, Origin, make_manifest
from remit.core.run.messages import user_message
from remit.core.work.goal import Goal
from remit.core.work.graph import graph_version
from remit.orchestrate.patterns.chat_graph import chat_graph

PLEASE = SystemRequest((user_message("please"),))
WITH_A_NUMBER = {"type": "object", "properties": {"n": {}}}
TOOL = ToolDefinition("look", "look something up", {"type": "object"})


def made(
    *,
    boundary: Boundary = Boundary(name="test"),
    budget: Budget = Budget(),
    timeout_ms: int = 0,
    tools: tuple[ToolDefinition, ...] = (TOOL,),
) -> Manifest:
    return make_manifest(
        run_id="run",
        request=SystemRequest((user_message("please"),), hints=ExecutionHints(timeout_ms=timeout_ms)),
        boundary=boundary,
        graph=chat_graph(),
        models=(ModelInfo("scripted"),),
        budget=budget,
        tools=tools,
        goal=Goal("please"),
    )


def test_each_part_with_versions_carries_its_content_hash() -> None:
    manifest = made()
    assert manifest.versions.boundary == boundary_version(manifest.boundary)
    assert manifest.versions.graph == graph_version(manifest.graph)
    assert manifest.tools[0].version == tool_version(TOOL)


def test_other_tools_make_another_version_of_the_tools() -> None:
    other = replace(TOOL, description="look elsewhere")
    assert made().versions.tools != made(tools=(other,)).versions.tools
    assert made().versions.tools == made().versions.tools


def test_a_version_is_the_hash_of_the_content_whatever_a_tool_claims() -> None:
    assert made(tools=(replace(TOOL, version="forged"),)).tools[0].version == tool_version(TOOL)


def test_parts_that_no_run_could_be_judged_by_are_refused() -> None:
    for wrong in (
        {"tools": (TOOL, TOOL)},
        {"budget": Budget(tool_calls=-1)},
        {"tools": (replace(TOOL, cost_microusd=-5),)},
        {"tools": (replace(TOOL, delegates=True, effect=Effect.WRITE),)},
    ):
        with pytest.raises(RequestRejected):
            made(**wrong)
    with pytest.raises(RequestRejected):
        make_manifest(run_id="", request=PLEASE, boundary=Boundary(), graph=chat_graph(), models=(ModelInfo("m"),))


@pytest.mark.parametrize("role", ["alternative", "fallback"])
def test_a_tool_may_not_name_another_that_is_not_registered(role: str) -> None:
    named = replace(TOOL, **{role: "other"})
    with pytest.raises(RequestRejected, match=f"tool look names 'other' as its {role}, which is not registered"):
        made(tools=(named,))
    assert made(tools=(named, replace(TOOL, name="other"))).tools[0].name == "look"


@pytest.mark.parametrize(
    ("alike", "key", "value"),
    [
        ({}, "parameters", WITH_A_NUMBER),
        ({}, "effect", Effect.NONE),
        ({"parameters": WITH_A_NUMBER}, "control_args", (("n", "number"),)),
        ({"effect": Effect.NONE}, "delegates", True),
        ({"effect": Effect.NONE}, "asks_under", Ending.MISSING_INFO),
    ],
)
def test_a_fallback_is_called_in_the_same_way_and_does_the_same(alike: dict[str, Any], key: str, value: object) -> None:
    first = replace(TOOL, fallback="other", **alike)
    other = replace(TOOL, name="other", **alike, **{key: value})
    with pytest.raises(RequestRejected, match=f"tool look has other as its fallback, and their {key} differ"):
        made(tools=(first, other))
    made(tools=(first, replace(TOOL, name="other", **alike)))
    made(tools=(replace(first, fallback="", alternative="other"), other))


def test_caps_are_the_smallest_of_boundary_budget_and_the_wished_timeout() -> None:
    boundary = Boundary(budget=Budget(tool_calls=9, wall_clock_ms=50_000))
    caps = made(boundary=boundary, budget=Budget(tool_calls=4), timeout_ms=7_000).caps
    assert (caps[Dimension.TOOL_CALLS], caps[Dimension.WALL_CLOCK_MS]) == (4, 7_000)


@pytest.mark.req("0.10")
def test_a_timeout_of_zero_leaves_the_boundary_its_clock() -> None:
    assert made(timeout_ms=0).caps[Dimension.WALL_CLOCK_MS] == STANDARD.wall_clock_ms


def test_a_root_run_has_no_depth_no_parent_and_no_deadline_from_above() -> None:
    manifest = made()
    assert (manifest.depth, manifest.parent, manifest.forked_from, manifest.deadline_at_ms) == (0, None, None, 0)
    assert manifest.role is AgentRole.GENERAL


def test_an_origin_names_the_run_the_command_and_the_turn() -> None:
    assert Origin("run", "3.1", 7) == Origin(run_id="run", command_id="3.1", seq=7)


def test_one_model_call_may_not_take_all_of_a_standard_clock() -> None:
    assert STANDARD.wall_clock_ms is not None
    assert STANDARD.wall_clock_ms > MODEL_TIMEOUT_MS


def test_a_run_without_a_model_is_turned_away_at_the_door() -> None:
    with pytest.raises(RequestRejected) as rejected:
        make_manifest(
            run_id="run",
            request=SystemRequest((user_message("hello"),)),
            boundary=Boundary(),
            graph=chat_graph(),
            models=(),
        )
    assert rejected.value.code == ErrorCode.CONFIG_NO_ENGINE


def test_caps_of_fewer_dimensions_are_padded_with_those_of_the_boundary() -> None:
    boundary = Boundary(name="b", budget=Budget(child_runs=3))
    whole = made(boundary=boundary)
    fewer = replace(whole, caps=whole.caps[: Dimension.CHILD_RUNS])
    assert fewer.caps == whole.caps
    assert fewer.caps[Dimension.CHILD_RUNS :] == (3, STANDARD.human_reviews)
