"""SimulatedWorld: the real runner and kernel in a world of chance, where one seed reproduces everything.

Rule 1: nothing here sleeps, and no real clock or event loop is asked; time is what the next event says.
Rule 2: everything random comes from one generator made of the seed, in one fixed order.
Rule 3: a crash takes the process with all it had under way; journal, blobs, people and other services stay.
Rule 4: what is broken is told with the seed that shows it again.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any, TypeVar

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.journal.commands import Command
from remit.core.journal.storage import Barrier, Place, RunListing, Stretch, Warrant
from remit.core.record import Text
from remit.core.run.manifest import Manifest
from remit.kernel.state import RunState
from remit.orchestrate.executors.reports import PersonSaid, Report
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.recover import recover
from remit.orchestrate.loop.runner import Runner
from remit.testing.hands import Hands, PerformedCall
from remit.testing.runs import LawBroken, SimulatedRun, fold_journal
from remit.testing.scripts import Filter, Model, Reply, Tool
from remit.testing.trouble import CALM, Faults

T = TypeVar("T")

# An epoch that is not 0, so that a forgotten time stands out.
BEGINS_AT_MS = 1_000_000
# A world that is still busy after so many events is a run that neither ends nor waits.
EVENTS_MAX = 20_000
# Enough to hit every kind of moment over many seeds, few enough that every world comes to rest.
CRASHES_MAX = 6
CLOCK_JUMP_MS_MAX = 120_000


class Crash(BaseException):
    """The simulated process dies here. Nothing may catch it but the world."""


class Yield:
    """A point where the process may die or another may get ahead."""

    def __await__(self) -> Any:
        """Give the world a chance to act."""
        yield


class SimulatedJournal:
    """The memory journal with a moment before and after each write."""

    def __init__(self, world: "SimulatedWorld") -> None:
        self._world = world
        self.kept = MemoryJournal()

    async def append(
        self,
        run_id: str,
        data: bytes,
        after: Place,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> Place:
        """Write a turn, unless the process dies before or a rival is faster."""
        await Yield()
        await self._world.let_a_rival_in(run_id)
        place = await self.kept.append(run_id, data, after, barrier, listing, warrant, orders)
        await Yield()
        return place

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns of a run."""
        await Yield()
        return await self.kept.read(run_id, after=after)

    async def run_ids(self) -> Sequence[str]:
        """Every run that was started."""
        return await self.kept.names()


