"""Guarding: the authority layer alone, over the calls of other people's agents. One operation in, one answer out.

Rule 1: an operation that cannot be used is answered with a code and changes nothing; the next one is read as ever.
Rule 2: whatever is not `"decision": "allow"` means that the call must not be made.
Rule 3: the same operations at the same moments give the same answers: there is no chance here, and a host may say what
        time it is.
Rule 4: a result that cannot be taken in leaves its run without unattended effects, since nobody knows what was read.
Rule 5: runs, calls and bytes have limits; what a run holds is given back when it ends.
Rule 6: what is halted on the store begins and calls nothing: the operation is answered with HALTED and changes nothing,
        so that it can be asked again once the halt is lifted.
Rule 7: a run that met a bug of the house is over: all it gets is the code of it.
"""

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from remit.core.codec import to_json
from remit.core.envelope import ID_CHARS_MAX
from remit.core.failure import RemitError, RequestRejected
from remit.core.halt import NOTHING_HALTED, Standing
from remit.core.person import check_person
from remit.core.record import JsonObject
from remit.orchestrate.facts import Facts
from remit.orchestrate.guard_boundary import terms_of
from remit.orchestrate.guard_lines import GUARD_LINE_TOO_LONG, LINE_BYTES_MAX, RESULT, read_line, told, written
from remit.orchestrate.guard_operations import (
    GUARD_OP_INVALID,
    addressed,
    asker_in,
    id_in,
    moment_in,
    plan_in,
    prompt_in,
    read_in,
    size_of,
    text_in,
    unfit,
)
from remit.orchestrate.guard_run import GuardedRun
from remit.orchestrate.guard_tools import Toolsets
from remit.orchestrate.halts import refusal, scope_of
from remit.provenance.calls import Scope

GUARD_RUN_UNKNOWN = "GUARD_RUN_UNKNOWN"
GUARD_RUN_OPEN = "GUARD_RUN_OPEN"
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

_SHOWN_CHARS_MAX = 80
_MESSAGE_CHARS_MAX = 500
_DONE: Mapping[str, Any] = MappingProxyType({"ok": True})


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class _Room:
    """One open run and the bytes that it holds."""

    __slots__ = ("calls", "is_broken", "run", "size_bytes", "tenant")

    def __init__(self, run: GuardedRun, size_bytes: int, tenant: str) -> None:
        self.run = run
        self.tenant = tenant
        self.size_bytes = size_bytes
        self.calls = 0
        self.is_broken = False


