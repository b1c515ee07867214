"""RedundantLoop: the same question asked several times, and the answer that a vote picks.

Rule 1: every candidate is a governed run of its own beneath one that counts them; what they spend, that one may spend.
Rule 2: a candidate that failed is left out and counted; who wins, and how surely, stands in the journal.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as replace_parts
from functools import partial
from pathlib import Path
from typing import Generic, Self

from remit.agents.agent_requests import check_settings, checked_schema, hints_of, output_of, request_of
from remit.agents.single_runs import CallLoop, Read, SingleRuns, listening
from remit.agents.structured import OutputShape, SchemaSource, StructuredResponse, T, typed_for
from remit.agents.terms import UNSAID, GoalSource, engine_of, refuse_own_terms, terms_of
from remit.agents.workplace import refuse_inside_a_loop
from remit.core.clipped import clipped
from remit.core.declared_arguments import checks_arguments, checks_only
from remit.core.failure import Ending, RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.record import JsonObject, replace
from remit.core.run.contract import (
    ExecutionHints,
    Mode,
    SystemError,  # noqa: A004  # the name of the contract
    SystemRequest,
    SystemResponse,
    WaitingFor,
)
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.manifest import OUTPUT_TOKENS_DEFAULT
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.schema.grammar_source import grammar_text
from remit.core.work.graph import Ask, Graph, schema_text
from remit.core.work.plan import MARK
from remit.inference.engine import AnyEngine, Engine
from remit.kernel.results.votes import in_order, voting_answers
from remit.kernel.state import RunState, pinned
from remit.observe.views.event_log import EventLog
from remit.observe.views.execution import raw_answer
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.loop_config import LoopConfig
from remit.orchestrate.facade import System
from remit.orchestrate.history.fork_run import child_begun
from remit.orchestrate.patterns.graph_choice import check_graph_fits
from remit.orchestrate.patterns.handlers import PatternHandler
from remit.orchestrate.patterns.plan_graph import sampling_text
from remit.orchestrate.patterns.redundant_graph import (
    REPLICAS_DEFAULT,
    REPLICAS_INVALID,
    VOTE_MARK,
    Redundancy,
    check_replicas,
    redundant_for,
)
from remit.orchestrate.patterns.structured_graph import type_heard
from remit.orchestrate.patterns.voters import Strategy, check_strategy, strategy_named
from remit.orchestrate.run_handle import Run, Streaming
from remit.orchestrate.setup.kit import Code, ContextProvider, Kit, SystemPrompt, prompt_text

RUN_NO_VOTE = "RUN_NO_VOTE"

# How a strategy of the caller's own is called in the graph.
CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class RedundantConfig:
    """What a redundant loop works with."""

    engine: Engine
    system_prompt: SystemPrompt
    schema: JsonObject
    grammar: str = ""
    n: int = REPLICAS_DEFAULT
    voting: Strategy | str = "majority"
    max_tokens: int = OUTPUT_TOKENS_DEFAULT
    observer: EventLog | None = None


@dataclass(frozen=True, slots=True)
class RedundantResult(Generic[T]):
    """What a vote came to: the winner, how surely, every answer that was voted on, and what all of them used.

    `failed` replicas gave no answer. The response says why, where there is no winner. `raw_candidates` are the own words
    of all replicas that were asked, in their order, before anything was repaired; empty of one that said nothing.
    """

    content: str
    confidence: float
    candidates: tuple[str, ...]
    usage: TokenUsage
    failed: int
    response: StructuredResponse[T]
    raw_candidates: tuple[str, ...] = ()

    @property
    def value(self) -> T:
        """The winner as the type that was given as schema; raises RunFailed where there is no winner."""
        return self.response.value

    @property
    def error(self) -> SystemError | None:
        """Why there is no winner."""
        return self.response.error

    @property
    def terminal_code(self) -> Ending | None:
        """How the vote ended; None while it has not."""
        return self.response.terminal_code

    @property
    def waiting_for(self) -> WaitingFor | None:
        """What a person is asked before the vote goes on."""
        return self.response.waiting_for

    def raise_for_error(self) -> Self:
        """The result itself; raises RunFailed where there is no winner, or none yet."""
        self.response.raise_for_error()
        return self


@checks_arguments()
class RedundantLoop(CallLoop[RedundantResult[T]], Generic[T]):
    """N answers of a given shape to one question, and a vote among them."""

    @checks_only("system_prompt", "observer", "context_provider")
    def __init__(
        self,
        engine: AnyEngine | str | None,
        *,
        schema: SchemaSource[T],
        system_prompt: SystemPrompt = "",
        grammar: Path | str = "",
        n: int = REPLICAS_DEFAULT,
        voting: Strategy | str = "majority",
        early_stop: bool = False,
        parallel: bool = False,
        replica_timeout_ms: int = 0,
        max_tokens: int = OUTPUT_TOKENS_DEFAULT,
        temperature: float | None = None,
        top_p: float = 0.0,
        timeout_ms: int = 0,
        options: JsonObject | None = None,
        observer: EventLog | None = None,
        context_provider: ContextProvider | None = None,
        boundary: Boundary | Path | str = UNSAID,
        budget: Budget = Budget(),
        role: AgentRole | str = AgentRole.GENERAL,
        goal: GoalSource | None = None,
        user_id: str = "",
        system: System | None = None,
        home: Path | str | None = None,
    ) -> None:
        written, opened, grammar = checked_schema(schema), engine_of(engine), grammar_text(grammar)
        self.config = RedundantConfig(
            engine=opened,
            system_prompt=system_prompt,
            schema=written,
            grammar=grammar,
            n=n,
            voting=voting,
            max_tokens=max_tokens,
            observer=observer,
        )
        at_once = parallel and _takes_several(opened)
        named = voting if isinstance(voting, str) else CUSTOM
        self._redundancy = Redundancy(n, named, early_stop, at_once, replica_timeout_ms)
        _check_vote(voting, n, early_stop=early_stop, parallel=parallel)
        self.context_provider, self.user_id, shape = context_provider, user_id, OutputShape(schema)
        # Whether the caller passed a boundary, even the default one.
        self.has_own_boundary, self._typed = boundary is not UNSAID, shape.code
        said = terms_of(boundary, budget, Routing.NONE, role=role, goal=goal)
        self.terms = replace_parts(said, redundancy=self._redundancy)
        self._settings = LoopConfig(
            opened,
            system_prompt=system_prompt,
            grammar=grammar,
            max_tokens=max_tokens,
            observer=observer,
            context_provider=context_provider,
            hints=hints_of(temperature, top_p, timeout_ms, options),
        )
        self._runs = SingleRuns(_reading(shape), self._kit_for, _expect_vote, system=system, home=home)
        check_settings(self._settings, user_id=user_id)
        # What no graph could be made of, or what the budget could not pay for, is refused now.
        check_graph_fits(self._graph(CUSTOM, self._typed), self.terms)

    async def call(self, prompt: str, *, repair: bool = True, strict: bool = False) -> RedundantResult[T]:
        """Ask N times, and count. A caller that stops waiting for it cancels the run and every replica."""
        asked = self._request(prompt, repair=repair, strict=strict)
        return await self._runs.call(asked, self._kit_for, self.terms)

    async def start(
        self, prompt: str, *, repair: bool = True, strict: bool = False, chunks: bool = False
    ) -> Run[RedundantResult[T]]:
        """Begin a vote: the handle follows, answers and cancels it, and its result is that of call()."""
        asked = self._request(prompt, repair=repair, strict=strict)
        return await self._runs.start(asked, self._kit_for, self.terms, chunks=chunks)

    def stream(self, prompt: str, *, repair: bool = True, strict: bool = False) -> Streaming[RedundantResult[T]]:
        """A call whose words are heard as they come: `async for piece in`; to await it gives what call() gives."""
        return Streaming(partial(self.start, prompt, repair=repair, strict=strict, chunks=True))

    def call_sync(self, prompt: str, *, repair: bool = True, strict: bool = False) -> RedundantResult[T]:
        """Call the loop without an event loop."""
        refuse_inside_a_loop("call_sync", "call")
        return asyncio.run(self.call(prompt, repair=repair, strict=strict))

    async def resume(self, run_id: str) -> RedundantResult[T]:
        """Go on with a call that was begun here or elsewhere; no replica that has ended is asked again.

        The model and the voter must be there that the call was begun with; else it is refused and stays as it is.
        """
        return await self._runs.resume(run_id)

    def as_step(self, name: str = CUSTOM) -> PatternHandler:
        """The loop as a step of a plan: PlanExecutor takes the loop itself, too.

        In a plan with several loops, the name tells their voting strategies apart. A loop with terms of its own is refused.
        """
        refuse_own_terms(self)
        ask = Ask(
            prompt_text(self.config.system_prompt),
            (),
            schema=schema_text(self.config.schema),
            grammar=self.config.grammar,
            max_tokens=self.config.max_tokens,
            role=self.terms.role,
            sampling=sampling_text(self._settings.hints),
        )
        typed = typed_for(f"vote{MARK}{name}", self._typed)
        code = {**typed, **self._voter(name)}
        return PatternHandler(self._graph(name, typed), self.config.engine, Mode.REDUNDANT, ask, code=code)

    def _graph(self, name: str, typed: Mapping[str, Code]) -> Graph:
        """The graph of a call whose strategy has this name, where it is the caller's own."""
        output = output_of(self.config.schema, grammar=self.config.grammar, repair=True, strict=False)
        asked = SystemRequest((user_message("a question"),), Mode.REDUNDANT, output=output)
        voted = replace(self._redundancy, voting=name) if self._voter(name) else self._redundancy
        return redundant_for(asked, voted, type_heard(typed))

    @property
    def hints(self) -> ExecutionHints:
        """How replicas are sampled, and how long a call may take."""
        return self._settings.hints

    def _request(self, prompt: str, *, repair: bool, strict: bool) -> SystemRequest:
        output = output_of(self.config.schema, grammar=self.config.grammar, repair=repair, strict=strict)
        request = request_of(self._settings, prompt, user_id=self.user_id)
        return replace(request, mode=Mode.REDUNDANT, output=output)

    def _voter(self, name: str = CUSTOM) -> dict[str, Strategy]:
        voting = self.config.voting
        return {} if isinstance(voting, str) else {f"{VOTE_MARK}{name}": voting}

    def _kit_for(self, system: System) -> tuple[Kit, Listener]:
        kit, listener = listening(self._settings)(system)
        return replace_parts(kit, code={**self._typed, **self._voter()}), listener


