"""Plans: typed steps in an order, what may be in one, and who made it.

Rule 1: a plan is data. What its steps do is the business of handlers; here a step is a name, a type and an input.
Rule 2: a step without an input works on the output of the step before it; `source` names another one instead.
Rule 3: a plan is checked against its policy as a whole, before any step runs.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.record import Record, replace
from remit.core.run.messages import Message
from remit.core.run.usage import TokenUsage
from remit.core.work.candidate import Candidate
from remit.core.work.graph import NAME_CHARS_MAX

PLAN_EMPTY = "PLAN_EMPTY"
PLAN_TOO_LONG = "PLAN_TOO_LONG"
PLAN_STEP_INVALID = "PLAN_STEP_INVALID"
PLAN_STEP_TYPE_REFUSED = "PLAN_STEP_TYPE_REFUSED"
PLAN_NOT_LINEAR = "PLAN_NOT_LINEAR"
PLAN_SOURCE_UNKNOWN = "PLAN_SOURCE_UNKNOWN"

# A step takes one or two of the 100 steps that a standard budget has, and the plan itself three: so many always fit.
STEPS_MAX_DEFAULT = 48
# A step that failed ten times will not succeed the eleventh.
STEP_RETRIES_MAX = 10
# An hour, as for tools.
STEP_TIMEOUT_MS_MAX = 3_600_000
# The kind of what a planner says to the model of a run that follows no steps: words, shown once.
PLAN_SAID = "plan"
# The node that asks the model of a planner, where a plan is made inside the run.
ASK_PLANNER = "plan:ask"
# What a caller says who leaves everything to the plan. It is nothing that a first step could work on.
RUN_THE_PLAN = "Run the plan."
# What stands between the parts of names that belong to the plan's graph itself.
MARK = ":"


class StepType(StrEnum):
    """The types that have handlers of their own; any other name is a custom type."""

    INFER = "infer"
    TOOL = "tool"
    RETRIEVE = "retrieve"
    RERANK = "rerank"
    VALIDATE = "validate"


class RerankInput(Record):
    """Candidates and the question that they are candidates for."""

    query: str
    candidates: tuple[Candidate, ...] = ()


class ContextFor(Record):
    """Messages with evidence, and the question that they are evidence for."""

    query: str
    messages: tuple[Message, ...] = ()


class Step(Record):
    """One unit of work. `input` overrides what the step before gave; `output` is set when the step is done.

    `tool` names the tool that a tool step calls. For an infer step, `instruction` tells its model what to do and
    `schema` what its answer must look like: a JSON Schema, or a type that stands for one. A validate step with retries
    sends what it objects to back to the step before it that a model did; any other step with retries is tried again
    when it fails. The input of an infer step may be a ModelRequest. `usage` is what the models of a finished step took.
    """

    name: str
    type: str
    input: Any = None
    output: Any = None
    source: str = ""
    tool: str = ""
    instruction: str = ""
    schema: Any = None
    retries: int = 0
    timeout_ms: int = 0
    usage: TokenUsage = TokenUsage()

    def with_output(self, output: Any) -> "Step":
        """The step as a handler returns it: done, with what it gave."""
        return replace(self, output=output)


class PlanTrace(Record):
    """Who made a plan, why these steps, when, and how many they are."""

    planner_id: str
    rationale: str = ""
    created_at_ms: int = 0
    step_count: int = 0
    # What its maker, which may be a model, thinks that it takes at most, by counters of the budget. It is shown where it
    # is more than what is known, and stops no run.
    estimate: tuple[tuple[str, int], ...] = ()


class ExecutionPlan(Record):
    """Steps in their order, and where the plan comes from."""

    steps: tuple[Step, ...]
    trace: PlanTrace | None = None


class PlanPolicy(Record):
    """What a plan may be. An empty list of types allows all; 0 sets no limit of its own on the time of a step."""

    max_steps: int = STEPS_MAX_DEFAULT
    allowed_step_types: tuple[str, ...] = ()
    require_linear: bool = True
    timeout_per_step_ms: int = 0


def check_plan(plan: ExecutionPlan, policy: PlanPolicy, known_types: Collection[str]) -> None:
    """Refuse a plan that its policy or its own form forbids, before anything of it runs."""
    if not plan.steps:
        raise RequestRejected(PLAN_EMPTY, "the plan has no steps; give it at least one")
    if len(plan.steps) > policy.max_steps:
        message = f"the plan has {len(plan.steps)} steps, max_steps={policy.max_steps}; split it, or raise the limit"
        raise RequestRejected(PLAN_TOO_LONG, message, {"steps": len(plan.steps), "limit": policy.max_steps})
    if not 0 <= policy.timeout_per_step_ms <= STEP_TIMEOUT_MS_MAX:
        message = f"timeout_per_step_ms={policy.timeout_per_step_ms} is outside 0 to {STEP_TIMEOUT_MS_MAX}"
        raise RequestRejected(PLAN_STEP_INVALID, message)
    seen: list[str] = []
    for step in plan.steps:
        _check_step(step, seen)
        _check_type(step, policy, known_types)
        _check_source(step, policy, seen)
        seen.append(step.name)


def _check_step(step: Step, seen: Collection[str]) -> None:
    shown = f"{step.name[:80]!r}"
    if not 0 < len(step.name) <= NAME_CHARS_MAX or MARK in step.name or step.name != step.name.strip():
        reason = f"has a name that is empty, longer than {NAME_CHARS_MAX} characters, padded, or has a {MARK!r} in it"
    elif step.name in RESERVED_NAMES:
        reason = f"is called like a node of every plan; the names {', '.join(RESERVED_NAMES)} are taken"
    elif step.name in seen:
        reason = "is there twice; rename one of them"
    elif not 0 <= step.retries <= STEP_RETRIES_MAX:
        reason = f"has retries={step.retries}, which is outside 0 to {STEP_RETRIES_MAX}"
    elif not 0 <= step.timeout_ms <= STEP_TIMEOUT_MS_MAX:
        reason = f"has timeout_ms={step.timeout_ms}, which is outside 0 to {STEP_TIMEOUT_MS_MAX}"
    else:
        return
    raise RequestRejected(PLAN_STEP_INVALID, f"step {shown} {reason}", {"step": step.name[:80]})


# Nodes that every plan's graph has beside its steps.
RESERVED_NAMES = ("plan", "prepare", "check", "done", "failed", "cancelled", "escalated", "exhausted")


def _check_type(step: Step, policy: PlanPolicy, known_types: Collection[str]) -> None:
    allowed = policy.allowed_step_types
    if allowed and step.type not in allowed:
        message = f"step {step.name!r} is of type {step.type[:80]!r}; the policy allows {', '.join(allowed)}"
        raise RequestRejected(PLAN_STEP_TYPE_REFUSED, message, {"step": step.name, "type": step.type[:80]})
    if step.type not in known_types:
        known = ", ".join(sorted(known_types)) or "none"
        message = (
            f"step {step.name!r} is of type {step.type[:80]!r}, which has no handler; there are handlers for {known}"
        )
        raise RequestRejected(PLAN_STEP_TYPE_REFUSED, message, {"step": step.name, "type": step.type[:80]})


def _check_source(step: Step, policy: PlanPolicy, seen: list[str]) -> None:
    if not step.source:
        return
    if step.input is not None:
        message = f"step {step.name!r} has an input and a source; leave out one of them"
        raise RequestRejected(PLAN_STEP_INVALID, message, {"step": step.name})
    if step.source not in seen:
        message = f"step {step.name!r} takes its input from {step.source[:80]!r}, which is no earlier step"
        raise RequestRejected(PLAN_SOURCE_UNKNOWN, message, {"step": step.name, "source": step.source[:80]})
    if policy.require_linear and step.source != seen[-1]:
        message = (
            f"step {step.name!r} takes its input from {step.source!r} and not from the step before it; "
            "the policy has require_linear=True, which allows no branches"
        )
        raise RequestRejected(PLAN_NOT_LINEAR, message, {"step": step.name, "source": step.source})