class Guard:
    """Judges the calls of many runs at once. It is used from one thread at a time."""

    line_bytes_max = LINE_BYTES_MAX

    def __init__(
        self, now_ms: Callable[[], int] = _wall_clock_ms, halts: Callable[[], Standing] = lambda: NOTHING_HALTED
    ) -> None:
        """Open a guard; the clock counts where an operation does not say what time it is. `halts` says what is halted."""
        self._now_ms = now_ms
        self._halts = halts
        self._rooms: dict[str, _Room] = {}
        self._facts = Facts()
        self._toolsets = Toolsets()
        self._size_bytes = 0
        self._operations: Mapping[str, Callable[[str, JsonObject], JsonObject | None]] = {
            "start": self._start,
            "call": self._call,
            RESULT: self._result,
            "answer": self._answer,
            "end": self._end,
        }

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are open."""
        return tuple(self._rooms)

    def answer(self, operation: JsonObject) -> JsonObject | None:
        """The answer to one operation of the protocol; None where it has none."""
        try:
            op, run_id = addressed(operation)
            return self._performed(op, run_id, operation)
        except RemitError as error:
            self._lose(operation)
            return _wrong(error, operation)

    def line(self, data: bytes) -> JsonObject | None:
        """The answer to one line of the protocol; None where it has none."""
        try:
            operation = read_line(data)
        except RequestRejected as error:
            op, run_id = told(data)
            self._lose(operation := {"op": op, "run": run_id})
            return _wrong(error, operation)
        return self.answer(operation)

    def too_long(self, beginning: bytes) -> JsonObject:
        """The answer to a line that is longer than anybody reads. It may have been a result, of whichever run."""
        op, run_id = told(beginning)
        if op in ("", RESULT):
            for name in list(self._rooms) if not run_id else [run_id]:
                self._lose({"op": RESULT, "run": name})
        message = f"the line has more than line_bytes_max={LINE_BYTES_MAX}; shorten what it carries"
        return _wrong(RequestRejected(GUARD_LINE_TOO_LONG, message), {"op": op, "run": run_id})

    def _lose(self, operation: Any) -> None:
        """Note that what was not taken in may have been a result of an open run."""
        if not isinstance(operation, dict) or operation.get("op") != RESULT:
            return
        run_id = operation.get("run")
        if isinstance(run_id, (str, int)) and (room := self._rooms.get(str(run_id))) is not None:
            room.run.lose()

    def _performed(self, op: str, run_id: str, operation: JsonObject) -> JsonObject | None:
        room = self._rooms.get(run_id)
        if room is not None and room.is_broken and op != "end":
            raise RequestRejected(GUARD_RUN_BROKEN, f"run {run_id!r} met a bug and is over; end it and start another")
        try:
            return self._operations[op](run_id, operation)
        except RemitError:
            raise
        except Exception as error:
            # A bug stops its run and no other: what it left half done must not be judged by.
            if (room := self._rooms.get(run_id)) is not None:
                room.is_broken = True
            message = f"{op} of run {run_id!r} met a bug, {type(error).__name__}; end the run and report it"
            raise RequestRejected(GUARD_RUN_BROKEN, message) from error

    def _start(self, run_id: str, operation: JsonObject) -> JsonObject:
        if run_id in self._rooms:
            raise RequestRejected(GUARD_RUN_OPEN, f"run {run_id!r} is open already; end it, or use another id")
        if len(self._rooms) >= RUNS_MAX:
            message = f"{len(self._rooms)} runs are open, runs_max={RUNS_MAX}; end those that are over"
            raise RequestRejected(GUARD_RUNS_FULL, message)
        prompt, plan = prompt_in(operation["prompt"]), plan_in(operation.get("plan"))
        tools = self._toolsets.of(operation["tools"])
        size_bytes = tools.size_bytes + len(to_json(prompt))
        self._check_bytes(run_id, 0, size_bytes)
        terms = terms_of(operation.get("boundary"))
        at_ms, asker, read = self._moment(operation), asker_in(operation), read_in(operation.get("read"))
        self._check_halts(run_id, asker.tenant)
        run = GuardedRun(
            run_id, prompt, tools, terms, facts=self._facts, asker=asker, plan=plan, read=read, at_ms=at_ms
        )
        self._rooms[run_id] = _Room(run, size_bytes, asker.tenant)
        self._size_bytes += size_bytes
        return dict(_DONE)

    def _call(self, run_id: str, operation: JsonObject) -> JsonObject:
        room = self._room(run_id)
        call_id, tool, arguments = id_in(operation, "id"), text_in(operation, "tool"), operation["args"]
        if room.calls >= CALLS_MAX or room.run.open_count >= OPEN_MAX:
            message = (
                f"run {run_id!r} has {room.calls} calls, calls_max={CALLS_MAX}, and {room.run.open_count} without "
                f"an outcome, open_max={OPEN_MAX}; report results and answers, or start another run"
            )
            raise RequestRejected(GUARD_CALLS_FULL, message)
        self._check_halts(run_id, room.tenant, tool)
        at_ms = self._moment(operation)
        self._charge(run_id, room, size_of(arguments) + _CALL_BYTES)
        room.calls += 1
        room.run.pass_time(at_ms)
        return room.run.judge(call_id, tool, arguments)

    def _result(self, run_id: str, operation: JsonObject) -> None:
        room = self._room(run_id)
        call_id, tool, at_ms = id_in(operation, "id"), text_in(operation, "tool"), self._moment(operation)
        try:
            content, data = written(operation["content"])
            text = content if isinstance(content, str) else to_json(content)
        except (ValueError, TypeError, RecursionError) as error:
            message = f"content of run {run_id!r} is no JSON: {str(error)[:_SHOWN_CHARS_MAX]}; report it as a text"
            raise RequestRejected(GUARD_OP_INVALID, message) from error
        self._charge(run_id, room, len(data))
        room.run.pass_time(at_ms)
        evidence = sha256(data).digest()
        if operation.get("error") is True:
            room.run.observe_error(call_id, tool, text, evidence, not_done=operation.get("not_done") is True)
        else:
            room.run.observe(call_id, tool, text, evidence)

    def _answer(self, run_id: str, operation: JsonObject) -> JsonObject:
        run = self._room(run_id).run
        run.pass_time(self._moment(operation))
        call_id, by = id_in(operation, "id") or run.held.only(), check_person(text_in(operation, "by"))
        approve, scope = operation["approve"], operation.get("scope", Scope.CALL.value)
        if not isinstance(approve, bool):
            raise unfit("approve", approve, "true or false")
        if not isinstance(scope, str) or scope not in list(Scope):
            raise unfit("scope", scope, f"one of {', '.join(Scope)}")
        if not approve:
            run.reject(call_id, by)
        elif left := run.approve(call_id, by, Scope(scope)):
            return {**_DONE, "waiting_for": left}
        return dict(_DONE)

    def _end(self, run_id: str, operation: JsonObject) -> JsonObject:
        self._size_bytes -= self._room(run_id).size_bytes
        del self._rooms[run_id]
        return dict(_DONE)

    def _moment(self, operation: JsonObject) -> int:
        """What time it is: what the operation says, or the clock."""
        said = moment_in(operation)
        return self._now_ms() if said is None else said

    def _check_halts(self, run_id: str, tenant: str, tool: str = "") -> None:
        """Raise where something that stands in the way of this call is halted."""
        halts = self._halts().halts
        if not halts:
            return
        scopes = [scope_of(), scope_of(tenant=tenant), scope_of(run=run_id), scope_of(tool=tool)]
        if (halt := next((halts[scope] for scope in scopes if scope in halts), None)) is not None:
            raise refusal(halt, f"tool {tool!r} must not be called" if tool else f"run {run_id!r} was not begun")

    def _room(self, run_id: str) -> _Room:
        room = self._rooms.get(run_id)
        if room is None:
            raise RequestRejected(GUARD_RUN_UNKNOWN, f"run {run_id!r} is not open; start it first")
        return room

    def _charge(self, run_id: str, room: _Room, size_bytes: int) -> None:
        self._check_bytes(run_id, room.size_bytes, size_bytes)
        room.size_bytes += size_bytes
        self._size_bytes += size_bytes

    def _check_bytes(self, run_id: str, held: int, more: int) -> None:
        if held + more > RUN_BYTES_MAX:
            message = f"run {run_id!r} holds {held} bytes and {more} more exceed run_bytes_max={RUN_BYTES_MAX}"
            raise RequestRejected(GUARD_BYTES_FULL, f"{message}; start another run")
        if self._size_bytes + more > BYTES_MAX:
            message = f"all runs hold {self._size_bytes} bytes and {more} more exceed bytes_max={BYTES_MAX}"
            raise RequestRejected(GUARD_BYTES_FULL, f"{message}; end runs that are over")


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
