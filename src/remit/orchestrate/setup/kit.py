"""What a run works with, and on which terms: the parts that are objects, and the parts that are data.

Rule 1: a kit holds what cannot be written down: engines, functions, handlers. Losing it loses nothing of the run;
        a kit that was loaded from files can be made again from the manifest.
Rule 2: terms are data and are pinned in the manifest.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from remit.core.clipped import clipped
from remit.core.declared_types import as_declared
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import STANDARD, declared_boundary
from remit.core.limits.tool_trust import READS_RANK, Reads
from remit.core.limits.tools import ToolCall
from remit.core.raised import raised
from remit.core.record import Record, once_a_record, replace
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.manifest import Source
from remit.core.run.messages import Message, Role
from remit.core.run.request_checks import REQUEST_MALFORMED, REQUEST_TOOLS_INVALID
from remit.core.work.goal import Goal
from remit.core.work.graph import Graph
from remit.core.work.plan import ExecutionPlan, PlanPolicy, Step
from remit.inference.engine import AnyEngine, check_engine
from remit.kernel.graph.graph_checks import GraphFault
from remit.orchestrate.patterns.planners import Planner
from remit.orchestrate.patterns.redundant_graph import Redundancy
from remit.rerank.router import Router
from remit.tool.registry import Registry

if TYPE_CHECKING:
    from remit.orchestrate.patterns.handlers import Handler

R = TypeVar("R", bound=Record)

# Graphs, boundaries and budgets of a busy service that are known to fit their types.
_PARTS_KEPT_MAX = 256

# Named code of the user. A validator gets a text and says what is wrong with it (several texts), gives a value (one text)
# or is content (None); a step of a plan gets a Step; a voter is a strategy.
Code = Any


class FilterContext(Record):
    """Where a call was proposed that a filter is shown: in which run, for whom, at which node, and beside which others.

    `calls` are all calls of the answer that no filter has turned away, as they would be made, the one that is shown among
    them. `why` says how a call came about that the model did not propose so: a person gave it other arguments, or it is
    called in the place of a tool that is unavailable; such a call can be turned away and not be changed.
    """

    run_id: str
    tenant_id: str
    user_id: str
    session_id: str
    node: str
    calls: tuple[ToolCall, ...]
    why: str = ""


# Looks at a proposed call before it is judged: None lets it pass as it is, a ToolCall has other arguments, and a text
# says why it is not to be made. One that takes two arguments is shown the context, too.
Sifted = ToolCall | str | None
ToolCallFilter = (
    Callable[[ToolCall], Sifted | Awaitable[Sifted]] | Callable[[ToolCall, FilterContext], Sifted | Awaitable[Sifted]]
)


# A provider of evidence that reads more than the boundary of its run allows.
CONTEXT_BEYOND_BOUNDARY = "CONTEXT_BEYOND_BOUNDARY"


class ContextProvider(Protocol):
    """Finds evidence for an exchange.

    An attribute `reads` says what it reads, as a tool does: `public`, `private` (so it is taken to be) or `secret`. Where its
    function has a parameter `asked_by`, it is told for whom it looks: the principal, with tenant and user.
    """

    def build(self, query: str) -> Sequence[Message] | Awaitable[Sequence[Message]]:
        """Messages with what was found for the user's words; none when there is nothing."""


def check_context(provider: ContextProvider | None, boundary: Boundary) -> None:
    """Refuse what is no provider, and one that reads more than a boundary lets a run read, which no person is asked about."""
    if provider is None:
        return
    if isinstance(provider, type) or not callable(getattr(provider, "build", None)):
        message = f"the context provider is a {type(provider).__name__} without build(); give an object that has it"
        raise RequestRejected(ErrorCode.CONFIG_PART_MISSING, message)
    said = getattr(provider, "reads", Reads.PRIVATE)
    if said not in set(Reads):
        message = f"the context provider has reads={clipped(said)}; it may be {', '.join(Reads)}"
        raise RequestRejected(CONTEXT_BEYOND_BOUNDARY, message)
    if READS_RANK[Reads(said)] > READS_RANK[boundary.reads_max]:
        message = (
            f"the context provider reads what is {Reads(said)}, and boundary {boundary.name} lets a run read "
            f"{boundary.reads_max}; say what it reads with `reads`, or look it up with a tool, which a person may allow"
        )
        raise RequestRejected(CONTEXT_BEYOND_BOUNDARY, message, {"boundary": boundary.name, "reads": str(said)})


