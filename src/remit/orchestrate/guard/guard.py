"""The guard: judges the calls of agents that run elsewhere. One operation in, one answer out; each conversation is a run.

Rule 1: an operation that cannot be used is answered with a code and changes nothing; the next one is read as ever.
Rule 2: whatever is not `"decision": "allow"` means that the call must not be made.
Rule 3: every verdict, result and answer is a turn of a run, written by the runner under the run's lease before anybody is told
        of it. The same operations at the same moments make the same turns, and a host may say what time it is.
Rule 4: a result that cannot be taken in leaves its run without unattended effects, since nobody knows what was read.
Rule 5: runs, calls and bytes have limits; what a run holds is given back when it ends.
Rule 6: what is halted on the store begins and calls nothing: the operation is answered with HALTED and changes nothing,
        so that it can be asked again once the halt is lifted.
Rule 7: a run that met a bug of the house is over for its host: all it gets is the code of it.
Rule 8: a host that starts a run again under the name of one that is open and driven by nobody goes on with that one, if it
        declares the same; calls that were allowed and have no result are in doubt then, as in any run.
Rule 9: a yes that did not come through the protocol lets exactly its call be made once, when the host proposes it again.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from remit.core.arrivals import ApprovalRefused, HostFinished, TextShown, TimerFired
from remit.core.budget import Dimension
from remit.core.codec import decode_turn, to_json
from remit.core.contract import SystemRequest
from remit.core.envelope import ID_CHARS_MAX
from remit.core.events import Turn
from remit.core.failure import ErrorCode, IllegalArrival, InvariantBroken, RemitError, RequestRejected
from remit.core.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind
from remit.core.halt import Standing
from remit.core.manifest import Host, Manifest, make_manifest
from remit.core.messages import user_message
from remit.core.person import check_person
from remit.core.record import JsonObject, replace
from remit.core.rulings import ToolCallRefused
from remit.core.signals import Signal, UserSignal, packet_id
from remit.core.storage import RunHeld
from remit.core.tools import ToolCall, ToolResult
from remit.kernel.authorize import authorize, has_valid_arguments, is_registered
from remit.kernel.intake import check_intake
from remit.kernel.state import RunState, pinned
from remit.kernel.tally import Tally
from remit.kernel.verdicts import ALLOWED
from remit.orchestrate.custody import Custody
from remit.orchestrate.guard.boundary import boundary_of
from remit.orchestrate.guard.protocol import (
    GUARD_LINE_TOO_LONG,
    GUARD_OP_INVALID,
    LINE_BYTES_MAX,
    RESULT,
    addressed,
    asker_in,
    id_in,
    moment_in,
    plan_in,
    prompt_in,
    read_in,
    read_line,
    size_of,
    text_in,
    told,
    unfit,
    written,
)
from remit.orchestrate.guard.room import Held, Room
from remit.orchestrate.guard.tools import Toolsets
from remit.orchestrate.guard.verdicts import CALL_ID_HELD, RUN_STOPPED, found_json, refused, verdict_of
from remit.orchestrate.halts import refusal, scope_of
from remit.orchestrate.holdings import Holdings
from remit.orchestrate.ports import Catalogue, Live
from remit.orchestrate.recover import recover
from remit.orchestrate.reports import HostProposed, PersonApproved, Report, ToolBroke, ToolSaid
from remit.orchestrate.runner import Runner
from remit.orchestrate.starting import started
from remit.provenance.calls import Scope
from remit.provenance.gate import Gate, prompts_of
from remit.tool.vault import NO_SECRETS

GUARD_RUN_UNKNOWN = "GUARD_RUN_UNKNOWN"
GUARD_RUN_OPEN = "GUARD_RUN_OPEN"
GUARD_RUN_DIFFERS = "GUARD_RUN_DIFFERS"
GUARD_RUN_BROKEN = "GUARD_RUN_BROKEN"
GUARD_RUNS_FULL = "GUARD_RUNS_FULL"
GUARD_CALLS_FULL = "GUARD_CALLS_FULL"
GUARD_BYTES_FULL = "GUARD_BYTES_FULL"

# One process guards the agents of a busy service; a caller with more has forgotten to end them.
RUNS_MAX = 1_000
# Ten times what the largest tasks need. Each call leaves a trace that the next ones are judged by.
CALLS_MAX = 10_000
# Calls without a result and questions without an answer (a question is two of these, with its timer).
OPEN_MAX = 2_000
# What came in and is remembered: of one run (more than any context holds), and of all runs together.
RUN_BYTES_MAX = 32 * 1024 * 1024
BYTES_MAX = 256 * 1024 * 1024
# What a call leaves behind beside its own bytes: its trace, its place in the ledger, a message.
_CALL_BYTES = 1_024

# How long a conversation may take is for its host to say; a run has a deadline all the same: ten years.
_WALL_CLOCK_MS = 315_360_000_000

_SHOWN_CHARS_MAX = 80
_MESSAGE_CHARS_MAX = 500
_DONE: Mapping[str, Any] = MappingProxyType({"ok": True})
# What a call must be before it can be another call of the same id.
_FIT = (is_registered, has_valid_arguments)

# One place: the agent stays there until it says that it is done.
HOST_GRAPH = Graph("guard", "host", (Node("host", NodeKind.HOST), *TERMINALS), (Edge("host", "done"),), EXITS)

T = TypeVar("T")
Begin = Callable[[Manifest, Callable[[Manifest], Awaitable[Live]]], Awaitable[Live]]


async def _as_it_is(manifest: Manifest, begin: Callable[[Manifest], Awaitable[Live]]) -> Live:
    return await begin(manifest)


@dataclass(frozen=True)
class Ground:
    """What guarded runs stand on: who writes their turns, who holds them, where they are listed, and what is halted."""

    runner: Runner
    holdings: Holdings
    new_id: Callable[[], str]
    halts: Callable[[], Standing]
    # Knows which runs there are, so that one can be gone on with; None where nothing outlives the process.
    catalogue: Catalogue | None = None
    # Drops a run that has ended, where nobody could look at it any more.
    forget: Callable[[str], Awaitable[object]] | None = None
    # Begins a run within the quotas of its tenant.
    begin: Begin = _as_it_is
    # Refuses an answer that the queue of its question does not hear.
    check_answer: Callable[[RunState, UserSignal], Awaitable[None]] | None = None
    # Lets these runs hear what was left for them in the inbox.
    hear: Callable[[Callable[[str], Live | None]], Awaitable[None]] | None = None
    check_name: Callable[[str, str], None] = NO_SECRETS.check_name
    custody: Custody | None = None
    owner: str = ""


class Guard:
    """Judges the calls of many runs at once, one operation after the other."""

    line_bytes_max = LINE_BYTES_MAX

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._runner = ground.runner
        self._rooms: dict[str, Room] = {}
        self._toolsets = Toolsets()
        self._size_bytes = 0
        self._operations: Mapping[str, Callable[[str, JsonObject], Awaitable[JsonObject | None]]] = {
            "start": self._start,
            "call": self._call,
            RESULT: self._result,
            "answer": self._answer,
            "end": self._end,
        }

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are open, as their hosts name them."""
        return tuple(self._rooms)

    def run_id_of(self, name: str) -> str:
        """The id of the run that a host names so; it must be open."""
        return self._room(name).live.run_id

    async def answer(self, operation: JsonObject) -> JsonObject | None:
        """The answer to one operation of the protocol; None where it has none."""
        try:
            op, name = addressed(operation)
            return await self._performed(op, name, operation)
        except RemitError as error:
            await self._lose(operation)
            return _wrong(error, operation)

    async def line(self, data: bytes) -> JsonObject | None:
        """The answer to one line of the protocol; None where it has none."""
        try:
            operation = read_line(data)
        except RequestRejected as error:
            op, name = told(data)
            await self._lose(operation := {"op": op, "run": name})
            return _wrong(error, operation)
        return await self.answer(operation)

    async def too_long(self, beginning: bytes) -> JsonObject:
        """The answer to a line that is longer than anybody reads. It may have been a result, of whichever run."""
        op, name = told(beginning)
        if op in ("", RESULT):
            for each in list(self._rooms) if not name else [name]:
                await self._lose({"op": RESULT, "run": each})
        message = f"the line has more than line_bytes_max={LINE_BYTES_MAX}; shorten what it carries"
        return _wrong(RequestRejected(GUARD_LINE_TOO_LONG, message), {"op": op, "run": name})

    async def hear(self) -> None:
        """Let the open runs hear what people have told them through the store."""
        if self._ground.hear is not None and self._rooms:
            lives = {room.live.run_id: room.live for room in self._rooms.values()}
            await self._ground.hear(lives.get)

    async def close(self) -> None:
        """Let go of every run that is open; each rests, and can be gone on with."""
        for room in self._rooms.values():
            await self._ground.holdings.let_go(room.live.run_id, room.live.warrant)
        self._rooms.clear()

    async def _lose(self, operation: Any) -> None:
        """Note that what was not taken in may have been a result of an open run."""
        if not isinstance(operation, dict) or operation.get("op") != RESULT:
            return
        name = operation.get("run")
        room = self._rooms.get(str(name)) if isinstance(name, (str, int)) else None
        if room is None or room.is_lost or room.is_broken or room.state.ending is not None:
            return
        try:
            await self._runner.judge(room.live, TextShown(is_lost=True))
        except RemitError:
            room.is_broken = True  # That something was read that nobody knows could not be written down either.

    async def _performed(self, op: str, name: str, operation: JsonObject) -> JsonObject | None:
        room = self._rooms.get(name)
        if room is not None and room.is_broken and op != "end":
            raise RequestRejected(GUARD_RUN_BROKEN, f"run {name!r} met a bug and is over; end it and start another")
        try:
            return await self._operations[op](name, operation)
        except InvariantBroken as error:
            raise self._broke(op, name, error) from error
        except RemitError:
            raise
        except Exception as error:
            raise self._broke(op, name, error) from error

    def _broke(self, op: str, name: str, error: Exception) -> RequestRejected:
        """A bug stops its run and no other: what it left half done must not be judged by."""
        if (room := self._rooms.get(name)) is not None:
            room.is_broken = True
        message = f"{op} of run {name!r} met a bug, {type(error).__name__}; end the run and report it"
        return RequestRejected(GUARD_RUN_BROKEN, message)

    async def _start(self, name: str, operation: JsonObject) -> JsonObject:
        if name in self._rooms:
            raise RequestRejected(GUARD_RUN_OPEN, f"run {name!r} is open already; end it, or use another id")
        if len(self._rooms) >= RUNS_MAX:
            message = f"{len(self._rooms)} runs are open, runs_max={RUNS_MAX}; end those that are over"
            raise RequestRejected(GUARD_RUNS_FULL, message)
        prompt, tools = prompt_in(operation["prompt"]), self._toolsets.of(operation["tools"])
        size_bytes = tools.size_bytes + len(to_json(prompt))
        self._check_bytes(name, 0, size_bytes)
        manifest = self._manifest(name, prompts_of(prompt), tools.definitions, operation)
        moment_ms = moment_in(operation)
        now_ms = self._runner.clock.now_ms() if moment_ms is None else moment_ms
        check_intake(manifest, now_ms)
        self._check_halts(name, manifest.run_id, manifest.request.tenant_id)
        live = await self._gone_on_with(manifest)
        is_resumed = live is not None
        if live is None:
            live = await self._ground.begin(manifest, lambda assigned: self._begun(assigned, moment_ms))
        room = self._rooms[name] = Room(live, name, manifest.request.tenant_id, size_bytes)
        self._size_bytes += size_bytes
        if is_resumed:
            live.moment_ms = moment_ms
            await self._resume(room)
        return {**_DONE, "resumed": True} if is_resumed else dict(_DONE)

    def _manifest(self, name: str, prompts: list[str], tools: Any, operation: JsonObject) -> Manifest:
        """What a conversation is started with. Its caps of steps and time are for its host to keep."""
        asker, plan = asker_in(operation), plan_in(operation.get("plan"))
        for key in ("user", "tenant"):
            self._ground.check_name(key, getattr(asker, key))
        manifest = make_manifest(
            run_id=self._ground.new_id(),
            request=SystemRequest(
                tuple([user_message(said) for said in prompts]), user_id=asker.user, tenant_id=asker.tenant
            ),
            boundary=boundary_of(operation.get("boundary")),
            graph=HOST_GRAPH,
            models=(),
            tools=tools,
            role=asker.role,
            owner=self._ground.owner,
            host=Host(name, None if plan is None else tuple(plan.items())),
            read=read_in(operation.get("read")),
        )
        caps = list(manifest.caps)
        caps[Dimension.WALL_CLOCK_MS], caps[Dimension.STEPS] = _WALL_CLOCK_MS, max(caps[Dimension.STEPS], 1)
        return replace(manifest, caps=tuple(caps))

    async def _begun(self, manifest: Manifest, moment_ms: int | None) -> Live:
        run_id = manifest.run_id
        live = Live(run_id, RunState())
        live.warrant, live.moment_ms = await self._ground.holdings.hold(run_id), moment_ms
        try:
            return await self._runner.start(manifest, live)
        except BaseException:
            await self._ground.holdings.let_go(run_id, live.warrant)
            raise

    async def _gone_on_with(self, manifest: Manifest) -> Live | None:
        """The open run of this name and tenant, held here from now on; None where there is none."""
        host, tenant = manifest.host, manifest.request.tenant_id
        assert host is not None, "a guarded run has a host"
        if self._ground.catalogue is None:
            return None
        named = await self._ground.catalogue.named(host.name, tenant)
        if not named:
            return None
        found = named[0].run_id
        try:
            warrant = await self._ground.holdings.hold(found)
        except RunHeld as error:
            message = f"run {host.name!r} is open as {found} in another process; use another name, or end that one"
            raise RequestRejected(GUARD_RUN_OPEN, message, {"run_id": found}) from error
        try:
            live = await self._runner.load(found)
            live.warrant = warrant
            if self._ground.custody is not None:
                await self._ground.custody.expect_kept(live.state, found)
            self._check_same(live.state, manifest)
        except BaseException:
            await self._ground.holdings.let_go(found, warrant)
            raise
        return live

    def _check_same(self, state: RunState, manifest: Manifest) -> None:
        """Refuse to go on with a run that was begun with something else: its words and tools are what calls are judged by."""
        was, sealer = pinned(state), self._runner.sealer
        wanted = replace(manifest, run_id=was.run_id, caps=was.caps)
        declared = started(wanted if sealer is None else sealer.manifest(wanted), []).manifest
        unlike = [part for part in Manifest.__struct_fields__ if getattr(declared, part) != getattr(was, part)]
        if unlike:
            host = was.host
            named = "" if host is None else host.name
            message = (
                f"run {named!r} is open as {was.run_id} with other {', '.join(unlike)}; start it with the same, "
                f"end it with `remit signal {was.run_id} cancel`, or use another name"
            )
            raise RequestRejected(GUARD_RUN_DIFFERS, message, {"run_id": was.run_id, "unlike": unlike})

    async def _resume(self, room: Room) -> None:
        """Read the turns of a run again, put in doubt what has no outcome, and hear what people said meanwhile."""
        live = room.live
        room.size_bytes += await self._reread(room)
        self._size_bytes += room.size_bytes
        warrant, may_expire = live.warrant, self._ground.holdings.may_expire
        await recover(self._runner, live.run_id, live, token=warrant.token if warrant is not None and may_expire else 0)
        await self.hear()

    async def _reread(self, room: Room) -> int:
        """Follow a run from its first turn on, and say what its verdicts said; gives how many bytes its turns have."""
        live, size_bytes = room.live, 0
        turns = []
        for data in await self._runner.journal.read(live.run_id):
            turns.append(decode_turn(data))
            size_bytes += len(data)
        tracer, read = await self._runner.retraced(turns, 1)
        for turn in turns[1:]:
            tracer.verdict = None
            tracer.retrace(turn, read)
            room.follow(turn)
            self._show_held(room, turn, tracer.verdict, tracer.gate)
        live.tracer = tracer
        return size_bytes

    def _show_held(self, room: Room, turn: Turn, finding: Any, gate: Gate) -> None:
        """Keep what was said of a call that a turn holds, for whoever asks again."""
        for held in room.held.values():
            if not held.shown and held.question in turn.decisions and hasattr(turn.arrival, "call"):
                held.shown = verdict_of(turn, finding, gate)

    async def _call(self, name: str, operation: JsonObject) -> JsonObject:
        room = self._room(name)
        call_id, tool, arguments = id_in(operation, "id"), text_in(operation, "tool"), operation["args"]
        if room.calls >= CALLS_MAX or room.open_count >= OPEN_MAX:
            message = (
                f"run {name!r} has {room.calls} calls, calls_max={CALLS_MAX}, and {room.open_count} without "
                f"an outcome, open_max={OPEN_MAX}; report results and answers, or start another run"
            )
            raise RequestRejected(GUARD_CALLS_FULL, message)
        self._check_halts(name, room.live.run_id, room.tenant, tool)
        moment_ms = moment_in(operation)
        self._charge(name, room, size_of(arguments) + _CALL_BYTES)
        await self._pass_time(room, moment_ms)
        return await self._judged(room, call_id or room.next_id(), tool, arguments)

    async def _judged(self, room: Room, call_id: str, tool: str, arguments: Any) -> JsonObject:
        """The verdict on one proposed call, as the protocol shows it."""
        live, state = room.live, room.state
        tracer = await self._runner.tracer(live)
        if state.ending is not None:
            shown = {**found_json(None, tracer.gate), **refused(RUN_STOPPED, [state.message]), "stop": True}
            return {"id": call_id, **shown}
        if (held := room.held.get(call_id)) is not None:
            return {"id": call_id, **self._again(room, held, ToolCall(call_id, tool, tracer.resolved(arguments)))}
        tracer.verdict = None
        turn = await self._runner.judge(live, HostProposed(ToolCall(call_id, tool, arguments)))
        tracer = live.tracer or tracer
        shown = verdict_of(turn, tracer.verdict, tracer.gate)
        if (now_held := room.held.get(call_id)) is not None:
            now_held.shown = shown
        return {"id": call_id, **shown}

    def _again(self, room: Room, held: Held, proposed: ToolCall) -> JsonObject:
        """What is said of a call whose id names a held one: that it is still held, or that the id is taken. It is no turn."""
        state, packet = room.state, held.question.packet
        arrival = self._runner.facts.complete(state, HostProposed(proposed), [])
        call = arrival.call  # type: ignore[union-attr]  # facts make a proposed call of it
        assert packet is not None, "what is held is a call"
        if (packet.call.tool, packet.call.arguments_hash) == (call.tool, call.arguments_hash):
            return held.shown
        verdict = authorize(call, Tally(state, state.at_ms), _FIT)
        code, reason = verdict.code, verdict.reason
        if verdict is ALLOWED:
            code, reason = CALL_ID_HELD, f"id {proposed.id!r} names another call that is held"
        assert room.live.tracer is not None, "a guarded run is traced"
        return {**found_json(None, room.live.tracer.gate), **refused(code, [reason])}

    async def _result(self, name: str, operation: JsonObject) -> None:
        room = self._room(name)
        call_id, tool, moment_ms = id_in(operation, "id"), text_in(operation, "tool"), moment_in(operation)
        try:
            content, data = written(operation["content"])
            text = content if isinstance(content, str) else to_json(content)
        except (ValueError, TypeError, RecursionError) as error:
            message = f"content of run {name!r} is no JSON: {str(error)[:_SHOWN_CHARS_MAX]}; report it as a text"
            raise RequestRejected(GUARD_OP_INVALID, message) from error
        self._charge(name, room, len(data))
        await self._pass_time(room, moment_ms)
        answered = room.answered(call_id, tool)
        is_shared, is_error = len(answered) > 1, operation.get("error") is True
        for command in answered:
            report: Report = ToolSaid(command.id, ToolResult(command.call_id, tool, text), is_shared=is_shared)
            if is_error:
                is_unknown = operation.get("not_done") is not True
                code = ErrorCode.TOOL_EXECUTION_FAILED
                report = ToolBroke(command.id, code, text, is_unknown=is_unknown, is_shared=is_shared)
            with suppress(IllegalArrival):  # It was in doubt and says no more, or the run has ended.
                await self._runner.judge(room.live, report, insists=command.mutating)
        if len(answered) != 1 and room.state.ending is None:
            # Of several calls that could be meant nobody knows which; of none, it is text.
            await self._runner.judge(room.live, TextShown(tool, text, is_shared and not is_error))

    async def _answer(self, name: str, operation: JsonObject) -> JsonObject:
        room = self._room(name)
        await self._pass_time(room, moment_in(operation))
        call_id, by = id_in(operation, "id") or room.only_held(), check_person(text_in(operation, "by"))
        approve, scope = operation["approve"], operation.get("scope", Scope.CALL.value)
        if not isinstance(approve, bool):
            raise unfit("approve", approve, "true or false")
        if not isinstance(scope, str) or scope not in list(Scope):
            raise unfit("scope", scope, f"one of {', '.join(Scope)}")
        self._ground.check_name("by", by)
        held, state = room.held_as(call_id), room.state
        if state.ending is not None:
            return _answered_late(room, call_id, approve=approve)
        if self._ground.check_answer is not None:
            said = {"packet_id": packet_id(state.run_id, held.question.id)}
            kind = Signal.APPROVE if approve else Signal.REJECT
            await self._ground.check_answer(state, UserSignal("", kind, state.run_id, by, payload=said))
        if not approve:
            await self._runner.judge(room.live, ApprovalRefused(held.question.id, by))
            return dict(_DONE)
        return await self._approved(room, call_id, held, PersonApproved(
            held.question.id, by, for_values=scope == Scope.VALUE, is_awaited=True
        ))

    async def _approved(self, room: Room, call_id: str, held: Held, report: PersonApproved) -> JsonObject:
        """Count a yes to a held call: the call may be made, or more people must agree. Raises when it does not count."""
        try:
            turn = await self._runner.judge(room.live, report)
        except IllegalArrival as error:
            code = error.details.get("refusal") or error.code
            raise RequestRejected(str(code), f"call {call_id!r}: {error.message}") from error
        for unmade in [one for one in turn.decisions if isinstance(one, ToolCallRefused)]:
            message = f"call {call_id!r} can no longer be made: {unmade.reason}; the run was stopped"
            raise RequestRejected(unmade.code, message, {"stop": True})
        if call_id not in room.held:
            return dict(_DONE)
        packet = held.question.packet
        needed = 1 if packet is None else packet.approvals_needed
        return {**_DONE, "waiting_for": needed - len(room.state.approvals.get(held.question.id, ()))}

    async def _end(self, name: str, operation: JsonObject) -> JsonObject:
        room = self._room(name)
        if not room.is_broken:
            await self._pass_time(room, moment_in(operation))
        if not room.is_broken and room.state.ending is None:
            await self._runner.judge(room.live, HostFinished())
        del self._rooms[name]
        self._size_bytes -= room.size_bytes
        await self._ground.holdings.let_go(room.live.run_id, room.live.warrant)
        if self._ground.forget is not None:
            await self._ground.forget(room.live.run_id)
        return dict(_DONE)

    async def _pass_time(self, room: Room, moment_ms: int | None) -> None:
        """Come to a moment, unless it is later already; what nobody answered by then is passed on, or a no."""
        room.live.moment_ms = moment_ms
        now_ms = self._runner.clock.now_ms() if moment_ms is None else moment_ms
        for timer_id in room.due(max(now_ms, room.state.at_ms)):
            with suppress(IllegalArrival):  # The question before it has ended the run, and this one with it.
                await self._runner.judge(room.live, TimerFired(timer_id))

    def _check_halts(self, name: str, run_id: str, tenant: str, tool: str = "") -> None:
        """Raise where something that stands in the way of this call is halted."""
        halts = self._ground.halts().halts
        if not halts:
            return
        scopes = [scope_of(), scope_of(tenant=tenant), scope_of(run=run_id), scope_of(run=name), scope_of(tool=tool)]
        if (halt := next((halts[scope] for scope in scopes if scope in halts), None)) is not None:
            raise refusal(halt, f"tool {tool!r} must not be called" if tool else f"run {name!r} was not begun")

    def _room(self, name: str) -> Room:
        room = self._rooms.get(name)
        if room is None:
            raise RequestRejected(GUARD_RUN_UNKNOWN, f"run {name!r} is not open; start it first")
        return room

    def _charge(self, name: str, room: Room, size_bytes: int) -> None:
        self._check_bytes(name, room.size_bytes, size_bytes)
        room.size_bytes += size_bytes
        self._size_bytes += size_bytes

    def _check_bytes(self, name: str, held: int, more: int) -> None:
        if held + more > RUN_BYTES_MAX:
            message = f"run {name!r} holds {held} bytes and {more} more exceed run_bytes_max={RUN_BYTES_MAX}"
            raise RequestRejected(GUARD_BYTES_FULL, f"{message}; start another run")
        if self._size_bytes + more > BYTES_MAX:
            message = f"all runs hold {self._size_bytes} bytes and {more} more exceed bytes_max={BYTES_MAX}"
            raise RequestRejected(GUARD_BYTES_FULL, f"{message}; end runs that are over")