def _takes_several(engine: Engine) -> bool:
    """Replicas are asked beside each other only where the model can be asked several things at once."""
    return engine.model_info().calls_at_once > 1


def _check_vote(voting: Strategy | str, replicas: int, *, early_stop: bool, parallel: bool) -> None:
    """Refuse a vote that could not be taken."""
    check_replicas(replicas)
    for name, given in (("early_stop", early_stop), ("parallel", parallel)):
        if type(given) is not bool:
            raise RequestRejected(
                REPLICAS_INVALID, f"{name}={clipped(given)} is neither True nor False; give one of them"
            )
    if isinstance(voting, str):
        strategy_named(voting)
    else:
        check_strategy(voting, replicas=replicas)
    if early_stop and parallel:
        message = "early_stop asks one replica after the other and parallel asks all at once; choose one of them"
        raise RequestRejected(REPLICAS_INVALID, message)


async def _expect_vote(system: System, run_id: str) -> None:
    mode = pinned(await system.state_of(run_id)).request.mode
    if mode is not Mode.REDUNDANT:
        message = f"run {run_id} is of mode {mode} and no vote; resume it with what began it"
        raise RequestRejected(RUN_NO_VOTE, message, {"run_id": run_id})


def _reading(shape: OutputShape[T]) -> Read[RedundantResult[T]]:
    async def read(system: System, response: SystemResponse) -> RedundantResult[T]:
        state = await system.state_of(response.run_id)
        candidates, failed = await _candidates_of(system, state)
        confidence, usage = response.confidence or 0.0, response.token_usage
        typed = shape.response(response)
        raw = await _raw_candidates_of(system, state)
        return RedundantResult(
            content=response.content,
            confidence=confidence,
            candidates=candidates,
            usage=usage,
            failed=failed,
            response=typed,
            raw_candidates=raw,
        )

    return read


async def _candidates_of(system: System, state: RunState) -> tuple[tuple[str, ...], int]:
    """The answers that were voted on in a run, in the order in which they were asked for, and how many failed."""
    children = state.children.ended
    answers = voting_answers(children)
    texts = tuple([await system.text(child.text) for child in answers])
    return texts, len(children) - len(answers)


async def _raw_candidates_of(system: System, state: RunState) -> tuple[str, ...]:
    """What each replica of a run said itself, in the order in which they were asked for; empty where it said nothing."""
    said: list[str] = []
    for child in in_order(state.children.ended):
        begun = state.children.runs[child.command_id]
        if pinned(state).forked_from is not None:
            begun = await child_begun(system.store.journal, state, child.command_id)
        replica = await system.state_of(begun)
        said.append(await system.text(raw_answer(replica) or replica.result.answer))
    return tuple(said)
