"""Handlers: what each type of step does, as PlanExecutor is given them.

Rule 1: a handler of code gets a Step with its input set and returns the Step with its output set, or just the output.
Rule 2: a handler that lacks what it works with is accepted and fails when its step runs, with a message that says so.
Rule 3: what could do no such work at all (a class, a text, something without the method) is refused when the handler is made,
        and what a provider or a reranker gives is looked at before a later step is given it.
Rule 4: a step whose work is a model's is a child run: an infer step of its own engine, or a whole pattern.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol, TypeAlias, runtime_checkable

from remit.core.clipped import clipped
from remit.core.declared_types import as_declared
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.raised import words_of
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, Mode
from remit.core.run.request_checks import OUTPUT_TOKENS_MAX, REQUEST_TOOLS_INVALID, check_options
from remit.core.work.candidate import Candidate
from remit.core.work.graph import Ask, Graph
from remit.core.work.plan import ContextFor, RerankInput, Step
from remit.core.work.values import ValueKind
from remit.inference.engine import AnyEngine, Engine
from remit.orchestrate.patterns.found_values import candidates_in, evidence_in, messages_in
from remit.orchestrate.setup.kit import Code, ContextProvider, PromptProvider, SystemPrompt, ToolCallFilter, prompt_text
from remit.tool.call.threads import call_user_code
from remit.tool.registry import Registry

PLAN_HANDLER_INVALID = "PLAN_HANDLER_INVALID"

# A function of the user's own: of a Step, giving the Step with its output, or the output alone; perhaps awaited.
StepFunction: TypeAlias = Callable[[Step], Any]
# A function of a query, giving candidates or messages; perhaps awaited.
FindEvidence: TypeAlias = Callable[[str], Any]
# A function of a query and candidates, or of a RerankInput that has both, giving those that remain, best first; perhaps awaited.
Rerank: TypeAlias = Callable[[str, Sequence[Candidate]], Any] | Callable[[RerankInput], Any]
Tools: TypeAlias = Registry | Iterable[object]


class HandlerUnusable(ValueError):
    """A handler that was made without what it works with."""

    code = ErrorCode.CONFIG_PART_MISSING


class EngineMissing(HandlerUnusable):
    """An infer handler that was made without an engine."""

    code = ErrorCode.CONFIG_NO_ENGINE


@runtime_checkable
class CandidateReranker(Protocol):
    """Puts candidates into a better order, and may leave some out."""

    def rerank(self, asked: RerankInput, /) -> Any:
        """The candidates that remain, best first; perhaps awaited."""


@runtime_checkable
class QueryReranker(Protocol):
    """A reranker that takes query and candidates apart."""

    def rerank(self, query: str, candidates: Sequence[Candidate], /) -> Any:
        """The candidates that remain, best first; perhaps awaited."""


@runtime_checkable
class CandidateFinder(Protocol):
    """A provider that gives candidates, with their sources and scores, rather than messages made of them."""

    def find(self, query: str) -> Any:
        """Candidates for a query, best first; perhaps awaited."""


@runtime_checkable
class _RuleSet(Protocol):
    def check(self, value: Any) -> Any: ...


class InferHandler:
    """Steps that ask a model: each is a child run of its own, with the tools it is given and its own repairs.

    The engine is one, or the spec of one. 0 for `max_tokens` is what every pattern allows. `sampling` is how its model is
    sampled; a step that brings a ModelRequest says that itself. A provider of prompts is asked once, here.
    """

    def __init__(
        self,
        engine: AnyEngine | str | None,
        *,
        tools: Tools = (),
        system_prompt: SystemPrompt = "",
        max_tokens: int = 0,
        sampling: ExecutionHints | None = None,
    ) -> None:
        if isinstance(system_prompt, PromptProvider):
            system_prompt = prompt_text(system_prompt)
        _check_asking(system_prompt, max_tokens)
        hints = ExecutionHints() if sampling is None else sampling
        self.sampling = as_declared(hints, ExecutionHints, "sampling", PLAN_HANDLER_INVALID)
        check_options(self.sampling.options, "sampling.options")
        self.engine = None if isinstance(engine, str) else engine
        self.spec = engine if isinstance(engine, str) else ""
        self.tools = registry_of(tools)
        self.system_prompt, self.max_tokens = system_prompt, max_tokens

    def opened(self, engine: Engine) -> "InferHandler":
        """The handler with the engine that its spec named."""
        return InferHandler(
            engine,
            tools=self.tools,
            system_prompt=self.system_prompt,
            max_tokens=self.max_tokens,
            sampling=self.sampling,
        )


class ToolHandler:
    """Steps that call one of these tools, through the same gate as any call that a model proposes."""

    def __init__(self, tools: Tools | None) -> None:
        self.tools = None if tools is None else registry_of(tools)


@dataclass(frozen=True, slots=True)
class PatternHandler:
    """Steps that are a whole pattern: its graph, its engine and what its request says."""

    graph: Graph
    engine: AnyEngine
    mode: Mode
    ask: Ask
    tools: Registry | None = None
    code: Mapping[str, Code] | None = None
    filters: Mapping[str, ToolCallFilter] | None = None


class RetrieveHandler:
    """Steps that find evidence for a query: by a context provider, or by a function of the query.

    What has a `find` gives candidates, with their sources and scores; what only has a `build` gives its messages.
    """

    def __init__(self, provider: ContextProvider | CandidateFinder | FindEvidence | None) -> None:
        _expect_part("retrieve", provider, ("find", "build"), "a context provider, or a function of the query")
        self.provider = provider

    @property
    def gives(self) -> str:
        """The kind of what it finds, where that is known before it looks."""
        if _has(self.provider, "find"):
            return ValueKind.CANDIDATES
        return ValueKind.MESSAGES if _has(self.provider, "build") else ""

    async def __call__(self, step: Step) -> Step:
        """Find what there is for the query that is the step's input."""
        query = step.input
        provider: Any = self.provider
        if provider is None:
            raise HandlerUnusable("retrieve handler: no context provider was given")
        name = type(provider).__name__
        found: RerankInput | ContextFor
        if _has(provider, "find"):
            found = candidates_in(await call_user_code(provider.find, query), query, f"{name}.find()")
        elif _has(provider, "build"):
            found = messages_in(await call_user_code(provider.build, query), query, f"{name}.build()")
        else:
            found = evidence_in(await call_user_code(provider, query), query, "the function of the handler")
        return replace(step, output=found)


