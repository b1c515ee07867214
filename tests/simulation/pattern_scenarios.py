"""Scenarios of plans and votes: graphs made of a seed, as PlanExecutor and RedundantLoop make theirs of a request."""

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.contract import Mode, OutputContract, SystemRequest
from remit.core.run.inference import ModelResult
from remit.core.run.manifest import Source
from remit.core.run.messages import Message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Ask, Graph, schema_text
from remit.core.work.plan import ExecutionPlan, PlanPolicy, Step
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.patterns.handlers import (
    Handler,
    InferHandler,
    PatternHandler,
    RerankHandler,
    RetrieveHandler,
    ToolHandler,
    ValidateHandler,
)
from remit.orchestrate.patterns.plan_graph import plan_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from remit.orchestrate.patterns.voters import STRATEGIES
from remit.testing.scripts import Breaks, Model
from remit.tool.declare.decorator import Tool
from remit.tool.declare.signature import Signature, read_signature
from remit.tool.registry import Registry

# A plan that its own checks refuse is drawn again; after so many a short one will do.
DRAWS_MAX = 10

# The last two are what a judge may say.
_ANSWERS = (
    '{"ok": true}',
    '{"ok":true}',
    '{"ok": true}',
    '{"ok": false}',
    '{"ok": "maybe"}',
    "not what was asked",
    '{"holds": true, "problems": []}',
    '{"holds": false, "problems": ["it is rude"]}',
)
_FIRST = ("infer", "infer", "tool", "tool", "shape", "retrieve", "vote")
_TYPES = (*_FIRST, "tool", *["validate"] * 5, "rerank")
# Steps whose answers a validate step can send back.
_MADE = ("infer", "vote")
_SIMPLE = ExecutionPlan((Step("only", "infer", "say something"),))


def fickle(otherwise: Model) -> Model:
    """A model that mostly answers, not always the same, and now and then does what another would."""

    def answer(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
        roll = chance.random()
        if roll < 0.8:
            usage = TokenUsage(prompt_tokens=chance.randrange(50), output_tokens=chance.randrange(1, 50))
            return ModelResult(chance.choice(_ANSWERS), usage=usage)
        if roll < 0.88:
            return Breaks(ErrorCode.INFERENCE_MODEL_UNAVAILABLE)
        return otherwise(messages, chance)

    return answer


def vote_request(schema: JsonObject) -> SystemRequest:
    """What a redundant run is asked."""
    return SystemRequest((user_message("is it so?"),), Mode.REDUNDANT, output=OutputContract(schema=schema))


def plan_request() -> SystemRequest:
    """What a plan is asked."""
    return SystemRequest((user_message("do it step by step"),), Mode.PLAN)


def random_vote(chance: Random, schema: JsonObject) -> Graph:
    """Replicas one after the other or beside each other, all of them or until it is settled, in a hurry or not."""
    redundancy = Redundancy(
        n=chance.choice((1, 2, 3, 3, 4, 5)),
        voting=chance.choice(tuple(sorted(STRATEGIES))),
        early_stop=chance.random() < 0.4,
        is_parallel=chance.random() < 0.5,
        timeout_ms=chance.choice((0, 0, 0, 0, 1_500)),
    )
    return redundant_graph(schema_text(schema), "", redundancy)


def random_plan(chance: Random, schema: JsonObject, tools: Sequence[ToolDefinition]) -> Graph:
    """Steps of every type in any order that the checks of a plan let pass."""
    handlers = _handlers(chance, schema, tools)
    policy = PlanPolicy(require_linear=False, timeout_per_step_ms=chance.choice((0, 0, 0, 0, 0, 3_000)))
    for _ in range(DRAWS_MAX):
        try:
            return plan_graph(ExecutionPlan(_steps(chance, schema, tools)), policy, handlers, "say something")
        except RequestRejected:
            continue
    return plan_graph(_SIMPLE, policy, handlers)


def _steps(chance: Random, schema: JsonObject, tools: Sequence[ToolDefinition]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for place in range(chance.choice((1, 2, 2, 3, 3, 4, 5))):
        kind = chance.choice(_TYPES if steps else _FIRST)
        source = chance.choice(steps).name if steps and chance.random() < 0.15 else ""
        step = Step(f"{kind} {place}", kind, source=source, retries=chance.choice((0, 0, 1)))
        if kind == "tool":
            step = _calling(step, chance, tools)
        elif kind == "validate" and any(step.type in _MADE for step in steps):
            step = replace(step, retries=chance.choice((1, 2)))
        elif kind == "infer" and chance.random() < 0.4:
            step = replace(step, schema=schema)
        steps.append(step)
    return tuple(steps)


def _calling(step: Step, chance: Random, tools: Sequence[ToolDefinition]) -> Step:
    """A tool step, mostly of a tool that changes something, with arguments of its own or with what it is fed."""
    tool = chance.choice([*tools, *[tool for tool in tools if tool.effect.is_mutating] * 3])
    retries = step.retries if tool.idempotent or not tool.effect.is_mutating else 0
    if step.source or chance.random() < 0.2:
        return replace(step, tool=tool.name, retries=retries)
    return replace(step, tool=tool.name, retries=retries, input={"n": chance.randrange(3)})


def _handlers(chance: Random, schema: JsonObject, tools: Sequence[ToolDefinition]) -> Mapping[str, Handler]:
    engine = ScriptedEngine([{"text": "nobody asks this one"}])
    voting = PatternHandler(random_vote(chance, schema), engine, Mode.REDUNDANT, Ask(schema=schema_text(schema)))
    return {
        "infer": InferHandler(engine),
        "tool": ToolHandler(Registry(_tool(definition) for definition in tools)),
        "validate": ValidateHandler(_never_called),
        "shape": _never_called,
        "retrieve": RetrieveHandler(_never_called),
        "rerank": RerankHandler(_never_called),
        "vote": voting,
    }


def _tool(definition: ToolDefinition) -> Tool:
    return Tool(_nothing, definition, _signature(), Source(definition.name))


# A pure memo: reading a function takes milliseconds, and what the tools take is said by their definitions.
@cache
def _signature() -> Signature:
    return read_signature(_nothing, "nothing")


def _nothing() -> None:
    _never_called()


def _never_called(*given: object) -> None:
    raise AssertionError("the hands of the world do what handlers would")
