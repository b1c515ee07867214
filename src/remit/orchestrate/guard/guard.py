"""The guard: judges the calls of agents that run elsewhere. One operation in, one answer out; each conversation is a run.

Rule 1: an operation that cannot be used is answered with a code and changes nothing; the next one is read as ever.
Rule 2: whatever is not `"decision": "allow"` means that the call must not be made.
Rule 3: every verdict, result and answer is a turn of a run, written by the runner under the run's lease before the host is told
        of it. The same operations at the same moments make the same turns, and a host may say what time it is.
Rule 4: a result that cannot be taken in leaves its run without unattended effects, since it is unknown what was read.
Rule 5: runs, calls and bytes have limits; what a run holds is given back when it ends.
Rule 6: what is halted on the store begins and calls nothing, and no yes lets it be called: the operation is answered with
        HALTED and changes nothing, so that it can be asked again once the halt is lifted.
Rule 7: a run that met a bug of the house is over for its host: all it gets is the code of it.
Rule 8: a host that starts a run again under the name of one that is open and driven by no process goes on with that one, if it
        declares the same; calls that were allowed and have no result are in doubt then, as in any run.
Rule 9: a yes that did not come through the protocol lets exactly its call be made once, when the host proposes it again.
Rule 10: what people have told a run is heard before every operation, and while no operation comes.
Rule 11: the result of a change that was not allowed is a fact of the run, and ends it.
Rule 12: a call that is held is one question, under whatever id and however often it is proposed; asking again changes nothing.
Rule 13: the result of a call of which it was not known what came of it when its run ended is added to that run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.declared_arguments import checks_arguments
from remit.core.failure import ErrorCode, IllegalArrival, InvariantBroken, RemitError, RequestRejected
from remit.core.journal.arrivals import ApprovalRefused, CallProposed, HostFinished, TextShown, TimerFired
from remit.core.journal.codec import arguments_in, decode_turn, to_json
from remit.core.journal.commands import CallTool
from remit.core.journal.rulings import ToolCallRefused
from remit.core.journal.turn import Turn
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import JsonObject
from remit.core.run.person import check_person
from remit.core.run.principal import Scope as MayDo
from remit.core.run.principal import expect_scope, person_for
from remit.core.run.signals import Signal, UserSignal, packet_id
from remit.kernel.authority.intake import check_intake
from remit.kernel.state import pinned
from remit.orchestrate.executors.reports import HostProposed, PersonApproved, Report, ToolBroke, ToolSaid
from remit.orchestrate.guard.begin_run import GUARD_RUN_OPEN, go_on, manifest_of, take_run
from remit.orchestrate.guard.guard_parts import GuardParts
from remit.orchestrate.guard.host_orders import take_orders, use_grant
from remit.orchestrate.guard.host_tools import Toolsets
from remit.orchestrate.guard.open_run import OpenRun
from remit.orchestrate.guard.protocol import (
    GUARD_LINE_TOO_LONG,
    GUARD_OP_INVALID,
    LINE_BYTES_MAX,
    ORDERS,
    RESULT,
    addressed,
    id_under,
    moment_in,
    named_in_broken_line,
    prompt_in,
    read_line,
    required_text,
    result_json,
    size_of,
    tenant_in,
    unfit,
    wrong,
)
from remit.orchestrate.guard.run_register import RunRegister
from remit.orchestrate.guard.shown_verdicts import RUN_STOPPED, found_json, shown_refusal, shown_verdict
from remit.orchestrate.guard.waiting_calls import WaitingCall, not_shown, not_waiting, shown_again, shown_taken
from remit.orchestrate.loop.halt_switch import check_halts, check_host_call, scopes_over
from remit.provenance.call_log import ApprovalScope

GUARD_RUN_BROKEN = "GUARD_RUN_BROKEN"
GUARD_CALLS_FULL = "GUARD_CALLS_FULL"

# Ten times what the largest tasks need. Each call leaves a trace that the next ones are judged by.
CALLS_MAX = 10_000
# Calls without a result and questions without an answer (a question is two of these, with its timer).
OPEN_MAX = 2_000
# What a call leaves behind beside its own bytes: its trace, its place in the ledger, a message.
_CALL_BYTES = 1_024

# What is said to a result that no run waits for: to begin another conversation would settle nothing.
_NOT_AWAITED = "none that ended in this guard waits for this result, so tell a person what came of the call"
_DONE: Mapping[str, Any] = MappingProxyType({"ok": True})


@checks_arguments("operation")
class Guard:
    """Judges the calls of many runs at once, one operation after the other."""

    line_bytes_max = LINE_BYTES_MAX

    def __init__(self, parts: GuardParts) -> None:
        self._parts = parts
        self._runner = parts.runner
        self._runs = RunRegister()
        self._toolsets = Toolsets()
        self._one_at_a_time = asyncio.Lock()
        self._attending: asyncio.Task[None] | None = None
        self._operations: Mapping[str, Callable[[OpenRun, str, JsonObject], Awaitable[JsonObject | None]]] = {
            "call": self._call,
            RESULT: self._result,
            "answer": self._answer,
            ORDERS: self._orders,
            "end": self._end,
        }

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are open, as their hosts name them."""
        return self._runs.names

    def run_id_of(self, name: str, tenant: str | None = None) -> str:
        """The id of the open run that the host calls so; `tenant` is needed where several tenants use that name."""
        return self._runs.run(name, tenant).live.run_id

    async def answer(self, operation: JsonObject) -> JsonObject | None:
        """The answer to one operation of the protocol; None where it has none. Operations wait for each other."""
        async with self._one_at_a_time:
            return await self._answered(operation)

    async def line(self, data: bytes) -> JsonObject | None:
        """The answer to one line of the protocol; None where it has none."""
        async with self._one_at_a_time:
            try:
                operation = read_line(data)
            except RequestRejected as error:
                op, name = named_in_broken_line(data)
                await self._lose(operation := {"op": op, "run": name})
                return wrong(error, operation)
            return await self._answered(operation)

    async def too_long(self, beginning: bytes) -> JsonObject:
        """The answer to a line that is longer than the limit. It may have been a result, of any run."""
        op, name = named_in_broken_line(beginning)
        if op in ("", RESULT):
            async with self._one_at_a_time:
                for each in dict.fromkeys(self.runs) if not name else [name]:
                    await self._lose({"op": RESULT, "run": each})
        message = f"the line has more than line_bytes_max={LINE_BYTES_MAX}; shorten what it carries"
        return wrong(RequestRejected(GUARD_LINE_TOO_LONG, message), {"op": op, "run": name})

    async def hear(self) -> None:
        """Let the open runs hear what people have told them through the store, without being asked."""
        async with self._one_at_a_time:
            await self._hear()

    async def close(self) -> None:
        """Let go of every run that is open; each rests, and can be gone on with."""
        if self._attending is not None:
            self._attending.cancel()
            await asyncio.gather(self._attending, return_exceptions=True)
        async with self._one_at_a_time:
            for run in self._runs:
                await self._parts.run_leases.let_go(run.live.run_id, run.live.warrant)
            self._runs.clear()

    async def _answered(self, operation: JsonObject) -> JsonObject | None:
        try:
            op, name = addressed(operation)
            await self._hear()
            return await self._performed(op, name, operation)
        except RemitError as error:
            await self._lose(operation)
            return wrong(error, operation)

    async def _hear(self) -> None:
        self._parts.expect_open()
        if self._parts.hear is not None and self._runs:
            lives = {run.live.run_id: run.live for run in self._runs}
            await self._parts.hear(lives.get)

    def _attend(self) -> None:
        """Hear what people say from now on, as soon as they say it, as long as a run is open."""
        if self._parts.attend is not None and (self._attending is None or self._attending.done()):
            self._attending = self._parts.attend(self.hear, lambda: bool(self._runs))

    async def _lose(self, operation: Any) -> None:
        """Note that what was not taken in may have been a result of an open run."""
        if not isinstance(operation, dict) or operation.get("op") != RESULT:
            return
        name, tenant = operation.get("run"), operation.get("tenant")
        if not isinstance(name, (str, int)):
            return
        for run in self._runs.named(str(name), tenant if isinstance(tenant, str) else None):
            if run.is_lost or run.is_broken or run.state.end.ending is not None:
                continue
            try:
                self._parts.expect_open()
                await self._runner.rule_on(run.live, TextShown(is_lost=True))
            except RemitError:
                run.is_broken = True  # That an unknown text was read could not be written down either.

    async def _performed(self, op: str, name: str, operation: JsonObject) -> JsonObject | None:
        tenant = tenant_in(operation, self._parts.principal)
        if op == RESULT and (ended := self._runs.ended_with(name, tenant, operation)) is not None:
            await self._add(ended, operation)
            return None
        way_out = (_NOT_AWAITED,) if op == RESULT else ()
        run = None if op == "start" else self._runs.run(name, tenant, *way_out)
        if run is not None and run.is_broken and op != "end":
            raise RequestRejected(GUARD_RUN_BROKEN, f"run {name!r} met a bug and is over; end it and start another")
        try:
            if run is None:
                return await self._start(name, operation)
            return await self._operations[op](run, name, operation)
        except RemitError as error:
            if isinstance(error, InvariantBroken):
                raise _broke(op, name, error, run) from error
            raise
        except Exception as error:
            raise _broke(op, name, error, run) from error

    async def _start(self, name: str, operation: JsonObject) -> JsonObject:
        if (tenant_in(operation, self._parts.principal) or "", name) in self._runs:
            raise RequestRejected(GUARD_RUN_OPEN, f"run {name!r} is open already; end it, or use another id")
        self._runs.check_room()
        prompt, tools = prompt_in(operation["prompt"]), self._toolsets.of(operation["tools"])
        size_bytes, moment_ms = tools.size_bytes + len(to_json(prompt)), moment_in(operation)
        self._runs.check_bytes(name, 0, size_bytes)
        manifest = await manifest_of(self._parts, name, prompt, tools.definitions, operation)
        check_intake(manifest, self._runner.clock.now_ms() if moment_ms is None else moment_ms)
        check_halts(self._parts.halts(), scopes_over(manifest), f"run {name!r} was not begun")
        live, is_new = await take_run(self._parts, manifest, moment_ms)
        run = OpenRun(live, manifest.request.tenant_id, size_bytes)
        self._runs.open(name, run)
        if not is_new:
            self._runs.grow(run, await go_on(self._parts, run))
        self._attend()
        if is_new:
            return dict(_DONE)
        await self._hear()
        return {**_DONE, "resumed": True}

    async def _call(self, run: OpenRun, name: str, operation: JsonObject) -> JsonObject:
        call_id, tool, arguments = id_under(operation, "id"), required_text(operation, "tool"), operation["args"]
        moment_ms = moment_in(operation)
        self._check_call_halts(run, tool)
        await self._pass_time(run, moment_ms)
        self._check_call_halts(run, tool)
        if (run.waiting or run.is_open(call_id)) and run.state.end.ending is None:
            proposed = ToolCall(call_id or "", tool, arguments)
            if (said := await self._again(run, call_id, proposed)) is not None:
                return said
        if run.calls >= CALLS_MAX or run.open_count >= OPEN_MAX:
            message = (
                f"run {name!r} has {run.calls} calls, calls_max={CALLS_MAX}, and {run.open_count} without "
                f"an outcome, open_max={OPEN_MAX}; report results and answers, or start another run"
            )
            raise RequestRejected(GUARD_CALLS_FULL, message)
        self._runs.charge(name, run, size_of(arguments) + _CALL_BYTES)
        return await self._judged(run, call_id or run.next_id(), tool, arguments)

    async def _judged(self, run: OpenRun, call_id: str, tool: str, arguments: Any) -> JsonObject:
        """The verdict on one proposed call, as the protocol shows it."""
        live, state = run.live, run.state
        tracer = await self._runner.tracer(live)
        if state.end.ending is not None:
            shown = {**found_json(None, tracer.gate), **shown_refusal(RUN_STOPPED, [state.end.message]), "stop": True}
            return {"id": call_id, **shown}
        tracer.verdict = None
        turn = await self._runner.rule_on(live, HostProposed(ToolCall(call_id, tool, arguments)))
        tracer = live.tracer or tracer
        shown = shown_verdict(turn, tracer.verdict, tracer.gate)
        assert isinstance(turn.arrival, CallProposed), "that is what was reported"
        made, call = state.commands.open.get(turn.arrival.takes), turn.arrival.call
        if isinstance(made, CallTool) and (call.said or made.arguments_hash != call.arguments_hash):
            shown["arguments"] = await self._arguments_of(run, made)
            if made.instead_of == call.arguments_hash:
                shown["reasons"] = [f"{made.approved_by} changed the arguments; call it with those in `arguments`"]
        elif "arguments" in shown:
            shown["arguments"] = self._filled(run, shown["arguments"])
        if (asked_now := run.waiting.get(call_id)) is not None:
            shown = {**asked_now.showing(shown, state), **await use_grant(self._runner, run, asked_now)}
        return {"id": call_id, **shown}

    async def _arguments_of(self, run: OpenRun, command: CallTool) -> JsonObject:
        """The arguments of a call for the host that makes it."""
        return self._filled(run, arguments_in(await self._runner.text(command.arguments)))

    def _filled(self, run: OpenRun, arguments: Any) -> JsonObject:
        """Arguments with what was sealed before they were written."""
        sealer = self._runner.sealer
        filled: JsonObject = arguments if sealer is None else sealer.filled(run.state.derived.family, arguments)
        return filled

    async def _again(self, run: OpenRun, call_id: str | None, proposed: ToolCall) -> JsonObject | None:
        """What is said of a call that is held already, under whatever id, or whose id names another one. It is no turn."""
        live, arrival = run.live, await self._runner.proposed(run.live, proposed)
        named = None if call_id is None else run.waiting.get(call_id)
        waiting = named or (None if arrival.takes else run.waiting.same_as(arrival.call))
        is_taken = call_id is not None and named is None and run.is_taken(call_id, arrival.call)
        if waiting is None and not is_taken:
            return None
        assert live.tracer is not None, "a guarded run is traced"
        if waiting is None or is_taken:
            run.contested.add((call_id or "", arrival.call.tool))
            return {"id": call_id, **shown_taken(arrival.call, run.state, live.tracer.gate, "has no outcome yet")}
        shown = shown_again(waiting, arrival.call, run.state, live.tracer.gate)
        if shown is not waiting.shown:
            return {"id": call_id, **shown}
        call_id = call_id or waiting.call_id
        run.waiting.know_as(call_id, waiting)
        shown = {"id": call_id, **waiting.showing(shown, run.state), **await use_grant(self._runner, run, waiting)}
        return shown if call_id == waiting.call_id else {**shown, "held_as": waiting.call_id}

    async def _result(self, run: OpenRun, name: str, operation: JsonObject) -> None:
        call_id, tool, moment_ms = id_under(operation, "id"), required_text(operation, "tool"), moment_in(operation)
        try:
            content, data = result_json(operation["content"])
            text = content if isinstance(content, str) else to_json(content)
        except (ValueError, TypeError, RecursionError) as error:
            message = f"content of run {name!r} is no JSON: {str(error)[:SHOWN_CHARS_MAX]}; report it as a text"
            raise RequestRejected(GUARD_OP_INVALID, message) from error
        self._runs.charge(name, run, len(data))
        await self._pass_time(run, moment_ms)
        answered, is_heard = run.answered(call_id, tool) or run.told_again(call_id, tool), False
        is_shared, is_error = len(answered) > 1, operation.get("error") is True
        is_unsure = is_shared or (call_id or "", tool) in run.contested
        is_done = not (is_error and operation.get("not_done") is True)
        for command in answered:
            report: Report = ToolSaid(command.id, ToolResult(command.call_id, tool, text), is_shared=is_shared)
            if is_error:
                code = ErrorCode.TOOL_EXECUTION_FAILED
                # Of several calls it is unknown which was not done.
                report = ToolBroke(command.id, code, text, is_unknown=is_done or is_unsure, is_shared=is_shared)
            with suppress(IllegalArrival):  # It was in doubt and says no more, or the run has ended.
                await self._runner.rule_on(run.live, report, insists=command.mutating)
                is_heard = True
        made = None if answered or not is_done else run.unallowed(call_id, tool)
        if made is not None or ((len(answered) != 1 or not is_heard) and run.state.end.ending is None):
            # Of several calls it is unknown which is meant; where there is none, it is text.
            shown = TextShown(tool, text, is_shared and not is_error, made=made)
            await self._runner.rule_on(run.live, shown, insists=made is not None)

    async def _add(self, run: OpenRun, operation: JsonObject) -> None:
        """Add a result to a run that has ended."""
        live, run_leases = run.live, self._parts.run_leases
        live.warrant = await run_leases.take(live.run_id)
        try:
            await self._result(run, str(operation["run"]), operation)
        finally:
            await run_leases.let_go(live.run_id, live.warrant)
        if not run.is_waiting:
            self._runs.forget_ended(str(operation["run"]), run)

    async def _answer(self, run: OpenRun, name: str, operation: JsonObject) -> JsonObject:
        await self._pass_time(run, moment_in(operation))
        named, by = id_under(operation, "id"), check_person(required_text(operation, "by"))
        approve, scope = operation["approve"], operation.get("scope", ApprovalScope.CALL.value)
        if not isinstance(approve, bool):
            raise unfit("approve", approve, "true or false")
        changed = operation.get("arguments")
        if changed is not None and not (approve and isinstance(changed, dict)):
            raise unfit("arguments", changed, "an object with all arguments of the call, beside a yes")
        packet = operation.get("packet")
        if packet is not None and not isinstance(packet, str):
            raise unfit("packet", packet, "the `packet` of the verdict")
        if not isinstance(scope, str) or scope not in list(ApprovalScope):
            raise unfit("scope", scope, f"one of {', '.join(ApprovalScope)}")
        self._parts.check_name("by", by)
        expect_scope(self._parts.principal, MayDo.APPROVE, "answer")
        by = person_for(self._parts.principal, by)
        state = run.state
        call_id = named or (next(iter(run.waiting)) if len(run.waiting) == 1 else "")
        if (waiting := run.waiting.get(call_id)) is None:
            raise not_waiting(state.run_id, run.waiting, call_id, await self._turns(run))
        if state.end.ending is not None:
            return _answered_late(run, call_id, approve=approve)
        if not waiting.is_heard(packet, approve=approve):
            raise not_shown(state.run_id, waiting, packet, await self._turns(run))
        if self._parts.check_answer is not None:
            said = {"packet_id": packet_id(state.run_id, waiting.question.id)}
            kind = Signal.APPROVE if approve else Signal.REJECT
            await self._parts.check_answer(state, UserSignal("", kind, state.run_id, by, payload=said))
        if not approve:
            await self._runner.rule_on(run.live, ApprovalRefused(waiting.question.id, by))
            return dict(_DONE)
        assert waiting.question.packet is not None, "what is held is a call"
        self._check_call_halts(run, waiting.question.packet.call.tool)
        report = PersonApproved(
            waiting.question.id, by, changed, for_values=scope == ApprovalScope.VALUE, is_awaited=True
        )
        return await self._approved(run, call_id, waiting, report)

    async def _turns(self, run: OpenRun) -> list[Turn]:
        return [*map(decode_turn, await self._runner.journal.read(run.live.run_id))]

    async def _orders(self, run: OpenRun, name: str, operation: JsonObject) -> JsonObject:
        """Take in the effects that are wanted of a run, and who confirms them; what stands then is shown."""
        await self._pass_time(run, moment_in(operation))
        self._runs.charge(name, run, size_of(operation.get("orders")))
        return {**_DONE, **await take_orders(operation, self._parts, run.live)}

    async def _approved(self, run: OpenRun, call_id: str, waiting: WaitingCall, report: PersonApproved) -> JsonObject:
        """Count a yes to a held call: the call may be made, or more people must agree. Raises when it does not count."""
        try:
            turn = await self._runner.rule_on(run.live, report)
        except IllegalArrival as error:
            code = error.details.get("refusal") or error.code
            raise RequestRejected(str(code), f"call {call_id!r}: {error.message}") from error
        for unmade in [one for one in turn.decisions if isinstance(one, ToolCallRefused)]:
            message = f"call {call_id!r} can no longer be made: {unmade.reason}; the run was stopped"
            raise RequestRejected(unmade.code, message, {"stop": True})
        if run.waiting.get(call_id) is None:
            answer = dict(_DONE)
            for made in [one for one in turn.decisions if isinstance(one, CallTool) and report.arguments is not None]:
                answer["arguments"] = await self._arguments_of(run, made)
            return answer
        packet = waiting.question.packet
        needed = 1 if packet is None else packet.approvals_needed
        return {**_DONE, "waiting_for": needed - len(run.state.people.approvals.get(waiting.question.id, ()))}

    async def _end(self, run: OpenRun, name: str, operation: JsonObject) -> JsonObject:
        if not run.is_broken:
            await self._pass_time(run, moment_in(operation))
        if not run.is_broken and run.state.end.ending is None:
            await self._runner.rule_on(run.live, HostFinished())
        self._runs.close(name, run)
        await self._parts.run_leases.let_go(run.live.run_id, run.live.warrant)
        if self._parts.forget is not None:
            await self._parts.forget(run.live.run_id)
        else:
            self._runs.keep_ended(name, run)
        return dict(_DONE)

    async def _pass_time(self, run: OpenRun, moment_ms: int | None) -> None:
        """Come to a moment, unless it is later already; what was not answered by then is passed on, or a no."""
        run.live.moment_ms = moment_ms
        now_ms = self._runner.clock.now_ms() if moment_ms is None else moment_ms
        for timer_id in run.due(max(now_ms, run.state.at_ms)):
            with suppress(IllegalArrival):  # The question before it has ended the run, and this one with it.
                await self._runner.rule_on(run.live, TimerFired(timer_id))

    def _check_call_halts(self, run: OpenRun, tool: str) -> None:
        """Raise where a call of a tool may not go out."""
        check_host_call(self._parts.halts(), pinned(run.state), tool)


def _broke(op: str, name: str, error: Exception, run: OpenRun | None) -> RequestRejected:
    """A bug stops its run and no other: what it left half done must not be judged by."""
    if run is not None:
        run.is_broken = True
    message = f"{op} of run {name!r} met a bug, {type(error).__name__}; end the run and report it"
    return RequestRejected(GUARD_RUN_BROKEN, message)


def _answered_late(run: OpenRun, call_id: str, *, approve: bool) -> JsonObject:
    """Drop a call that is refused after its run was stopped; raises RUN_STOPPED for a yes."""
    if approve:
        message = (
            f"call {call_id!r} cannot be approved, since the run was stopped: {run.state.end.message}; end the run"
        )
        raise RequestRejected(RUN_STOPPED, message, {"stop": True})
    run.waiting.drop(call_id)
    return dict(_DONE)