class RerankHandler:
    """Steps that put candidates into a better order: by a reranker, or by a function of query and candidates."""

    def __init__(self, reranker: CandidateReranker | QueryReranker | Rerank | None) -> None:
        _expect_part("rerank", reranker, ("rerank",), "a reranker, or a function of query and candidates")
        self.reranker = reranker

    async def __call__(self, step: Step) -> Step:
        """Rerank the candidates that are the step's input."""
        if self.reranker is None:
            raise HandlerUnusable("rerank handler: no reranker was given")
        asked: RerankInput = step.input
        # Both kinds of rerankers have the one method; how it is called is told by what it takes.
        rerank: Any = getattr(self.reranker, "rerank", self.reranker)
        given = (asked,) if _takes_one(rerank) else (asked.query, asked.candidates)
        ordered = await call_user_code(rerank, *given)
        return replace(step, output=candidates_in(ordered, asked.query, "the reranker"))


def _takes_one(rerank: Callable[..., Any]) -> bool:
    """Whether a reranker takes a RerankInput, and not query and candidates apart."""
    try:
        parameters = signature(rerank).parameters.values()
    except (TypeError, ValueError):  # Some builtins do not tell.
        return False
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in places if one.default is one.empty]
    takes_any = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return not takes_any and bool(places) and (len(places) == 1 or len(needed) == 1)


