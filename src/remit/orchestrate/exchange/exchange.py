"""One exchange of a conversation: the kit it runs with, and the listeners that hear of it while it goes on.

Rule 1: a listener may break, and the run goes on.
Rule 2: a result is told as the model is shown it, in full, after its turn was written.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from remit.core.failure import RemitError
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.rulings import CallSettled, CommandSettled, Rung
from remit.core.journal.turn import Turn
from remit.core.record import Text
from remit.core.run.contract import SystemResponse
from remit.core.run.messages import Message, Role
from remit.inference.engine import Restarted, StreamChunk
from remit.kernel.state import RunState, pinned
from remit.observe.logs import run_fields
from remit.observe.views.event_log import Telling
from remit.observe.watcher import Watcher, metered
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.loop_config import LoopConfig, OnToolResult, Stream
from remit.orchestrate.setup.kit import Kit

_log = logging.getLogger(__name__)


class Exchange:
    """One exchange: the kit it runs with, and its listeners."""

    def __init__(
        self,
        config: LoopConfig,
        text: Callable[[Text], Coroutine[Any, Any, str]],
        on_begun: "Callable[[Exchange], None]",
        *,
        run_id: str = "",
    ) -> None:
        self.run_id = run_id
        # How its response is read, such as with a value of the type that was given as schema.
        self.read: Callable[[SystemResponse], SystemResponse] = lambda response: response
        self._config, self._text, self._on_begun = config, text, on_begun
        # The run as it stands, once it has begun here; for the log.
        self._state: RunState | None = None
        self._telling = Telling()
        self._outputs: list[tuple[str, Text]] = []
        self._teller: asyncio.Task[None] | None = None
        cheaper = () if config.downgrade is None else (config.downgrade,)
        engines = (config.engine, *cheaper, *(() if config.judge is None else (config.judge,)))
        self.kit = Kit(
            {engine.model_info().name: engine for engine in engines},
            config.tools,
            config.code,
            context=config.context_provider,
            filters=config.filters,
            cheaper=len(cheaper),
        )
        pass_on = None if config.stream is None else partial(self._pass_on, config.stream)
        self.listener = Listener(self._hear, pass_on)

    async def finish(self) -> None:
        """Wait until every listener has been told what there was to tell."""
        if self._teller is not None:
            await self._teller

    def _hear(self, state: RunState, turn: Turn) -> None:
        if isinstance(turn.arrival, RunStarted) and pinned(state).parent is None:
            self.run_id = state.run_id
            self._on_begun(self)
        if state.run_id == self.run_id:
            self._state = state
        if self._config.on_tool_result is not None:
            for name, text in _outputs(state, turn):
                self._report(self._config.on_tool_result, name, text)
        if self._config.observer is not None:
            for event in self._telling.events(state, turn):
                self._config.observer.record(event)

    def _pass_on(self, stream: Stream, run_id: str, chunk: StreamChunk | Restarted) -> None:
        # What children say to their own ends is no part of the answer.
        if run_id == self.run_id:
            stream(chunk)

    def _report(self, on_tool_result: OnToolResult, name: str, text: Text) -> None:
        if isinstance(text, str) and not self._outputs:
            self._tell(on_tool_result, name, text)
            return
        # A long text has to be fetched, and a turn does not wait for that; whatever follows keeps its place behind it.
        self._outputs.append((name, text))
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._tell_all(on_tool_result))

    async def _tell_all(self, on_tool_result: OnToolResult) -> None:
        while self._outputs:
            name, text = self._outputs[0]
            try:
                self._tell(on_tool_result, name, await self._text(text))
            except RemitError as error:
                _log.warning(
                    "a result of tool %s could not be told: %s", name, error, extra=run_fields(self.run_id, self._state)
                )
            self._outputs.pop(0)

    def _tell(self, on_tool_result: OnToolResult, name: str, output: str) -> None:
        try:
            on_tool_result(name, output)
        except Exception:  # noqa: BLE001  # no listener may break the run
            _log.exception(
                "on_tool_result broke over a result of tool %s", name, extra=run_fields(self.run_id, self._state)
            )


def _outputs(state: RunState, turn: Turn) -> list[tuple[str, Text]]:
    """The tools whose results a turn brought, and what the model is shown of each. A call that was cut off said nothing."""
    results: list[tuple[str, Text]] = []
    for ruling in turn.decisions:
        if not isinstance(ruling, CallSettled | CommandSettled) or ruling.command_id not in state.calls.made:
            continue
        if isinstance(ruling, CallSettled) and ruling.rung is Rung.ATTEMPTED:
            continue
        call = state.calls.made[ruling.command_id]
        said = (
            entry for entry in reversed(state.talk.context) if isinstance(entry, Message) and entry.role is Role.TOOL
        )
        results += [(call.tool, entry.content) for entry in said if entry.tool_call_id == call.call_id][:1]
    return results


def watcher_listener(watcher: Watcher) -> Listener:
    """A listener that tells a watcher."""

    def on_turn(state: RunState, turn: Turn) -> None:
        watcher.turned(state.run_id, pinned(state).request, turn)
        watcher.measured(state.run_id, metered(state))

    def on_chunk(run_id: str, chunk: StreamChunk | Restarted) -> None:
        if isinstance(chunk, StreamChunk):
            watcher.said(run_id, chunk.text)
        else:
            watcher.restarted(run_id)

    return Listener(on_turn, on_chunk, watcher.recovered)
