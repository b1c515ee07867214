"""Graphs whose plan is made inside the run: a planner is asked in the state PLAN, and what it makes is looked at there.

Rule 1: in mode plan the steps of the plan are a run beneath this one, whose graph is what the planner's turn wrote down;
        so a resumed run finds the plan, and the planner is not asked again.
Rule 2: in any other mode the plan is words, which the models of the run are shown once, behind the request.
Rule 3: a planner that has a model asks it in a child run: what that takes is reserved, charged and told like any call.
"""

from itertools import pairwise

from remit.core.failure import RequestRejected
from remit.core.journal.codec import to_json
from remit.core.journal.commands import StartChild
from remit.core.record import Record, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.messages import Role
from remit.core.work.graph import (
    EXITS,
    PROMPT_CHARS_MAX,
    TERMINALS,
    Ask,
    Edge,
    Graph,
    Node,
    NodeKind,
    StepInput,
    schema_text,
)
from remit.core.work.plan import ASK_PLANNER, ExecutionPlan, PlanPolicy, PlanTrace, StepType
from remit.core.work.values import ValueKind
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.state import RunState, pinned
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.handlers import InferHandler, PatternHandler, ToolHandler
from remit.orchestrate.patterns.plan_graph import Handlers, plan_graph
from remit.orchestrate.patterns.planners import PLANNER_FAILED, PLANNER_TIMEOUT_MS, ModelPlanner, Planner
from remit.orchestrate.patterns.structured_graph import structured_graph

# The code that a plan is made by, and the type of the node that runs the steps.
PLANNER = "planner"
PLANNED = "planned"
# Of a node that makes a plan, and of the one that runs its steps.
PLAN, STEPS = "plan", "steps"


class Planned(Record):
    """A plan as it is run: its graph, and who made it."""

    graph: Graph
    trace: PlanTrace | None = None


def planned_graph(planner: Planner, policy: PlanPolicy, handlers: Handlers, request: SystemRequest) -> Graph:
    """The graph of a request of mode plan whose plan is yet to be made."""
    asking = _asking(planner, request, _schema(policy, handlers))
    nodes = (
        *asking,
        Node(
            PLAN,
            NodeKind.DECIDE,
            LifecycleState.PLAN,
            code=PLANNER,
            prompt=to_json(policy),
            visits_max=1,
            timeout_ms=PLANNER_TIMEOUT_MS,
            feed=StepInput(gives=ValueKind.OBJECT, kind=ValueKind.TEXT, step_type=PLAN),
        ),
        Node("prepare", NodeKind.DECIDE, LifecycleState.PREPARE),
        Node(
            STEPS,
            NodeKind.CHILD,
            LifecycleState.EXECUTE,
            visits_max=1,
            inner=_at_most(handlers),
            feed=StepInput(ValueKind.OBJECT, ValueKind.TEXT, source=PLAN, step_type=PLANNED),
        ),
        Node("check", NodeKind.VALIDATE, visits_max=1),
    )
    ways = tuple(Edge(one.name, other.name) for one, other in pairwise(nodes))
    return Graph(PLANNED, nodes[0].name, (*nodes, *TERMINALS), (*ways, Edge("check", "done")), EXITS)


# Steps that no model does.
_CODE_ALONE = Graph(STEPS, "do", (Node("do", NodeKind.DECIDE), *TERMINALS), (Edge("do", "done"),), EXITS)


def _at_most(handlers: Handlers) -> Graph:
    """What the steps may be at most, by which a run is judged before it has its plan: a chat with all tools, or code."""
    asks = any(isinstance(handler, InferHandler | PatternHandler) for handler in handlers.values())
    return chat_graph() if asks else _CODE_ALONE


def planned_first(graph: Graph, planner: Planner, request: SystemRequest) -> Graph:
    """A graph of another mode, with a planner that is asked before it."""
    nodes = (
        *_asking(planner, request, _SCHEMA),
        Node(PLAN, NodeKind.DECIDE, LifecycleState.PLAN, code=PLANNER, visits_max=1),
    )
    ways = tuple(Edge(one.name, other.name) for one, other in pairwise(nodes))
    edges = (*ways, Edge(PLAN, graph.start), *graph.edges)
    return replace(graph, start=nodes[0].name, nodes=(*nodes, *graph.nodes), edges=edges)


