"""Plans are checked as a whole against their policy, before any step runs."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.work.graph import NAME_CHARS_MAX
from remit.core.work.plan import (
    PLAN_EMPTY,
    PLAN_NOT_LINEAR,
    PLAN_SOURCE_UNKNOWN,
    PLAN_STEP_INVALID,
    PLAN_STEP_TYPE_REFUSED,
    PLAN_TOO_LONG,
    RESERVED_NAMES,
    STEP_RETRIES_MAX,
    STEP_TIMEOUT_MS_MAX,
    STEPS_MAX_DEFAULT,
    ExecutionPlan,
    PlanPolicy,
    PlanTrace,
    Step,
    StepType,
    check_plan,
)

REACHES = [StepType]

KNOWN = tuple(StepType)
BRANCHING = PlanPolicy(require_linear=False)


def infer(name: str, **fields: object) -> Step:
    return Step(name, StepType.INFER, **fields)  # type: ignore[arg-type]


def refused(*steps: Step, policy: PlanPolicy = PlanPolicy()) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        check_plan(ExecutionPlan(steps), policy, KNOWN)
    return caught.value


@pytest.mark.parametrize("kind", StepType)
def test_every_type_with_a_handler_may_be_in_a_plan(kind: StepType) -> None:
    check_plan(ExecutionPlan((Step("a", kind),)), PlanPolicy(), KNOWN)


def test_a_custom_type_may_be_in_a_plan_when_it_has_a_handler() -> None:
    check_plan(ExecutionPlan((Step("a", "shout"),)), PlanPolicy(), (*KNOWN, "shout"))


def test_a_plan_without_steps_is_refused() -> None:
    assert refused().code == PLAN_EMPTY


def test_a_plan_may_be_as_long_as_its_policy_says_and_no_longer() -> None:
    steps = tuple(infer(f"step {n}") for n in range(STEPS_MAX_DEFAULT))
    check_plan(ExecutionPlan(steps), PlanPolicy(), KNOWN)
    rejected = refused(*steps, infer("one more"))
    details = {"steps": STEPS_MAX_DEFAULT + 1, "limit": STEPS_MAX_DEFAULT}
    assert (rejected.code, rejected.details) == (PLAN_TOO_LONG, details)
    assert f"max_steps={STEPS_MAX_DEFAULT}" in rejected.message


def test_a_shorter_limit_is_kept() -> None:
    assert refused(infer("a"), infer("b"), policy=PlanPolicy(max_steps=1)).code == PLAN_TOO_LONG


@pytest.mark.parametrize("timeout_ms", [-1, STEP_TIMEOUT_MS_MAX + 1])
def test_a_policy_with_an_impossible_time_is_refused(timeout_ms: int) -> None:
    rejected = refused(infer("a"), policy=PlanPolicy(timeout_per_step_ms=timeout_ms))
    assert rejected.code == PLAN_STEP_INVALID
    assert f"timeout_per_step_ms={timeout_ms}" in rejected.message


@pytest.mark.parametrize("timeout_ms", [0, STEP_TIMEOUT_MS_MAX])
def test_a_step_may_take_up_to_an_hour(timeout_ms: int) -> None:
    policy = PlanPolicy(timeout_per_step_ms=timeout_ms)
    check_plan(ExecutionPlan((infer("a", timeout_ms=timeout_ms),)), policy, KNOWN)


@pytest.mark.parametrize("name", ["", " padded", "padded ", "a:b", "x" * (NAME_CHARS_MAX + 1), *RESERVED_NAMES])
def test_a_name_that_could_not_be_a_node_of_the_plan_is_refused(name: str) -> None:
    rejected = refused(infer(name))
    assert (rejected.code, rejected.details) == (PLAN_STEP_INVALID, {"step": name[:80]})


def test_the_longest_name_is_allowed() -> None:
    check_plan(ExecutionPlan((infer("x" * NAME_CHARS_MAX),)), PlanPolicy(), KNOWN)


def test_two_steps_of_one_name_are_refused() -> None:
    assert "is there twice" in refused(infer("a"), infer("a")).message


@pytest.mark.parametrize("retries", [-1, STEP_RETRIES_MAX + 1])
def test_retries_have_a_limit(retries: int) -> None:
    rejected = refused(infer("a", retries=retries))
    assert (rejected.code, f"retries={retries}" in rejected.message) == (PLAN_STEP_INVALID, True)


@pytest.mark.parametrize("timeout_ms", [-1, STEP_TIMEOUT_MS_MAX + 1])
def test_the_time_of_a_step_has_a_limit(timeout_ms: int) -> None:
    rejected = refused(infer("a", timeout_ms=timeout_ms))
    assert (rejected.code, f"timeout_ms={timeout_ms}" in rejected.message) == (PLAN_STEP_INVALID, True)


def test_a_type_that_the_policy_does_not_allow_is_refused() -> None:
    policy = PlanPolicy(allowed_step_types=("infer", "rerank"))
    check_plan(ExecutionPlan((infer("a"),)), policy, KNOWN)
    rejected = refused(infer("a"), Step("b", "tool"), policy=policy)
    assert rejected.code == PLAN_STEP_TYPE_REFUSED
    assert "the policy allows infer, rerank" in rejected.message


def test_a_type_without_a_handler_is_refused_with_those_that_have_one() -> None:
    rejected = refused(Step("a", "shout"))
    assert (rejected.code, rejected.details) == (PLAN_STEP_TYPE_REFUSED, {"step": "a", "type": "shout"})
    assert "infer, rerank, retrieve, tool, validate" in rejected.message


def test_without_any_handler_no_type_is_known() -> None:
    with pytest.raises(RequestRejected, match="there are handlers for none"):
        check_plan(ExecutionPlan((infer("a"),)), PlanPolicy(), ())


def test_a_source_and_an_input_contradict_each_other() -> None:
    assert "an input and a source" in refused(infer("a"), infer("b", input="x", source="a")).message


def test_a_source_must_be_an_earlier_step() -> None:
    assert refused(infer("a", source="b"), infer("b"), policy=BRANCHING).code == PLAN_SOURCE_UNKNOWN
    assert refused(infer("a", source="a"), policy=BRANCHING).code == PLAN_SOURCE_UNKNOWN


def test_a_linear_plan_takes_only_from_the_step_before() -> None:
    check_plan(ExecutionPlan((infer("a"), infer("b", source="a"))), PlanPolicy(), KNOWN)
    assert refused(infer("a"), infer("b"), infer("c", source="a")).code == PLAN_NOT_LINEAR


def test_a_plan_that_may_branch_takes_from_any_earlier_step() -> None:
    check_plan(ExecutionPlan((infer("a"), infer("b"), infer("c", source="a"))), BRANCHING, KNOWN)


def test_a_trace_says_who_made_the_plan_and_why() -> None:
    trace = PlanTrace("planner", "because", 7, 1)
    assert ExecutionPlan((infer("a"),), trace).trace == trace


def test_a_step_that_is_done_has_its_output() -> None:
    assert infer("a").with_output("words") == infer("a", output="words")
