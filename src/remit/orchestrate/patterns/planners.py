"""Planners: they make a plan of a request that brings none, inside the run.

Rule 1: a planner only makes plans; executing them is the graph's business, and a plan that is given needs no planner.
Rule 2: a plan says who made it, why, when, and how many steps it has; the manifest pins that.
Rule 3: what a planner made is looked at like anything from outside: a model may have written it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import INTEGER_MAX
from remit.core.journal.codec import read_json
from remit.core.limits.boundary import Boundary, DecisionRight
from remit.core.limits.budget import LEASABLE
from remit.core.raised import raised
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.work.graph import NODES_MAX
from remit.core.work.plan import (
    PLAN_EMPTY,
    PLAN_STEP_INVALID,
    STEP_TIMEOUT_MS_MAX,
    ExecutionPlan,
    PlanPolicy,
    PlanTrace,
    Step,
)
from remit.inference.engine import AnyEngine
from remit.inference.specs import engine_spec
from remit.orchestrate.facts.texts import clean
from remit.tool.call.threads import call_user_code

PLAN_MISSING = "PLAN_MISSING"
PLANNER_FAILED = "PLANNER_FAILED"
PLAN_INVALID = "PLAN_INVALID"
PLAN_POLICY_INVALID = "PLAN_POLICY_INVALID"
PLAN_MODEL_TAKEN = "PLAN_MODEL_TAKEN"
PLANNING_DENIED = "PLANNING_DENIED"

# What the model of a planner is told unless its maker says otherwise.
PLAN_INSTRUCTION = (
    "Make a plan for what the user asks, and do not carry it out: the fewest steps that reach it, in their order. Each step "
    "works on what the step before it gave, the first one on the words of the user."
)

# Under this key of its metadata a request names the plan it wants.
PLAN_KEY = "plan"
# Who is named when a plan was handed in as it is.
DIRECT = "direct"
_RATIONALE_CHARS_MAX = 1000
_NAME_CHARS_MAX = 80
# As long as the command line waits for a whole run; a planner may have asked a model.
PLANNER_TIMEOUT_MS = 120_000
# A tool step takes two nodes, and the plan some of its own.
PLAN_STEPS_MAX = NODES_MAX // 2 - 10

# What stands in the fields of a step that no check of a plan could do without. Inputs and schemas may be anything.
_FIELDS: Mapping[str, type] = MappingProxyType(
    {"name": str, "type": str, "source": str, "tool": str, "instruction": str, "retries": int, "timeout_ms": int}
)


class Planner(Protocol):
    """Makes plans."""

    def create_plan(self, request: SystemRequest) -> Any:
        """An ExecutionPlan for the request, or something to await that gives one."""


def check_planner(planner: Planner | None, engines: Mapping[str, AnyEngine]) -> None:
    """Refuse a planner that makes no plans, or whose model the run could not ask."""
    given: object = planner
    if given is None:
        return
    if isinstance(given, type) or not callable(getattr(given, "create_plan", None)):
        raise RequestRejected(PLANNER_FAILED, f"a {type(given).__name__} is no planner: it lacks create_plan()")
    if not isinstance(given, ModelPlanner):
        return
    model = given.engine.model_info().name
    if model not in engines:
        message = (
            f"the planner asks model {model[:80]!r}, which is none of the kit; add its engine to the kit's engines"
        )
        raise RequestRejected(PLANNER_FAILED, message, {"model": model[:80]})
    if not answers_alike(given.engine, engines[model]):
        message = (
            f"the planner and the run have two engines of a model called {model[:80]!r}, and a run finds engines by that "
            "name; give both the same engine, or one of them another name"
        )
        raise RequestRejected(PLAN_MODEL_TAKEN, message, {"model": model[:80]})


def answers_alike(one: AnyEngine, other: AnyEngine) -> bool:
    """Whether two engines of one model are the same: what the same spec opened answers the same."""
    return one is other or (engine_spec(one) != "" and engine_spec(one) == engine_spec(other))


def check_planning(boundary: Boundary, *, plans: bool) -> None:
    """Refuse a run whose plan would have to be made under a boundary that does not grant the right to make one."""
    is_granted = boundary.decisions is None or DecisionRight.MAKE_PLANS in boundary.decisions
    if plans and not is_granted:
        message = (
            f"boundary {boundary.name} does not grant the right to {DecisionRight.MAKE_PLANS}; "
            "give the run a plan, or another boundary"
        )
        raise RequestRejected(PLANNING_DENIED, message, {"boundary": boundary.name})


class ModelPlanner:
    """A model makes the plan: it is asked in a run beneath the one that needs it, on the budget of that run.

    The model is told which types of steps and which tools there are; `instruction` says how to choose among them.
    0 for `max_tokens` is what every pattern allows. A PlanExecutor takes the spec of an engine, too, and opens it.
    """

    planner_id = "model"

    def __init__(self, engine: AnyEngine | str, *, instruction: str = PLAN_INSTRUCTION, max_tokens: int = 0) -> None:
        self.given, self.instruction, self.max_tokens = engine, instruction, max_tokens

    @property
    def engine(self) -> AnyEngine:
        """The model that makes the plans; raises RequestRejected where it was named and never opened."""
        if isinstance(self.given, str):
            message = f"the engine {self.given[:80]!r} of the planner is not open; give ModelPlanner(remit.engine(…))"
            raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
        return self.given

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """Refused: only a run can ask the model, and has the plan read from its answer."""
        message = "a ModelPlanner makes plans inside a run; give it to the PlanExecutor, or to the kit of the run"
        raise RequestRejected(PLANNER_FAILED, message, {"planner": self.planner_id})

    def read(self, answer: str) -> ExecutionPlan:
        """The plan in an answer that fits the schema which the model was given."""
        said = read_json(answer)
        steps = tuple(Step(**step) for step in said["steps"])
        return ExecutionPlan(steps, PlanTrace(self.planner_id, said["rationale"]))


class StaticPlanner:
    """Plans from a table, by the name that the request gives in its metadata; or one plan for every request."""

    planner_id = "static"

    def __init__(self, plans: Mapping[str, ExecutionPlan] | ExecutionPlan) -> None:
        self._plans = plans

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """The plan that the request names."""
        if isinstance(self._plans, ExecutionPlan):
            return _traced(self._plans, "the only plan there is")
        wanted = request.metadata.get(PLAN_KEY)
        plan = self._plans.get(wanted) if isinstance(wanted, str) else None
        if plan is None:
            known = ", ".join(self._plans) or "none"
            message = f"metadata.{PLAN_KEY}={str(wanted)[:80]!r} names no plan; there are {known}"
            raise RequestRejected(PLAN_MISSING, message, {"plan": str(wanted)[:80]})
        return _traced(plan, f"metadata.{PLAN_KEY} is {wanted!r}")


def _traced(plan: ExecutionPlan, rationale: str) -> ExecutionPlan:
    trace = plan.trace or PlanTrace(StaticPlanner.planner_id, rationale)
    return replace(plan, trace=trace)


def given_plan(given: ExecutionPlan | Sequence[Step]) -> ExecutionPlan:
    """The plan that is given, or the plan of these steps; raises RequestRejected where there are none."""
    plan = given if isinstance(given, ExecutionPlan) else ExecutionPlan(given)  # type: ignore[arg-type]  # looked at below
    # Whatever the types say: a planner may be written without them.
    steps: object = plan.steps
    trace: object = plan.trace
    if not isinstance(steps, list | tuple):
        message = f"a {type(steps).__name__} is no plan; give an ExecutionPlan, or a list of steps"
        raise RequestRejected(PLAN_INVALID, message)
    if not isinstance(trace, PlanTrace | None):
        message = f"the trace of the plan is a {type(trace).__name__}; give a PlanTrace, or leave it out"
        raise RequestRejected(PLAN_INVALID, message)
    for place, step in enumerate(plan.steps):
        _check_fields(place, step)
    return replace(plan, steps=tuple(_written(step) for step in plan.steps))


def _written(step: Step) -> Step:
    """The step with every text fit to be written; a member of StepType is its text."""
    texts = {field: clean(str(getattr(step, field))) for field, kind in _FIELDS.items() if kind is str}
    return replace(step, **texts)


def _check_fields(place: int, step: object) -> None:
    if not isinstance(step, Step):
        raise RequestRejected(PLAN_STEP_INVALID, f"step {place} of the plan is a {type(step).__name__}; give a Step")
    for field, kind in _FIELDS.items():
        value = getattr(step, field)
        # A bool is an int to Python, and no count.
        if not isinstance(value, kind) or isinstance(value, bool):
            message = f"step {place} of the plan has a {type(value).__name__} as its {field}; give a {kind.__name__}"
            raise RequestRejected(PLAN_STEP_INVALID, message, {"step": place, "field": field})


def check_policy(policy: PlanPolicy) -> None:
    """Refuse a policy under which no plan could be judged."""
    given: object = policy
    if not isinstance(given, PlanPolicy):
        raise RequestRejected(PLAN_POLICY_INVALID, f"policy={clipped(given)} is no policy; give a PlanPolicy")
    steps, timeout_ms = policy.max_steps, policy.timeout_per_step_ms
    types: object = policy.allowed_step_types
    if type(steps) is not int or not 1 <= steps <= PLAN_STEPS_MAX:
        problem = f"max_steps={clipped(steps)} is not from 1 to {PLAN_STEPS_MAX}"
    elif type(timeout_ms) is not int or not 0 <= timeout_ms <= STEP_TIMEOUT_MS_MAX:
        problem = f"timeout_per_step_ms={clipped(timeout_ms)} is not from 0 to {STEP_TIMEOUT_MS_MAX}"
    elif not isinstance(types, list | tuple) or not all(isinstance(one, str) for one in types):
        problem = f"allowed_step_types={clipped(types)} is no list of types; give all of them in one tuple"
    else:
        return
    raise RequestRejected(PLAN_POLICY_INVALID, f"the policy cannot be used: {problem}")


def plan_at_hand(given: ExecutionPlan | None, planner: Planner | None, at_ms: int) -> ExecutionPlan | None:
    """The plan that was given, its trace complete; None where a planner is to make one in the run."""
    if given is not None:
        return _completed(given_plan(given), DIRECT, at_ms)
    if planner is None:
        message = "mode 'plan' needs a plan or a planner, and there is neither; give one of them"
        raise RequestRejected(PLAN_MISSING, message)
    return None


async def made_plan(planner: Planner, request: SystemRequest, answer: str, at_ms: int) -> ExecutionPlan:
    """What a planner makes of a request, its trace complete; `answer` is what the model of the planner said."""
    name = planner_name(planner)
    if isinstance(planner, ModelPlanner):
        made: object = planner.read(answer)
    else:
        try:
            made = await call_user_code(planner.create_plan, request)
        except RequestRejected:
            raise
        except Exception as error:
            message = f"planner {name!r} raised {raised(error)}"[:_RATIONALE_CHARS_MAX]
            raise RequestRejected(PLANNER_FAILED, message, {"planner": name}) from error
    if not isinstance(made, ExecutionPlan):
        message = f"planner {name!r} returned a {type(made).__name__}; it must return an ExecutionPlan"
        raise RequestRejected(PLANNER_FAILED, message, {"planner": name})
    return _completed(given_plan(made), name, at_ms)


def planner_name(planner: Planner) -> str:
    """The name of a planner: as it calls itself, else like its class."""
    return str(getattr(planner, "planner_id", "") or type(planner).__name__)[:_NAME_CHARS_MAX]


def plan_words(plan: ExecutionPlan) -> str:
    """A plan as the models of a run are told it that runs no steps of its own; raises RequestRejected for an empty one."""
    if not plan.steps:
        raise RequestRejected(PLAN_EMPTY, "the plan has no steps; give it at least one")
    told = (f"{place}. {step.name}{_detail(step)}" for place, step in enumerate(plan.steps, 1))
    return "\n".join(("A plan was made for this request. Follow it:", *told))


def _detail(step: Step) -> str:
    said = step.instruction or (step.input if isinstance(step.input, str) else "")
    return f": {said}" if said else ""


def _completed(plan: ExecutionPlan, planner_id: str, at_ms: int) -> ExecutionPlan:
    """The plan with a trace that says everything, however much its maker said."""
    trace = plan.trace or PlanTrace(planner_id)
    created = trace.created_at_ms
    is_told = type(created) is int and 0 < created <= INTEGER_MAX
    rationale = clean(str(trace.rationale)[:_RATIONALE_CHARS_MAX])
    maker = clean(str(trace.planner_id or planner_id)[:_NAME_CHARS_MAX])
    made = PlanTrace(maker, rationale, created if is_told else at_ms, len(plan.steps), _estimate(trace))
    return replace(plan, trace=made)


def _estimate(trace: PlanTrace) -> tuple[tuple[str, int], ...]:
    """What a planner thinks that its plan takes, as far as that can be meant: counters of the budget, and amounts."""
    given: object = trace.estimate
    found: list[tuple[str, int]] = []
    for pair in given if isinstance(given, tuple | list) else ():
        match pair:
            case (str() as name, int() as amount) if name in LEASABLE and 0 <= amount <= INTEGER_MAX:
                found.append((name, int(amount)))
    return tuple(found)
