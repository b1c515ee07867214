"""The facade: submit, signal, watch, result. The verbs that every door uses.

Rule 1: a door turns what it is given into a request or a signal, and what comes back into its own form; nothing else.
Rule 2: a System lives in the event loop it is used in. Closing it stops its drivers; every run can be resumed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import uuid4

from remit.core.arrivals import ResumeRequested, SessionNoted, SourcesAccepted
from remit.core.boundary import Boundary
from remit.core.boundary_reports import BoundaryChecked, BoundaryShown, Difference
from remit.core.codec import decode_turn
from remit.core.commands import CancelCommand, ForkRun, StartChild
from remit.core.contract import ExecutionContext, SystemRequest, SystemResponse
from remit.core.events import Turn
from remit.core.failure import RequestRejected
from remit.core.goal import Goal
from remit.core.graph import Graph
from remit.core.halt import Halt
from remit.core.manifest import EarlierEffect, Origin, Source
from remit.core.person import check_person
from remit.core.queue import QueueLimits
from remit.core.quota import Quota
from remit.core.record import JsonObject, Record, Text
from remit.core.signals import Signal, UserSignal, check_signal
from remit.core.signing import Signer
from remit.core.storage import RunEntry, RunHeld
from remit.core.tools import ToolDefinition
from remit.kernel.draw import draw_mermaid
from remit.kernel.graph import compile_graph
from remit.kernel.state import RunState
from remit.observe.execution import execution_context
from remit.observe.export import Export
from remit.orchestrate.archive import Archive
from remit.orchestrate.custody import Custody, Signers
from remit.orchestrate.durability import GUARD_MODE
from remit.orchestrate.executors.bench import Bench
from remit.orchestrate.executors.child import ChildExecutor
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.prepare import ERRANDS
from remit.orchestrate.executors.tool import Abandoned
from remit.orchestrate.fork import FORK_DEFERRED, begin_fork, origin_at
from remit.orchestrate.halts import Halted, Halts, HaltWatch, scope_of
from remit.orchestrate.holdings import fenced_journal
from remit.orchestrate.hub import FindKit, Hub
from remit.orchestrate.in_process import InProcessDispatch
from remit.orchestrate.kit import STANDARD_TERMS, Kit, Terms
from remit.orchestrate.kit import watched as kit_watched
from remit.orchestrate.lineages import Lineages
from remit.orchestrate.manifests import Manifests
from remit.orchestrate.orphans import left_behind, orphan_above, orphans
from remit.orchestrate.ports import Clock, Store
from remit.orchestrate.post import Post
from remit.orchestrate.queues import Queues
from remit.orchestrate.quotas import Quotas
from remit.orchestrate.rebuild import Rebuilt, rebuild
from remit.orchestrate.replay import Audit, audit
from remit.orchestrate.responses import Responses
from remit.orchestrate.restore import lost_turns
from remit.orchestrate.runner import Runner
from remit.orchestrate.seals import Sealer
from remit.orchestrate.sessions import Session, check_entries, last_run, session_of
from remit.orchestrate.signatures import signed_journal, signed_snapshots
from remit.tool.vault import NO_SECRETS, Vault

if TYPE_CHECKING:
    from remit.orchestrate.constraining import Constrainer
    from remit.orchestrate.guard.guard import Guard

# How often a watcher looks for turns that another process may have written.
WATCH_POLL_MS = 50
# After so many looks in vain it is asked whether anybody drives the run at all; a paused or crashed one may rest unlisted.
WATCH_QUIET = 10

# Whoever answered a run that another process drives waits so long for its next rest: a person stays at the terminal.
REST_WAIT_MS_MAX = 600_000
RUN_STILL_DRIVEN = "RUN_STILL_DRIVEN"

# For the doors, which know this module alone.
watched = kit_watched
NOTHING: Mapping[str, str] = MappingProxyType({})


class Heard(Record):
    """What became of a signal. A retry names the fork it made; `rests_because` says why a run was heard and not driven."""

    run_id: str
    fork_id: str = ""
    rests_because: str = ""


class System:
    """Runs requests on a store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        find_kit: FindKit,
        new_id: Callable[[], str],
        signer: Callable[[], Signer] | None = None,
        quotas: Iterable[Quota] = (),
        queues: Iterable[QueueLimits] = (),
        secrets: Vault = NO_SECRETS,
        owner: str = "",
        signers: Signers | None = None,
        name_model: Callable[[str], str] = str,
    ) -> None:
        self.store = store
        self._custody = Custody(store.journal, store.catalogue, store.log, signers)
        self.archive = Archive(store, signer, self._custody)
        self.queues = Queues(store, clock, queues, secrets.check_name)
        self._check_name = secrets.check_name
        self.quotas = Quotas(store, quotas, clock)
        self.lineages = Lineages(store.catalogue)
        executors: dict[type, object] = {}
        self._sealer = sealer = Sealer(store.seals, secrets)
        self.covered = sealer.covered
        self._halts = halts = Halts(store.halts, clock, name_model, sealer.covered, store.key, secrets.check_name)
        dispatch = InProcessDispatch(executors, clock, secrets, halts)  # type: ignore[arg-type]  # filled below, one row per command
        self._runner = Runner(
            journal=signed_journal(fenced_journal(self.quotas.journal, store.leases), store.key),
            blobs=store.blobs,
            clock=clock,
            dispatch=dispatch,
            snapshots=signed_snapshots(store.snapshots, store.key),
            sealer=sealer,
        )
        self._responses = Responses(self._runner)
        self._manifests = Manifests(self._runner, store.catalogue, new_id, halts, secrets, owner, self._custody)
        self._new_id = new_id
        self._owner = owner
        self._hub = Hub(self._runner, dispatch, store.leases, find_kit, self.lineages, halts)
        self._hub.custody = self._custody
        self._children = ChildExecutor(self._hub, store.inbox, store.log)
        self._post = Post(self._hub, store.inbox, store.catalogue, self.queues.check_answer)
        self._hub.on_taken, self._hub.on_driven = self._post.hear_waiting, self._post.keep_watch
        dispatch.on_late = self._hub.aftermath.late
        bench = Bench(self._runner.text, secrets, sealer, halts, clock, self._hub.aftermath.late, dispatch.claim)
        self._performers = Performers(bench)
        executors |= {
            **dict.fromkeys(ERRANDS, self._performers.carrier(self._hub.kit_of)),
            StartChild: self._children.start,
            CancelCommand: self._children.cancel,
            ForkRun: self._children.fork,
        }

    async def submit(
        self, request: SystemRequest, kit: Kit, terms: Terms = STANDARD_TERMS, *, entries: Mapping[str, str] = NOTHING
    ) -> str:
        """Start a run and return its id; it goes on by itself. `entries` are kept for its session, as JSON texts."""
        manifest = await self._manifests.of(request, kit, terms, entries)
        driver = await self.quotas.begin(manifest, lambda assigned: self._hub.begin(assigned, kit))
        return driver.live.run_id

    async def run(
        self, request: SystemRequest, kit: Kit, terms: Terms = STANDARD_TERMS, *, entries: Mapping[str, str] = NOTHING
    ) -> SystemResponse:
        """Start a run and wait until it has ended or waits for people."""
        manifest = await self._manifests.of(request, kit, terms, entries)
        driver = await self.quotas.begin(manifest, lambda assigned: self._hub.begin(assigned, kit))
        return await self._responses.of(await self._hub.at_rest(driver))

    async def result(self, run_id: str) -> SystemResponse:
        """How a run ended, or how it stands once it rests here."""
        return await self._responses.of(await self.state_of(run_id))

    async def execution(self, run_id: str) -> ExecutionContext:
        """A run as one object: what was fixed when it started, where it stands, what it selected and found."""
        return execution_context(await self.state_of(run_id))

    async def resume(
        self, run_id: str, *, kit: Kit | None = None, accepted: tuple[Source, ...] = (), by: str = ""
    ) -> SystemResponse:
        """Go on with a run after a crash or an answer, until it rests. Code that changed must have been accepted.

        A run whose parent has ended is cancelled instead.
        """
        entry = await self._expect(run_id)
        await self._check_halts(run_id)
        orphan = await self._end_orphan(entry)
        self._check_name("by", by)
        if accepted and orphan is None:
            await self._hub.note(run_id, SourcesAccepted(check_person(by), accepted))
        driver = await self._hub.take_up(run_id, kit)
        return await self._responses.of(await self._hub.at_rest(driver))

    async def halt(
        self, why: str, *, by: str, tenant: str = "", tool: str = "", model: str = "", run: str = ""
    ) -> Halted:
        """Stop dispatch for one of these, or for everything, in every process on the store, until it is lifted.

        From now on nothing of it goes out. What is under way is called off, here and elsewhere; what could not be, in
        time, is named.
        """
        entry = await self._halts.write(scope_of(tenant=tenant, tool=tool, model=model, run=run), by=by, why=why)
        self._hub.call_off()
        watch = HaltWatch(self._halts, self._runner, self.store.catalogue, self.store.leases)
        return Halted(entry, await watch.settled())

    async def lift(
        self, *, by: str, why: str = "", tenant: str = "", tool: str = "", model: str = "", run: str = ""
    ) -> Halt:
        """Lift a halt, of exactly what was halted; the runs that it paused go on when they are resumed."""
        scope = scope_of(tenant=tenant, tool=tool, model=model, run=run)
        return await self._halts.write(scope, by=by, why=why, is_lift=True)

    def halts(self) -> tuple[Halt, ...]:
        """What is halted now, the oldest first."""
        return tuple(self._halts.standing.halts.values())

    async def signal(self, signal: UserSignal, *, kit: Kit | None = None) -> Heard:
        """Tell a run something; raises RemitError with a code when it does not want to hear it.

        A run whose kit cannot be loaded again goes on with the one that is given here.
        """
        check_signal(signal)
        for field in ("user_id", "signal_id", "channel_type"):
            self._check_name(field, getattr(signal, field))
        entry = await self._expect(signal.run_id)
        if signal.type is not Signal.CANCEL and (orphan := await self._end_orphan(entry)) is not None:
            raise left_behind(signal.run_id, orphan)
        if signal.type is Signal.RESUME:
            await self._check_halts(signal.run_id)
        family = next(iter(entry.listing.lineage), signal.run_id)
        if kit is not None:
            self._hub.lend(signal.run_id, kit)
            # When a child ends, its parent is taken up.
            self._hub.lend(family, kit)
        fork_id, rests_because = await self._post.deliver(self._sealer.signal(signal, family))
        if signal.type is not Signal.RETRY:
            return Heard(signal.run_id, rests_because=rests_because)
        live = await self._runner.load(signal.run_id)
        forks = [command for command in live.state.parting if isinstance(command, ForkRun)]
        # An entry that was settled before answers named forks says nothing; then it is the newest.
        order = next((command for command in forks if command.run_id == fork_id), forks[-1])
        # Whoever heard the retry has made the fork, as a rule; if that failed, the sender learns why.
        if kit is not None:
            self._hub.lend(order.run_id, kit)
        try:
            await self._children.fork(live, order)
        except RequestRejected as error:
            message = (
                f"the retry is recorded; resume run {signal.run_id} to have it done, which is not yet: {error.message}"
            )
            details = {**error.details, "run_id": signal.run_id, "code": error.code}
            raise RequestRejected(FORK_DEFERRED, message, details) from error
        with suppress(RunHeld):  # Then another process drives it.
            await self._hub.take_up(order.run_id, kit)
        return Heard(signal.run_id, order.run_id)

    async def fork(
        self, run_id: str, *, by: str, at: int | None = None, why: str = "", kit: Kit | None = None
    ) -> Heard:
        """Copy a run up to a turn, its last one unless one is named, and let the copy go on; the run stays as it is.

        What the run did after that turn, its fork asks a person about before it does the like. Raises RequestRejected
        where the run has no such turn.
        """
        self._check_name("by", by)
        await self._expect(run_id)
        state = (await self._runner.load(run_id)).state
        await self._custody.expect_kept(state, run_id)
        return await self._forked(origin_at(state, at, check_person(by), why, self._runner.clock.now_ms()), kit)

    async def restore(self, run_id: str, *, by: str, why: str, kit: Kit | None = None) -> Heard:
        """Accept that turns of a run are missing, and let a fork of what is left go on, which asks before any change.

        Raises RequestRejected where nothing is missing, or nobody says why.
        """
        self._check_name("by", by)
        await self._expect(run_id)
        state = (await self._runner.load(run_id)).state
        await self._custody.expect_vouched(run_id)
        custody, last = self._custody, state.seq
        beyond, doubt = await custody.beyond(run_id, last), await custody.log_doubt(run_id, last)
        lost = lost_turns(run_id, last, beyond, why, doubt)
        return await self._forked(origin_at(state, None, check_person(by), why, self._runner.clock.now_ms()), kit, lost)

    async def _forked(self, origin: Origin, kit: Kit | None, *lost: EarlierEffect) -> Heard:
        fork_id = self._new_id()
        known = kit or self._hub.known_kit(origin.run_id)
        sealed = self._sealer.origin(origin, fork_id, await self.lineages.family(origin.run_id))
        if known is not None:
            self._hub.lend(fork_id, known)
        copy = partial(begin_fork, self._runner.journal, sealed, fork_id, lost)
        await self._hub.fork(fork_id, ResumeRequested(origin.by), copy)
        return Heard(origin.run_id, fork_id)

    async def rested(self, run_id: str, *, wait_ms_max: int = REST_WAIT_MS_MAX) -> None:
        """Wait until no other process drives a run, guarded ones excepted; raises RequestRejected where one still does."""
        for _ in range(wait_ms_max // WATCH_POLL_MS):
            entry = await self._expect(run_id)
            is_left = entry.ending or entry.listing.mode == GUARD_MODE or run_id in self._hub.drivers
            if is_left or not await self.store.leases.is_held(run_id):
                return
            await asyncio.sleep(WATCH_POLL_MS / 1000)
        message = (
            f"run {run_id} was heard and is still driven by another process after {wait_ms_max} ms; look at it later"
        )
        raise RequestRejected(RUN_STILL_DRIVEN, message, {"run_id": run_id})

    async def rebuild(self) -> Rebuilt:
        """Make anew whatever the store derives from turns: the index of runs, sessions, quotas, what became of signals."""
        return await rebuild(self.store, self.quotas)

    async def end_orphans(self) -> list[str]:
        """Cancel the runs whose parent has ended and could not tell them; gives the ids of those that heard it."""
        ended = []
        for orphan in await orphans(self.store.catalogue):
            # One that may not be gone on with says so when somebody asks for it, and keeps the others from nothing.
            with suppress(RequestRejected):
                await self._children.end(orphan.run_id, str(uuid4()))
                ended.append(orphan.run_id)
        return ended

    async def session(self, session_id: str) -> Session:
        """What was said in a session and what it keeps, whichever process its runs were driven by."""
        last = await last_run(self.store.catalogue, self._runner, session_id)
        return await session_of(session_id, last, self._runner.text)

    async def text(self, text: Text) -> str:
        """A text of a run in full, wherever it lives."""
        return await self._runner.text(text)

    async def note(self, run_id: str, by: str, key: str, value: str) -> None:
        """Keep an entry for the session of a run; the value is a JSON text."""
        await self._expect(run_id)
        ((key, value),) = check_entries([(key, value)])
        self._check_name("by", by)
        await self._hub.note(run_id, SessionNoted(check_person(by), key, value))

    def guard(self) -> "Guard":
        """Judges the calls of agents that run elsewhere, each conversation a run of this store."""
        # Only those who guard other people's agents pay for the protocol.
        from remit.orchestrate.guard.guard import guard_beside

        halts, begin = (lambda: self._halts.standing), self.quotas.begin
        return guard_beside(self._post, self._new_id, halts, begin, self._check_name, self._owner)

    async def watch(self, run_id: str, *, after: int = -1) -> AsyncIterator[Turn]:
        """The turns of a run as they are written, here or elsewhere, until it has ended or nobody drives it."""
        await self._expect(run_id)
        quiet = 0
        while True:
            entry = await self.store.catalogue.entry(run_id)
            is_resting = entry is None or bool(entry.ending or entry.waiting_for)
            for data in await self.store.journal.read(run_id, after=after):
                turn = decode_turn(data)
                after, quiet = turn.seq, 0
                yield turn
            is_left = is_resting or (quiet >= WATCH_QUIET and not await self.store.leases.is_held(run_id))
            if is_left and run_id not in self._hub.drivers:
                return
            quiet += 1
            await asyncio.sleep(WATCH_POLL_MS / 1000)

    async def begun(self) -> None:
        """Wait until whatever is being begun or told here is written; nothing of it is waited for any longer."""
        await self._hub.steps.wait_once()

    async def settle(self, run_id: str = "") -> None:
        """Wait until everything that moves here rests, parents of children included; or only what belongs to a run."""
        await self._hub.settle(run_id)

    async def close(self) -> None:
        """Stop driving runs and leave the store; every run can be resumed."""
        await self._hub.close()
        await self._post.close()
        await self.store.close()

    @property
    def abandoned(self) -> tuple[Abandoned, ...]:
        """The calls of tools that ignored that they were told to stop and may still be running, in threads of this process."""
        return self._performers.abandoned

    async def state_of(self, run_id: str) -> RunState:
        """A run as it stands: once it rests when it is driven here, else as its journal tells.

        Raises what broke its driver, if one did here and nobody has taken the run up since.
        """
        await self._expect(run_id)
        if (error := self._hub.broken.get(run_id)) is not None:
            raise error
        while True:
            driver = self._hub.drivers.get(run_id)
            state = await self._hub.at_rest(driver) if driver is not None else (await self._runner.load(run_id)).state
            # What a child asked may have been answered: while the child goes on, its parent does not rest either.
            if state.ending is not None or not state.held or not await self._hub.settle_beneath(run_id):
                return state

    async def _check_halts(self, run_id: str) -> None:
        """Refuse to go on with a run that a halt holds back; where nothing is halted, nobody looks at the run."""
        if self._halts.standing.halts:
            await self._halts.refresh()
            self._halts.check_resume((await self._runner.load(run_id)).state)

    async def _end_orphan(self, entry: RunEntry) -> RunEntry | None:
        """Cancel what was left behind of a run and those above it; gives where that began."""
        orphan = await orphan_above(self.store.catalogue, entry)
        if orphan is not None:
            await self._children.end(orphan.run_id, str(uuid4()))
        return orphan

    async def _expect(self, run_id: str) -> RunEntry:
        entry = await self.store.catalogue.entry(run_id)
        # A run that is listed and has no turn was damaged; there is nothing to go on with.
        if entry is None or not entry.turns:
            raise await self.archive.absent(run_id)
        return entry


def replay_export(export: Export) -> Audit:
    """A run that was carried here as a file, decided again with no model and no tool."""
    return audit(export.data, export.blobs.get)


class GraphShown(Record):
    """A graph that may run, and how it looks."""

    name: str
    version: str
    nodes: int
    edges: int
    mermaid: str


def check_graph(path: Path) -> GraphShown:
    """The graph in a file; raises RequestRejected with every problem when it may not run."""
    # Only those who read a graph pay for YAML.
    from remit.orchestrate.graph_file import read_graph

    compiled = compile_graph(read_graph(path))
    graph = compiled.graph
    return GraphShown(graph.name, compiled.version, len(graph.nodes), len(graph.edges), draw_mermaid(compiled))


def constrainer(
    schema: JsonObject | None = None, grammar: str | None = None, *, repair: bool = True, strict: bool = False
) -> "Constrainer":
    """The constraint stack alone, for texts that some model has said already."""
    # Only those who constrain texts pay for what reads them.
    from remit.orchestrate.constraining import Constrainer

    return Constrainer(schema, grammar, repair=repair, strict=strict)


def boundary_at(said: object) -> Boundary:
    """The boundary that is handed over, that has this name, or that stands in this file."""
    # Only those who read a boundary pay for YAML.
    from remit.orchestrate.boundary_file import boundary_at

    return boundary_at(said)


def goal_at(said: object) -> Goal | None:
    """The goal that is handed over, that a mapping describes, or that stands in this file; None for none."""
    # Only those who have a goal pay for what reads it.
    from remit.orchestrate.goal_file import goal_at

    return goal_at(said)


def check_boundary(
    boundary: Boundary,
    tools: tuple[ToolDefinition, ...] = (),
    graph: Graph | None = None,
    keyless: tuple[str, ...] = (),
) -> BoundaryChecked:
    """What a boundary does to these tools, and the tier of a graph against the highest it allows."""
    from remit.orchestrate.boundary_report import checked

    return checked(boundary, tools, graph, keyless)


def show_boundary(boundary: Boundary) -> BoundaryShown:
    """A boundary in words, by its six dimensions, and as its file says it."""
    from remit.orchestrate.boundary_report import described

    return described(boundary)


def compare_boundaries(first: Boundary, second: Boundary) -> tuple[Difference, ...]:
    """What the second boundary allows more than the first, and what less."""
    from remit.orchestrate.boundary_diff import differences

    return differences(first, second)
