"""SpecializedLoop: single answers of a given shape, on the terms that its maker gives.

Rule 1: every call begins with the settings and the prompt alone; nothing is remembered between calls.
Rule 2: a listener (stream, observer) may break, and the run goes on.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace as replace_parts
from functools import partial
from pathlib import Path
from typing import Generic

from remit.agents.agent_requests import check_settings, checked_schema, hints_of, output_of, request_of
from remit.agents.single_runs import CallLoop, Read, SingleRuns, listening
from remit.agents.structured import OutputShape, SchemaSource, StructuredResponse, T
from remit.agents.terms import UNSAID, GoalSource, RuleSource, engine_of, filters_of, judging_by, terms_of, tools_of
from remit.agents.workplace import refuse_inside_a_loop
from remit.core.declared_arguments import checks_arguments, checks_only
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ExecutionHints, Mode, SystemRequest, SystemResponse
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.manifest import OUTPUT_TOKENS_DEFAULT
from remit.core.schema.grammar_source import grammar_text
from remit.core.work.orders import Orders, orders_of
from remit.inference.engine import AnyEngine
from remit.kernel.state import pinned
from remit.observe.views.event_log import EventLog
from remit.orchestrate.exchange.loop_config import LoopConfig, SpecializedConfig, Stream
from remit.orchestrate.facade import System
from remit.orchestrate.run_handle import Run, Streaming
from remit.orchestrate.setup.kit import ContextProvider, SystemPrompt, Terms, ToolCallFilter
from remit.tool.registry import Registry

RUN_NOT_STRUCTURED = "RUN_NOT_STRUCTURED"


@checks_arguments()
class SpecializedLoop(CallLoop[StructuredResponse[T]], Generic[T]):
    """One answer of a given shape for each call, and nothing remembered between calls.

    With tools a call has two phases: the model works with them, then it is asked for its output.
    """

    @checks_only("system_prompt", "stream", "observer", "context_provider")
    def __init__(
        self,
        engine: AnyEngine | str | None,
        *,
        schema: SchemaSource[T],
        tools: Registry | Iterable[object] = (),
        system_prompt: SystemPrompt = "",
        grammar: Path | str = "",
        max_tokens: int = OUTPUT_TOKENS_DEFAULT,
        temperature: float | None = None,
        top_p: float = 0.0,
        timeout_ms: int = 0,
        options: JsonObject | None = None,
        stream: Stream | None = None,
        observer: EventLog | None = None,
        context_provider: ContextProvider | None = None,
        boundary: Boundary | Path | str = UNSAID,
        budget: Budget = Budget(),
        role: AgentRole | str = AgentRole.GENERAL,
        goal: GoalSource | None = None,
        router: Routing | str = Routing.AUTO,
        rules: RuleSource | None = None,
        judge: AnyEngine | str | None = None,
        filters: Iterable[ToolCallFilter] = (),
        user_id: str = "",
        system: System | None = None,
        home: Path | str | None = None,
    ) -> None:
        self.config = SpecializedConfig(
            engine=engine_of(engine),
            tools=tools_of(tools),
            system_prompt=system_prompt,
            schema=checked_schema(schema),
            grammar=grammar_text(grammar),
            max_tokens=max_tokens,
            stream=stream,
            observer=observer,
            context_provider=context_provider,
        )
        self.user_id = user_id
        # What hears an output for the type that was given as schema, by its name; mostly empty.
        shape = OutputShape(schema)
        self.typed = shape.code
        judging = judging_by(rules, judge, self.config.engine)
        # Whether the caller passed a boundary, even the default one.
        self.has_own_boundary = boundary is not UNSAID
        self._terms = judging.applied(terms_of(boundary, budget, router, role=role, goal=goal))
        self._settings = replace_parts(
            _settings(self.config),
            code={**judging.code, **self.typed},
            judge=judging.judge,
            filters=filters_of(filters),
            hints=hints_of(temperature, top_p, timeout_ms, options),
        )
        self._runs = SingleRuns(
            _reading(shape), listening(self._settings), _expect_structured, system=system, home=home
        )
        check_settings(self._settings, user_id=user_id)

    @property
    def terms(self) -> Terms:
        """What every run of this loop may do and must achieve."""
        return self._terms

    @property
    def hints(self) -> ExecutionHints:
        """How models are sampled, and how long a run may take."""
        return self._settings.hints

    @property
    def filters(self) -> Mapping[str, ToolCallFilter]:
        """What looks at proposed calls, by name and in this order."""
        return self._settings.filters

    @property
    def tool_rounds_max(self) -> int:
        """How many rounds of tools the first phase of a call may have."""
        return self._settings.max_tool_iterations

    async def call(
        self, prompt: str, *, repair: bool = True, strict: bool = False, orders: Orders = ()
    ) -> StructuredResponse[T]:
        """One call: its output is `value` of the response. It returns with a question to a person, too.

        With `orders`, these effects alone happen unattended. A caller that stops waiting for it cancels the run.
        """
        asked = replace(self._request(prompt, repair=repair, strict=strict), orders=orders_of(orders))
        return await self._runs.call(asked, listening(self._settings), self._terms)

    async def start(
        self, prompt: str, *, repair: bool = True, strict: bool = False, orders: Orders = (), chunks: bool = False
    ) -> Run[StructuredResponse[T]]:
        """Begin a call: the handle waits for it, follows it, answers and cancels it."""
        asked = replace(self._request(prompt, repair=repair, strict=strict), orders=orders_of(orders))
        return await self._runs.start(asked, listening(self._settings), self._terms, chunks=chunks)

    async def resume(self, run_id: str) -> StructuredResponse[T]:
        """Go on with a call that was begun here or elsewhere, after a crash, with this loop's own tools."""
        return await self._runs.resume(run_id)

    def _request(self, prompt: str, *, repair: bool, strict: bool) -> SystemRequest:
        output = output_of(self.config.schema, grammar=self.config.grammar, repair=repair, strict=strict)
        request = request_of(self._settings, prompt, user_id=self.user_id)
        return replace(request, mode=Mode.STRUCTURED, output=output)

    def stream(self, prompt: str, *, repair: bool = True, strict: bool = False) -> Streaming[StructuredResponse[T]]:
        """A call whose words are heard as they come: `async for piece in`; to await it gives what call() gives."""
        return Streaming(partial(self.start, prompt, repair=repair, strict=strict, chunks=True))

    def call_sync(self, prompt: str, *, repair: bool = True, strict: bool = False) -> StructuredResponse[T]:
        """Call the loop without an event loop."""
        refuse_inside_a_loop("call_sync", "call")
        return asyncio.run(self.call(prompt, repair=repair, strict=strict))


def _reading(shape: OutputShape[T]) -> Read[StructuredResponse[T]]:
    async def read(_: System, response: SystemResponse) -> StructuredResponse[T]:
        return shape.response(response)

    return read


async def _expect_structured(system: System, run_id: str) -> None:
    mode = pinned(await system.state_of(run_id)).request.mode
    if mode is not Mode.STRUCTURED:
        message = f"run {run_id} is of mode {mode} and no structured answer; resume it with what began it"
        raise RequestRejected(RUN_NOT_STRUCTURED, message, {"run_id": run_id})


def _settings(config: SpecializedConfig) -> LoopConfig:
    """The settings of any loop that a specialized one works with."""
    return LoopConfig(
        config.engine,
        config.tools,
        config.system_prompt,
        config.grammar,
        config.max_tokens,
        stream=config.stream,
        observer=config.observer,
        context_provider=config.context_provider,
    )
