"""The graph of a plan: what PlanExecutor runs. Plan, prepare, one node per step in their order, check, done.

Rule 1: a step is a node, so what holds for nodes holds for steps: budgets, checkpoints, bounds, pauses, cancels.
Rule 2: a step of code is a command, a step of a model a child run, a step of a tool a call that passes the gate.
Rule 3: kinds that cannot fit are found here where they are known before anything runs, else when the step is entered.
Rule 4: a ModelRequest that is the input of an infer step is followed in all it says, or refused as a mismatch. Its
        tools are chosen among the handler's: none named are all of them, and `tool_choice` `none` is none.
Rule 5: all that a step says is followed or refused; nothing of it is passed over. A mutating tool that is not idempotent is
        never tried again because its step failed.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TypeAlias

from remit.constraint.grammar.notation import check_grammar
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import NotCanonical
from remit.core.journal.codec import to_json
from remit.core.limits.tools import ToolChoiceMode, ToolDefinition, check_tool_choice
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ITERATIONS_MAX_DEFAULT, ExecutionHints, Mode, OutputContract, SystemRequest
from remit.core.run.inference import ModelRequest
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.request_checks import check_request
from remit.core.run.usage import TokenUsage
from remit.core.schema.grammar_source import grammar_text
from remit.core.schema.json_text import kept_value
from remit.core.schema.schema_source import SCHEMA_SOURCE_INVALID, schema_of
from remit.core.work.graph import (
    EXITS,
    PROMPT_CHARS_MAX,
    SHAPE_CHARS_MAX,
    STANDARD_RULES,
    TERMINALS,
    Ask,
    Edge,
    Graph,
    Node,
    NodeKind,
    NodeOutcome,
    StepInput,
    schema_text,
)
from remit.core.work.plan import (
    MARK,
    PLAN_STEP_INVALID,
    RUN_THE_PLAN,
    ContextFor,
    ExecutionPlan,
    PlanPolicy,
    Step,
    check_plan,
)
from remit.core.work.values import ValueKind, is_convertible
from remit.orchestrate.facts.texts import clean
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.handlers import (
    Handler,
    InferHandler,
    PatternHandler,
    RerankHandler,
    RetrieveHandler,
    ToolHandler,
    ValidateHandler,
    is_lacking,
)
from remit.orchestrate.patterns.step_values import NoStepValue, journaled_value, read_value
from remit.orchestrate.patterns.structured_graph import TYPE_MARK, structured_graph
from remit.tool.registry import Registry

# Before the type of a step, it names the code of its handler; before the name of a tool, it names what proposes a call.
STEP_MARK = "step:"
CALL_MARK = "call:"
# After the name of a tool step: the node that makes a call of what the step is fed.
ARGUMENTS = f"{MARK}arguments"

# What a step of code is at a node: its kind says where it belongs in the lifecycle and in pictures.
_KINDS: Mapping[type, NodeKind] = {
    RetrieveHandler: NodeKind.RETRIEVE,
    RerankHandler: NodeKind.RERANK,
    ValidateHandler: NodeKind.VALIDATE,
}
# What each handler takes. A function of the user's takes whatever comes.
_TAKES: Mapping[type, ValueKind] = {
    InferHandler: ValueKind.MESSAGES,
    PatternHandler: ValueKind.MESSAGES,
    ToolHandler: ValueKind.OBJECT,
    RetrieveHandler: ValueKind.TEXT,
    RerankHandler: ValueKind.CANDIDATES,
    ValidateHandler: ValueKind.TEXT,
}

# What tells attempts and replicas apart is counted by the caller of the engine.
_COUNTED = ("attempt", "replica")

Handlers: TypeAlias = Mapping[str, Handler]


def plan_graph(
    plan: ExecutionPlan, policy: PlanPolicy, handlers: Handlers, prompt: str = "", heard: Collection[str] = ()
) -> Graph:
    """The graph that runs a plan, or RequestRejected with what is wrong with it.

    A first step without an input works on the prompt. `heard` names code that hears the answers of steps for their types.
    """
    check_plan(plan, policy, handlers)
    plan = replace(plan, steps=tuple(followed(step, handlers[step.type]) for step in plan.steps))
    steps, bounds = plan.steps, _bounds(plan, handlers)
    nodes = [
        Node("plan", NodeKind.DECIDE, lifecycle=LifecycleState.PLAN),
        Node("prepare", NodeKind.DECIDE, lifecycle=LifecycleState.PREPARE),
    ]
    edges = [Edge("plan", "prepare"), Edge("prepare", _entrance(steps[0], handlers))]
    gives: dict[str, str] = {}
    for place, step in enumerate(steps):
        handler, source = handlers[step.type], step.source or (steps[place - 1].name if place else "")
        if step.input is None and source:
            feed = _chained(step, source, handler, gives)
        else:
            feed = _given(step, handler, _first_words(step, handler, prompt) if step.input is None else step.input)
        gives[step.name] = feed.gives
        after = _entrance(steps[place + 1], handlers) if place + 1 < len(steps) else "check"
        timeout_ms = _least(step.timeout_ms, policy.timeout_per_step_ms)
        made = _nodes(step, feed, handler, timeout_ms, _type_heard(step, heard))
        nodes += [replace(node, visits_max=bounds[step.name]) for node in made]
        edges += _edges(step, handlers, after, _maker(steps, place, handlers), bounds[step.name])
    nodes.append(Node("check", NodeKind.VALIDATE, visits_max=1))
    edges.append(Edge("check", "done"))
    return Graph("plan", "plan", (*nodes, *TERMINALS), tuple(edges), EXITS)


def finished_steps(
    graph: Graph, outputs: Mapping[str, object], usages: Mapping[str, TokenUsage] = MappingProxyType({})
) -> tuple[Step, ...]:
    """The steps of a plan's graph that have an output, in the order of the plan, with what they worked on and took."""
    feeds = {node.name: node.feed for node in graph.nodes if node.feed is not None}
    steps: list[Step] = []
    for name, own in feeds.items():
        if name in outputs:
            # What a tool step works on goes to the node that makes a call of it.
            feed = feeds.get(f"{name}{ARGUMENTS}", own)
            given = outputs.get(feed.source) if feed.source else read_value(feed.kind, feed.value)
            usage = usages.get(name, TokenUsage())
            steps.append(Step(name, feed.step_type, given, outputs[name], usage=usage))
    return tuple(steps)


