"""What of a store exists for a principal, and what it may do: the runs of its tenant, and whatever hangs on them.

Rule 1: everything that is looked up for a principal is looked up here. Whatever is not of its tenant is not found, by the
        same words and the same way as what was never started.
Rule 2: nothing here writes but receipts of what was found here, and what deletes or redacts a run.
Rule 3: a deleted run is of no tenant: what the log of heads remembers of it is for the operator of the store.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Protocol, Unpack

from remit.core.clipped import clipped
from remit.core.declared_arguments import checks_arguments
from remit.core.declared_types import as_declared, refusal
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.signing import SignedDeletion
from remit.core.journal.storage import Losses, Redacted, Removed, RunEntry, RunQuery, SignedHead, Stretch
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import QuotaStanding
from remit.core.page import check_limit
from remit.core.record import replace
from remit.core.run.contract import GUARD_MODE, Mode
from remit.core.run.halt import HaltScope
from remit.core.run.principal import (
    EVERY_TENANT,
    LOCAL,
    NO_TENANT,
    Principal,
    Scope,
    expect_scope,
    person_for,
    sees,
    tenant_seen,
)
from remit.core.run.request_checks import REQUEST_MALFORMED
from remit.core.run.run_events import Subject, expect_unreadable, system_closed
from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.bus.subscription import Subscription
from remit.orchestrate.history.archive import Archive
from remit.orchestrate.history.custody import Custody, Signers, why_absent
from remit.orchestrate.loop.halt_switch import Halts, scope_for
from remit.orchestrate.loop.hub import Hub
from remit.orchestrate.ports import Blobs, Catalogue, HeadLog, PastHalts, Receipts, Store, Turns

if TYPE_CHECKING:
    from remit.observe.cost.cost_report import CostReport, Prices

COSTS_INVALID = "COSTS_INVALID"

# Runs whose answer is made of what children of them say.
WORKS_BENEATH = frozenset({Mode.PLAN, Mode.REDUNDANT})


class Standings(Protocol):
    """Tells how tenants stand in their quotas."""

    async def standings(self, tenant_id: str) -> list[QuotaStanding]:
        """How a tenant stands in each of its quotas."""

    async def tenants(self, *, after: str | None = None, limit: int = 0) -> list[str]:
        """Every tenant that has a quota, behind a name, so many at most."""


class Seen:
    """The part of a store that a principal may read; each look takes the scope for it, and raises what `expect_open` does."""

    def __init__(self, store: Store, principal: Principal, expect_open: Callable[[], None]) -> None:
        self._principal = principal
        self._expect_open = expect_open
        self._takes_scope = True
        self._blobs = store.blobs
        # For those who look on behalf of a verb that takes another scope.
        self.runs: Catalogue = store.catalogue
        self._journal: Turns = store.journal
        self._log: HeadLog = store.log
        self._halts: PastHalts = store.halts
        self._receipts: Receipts = store.receipts
        if principal.tenant_id != EVERY_TENANT:
            self.runs = runs = TenantCatalogue(store.catalogue, principal.tenant_id)
            self._journal = TenantTurns(store.journal, runs)
            self._log = TenantHeadLog(store.log, runs)
            self._halts = NoHalts()
            self._receipts = TenantReceipts(store.receipts, runs)

    @property
    def behind(self) -> "Seen":
        """The view for verbs that take another scope: what exists is the same, and reading it takes none."""
        behind = copy(self)
        behind._takes_scope = False  # noqa: SLF001 - a copy of its own
        return behind

    def custody(self, signers: Signers | None) -> Custody:
        """Who looks after the runs that are seen."""
        return Custody(self._journal, self.runs, self._log, signers)

    async def absent(self, name: str) -> RequestRejected:
        """Why a run is not there."""
        return await why_absent(self._log, name)

    @property
    def journal(self) -> Turns:
        """The turns of the runs of the tenant."""
        self._expect_reader()
        return self._journal

    @property
    def blobs(self) -> Blobs:
        """Long texts, for callers that have read of them in a turn."""
        self._expect_reader()
        return self._blobs

    @property
    def catalogue(self) -> Catalogue:
        """The list of the runs of the tenant."""
        self._expect_reader()
        return self.runs

    @property
    def log(self) -> HeadLog:
        """The log of signed heads, as far as it tells of the runs of the tenant."""
        self._expect_reader()
        return self._log

    @property
    def halts(self) -> PastHalts:
        """The journal of halts, which is the operator's to verify."""
        self._expect_reader()
        return self._halts

    @property
    def receipts(self) -> Receipts:
        """The receipts for items of the tenant."""
        self._expect_reader()
        return self._receipts

    def _expect_reader(self) -> None:
        if self._takes_scope:
            expect_scope(self._principal, Scope.READ, "reading")
        self._expect_open()


