"""AgentLoop and SpecializedLoop: a conversation, and single answers of a given shape, on the terms their maker gives.

Rule 1: an agent holds no truth of its own: what was said and what is kept stands in the journal, by session.
Rule 2: a conversation is what users and assistants said. Tool results and retrieved evidence serve one exchange.
Rule 3: whoever listens (stream, on_tool_result, observer) may break, and the run goes on.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from remit.assemble import opened, settings_of
from remit.core.boundary import STANDARD, Boundary, boundary_named
from remit.core.budget import Budget, negative_caps
from remit.core.contract import (
    ITERATIONS_MAX_DEFAULT,
    ExecutionHints,
    Mode,
    OutputContract,
    SystemRequest,
    SystemResponse,
)
from remit.core.envelope import OUTPUT_TOKENS_MAX, REQUEST_HINT_INVALID, check_request
from remit.core.failure import ErrorCode, RemitError, RequestRejected
from remit.core.goal import Goal
from remit.core.inference import Routing
from remit.core.manifest import MANIFEST_INVALID, OUTPUT_TOKENS_DEFAULT
from remit.core.messages import Message, system_message, user_message
from remit.core.record import JsonObject, replace
from remit.core.schema_source import SCHEMA_SOURCE_INVALID, schema_of
from remit.core.signals import PACKET_MARK, PACKET_UNKNOWN, Signal, UserSignal
from remit.core.tools import ToolChoice, ToolChoiceMode
from remit.inference.engine import Engine
from remit.inference.specs import open_engine
from remit.observe.event_log import EventLog
from remit.orchestrate.exchange import Exchange, LoopConfig, OnToolResult, SpecializedConfig, Stream
from remit.orchestrate.facade import System
from remit.orchestrate.kit import ContextProvider, Terms
from remit.orchestrate.session_state import SessionState
from remit.orchestrate.sessions import Session
from remit.rerank.router import routing_named
from remit.tool.declare import Function, Tool
from remit.tool.registry import Registry

AGENT_BUSY = "AGENT_BUSY"
LOOP_RUNNING = "LOOP_RUNNING"
NOTHING_OPEN = "NOTHING_OPEN"

# Who speaks for an agent whose user has no name.
CALLER = "caller"
_NO_TOOLS = ToolChoice(ToolChoiceMode.NONE)
# A JSON Schema, a pydantic model, a dataclass or a TypedDict.
SchemaSource: TypeAlias = Any

T = TypeVar("T")


class AgentLoop:
    """A conversation. Each exchange is a governed run; the runs of a conversation are its session."""

    def __init__(
        self,
        engine: Engine | str | None,
        *,
        tools: Registry | Iterable[Tool | Function] = (),
        system_prompt: str = "",
        grammar: str = "",
        max_tokens: int = OUTPUT_TOKENS_DEFAULT,
        max_tool_iterations: int = ITERATIONS_MAX_DEFAULT,
        stream: Stream | None = None,
        on_tool_result: OnToolResult | None = None,
        observer: EventLog | None = None,
        context_provider: ContextProvider | None = None,
        boundary: Boundary | str = STANDARD,
        budget: Budget = Budget(),
        goal: Goal | None = None,
        router: Routing | str = Routing.AUTO,
        session_id: str = "",
        user_id: str = "",
        system: System | None = None,
        home: Path | str | None = None,
    ) -> None:
        self.config = LoopConfig(
            _engine(engine),
            tools if isinstance(tools, Registry) else Registry(tools),
            system_prompt,
            grammar,
            max_tokens,
            max_tool_iterations,
            stream,
            on_tool_result,
            observer,
            context_provider,
        )
        self.session_id = session_id or str(uuid4())
        self.user_id = user_id
        self.session_state = SessionState(self._keep)
        self._terms = Terms(
            boundary if isinstance(boundary, Boundary) else boundary_named(boundary),
            _checked(budget),
            goal,
            router=routing_named(router),
        )
        self._given, self._home = system, None if home is None else Path(home).absolute()
        self._own: System | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = AsyncExitStack()
        # Held while chat_sync waits: what it opens lives in one thread.
        self._in_use = Lock()
        self._session = Session(self.session_id)
        # Entries from before the first exchange; it takes them along.
        self._entries: dict[str, str] = {}
        self._exchange: Exchange | None = None
        check_request(self._request("a first word, to see that everything else may enter"))
        if max_tokens < 1:
            message = f"max_tokens={max_tokens} is outside 1 to {OUTPUT_TOKENS_MAX}"
            raise RequestRejected(REQUEST_HINT_INVALID, message, {"field": "max_tokens", "limit": OUTPUT_TOKENS_MAX})

    @property
    def messages(self) -> list[Message]:
        """The conversation so far, as this agent knows it: instructions, then users and assistants. A fresh list."""
        return [*self._instructions(), *self._session.messages]

    async def chat(self, text: str) -> SystemResponse:
        """One exchange: it returns when there is an answer, an ending without one, or a question to a person.

        Whoever stops waiting for it cancels the run.
        """
        return await self._exchanged(self._request(text))

    async def chat_structured(
        self, text: str, schema: SchemaSource, *, repair: bool = True, strict: bool = False
    ) -> SystemResponse:
        """One exchange whose answer is a value of this schema, in `structured_output`; no tool is offered.

        What does not fit is repaired where that is allowed, and asked for again with the exact violation. With `strict`
        no partly valid output comes back.
        """
        return await self._exchanged(self._structured(text, schema, repair=repair, strict=strict, choice=_NO_TOOLS))

    async def produce(
        self, text: str, schema: SchemaSource, *, repair: bool = True, strict: bool = False
    ) -> SystemResponse:
        """The same in two phases: the model works with its tools first, then it is asked for its output."""
        return await self._exchanged(self._structured(text, schema, repair=repair, strict=strict, choice=ToolChoice()))

    async def _exchanged(self, request: SystemRequest) -> SystemResponse:
        system = await self._system()
        exchange = Exchange(self.config, system.text, self._begin)
        entries, self._entries = self._entries, {}
        try:
            response = await system.run(request, exchange.kit, self._terms, entries=entries)
        except asyncio.CancelledError:
            # What was begun is finished, so the run may begin although nobody waits for it any more.
            await system.begun()
            if exchange.run_id:
                await self._stop(system, exchange.run_id)
            raise
        finally:
            if not exchange.run_id:
                self._entries = {**entries, **self._entries}
            await exchange.finish()
        await self._refresh(system)
        return response

    def chat_sync(self, text: str) -> SystemResponse:
        """The same for programs without an event loop, one thread at a time. Each exchange opens and closes the store."""
        if _is_loop_running():
            raise RequestRejected(
                LOOP_RUNNING, "chat_sync was called inside a running event loop; await chat() instead"
            )
        is_open = self._own is not None and self._loop is not None and self._loop.is_running()
        if is_open or not self._in_use.acquire(blocking=False):
            message = f"the agent of session {self.session_id!r} is used in another thread; wait, or use another agent"
            raise RequestRejected(AGENT_BUSY, message, {"session_id": self.session_id})
        try:
            return asyncio.run(self._alone(self.chat(text)))
        finally:
            self._in_use.release()

    async def approve(self, packet_id: str, *, by: str, arguments: JsonObject | None = None) -> SystemResponse:
        """Say yes to what the open exchange asks, perhaps with other arguments, and let it go on."""
        changed: JsonObject = {} if arguments is None else {"arguments": arguments}
        return await self._answer(Signal.APPROVE, packet_id, by, changed)

    async def reject(self, packet_id: str, *, by: str, reason: str = "") -> SystemResponse:
        """Say no to what the open exchange asks, and let it go on without."""
        return await self._answer(Signal.REJECT, packet_id, by, {"reason": reason} if reason else {})

    async def cancel(self, *, by: str = "", reason: str = "") -> None:
        """End the open exchange at once, from wherever it is driven."""
        system = await self._system()
        run_id = (await self._open_exchange(system)).run_id
        payload: JsonObject = {"reason": reason} if reason else {}
        await system.signal(_signal(Signal.CANCEL, run_id, by or self.user_id or CALLER, payload))
        await self._refresh(system)

    async def open(self) -> None:
        """Open the store and read the session, so that `messages` and `session_state` tell it before any exchange."""
        await self._refresh(await self._system())

    async def close(self) -> None:
        """Close the store that this agent opened; a system that was given to it stays open."""
        self._own = None
        await self._stack.aclose()

    async def __aenter__(self) -> "AgentLoop":
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _system(self) -> System:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._own is None or self._loop is not loop:
            settings = settings_of(home=self._home)
            # A loop that ends closes what was opened in it.
            self._loop, self._stack = loop, AsyncExitStack()
            self._own = await self._stack.enter_async_context(opened(settings))
        return self._own

    async def _alone(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        finally:
            await self.close()

    def _instructions(self) -> tuple[Message, ...]:
        return (system_message(self.config.system_prompt),) if self.config.system_prompt else ()

    def _request(self, text: str) -> SystemRequest:
        config = self.config
        return SystemRequest(
            messages=(*self._instructions(), user_message(text)),
            session_id=self.session_id,
            user_id=self.user_id,
            hints=ExecutionHints(max_tokens=config.max_tokens, max_iterations=config.max_tool_iterations),
        )

    def _structured(
        self, text: str, schema: SchemaSource, *, repair: bool, strict: bool, choice: ToolChoice
    ) -> SystemRequest:
        output = OutputContract(_object_schema(schema), self.config.grammar or None, repair, strict)
        return replace(self._request(text), mode=Mode.STRUCTURED, output=output, tool_choice=choice)

    def _begin(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def _refresh(self, system: System) -> None:
        self._session = await system.session(self.session_id)
        self.session_state.learn(dict(self._session.entries))

    async def _keep(self, key: str, text: str) -> None:
        system = await self._system()
        await self._refresh(system)
        if self._session.run_id:
            await system.note(self._session.run_id, self.user_id or CALLER, key, text)
        else:
            self._entries[key] = text

    async def _open_exchange(self, system: System) -> Exchange:
        await self._refresh(system)
        if not self._session.is_open:
            raise RequestRejected(NOTHING_OPEN, f"session {self.session_id!r} has no exchange under way")
        if self._exchange is None or self._exchange.run_id != self._session.run_id:
            self._exchange = Exchange(self.config, system.text, self._begin, run_id=self._session.run_id)
        return self._exchange

    async def _answer(self, kind: Signal, packet_id: str, by: str, payload: JsonObject) -> SystemResponse:
        system = await self._system()
        exchange = await self._open_exchange(system)
        run_id = packet_id.rpartition(PACKET_MARK)[0] or exchange.run_id
        # What a child asks, its parent's conversation answers.
        if run_id != exchange.run_id and not run_id.startswith(f"{exchange.run_id}."):
            message = f"packet {packet_id[:80]!r} is none of the open exchange, run {exchange.run_id}"
            raise RequestRejected(PACKET_UNKNOWN, message, {"packet_id": packet_id[:80]})
        await system.signal(_signal(kind, run_id, by, {**payload, "packet_id": packet_id}), kit=exchange.kit)
        await system.settle(exchange.run_id)
        await exchange.finish()
        await self._refresh(system)
        return await system.result(exchange.run_id)

    async def _stop(self, system: System, run_id: str) -> None:
        with suppress(RemitError):  # It may have ended by itself at this very moment.
            await system.signal(_signal(Signal.CANCEL, run_id, CALLER, {"reason": "nobody waits for it any more"}))


class SpecializedLoop:
    """One answer of a given shape for each call, and nothing remembered between calls.

    With tools a call has two phases: the model works with them, then it is asked for its output.
    """

    def __init__(
        self,
        engine: Engine | str | None,
        *,
        schema: SchemaSource,
        tools: Registry | Iterable[Tool | Function] = (),
        system_prompt: str = "",
        grammar: str = "",
        max_tokens: int = OUTPUT_TOKENS_DEFAULT,
        stream: Stream | None = None,
        observer: EventLog | None = None,
        context_provider: ContextProvider | None = None,
        boundary: Boundary | str = STANDARD,
        budget: Budget = Budget(),
        router: Routing | str = Routing.AUTO,
        user_id: str = "",
        system: System | None = None,
        home: Path | str | None = None,
    ) -> None:
        self.config = SpecializedConfig(
            _engine(engine),
            tools if isinstance(tools, Registry) else Registry(tools),
            system_prompt,
            _object_schema(schema),
            grammar,
            max_tokens,
            stream,
            observer,
            context_provider,
        )
        self._terms = (boundary, budget, router, user_id)
        self._given, self._home = system, home
        # Calls that wait for a person, by their run.
        self._waiting: dict[str, AgentLoop] = {}
        self._fresh()  # What it could not work with is refused now.

    async def call(self, prompt: str, *, repair: bool = True, strict: bool = False) -> SystemResponse:
        """One call: the value is in `structured_output`. It returns with a question to a person, too."""
        agent = self._fresh()
        return await self._at_rest(agent, agent.produce(prompt, self.config.schema, repair=repair, strict=strict))

    def call_sync(self, prompt: str, *, repair: bool = True, strict: bool = False) -> SystemResponse:
        """The same for programs without an event loop."""
        if _is_loop_running():
            raise RequestRejected(
                LOOP_RUNNING, "call_sync was called inside a running event loop; await call() instead"
            )
        return asyncio.run(self.call(prompt, repair=repair, strict=strict))

    async def approve(self, packet_id: str, *, by: str, arguments: JsonObject | None = None) -> SystemResponse:
        """Say yes to what a call asks, perhaps with other arguments, and let it go on."""
        agent = self._waiting_for(packet_id)
        return await self._at_rest(agent, agent.approve(packet_id, by=by, arguments=arguments))

    async def reject(self, packet_id: str, *, by: str, reason: str = "") -> SystemResponse:
        """Say no to what a call asks, and let it go on without."""
        agent = self._waiting_for(packet_id)
        return await self._at_rest(agent, agent.reject(packet_id, by=by, reason=reason))

    def _fresh(self) -> AgentLoop:
        config, (boundary, budget, router, user_id) = self.config, self._terms
        return AgentLoop(
            config.engine,
            tools=config.tools,
            system_prompt=config.system_prompt,
            grammar=config.grammar,
            max_tokens=config.max_tokens,
            stream=config.stream,
            observer=config.observer,
            context_provider=config.context_provider,
            boundary=boundary,
            budget=budget,
            router=router,
            user_id=user_id,
            system=self._given,
            home=self._home,
        )

    async def _at_rest(self, agent: AgentLoop, work: Coroutine[Any, Any, SystemResponse]) -> SystemResponse:
        """What a call comes to. The loop of one that waits is kept for the answer; that of any other is closed."""
        response: SystemResponse | None = None
        try:
            response = await work
        finally:
            if response is None or response.waiting_for is None:
                await agent.close()
        self._waiting.pop(response.run_id, None)
        if response.waiting_for is not None:
            self._waiting[response.run_id] = agent
        return response

    def _waiting_for(self, packet_id: str) -> AgentLoop:
        run_id = packet_id.rpartition(PACKET_MARK)[0]
        # What a child asks, the call that started it answers.
        agent = self._waiting.get(run_id.partition(".")[0])
        if agent is None:
            message = f"packet {packet_id[:80]!r} is none of a call of this loop that waits"
            raise RequestRejected(PACKET_UNKNOWN, message, {"packet_id": packet_id[:80]})
        return agent


def _object_schema(source: SchemaSource) -> JsonObject:
    schema = schema_of(source)
    if isinstance(schema, bool):
        message = f"the schema {schema!r} says nothing about an output; pass an object"
        raise RequestRejected(SCHEMA_SOURCE_INVALID, message)
    return schema


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _signal(kind: Signal, run_id: str, by: str, payload: JsonObject) -> UserSignal:
    return UserSignal(str(uuid4()), kind, run_id, by, payload=payload)


def _engine(engine: Engine | str | None) -> Engine:
    if not engine:
        raise RequestRejected(
            ErrorCode.CONFIG_NO_ENGINE, "the agent has no engine; give it one, or a spec such as 'scripted:FILE'"
        )
    if isinstance(engine, str):
        return open_engine(engine, base=Path.cwd(), settings=settings_of().engines)
    if not callable(getattr(engine, "infer", None)) or not callable(getattr(engine, "model_info", None)):
        message = f"a {type(engine).__name__} is no engine: it lacks infer() or model_info()"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)
    return engine


def _checked(budget: Budget) -> Budget:
    if negative := negative_caps(budget):
        raise RequestRejected(MANIFEST_INVALID, f"caps of {', '.join(negative)} are below 0; 0 forbids")
    return budget