@runtime_checkable
class PromptProvider(Protocol):
    """Makes the system prompt of an agent, anew for every run."""

    def build_system_prompt(self) -> Message | str:
        """What the model is told first: a system message, or its text. It is called as a plain function."""


# What an agent is told first: a text, or who makes one.
SystemPrompt: TypeAlias = str | PromptProvider

PROMPT_PROVIDER_FAILED = "PROMPT_PROVIDER_FAILED"


def prompt_text(given: SystemPrompt) -> str:
    """The text of a system prompt, made now where a provider makes it; raises RequestRejected where there is none."""
    # A text is asked for first: finding out whether it has the methods of a protocol takes as long as a turn.
    if isinstance(given, str) or not isinstance(given, PromptProvider):
        return given
    name, made = type(given).__name__, None
    try:
        made = given.build_system_prompt()
        said = made.content if isinstance(made, Message) and made.role is Role.SYSTEM else made
    except Exception as error:
        message = f"prompt provider {name!r} raised {raised(error)}"
        raise RequestRejected(PROMPT_PROVIDER_FAILED, message, {"provider": name}) from error
    if not isinstance(said, str):
        message = f"prompt provider {name!r} made a {type(made).__name__}; it must make a system message or a text, in a plain def"
        raise RequestRejected(PROMPT_PROVIDER_FAILED, message, {"provider": name})
    return said


_NAMED_PARTS = ("engines", "code", "handlers", "filters", "step_filters")


@dataclass(frozen=True, slots=True)
class Kit:
    """The engines by the name of their model, the first being the one that is used; tools; code."""

    engines: Mapping[str, AnyEngine]
    tools: Registry = field(default_factory=lambda: Registry(()))
    code: Mapping[str, Code] = field(default_factory=dict)
    context: ContextProvider | None = None
    # A router of the caller's own; without it the run's terms say who shortlists its tools.
    router: Router | None = None
    # For mode plan: what each type of step does, and who makes a plan of a request that brings none.
    handlers: "Mapping[str, Handler]" = field(default_factory=dict)
    planner: Planner | None = None
    # By name, in the order in which they look at proposed calls.
    filters: Mapping[str, ToolCallFilter] = field(default_factory=dict)
    # Those that look at the calls of one step alone; the graph names them there.
    step_filters: Mapping[str, ToolCallFilter] = field(default_factory=dict)
    # How many engines after the first are cheaper ones, to be asked in its place when money runs short.
    cheaper: int = 0
    # The files of its code and handlers, which the manifest names so that another process makes the same kit again.
    sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        """Raises RequestRejected for parts with which no run could be started."""
        for name in _NAMED_PARTS:
            given: object = getattr(self, name)
            if type(given) is not dict and not isinstance(given, Mapping):
                message = f"kit: {name}={clipped(given)} cannot be used; give a mapping of names to parts"
                raise RequestRejected(REQUEST_MALFORMED, message, {"field": name})
        tools: object = self.tools
        if not isinstance(tools, Registry):
            message = f"kit: tools={clipped(tools)} are no Registry; say kit_of(engine, tools), or Registry(tools)"
            raise RequestRejected(REQUEST_TOOLS_INVALID, message, {"field": "tools"})
        for engine in self.engines.values():
            check_engine(engine)
        looks: tuple[object, ...] = (*self.filters.values(), *self.step_filters.values())
        for look in looks:
            if not callable(look):
                message = f"kit: filter {clipped(look)} is no function; give one that takes a ToolCall"
                raise RequestRejected(REQUEST_MALFORMED, message, {"field": "filters"})
        if self.router is not None and not callable(getattr(self.router, "shortlist", None)):
            message = f"kit: router={clipped(self.router)} has no shortlist(); give a Router, or leave it out"
            raise RequestRejected(REQUEST_MALFORMED, message, {"field": "router"})

    @property
    def every_filter(self) -> Mapping[str, ToolCallFilter]:
        """The filters of the run and of its steps."""
        return {**self.filters, **self.step_filters}


