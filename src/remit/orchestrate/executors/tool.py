"""Calling tools: one CallTool, one call, one report; and asking a tool what became of an earlier call.

Rule 1: a tool is called with the arguments that were judged, read from the command, and with the key minted for it.
Rule 2: the outcome of a call that no caller waits for any more is still reported, when it comes: its effect is the same.
Rule 3: what a tool returns or raises is data; it is bounded by its room and completed by facts.
Rule 4: no report holds a secret of the vault, no matter which tool sent it and when it comes.
Rule 5: a handle in the arguments is filled in just before the call; where its value is gone, nothing is called.
Rule 6: a tool's no about a call that was abandoned here and still goes on is not believed.
Rule 7: a call whose arguments hold a secret is not made: the model should never have had it, and the one it wants to tell
        it to would have it too.
"""

import asyncio
import logging
from functools import partial

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Happened, RunHalted
from remit.core.journal.commands import CallTool
from remit.core.limits.tools import ToolResult
from remit.core.record import JsonObject, Record
from remit.core.schema.json_text import kept_value
from remit.core.secrets.seal import SECRET_EXPOSED
from remit.kernel.budget.backoff import BACKOFF_MS_MAX
from remit.observe.logs import command_fields, run_fields
from remit.orchestrate.exchange.filters import turned_away
from remit.orchestrate.executors.errands import InquiryErrand, ToolErrand
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import Report, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.facts.sealer import HANDLE_MARK, SECRET_GONE, SecretGone, is_lost, masked, waits_for
from remit.orchestrate.loop.claims import Revoked, not_done
from remit.orchestrate.loop.deadlines import TimeRanOut, within
from remit.orchestrate.loop.halt_switch import HaltStands, halted, tool_scope
from remit.orchestrate.setup.kit import Kit
from remit.tool.call.hooks import reconcile
from remit.tool.call.outcomes import Performed, ToolFault
from remit.tool.call.performing import Attempt, Late, Permit, perform
from remit.tool.call.threads import THREADS_MAX

_MS_PER_S = 1_000

_log = logging.getLogger(__name__)


class Abandoned(Record):
    """A call that ignored that it was told to stop, and may still be running."""

    run_id: str
    command_id: str
    tool: str


