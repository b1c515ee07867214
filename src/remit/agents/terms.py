"""What an agent is made of: engine, tools, terms and rules for its answers, as its maker names or hands them over.

Rule 1: what no run could be started with is refused here, when the agent is made.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import FIELDS, Budget, check_budget, negative_caps
from remit.core.limits.profiles import KNOWN, STANDARD, check_figures, declared_boundary
from remit.core.limits.roles import role_named
from remit.core.record import once_a_record, replace
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.manifest import MANIFEST_INVALID
from remit.core.work.goal import Goal
from remit.inference.engine import AnyEngine, Engine, check_engine
from remit.inference.specs import open_engine
from remit.orchestrate.patterns.handlers import PLAN_HANDLER_INVALID, registry_of
from remit.orchestrate.setup.answer_rules import Judging, judging_of
from remit.orchestrate.setup.kit import Kit, Terms, ToolCallFilter
from remit.orchestrate.setup.kit import engine_kit as kit_with
from remit.rerank.router import ROUTER_UNKNOWN, routing_named
from remit.tool.registry import Registry
from remit.validate.check import RULES_INVALID, Rules, compile_rules
from remit.validate.rule_set import RuleSet

# A goal as its maker hands it over: as a record, as a mapping with the keys of a file, or as the path of one.
GoalSource: TypeAlias = Goal | Mapping[str, Any] | Path | str

# The boundary of a loop that was given none: what every run has, and told from the same one given in so many words.
UNSAID = replace(STANDARD)
FILTERS_INVALID = "FILTERS_INVALID"
# Each of them looks at the calls of every answer, in a turn of its own.
FILTERS_MAX = 16
# Budgets that a program gives to its loops, again and again.
_BUDGETS_KEPT_MAX = 64
# What a loop tells its own caller; a step of a plan has none.
_LISTENERS = ("stream", "on_tool_result", "observer")


def engine_of(engine: AnyEngine | str | None) -> Engine:
    """The engine that is given, or that a spec names; a path in a spec is read from the current folder."""
    if not engine:
        raise RequestRejected(
            ErrorCode.CONFIG_NO_ENGINE, "the agent has no engine; give it one, or a spec such as 'scripted:FILE'"
        )
    if isinstance(engine, str):
        from remit.assemble import settings_of

        return open_engine(engine, base=Path.cwd(), settings=settings_of().engines)
    check_engine(engine)
    checked: Any = engine
    made: Engine = checked
    return made


def engine(spec: str) -> Engine:
    """The engine that a spec names, such as `local` or `openai:gpt-4o-mini`, with the keys and settings of the environment.

    Every class takes the spec itself, too; an engine that was made once can be given to several of them.
    """
    return engine_of(spec)


def kit_of(engine: AnyEngine | str, tools: Registry | Iterable[object] = ()) -> Kit:
    """A kit with one engine, or the one that a spec names, and these tools and plain functions."""
    return kit_with(engine_of(engine), tools)


def tools_of(tools: Registry | Iterable[object]) -> Registry:
    """The registry that is given, or one of these tools and plain functions."""
    return registry_of(tools)


def filters_of(filters: Iterable[ToolCallFilter]) -> dict[str, ToolCallFilter]:
    """Filters by their names, which the journal will tell, in their order; raises RequestRejected for what is none."""
    handed: object = filters
    if isinstance(handed, str) or not isinstance(handed, Iterable):
        raise RequestRejected(FILTERS_INVALID, f"filters={clipped(handed)} are no filters; give a list of functions")
    named: dict[str, ToolCallFilter] = {}
    for given in handed:
        name = getattr(given, "__name__", type(given).__name__)
        if not callable(given):
            raise RequestRejected(
                FILTERS_INVALID, f"filter {clipped(given)} is no function; give one that takes a ToolCall"
            )
        if not name.isidentifier():
            raise RequestRejected(FILTERS_INVALID, f"filter {name[:80]!r} has no name to be told by; use a def")
        if name in named:
            raise RequestRejected(FILTERS_INVALID, f"two filters are named {name[:80]!r}; rename one of them")
        named[name] = given
    if len(named) > FILTERS_MAX:
        message = f"the agent has {len(named)} filters, filters_max={FILTERS_MAX}; make one of several"
        raise RequestRejected(FILTERS_INVALID, message)
    return named


def terms_of(
    boundary: Boundary | Path | str,
    budget: Budget,
    router: Routing | str,
    *,
    goal: GoalSource | None = None,
    role: AgentRole | str = AgentRole.GENERAL,
) -> Terms:
    """What every run of an agent may do and must achieve; raises RequestRejected for what no run could be given."""
    handed: object = router
    if not isinstance(handed, str):
        known = ", ".join(Routing)
        raise RequestRejected(ROUTER_UNKNOWN, f"router={clipped(handed)} is unknown; use one of {known}")
    bounds = _bounds(boundary)
    _checked(bounds.budget)
    check_figures(bounds)
    check_budget(_checked(budget))
    return Terms(bounds, budget, _goal(goal), role=role_named(role), router=routing_named(router))


def _goal(said: GoalSource | None) -> Goal | None:
    if said is None:
        return None
    # Only those who have a goal pay for what reads it.
    from remit.orchestrate.setup.goal_file import goal_at

    return goal_at(said)


def _bounds(said: Boundary | Path | str) -> Boundary:
    if isinstance(said, Boundary):
        _checked(said.budget)
        return declared_boundary(said)
    if isinstance(said, str) and said in KNOWN:
        return KNOWN[said]
    # Only those who read a file pay for what reads it.
    from remit.orchestrate.boundaries.boundary_file import boundary_at

    return boundary_at(said)


@once_a_record(_BUDGETS_KEPT_MAX)
def _checked(budget: Budget) -> Budget:
    given: object = budget
    if not isinstance(given, Budget):
        raise RequestRejected(MANIFEST_INVALID, f"budget={clipped(given)} is no budget; give a Budget of caps by name")
    for name in FIELDS:
        cap: object = getattr(budget, name)
        if cap is not None and type(cap) is not int:
            message = (
                f"budget: {name}={clipped(cap)} is no cap; give a whole number from 0, or None for the standard one"
            )
            raise RequestRejected(MANIFEST_INVALID, message, {"field": name})
    if negative := negative_caps(budget):
        raise RequestRejected(MANIFEST_INVALID, f"caps of {', '.join(negative)} are below 0; 0 forbids")
    return budget


RuleSource: TypeAlias = Rules | RuleSet


def judging_by(rules: RuleSource | None, judge: AnyEngine | str | None, agent: AnyEngine) -> Judging:
    """What an agent's rules and its judge come to; raises RequestRejected where there is nothing to judge by."""
    engine = None if judge is None else engine_of(judge)
    if rules is None:
        if engine is not None:
            message = "the agent has a judge and no rules; give rules with questions of meaning, or leave the judge out"
            raise RequestRejected(RULES_INVALID, message)
        return Judging()
    handed: object = rules
    if not isinstance(handed, Rules | RuleSet):
        message = f"rules={clipped(handed)} are no rules; give a RuleSet, or what load_rules() makes of a file"
        raise RequestRejected(RULES_INVALID, message)
    return judging_of(compile_rules(rules) if isinstance(rules, RuleSet) else rules, engine, agent)