def engine_kit(engine: AnyEngine, tools: "Registry | Iterable[object]" = ()) -> Kit:
    """A kit with one engine, and these tools and plain functions."""
    return Kit({engine.model_info().name: engine}, tools if isinstance(tools, Registry) else Registry(tools))


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a run: what it may do and must achieve."""

    boundary: Boundary = STANDARD
    budget: Budget = Budget()
    goal: Goal | None = None
    # None stands for the graph of the request's mode.
    graph: Graph | None = None
    role: AgentRole = AgentRole.GENERAL
    # Who shortlists the tools before a model is asked.
    router: Routing = Routing.AUTO
    # How often an answer that does not pass is asked for again; None stands for the pattern's own number.
    reasks_max: int | None = None
    # For mode redundant.
    redundancy: Redundancy = Redundancy()
    # For mode plan: the plan, unless the kit's planner is to make one, and what a plan may be.
    plan: ExecutionPlan | None = None
    policy: PlanPolicy = PlanPolicy()


STANDARD_TERMS = Terms()
# The fields of a step that hold whatever its handler takes and gives.
_OPEN_TO_ALL = ("input", "output", "schema")


def _reader(name: str, kind: type[R], read: Callable[[R], R] | None = None) -> Callable[[R], R]:
    """Reads a part of terms as its types read it: of a record once for all runs, which start with the same ones."""
    reads = read or partial(as_declared, kind=kind, what=name, code=REQUEST_MALFORMED)
    remembered = once_a_record(_PARTS_KEPT_MAX)(reads)
    return lambda given: remembered(given) if type(given) is kind else reads(given)


# What a run is started with beside its goal and plan, and what may stand there.
_TERMS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "boundary": _reader("boundary", Boundary, declared_boundary),
        "budget": _reader("budget", Budget),
        "redundancy": _reader("redundancy", Redundancy),
        "policy": _reader("policy", PlanPolicy),
    }
)
_read_graph = _reader("graph", Graph, partial(as_declared, kind=Graph, what="graph", code=GraphFault.MALFORMED))


def declared_terms(terms: Terms) -> Terms:
    """Terms whose parts have the types that they declare; raises RequestRejected for what cannot be meant."""
    given: object = terms
    if not isinstance(given, Terms):
        raise RequestRejected(REQUEST_MALFORMED, f"terms={clipped(given)} cannot be used; give Terms")
    if terms == STANDARD_TERMS:
        return terms
    read: dict[str, Any] = {name: reads(getattr(terms, name)) for name, reads in _TERMS.items()}
    if terms.graph is not None:
        read["graph"] = _read_graph(terms.graph)
    if terms.goal is not None:
        # Only those who have a goal pay for the reader of goals.
        from remit.orchestrate.setup.goal_file import goal_at

        read["goal"] = goal_at(terms.goal)
    if terms.plan is not None:
        read["plan"] = _declared_plan(terms.plan)
    if type(terms.role) is not AgentRole:
        read["role"] = as_declared(terms.role, AgentRole, "role", REQUEST_MALFORMED)
    if terms.reasks_max is not None:
        read["reasks_max"] = as_declared(terms.reasks_max, int, "reasks_max", REQUEST_MALFORMED)
    changed = {name: value for name, value in read.items() if value is not getattr(terms, name)}
    return dataclasses.replace(terms, **changed) if changed else terms


def _declared_plan(plan: ExecutionPlan) -> ExecutionPlan:
    """A plan as its types read it; what steps are given and give may be anything, and stays as it is."""
    given: object = plan
    if not isinstance(given, ExecutionPlan) or not isinstance(given.steps, list | tuple):
        return as_declared(given, ExecutionPlan, "plan", REQUEST_MALFORMED)
    said: tuple[object, ...] = tuple(given.steps)
    steps: list[Step] = []
    for place, step in enumerate(said):
        where = f"plan.steps[{place}]"
        if not isinstance(step, Step):
            steps.append(as_declared(step, Step, where, REQUEST_MALFORMED))
            continue
        typed = replace(step, **dict.fromkeys(_OPEN_TO_ALL))
        read = as_declared(typed, Step, where, REQUEST_MALFORMED)
        open_to_all = {name: getattr(step, name) for name in _OPEN_TO_ALL}
        steps.append(step if read is typed else replace(read, **open_to_all))
    as_declared(replace(given, steps=()), ExecutionPlan, "plan", REQUEST_MALFORMED)
    return replace(given, steps=tuple(steps))
