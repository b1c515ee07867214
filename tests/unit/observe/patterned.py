"""Whole runs of plans and votes, played with a scripted model, and what they leave in the journal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from remit.agents.plan_executor import PlanExecutor
from remit.agents.redundant_loop import RedundantLoop
from remit.core.journal.turn import Turn
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemResponse
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.plan import ExecutionPlan, RerankInput, Step
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.observe.views.event_log import Event, InMemoryEventLog
from remit.observe.views.explain import Explanation
from remit.observe.views.outline import Outline, outline
from remit.orchestrate.patterns.handlers import InferHandler, RerankHandler, ToolHandler, ValidateHandler
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import in_memory, look
from tests.unit.orchestrate.stage import play

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"mood": {"type": "string"}},
    "required": ["mood"],
    "additionalProperties": False,
}
GOOD, BAD, MIXED = '{"mood":"good"}', '{"mood":"bad"}', '{"mood":"mixed"}'
# An error about which a model is not asked again, so that a failing replica takes no time.
FAILS: JsonObject = {"error": "INFERENCE_CONTEXT_EXCEEDED"}
# What a terminal obeys, and what turns text around.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e"
QUESTION = "How tall is the tower?"


class InTurn:
    """A model that gives these replies one after the other, to every caller; the last one repeats."""

    def __init__(self, *replies: str | JsonObject, name: str = "scripted") -> None:
        self._name = name
        self._engines = [ScriptedEngine([{"text": r} if isinstance(r, str) else r]) for r in replies]
        self._asked = 0

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The next reply."""
        engine = self._engines[min(self._asked, len(self._engines) - 1)]
        self._asked += 1
        return await engine.infer(request, on_chunk)

    def model_info(self) -> ModelInfo:
        """The model that the scripts play."""
        return replace(self._engines[0].model_info(), name=self._name)


class Ran(NamedTuple):
    """A run, as far as it came."""

    response: SystemResponse
    state: RunState
    turns: Sequence[Turn]
    explanation: Explanation
    children: Mapping[str, Outline]
    events: Sequence[Event]

    @property
    def outline(self) -> Outline:
        """The run as a tree."""
        return outline(self.turns)


def voted(*replies: str | JsonObject, **terms: Any) -> Ran:
    """A redundant run whose replicas are given these replies in turn."""

    async def ask() -> Ran:
        async with in_memory() as system:
            loop = RedundantLoop(InTurn(*replies), schema=SCHEMA, system=system, observer=log, **terms)
            return await _ran(system, (await loop.call("How is it?")).response, log)

    log = InMemoryEventLog()
    return play(ask())


def planned(
    *steps: Step,
    replies: Sequence[str | JsonObject] = ("It is 72 m tall.",),
    check: Callable[[str], Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Ran:
    """A plan of these steps, done by the handlers here and whatever more there is."""

    async def execute() -> Ran:
        async with in_memory() as system:
            executor = PlanExecutor({**handlers(replies, check), **(more or {})}, system=system, observer=log)
            result = await executor.execute(ExecutionPlan(steps), prompt=QUESTION)
            return await _ran(system, result.response, log)

    log = InMemoryEventLog()
    return play(execute())


def handlers(replies: Sequence[str | JsonObject], check: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """What every type of step does."""
    return {
        "infer": InferHandler(InTurn(*replies)),
        "tool": ToolHandler(Registry([look])),
        "find": found,
        "rerank": RerankHandler(lambda query, candidates: tuple(reversed(candidates))),
        "validate": ValidateHandler(check),
        "count": lambda step: {"length": len(str(step.input))},
        "break": _broken,
    }


def found(step: Step) -> RerankInput:
    """Three candidates, with a text that no terminal should be shown as it is."""
    candidates = [Candidate(f"text {n} {HOSTILE}", f"doc {n}", 1 / n, ScoreMaker.RETRIEVAL) for n in (1, 2, 3)]
    return RerankInput(str(step.input), tuple(candidates))


def _broken(step: Step) -> None:
    raise ValueError(f"step {step.name} is broken {HOSTILE}")


async def _ran(system: Any, response: SystemResponse, log: InMemoryEventLog) -> Ran:
    told = await system.archive.told(response.run_id)
    beneath = set(await system.archive.family(response.run_id)) - {response.run_id}
    children = {run_id: outline((await system.archive.history(run_id)).turns) for run_id in beneath}
    state = await system.state_of(response.run_id)
    return Ran(response, state, told.turns, told.explanation, children, log.events())