def refuse_own_terms(loop: Any, type_of_step: str = "") -> None:
    """A loop is a step on the plan's terms; its own would hold nowhere, so they are refused and not dropped."""
    terms, settings = loop.terms, loop.config
    listeners = [name for name in _LISTENERS if getattr(settings, name, None) is not None]
    if any(getattr(place, "context_provider", None) is not None for place in (loop, settings)):
        problem = "has a context provider; put a retrieve step before it"
    elif loop.has_own_boundary or terms.budget != Budget():
        problem = "has a boundary or a budget of its own; give them to the executor, where they hold for every step"
    elif terms.goal is not None:
        problem = "has a goal or rules of its own; put a validate step behind it"
    elif listeners:
        problem = f"has {listeners[0]}, which no step has; give the executor an observer"
    elif getattr(settings, "downgrade", None) is not None:
        problem = "has an engine to downgrade to, which no step has; leave it out"
    elif terms.router is not (Routing.AUTO if hasattr(settings, "tools") else Routing.NONE):
        problem = "has a router of its own; a step's tools are shortlisted as the plan's are"
    elif loop.hints.timeout_ms:
        problem = "has a timeout of its own; give its steps a timeout_ms"
    elif loop.user_id:
        problem = "names a user; name them to the executor, who asks for the whole plan"
    else:
        return
    subject = f"the loop for steps of type {type_of_step[:80]!r}" if type_of_step else "the loop that becomes a step"
    raise RequestRejected(PLAN_HANDLER_INVALID, f"{subject} {problem}", {"type": type_of_step[:80]})
