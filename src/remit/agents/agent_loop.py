"""AgentLoop: a conversation, on the terms that its maker gives.

Rule 1: an agent holds no truth of its own: what was said and what is kept stands in the journal, by session.
Rule 2: a conversation is what users and assistants said. Tool results and retrieved evidence serve one exchange.
Rule 3: a listener (stream, `on_tool_result`, observer) may break, and the run goes on.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace as replace_parts
from functools import partial
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload
from uuid import uuid4

from remit.agents.agent_requests import check_settings, hints_of, instructions, object_schema, output_of, request_of
from remit.agents.structured import OutputShape, SchemaSource, StructuredResponse, T
from remit.agents.terms import UNSAID, GoalSource, RuleSource, engine_of, filters_of, judging_by, terms_of, tools_of
from remit.agents.workplace import Workplace, open_run, refuse_inside_a_loop, run_or_cancel
from remit.core.declared_arguments import checks_arguments, checks_only
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import JsonObject, replace
from remit.core.run.contract import (
    ITERATIONS_MAX_DEFAULT,
    NOTHING_OPEN,
    ExecutionHints,
    Mode,
    OutputContract,
    SystemRequest,
    SystemResponse,
)
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.manifest import OUTPUT_TOKENS_DEFAULT
from remit.core.run.messages import Message
from remit.core.run.signals import UserSignal, none_of
from remit.core.schema.grammar_source import grammar_text
from remit.core.work.orders import Orders, orders_of
from remit.inference.engine import AnyEngine
from remit.observe.views.event_log import EventLog
from remit.orchestrate.exchange.exchange import Exchange
from remit.orchestrate.exchange.loop_config import LoopConfig, OnToolResult, Stream
from remit.orchestrate.exchange.sessions import Session, SessionState
from remit.orchestrate.inner_runs import told_to_step
from remit.orchestrate.run_handle import (
    CALLER,
    Run,
    Streaming,
    answer,
    approval,
    cancellation,
    refuse_answer,
    rejection,
)
from remit.orchestrate.setup.kit import ContextProvider, SystemPrompt, Terms, ToolCallFilter
from remit.tool.registry import Registry

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

AGENT_BUSY = "AGENT_BUSY"

_NO_TOOLS = ToolChoice(ToolChoiceMode.NONE)


@checks_arguments("schema")
class AgentLoop:
    """A conversation. Each exchange is a governed run; the runs of a conversation are its session."""

    @checks_only("system_prompt", "stream", "on_tool_result", "observer", "context_provider")
    def __init__(
        self,
        engine: AnyEngine | str | None,
        *,
        tools: Registry | Iterable[object] = (),
        system_prompt: SystemPrompt = "",
        grammar: Path | str = "",
        max_tokens: int = OUTPUT_TOKENS_DEFAULT,
        max_tool_iterations: int = ITERATIONS_MAX_DEFAULT,
        temperature: float | None = None,
        top_p: float = 0.0,
        timeout_ms: int = 0,
        options: JsonObject | None = None,
        stream: Stream | None = None,
        on_tool_result: OnToolResult | None = None,
        observer: EventLog | None = None,
        context_provider: ContextProvider | None = None,
        boundary: Boundary | Path | str = UNSAID,
        budget: Budget = Budget(),
        role: AgentRole | str = AgentRole.GENERAL,
        goal: GoalSource | None = None,
        router: Routing | str = Routing.AUTO,
        rules: RuleSource | None = None,
        judge: AnyEngine | str | None = None,
        downgrade: AnyEngine | str | None = None,
        filters: Iterable[ToolCallFilter] = (),
        session_id: str = "",
        user_id: str = "",
        system: "System | None" = None,
        home: Path | str | None = None,
    ) -> None:
        judging = judging_by(rules, judge, opened := engine_of(engine))
        self.config = LoopConfig(
            engine=opened,
            tools=tools_of(tools),
            system_prompt=system_prompt,
            grammar=grammar_text(grammar),
            max_tokens=max_tokens,
            max_tool_iterations=max_tool_iterations,
            stream=stream,
            on_tool_result=on_tool_result,
            observer=observer,
            context_provider=context_provider,
            code=judging.code,
            judge=judging.judge,
            filters=filters_of(filters),
            downgrade=None if downgrade is None else engine_of(downgrade),
            hints=hints_of(temperature, top_p, timeout_ms, options),
        )
        self.session_id, self.user_id = session_id or str(uuid4()), user_id
        self.session_state = SessionState(self._keep)
        self.has_own_boundary = boundary is not UNSAID
        self._terms = judging.applied(terms_of(boundary, budget, router, goal=goal, role=role))
        self._workplace = Workplace(system, home)
        # Held while `chat_sync` waits: what it opens lives in one thread.
        self._in_use = Lock()
        self._session = Session(self.session_id)
        self._entries: dict[str, str] = {}  # From before the first exchange, which takes them along.
        self._exchange: Exchange | None = None
        check_settings(self.config, session_id=self.session_id, user_id=user_id)

    @property
    def terms(self) -> Terms:
        """What every run of this loop may do and must achieve."""
        return self._terms

    @property
    def hints(self) -> ExecutionHints:
        """How models are sampled, and how long a run may take."""
        return self.config.hints

    @property
    def messages(self) -> list[Message]:
        """The conversation so far, as this agent knows it: instructions, then users and assistants. A fresh list."""
        return [*instructions(self.config), *self._session.messages]

    async def chat(self, text: str, *, orders: Orders = ()) -> SystemResponse:
        """One exchange: it returns when there is an answer, an ending without one, or a question to a person.

        With `orders`, these effects alone happen unattended. A caller that stops waiting for it cancels the run.
        """
        return await told_to_step(self._exchanged(replace(self._request(text), orders=orders_of(orders))))

    async def start(self, text: str, *, orders: Orders = (), chunks: bool = False) -> Run[SystemResponse]:
        """Begin an exchange and go on with something else: the handle waits for it, follows it, answers and cancels it."""
        system, request = await self._workplace.system(), replace(self._request(text), orders=orders_of(orders))
        exchange = Exchange(self.config, system.text, self._begin)
        with self._entries_for(exchange) as entries:
            begun = await system.start(
                request, exchange.kit, self._terms, entries=entries, listener=exchange.listener, chunks=chunks
            )

        async def rested(response: SystemResponse) -> SystemResponse:
            await exchange.finish()
            await self._refresh(system)
            return response

        return begun.read_by(rested)

    def stream(self, text: str, *, orders: Orders = ()) -> Streaming[SystemResponse]:
        """One exchange whose words are heard as they come: `async for piece in`; to await it gives the response."""
        return Streaming(partial(self.start, text, orders=orders, chunks=True))

    async def chat_structured(
        self, text: str, schema: SchemaSource[T], *, repair: bool = True, strict: bool = False
    ) -> StructuredResponse[T]:
        """One exchange whose answer is a value of this schema, in `value`; no tool is offered.

        What does not fit is repaired where that is allowed, and asked for again with the exact violation. With `strict`
        no partly valid output comes back.
        """
        output = output_of(object_schema(schema), grammar=self.config.grammar, repair=repair, strict=strict)
        return await told_to_step(self._shaped(self._structured(text, output, _NO_TOOLS), schema))

    async def produce(
        self, text: str, schema: SchemaSource[T], *, repair: bool = True, strict: bool = False
    ) -> StructuredResponse[T]:
        """Call for an output in two phases: the model works with its tools first, then it is asked for its output."""
        output = output_of(object_schema(schema), grammar=self.config.grammar, repair=repair, strict=strict)
        return await told_to_step(self._shaped(self._structured(text, output, ToolChoice()), schema))

    async def _shaped(self, request: SystemRequest, schema: SchemaSource[T]) -> StructuredResponse[T]:
        shape = OutputShape(schema)
        return shape.response(await self._exchanged(request, shape))

    async def _exchanged(self, request: SystemRequest, shape: OutputShape[Any] | None = None) -> SystemResponse:
        system = await self._workplace.system()
        exchange = Exchange(self.config, system.text, self._begin)
        _shape(exchange, shape)
        try:
            with self._entries_for(exchange) as entries:
                response = await run_or_cancel(
                    system, request, exchange.kit, self._terms, entries=entries, listener=exchange.listener
                )
        finally:
            await exchange.finish()
        await self._refresh(system)
        return response

    @contextmanager
    def _entries_for(self, exchange: Exchange) -> Iterator[dict[str, str]]:
        """Lend the entries that wait to an exchange; where it does not begin, the next one gets them."""
        entries, self._entries = self._entries, {}
        try:
            yield entries
        finally:
            if not exchange.run_id:
                self._entries = {**entries, **self._entries}

    def chat_sync(self, text: str, *, orders: Orders = ()) -> SystemResponse:
        """Chat without an event loop, from one thread at a time. Each exchange opens and closes the store."""
        refuse_inside_a_loop("chat_sync", "chat")
        if self._workplace.is_in_use or not self._in_use.acquire(blocking=False):
            message = f"the agent of session {self.session_id!r} is used in another thread; wait, or use another agent"
            raise RequestRejected(AGENT_BUSY, message, {"session_id": self.session_id})
        try:
            return asyncio.run(self._alone(self.chat(text, orders=orders)))
        finally:
            self._in_use.release()

    @overload
    async def approve(
        self, packet_id: str, *, by: str, arguments: JsonObject | None = None, packet: str | None = None
    ) -> SystemResponse: ...
    @overload
    async def approve(
        self,
        packet_id: str,
        *,
        by: str,
        arguments: JsonObject | None = None,
        packet: str | None = None,
        schema: SchemaSource[T],
    ) -> StructuredResponse[T]: ...
    async def approve(
        self,
        packet_id: str,
        *,
        by: str,
        arguments: JsonObject | None = None,
        packet: str | None = None,
        schema: SchemaSource[Any] | None = None,
    ) -> SystemResponse:
        """Say yes to what the open exchange asks, perhaps with other arguments, and let it go on.

        `packet` names the version that was shown; any other, also an empty one, is refused with PACKET_CHANGED. With the
        `schema` of a structured exchange, the response has its typed value, also where another process began it.
        """
        said = approval(packet_id, by=by, arguments=arguments, packet=packet)
        return await told_to_step(self._answer(said, _shape_of(schema)))

    @overload
    async def reject(
        self, packet_id: str, *, by: str, reason: str = "", packet: str | None = None
    ) -> SystemResponse: ...
    @overload
    async def reject(
        self, packet_id: str, *, by: str, reason: str = "", packet: str | None = None, schema: SchemaSource[T]
    ) -> StructuredResponse[T]: ...
    async def reject(
        self,
        packet_id: str,
        *,
        by: str,
        reason: str = "",
        packet: str | None = None,
        schema: SchemaSource[Any] | None = None,
    ) -> SystemResponse:
        """Say no to what the open exchange asks, and let it go on without; `schema` as for an approval."""
        said = rejection(packet_id, by=by, reason=reason, packet=packet)
        return await told_to_step(self._answer(said, _shape_of(schema)))

    @overload
    async def resume(self, schema: None = None) -> SystemResponse: ...
    @overload
    async def resume(self, schema: SchemaSource[T]) -> StructuredResponse[T]: ...
    async def resume(self, schema: SchemaSource[Any] | None = None) -> SystemResponse:
        """Go on with the open exchange of the session, which a crash or a closed program left, with this agent's own tools.

        Refused with NOTHING_OPEN where none is open. An exchange whose schema is a type with checks of its own goes on
        with that schema; without it, it is refused and stays as it is.
        """
        return await told_to_step(self._resumed(_shape_of(schema)))

    async def _resumed(self, shape: OutputShape[Any] | None) -> SystemResponse:
        system = await self._workplace.system()
        exchange = await self._open_exchange(system)
        _shape(exchange, shape)
        response = await system.resume(exchange.run_id, kit=exchange.kit)
        await exchange.finish()
        await self._refresh(system)
        return exchange.read(response)

    async def cancel(self, *, by: str = "", reason: str = "") -> None:
        """End the open exchange at once, from wherever it is driven."""
        system = await self._workplace.system()
        run_id = (await self._open_exchange(system)).run_id
        await system.signal(cancellation(run_id, by=by or self.user_id or CALLER, reason=reason))
        await self._refresh(system)

    async def open(self) -> None:
        """Open the store and read the session, so that `messages` and `session_state` tell it before any exchange."""
        await self._refresh(await self._workplace.system())

    async def close(self) -> None:
        """Close the store that this agent opened; a system that was given to it stays open."""
        await self._workplace.close()

    async def __aenter__(self) -> "AgentLoop":
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _alone(self, work: Coroutine[Any, Any, SystemResponse]) -> SystemResponse:
        try:
            return await work
        finally:
            await self.close()

    def _request(self, text: str) -> SystemRequest:
        return request_of(self.config, text, session_id=self.session_id, user_id=self.user_id)

    def _structured(self, text: str, output: OutputContract, choice: ToolChoice) -> SystemRequest:
        return replace(self._request(text), mode=Mode.STRUCTURED, output=output, tool_choice=choice)

    def _begin(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def _refresh(self, system: "System") -> None:
        self._session = await system.session(self.session_id)
        self.session_state.learn(dict(self._session.entries))

    async def _keep(self, key: str, text: str) -> None:
        system = await self._workplace.system()
        await self._refresh(system)
        if self._session.run_id:
            await system.note(self._session.run_id, self.user_id or CALLER, key, text)
        else:
            self._entries[key] = text

    async def _open_exchange(self, system: "System") -> Exchange:
        await self._refresh(system)
        run_id = open_run(self._session)
        if self._exchange is None or self._exchange.run_id != run_id:
            self._exchange = Exchange(self.config, system.text, self._begin, run_id=run_id)
            system.listen(self._exchange.listener, run_id)
        return self._exchange

    async def _answer(self, said: UserSignal, shape: OutputShape[Any] | None) -> SystemResponse:
        system = await self._workplace.system()
        try:
            exchange = await self._open_exchange(system)
        except RequestRejected as error:
            if error.code != NOTHING_OPEN:
                raise
            packet_id = str(said.payload["packet_id"])
            await refuse_answer(system, packet_id, none_of(packet_id, f"of this agent: {error.message}"))
        _shape(exchange, shape)
        await answer(system, exchange.run_id, said, exchange.kit)
        # Where runs are left to workers, one of them goes on.
        response = await (await system.find(exchange.run_id, kit=exchange.kit))
        await exchange.finish()
        await self._refresh(system)
        return exchange.read(response)


def _shape_of(schema: SchemaSource[Any] | None) -> OutputShape[Any] | None:
    """How a response of this schema is read; raises RequestRejected for what is none of an object."""
    if schema is None:
        return None
    object_schema(schema)
    return OutputShape(schema)


def _shape(exchange: Exchange, shape: OutputShape[Any] | None) -> None:
    """Have an exchange hear its outputs for a type, and give its responses, also the later ones, with their value."""
    if shape is not None:
        exchange.kit = replace_parts(exchange.kit, code={**exchange.kit.code, **shape.code})
        exchange.read = shape.response