class GuardAtOnce:
    """The same on a ground that never waits, for programs without an event loop. It is used from one thread at a time."""

    line_bytes_max = LINE_BYTES_MAX

    def __init__(self, ground: Ground) -> None:
        self.guard = Guard(ground)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are open, as their hosts name them."""
        return self.guard.runs

    def answer(self, operation: JsonObject) -> JsonObject | None:
        """The answer to one operation of the protocol; None where it has none."""
        return at_once(self.guard.answer(operation))

    def line(self, data: bytes) -> JsonObject | None:
        """The answer to one line of the protocol; None where it has none."""
        return at_once(self.guard.line(data))

    def too_long(self, beginning: bytes) -> JsonObject:
        """The answer to a line that is longer than anybody reads."""
        return at_once(self.guard.too_long(beginning))


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives that waits for nothing; one that waits all the same is a bug."""
    try:
        work.send(None)
    except StopIteration as done:
        given: T = done.value
        return given
    work.close()
    raise InvariantBroken("GUARD_WAITED", "a ground in memory made the guard wait; use the guard in an event loop")


def _answered_late(room: Room, call_id: str, *, approve: bool) -> JsonObject:
    """What is said to an answer that comes after the run was stopped."""
    if approve:
        message = f"call {call_id!r} cannot be approved, since the run was stopped: {room.state.message}; end the run"
        raise RequestRejected(RUN_STOPPED, message, {"stop": True})
    del room.held[call_id]
    return dict(_DONE)


def _wrong(error: RemitError, operation: Any) -> JsonObject:
    """The answer to what is wrong; it says of which operation, since some others have no answer."""
    answer: JsonObject = {"ok": False, "code": str(error.code), "message": error.message[:_MESSAGE_CHARS_MAX]}
    if error.details.get("stop") is True:
        answer["stop"] = True
    if isinstance(operation, dict):
        for key in ("op", "run", "id"):
            value = operation.get(key)
            if isinstance(value, (str, int)) and value != "" and len(str(value)) <= ID_CHARS_MAX:
                answer[key] = value
    return answer
