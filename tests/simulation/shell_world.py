"""ShellWorld: whole systems, several of them on one store, in a world of chance; one seed reproduces everything.

Rule 1: the systems are those that ship; only the loop, the store, the clock, the model, the tools and people are played.
Rule 2: everything random comes from the seed, in one fixed order.
Rule 3: a storm comes first: crashes at any await, callers that stop waiting, processes that leave, a slow store, a clock that
        jumps. Then it is calm, a last process takes up what is open, and everything must come to rest.
"""

import asyncio
import heapq
import inspect
import logging
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from random import Random
from typing import Any

from remit.core.failure import InvariantBroken, RemitError
from remit.core.journal.commands import AskPurpose, CallTool, StartChild
from remit.core.journal.storage import SessionConflict
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Budget
from remit.core.limits.quota import ANYONE, Period, Quota
from remit.core.record import Record, Text
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import user_message
from remit.core.run.signals import Signal, SignalOutcome, UserSignal, packet_id
from remit.kernel.state import RunState, pinned, questions
from remit.orchestrate.facade import System
from remit.orchestrate.loop import in_process
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import Kit
from remit.testing.hands import PerformedCall
from remit.testing.runs import LawBroken, SimulatedRun
from remit.testing.trouble import CALM, Faults
from tests.simulation.seeded_loop import WORLD, SeededLoop, Stalled, Turns
from tests.simulation.shared_store import Ground, SharedStore, TornBell, at_once
from tests.simulation.shell_stage import IDEMPOTENT, TERMS, Stage
from tests.simulation.weather import EARLIER_WEATHERS, WEATHERS, Weather, weather_of

BEGINS_AT_MS = 1_000_000
# A world that is still busy after so many callbacks never comes to rest.
STEPS_MAX = 400_000
# Longer than any sender may be kept waiting, slow stores included; shorter than the longest call of a tool.
SENDER_WAIT_S_MAX = 60.0
# Longer than anything in a world takes.
REST_WAIT_S_MAX = 20_000.0
CLOCK_JUMP_MS_MAX = 60_000
# How many callers are cut off by the number of callbacks, and after how many callbacks at most.
_CUT, CUT_AFTER_MAX = 0.3, 1_000
# Half of the runs belong to a session.
_SESSIONS = ("", "", "s1", "s2")


class Halted(Record):
    """A halt of everything: when its sender was told so, and the number of its entry in the journal of halts."""

    from_s: float
    number: int


class Told(Record):
    """What became of a signal, as its sender knows: `code` is why it was not heard; `is_known` false where it did not wait."""

    signal: UserSignal
    is_known: bool = False
    code: str = ""
    fork_id: str = ""
    took_s: float = 0.0


class Process:
    """One process: a system on the shared store."""

    def __init__(self, name: str, system: System, store: SharedStore) -> None:
        self.name = name
        self.system = system
        self.store = store
        self.is_leaving = False
        self.callers: dict[asyncio.Task[Any], None] = {}


class Hands(Record):
    """What the laws ask of those who performed."""

    performed: tuple[Any, ...]
    effects: Mapping[str, str]


class ApartClock:
    """The clock of one process, which is ahead of the others or behind them."""

    def __init__(self, world: "ShellWorld", apart_ms: int) -> None:
        self._world = world
        self._apart_ms = apart_ms

    def now_ms(self) -> int:
        """What the process takes the time to be."""
        return self._world.now_ms() + self._apart_ms