class ToolExecutor:
    """Performs ToolErrand and InquiryErrand, and keeps an eye on calls that no caller waits for any more."""

    def __init__(self, resources: ProcessResources) -> None:
        self._resources = resources
        # Calls that were cut off and have no outcome yet, so that they are not forgotten.
        self._left: dict[Late, Abandoned] = {}
        # Those whose outcome is not waited for any more.
        self._given_up: tuple[Abandoned, ...] = ()

    @property
    def abandoned(self) -> tuple[Abandoned, ...]:
        """The calls that still go on although no caller waits for them."""
        return (*self._given_up, *[call for late, call in self._left.items() if not late.done()])

    async def close(self) -> None:
        """Stop waiting for calls that were abandoned: their threads go on, and their results are dropped."""
        self._given_up += self.abandoned
        left = [late for late in self._left if not late.done()]
        for late in left:
            call = self._left[late]
            if _log.hasHandlers():
                fields = run_fields(call.run_id, command_id=call.command_id)
                _log.warning("tool %s is left running; what it comes to is told to no run", call.tool, extra=fields)
            late.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def call(self, errand: ToolErrand, kit: Kit) -> Report:
        """Call a tool within its time, and not before it has cooled down where it failed before."""
        command, clock = errand.command, self._resources.clock
        if command.not_before_ms and clock is not None:
            # A clock that was set back keeps no call waiting for longer than any pause is.
            wait_ms = min(command.not_before_ms - clock.now_ms(), BACKOFF_MS_MAX)
            await asyncio.sleep(max(wait_ms, 0) / 1000)
        return masked(await self._called(errand, kit), self._resources.vault)

    async def _called(self, errand: ToolErrand, kit: Kit) -> Report:
        command, resources = errand.command, self._resources
        tool = kit.tools.get(command.tool)
        if tool is None:
            return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, f"there is no tool here named {command.tool!r}")
        told = command.arguments
        # Unless a handle is to be filled in, the tool is called with the very text that was judged.
        arguments: JsonObject | str = told if type(told) is str and HANDLE_MARK not in told else ""
        if not arguments or errand.unseen or resources.vault.masker.names:
            given = await self._given(errand, kit)
            if isinstance(given, Record):
                return given
            arguments = arguments or given
        # A call that changes nothing and waits for nothing can neither be taken back nor be halted before it begins.
        is_gated = command.mutating or tool.available is not None or tool.definition.secrets
        gate = partial(self._pass, errand) if is_gated else None
        attempt = Attempt(tool, arguments, command.key, resources.vault, gate, errand.metadata)
        # The loop's own clock never goes back, and is played where the loop is.
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        try:
            performed = await within(command.timeout_ms, perform(attempt))
        except ToolFault as fault:
            duration_ms = _since(began_s, now_s())
            return ToolBroke(command.id, fault.error_code, fault.error, duration_ms, is_unknown=fault.is_unknown)
        except HaltStands as stop:
            return halted(stop.halt, command.id)
        except Revoked:
            return not_done(command)
        except TimeRanOut:
            return self._out_of_time(errand, attempt, _since(began_s, now_s()))
        except BaseException:
            self._leave(errand, attempt)
            raise
        return _said(command, performed, _since(began_s, now_s()))

    async def _pass(self, errand: ToolErrand, has_waited: bool) -> Permit | None:  # noqa: FBT001  # as every gate is told
        """Leave for a call that is about to begin; raises where it may not: it was halted meanwhile, or taken back.

        Where the claim took long, a server was slow or this process stood still: whether the call is still wanted is asked.
        """
        sender, command, halts = errand.sender, errand.command, self._resources.halts
        if has_waited and halts is not None:
            halt = halts.stopping_any((*sender.scopes, tool_scope(command.tool)))
            if halt is not None:
                raise HaltStands(halt)
        while command.mutating:
            permit, is_wanted = Permit(), self._resources.is_wanted
            if not await self._resources.claim(sender.run_id, command.id):
                raise Revoked
            if is_wanted is None or permit.is_fresh:
                return None if is_wanted is None else permit
            if not await is_wanted(sender.run_id, command.id):
                raise Revoked
        return None

    async def _given(self, errand: ToolErrand, kit: Kit) -> JsonObject | ToolBroke | RunHalted:
        """Fill in the handles of the arguments; gives these, or the report why the tool is not called."""
        command, resources = errand.command, self._resources
        text = command.arguments if type(command.arguments) is str else await resources.text(command.arguments)
        arguments: JsonObject = kept_value(text)
        if errand.unseen:
            known = kit.every_filter
            filters = {name: known[name] for name in errand.filters if name in known}
            if why := await turned_away(filters, errand, arguments):
                message = f"tool {command.tool!r} was not called: {why}"
                return ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, message)
        # Behind a handle may stand a secret of the vault that a person told: no model knows it.
        if resources.vault.masker.names and (name := resources.vault.masker.found_in(text)):
            if resources.vault.masker.value_in(text):
                resources.vault.revoke(name)
            return ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, _exposed(command, name))
        if resources.sealer is not None and HANDLE_MARK in text:
            try:
                arguments = resources.sealer.filled(errand.sender.family, arguments)
            except SecretGone as gone:
                if is_lost(gone.handle):
                    return waits_for(gone.handle, f"tool {command.tool!r}", command.id)
                return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, _gone(command, gone.handle))
        return arguments

    def _out_of_time(self, errand: ToolErrand, attempt: Attempt, duration_ms: int) -> Report:
        """What a call came to whose time is up: its result if it came at the last moment, else nothing that is known."""
        command = errand.command
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
        self._leave(errand, attempt)
        return ToolBroke(command.id, ErrorCode.TOOL_TIMEOUT, message, duration_ms)

    async def reconcile(self, errand: InquiryErrand, kit: Kit) -> Report:
        """Ask a tool what became of the call with the command's key."""
        return masked(await self._reconciled(errand, kit), self._resources.vault)

    async def _reconciled(self, errand: InquiryErrand, kit: Kit) -> Report:
        command, resources = errand.command, self._resources
        tool = kit.tools.get(command.tool)
        if tool is None or errand.arguments is None:
            return ToolAccounted(command.id, Happened.UNKNOWN)
        arguments: JsonObject = kept_value(await resources.text(errand.arguments))
        if resources.sealer is not None:
            try:
                arguments = resources.sealer.filled(errand.sender.family, arguments)
            except SecretGone:
                return ToolAccounted(command.id, Happened.UNKNOWN)
        try:
            account = await within(command.timeout_ms, reconcile(tool, key=command.key, arguments=arguments))
        except TimeRanOut:
            return ToolAccounted(command.id, Happened.UNKNOWN)
        if account.happened is Happened.NO and self._goes_on(errand.sender.run_id, command.about):
            why = f"{command.tool} says that it did not happen, and its function was abandoned and is still running"
            return ToolAccounted(command.id, Happened.UNKNOWN, why=why)
        return ToolAccounted(command.id, account.happened, account.content, account.why)

    def _goes_on(self, run_id: str, command_id: str) -> bool:
        """Whether a call was abandoned here and its function is still running."""
        return any((call.run_id, call.command_id) == (run_id, command_id) for call in self.abandoned)

    def _leave(self, errand: ToolErrand, attempt: Attempt) -> None:
        """Keep an eye on a call that was cut off; what it comes to is told when it is known."""
        command, sender, late = errand.command, errand.sender, attempt.left()
        if late is None:
            return
        # A program that logs nothing may simply exit, without a word on stderr; its run tells of the call all the same.
        if attempt.is_abandoned and _log.hasHandlers():
            fields = command_fields(sender.run_id, sender.correlation(command.id))
            _log.warning("tool %s does not stop, was abandoned and may still be running", command.tool, extra=fields)
        self._left[late] = Abandoned(sender.run_id, command.id, command.tool)
        late.add_done_callback(partial(self._returned, command))

    def _returned(self, command: CallTool, late: Late) -> None:
        run_id = self._left.pop(late).run_id
        outcome = None if late.cancelled() else late.result()
        if isinstance(outcome, Performed):
            self._resources.on_late(run_id, masked(_said(command, outcome, 0), self._resources.vault))
        elif isinstance(outcome, ToolFault):
            report = ToolBroke(command.id, outcome.error_code, outcome.error, is_unknown=outcome.is_unknown)
            self._resources.on_late(run_id, masked(report, self._resources.vault))


def _said(command: CallTool, performed: Performed, duration_ms: int) -> Report:
    result = ToolResult(command.call_id, command.tool, performed.content, stop_loop=performed.stop_loop)
    return ToolSaid(command.id, result, performed.refuted, duration_ms)


def _exposed(command: CallTool, name: str) -> str:
    why = f"its arguments hold the secret {name!r}, which no model is shown"
    return f"{SECRET_EXPOSED}: tool {command.tool!r} was not called: {why}; renew that secret, and find out who told it"


def _gone(command: CallTool, handle: str) -> str:
    why = f"the value behind {handle} is not kept any more, was given in another run, or never was"
    return f"{SECRET_GONE}: tool {command.tool!r} was not called: {why}; ask the user to give it again"


def _since(began_s: float, now_s: float) -> int:
    return int((now_s - began_s) * _MS_PER_S)
