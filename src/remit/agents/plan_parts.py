"""What a plan's steps are done with: the handlers that are given, and the engines, tools and code that follow from them.

Rule 1: a loop that is given for a type of step becomes a child run of its pattern; nothing is remembered between steps.
Rule 2: one kit serves the whole plan, so names of models and tools must be told apart in all of it.
Rule 3: the plan's own boundary, budget and rules hold for all of its steps; a loop with terms of its own is refused. Its role
        and its filters hold for its steps, in addition to those of the plan.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from remit.agents.agent_loop import AgentLoop
from remit.agents.redundant_loop import RedundantLoop
from remit.agents.specialized_loop import SpecializedLoop
from remit.agents.structured import type_code, typed_for
from remit.agents.terms import engine_of, refuse_own_terms
from remit.core.failure import RequestRejected
from remit.core.run.contract import Mode
from remit.core.run.inference import ModelRequest
from remit.core.work.graph import Ask, schema_text
from remit.core.work.plan import MARK, ExecutionPlan
from remit.inference.engine import AnyEngine
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.handlers import (
    PLAN_HANDLER_INVALID,
    Handler,
    InferHandler,
    PatternHandler,
    RerankHandler,
    RetrieveHandler,
    ToolHandler,
    ValidateHandler,
    unusable_handler,
)
from remit.orchestrate.patterns.plan_graph import STEP_MARK, sampling_text, step_place
from remit.orchestrate.patterns.planners import PLAN_MODEL_TAKEN, answers_alike
from remit.orchestrate.patterns.structured_graph import structured_graph, type_heard
from remit.orchestrate.setup.kit import Code, ToolCallFilter, prompt_text
from remit.tool.declare.decorator import Tool
from remit.tool.registry import Registry

_HANDLERS = (InferHandler, ToolHandler, PatternHandler, RetrieveHandler, RerankHandler, ValidateHandler)

# Whatever may do the work of a type of step: a handler, a function of a Step, or a whole loop.
Loop: TypeAlias = AgentLoop | SpecializedLoop | RedundantLoop
StepWork: TypeAlias = Handler | Loop


@dataclass(frozen=True, slots=True)
class Parts:
    """Handlers by type of step, and everything they work with."""

    handlers: Mapping[str, Handler]
    engines: Mapping[str, AnyEngine]
    tools: Registry
    code: Mapping[str, Any]
    filters: Mapping[str, ToolCallFilter]

    def with_engine(self, engine: AnyEngine) -> "Parts":
        """The parts with one engine more; refused where another one serves a model of that name."""
        engines = dict(self.engines)
        _take_engine(engines, engine)
        return replace(self, engines=engines)


def executor_parts(given: Mapping[str, StepWork]) -> Parts:
    """The parts of a plan executor; raises RequestRejected for what could do no step."""
    handed: object = given
    if not isinstance(handed, Mapping) or not all(isinstance(type_of_step, str) for type_of_step in handed):
        message = "handlers are given by the type of the step they do, as a mapping of texts to handlers"
        raise RequestRejected(PLAN_HANDLER_INVALID, message)
    handlers = {type_of_step: _handler(type_of_step, work) for type_of_step, work in given.items()}
    engines: dict[str, AnyEngine] = {}
    tools: dict[str, Tool] = {}
    code: dict[str, Any] = {}
    filters: dict[str, ToolCallFilter] = {}
    for type_of_step, handler in handlers.items():
        if isinstance(handler, InferHandler | PatternHandler) and handler.engine is not None:
            _take_engine(engines, handler.engine)
        if isinstance(handler, InferHandler | PatternHandler | ToolHandler):
            for tool in handler.tools or ():
                _take_tool(tools, tool)
        if isinstance(handler, PatternHandler):
            code |= dict(handler.code or {})
            filters |= dict(handler.filters or {})
        else:
            # A handler that lacks its engine or its tools is code that says so.
            code[f"{STEP_MARK}{type_of_step}"] = unusable_handler(handler) or handler
    return Parts(handlers, engines, Registry(tools.values()), code, filters)


def _handler(type_of_step: str, given: object) -> Handler:
    if isinstance(given, AgentLoop | SpecializedLoop | RedundantLoop):
        refuse_own_terms(given, type_of_step)
    if isinstance(given, AgentLoop):
        return _chatting(type_of_step, given)
    if isinstance(given, SpecializedLoop):
        return _specialized(type_of_step, given)
    if isinstance(given, RedundantLoop):
        return given.as_step(f"custom:{type_of_step}")
    if isinstance(given, InferHandler):
        return given if given.engine is None and not given.spec else given.opened(engine_of(given.engine or given.spec))
    if isinstance(given, _HANDLERS) or (callable(given) and not isinstance(given, type)):
        return given
    shown = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
    message = f"steps of type {type_of_step[:80]!r} are given {shown}; give a handler, a function of a Step, or a loop"
    raise RequestRejected(PLAN_HANDLER_INVALID, message, {"type": type_of_step[:80]})


def _named(type_of_step: str, filters: Mapping[str, ToolCallFilter]) -> dict[str, ToolCallFilter]:
    """Filters of a loop under names that no other loop's have."""
    return {f"{type_of_step}.{name}": look for name, look in filters.items()}


