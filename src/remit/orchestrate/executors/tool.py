"""Calling tools: one CallTool, one call, one report; and asking a tool what became of an earlier call.

Rule 1: a tool is called with the arguments that were judged, read from the command, and with the key minted for it.
Rule 2: the outcome of a call that nobody waits for any more is still reported, when it comes: its effect is the same.
Rule 3: what a tool returns or raises is data; it is bounded by its room and completed by facts.
Rule 4: no report holds a secret of the vault, whichever tool it came from and whenever it comes.
Rule 5: a handle in the arguments is filled in just before the call; where its value is gone, nothing is called.
Rule 6: a call whose arguments hold a secret is not made: the model should never have had it, and whoever it wants to tell
        it to would have it too.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

from remit.core.arrivals import Happened, RunHalted
from remit.core.commands import CallTool, ReconcileTool
from remit.core.failure import ErrorCode
from remit.core.json_text import kept_value
from remit.core.record import JsonObject, Record, Text
from remit.core.seal import SECRET_EXPOSED
from remit.core.tools import ToolResult
from remit.kernel.backoff import BACKOFF_MS_MAX
from remit.kernel.state import RunState, pinned
from remit.observe.logs import run_fields
from remit.orchestrate.deadlines import TimeRanOut, within
from remit.orchestrate.filters import turned_away
from remit.orchestrate.halts import Halts, HaltStands, halted
from remit.orchestrate.kit import Kit
from remit.orchestrate.ports import Clock, Live
from remit.orchestrate.redacting import redacted
from remit.orchestrate.reports import Report, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.seals import HANDLE_MARK, SECRET_GONE, Sealer, SecretGone, is_lost, waits_for
from remit.tool.asking import reconcile
from remit.tool.outcomes import Performed, ToolFault
from remit.tool.performing import Attempt, Late, perform
from remit.tool.threads import THREADS_MAX
from remit.tool.vault import NO_SECRETS, Vault

_NS_PER_MS = 1_000_000

_log = logging.getLogger(__name__)

# Takes an outcome that came after everyone had stopped waiting, for the run that it belongs to.
OnLate = Callable[[str, Report], None]


class Abandoned(Record):
    """A call that ignored that it was told to stop, and may still be running."""

    run_id: str
    command_id: str
    tool: str


class ToolExecutor:
    """Performs CallTool and ReconcileTool."""

    def __init__(
        self,
        kit_of: Callable[[str], Kit],
        text: Callable[[Text], Awaitable[str]],
        on_late: OnLate,
        vault: Vault = NO_SECRETS,
        halts: Halts | None = None,
        clock: Clock | None = None,
        sealer: Sealer | None = None,
    ) -> None:
        self.vault = vault
        self._halts = halts
        self._clock = clock
        self._kit_of = kit_of
        self._text = text
        self._on_late = on_late
        self._sealer = sealer
        # Calls that were cut off and have no outcome yet, so that nobody forgets them.
        self._left: dict[Late, Abandoned] = {}

    @property
    def abandoned(self) -> tuple[Abandoned, ...]:
        """The calls that still go on although nobody waits for them."""
        return tuple(call for late, call in self._left.items() if not late.done())

    async def call(self, live: Live, command: CallTool) -> Report:
        """Call a tool within its time, and not before it has cooled down where it failed before."""
        if command.not_before_ms and self._clock is not None:
            # A clock that was set back keeps nobody waiting for longer than any pause is.
            wait_ms = min(command.not_before_ms - self._clock.now_ms(), BACKOFF_MS_MAX)
            await asyncio.sleep(max(wait_ms, 0) / 1000)
        return redacted(await self._called(live, command), self.vault)

    async def _called(self, live: Live, command: CallTool) -> Report:
        tool = self._kit_of(live.run_id).tools.get(command.tool)
        if tool is None:
            return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, f"nobody here has a tool named {command.tool!r}")
        arguments = await self._given(live, command)
        if isinstance(arguments, ToolBroke | RunHalted):
            return arguments
        gate = None if self._halts is None else partial(_pass, self._halts, live.state, command)
        attempt = Attempt(tool, arguments, command.key, self.vault, gate)
        began_ns = time.monotonic_ns()
        try:
            performed = await within(command.timeout_ms, perform(attempt))
        except ToolFault as fault:
            return ToolBroke(command.id, fault.error_code, fault.error, _since(began_ns), is_unknown=fault.is_unknown)
        except HaltStands as stop:
            return halted(stop.halt, command.id)
        except TimeRanOut:
            return self._out_of_time(live, command, attempt, _since(began_ns))
        except BaseException:
            self._leave(live, command, attempt)
            raise
        return _said(command, performed, _since(began_ns))

    async def _given(self, live: Live, command: CallTool) -> JsonObject | ToolBroke | RunHalted:
        """What the tool is called with, its handles filled in; or why it is not called."""
        text = command.arguments if type(command.arguments) is str else await self._text(command.arguments)
        arguments: JsonObject = kept_value(text)
        known = self._kit_of(live.run_id).every_filter
        filters = {name: known[name] for name in pinned(live.state).filters if name in known} if known else {}
        if filters and (why := await turned_away(filters, live.state, command, arguments)):
            message = f"tool {command.tool!r} was not called: {why}"
            return ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, message)
        # Behind a handle may stand a secret of the vault that a person told: no model knows it.
        if self.vault.redactor.names and (name := self.vault.redactor.found_in(text)):
            if self.vault.redactor.value_in(text):
                self.vault.revoke(name)
            return ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, _exposed(command, name))
        if self._sealer is not None and HANDLE_MARK in text:
            try:
                arguments = self._sealer.filled(live, arguments)
            except SecretGone as gone:
                if is_lost(gone.handle):
                    return waits_for(gone.handle, f"tool {command.tool!r}", command.id)
                return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, _gone(command, gone.handle))
        return arguments

    def _out_of_time(self, live: Live, command: CallTool, attempt: Attempt, duration_ms: int) -> Report:
        """What a call came to whose time is up: its result if it came at the last moment, else nothing that is known."""
        limit = f"timeout_ms={command.timeout_ms}"
        if not attempt.has_begun:
            why = "`available` or the renewal of a secret did not answer, or no thread was free"
            message = f"tool {command.tool!r} was not called within {limit}: {why} of threads_max={THREADS_MAX}"
            return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, message, duration_ms)
        outcome = attempt.last_word
        if isinstance(outcome, Performed):
            return _said(command, outcome, duration_ms)
        if outcome is not None and not outcome.is_unknown:
            # Told to stop, it said that nothing has happened.
            return ToolBroke(command.id, outcome.error_code, outcome.error, duration_ms)
        message = f"tool {command.tool!r} took longer than {limit}"
        if attempt.is_abandoned:
            message += " and was abandoned; it may still be running"
        elif outcome is not None:
            message += f" and ended with {outcome.error}"
        self._leave(live, command, attempt)
        return ToolBroke(command.id, ErrorCode.TOOL_TIMEOUT, message, duration_ms)

    async def reconcile(self, live: Live, command: ReconcileTool) -> Report:
        """Ask a tool what became of the call with the command's key."""
        return redacted(await self._reconciled(live, command), self.vault)

    async def _reconciled(self, live: Live, command: ReconcileTool) -> Report:
        tool = self._kit_of(live.run_id).tools.get(command.tool)
        doubted = live.state.open.get(command.about)
        if tool is None or not isinstance(doubted, CallTool):
            return ToolAccounted(command.id, Happened.UNKNOWN)
        arguments = await self._arguments(doubted.arguments)
        if self._sealer is not None:
            try:
                arguments = self._sealer.filled(live, arguments)
            except SecretGone:
                return ToolAccounted(command.id, Happened.UNKNOWN)
        try:
            account = await within(command.timeout_ms, reconcile(tool, key=command.key, arguments=arguments))
        except TimeRanOut:
            return ToolAccounted(command.id, Happened.UNKNOWN)
        return ToolAccounted(command.id, account.happened, account.content)

    async def _arguments(self, text: Text) -> JsonObject:
        arguments: JsonObject = kept_value(await self._text(text))
        return arguments

    def _leave(self, live: Live, command: CallTool, attempt: Attempt) -> None:
        """Keep an eye on a call that was cut off; what it comes to is told when it is known."""
        late = attempt.late
        if late is None:
            return
        if attempt.is_abandoned:
            fields = run_fields(live.run_id, live.state, command_id=command.id)
            _log.warning("tool %s does not stop, was abandoned and may still be running", command.tool, extra=fields)
        self._left[late] = Abandoned(live.run_id, command.id, command.tool)
        late.add_done_callback(partial(self._returned, command))

    def _returned(self, command: CallTool, late: Late) -> None:
        run_id = self._left.pop(late).run_id
        outcome = None if late.cancelled() else late.result()
        if isinstance(outcome, Performed):
            self._on_late(run_id, redacted(_said(command, outcome, 0), self.vault))
        elif isinstance(outcome, ToolFault):
            report = ToolBroke(command.id, outcome.error_code, outcome.error, is_unknown=outcome.is_unknown)
            self._on_late(run_id, redacted(report, self.vault))


def _pass(halts: Halts, state: RunState, command: CallTool) -> None:
    """Raise where a halt stops a call that is about to begin."""
    if (halt := halts.stopping(state, command)) is not None:
        raise HaltStands(halt)


def _said(command: CallTool, performed: Performed, duration_ms: int) -> Report:
    result = ToolResult(command.call_id, command.tool, performed.content, stop_loop=performed.stop_loop)
    return ToolSaid(command.id, result, performed.refuted, duration_ms)


def _exposed(command: CallTool, name: str) -> str:
    why = f"its arguments hold the secret {name!r}, which no model is shown"
    return f"{SECRET_EXPOSED}: tool {command.tool!r} was not called: {why}; renew that secret, and find out who told it"


def _gone(command: CallTool, handle: str) -> str:
    why = f"the value behind {handle} is not kept any more, was given in another run, or never was"
    return f"{SECRET_GONE}: tool {command.tool!r} was not called: {why}; ask the user to give it again"


def _since(began_ns: int) -> int:
    return (time.monotonic_ns() - began_ns) // _NS_PER_MS
