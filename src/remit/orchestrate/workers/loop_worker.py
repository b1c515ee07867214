"""A worker that drives runs: those that are announced as due, and those whose driver is gone. Any of them takes any run.

Rule 1: an announcement is let go when the run is held here; from then on its lease says who drives it.
Rule 2: a run whose holder is gone, or whose announcement was lost, is taken up by the worker that sees it first; the lease
        decides.
Rule 3: what came late of a call is told to its run by a worker that can hold it; what its holder has to be told is handed on.
        Of a call that changes something it counts from the worker that claimed it, and nothing but outcomes comes late.
Rule 4: a worker that is told to leave announces its runs, puts them down as they are written, and stops nothing that workers
        perform for them: the next driver waits for that.
Rule 5: no message ends a worker. One that breaks it is kept as a dead letter; only a key that was taken back ends it.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from remit.core.failure import ArrivalFault, IllegalArrival, InvariantBroken, RemitError
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.commands import ReconcileTool
from remit.core.journal.queued import OUTCOME_UNCLAIMED, Lane, QueuedWord
from remit.core.journal.storage import RunHeld
from remit.observe.logs import NO_RUN, run_fields
from remit.orchestrate.errand_ports import Queue
from remit.orchestrate.executors.carrier import MODEL, TOOL, Carrier
from remit.orchestrate.executors.errands import decode_report
from remit.orchestrate.executors.reports import ModelSaid, Report, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.loop.hub import Hub
from remit.orchestrate.workers.errand_worker import WORKER_BROKE, all_of

# How long a run that another holds is left to it before it is asked for again.
HELD_S = 0.1
# How often, at most, what came late is offered to a run that another process drives.
LATE_TRIES_MAX = 300
# How long a run that could not be taken up here is left alone.
REFUSED_S = 60.0
# How often it is offered to workers again, at most: for about a day. Then it is a dead letter.
REFUSED_TRIES_MAX = 2000
PAUSE_S = 1.0

LATE_NOT_PERMITTED = "LATE_NOT_PERMITTED"
# What may come late: what was asked of a model, of a tool, and of a tool about a call.
_OUTCOMES = (ModelSaid, ModelFailed, ToolSaid, ToolBroke, ToolAccounted)

_log = logging.getLogger(__name__)


class LoopWorker:
    """Drives runs with the hub of a system, at most so many at a time."""

    def __init__(self, hub: Hub, carrier: Carrier, queue: Queue, *, concurrency: int, look_s: float) -> None:
        self._hub, self._carrier, self._queue = hub, carrier, queue
        self._slots = asyncio.Semaphore(concurrency)
        # How often it is looked for runs whose driver is gone.
        self._look_s = look_s
        self._leaving = asyncio.Event()
        self._refused: dict[str, float] = {}
        self._following: set[asyncio.Task[None]] = set()
        self.taken = 0

    @property
    def driven(self) -> int:
        """How many runs are driven here."""
        return len(self._hub.drivers)

    async def serve(self) -> None:
        """Drive runs until `leave` is called."""
        await self._queue.prepare_words()
        steps = (self._take_due, self._tell_late, self._look)
        await all_of(self._leaving, [self._repeat(step) for step in steps])

    async def leave(self) -> None:
        """Announce the runs that are driven here, and put them down."""
        self._leaving.set()
        self._carrier.is_leaving = True
        await self._hub.close(self._announce)

    async def _announce(self, run_ids: Sequence[str]) -> None:
        for number, run_id in enumerate(run_ids):
            try:
                await self._queue.due(run_id)
            except RemitError as error:
                left = ", ".join(run_ids[number:])
                _log.warning(
                    "runs are left that no worker is told of (%s); `remit resume` drives them: %s",
                    left,
                    error,
                    extra=NO_RUN,
                )
                return

    async def _repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        while not self._leaving.is_set():
            # A worker whose word counts nowhere ends, and says so.
            self._queue.expect_admitted()
            try:
                await step()
            except RemitError as error:
                _log.warning("runs cannot be taken just now: %s", error, extra=NO_RUN)
                await self._pause(PAUSE_S)
            except Exception:  # noqa: BLE001  # no message may end a worker
                _log.exception("%s: a step of this worker broke", WORKER_BROKE, extra=NO_RUN)
                await self._pause(PAUSE_S)

    async def _pause(self, wait_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._leaving.wait()

    async def _take_due(self) -> None:
        await self._slots.acquire()
        is_kept = False
        try:
            word = await self._queue.next_due()
            if word is None:
                return
            if self._leaving.is_set():
                await self._queue.hand_back(word.receipt)
                return
            try:
                is_kept = await self._take(word.run_id)
            except RunHeld:
                # The process that begins it, or leaves it, has yet to let it go; a run that is driven already goes on there.
                tries = LATE_TRIES_MAX // 10
                await (
                    self._queue.hand_back(word.receipt, HELD_S)
                    if word.deliveries < tries
                    else self._queue.settle(word.receipt)
                )
                return
            except RemitError as error:
                # Another worker may have its tools, or believe who began it; this one may, once it was told.
                if word.deliveries < REFUSED_TRIES_MAX:
                    await self._queue.hand_back(word.receipt, min(HELD_S * word.deliveries, REFUSED_S))
                    return
                self._queue.put_word_aside(word, error.code, error.message)
            except Exception:  # noqa: BLE001  # no message may end a worker
                self._broke(word, "a run that is due cannot be driven")
            await self._queue.settle(word.receipt)
        finally:
            if not is_kept:
                self._slots.release()

    def _broke(self, word: QueuedWord, what: str) -> None:
        _log.exception("%s: %s", WORKER_BROKE, what, extra=run_fields(word.run_id))
        self._queue.put_word_aside(word, WORKER_BROKE, what)

    async def _take(self, run_id: str) -> bool:
        """Drive a run, and say whether its place is taken until it rests; raises RunHeld where another has it."""
        if run_id in self._hub.drivers:
            return False
        try:
            driver = await self._hub.take_up(run_id)
        except RunHeld:
            raise
        except RemitError as error:
            now_s = asyncio.get_running_loop().time()
            if self._refused.get(run_id, 0.0) <= now_s:
                self._refused[run_id] = now_s + REFUSED_S
                _log.warning("a run cannot be driven here: %s", error, extra=run_fields(run_id))
            raise
        except Exception:
            self._refused[run_id] = asyncio.get_running_loop().time() + REFUSED_S
            raise
        self.taken += 1
        assert driver.task is not None, "a worker that takes a run up drives it"
        following = asyncio.create_task(self._followed(driver.task))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        return True

    async def _followed(self, driving: "asyncio.Task[None]") -> None:
        await asyncio.wait([driving])
        self._slots.release()

    async def _look(self) -> None:
        """Take up runs whose driver is gone, or never came."""
        await self._pause(self._look_s * random.uniform(0.5, 1.0))  # noqa: S311  # so that not all look at once
        now_s = asyncio.get_running_loop().time()
        for run_id in await self._queue.orphans():
            if self._leaving.is_set() or self._refused.get(run_id, 0.0) > now_s or run_id in self._hub.drivers:
                continue
            await self._slots.acquire()
            is_kept = False
            try:
                with suppress(RemitError):  # Another was faster, or this worker cannot drive it and has said so.
                    is_kept = await self._take(run_id)
            except Exception:  # noqa: BLE001  # no run may keep a worker from the others
                _log.exception(
                    "%s: a run whose driver is gone cannot be driven", WORKER_BROKE, extra=run_fields(run_id)
                )
            finally:
                if not is_kept:
                    self._slots.release()

    async def _tell_late(self) -> None:
        word = await self._queue.next_late()
        if word is None:
            return
        try:
            await self._told(word)
        except RunHeld:
            if word.deliveries < LATE_TRIES_MAX:
                await self._queue.hand_back(word.receipt, HELD_S)
                return
            _log.warning("a run did not hear a late outcome: another process drives it", extra=run_fields(word.run_id))
        except (IllegalArrival, InvariantBroken) as error:
            _log.info("what came late is of no interest any more: %s", error, extra=run_fields(word.run_id))
        except RemitError as error:
            _log.warning("a run did not hear a late outcome: %s", error, extra=run_fields(word.run_id))
        except Exception:  # noqa: BLE001  # no message may end a worker
            self._broke(word, "what came late cannot be told to its run")
        await self._queue.settle(word.receipt, word.place)

    async def _told(self, word: QueuedWord) -> None:
        report = decode_report(word.data)
        code, why = await self._objection(word, report)
        if code:
            _log.warning("%s: %s", code, why, extra=run_fields(word.run_id))
            self._queue.put_word_aside(word, code, why)
        else:
            await self._hub.hear(word.run_id, report)

    async def _objection(self, word: QueuedWord, report: Report) -> tuple[str, str]:
        """Why what came late counts for nothing, as a code and in words; both are empty where it counts."""
        if not isinstance(report, _OUTCOMES) or report.command_id != word.command_id:
            return LATE_NOT_PERMITTED, f"a {type(report).__name__} is no outcome of command {word.command_id}"
        kind = MODEL if isinstance(report, ModelSaid | ModelFailed) else TOOL
        if word.performs is not None and kind not in word.performs:
            return LATE_NOT_PERMITTED, f"what came late is told by one who performs no errands of a {kind}"
        driver = self._hub.drivers.get(word.run_id)
        state = (driver.live if driver is not None else await self._hub.runner.load(word.run_id)).state
        if state.manifest is None:  # It was deleted since.
            raise IllegalArrival(ArrivalFault.UNKNOWN_COMMAND, f"run {word.run_id} is not there")
        if kind == MODEL:
            return "", ""
        call, question = state.calls.made.get(word.command_id), state.commands.open.get(word.command_id)
        asked = question.tool if isinstance(question, ReconcileTool) else ""
        tool = state.derived.tools.get(asked if call is None else call.tool)
        if tool is None:  # It may be a question that was answered before.
            raise IllegalArrival(ArrivalFault.UNKNOWN_COMMAND, f"{word.command_id} is neither a call nor asked")
        if not self._queue.may_perform(word, Lane(TOOL, tool.name, tool.version)):
            return LATE_NOT_PERMITTED, f"what came late is told by one who performs no errands of {tool.name}"
        # A claim of another attempt is one of a call that may be made again, or of a question.
        if word.claimed == 1 or (word.claimed and (call is None or tool.idempotent)):
            return "", ""
        if call is not None and not call.mutating:
            return "", ""
        return OUTCOME_UNCLAIMED, f"what came late of call {word.command_id} is told by a key that has not claimed it"