def _chatting(type_of_step: str, loop: AgentLoop) -> PatternHandler:
    config = loop.config
    tools, filters = tuple(tool.name for tool in config.tools), _named(type_of_step, config.filters)
    ask = Ask(
        prompt_text(config.system_prompt),
        tools,
        max_tokens=config.max_tokens,
        filters=tuple(filters),
        role=loop.terms.role,
        sampling=sampling_text(loop.hints),
    )
    graph = chat_graph(tool_rounds_max=config.max_tool_iterations)
    return PatternHandler(graph, config.engine, Mode.CHAT, ask, config.tools, filters=filters)


def _specialized(type_of_step: str, loop: SpecializedLoop) -> PatternHandler:
    config, filters = loop.config, _named(type_of_step, loop.filters)
    schema, tools = schema_text(config.schema), tuple(tool.name for tool in config.tools)
    ask = Ask(
        prompt_text(config.system_prompt),
        tools,
        schema=schema,
        grammar=config.grammar,
        max_tokens=config.max_tokens,
        filters=tuple(filters),
        role=loop.terms.role,
        sampling=sampling_text(loop.hints),
    )
    rounds = loop.tool_rounds_max if tools else 0
    # Of loops for several types of steps, each has a type of its own.
    code = typed_for(f"loop{MARK}{type_of_step}", loop.typed)
    graph = structured_graph(schema, config.grammar, tool_rounds_max=rounds, is_prepared=True, heard=type_heard(code))
    return PatternHandler(graph, config.engine, Mode.STRUCTURED, ask, config.tools, code=code, filters=filters)


def _take_engine(engines: dict[str, AnyEngine], engine: AnyEngine) -> None:
    name = engine.model_info().name
    kept = engines.setdefault(name, engine)
    if not answers_alike(engine, kept):
        message = f"two engines of the plan serve a model called {name[:80]!r}; give both steps the same engine"
        raise RequestRejected(PLAN_MODEL_TAKEN, message, {"model": name[:80]})


def _take_tool(tools: dict[str, Tool], tool: Tool) -> None:
    kept = tools.setdefault(tool.name, tool)
    # A plain function is made a tool wherever it is given.
    if kept is not tool and (kept.function is not tool.function or kept.definition != tool.definition):
        Registry((kept, tool))  # It says what is wrong with two tools of one name.


def types_of(plan: ExecutionPlan) -> dict[str, Code]:
    """What hears the answers of the steps of a plan whose schema is a type with checks of its own, by name."""
    found: dict[str, Code] = {}
    for step in plan.steps:
        # A type stands for its schema there as well.
        asked: Any = step.input.schema if isinstance(step.input, ModelRequest) else None
        with suppress(RequestRejected):  # What stands for no schema is refused with its step.
            found |= typed_for(step_place(step), type_code(step.schema or asked))
    return found
