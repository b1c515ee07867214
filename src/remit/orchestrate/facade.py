"""The facade: submit, signal, watch, result. The verbs that every door uses, for a principal.

Rule 1: a door turns what it is given into a request or a signal, and what comes back into its own form; nothing else.
Rule 2: a System lives in the event loop it is used in. Closing it stops its drivers; every run can be resumed.
Rule 3: every verb says which scope it takes. The process that opened the store acts for itself and has them all;
        `acting_for` gives the same system for a principal, to whom nothing exists but what is of its tenant.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING
from uuid import uuid4

from remit.core.declared_arguments import checks_arguments
from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import SessionNoted, SourcesAccepted
from remit.core.journal.signing import Signer
from remit.core.journal.storage import BlobMissing, RunEntry
from remit.core.journal.turn import Turn
from remit.core.limits.queue import QueueLimits
from remit.core.limits.quota import Quota
from remit.core.record import BlobRef, Text, replace
from remit.core.run.contract import GUARD_MODE, ExecutionContext, SystemRequest, SystemResponse
from remit.core.run.halt import Halt
from remit.core.run.manifest import Manifest, Source
from remit.core.run.messages import user_message
from remit.core.run.person import check_person
from remit.core.run.principal import LOCAL, Principal, Scope, check_principal, expect_scope, person_for
from remit.core.run.run_events import Subject
from remit.core.run.signals import SIGNAL_INVALID, Signal, SignalOutcome, UserSignal, check_signal
from remit.core.secrets.secret_search import covered
from remit.kernel.state import RunState
from remit.observe.linked_turns import references
from remit.observe.views.execution import execution_context
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.sessions import NOTHING, Session, check_entries, last_run, session_of
from remit.orchestrate.executors.division import Division, division_of
from remit.orchestrate.executors.human import OrderPreview, order_preview
from remit.orchestrate.executors.tool import Abandoned
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.history.archive import Archive
from remit.orchestrate.history.custody import Signers, expect_left_behind
from remit.orchestrate.history.repair import Rebuilt, rebuild
from remit.orchestrate.history.replay import replay_export as replay_export  # noqa: PLC0414  # for doors
from remit.orchestrate.loop.child_runs import left_behind, orphan_above, orphans
from remit.orchestrate.loop.driver import Driver
from remit.orchestrate.loop.halt_switch import Halted, HaltWatch, is_told, told_to
from remit.orchestrate.loop.hub import FindKit, Hub
from remit.orchestrate.loop.offspring import Lineages
from remit.orchestrate.people.grants import Grants
from remit.orchestrate.people.queues import Queues
from remit.orchestrate.ports import Clock, Store
from remit.orchestrate.run_handle import Events, Run
from remit.orchestrate.setup.kit import STANDARD_TERMS, Kit, Terms
from remit.orchestrate.store_in_use import in_use
from remit.orchestrate.system_parts import SystemParts
from remit.orchestrate.tenants.policies import Policies
from remit.orchestrate.tenants.quota_ledger import Quotas
from remit.orchestrate.tenants.tenancy import Acting, Seen, Standings, TenantStandings
from remit.tool.secrets.vault import NO_SECRETS, Vault

if TYPE_CHECKING:
    from remit.orchestrate.executors.carrier import Carrier
    from remit.orchestrate.guard.guard import Guard

# How often a caller that waits for another process to let a run go looks whether it has.
REST_POLL_MS = 50
# A caller that answered a run that another process drives waits so long for its next rest: a person stays at the terminal.
REST_WAIT_MS_MAX = 600_000
RUN_STILL_DRIVEN = "RUN_STILL_DRIVEN"


@checks_arguments("request", "terms", "signal", "principal", "at")
class System(Acting):
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
        policies: Policies | None = None,
        division: Division | None = None,
    ) -> None:
        division, self._own_store = division or division_of(store), store
        self._store = store = in_use(store)
        self._signer, self._signers = signer, signers
        self._check_name = secrets.check_name
        self._quotas = Quotas(store, quotas, clock)
        self._sealer = Sealer(store.seals, secrets)
        self.queues = Queues(store, clock, queues, secrets.check_name)
        self._act(LOCAL)
        parts = SystemParts(
            store,
            clock=clock,
            find_kit=find_kit,
            new_id=new_id,
            secrets=secrets,
            owner=owner,
            name_model=name_model,
            policies=policies,
            division=division,
            quotas=self._quotas,
            sealer=self._sealer,
            queues=self.queues,
            custody=self._custody,
        )
        self._halts, self._work, self._bus = parts.halts, parts.work, parts.bus
        self._runner, self._grants, self._responses = parts.runner, parts.grants, parts.responses
        self._manifests, self._hub, self._children = parts.manifests, parts.hub, parts.children
        self._copies, self._post, self._performers = parts.copies, parts.post, parts.performers

    def acting_for(self, principal: Principal) -> "System":
        """The system for a principal: nothing but what is of its tenant exists there, and its scopes say what it may do.

        It costs next to nothing, and any number of them work side by side. The caller that opened the system closes it.
        """
        self._expect_scope(Scope.OPERATE, "acting for others")
        acting = copy(self)
        acting._act(check_principal(principal))  # noqa: SLF001 - a system of its own
        return acting

    def _act(self, principal: Principal) -> None:
        self.principal = principal
        self._seen = seen = Seen(self._store, principal, self._expect_open)
        self._custody = seen.custody(self._signers)
        self.archive = Archive(seen, self._signer, self._custody)
        self.queues = self.queues.acting_for(principal, seen, seen.behind)
        self.quotas: Standings = TenantStandings(self._quotas, principal, self._expect_open)
        self.lineages = Lineages(seen.runs, self._expect_open)
        # A caller must not learn whether it guessed a secret of the house.
        self.covered = self._sealer.covered if principal is LOCAL else covered

    @property
    def grants(self) -> Grants:
        """The standing grants: approvals that people gave beforehand, for more than one run."""
        return self._grants.acting_for(self.principal, self._seen.behind, self._expect_open)

    @property
    def store(self) -> Store:
        """Where runs are kept, for its operator."""
        expect_scope(self.principal, Scope.OPERATE, "the store")
        return self._own_store

    async def start(
        self,
        request: SystemRequest | str,
        kit: Kit,
        terms: Terms = STANDARD_TERMS,
        *,
        entries: Mapping[str, str] = NOTHING,
        listener: Listener | None = None,
        chunks: bool = False,
    ) -> Run[SystemResponse]:
        """Start a run, which goes on by itself; a text is what a user says. `entries` are kept for its session, as JSON.

        A listener is told of the run and its children from the first turn on, while they are driven here. With `chunks`,
        the first who follows the handle hears what the model says, too.
        """
        manifest = await self._drafted(request, kit, terms, entries)
        followed = self._followed(manifest.run_id, -1, manifest.request.mode, chunks=True) if chunks else None
        await self._begin(manifest, kit, listener)
        return Run(self, manifest.run_id, _as_it_is, kit, followed)

    async def submit(
        self,
        request: SystemRequest | str,
        kit: Kit,
        terms: Terms = STANDARD_TERMS,
        *,
        entries: Mapping[str, str] = NOTHING,
    ) -> str:
        """Start a run and return its id."""
        return (await self._begin(await self._drafted(request, kit, terms, entries), kit, None)).live.run_id

    async def run(
        self,
        request: SystemRequest | str,
        kit: Kit,
        terms: Terms = STANDARD_TERMS,
        *,
        entries: Mapping[str, str] = NOTHING,
        listener: Listener | None = None,
    ) -> SystemResponse:
        """Start a run and wait until it has ended or waits for people."""
        driver = await self._begin(await self._drafted(request, kit, terms, entries), kit, listener)
        state = await self._hub.at_rest(driver)
        return await (Run(self, state.run_id, _as_it_is) if self._hub.on_left else self._responses.of(state))

    async def find(self, run_id: str, *, kit: Kit | None = None) -> Run[SystemResponse]:
        """A run that was started before, here or elsewhere; it goes on with the kit where its own cannot be loaded again."""
        await self._expect(run_id, Scope.READ, "find")
        return Run(self, run_id, _as_it_is, kit)

    async def _drafted(
        self, request: SystemRequest | str, kit: Kit, terms: Terms, entries: Mapping[str, str]
    ) -> Manifest:
        self._expect_scope(Scope.START, "submit")
        asked = SystemRequest((user_message(request),)) if isinstance(request, str) else request
        return await self._manifests.of(asked, kit, terms, entries, self.principal)

    async def _begin(self, manifest: Manifest, kit: Kit, listener: Listener | None) -> Driver:
        end = None if listener is None else self.listen(listener, manifest.run_id)
        try:
            return await self._quotas.begin(manifest, lambda assigned: self._hub.begin(assigned, kit))
        except BaseException:
            if end is not None:
                end()
            raise

    def listen(self, listener: Listener, run_id: str = "") -> Callable[[], None]:
        """Call functions with what happens in a run and its children, or in every run, while they are driven here.

        Gives what ends it; the listener of a run is let go when the run has ended.
        """
        return self._bus.listen(listener, self._subject(Subject(run_id, children=True), "listen"))

    async def result(self, run_id: str) -> SystemResponse:
        """How a run ended, or how it stands once it rests here."""
        return await self._responses.of(await self.state_of(run_id))

    async def order_preview(self, run_id: str) -> OrderPreview:
        """How the orders that a run asks about would read if a person changed them."""
        await self._expect(run_id, Scope.READ, "a list of orders")
        return await order_preview(run_id, self._store.journal, self._store.blobs)

    async def execution(self, run_id: str) -> ExecutionContext:
        """A run as one object: what was fixed when it started, where it stands, what it selected and found."""
        return execution_context(await self.state_of(run_id))

    async def resume(
        self, run_id: str, *, kit: Kit | None = None, accepted: tuple[Source, ...] = (), by: str = ""
    ) -> SystemResponse:
        """Go on with a run after a crash or an answer, until it rests. Code that changed must have been accepted.

        A run whose parent has ended is cancelled instead.
        """
        state = await self._hub.at_rest(await self._taken_up(run_id, kit, accepted, by))
        return await (Run(self, run_id, _as_it_is) if self._hub.on_left else self._responses.of(state))

    async def take_up(self, run_id: str, *, kit: Kit | None = None) -> Run[SystemResponse]:
        """Go on with a run without waiting: gives its handle; the run goes on by itself."""
        await self._taken_up(run_id, kit, (), "")
        return Run(self, run_id, _as_it_is, kit)

    async def _taken_up(self, run_id: str, kit: Kit | None, accepted: tuple[Source, ...], by: str) -> Driver:
        entry = await self._expect(run_id, Scope.SIGNAL, "resume")
        if accepted:
            self._expect_scope(Scope.ADMIN, "accepting changed code")
        await self._check_halts(run_id)
        orphan = await self._end_orphan(entry)
        by = self._person(by)
        if accepted and orphan is None:
            await self._hub.note(run_id, SourcesAccepted(check_person(by), accepted))
        return await self._hub.take_up(run_id, kit)

    async def halt(
        self, why: str, *, by: str = "", tenant: str = "", tool: str = "", model: str = "", run: str = ""
    ) -> Halted:
        """Stop dispatch for one of these, or for everything, in every process on the store, until it is lifted.

        From now on nothing of it goes out. What is under way is called off, here and elsewhere; what could not be, in
        time, is named.
        """
        scope = await self._halting(tenant, tool, model, run)
        entry = await self._halts.write(scope, by=self._person(by), why=why, principal=self.principal)
        self._hub.call_off()
        watch = HaltWatch(self._halts, self._runner, self._seen.runs, self._store.leases)
        return Halted(entry, await watch.settled())

    async def lift(
        self, *, by: str = "", why: str = "", tenant: str = "", tool: str = "", model: str = "", run: str = ""
    ) -> Halt:
        """Lift a halt, of exactly what was halted; the runs that it paused go on when they are resumed."""
        scope = await self._halting(tenant, tool, model, run, is_lift=True)
        return await self._halts.write(scope, by=self._person(by), why=why, is_lift=True, principal=self.principal)

    def halts(self) -> tuple[Halt, ...]:
        """What is halted now, the oldest first: for a tenant, what holds back all of its runs."""
        self._expect_scope(Scope.READ, "halts")
        standing, whom = self._halts.standing.halts.values(), self.principal
        return tuple([told_to(halt, whom) for halt in standing if is_told(halt, whom)])

    async def signal(self, signal: UserSignal, *, kit: Kit | None = None) -> SignalOutcome:
        """Tell a run something; raises RemitError with a code when it does not want to hear it.

        A run whose kit cannot be loaded again goes on with the one that is given here.
        """
        signal = as_declared(signal, UserSignal, "signal", SIGNAL_INVALID)
        if self.principal is not LOCAL:
            signal = replace(signal, user_id=person_for(self.principal, signal.user_id, "user_id"))
        check_signal(signal)
        for field in ("user_id", "signal_id", "channel_type"):
            self._check_name(field, getattr(signal, field))
        is_answer = signal.type in (Signal.APPROVE, Signal.REJECT)
        entry = await self._expect(signal.run_id, Scope.APPROVE if is_answer else Scope.SIGNAL, signal.type.value)
        if signal.type is Signal.RETRY and self.principal is not LOCAL:
            await self._copies.may_be_had(signal.run_id, self.principal)
        if signal.type is not Signal.CANCEL and (orphan := await self._end_orphan(entry)) is not None:
            raise left_behind(signal.run_id, orphan)
        if signal.type is Signal.RESUME:
            await self._check_halts(signal.run_id)
        family = next(iter(entry.listing.lineage), signal.run_id)
        if kit is not None:
            self._hub.lend(signal.run_id, kit)
            # When a child ends, its parent is taken up.
            self._hub.lend(family, kit)
        fork_id, rests = await self._post.deliver(self._sealer.signal(signal, family))
        if signal.type is not Signal.RETRY:
            return SignalOutcome(signal.run_id, rests_because=rests)
        return SignalOutcome(signal.run_id, *await self._copies.retried(signal.run_id, fork_id, kit))

    async def fork(
        self, run_id: str, *, by: str = "", at: int | None = None, why: str = "", kit: Kit | None = None
    ) -> SignalOutcome:
        """Copy a run up to a turn, its last one unless one is named, and let the copy go on; the run stays as it is.

        What the run did after that turn, its fork asks a person about before it does the like. Raises RequestRejected
        where the run has no such turn.
        """
        await self._expect(run_id, Scope.START, "fork")
        state = await self._copies.may_be_had(run_id, self.principal)
        return SignalOutcome(run_id, *await self._copies.fork(state, at, check_person(self._person(by)), why, kit))

    async def restore(self, run_id: str, *, by: str = "", why: str, kit: Kit | None = None) -> SignalOutcome:
        """Accept that turns of a run are missing, and let a fork of what is left go on, which asks before any change.

        Raises RequestRejected where nothing is missing, or no reason is given.
        """
        await self._expect(run_id, Scope.START, "restore")
        state = await self._copies.may_be_had(run_id, self.principal)
        return SignalOutcome(run_id, *await self._copies.restore(state, check_person(self._person(by)), why, kit))

    async def rested(self, run_id: str, *, wait_ms_max: int = REST_WAIT_MS_MAX) -> None:
        """Wait until no other process drives a run, guarded ones excepted; raises RequestRejected where one still does.

        Where runs are left to workers, one that no process drives just now is taken up by the next.
        """
        for _ in range(wait_ms_max // REST_POLL_MS):
            entry = await self._expect(run_id, Scope.READ, "rested")
            is_over = entry.ending or entry.listing.mode == GUARD_MODE or run_id in self._hub.drivers
            if is_over or (not await self._store.leases.is_held(run_id) and await self.is_left(run_id, is_quiet=True)):
                # What was left because this system let it go has not come to rest.
                return self._expect_open(run_id)
            await asyncio.sleep(REST_POLL_MS / 1000)
        message = (
            f"run {run_id} was heard and is still driven by another process after {wait_ms_max} ms; look at it later"
        )
        raise RequestRejected(RUN_STILL_DRIVEN, message, {"run_id": run_id})

    async def rebuild(self) -> Rebuilt:
        """Make anew whatever the store derives from turns: the index of runs, sessions, quotas, what became of signals."""
        self._expect_scope(Scope.OPERATE, "rebuild")
        return await rebuild(self._store, self._quotas)

    async def end_orphans(self) -> list[str]:
        """Cancel the runs whose parent has ended and could not tell them; gives the ids of those that heard it."""
        self._expect_scope(Scope.OPERATE, "ending orphans")
        ended = []
        for orphan in await orphans(self._store.catalogue):
            # One that may not be gone on with says so when it is asked for, and keeps the others from nothing.
            with suppress(RequestRejected):
                await self._end_left_behind(orphan)
                ended.append(orphan.run_id)
        return ended

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> Session:
        """What was said in a session and what it keeps, no matter which process drove its runs.

        Each tenant has sessions of its own; whose is meant need be said only where several have one of this name.
        """
        last = await last_run(self._seen.catalogue, self._runner, session_id, tenant_id)
        return await session_of(session_id, last, self._runner.text)

    async def text(self, text: Text, *, run_id: str = "") -> str:
        """A text of a run in full, wherever it lives; a principal says of which run, and is given none that it does not hold."""
        self._expect_open(run_id)
        if isinstance(text, BlobRef) and self.principal is not LOCAL:
            await self._expect(run_id, Scope.READ, "text")
            if not any(text in references(turn) for turn in (await self.archive.history(run_id)).turns):
                raise BlobMissing(text.digest)
        return await self._runner.text(text)

    async def note(self, run_id: str, by: str, key: str, value: str) -> None:
        """Keep an entry for the session of a run; the value is a JSON text."""
        await self._expect(run_id, Scope.SIGNAL, "note")
        ((key, value),) = check_entries([(key, value)])
        await self._hub.note(run_id, SessionNoted(check_person(self._person(by)), key, value))

    def guard(self) -> "Guard":
        """Judges the calls of agents that run elsewhere, each conversation a run of this store; hears people by itself."""
        self._expect_scope(Scope.START, "guard")
        # Only those who guard other people's agents pay for the protocol.
        from remit.orchestrate.guard.guard import Guard
        from remit.orchestrate.guard.guard_parts import parts_beside

        halts, begin = (lambda: self._halts.standing), self._quotas.begin
        return Guard(parts_beside(self._post, self._manifests, halts, begin, self.principal, self._expect_open))

    def driving(self) -> "tuple[Hub, Carrier | None]":
        """What drives runs here and carries errands to workers, for who drives the runs of others."""
        self._expect_scope(Scope.OPERATE, "driving the runs of others")
        return self._hub, self._work.carrier

    async def watch(self, run_id: str, *, after: int = -1) -> AsyncIterator[Turn]:
        """The turns of a run as they are written, here or elsewhere, until it has ended or no process drives it."""
        await self._expect(run_id, Scope.READ, "watch")
        async for event in Events(self, run_id, after, chunks=False):
            assert event.turn is not None, "no pieces of answers were asked for"
            yield event.turn

    async def begun(self) -> None:
        """Wait until whatever is being begun or told here is written; nothing of it is waited for any longer."""
        expect_scope(self.principal, Scope.OPERATE, "begun")
        await self._hub.steps.wait_once()

    async def settle(self, run_id: str = "") -> None:
        """Wait until everything that moves here rests, parents of children included; or only what belongs to a run."""
        if run_id:
            await self._expect(run_id, Scope.READ, "settle")
        else:
            self._expect_scope(Scope.OPERATE, "settling everything")
        await self._hub.settle(run_id)

    async def close(self) -> None:
        """Stop driving runs and leave the store; every run can be resumed."""
        expect_scope(self.principal, Scope.OPERATE, "the store")
        await self._hub.close()
        await self._performers.close()
        if self._work.carrier is not None:
            await self._work.carrier.close()
        await self._post.close()
        await self._bus.close()
        await self._store.close()

    @property
    def abandoned(self) -> tuple[Abandoned, ...]:
        """The calls of tools that ignored that they were told to stop and may still be running, in threads of this process."""
        expect_scope(self.principal, Scope.OPERATE, "abandoned")
        return self._performers.abandoned

    async def state_of(self, run_id: str) -> RunState:
        """A run as it stands: once it rests when it is driven here, else as its journal tells.

        Raises what broke its driver, if one did here and the run was not taken up since.
        """
        await self._expect(run_id, Scope.READ, "looking at a run")
        if (error := self._hub.broken.get(run_id)) is not None:
            raise error
        while True:
            driver = self._hub.drivers.get(run_id)
            state = await (self._runner.state_at_rest(run_id) if driver is None else self._hub.at_rest(driver))
            # What a child asked may have been answered: while the child goes on, its parent does not rest either.
            if state.end.ending is not None or not state.children.waiting or not await self._hub.settle_beneath(run_id):
                return state

    async def _check_halts(self, run_id: str) -> None:
        """Refuse to go on with a run that a halt holds back; where nothing is halted, the run is not read."""
        if self._halts.standing.halts:
            await self._halts.refresh()
            self._halts.check_resume((await self._runner.load(run_id)).state)

    async def _end_orphan(self, entry: RunEntry) -> RunEntry | None:
        """Cancel what was left behind of a run and those above it; gives where that began."""
        if (orphan := await orphan_above(self._seen.runs, entry)) is not None:
            await self._end_left_behind(orphan)
        return orphan

    async def _end_left_behind(self, orphan: RunEntry) -> None:
        await expect_left_behind(self._store.journal, self._store.catalogue, self._store.log, orphan)
        await self._children.end(orphan.run_id, str(uuid4()))


async def _as_it_is(response: SystemResponse) -> SystemResponse:
    return response
