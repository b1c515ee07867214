"""A worker that performs errands: what models or tools of some lanes are to do, whichever process drives the run.

Rule 1: an errand is let go when what came of it is stored, and not before; while it is performed, that is said again and again.
Rule 2: one that comes again was given to a worker that is gone. It is performed again, unless it has begun to change something:
        then it is reported as lost, and its run is in doubt.
Rule 3: what decides whether something is changed is claimed before it is performed, and what it came to counts from the key that
        claimed it. Where no driver waits for that any more, it is told late.
Rule 4: one that too many workers were given, that breaks its performer or cannot be read is kept as a dead letter with a code.
Rule 5: a worker that is told to leave takes nothing more, finishes what it has for a while, and hands the rest back.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from remit.core.failure import InvariantBroken, RemitError
from remit.core.journal.commands import CallTool
from remit.core.journal.queued import ERRAND_UNREADABLE, Came, Claimed, ClaimWord, ErrandName, Lane, QueuedErrand
from remit.core.journal.storage import StoreUnusable
from remit.core.record import replace
from remit.observe.logs import NO_RUN, run_fields
from remit.orchestrate.errand_ports import Queue, SharedClaims
from remit.orchestrate.exchange.conversation import Fetch
from remit.orchestrate.executors.carrier import MODEL, TOOL
from remit.orchestrate.executors.errands import (
    Errand,
    InquiryErrand,
    ModelErrand,
    ToolErrand,
    claim_of,
    decode_errand,
    encode_report,
    unpacked,
)
from remit.orchestrate.executors.reports import Report, unperformed

ERRAND_POISON = "ERRAND_POISON"
ERRAND_BROKEN = "ERRAND_BROKEN"
ERRAND_MISADDRESSED = "ERRAND_MISADDRESSED"
WORKER_BROKE = "WORKER_BROKE"

# An errand over which so many workers fell silent is what silences them.
DELIVERIES_MAX = 3
# How long a worker that leaves finishes what it has.
LEAVE_S_MAX = 30.0
# How often it says that it is at work; a quarter of the time after which an errand goes to another.
KEEP_S = 1.25

# How long the other parts of a worker that is shut out may take to see that.
LEFT_S_MAX = 5.0

_log = logging.getLogger(__name__)

# Performs an errand.
Perform = Callable[[Errand], Awaitable[Report]]


@dataclass(slots=True)
class Tasks:
    """What a worker has under way, and has done, for those who look at it."""

    # By their receipts: one errand may be here twice, where this process fell silent over it.
    under_way: dict[str, tuple[ErrandName, "asyncio.Task[None]"]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)


class Refused(Exception):
    """An errand is not performed, with a code."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class ErrandWorker:
    """Performs the errands of some lanes, so many of each at a time."""

    def __init__(self, queue: Queue, claims: SharedClaims, lanes: Sequence[Lane], *, concurrency: int = 1) -> None:
        self._queue = queue
        self._claims = claims
        self.lanes = tuple(lanes)
        self._concurrency = concurrency
        self.tasks = Tasks()
        self._leaving = asyncio.Event()
        self._answers: set[asyncio.Task[None]] = set()
        # What was read of the errands that are under way, by their receipts.
        self._calls: dict[str, _Call] = {}

    async def claim(self, run_id: str, command_id: str) -> bool:
        """Claim a call that is performed here, just before it begins; False where it may not."""
        call = _CALL.get()
        assert (call.name.run_id, call.name.command_id) == (run_id, command_id), "a performer claims what it was given"
        found = await self._claims.claim(run_id, command_id, by=call.by, attempt=call.claim)
        call.is_taken = found is Claimed.TAKEN
        call.is_claimed = found is Claimed.GRANTED
        return call.is_claimed

    async def is_wanted(self, run_id: str, command_id: str) -> bool:
        """Whether a call that is performed here and was claimed may still begin: no other worker has said that it is lost."""
        call = _CALL.get()
        assert (call.name.run_id, call.name.command_id) == (run_id, command_id), "a performer asks of what it was given"
        return not await self._queue.is_reported(call.name, call.lane, call.claim)

    def late(self, run_id: str, report: Report) -> None:
        """Keep what came of a call for which no driver waits any more, for its run."""
        call = _CALL.get(None)
        name = ErrandName(run_id, getattr(report, "command_id", ""), 1 if call is None else max(call.claim, 1))
        self._begin(self._queue.late(name, encode_report(report)))

    async def serve(self, perform: Perform, fetch: Fetch, is_repeatable: Callable[[Errand], bool]) -> None:
        """Perform errands until `leave` is called and everything is finished or handed back."""
        self._perform, self._fetch, self._is_repeatable = perform, fetch, is_repeatable
        await self._queue.prepare(*self.lanes)
        end = await self._queue.on_withdrawn(self._stop)
        try:
            await all_of(self._leaving, [self._work(lane) for lane in self.lanes for _ in range(self._concurrency)])
            if self._answers:
                await asyncio.wait(list(self._answers))
        finally:
            for _, task in self.tasks.under_way.values():
                task.cancel()
            await end()

    async def leave(self) -> None:
        """Take nothing more; what is not finished in time is handed back."""
        self._leaving.set()
        if tasks := [task for _, task in self.tasks.under_way.values()]:
            _, left = await asyncio.wait(tasks, timeout=LEAVE_S_MAX)
            for task in left:
                task.cancel()

    async def _work(self, lane: Lane) -> None:
        while not self._leaving.is_set():
            # A worker whose word counts nowhere ends, and says so; what it has under way, no process would believe.
            self._queue.expect_admitted()
            try:
                queued = await self._queue.next_errand(lane)
                if queued is None:
                    continue
                if self._leaving.is_set():
                    await self._queue.hand_back(queued.receipt)
                    return
                await self._take(lane, queued)
            except RemitError as error:
                _log.warning("errands of %s %s cannot be taken just now: %s", lane.kind, lane.name, error, extra=NO_RUN)
                await asyncio.sleep(KEEP_S)
            except Exception:  # noqa: BLE001  # no message may end a worker
                _log.exception("%s: a step of this worker broke", WORKER_BROKE, extra=NO_RUN)
                await asyncio.sleep(KEEP_S)

    async def _take(self, lane: Lane, queued: QueuedErrand) -> None:
        task = asyncio.create_task(self._performed(lane, queued))
        self.tasks.under_way[queued.receipt] = (queued.name, task)
        try:
            while True:
                ended, _ = await asyncio.wait([task], timeout=KEEP_S)
                if ended:
                    break
                await self._queue.keep(queued.receipt)
        finally:
            del self.tasks.under_way[queued.receipt]
            call = self._calls.pop(queued.receipt, None)
        if task.cancelled():
            # Taken back, and told so already; or this process leaves, and another is given it.
            is_withdrawn = call is not None and await self._queue.is_reported(call.name, call.lane, call.claim)
            await (self._queue.settle(queued.receipt) if is_withdrawn else self._queue.hand_back(queued.receipt))
            self.tasks.done["stopped"] += 1
        else:
            task.result()
            await self._queue.settle(queued.receipt)

    async def _performed(self, lane: Lane, queued: QueuedErrand) -> None:
        """Perform an errand and store what came of it."""
        name = queued.name
        try:
            errand = self._read(lane, queued)
            claim = claim_of(errand.command, name.attempt, is_repeatable=self._is_repeatable(errand))
            call = _Call(name, lane, claim)
            self._calls[queued.receipt] = call
            _CALL.set(call)
            if queued.deliveries > 1 and await self._is_over(errand, call):
                return
            errand = await unpacked(errand, self._fetch)
            if isinstance(errand, InquiryErrand) and not await self.claim(name.run_id, name.command_id):
                call.is_taken = True
                report = unperformed(errand.command)
            else:
                report = await self._perform(errand)
        except Refused as refused:
            await self._bury(lane, queued, refused.code, str(refused))
        except StoreUnusable:
            raise  # It is given to another, or here again.
        except Exception as error:  # noqa: BLE001  # no errand may be lost with its performer
            _log.exception("an errand broke its performer", extra=run_fields(name.run_id))
            await self._bury(lane, queued, ERRAND_BROKEN, f"its performer raised {type(error).__name__}")
        else:
            await self._store(queued, call, report)

    async def _store(self, queued: QueuedErrand, call: "_Call", report: Report) -> None:
        came = Came.LOST if call.is_taken else Came.DONE
        data = encode_report(report) if came is Came.DONE else b""
        is_first = await self._queue.report(call.name, came, data, lane=call.lane, claim=call.claim)
        # What needs a claim and has none has not begun, which its driver knows from the claims.
        if came is Came.DONE and (call.is_claimed or not call.claim):
            # No driver waits for what was sent again, what comes second, and what was taken back or is of a run that has ended.
            is_unheard = queued.is_again or not is_first
            if is_unheard or (call.is_claimed and not await self._queue.is_awaited(call.name)):
                await self._queue.late(replace(call.name, attempt=call.claim or call.name.attempt), data)
        self.tasks.done[came.value] += 1

    def _read(self, lane: Lane, queued: QueuedErrand) -> Errand:
        name = queued.name
        if not name.attempt:
            raise Refused(ERRAND_MISADDRESSED, "its subject and its name disagree, or none signed it who may")
        if queued.deliveries > DELIVERIES_MAX:
            raise Refused(ERRAND_POISON, f"{DELIVERIES_MAX} workers were given it, and fell silent over it")
        try:
            errand = decode_errand(queued.data)
        except InvariantBroken as error:
            raise Refused(ERRAND_UNREADABLE, error.message) from None
        is_named = (errand.sender.run_id, errand.command.id) == (name.run_id, name.command_id)
        if not is_named or not _belongs(errand, lane):
            raise Refused(ERRAND_MISADDRESSED, "it is an errand of another run, command, tool or model")
        return errand

    async def _is_over(self, errand: Errand, call: "_Call") -> bool:
        """Report an errand as lost that must not be performed again; True for it, and for one that is reported already."""
        name = call.name
        if await self._queue.is_reported(name, call.lane, call.claim):
            return True
        if not isinstance(errand.command, CallTool) or not errand.command.mutating or self._is_repeatable(errand):
            return False
        last = await self._claims.last(name.run_id, name.command_id)
        if last is None or last.word is not ClaimWord.CLAIMED:
            return False
        await self._queue.report(name, Came.LOST, lane=call.lane, claim=call.claim)
        self.tasks.done[Came.LOST.value] += 1
        return True

    async def _bury(self, lane: Lane, queued: QueuedErrand, code: str, why: str) -> None:
        await self._queue.letters.keep(queued.name, lane, queued.data, code, why)
        if queued.name.attempt:
            call = _CALL.get(None)
            # One that was not read may be a call that is claimed.
            claim = int(lane.kind == TOOL) if call is None else call.claim
            await self._queue.report(queued.name, Came.DEAD, lane=lane, claim=claim)
        self.tasks.done[Came.DEAD.value] += 1

    def _stop(self, name: ErrandName, answer_to: str) -> None:
        """Stop an errand that was taken back, if it is performed here, and say when it has stopped."""
        if tasks := [task for one, task in self.tasks.under_way.values() if one == name]:
            for task in tasks:
                task.cancel()
            self._begin(self._stopped(tasks, answer_to))

    async def _stopped(self, tasks: "Sequence[asyncio.Task[None]]", answer_to: str) -> None:
        await self._queue.answer(answer_to)
        await asyncio.wait(tasks)
        await self._queue.answer(answer_to)

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)


async def all_of(leaving: asyncio.Event, parts: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Do all parts of a worker's work; where one of them ends with an error, the others leave before that is told."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    except Exception:
        leaving.set()
        await asyncio.wait(tasks, timeout=LEFT_S_MAX)
        raise


@dataclass(slots=True)
class _Call:
    name: ErrandName
    lane: Lane
    # The attempt under which it is claimed; 0 where it needs no claim.
    claim: int
    by: str = field(default_factory=lambda: secrets.token_hex(8))
    is_claimed: bool = False
    is_taken: bool = False


# The call that a task performs: its name, for whom it is claimed, and whether another had begun it.
_CALL: ContextVar[_Call] = ContextVar("call")


def _belongs(errand: Errand, lane: Lane) -> bool:
    """Whether an errand is for the performers of a lane."""
    match errand:
        case ModelErrand():
            return lane.kind == MODEL and errand.command.model == lane.name
        case ToolErrand():
            return lane.kind == TOOL and (errand.command.tool, errand.command.version) == (lane.name, lane.version)
        case InquiryErrand():
            return lane.kind == TOOL and errand.command.tool == lane.name
        case _:
            return False