def planned_steps(plan: ExecutionPlan, policy: PlanPolicy, handlers: Handlers, request: SystemRequest) -> Planned:
    """A plan that was made, as it is run; raises RequestRejected where it cannot be, its schemas among the reasons."""
    graph = plan_graph(plan, policy, handlers, last_words(request))
    compile_graph(graph)
    return Planned(graph, plan.trace)


def last_words(request: SystemRequest) -> str:
    """What the user said last, as far as it came with the request."""
    said = [message.content for message in request.messages if message.role is Role.USER]
    return said[-1] if said and isinstance(said[-1], str) else ""


def steps_run(state: RunState) -> str:
    """The run in which the steps of a plan are done that was made inside this one; empty where there is none."""
    if not is_planned(state):
        return ""
    ended = [child.command_id for child in state.children.ended if child.node == STEPS]
    begun = [one.id for one in state.commands.open.values() if isinstance(one, StartChild) and one.node == STEPS]
    return next((state.children.runs[command_id] for command_id in (*ended, *begun)), "")


def is_planned(state: RunState) -> bool:
    """Whether a run has a plan made whose steps it then has done."""
    graph = pinned(state).graph
    return graph.name == PLANNED and any(node.code == PLANNER for node in graph.nodes)


def _asking(planner: Planner, request: SystemRequest, schema: dict[str, object]) -> tuple[Node, ...]:
    """The node that asks the model of a planner; none where the planner has none."""
    if not isinstance(planner, ModelPlanner):
        return ()
    words = last_words(request)
    if len(words) > PROMPT_CHARS_MAX:
        message = (
            f"the model of a planner is shown prompt_chars_max={PROMPT_CHARS_MAX}, and the prompt has {len(words)}"
        )
        raise RequestRejected(PLANNER_FAILED, f"{message}; shorten it, or give the request a plan")
    text = schema_text(schema)
    ask = Ask(planner.instruction, tools=(), schema=text, max_tokens=planner.max_tokens)
    inner = structured_graph(text, is_prepared=True)
    model = planner.engine.model_info().name
    return (
        Node(
            ASK_PLANNER,
            NodeKind.CHILD,
            LifecycleState.PLAN,
            visits_max=1,
            prompt=words,
            ask=ask,
            inner=inner,
            model=model,
            timeout_ms=PLANNER_TIMEOUT_MS,
        ),
    )


_TEXT: dict[str, object] = {"type": "string"}
# What a plan is where its steps are words.
_STEP: dict[str, object] = {"name": _TEXT, "type": _TEXT, "instruction": _TEXT}


def _listed(step: dict[str, object], steps_max: int, *required: str) -> dict[str, object]:
    one = {"type": "object", "properties": step, "required": list(required), "additionalProperties": False}
    steps = {"type": "array", "minItems": 1, "maxItems": steps_max, "items": one}
    return {
        "type": "object",
        "properties": {"rationale": _TEXT, "steps": steps},
        "required": ["rationale", "steps"],
        "additionalProperties": False,
    }


_SCHEMA = _listed(_STEP, PlanPolicy().max_steps, "name", "type")


def _schema(policy: PlanPolicy, handlers: Handlers) -> dict[str, object]:
    """What a plan may look like here: steps of the types that have handlers, and calls of the tools that are there."""
    types = [name for name in handlers if not policy.allowed_step_types or name in policy.allowed_step_types]
    own = handlers.get(StepType.TOOL)
    tools = [tool.name for tool in own.tools or ()] if isinstance(own, ToolHandler) else []
    step = {**_STEP, "type": {"type": "string", "enum": sorted(types)}, "input": {"type": ["string", "object"]}}
    if tools:
        step["tool"] = {"type": "string", "enum": sorted(tools)}
    return _listed(step, policy.max_steps, "name", "type")
