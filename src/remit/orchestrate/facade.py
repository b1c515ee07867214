"""The facade: submit, signal, watch, result. The verbs that every door uses.

Rule 1: a door turns what it is given into a request or a signal, and what comes back into its own form; nothing else.
Rule 2: ids that a request lacks are given here; whatever cannot become a run is refused here, before anything began.
Rule 3: a System lives in the event loop it is used in. Closing it stops its drivers; every run can be resumed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from os import urandom
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from remit.core.arrivals import SessionNoted, SourcesAccepted
from remit.core.boundary import Boundary
from remit.core.boundary_reports import BoundaryChecked, BoundaryShown, Difference
from remit.core.codec import decode_turn, plain
from remit.core.commands import (
    AskHuman,
    CallCode,
    CallModel,
    CallTool,
    CancelCommand,
    ForkRun,
    ReconcileTool,
    Retrieve,
    StartChild,
)
from remit.core.contract import Mode, SystemRequest, SystemResponse, ToolCallMade
from remit.core.envelope import check_request
from remit.core.events import Turn
from remit.core.graph import Graph
from remit.core.manifest import Manifest, Source, make_manifest
from remit.core.queue import QueueLimits
from remit.core.quota import Quota
from remit.core.record import JsonObject, Record, Text, replace
from remit.core.signals import Signal, UserSignal, check_signal
from remit.core.signing import Signer
from remit.core.storage import RunEntry
from remit.core.tools import ToolDefinition
from remit.core.values import Output
from remit.inference.specs import engine_spec
from remit.kernel.draw import draw_mermaid
from remit.kernel.graph import compile_graph
from remit.kernel.intake import check_intake
from remit.kernel.state import RunState
from remit.kernel.tier import check_tier
from remit.observe.execution import response_of
from remit.observe.export import Export
from remit.orchestrate.archive import Archive
from remit.orchestrate.executors.child import ChildExecutor
from remit.orchestrate.executors.code import CodeExecutor
from remit.orchestrate.executors.human import HumanExecutor
from remit.orchestrate.executors.model import ModelExecutor
from remit.orchestrate.executors.retrieve import RetrieveExecutor
from remit.orchestrate.executors.tool import Abandoned, ToolExecutor
from remit.orchestrate.foreseeing import Foreseer
from remit.orchestrate.hub import FindKit, Hub, RunHeld
from remit.orchestrate.in_process import InProcessDispatch
from remit.orchestrate.kit import STANDARD_TERMS, Kit, Terms
from remit.orchestrate.kits import engine_sources
from remit.orchestrate.orphans import left_behind, orphan_above, orphans
from remit.orchestrate.patterns.choosing import check_room, graph_for
from remit.orchestrate.planning import check_planning, plan_for
from remit.orchestrate.ports import Blobs, Catalogue, Clock, Inbox, Journal, Ledger, Locks, Receipts, Snapshots
from remit.orchestrate.post import Post
from remit.orchestrate.queues import Queues
from remit.orchestrate.quotas import Quotas
from remit.orchestrate.replay import Audit, audit
from remit.orchestrate.runner import Runner
from remit.orchestrate.sessions import Session, check_entries, last_run, linked, session_of
from remit.orchestrate.shaping import check_shapes
from remit.orchestrate.step_values import read
from remit.rerank.router import check_routing
from remit.tool.vault import NO_SECRETS, Vault

if TYPE_CHECKING:
    from remit.orchestrate.constraining import Constrainer
    from remit.orchestrate.guarding import Guard

# How often a watcher looks for turns that another process may have written.
WATCH_POLL_MS = 50
# After so many looks in vain it is asked whether anybody drives the run at all; a paused or crashed one may rest unlisted.
WATCH_QUIET = 10

# What the headers that carry traces have room for.
_TRACE_BYTES = 16

NOTHING: Mapping[str, str] = MappingProxyType({})


class Store(Protocol):
    """Where runs are kept, and how their holders find each other."""

    @property
    def journal(self) -> Journal:
        """Turns."""

    @property
    def blobs(self) -> Blobs:
        """Long texts."""

    @property
    def snapshots(self) -> Snapshots:
        """States that need not be folded again."""

    @property
    def catalogue(self) -> Catalogue:
        """Which runs there are."""

    @property
    def ledger(self) -> Ledger:
        """What runs count for their tenants."""

    @property
    def inbox(self) -> Inbox:
        """What people left for runs."""

    @property
    def locks(self) -> Locks:
        """Who drives what."""

    @property
    def receipts(self) -> Receipts:
        """What was done about the items of queues."""

    async def close(self) -> None:
        """Leave everything written."""


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
    ) -> None:
        self.store = store
        self.archive = Archive(store, signer)
        self.queues = Queues(store, clock, queues)
        self.quotas = Quotas(store, quotas, clock)
        self._new_id = new_id
        self._foreseer = Foreseer(store.catalogue, store.journal)
        executors: dict[type, object] = {}
        # One who performs calls fills secrets in, and both look for them in what comes back.
        dispatch = InProcessDispatch(executors, clock, secrets)  # type: ignore[arg-type]  # filled below, one row per command
        self._runner = Runner(
            journal=self.quotas.journal, blobs=store.blobs, clock=clock, dispatch=dispatch, snapshots=store.snapshots
        )
        self._hub = Hub(self._runner, dispatch, store.locks, find_kit)
        self._children = ChildExecutor(self._hub, store.inbox, store.catalogue)
        self._post = Post(self._hub, store.inbox, store.catalogue)
        self._hub.on_taken, self._hub.on_driven = self._post.hear_waiting, self._post.keep_watch
        kit_of, text = self._hub.kit_of, self._runner.text
        self._tools = tools = ToolExecutor(kit_of, text, self._hub.late, secrets)
        executors |= {
            CallModel: ModelExecutor(kit_of, text),
            CallTool: tools.call,
            ReconcileTool: tools.reconcile,
            CallCode: CodeExecutor(kit_of, text),
            Retrieve: RetrieveExecutor(kit_of, text),
            StartChild: self._children.start,
            CancelCommand: self._children.cancel,
            ForkRun: self._children.fork,
        }
        if self.queues.limits:
            # Where no queue has a limit, nobody has to look whether there is room.
            executors[AskHuman] = HumanExecutor(self.queues).admit

    async def submit(
        self, request: SystemRequest, kit: Kit, terms: Terms = STANDARD_TERMS, *, entries: Mapping[str, str] = NOTHING
    ) -> str:
        """Start a run and return its id; it goes on by itself. `entries` are kept for its session, as JSON texts."""
        manifest = await self._manifest(request, kit, terms, entries)
        driver = await self.quotas.begin(manifest, lambda assigned: self._hub.begin(assigned, kit))
        return driver.live.run_id

    async def run(
        self, request: SystemRequest, kit: Kit, terms: Terms = STANDARD_TERMS, *, entries: Mapping[str, str] = NOTHING
    ) -> SystemResponse:
        """Start a run and wait until it has ended or waits for people."""
        manifest = await self._manifest(request, kit, terms, entries)
        driver = await self.quotas.begin(manifest, lambda assigned: self._hub.begin(assigned, kit))
        return await self._response(await self._hub.at_rest(driver))

    async def result(self, run_id: str) -> SystemResponse:
        """How a run ended, or how it stands once it rests here."""
        return await self._response(await self.state_of(run_id))

    async def resume(
        self, run_id: str, *, kit: Kit | None = None, accepted: tuple[Source, ...] = (), by: str = ""
    ) -> SystemResponse:
        """Go on with a run after a crash or an answer, until it rests. Code that changed must have been accepted.

        A run whose parent has ended is cancelled instead.
        """
        orphan = await self._end_orphan(await self._expect(run_id))
        if accepted and orphan is None:
            await self._hub.note(run_id, SourcesAccepted(by, accepted))
        driver = await self._hub.take_up(run_id, kit)
        return await self._response(await self._hub.at_rest(driver))

    async def signal(self, signal: UserSignal, *, kit: Kit | None = None) -> Heard:
        """Tell a run something; raises RemitError with a code when it does not want to hear it.

        A run whose kit cannot be loaded again goes on with the one that is given here.
        """
        check_signal(signal)
        entry = await self._expect(signal.run_id)
        if signal.type is not Signal.CANCEL and (orphan := await self._end_orphan(entry)) is not None:
            raise left_behind(signal.run_id, orphan)
        if kit is not None:
            self._hub.lend(signal.run_id, kit)
            # When a child ends, its parent is taken up.
            self._hub.lend(signal.run_id.partition(".")[0], kit)
        turn, rests_because = await self._post.deliver(signal)
        if signal.type is not Signal.RETRY:
            return Heard(signal.run_id, rests_because=rests_because)
        live = await self._runner.load(signal.run_id)
        # A retry that another process heard stands among the parting commands, the newest last.
        decisions = live.state.parting if turn is None else turn.decisions
        order = [decision for decision in decisions if isinstance(decision, ForkRun)][-1]
        # Whoever heard the retry has made the fork, as a rule; if that failed, the sender learns why.
        if kit is not None:
            self._hub.lend(order.run_id, kit)
        await self._children.fork(live, order)
        with suppress(RunHeld):  # Then another process drives it.
            await self._hub.take_up(order.run_id, kit)
        return Heard(signal.run_id, order.run_id)

    async def end_orphans(self) -> list[str]:
        """Cancel the runs whose parent has ended and could not tell them; gives their ids."""
        found = await orphans(self.store.catalogue)
        for orphan in found:
            await self._children.end(orphan.run_id, str(uuid4()))
        return [orphan.run_id for orphan in found]

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
        await self._hub.note(run_id, SessionNoted(by, key, value))

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
            if run_id not in self._hub.drivers and (is_resting or (quiet >= WATCH_QUIET and self._is_left(run_id))):
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
        return self._tools.abandoned

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

    def _is_left(self, run_id: str) -> bool:
        """Whether nobody drives a run, in whatever process: its lock is free."""
        is_free = self.store.locks.take(run_id)
        if is_free:
            self.store.locks.release(run_id)
        return is_free

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

    async def _response(self, state: RunState) -> SystemResponse:
        outputs = {step: await self._output(output) for step, output in state.outputs.items()}
        response = response_of(state, await self._runner.text(state.answer), outputs)
        # Without tools no child can have called one, and then nobody needs to read its journal.
        if state.children and state.tools:
            response = replace(response, tool_calls_made=await self._calls_of_children(state, response))
        if response.waiting_for is None or not state.held:
            return response
        # What a child asks, its parent waits for: whoever looks at the parent must learn whom to answer.
        packets = list(response.waiting_for.packet_ids)
        for command_id in state.held:
            child = (await self._runner.load(f"{state.run_id}.{command_id}")).state
            # A child that was deleted asks nothing; its parent learns that it is lost when it goes on.
            waiting = None if child.seq < 0 else (await self._response(child)).waiting_for
            packets += waiting.packet_ids if waiting is not None else ()
        return replace(response, waiting_for=replace(response.waiting_for, packet_ids=tuple(packets)))

    async def _output(self, output: Output) -> object:
        return plain(read(output.kind, await self._runner.text(output.text)))

    async def _calls_of_children(self, state: RunState, response: SystemResponse) -> tuple[ToolCallMade, ...]:
        """Every tool call that was made in a caller's name: by the run, then by the children that its nodes declared."""
        made = list(response.tool_calls_made)
        for trace in state.children:
            child = (await self._runner.load(f"{state.run_id}.{trace.command_id}")).state
            made += () if child.seq < 0 else (await self._response(child)).tool_calls_made
        return tuple(made)

    async def _manifest(
        self, request: SystemRequest, kit: Kit, terms: Terms, entries: Mapping[str, str] = NOTHING
    ) -> Manifest:
        """Everything the run is started with, checked and pinned."""
        entered = check_request(_identified(request))
        plan = None
        if entered.mode is Mode.PLAN and terms.graph is None:
            check_planning(terms.boundary, has_plan=terms.plan is not None)
            plan = await plan_for(entered, terms.plan, kit.planner, self._runner.clock.now_ms())
        graph = terms.graph or graph_for(entered, kit, terms, plan)
        check_room(graph, terms)
        check_shapes(entered.output.grammar or "", graph)
        check_routing(terms.router)
        session = None
        if entered.session_id:
            last = await last_run(self.store.catalogue, self._runner, entered.session_id)
            read = () if last is None else await self._runner.labels_of(last.run)
            entered, session = linked(entered, last, check_entries(entries.items()), read)
        manifest = make_manifest(
            run_id=self._new_id(),
            request=entered,
            boundary=terms.boundary,
            budget=terms.budget,
            graph=graph,
            models=tuple(engine.model_info() for engine in kit.engines.values()),
            engines=tuple(engine_spec(engine) for engine in kit.engines.values()),
            tools=kit.tools.definitions,
            sources=(*kit.tools.sources, *engine_sources(kit.engines.values()), *kit.sources),
            goal=terms.goal,
            role=terms.role,
            retrieves_context=kit.context is not None,
            router=terms.router,
            session=session,
            plan=None if plan is None else plan.trace,
            filters=tuple(kit.filters),
            cheaper=kit.cheaper,
        )
        check_tier(manifest)
        check_intake(manifest, self._runner.clock.now_ms())
        return await self._foreseer.foreseen(manifest)