class TenantCatalogue:
    """The runs of a tenant."""

    def __init__(self, catalogue: Catalogue, tenant_id: str) -> None:
        self._every = catalogue
        self._tenant_id = tenant_id

    async def entry(self, run_id: str) -> RunEntry | None:
        """One run, or None where it is not of the tenant."""
        found = await self._every.entry(run_id)
        return None if found is None or found.listing.tenant_id != self._tenant_id else found

    async def entries(self, **query: Unpack[RunQuery]) -> Sequence[RunEntry]:
        """The runs, newest first; of another tenant there are none."""
        before = query.get("before", "")
        if query.get("tenant_id") not in (None, self._tenant_id) or (before and await self.entry(before) is None):
            return ()
        query["tenant_id"] = self._tenant_id
        return await self._every.entries(**query)

    async def session(self, session_id: str, *, tenant_id: str | None = None) -> Sequence[RunEntry]:
        """The runs of a session, in order."""
        is_foreign = tenant_id not in (None, self._tenant_id)
        return () if is_foreign else await self._every.session(session_id, tenant_id=self._tenant_id)

    async def named(self, name: str, tenant_id: str) -> Sequence[RunEntry]:
        """The open runs that agents elsewhere name so."""
        return () if tenant_id != self._tenant_id else await self._every.named(name, tenant_id)

    async def alike(self, likeness: str, *, limit: int) -> Sequence[RunEntry]:
        """Runs that are alike; those of other tenants never are."""
        found = await self._every.alike(likeness, limit=limit)
        return [entry for entry in found if entry.listing.tenant_id == self._tenant_id]

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The signed heads kept with a run."""
        return () if await self.entry(run_id) is None else await self._every.heads(run_id)

    async def last_head(self, run_id: str) -> SignedHead | None:
        """The last of them."""
        return None if await self.entry(run_id) is None else await self._every.last_head(run_id)


class TenantTurns:
    """The turns of the runs of a tenant."""

    def __init__(self, journal: Turns, runs: TenantCatalogue) -> None:
        self._every = journal
        self._runs = runs

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`; none of a run of another tenant."""
        return Stretch() if await self._runs.entry(run_id) is None else await self._every.read(run_id, after=after)


class TenantHeadLog:
    """The signed heads of the runs of a tenant."""

    def __init__(self, log: HeadLog, runs: TenantCatalogue) -> None:
        self._every = log
        self._runs = runs

    async def last(self, run_id: str) -> SignedHead | None:
        """The head of the highest turn of a run that its signer signed."""
        return await self._every.last(run_id) if await self._is_ours(run_id) else None

    async def doubt(self, run_id: str, last: int) -> str:
        """Why a later turn of a run may have been known."""
        return await self._every.doubt(run_id, last) if await self._is_ours(run_id) else ""

    async def losses(self) -> Losses:
        """The runs of which turns are missing; what is gone altogether, it is unknown whose it was."""
        lost = await self._every.losses()
        return Losses(tuple([run_id for run_id in lost.behind if await self._is_ours(run_id)]))

    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        """The heads of a run, in the order of their turns."""
        return await self._every.heads(run_id) if await self._is_ours(run_id) else ()

    async def deletion(self, run_id: str) -> SignedDeletion | None:
        """Nothing: a run that was deleted is of no tenant."""
        return None

    async def _is_ours(self, run_id: str) -> bool:
        return await self._runs.entry(run_id) is not None


class TenantReceipts:
    """The receipts for the items of a tenant."""

    def __init__(self, receipts: Receipts, runs: TenantCatalogue) -> None:
        self._every = receipts
        self._runs = runs

    async def keep(self, receipt: Receipt) -> None:
        """Keep a receipt about what was found here."""
        await self._every.keep(receipt)

    async def kept(self, kind: ReceiptKind) -> Sequence[Receipt]:
        """The receipts of a kind, oldest first."""
        return [one for one in await self._every.kept(kind) if await self._runs.entry(one.run_id) is not None]