class SimulatedWorld:
    """Plays runs to their end, or until they only wait for people who never come."""

    def __init__(
        self,
        *,
        model: Model,
        tools: Mapping[str, Tool] | None = None,
        person: Callable[[Random], Reply] = lambda chance: Reply.APPROVE,
        validators: Mapping[str, Callable[[str], Sequence[str]]] | None = None,
        filters: Mapping[str, Filter] | None = None,
        faults: Faults = CALM,
        seed: int = 0,
    ) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.faults = faults
        self.journal = SimulatedJournal(self)
        self.blobs = MemoryBlobs()
        self.hands = Hands(
            self,
            model=model,
            tools=tools or {},
            person=person,
            validators=validators or {},
            filters=filters or {},
        )
        self.lives: dict[str, Live] = {}
        self.crashes = 0
        self.ignored = 0
        self._at_ms = BEGINS_AT_MS
        self._skew_ms = 0
        # What belongs to no process has life 0.
        self.life = 1
        # Every command that was handed on to be performed, with its run, in order.
        self.sent: list[tuple[str, Command]] = []
        self._events: list[tuple[int, int, int, Callable[[], Coroutine[Any, Any, Any]]]] = []
        self._count = 0
        self._rival_is_in = False
        self.runner = self._new_runner()

    @property
    def tool_calls(self) -> list[PerformedCall]:
        """Every tool call that was really performed, in order."""
        return self.hands.performed

    def now_ms(self) -> int:
        """What the clock of this world shows, jumps included."""
        return self._at_ms + self._skew_ms

    def send(self, live: Live, command: Command) -> None:
        """Have a command performed after a while, if the process lives that long."""
        self.sent.append((live.run_id, command))
        self.later(lambda: self.hands.perform(live.run_id, command), dies_with_process=True)

    def carries(self, command: Command) -> bool:
        """Nothing is given to workers."""
        return False

    async def revoke(self, run_id: str, command_id: str) -> bool:
        """Whether a command was taken back: never, since what has begun is not known."""
        return False

    async def receive(self, live: Live) -> Report | None:
        """The next report of a run: none, since the world delivers reports as events."""
        return None

    def forget(self, live: Live) -> None:
        """Nothing is kept for a run: what is under way dies with the process, or happens."""

    def finish(self, *manifests: Manifest) -> SimulatedRun:
        """Start these runs, play until nothing is left to happen, and return the first of them."""
        missing = list(manifests)
        while missing:
            for manifest in missing:
                self.later(lambda manifest=manifest: self.start(manifest))  # type: ignore[misc]  # bound now, not later
            self.play()
            # A process that died before the first turn was written leaves nothing to recover; its caller tries again.
            missing = [manifest for manifest in missing if manifest.run_id not in self.run_ids()]
        return self.run(manifests[0].run_id)

    def play(self) -> None:
        """Let events happen until there are none."""
        for _ in range(EVENTS_MAX):
            if not self._events:
                return
            due_at_ms, _, life, act = heappop(self._events)
            self._at_ms = max(self._at_ms, due_at_ms)
            if life in (0, self.life):
                self._perform(act)
        raise LawBroken("every_run_ends_or_waits", self.seed, "", f"the world is still busy after {EVENTS_MAX} events")

    def run(self, run_id: str) -> SimulatedRun:
        """A run as its journal tells it."""
        return SimulatedRun(run_id, self._drive(self.journal.kept.read(run_id)))

    def text(self, text: Text) -> str:
        """A text of a run in full, wherever it lives."""
        return self._drive(self.runner.text(text))

    def run_ids(self) -> Sequence[str]:
        """Every run that was started, children and forks included."""
        return self._drive(self.journal.run_ids())

    def later(
        self, act: Callable[[], Coroutine[Any, Any, Any]], *, after_ms: int = 0, dies_with_process: bool = False
    ) -> None:
        """Let something happen, at once or later; what belongs to the process dies with it."""
        if self.chance.random() < self.faults.delay:
            after_ms += self.chance.randrange(60_000)
        self._count += 1
        life = self.life if dies_with_process else 0
        heappush(self._events, (self._at_ms + after_ms, self._count, life, act))

    async def start(self, manifest: Manifest) -> None:
        """Start a run, or take it up when it was started before."""
        if await self.journal.read(manifest.run_id):
            if manifest.run_id not in self.lives:
                self.lives[manifest.run_id] = await recover(self.runner, manifest.run_id)
        else:
            self.lives[manifest.run_id] = await self.runner.start(manifest)
        self.hands.after_turn(self.lives[manifest.run_id])

    async def deliver(self, run_id: str, report: Report) -> None:
        """Hand a report to the runner and see what the run made of it."""
        live = self.lives.get(run_id)
        if live is None:
            return
        before = live.state.seq
        turn = await self.runner.advance(live, report)
        if turn is None:
            self.ignored += 1
            self._expect_unchanged(live, before, report)
        self.hands.after_turn(live)

    async def let_a_rival_in(self, run_id: str) -> None:
        """Sometimes another process takes a turn of the same run just before this one writes."""
        if self._rival_is_in or run_id not in self.lives or self.chance.random() >= self.faults.rival:
            return
        self._rival_is_in = True
        rival = self._new_runner()
        live = await rival.load(run_id)
        if live.state.end.ending is None:
            await rival.advance(live, PersonSaid("rival", "one more thing"))
        self._rival_is_in = False

    def _new_runner(self) -> Runner:
        return Runner(journal=self.journal, blobs=self.blobs, clock=self, dispatch=self)

    def _perform(self, act: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        if self.chance.random() < self.faults.clock_jump:
            self._skew_ms += self.chance.randint(-CLOCK_JUMP_MS_MAX, CLOCK_JUMP_MS_MAX)
        try:
            self._drive(act(), may_crash=True)
            self.hands.maybe_signal()
        except Crash:
            self._restart()

    def _restart(self) -> None:
        """Begin a new life of the process: only what was written or lives elsewhere is left."""
        self.life += 1
        self._rival_is_in = False
        self.runner = self._new_runner()
        self.lives.clear()
        for run_id in self.run_ids():
            self.later(lambda run_id=run_id: self._take_up(run_id), dies_with_process=True)  # type: ignore[misc]

    async def _take_up(self, run_id: str) -> None:
        if run_id not in self.lives:
            self.lives[run_id] = await recover(self.runner, run_id)
            self.hands.after_turn(self.lives[run_id])

    def _drive(self, coroutine: Coroutine[Any, Any, T], *, may_crash: bool = False) -> T:
        """Run a coroutine to its end by hand; between any two awaits the process may die."""
        try:
            while True:
                coroutine.send(None)
                if may_crash and self.crashes < CRASHES_MAX and self.chance.random() < self.faults.crash:
                    self.crashes += 1
                    coroutine.close()
                    raise Crash
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _expect_unchanged(self, live: Live, before: int, report: Report) -> None:
        """An arrival that was not judged must have changed nothing."""
        state = self.state_of(live.run_id)
        if live.state.seq == before and live.state != state:
            what = f"{type(report).__name__} was ignored and still changed the run"
            raise LawBroken("illegal_arrivals_change_nothing", self.seed, live.run_id, what)

    def state_of(self, run_id: str) -> RunState:
        """The state that the journal of a run adds up to."""
        return fold_journal(self._drive(self.journal.kept.read(run_id)))


# A law yields what is wrong with a run, in words.
Law = Callable[[SimulatedWorld, SimulatedRun], Iterator[str]]


def keep_the_law(world: SimulatedWorld, laws: Mapping[str, Law]) -> None:
    """Check these laws on every run of a world; raise LawBroken for the first that does not hold."""
    for run_id in world.run_ids():
        run = world.run(run_id)
        for name, law in laws.items():
            for what in law(world, run):
                raise LawBroken(name, world.seed, run_id, what)