def step_place(step: Step) -> str:
    """What stands, before the name of the type, in the name of the code that hears the answer of a step for its type."""
    return f"{STEP_MARK}{step.name}"


def _type_heard(step: Step, heard: Collection[str]) -> str:
    # No name of a step has the mark in it, so no other step begins like this one.
    begins = f"{TYPE_MARK}{step_place(step)}{MARK}"
    return next((name for name in heard if name.startswith(begins)), "")


def _first_words(step: Step, handler: Handler, prompt: str) -> str | None:
    """What a first step without an input works on: the prompt, or nothing where it asks for nothing."""
    if prompt and prompt != RUN_THE_PLAN:
        return prompt
    if _takes(handler):
        raise invalid_step(step, "is the first, and has nothing to work on; give it an input, or the plan a prompt")
    return None


def _takes(handler: Handler) -> str:
    return _TAKES.get(type(handler), "")


def _entrance(step: Step, handlers: Handlers) -> str:
    return f"{step.name}{ARGUMENTS}" if isinstance(handlers[step.type], ToolHandler) else step.name


def _least(*limits_ms: int) -> int:
    return min((limit for limit in limits_ms if limit), default=0)


def _chained(step: Step, source: str, handler: Handler, gives: Mapping[str, str]) -> StepInput:
    """What a step is fed by an earlier one, checked as far as kinds are known before anything runs."""
    takes = _takes(handler)
    if gives[source] and not is_convertible(gives[source], takes):
        raise _mismatch(step, takes, gives[source], f"step {source!r} gives")
    return StepInput(takes, _given_by(step, handler, gives[source]), source=source, step_type=step.type)


def _given(step: Step, handler: Handler, value: object) -> StepInput:
    """What a step is fed by the plan itself."""
    takes = _takes(handler)
    if isinstance(value, ModelRequest):
        if not isinstance(handler, InferHandler):
            raise _mismatch(step, takes or "any value", "a ModelRequest, which an infer step takes", "its input is")
        value = ContextFor("", value.messages)
    try:
        kind, text = journaled_value(value)
    except NoStepValue as problem:
        raise invalid_step(step, f"has an input that cannot be used: {problem}") from None
    if len(text) > SHAPE_CHARS_MAX:
        reason = f"has an input of {len(text)} characters, input_chars_max={SHAPE_CHARS_MAX}"
        raise invalid_step(step, f"{reason}; have a step before it read or make it")
    if not is_convertible(kind, takes):
        raise _mismatch(step, takes, kind, "its input is")
    return StepInput(takes, _given_by(step, handler, kind), kind, text, step_type=step.type)