class ValidateHandler:
    """Steps that look at an output and let it pass as it is, or say what is wrong with it.

    A check is a function of the text, or compiled rules. It objects by raising ValueError, by returning what is wrong
    (a text or several), or by returning False.
    """

    def __init__(self, check: Callable[[str], Any] | _RuleSet | None) -> None:
        _expect_part("validate", check, ("check",), "a function of the text, or compiled rules")
        self.check = check

    async def __call__(self, step: Step) -> Any:
        """What the check finds wrong with the step's input; None when it passes."""
        if self.check is None:
            raise HandlerUnusable("validate handler: no check was given")
        check = self.check.check if isinstance(self.check, _RuleSet) else self.check
        try:
            said = await call_user_code(check, step.input)
        except ValueError as problem:
            return (words_of(problem) or f"the check raised {type(problem).__name__}",)
        if isinstance(said, bool):
            return None if said else ("the check returned False",)
        if said is None or (isinstance(said, str | list | tuple) and not said):
            return None
        # What is none of what a check may return, however empty it is, is told by those who hear it.
        return (said,) if isinstance(said, str) else said


# Whatever PlanExecutor takes for a type of step.
Handler: TypeAlias = (
    InferHandler | ToolHandler | PatternHandler | RetrieveHandler | RerankHandler | ValidateHandler | StepFunction
)


def registry_of(tools: Tools) -> Registry:
    """The registry that is given, or one of these tools and plain functions; raises RequestRejected for anything else."""
    handed: object = tools
    if not isinstance(handed, Iterable) or isinstance(handed, str | bytes):
        message = f"tools={clipped(handed)} are no tools; give a list of tools and functions, or a Registry"
        raise RequestRejected(REQUEST_TOOLS_INVALID, message)
    return tools if isinstance(tools, Registry) else Registry(tools)


def _check_asking(system_prompt: object, max_tokens: object) -> None:
    """Refuse what no request to a model could say."""
    if not isinstance(system_prompt, str):
        raise _unfit("infer", system_prompt, "a text as system_prompt")
    if type(max_tokens) is not int or not 0 <= max_tokens <= OUTPUT_TOKENS_MAX:
        message = (
            f"infer handler: max_tokens={clipped(max_tokens)} is outside 0 to {OUTPUT_TOKENS_MAX}; "
            "leave it out for what every pattern allows"
        )
        raise RequestRejected(PLAN_HANDLER_INVALID, message, {"limit": OUTPUT_TOKENS_MAX})


def is_lacking(handler: Handler) -> bool:
    """Whether a handler was made without what it works with."""
    match handler:
        case InferHandler():
            return handler.engine is None
        case ToolHandler():
            return handler.tools is None
        case RetrieveHandler():
            return handler.provider is None
        case RerankHandler():
            return handler.reranker is None
        case ValidateHandler():
            return handler.check is None
    return False


def unusable_handler(handler: Handler) -> StepFunction | None:
    """Code in place of a handler that has no engine or no tools: it says what is missing when its step runs."""
    if not is_lacking(handler):
        return None
    if isinstance(handler, InferHandler):
        return _refusing(EngineMissing("infer handler: no engine was given"))
    missing = HandlerUnusable("tool handler: no tools were given")
    return _refusing(missing) if isinstance(handler, ToolHandler) else None


def _refusing(problem: HandlerUnusable) -> StepFunction:
    def refuse(step: Step) -> None:
        raise problem

    return refuse


def _has(given: object, method: str) -> bool:
    """Whether something is a part with this method; a text, which has a `find`, is none, and neither is a class."""
    return not isinstance(given, type | str | bytes | bytearray) and callable(getattr(given, method, None))


def _expect_part(name: str, given: object, methods: tuple[str, ...], wanted: str) -> None:
    """Refuse what has none of the methods, and is no function either."""
    is_function = callable(given) and not isinstance(given, type)
    if given is not None and not is_function and not any(_has(given, method) for method in methods):
        raise _unfit(name, given, wanted)


def _unfit(name: str, given: object, wanted: str) -> RequestRejected:
    shown = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
    message = f"{name} handler: {shown} was given; give {wanted}"
    return RequestRejected(PLAN_HANDLER_INVALID, message)