class NoHalts:
    """The journal of halts, for those who do not operate the store: nothing of it."""

    def since(self, number: int) -> Sequence[bytes]:
        """None."""
        return ()


@checks_arguments("limit")
class TenantStandings:
    """How the tenant of a principal stands in its quotas, or all tenants for a principal that sees them all."""

    def __init__(self, quotas: Standings, principal: Principal, expect_open: Callable[[], None]) -> None:
        self._every = quotas
        self._principal = principal
        self._expect_open = expect_open

    async def standings(self, tenant_id: str = "") -> list[QuotaStanding]:
        """How the tenant stands in each of its quotas; of others nothing is told, whether or not there are any."""
        self._expect_reader()
        whose = tenant_seen(self._principal, tenant_id)
        return [] if whose == NO_TENANT else await self._every.standings(whose)

    async def tenants(self, *, after: str | None = None, limit: int = 0) -> list[str]:
        """The tenant, if it has a quota; every tenant for a principal that sees them all."""
        self._expect_reader()
        seen = [name for name in await self._every.tenants(after=after) if sees(self._principal, name)]
        return seen[: check_limit(limit) or None]

    def _expect_reader(self) -> None:
        expect_scope(self._principal, Scope.READ, "reading quotas")
        self._expect_open()


# For whom a system acts: what they may do, in whose name, and which runs exist for them.
@checks_arguments("subject")
class Acting:
    """Acts for a principal, to whom nothing exists but what is of its tenant."""

    principal: Principal
    _store: Store
    _seen: Seen
    _check_name: Callable[[str, str], None]
    _bus: Bus
    _hub: Hub
    _halts: Halts
    archive: Archive

    def subscribe(self, subject: Subject, *, since: str | int | None = None, chunks: bool = False) -> Subscription:
        """The events of a subject's runs, no matter which process drives them: from now on, or from a cursor on.

        Turns come without gap and without duplicate. With `chunks`, what models say comes too, as far as it can be followed.
        A run that is not there, or a cursor beyond what was written, is refused when the first event is asked for.
        """
        return self._subscribed(subject, since, chunks=chunks)

    async def costs(
        self,
        *runs: str,
        by: str = "run",
        since_ms: int = 0,
        tenant_id: str | None = None,
        prices: "Prices | None" = None,
    ) -> "CostReport":
        """The costs of runs, with what is beneath them: these, or all that exist for the principal.

        `by` says what a row stands for: a tenant, a day, a run, each run by itself, a node, a tool or a model (`Grouping`). Runs
        that could not be read are named in `unread`, and are in no sum.
        """
        self._expect_scope(Scope.READ, "costs")
        # Only those who ask for costs pay for adding them up.
        from remit.observe.cost.cost_report import NO_PRICES, CostBook, Grouping, Prices, trees_of

        if by not in list(Grouping):
            raise RequestRejected(COSTS_INVALID, f"by={clipped(by)} groups nothing; use one of {', '.join(Grouping)}")
        if not isinstance(prices, Prices | None):
            raise refusal(COSTS_INVALID, "prices", prices, Prices | None)
        book, archive = CostBook(Grouping(by), prices or NO_PRICES), self.archive
        wanted = [(await archive.find(name)).run_id for name in runs]
        for tree in trees_of(await archive.runs(with_children=True), wanted):
            root = tree[-1].listing
            if root.started_at_ms < since_ms or tenant_id not in (None, root.tenant_id):
                continue
            for entry in tree:
                try:
                    book.add(entry, (await archive.history(entry.run_id)).turns, tree[-1])
                except RemitError as error:
                    expect_unreadable(error)
                    # It may have been deleted a moment ago, or tampered with: `verify` says what is wrong.
                    book.leave_out(entry.run_id)
        return book.report()

    async def follow(self, run_id: str, *, since: str | int | None, chunks: bool) -> Subscription:
        """What happens in one run; with `chunks`, what is said in it, in a vote and a plan by those who do its work."""
        entry = await self._expect(run_id, Scope.READ, "find")
        return self._followed(run_id, since, entry.listing.mode, chunks=chunks)

    def _followed(self, run_id: str, since: str | int | None, mode: str, *, chunks: bool) -> Subscription:
        return self._subscribed(Subject(run_id), since, chunks=chunks, beneath=mode in WORKS_BENEATH)

    def _subscribed(
        self, subject: Subject, since: str | int | None, *, chunks: bool, beneath: bool = False
    ) -> Subscription:
        own = self._subject(subject, "subscribe")
        run_id = own.run_id
        expect = partial(self._expect, run_id, Scope.READ, "subscribe") if run_id else None
        return self._bus.subscribe(own, since, chunks=chunks, beneath=beneath, expect=expect, whose=self._whose)

    async def delete(self, run_id: str) -> Removed:
        """Remove a run, the runs beneath it and the texts that only they need; raises as the store's retention does."""
        await self._expect(run_id, Scope.ADMIN, "delete")
        removed = await self._store.retention.delete(run_id)
        self._bus.forget(run_id)
        return removed

    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str = "", why: str) -> Redacted:
        """Take a text, or every secret of a kind, out of a run and those beneath it; the chain still verifies."""
        await self._expect(run_id, Scope.ADMIN, "redact")
        redacted = await self._store.redactions.redact(run_id, text=text, kind=kind, by=self._person(by), why=why)
        self._bus.forget(run_id)
        return redacted

    def _expect_scope(self, scope: Scope, verb: str, run_id: str = "") -> None:
        expect_scope(self.principal, scope, verb)
        self._expect_open(run_id)

    def _expect_open(self, run_id: str = "") -> None:
        if self._hub.is_closed:
            raise system_closed(run_id)

    async def _halting(self, tenant: str, tool: str, model: str, run: str, *, is_lift: bool = False) -> HaltScope:
        """What the principal may halt, and lift."""
        scope = scope_for(self.principal, tenant=tenant, tool=tool, model=model, run=run)
        self._expect_open(run)
        if run and not (self.principal is LOCAL and await self._is_haltable(scope, is_lift=is_lift)):
            await self._expect(run, Scope.ADMIN, "halt")
        return scope

    async def _is_haltable(self, scope: HaltScope, *, is_lift: bool) -> bool:
        """Whether a name is none of a run and can be meant: what is halted, of a run that is gone by now, or a host's name."""
        if is_lift:
            await self._halts.refresh()
            return scope in self._halts.standing.halts
        is_run = await self._seen.runs.entry(scope.name) is not None
        return not is_run and any(entry.listing.name == scope.name for entry in await self._seen.runs.entries())

    async def _expect(self, run_id: str, scope: Scope, verb: str) -> RunEntry:
        """A run that exists for the principal, who may do this with it."""
        self._expect_scope(scope, verb, run_id)
        entry = await self._seen.runs.entry(run_id)
        # A run that is listed and has no turn was damaged; there is nothing to go on with.
        if entry is None or not entry.turns:
            raise await self._seen.absent(run_id)
        return entry

    @property
    def _whose(self) -> str:
        """The tenant whose events are heard; empty where those of all tenants are."""
        return tenant_seen(self.principal, "")

    async def is_guarded(self, run_id: str) -> bool:
        """Whether a run is driven by an agent elsewhere, which goes on when it likes."""
        return (await self._expect(run_id, Scope.READ, "is_guarded")).listing.mode == GUARD_MODE

    async def is_left(self, run_id: str, *, is_quiet: bool) -> bool:
        """Whether a run has ended, waits for people or, where nothing was heard of it for a while, is driven by no process."""
        self._expect_scope(Scope.READ, "watch", run_id)
        # Whether a run of another tenant is driven here is not told.
        if (entry := await self._seen.runs.entry(run_id)) is None:
            return True
        is_resting = bool(entry.ending or entry.waiting_for)
        if not is_resting and self._hub.on_left is not None:  # A worker takes it up, if none has, unless it was paused.
            return is_quiet and (await self._hub.runner.load(run_id)).state.place.paused
        is_left = is_resting or (is_quiet and not await self._store.leases.is_held(run_id))
        return is_left and run_id not in self._hub.drivers

    def _person(self, by: str) -> str:
        """In whose name something is done; no secret is one."""
        by = person_for(self.principal, by)
        self._check_name("by", by)
        return by

    def _subject(self, subject: Subject, verb: str) -> Subject:
        """What of a subject exists for the principal."""
        self._expect_scope(Scope.READ, verb)
        subject = as_declared(subject, Subject, "subject", REQUEST_MALFORMED)
        return replace(subject, tenant_id=tenant_seen(self.principal, subject.tenant_id))