def _mismatch(step: Step, takes: str, found: str, subject: str) -> RequestRejected:
    message = f"step {step.name!r} of type {step.type!r} takes {takes} and {subject} {found}; put a step in between"
    return RequestRejected(ErrorCode.ORCHESTRATION_STEP_MISMATCH, message, {"step": step.name, "found": found})


def _given_by(step: Step, handler: Handler, fed: str) -> str:
    """The kind of a step's output; empty where only running it will tell."""
    match handler:
        case InferHandler():
            own = step.input.schema if isinstance(step.input, ModelRequest) else None
            return _kind_of_answer(own if step.schema is None else step.schema)
        case PatternHandler():
            return _kind_of_answer(kept_value(handler.ask.schema) if handler.ask.schema else None)
        case ToolHandler():
            return ValueKind.RESULT
        case RetrieveHandler():
            return handler.gives
        case RerankHandler():
            return ValueKind.CANDIDATES
        case ValidateHandler():
            return fed
    return ""


def _kind_of_answer(schema: JsonObject | None) -> str:
    if schema is None:
        return ValueKind.TEXT
    return ValueKind.OBJECT if schema.get("type") == "object" else ValueKind.JSON


def _nodes(step: Step, feed: StepInput, handler: Handler, timeout_ms: int, heard: str) -> list[Node]:
    execute = LifecycleState.EXECUTE
    pattern = _inferring(step, handler, heard) if isinstance(handler, InferHandler) else handler
    if isinstance(pattern, PatternHandler):
        model = pattern.engine.model_info().name
        ask = replace(pattern.ask, instruction=instruction_of(step, pattern.ask.instruction))
        child = Node(step.name, NodeKind.CHILD, execute, ask=ask, inner=pattern.graph, model=model)
        return [replace(child, timeout_ms=timeout_ms, feed=feed)]
    if isinstance(handler, ToolHandler):
        return _call_nodes(step, feed, handler, timeout_ms)
    # A check that is missing is no objection to what it would have looked at.
    kind = NodeKind.DECIDE if is_lacking(handler) else _KINDS.get(type(handler), NodeKind.DECIDE)
    lifecycle = LifecycleState.VALIDATE if kind is NodeKind.VALIDATE else execute
    code = f"{STEP_MARK}{step.type}"
    prompt = instruction_of(step)
    return [Node(step.name, kind, lifecycle, code=code, prompt=prompt, timeout_ms=timeout_ms, feed=feed)]


def _inferring(step: Step, handler: InferHandler, heard: str) -> PatternHandler | InferHandler:
    """What an infer step runs: a chat with the handler's tools, or a structured call where the step has a schema."""
    if handler.engine is None:
        return handler
    ask = _asked_by(step, handler)
    rounds = ITERATIONS_MAX_DEFAULT if ask.tools else 0
    schema, grammar = ask.schema, ask.grammar
    graph = chat_graph()
    if schema:
        graph = structured_graph(schema, grammar, tool_rounds_max=rounds, is_prepared=True, heard=heard)
    return PatternHandler(graph, handler.engine, Mode.STRUCTURED if schema else Mode.CHAT, ask)


def _asked_by(step: Step, handler: InferHandler) -> Ask:
    """What an infer step asks; raises RequestRejected for a request that cannot be followed as it is."""
    request = step.input if isinstance(step.input, ModelRequest) else None
    names = tuple(tool.name for tool in handler.tools)
    schema = "" if step.schema is None else schema_text(step.schema)
    own = sampling_text(handler.sampling)
    ask = Ask(handler.system_prompt, names, schema=schema, max_tokens=handler.max_tokens, sampling=own)
    if request is None:
        return ask
    hints = ExecutionHints(
        max_tokens=request.max_tokens, temperature=request.temperature, top_p=request.top_p, options=request.options
    )
    _check_asked(step, request, hints)
    sampling = _beside(hints, handler.sampling)
    return replace(
        ask,
        tools=_tools_of(step, request, handler),
        schema=schema if request.schema is None else schema_text(request.schema),
        grammar=request.grammar,
        max_tokens=request.max_tokens or handler.max_tokens,
        sampling=sampling_text(sampling),
    )


def _beside(said: ExecutionHints, own: ExecutionHints) -> ExecutionHints:
    """How a request wants to be sampled, and where it says nothing how its handler does."""
    temperature = own.temperature if said.temperature is None else said.temperature
    return replace(
        said, temperature=temperature, top_p=said.top_p or own.top_p, options={**own.options, **said.options}
    )


def sampling_text(hints: ExecutionHints) -> str:
    """How a step is sampled, as its node keeps it; empty where the run's own hints hold."""
    said = ExecutionHints(temperature=hints.temperature, top_p=hints.top_p, options=hints.options)
    return "" if said == ExecutionHints() else to_json(said)


