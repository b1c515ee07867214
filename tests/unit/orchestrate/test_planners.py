"""Planners: who makes a plan, what may come of it, and what a plan says of its making."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.work.plan import PLAN_STEP_INVALID, ExecutionPlan, PlanPolicy, PlanTrace, Step, StepType
from remit.orchestrate.patterns.planners import (
    PLAN_INVALID,
    PLAN_MISSING,
    PLAN_POLICY_INVALID,
    PLANNER_FAILED,
    StaticPlanner,
    check_policy,
    given_plan,
    made_plan,
    plan_at_hand,
)
from tests.unit.orchestrate.house import request
from tests.unit.orchestrate.stage import play

ASKED = request("hello")
PLAN = ExecutionPlan((Step("a", "shout"), Step("b", StepType.INFER)))


class Makes:
    """A planner that makes what it was told."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def create_plan(self, request: SystemRequest) -> Any:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


def made_by(planner: Any, given: Any = None) -> ExecutionPlan:
    return plan_at_hand(given, planner, 1_000) or play(made_plan(planner, ASKED, "", 1_000))


@pytest.mark.req("0.35", "0.36")
def test_a_plan_that_is_given_is_taken_as_it_is_and_says_so() -> None:
    plan = made_by(Makes(RuntimeError("nobody should ask")), PLAN)
    assert plan.trace == PlanTrace("direct", "", 1_000, 2)
    assert [step.type for step in plan.steps] == ["shout", "infer"]
    assert all(type(step.type) is str for step in plan.steps)


@pytest.mark.req("0.32", "0.35")
def test_a_trace_keeps_what_its_planner_said_and_is_completed() -> None:
    told = replace(PLAN, trace=PlanTrace("mine", "because", 7, 99))
    assert made_by(Makes(told)).trace == PlanTrace("mine", "because", 7, 2)
    assert made_by(Makes(PLAN)).trace == PlanTrace("Makes", "", 1_000, 2)
    wild = replace(PLAN, trace=PlanTrace("", "x" * 5_000 + "\ud800", -3))
    assert made_by(Makes(wild)).trace == PlanTrace("Makes", "x" * 1_000, 1_000, 2)
    hopes = (("tool_calls", 9), ("moons", 1), ("steps", -1), ("steps", "x"), "steps")
    hopeful = replace(PLAN, trace=PlanTrace("mine", estimate=hopes))  # type: ignore[arg-type]  # a planner's word
    assert made_by(Makes(hopeful)).trace == PlanTrace("mine", "", 1_000, 2, (("tool_calls", 9),))
    wordy = replace(PLAN, trace=PlanTrace("mine", estimate="many"))  # type: ignore[arg-type]  # a planner's word
    assert made_by(Makes(wordy)).trace == PlanTrace("mine", "", 1_000, 2)
    late = replace(PLAN, trace=PlanTrace("mine", "\ud800", 2**60))
    assert made_by(Makes(late)).trace == PlanTrace("mine", "?", 1_000, 2)


@pytest.mark.req("0.32")
def test_a_static_planner_has_one_plan_for_all_or_one_for_each_name() -> None:
    assert made_by(StaticPlanner(PLAN)).trace == PlanTrace("static", "the only plan there is", 1_000, 2)
    with pytest.raises(RequestRejected) as refused:
        made_by(StaticPlanner({}))
    assert (refused.value.code, "there are none" in refused.value.message) == (PLAN_MISSING, True)
    traced = replace(PLAN, trace=PlanTrace("hand", "written by hand"))
    assert StaticPlanner({"x": traced}).create_plan(replace(ASKED, metadata={"plan": "x"})).trace == traced.trace


@pytest.mark.req("0.32")
@pytest.mark.parametrize(
    ("made", "code"),
    [
        (None, PLANNER_FAILED),
        ([Step("a", "shout")], PLANNER_FAILED),
        (OSError("no paper"), PLANNER_FAILED),
        (RequestRejected(PLAN_MISSING, "none for you"), PLAN_MISSING),
        (ExecutionPlan(7), PLAN_INVALID),  # type: ignore[arg-type]
        (ExecutionPlan((None,)), PLAN_STEP_INVALID),  # type: ignore[arg-type]
        (ExecutionPlan((Step("a", "b", timeout_ms="soon"),)), PLAN_STEP_INVALID),  # type: ignore[arg-type]
    ],
)
def test_whatever_else_a_planner_makes_is_refused(made: Any, code: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        made_by(Makes(made))
    assert refused.value.code == code


def test_without_plan_and_planner_there_is_nothing_to_run() -> None:
    with pytest.raises(RequestRejected) as refused:
        made_by(None)
    assert refused.value.code == PLAN_MISSING


def test_steps_alone_are_a_plan() -> None:
    assert given_plan([Step("a", "b")]) == ExecutionPlan((Step("a", "b"),))


@pytest.mark.req("0.33")
@pytest.mark.parametrize(
    "policy",
    [
        PlanPolicy(max_steps=0),
        PlanPolicy(max_steps=1_000_000),
        PlanPolicy(max_steps=2.0),  # type: ignore[arg-type]
        PlanPolicy(timeout_per_step_ms=-1),
        PlanPolicy(timeout_per_step_ms=3_600_001),
        PlanPolicy(allowed_step_types="infer"),  # type: ignore[arg-type]
        PlanPolicy(allowed_step_types=(7,)),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_no_plan_could_be_judged_by_is_refused(policy: PlanPolicy) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_policy(policy)
    assert refused.value.code == PLAN_POLICY_INVALID


def test_the_usual_policies_pass() -> None:
    check_policy(PlanPolicy())
    check_policy(PlanPolicy(3, ("infer", StepType.TOOL), require_linear=False, timeout_per_step_ms=1))