def _identified(request: SystemRequest) -> SystemRequest:
    """The request with the ids it lacks."""
    return replace(
        request, request_id=request.request_id or str(uuid4()), trace_id=request.trace_id or urandom(_TRACE_BYTES).hex()
    )


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


def guard() -> "Guard":
    """The authority layer alone, for runs that somebody else drives."""
    # Only those who guard other people's agents pay for the gate.
    from remit.orchestrate.guarding import Guard

    return Guard()


def boundary_at(said: object) -> Boundary:
    """The boundary that is handed over, that has this name, or that stands in this file."""
    # Only those who read a boundary pay for YAML.
    from remit.orchestrate.boundary_file import boundary_at

    return boundary_at(said)


def check_boundary(
    boundary: Boundary, tools: tuple[ToolDefinition, ...] = (), graph: Graph | None = None
) -> BoundaryChecked:
    """What a boundary does to these tools, and the tier of a graph against the highest it allows."""
    from remit.orchestrate.boundary_report import checked

    return checked(boundary, tools, graph)


def show_boundary(boundary: Boundary) -> BoundaryShown:
    """A boundary in words, by its six dimensions, and as its file says it."""
    from remit.orchestrate.boundary_report import described

    return described(boundary)


def compare_boundaries(first: Boundary, second: Boundary) -> tuple[Difference, ...]:
    """What the second boundary allows more than the first, and what less."""
    from remit.orchestrate.boundary_diff import differences

    return differences(first, second)