def _check_asked(step: Step, request: ModelRequest, hints: ExecutionHints) -> None:
    output = OutputContract(request.schema, request.grammar or None)
    try:
        check_request(SystemRequest(request.messages, hints=hints, output=output))
    except RequestRejected as refused:
        raise _unfollowed(step, refused.message) from refused
    if step.schema is not None and request.schema is not None:
        raise _unfollowed(step, "it has a schema, and so has the step; leave out one of them")
    for name in _COUNTED:
        if (said := getattr(request, name)) != getattr(ModelRequest(()), name):
            raise _unfollowed(step, f"{name}={said} is counted by the run; leave it out")


def _tools_of(step: Step, request: ModelRequest, handler: InferHandler) -> tuple[str, ...]:
    try:
        check_tool_choice(request.tool_choice)
    except RequestRejected as refused:
        raise _unfollowed(step, refused.message) from refused
    if request.tool_choice.mode is ToolChoiceMode.NONE:
        return ()
    if request.tool_choice.mode is not ToolChoiceMode.AUTO:
        raise _unfollowed(step, f"tool_choice={request.tool_choice.mode} demands a call; use a tool step for that")
    # A tool stands for its definition.
    named: list[ToolDefinition] = [getattr(one, "definition", one) for one in request.tools]
    for wanted in named:
        found = handler.tools.get(wanted.name)
        if found is None:
            raise _unfollowed(step, f"tool {wanted.name[:80]!r} is none of its handler's; give it to the InferHandler")
        if differs := _differing(wanted, found.definition):
            way_out = "leave it out, or give the tool itself"
            raise _unfollowed(step, f"{differs} of tool {wanted.name[:80]!r} is not its handler's; {way_out}")
    return tuple(tool.name for tool in named or [tool.definition for tool in handler.tools])


def _differing(wanted: ToolDefinition, own: ToolDefinition) -> str:
    """The first field of a definition that says something else than the tool's own; a default says nothing."""
    plain = ToolDefinition(wanted.name, "", {})
    for name in wanted.__struct_fields__:
        said, is_so = getattr(wanted, name), getattr(own, name)
        if said != getattr(plain, name) and said != is_so and not (name == "parameters" and _is_part(said, is_so)):
            return name
    return ""


def _is_part(said: object, whole: object) -> bool:
    """Whether a schema written by hand says nothing that the whole one does not say."""
    if isinstance(said, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(value, whole[key]) for key, value in said.items())
    return said == whole


def _unfollowed(step: Step, problem: str) -> RequestRejected:
    message = f"step {step.name!r} has a ModelRequest that it cannot follow: {problem}"
    return RequestRejected(ErrorCode.ORCHESTRATION_STEP_MISMATCH, message, {"step": step.name})


def _call_nodes(step: Step, feed: StepInput, handler: ToolHandler, timeout_ms: int) -> list[Node]:
    execute = LifecycleState.EXECUTE
    rules = replace(STANDARD_RULES, timeout_ms=timeout_ms) if timeout_ms else STANDARD_RULES
    if handler.tools is not None:
        check_step_call(step, handler.tools)
    # Without tools there is nothing to propose; the handler's own code says so when the step runs.
    code = f"{STEP_MARK}{step.type}" if handler.tools is None else f"{CALL_MARK}{step.tool}"
    entrance = Node(f"{step.name}{ARGUMENTS}", NodeKind.DECIDE, execute, code=code, timeout_ms=timeout_ms, feed=feed)
    given = StepInput(gives=ValueKind.RESULT, step_type=step.type)
    return [entrance, Node(step.name, NodeKind.TOOL, execute, rules=rules, feed=given)]


def _edges(step: Step, handlers: Handlers, after: str, maker: Step | None, visits_max: int) -> list[Edge]:
    edges: list[Edge] = []
    entrance = _entrance(step, handlers)
    if entrance != step.name:
        edges.append(Edge(entrance, step.name))
    if isinstance(handlers[step.type], ValidateHandler):
        if step.retries and maker is None:
            raise invalid_step(
                step, f"has retries={step.retries}, and no model did a step before it that could mend it"
            )
        if step.retries and maker is not None:
            edges.append(Edge(step.name, maker.name, NodeOutcome.REPAIRABLE))
    elif step.retries:
        edges.append(Edge(step.name, entrance, NodeOutcome.FAILED, f"visits < {visits_max}"))
    edges.append(Edge(step.name, after))
    return edges