class _Broken(logging.Handler):
    """Notes executors that broke: of what happened there, an operator is told in a log and no caller."""

    def __init__(self, world: "ShellWorld") -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Note what an error of the dispatch says."""
        error = record.exc_info[1] if record.exc_info else None
        self._world.broken("no_executor_breaks", f"{record.getMessage()}: {error!r}", getattr(record, "run_id", ""))


class ShellWorld:
    """Plays systems until nothing moves any more."""

    def __init__(self, seed: int, weather: Weather) -> None:
        self.seed = seed
        self.weather = weather
        self.chance = Random(seed)
        # What small troubles do is drawn apart, so that a world without them is what it was before there were any.
        self.quirks = Random(f"quirks of {seed}")
        self.ground = Ground(TornBell(self.quirks) if weather.is_rung else None)
        self.stage = Stage(self.chance, lambda: self.ground.leased, weather.late, self._is_broken)
        self.loop = SeededLoop(self.chance, self._before_step)
        self.processes: list[Process] = []
        self.told: dict[str, Told] = {}
        self.offences: list[tuple[str, str, str]] = self.ground.offences
        self.crashes = 0
        self.halted: list[Halted] = []
        # Parents that rested although a child of theirs had ended, when every process had done what it could.
        self.forsaken: list[tuple[str, str]] = []
        self.skew_ms = 0
        self._is_storm = True
        self._started = 0
        self._new_ids = 0
        self._said = 0
        # Runs as they were read last; a journal only grows.
        self._read: dict[str, SimulatedRun] = {}
        # The laws of single runs ask these of a world.
        self.lives: dict[str, Any] = {}
        self.sent: list[Any] = []
        jumps = weather.clock_jump or float(weather.apart_ms > 0)
        self.faults: Faults = Faults(clock_jump=jumps) if jumps else CALM
        # Who is to be cut off next, at which callback.
        self._cuts: list[tuple[int, int, asyncio.Task[Any]]] = []
        self._cuts_made = 0
        # What callers were about to do: one that is cut off at once never does it.
        self._begun: list[Coroutine[Any, Any, Any]] = []

    def play(self) -> "ShellWorld":
        """Play the storm and the calm; raises LawBroken where nothing comes to rest."""
        log, broken = logging.getLogger(in_process.__name__), _Broken(self)
        log.addHandler(broken)
        try:
            self.loop.run_until_complete(self._play())
        except Stalled as stalled:
            raise LawBroken("nothing_waits_for_ever", self.seed, "", str(stalled)) from None
        except SessionConflict as shared:
            raise self.shared_place(shared) from None
        finally:
            self.loop.close()
            for work in self._begun:
                if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                    work.close()
            log.removeHandler(broken)
        return self

    def shared_place(self, shared: SessionConflict) -> LawBroken:
        """What is said of logs that cannot be folded because two runs have one place of a session."""
        return LawBroken("a_session_is_one_chain", self.seed, "", shared.message)

    def now_ms(self) -> int:
        """What the clock of the world shows, jumps included."""
        return BEGINS_AT_MS + self.skew_ms + int(self.loop.time() * 1000)

    def run_ids(self) -> Sequence[str]:
        """Every run that has a turn."""
        return self.ground.run_ids()

    def run(self, run_id: str) -> SimulatedRun:
        """A run as its journal tells it."""
        journal = self.ground.turns(run_id)
        kept = self._read.get(run_id)
        if kept is None or len(kept.journal) != len(journal):
            try:
                kept = self._read[run_id] = SimulatedRun(run_id, journal)
            except (InvariantBroken, KeyError, AssertionError) as error:
                what = f"its journal cannot be folded: {type(error).__name__}: {error}"
                raise LawBroken("journals_add_up", self.seed, run_id, what) from error
        return kept

    def text(self, text: Text) -> str:
        """A text of a run in full."""
        return text if isinstance(text, str) else at_once(self.ground.blobs.get(text.digest)).decode()

    def journals(self) -> dict[str, tuple[bytes, ...]]:
        """Every journal that is left."""
        return {run_id: tuple(self.ground.turns(run_id)) for run_id in self.run_ids()}

    def broken(self, law: str, what: str, run_id: str = "") -> None:
        """Note that a law is broken."""
        self.offences.append((law, run_id, what))

    # What happens.

    async def _play(self) -> None:
        for _ in range(self.weather.processes):
            self._start()
        for _ in range(2):
            self._act(self._submit)
        for _ in range(self.weather.actions):
            await asyncio.sleep(self.chance.random() ** 3 * self.weather.apart_s)
            self._happen()
        await asyncio.sleep(self.chance.random() * 5)
        self._is_storm = False
        await self._calm()

    def _happen(self) -> None:
        chance, weather = self.chance, self.weather
        if chance.random() < weather.clock_jump:
            self.skew_ms += chance.randint(-CLOCK_JUMP_MS_MAX, CLOCK_JUMP_MS_MAX)
        if chance.random() < weather.leave and len(self._living()) > 1:
            self._leave(chance.choice(self._living()))
        if not self._living() or (len(self._living()) < weather.processes and chance.random() < 0.5):
            self._start()
        if weather.halt and chance.random() < weather.halt:
            self._act(self._halt)
        draw = chance.random()
        if draw < 0.1:
            self._act(self._submit)
        elif draw < 0.2:
            self._act(self._resume)
        elif draw < 0.25:
            self._act(self._fork)
        elif draw < 0.3:
            self._act(self._note)
        else:
            self._signal()

    async def _calm(self) -> None:
        """Let every process finish; then a last one takes up what is open."""
        await self._finish([task for process in self.processes for task in process.callers], "a caller")
        if self.weather.halt:
            lifting = self._start()
            await self._finish([self.loop.spawn(lifting.name, self._lift(lifting))], "a lift")
        for process in self._living():
            await self._finish([self.loop.spawn(process.name, process.system.settle())], f"settle of {process.name}")
        self.forsaken = list(self._forsaken())
        # What crashed holds its runs for a while.
        await asyncio.sleep(self.weather.lease_ms / 1000)
        last = self._start()
        for _ in range(3):  # A parent may have no holder once its child has ended.
            for run_id in self.run_ids():
                if self.state_of(run_id).end.ending is None:
                    last.callers[self.loop.spawn(last.name, self._quietly(last.system.resume(run_id)))] = None
            await self._finish(list(last.callers), "a resume")
            await self._finish([self.loop.spawn(last.name, last.system.settle())], "the last settle")
        for process in self._living():
            self._leave(process)
            await self._finish(list(process.callers), f"close of {process.name}")

    def _forsaken(self) -> Iterator[tuple[str, str]]:
        """Open runs that wait for a child which has ended, each with that child; a paused one finds out when it is resumed."""
        known = frozenset(self.run_ids())
        for run_id in known:
            state = self.state_of(run_id)
            open_now = () if state.end.ending is not None or state.place.paused else state.commands.open.values()
            waits_for = [one.run_id for one in open_now if isinstance(one, StartChild) and one.run_id in known]
            yield from ((run_id, child) for child in waits_for if self.state_of(child).end.ending is not None)

    async def _finish(self, tasks: "list[asyncio.Task[Any]]", what: str) -> None:
        tasks = [task for task in tasks if not task.done() and not self.loop.has_crashed(self._owner(task))]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=REST_WAIT_S_MAX)
        if late:
            self.broken("nothing_waits_for_ever", f"{what} has not come back after {REST_WAIT_S_MAX} s: {late}")

    def _owner(self, task: "asyncio.Task[Any]") -> str:
        return next((process.name for process in self.processes if task in process.callers), WORLD)

    def state_of(self, run_id: str) -> RunState:
        """A run as it stands."""
        return self.run(run_id).state

    # Processes.

    def _living(self) -> list[Process]:
        return [p for p in self.processes if not p.is_leaving and not self.loop.has_crashed(p.name)]

    def _start(self) -> Process:
        self._started += 1
        name = f"p{self._started}"
        store = SharedStore(self.ground, name, self._pause, self.weather.lease_ms)

        async def find_kit(state: RunState) -> Kit:
            await self._pause()
            return self.stage.kit

        steps = self.weather.steps_quota
        quotas = (Quota(ANYONE, Period.TOTAL, Budget(steps=steps)),) if steps else ()
        clock = (
            ApartClock(self, self.quirks.randint(-apart_ms, apart_ms)) if (apart_ms := self.weather.apart_ms) else self
        )
        system = System(store, clock=clock, find_kit=find_kit, new_id=self._new_id, owner="owner", quotas=quotas)
        if self.weather.double:
            self._double(system)
        process = Process(name, system, store)
        self.processes.append(process)
        return process

    def _double(self, system: System) -> None:
        """Have the dispatch of a process hand a report on twice, now and then."""
        dispatch: Any = system._hub.dispatch
        receive, forget, again = dispatch.receive, dispatch.forget, dict[str, Any]()

        async def received(live: Live) -> Any:
            if (report := again.pop(live.run_id, None)) is None:
                report = await receive(live)
                if report is not None and self.quirks.random() < self.weather.double:
                    again[live.run_id] = report
            return report

        def forgotten(live: Live) -> None:
            # What was received in an earlier life of the run is of no use to the next one.
            again.pop(live.run_id, None)
            forget(live)

        dispatch.receive, dispatch.forget = received, forgotten

    def _is_broken(self) -> bool:
        return self.weather.faults > 0 and self.quirks.random() < self.weather.faults

    def _leave(self, process: Process) -> None:
        process.is_leaving = True
        process.callers[self.loop.spawn(process.name, self._close(process))] = None

    async def _close(self, process: Process) -> None:
        await process.system.close()
        mine = {*process.callers, asyncio.current_task()}
        for task in self.loop.tasks_of(process.name):
            if task not in mine:
                self.broken("nothing_outlives_closing", f"{process.name} was closed and left {task.get_coro()} behind")

    def _before_step(self, process: str) -> None:
        if self.loop.steps > STEPS_MAX:
            raise Stalled(f"the world is still busy after {STEPS_MAX} callbacks")
        if self._is_storm and self.weather.crash and self.chance.random() < self.weather.crash:
            self.crashes += 1
            self.loop.crash(process)
            self.ground.crash(process)

        if self._cuts and self._cuts[0][0] <= self.loop.steps:
            heapq.heappop(self._cuts)[2].cancel()

    def _new_id(self) -> str:
        self._new_ids += 1
        return f"r{self._new_ids}"

    async def _pause(self) -> None:
        await Turns(1 + self.chance.randrange(self.weather.turns_max))
        if self.weather.slow and self.chance.random() < self.weather.slow:
            await asyncio.sleep(self.chance.random() * 2)

    # What people do.

    def _act(self, what: Callable[[Process], Coroutine[Any, Any, Any] | None]) -> None:
        process = self.chance.choice(self._living())
        work = what(process)
        if work is None:
            return
        self._begun.append(work)
        task = self.loop.spawn(process.name, self._quietly(work))
        process.callers[task] = None
        if self.chance.random() < self.weather.cancel:
            self.loop.call_later(self.chance.random() ** 3 * 3, task.cancel)
        elif self.weather.cuts and self.quirks.random() < _CUT:
            at = self.loop.steps + 1 + int(self.quirks.random() ** 2 * CUT_AFTER_MAX)
            self._cuts_made += 1
            heapq.heappush(self._cuts, (at, self._cuts_made, task))

    async def _quietly(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except RemitError as error:
            if error.code in ("INVARIANT_BROKEN", "JOURNAL_BROKEN"):
                self.broken("no_caller_meets_a_bug", f"{error.code}: {error}")

    def _submit(self, process: Process) -> Coroutine[Any, Any, Any]:
        task = self.stage.new_task()
        session_id = self.chance.choice(_SESSIONS)
        asked = SystemRequest((user_message(task),), request_id=task, trace_id="0" * 32, session_id=session_id)
        return process.system.submit(asked, self.stage.kit, self.chance.choice(TERMS))

    async def _halt(self, process: Process) -> None:
        told = await process.system.halt(by="halter", why="to look")
        self.halted.append(Halted(self.loop.time(), told.halt.number))
        await asyncio.sleep(self.chance.random() * self.weather.halt_s)
        await self._lift(process)

    async def _lift(self, process: Process) -> None:
        with suppress(RemitError):  # Another process may have lifted it.
            await process.system.lift(by="lifter", why="looked")

    def _resume(self, process: Process) -> Coroutine[Any, Any, Any] | None:
        run_id = self._some_run()
        return process.system.resume(run_id) if run_id else None

    def _fork(self, process: Process) -> Coroutine[Any, Any, Any] | None:
        run_id = self._some_run()
        return process.system.fork(run_id, by="forker") if run_id else None

    def _note(self, process: Process) -> Coroutine[Any, Any, Any] | None:
        run_id = self._some_run()
        return process.system.note(run_id, "noter", "key", '"value"') if run_id else None

    def _some_run(self) -> str:
        ids = self.run_ids()
        # The newest are the most interesting: they are just being made.
        return "" if not ids else self.chance.choice(ids[-3:] if self.chance.random() < 0.7 else ids)

    def _signal(self) -> None:
        run_id = self._some_run()
        if not run_id:
            return
        state = self.state_of(run_id)
        kinds = [Signal.CANCEL, Signal.PAUSE, Signal.RESUME, Signal.FEEDBACK, Signal.FEEDBACK]
        payload: dict[str, Any] = {"text": "more"}
        asked = list(questions(state))
        if asked:
            kinds += [Signal.APPROVE] * 4 + [Signal.REJECT] * 2
        if state.end.ending is not None:
            kinds = [Signal.RETRY] * 4 + kinds
        kind = self.chance.choice(kinds)
        if kind in (Signal.APPROVE, Signal.REJECT):
            question = self.chance.choice(asked)
            payload = {"packet_id": packet_id(run_id, question.id)}
            if question.purpose is AskPurpose.OUTCOME:
                # People say what they see; whether they are asked too early is not for them to know.
                assert question.packet is not None, "a question about an outcome shows the call"
                call = state.commands.open.get(question.packet.about)
                is_done = isinstance(call, CallTool) and call.key in self.stage.effects
                kind = Signal.APPROVE if is_done else Signal.REJECT
        elif kind is Signal.RETRY:
            payload = {"reason": "again"}
        # Often it is said twice, from anywhere.
        for _ in range(1 if self.chance.random() < 0.6 else 2):
            self._said += 1
            said = UserSignal(f"s{self._said}", kind, run_id, f"person-{self._said}", payload=payload)
            self.told[said.signal_id] = Told(said)
            self._act(partial(self._tell, signal=said))

    async def _tell(self, process: Process, signal: UserSignal) -> None:
        began_s = self.loop.time()
        try:
            heard: SignalOutcome = await process.system.signal(signal)
        except RemitError as error:
            told = Told(signal, is_known=True, code=str(error.code), took_s=self.loop.time() - began_s)
            self.told[signal.signal_id] = told
            raise
        took_s = self.loop.time() - began_s
        self.told[signal.signal_id] = Told(signal, is_known=True, fork_id=heard.fork_id, took_s=took_s)

    @cached_property
    def hands(self) -> Hands:
        """What was performed, as the laws of effects ask for it."""
        orders: dict[str, dict[str, str]] = {}
        for run_id in self.run_ids():
            for turn in self.run(run_id).turns:
                for command in turn.decisions:
                    if isinstance(command, CallTool):
                        orders.setdefault(command.key, {})[run_id] = command.id
        performed = []
        for made in self.stage.made:
            runs = orders.get(made.key, {"": ""})
            # A fork repeats what may be repeated with the key of its origin; who did it when cannot be told from the key.
            who = ("", "") if made.tool == IDEMPOTENT and len(runs) > 1 else next(iter(runs.items()))
            # Each lease of its run is a life of it: another driver may have to repeat what the one before had begun.
            life = bisect_right(self.ground.tokens.get(who[0], ()), made.leased)
            performed.append(PerformedCall(*who, made.key, made.tool, made.arguments, life))
        return Hands(tuple(performed), self.stage.effects)


def own_turns(run: SimulatedRun) -> list[Turn]:
    """The turns of a run, those that a fork copied left out."""
    origin = pinned(run.state).forked_from
    return [turn for turn in run.turns if origin is None or turn.seq > origin.seq]


def shell_scenario(seed: int) -> ShellWorld:
    """The world of a seed, played."""
    return ShellWorld(seed, weather_of(seed)).play()


def earlier_scenario(seed: int) -> ShellWorld:
    """The world that a seed had before there were small troubles, played."""
    return ShellWorld(seed, WEATHERS[seed % EARLIER_WEATHERS]).play()