def _maker(steps: tuple[Step, ...], place: int, handlers: Handlers) -> Step | None:
    """The step that made what a validate step looks at: the last one, back along what feeds it, that a model did."""
    places = {step.name: number for number, step in enumerate(steps)}
    while steps[place].input is None and (steps[place].source or place):
        place = places[steps[place].source] if steps[place].source else place - 1
        if isinstance(handlers[steps[place].type], InferHandler | PatternHandler):
            return steps[place]
    return None


def _bounds(plan: ExecutionPlan, handlers: Handlers) -> dict[str, int]:
    """How often each step may be entered: once, again for its retries, and again when a validate step sends it back."""
    names = [step.name for step in plan.steps]
    sent_back = dict.fromkeys(names, 0)
    for place, step in enumerate(plan.steps):
        maker = _maker(plan.steps, place, handlers) if isinstance(handlers[step.type], ValidateHandler) else None
        if maker is not None:
            for between in names[names.index(maker.name) : place]:
                sent_back[between] += step.retries
    return {step.name: 1 + step.retries + sent_back[step.name] for step in plan.steps}


def followed(step: Step, handler: Handler) -> Step:
    """The step as it is carried out; raises RequestRejected for what its handler could not follow."""
    if step.tool and not isinstance(handler, ToolHandler):
        raise invalid_step(step, f"names tool {step.tool[:80]!r} and is no tool step; leave it out")
    if step.schema is not None and not isinstance(handler, InferHandler):
        raise invalid_step(step, "has a schema and is no infer step; a loop has its own, and code needs none")
    if step.instruction and isinstance(handler, ToolHandler | RetrieveHandler | RerankHandler | ValidateHandler):
        raise invalid_step(step, "has an instruction, and its handler follows none; leave it out")
    if step.schema is not None:
        step = replace(step, schema=_object_schema(step, step.schema))
    if isinstance(step.input, ModelRequest) and isinstance(handler, InferHandler):
        step = replace(step, input=_written_out(step, step.input))
    # A handler that lacks what it works with does not find it by being tried again.
    return replace(step, retries=0) if is_lacking(handler) else step


def _written_out(step: Step, request: ModelRequest) -> ModelRequest:
    """A request with the schema that a type of its stands for, and the grammar that is in a file."""
    schema = None if request.schema is None else _object_schema(step, request.schema)
    grammar = grammar_text(request.grammar)
    if grammar:
        check_grammar(grammar)
    return replace(request, schema=schema, grammar=grammar)


def _object_schema(step: Step, source: object) -> JsonObject:
    schema = schema_of(source)
    if isinstance(schema, bool):
        message = f"step {step.name!r} has the schema {schema!r}, which says nothing about an output; pass an object"
        raise RequestRejected(SCHEMA_SOURCE_INVALID, message, {"step": step.name})
    try:
        schema_text(schema)
    except NotCanonical as problem:
        message = f"step {step.name!r} has a schema that cannot be written down: {problem.args[-1]}"
        raise RequestRejected(SCHEMA_SOURCE_INVALID, message, {"step": step.name}) from problem
    return schema


def instruction_of(step: Step, before: str = "") -> str:
    """What the handler of the step is told: what its handler says, then what the step says."""
    told = "\n\n".join(text for text in (before, step.instruction) if text)
    if len(told) > PROMPT_CHARS_MAX:
        reason = f"is told {len(told)} characters, instruction_chars_max={PROMPT_CHARS_MAX}"
        raise invalid_step(step, f"{reason}; put what holds for the whole plan into its system prompt")
    return clean(told)


def check_step_call(step: Step, tools: Registry) -> None:
    """Refuse a call of a tool that is not there, or that may not be made as often as the step would."""
    tool = tools.get(step.tool)
    if tool is None:
        known = ", ".join(one.name for one in tools) or "none"
        called = f"calls tool {step.tool[:80]!r}" if step.tool else "does not say which tool it calls; set tool"
        message = f"step {step.name!r} {called}; its handler has {known}"
        raise RequestRejected(ErrorCode.TOOL_NOT_FOUND, message, {"step": step.name, "tool": step.tool[:80]})
    if step.retries and tool.definition.effect.is_mutating and not tool.definition.idempotent:
        reason = f"has retries={step.retries} and its tool {tool.name!r} changes something and is not idempotent"
        raise invalid_step(step, f"{reason}; leave the retries out, or declare the tool idempotent if it is")


def invalid_step(step: Step, reason: str) -> RequestRejected:
    """The refusal of a step that cannot be carried out as it is written."""
    return RequestRejected(PLAN_STEP_INVALID, f"step {step.name!r} {reason}", {"step": step.name})
