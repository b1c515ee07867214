"""Quotas, at work and from their file: a run's caps are what its tenant has left, reserved at its start, settled at its end.

Rule 1: what is left is looked up before a run's caps are pinned, and checked again in the write of its first turn. Who
        was slower looks again and begins with what is left then.
Rule 2: only runs without a parent count: children hold leases of them. A fork counts with what it adds to its origin.
Rule 3: what a run counts is always a fold of its turns. The index only keeps the results: before a process relies on it
        for a tenant, it once folds the runs of that tenant whose latest turn the index does not have.
Rule 4: a person's release is beyond the quota: it is charged when the run ends, and never refused.
Rule 5: a tenant without a quota costs nothing: nothing is looked up, reserved or settled.
Rule 6: a file of quotas (docs/budgets.md) and Python build equal ones. An unknown key is refused with the nearest one that is
        known: a quota that was misspelled would limit nothing.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.arrivals import ResumeRequested, RunStarted
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import Command
from remit.core.journal.storage import Barrier, Place, QuotaConflict, RunListing, Stretch, Warrant
from remit.core.limits.budget import FIELDS, Budget, Caps, Dimension
from remit.core.limits.quota import (
    ANYONE,
    Charge,
    Committed,
    Limit,
    Period,
    Quota,
    QuotaStanding,
    Reservation,
    caps_under,
    check_quotas,
    counted_by_quota,
    left_of,
    period_start_ms,
    quota_caps,
    quota_exhausted,
    standing,
)
from remit.core.page import check_limit
from remit.core.record import replace
from remit.core.regular_file import open_regular
from remit.core.run.manifest import Manifest, Origin, unpriced_notes
from remit.core.schema.strict_yaml import (
    YamlDocument,
    YamlFault,
    block_in,
    list_in,
    read_yaml,
    spelled_place,
    value_in_error,
)
from remit.core.work.graph import MODEL_KINDS
from remit.kernel.state import RunState, pinned
from remit.observe.linked_turns import fold, read_history
from remit.observe.logs import run_fields
from remit.orchestrate.patterns.graph_choice import child_runs_needed, steps_needed
from remit.orchestrate.ports import Clock, Journal, Store

# Each conflict means that another run of the tenant began, so a run that loses this often in a row is one of too many.
CONFLICTS_MAX = 32
# Runs that are folded before what they count is written: few enough that little is lost by stopping here.
_COUNTED_AT_ONCE = 100
# Of so many tenants it is remembered that their runs are counted; looking again finds nothing and takes a moment.
_TENANTS_MAX = 10_000

_MONEY = int(Dimension.INFERENCE_COST_MICROUSD)
_Begun = TypeVar("_Begun")

_log = logging.getLogger(__name__)


class Quotas:
    """The quotas of tenants, over the runs of one store."""

    def __init__(self, shelf: Store, quotas: Iterable[Quota], clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock
        self._named: dict[str, tuple[Quota, ...]] = {}
        for quota in check_quotas(quotas):
            self._named[quota.tenant] = (*self._named.get(quota.tenant, ()), quota)
        self._anyone = self._named.pop(ANYONE, ())
        # Tenants all of whose runs are known to be counted.
        self._counted: set[str] = set()
        # Where runs are written; without any quota nothing stands between them and the store.
        self.journal: Journal = QuotedJournal(shelf, self) if self._named or self._anyone else shelf.journal

    def of(self, tenant_id: str) -> tuple[Quota, ...]:
        """The quotas that hold for a tenant; none is the rule."""
        return self._named.get(tenant_id, self._anyone)

    async def begin(self, manifest: Manifest, begin: Callable[[Manifest], Awaitable[_Begun]]) -> _Begun:
        """Begin a run within what its tenant has left; raises QUOTA_EXHAUSTED where that is too little to begin with."""
        quotas = self.of(manifest.request.tenant_id)
        if not quotas:
            return await begin(manifest)
        for _ in range(CONFLICTS_MAX - 1):
            try:
                return await begin(await self._assigned(manifest, quotas))
            except QuotaConflict:
                continue
        return await begin(await self._assigned(manifest, quotas))

    async def standings(self, tenant_id: str) -> list[QuotaStanding]:
        """How a tenant stands in each of its quotas."""
        limits, committed = await self._looked_up(tenant_id, self.of(tenant_id))
        return [standing(tenant_id, limit, count) for limit, count in zip(limits, committed, strict=True)]

    async def tenants(self, *, after: str | None = None, limit: int = 0) -> list[str]:
        """Every tenant that has a quota: those that are named, and every one that has runs where a quota is for all.

        They are in the order of their names; a page of `limit` begins behind the name `after`.
        """
        found = set(await self._shelf.ledger.tenants()) if self._anyone else set()
        # The tenant of requests that name none has an empty name, and comes first.
        names = (name for name in sorted(found | set(self._named)) if after is None or name > after)
        return list(names)[: check_limit(limit) or None]

    async def rebuild(self) -> int:
        """Count every run anew from its turns, quota or not; gives how many. What deleted runs left stays counted.

        Each run is counted anew by itself, so that meanwhile no run finds more room than there is.
        """
        roots = [entry.run_id for entry in await self._shelf.catalogue.entries() if not entry.listing.parent_id]
        await self._count(roots)
        return len(roots)

    async def reserving(self, listing: RunListing, first: Manifest) -> RunListing:
        """How a run is listed that begins: with what it reserves, where its tenant has a quota."""
        quotas = self.of(listing.tenant_id)
        if not quotas or listing.parent_id:
            return listing
        caps, at_ms = first.caps, listing.started_at_ms
        if first.forked_from is not None:
            # Its turns are copies and bear the time of its origin; what it spends, it spends since it was wanted.
            caps, at_ms = await self._added_by(first.forked_from, caps), first.forked_from.at_ms or self._clock.now_ms()
        return replace(listing, reserves=Reservation(at_ms, counted_by_quota(caps), quota_caps(quotas, at_ms)))

    async def refusal(self, tenant_id: str, conflict: QuotaConflict) -> RequestRejected:
        """Why a run that cannot begin with less is refused where there was no room for it."""
        standings = await self.standings(tenant_id)
        short = [at for at in standings if at.dimension == conflict.details["dimension"]]
        return quota_exhausted(min(short, key=lambda at: at.left), int(conflict.details["wanted"]))

    async def _added_by(self, origin: Origin, caps: Caps) -> Caps:
        """What a fork may spend beyond what its origin had; all of its caps where the origin is gone."""
        turns = (await self._shelf.journal.read(origin.run_id))[: origin.seq + 1]
        if len(turns) <= origin.seq:
            return caps
        copied = fold(read_history(origin.run_id, turns))
        return tuple(cap - used for cap, used in zip(copied.spending.caps, copied.used, strict=True))

    async def _assigned(self, manifest: Manifest, quotas: tuple[Quota, ...]) -> Manifest:
        """The manifest with caps that its tenant has left."""
        tenant_id = manifest.request.tenant_id
        limits, committed = await self._looked_up(tenant_id, quotas)
        caps = caps_under(manifest.caps, limits, committed)
        for dimension, needed in _needed(manifest):
            if caps[dimension] < needed <= manifest.caps[dimension]:
                raise _exhausted(tenant_id, dimension, needed, zip(limits, committed, strict=True))
        if manifest.is_money_capped or all(limit.dimension != _MONEY for limit in limits):
            return replace(manifest, caps=caps)
        # A quota of money was set by a person: a model without a price could pass it.
        notes = tuple([note for note in manifest.notes if note not in unpriced_notes(manifest.models)])
        return replace(manifest, caps=caps, is_money_capped=True, notes=notes)

    async def _looked_up(
        self, tenant_id: str, quotas: tuple[Quota, ...]
    ) -> tuple[tuple[Limit, ...], Sequence[Committed]]:
        """Count the runs of a tenant that are not counted yet; gives its limits and what counts against them."""
        at_ms = self._clock.now_ms()
        if quotas and tenant_id not in self._counted:
            from_ms = min(period_start_ms(quota.period, at_ms) for quota in quotas)
            await self._count(await self._shelf.ledger.uncounted(tenant_id, from_ms))
            if len(self._counted) >= _TENANTS_MAX:
                self._counted.clear()
            self._counted.add(tenant_id)
        limits = quota_caps(quotas, at_ms)
        return limits, await self._shelf.ledger.committed(tenant_id, limits)

    async def _count(self, run_ids: Sequence[str]) -> None:
        """Count these runs as their turns tell, in place of how they were counted."""
        for start in range(0, len(run_ids), _COUNTED_AT_ONCE):
            some = [await self._charge_of(run_id) for run_id in run_ids[start : start + _COUNTED_AT_ONCE]]
            await self._shelf.ledger.count([charge for charge in some if charge is not None])

    async def _charge_of(self, run_id: str) -> Charge | None:
        turns = await self._shelf.journal.read(run_id)
        try:
            return charge_of(run_id, turns) if turns else None
        except InvariantBroken as error:
            # One damaged run must not keep its tenant from working; verifying finds it.
            _log.warning("what a run cost its tenant cannot be counted: %s", error, extra=run_fields(run_id))
            return None


class QuotedJournal:
    """A journal that has what runs begin with reserved, and what they come to settled, in the same write."""

    def __init__(self, shelf: Store, quotas: Quotas) -> None:
        self._shelf = shelf
        self._quotas = quotas

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
        """Write the next turn of a run that stands at `after`; a fork that finds no room is refused with QUOTA_EXHAUSTED."""
        first = None if listing is None or not self._quotas.of(listing.tenant_id) else _manifest_in(data)
        if listing is not None and first is not None:
            listing = await self._quotas.reserving(listing, first)
        if barrier is not None and barrier.ending:
            barrier = await self._settling(run_id, data, after, barrier, listing)
        try:
            return await self._shelf.journal.append(run_id, data, after, barrier, listing, warrant, orders)
        except QuotaConflict as conflict:
            if first is None or first.forked_from is None:
                raise
            # The caps of a fork are those of the turns it copies, so it cannot begin with less.
            raise await self._quotas.refusal(first.request.tenant_id, conflict) from conflict

    async def read(self, run_id: str, *, after: int = -1) -> Stretch:
        """The turns that follow turn number `after`, oldest first."""
        return await self._shelf.journal.read(run_id, after=after)

    async def _settling(
        self, run_id: str, data: bytes, after: Place, barrier: Barrier, listing: RunListing | None
    ) -> Barrier:
        """The barrier of a turn that ends a run, or comes after its ending, with what the run comes to."""
        if listing is None:
            entry = await self._shelf.catalogue.entry(run_id)
            listing = None if entry is None else entry.listing
        if listing is None or listing.parent_id or not self._quotas.of(listing.tenant_id):
            return barrier
        turns = await self._shelf.journal.read(run_id)
        if turns.place != after:
            return barrier  # Another was faster, and the append fails with a conflict.
        return replace(barrier, charge=charge_of(run_id, [*turns, data]))


def charge_of(run_id: str, turns: Sequence[bytes]) -> Charge:
    """The charge of a run without a parent for its tenant, folded from all of its turns.

    An open one counts with all that it could spend when it began. What an ended one still holds belongs to calls in
    doubt, whose cost is unknown: it counts as spent.
    """
    history = read_history(run_id, turns)
    state = fold(history)
    manifest = pinned(state)
    at_ms, began, used = history.turns[0].at_ms, manifest.caps, (0,) * len(manifest.caps)
    if (origin := manifest.forked_from) is not None:
        copied = fold(read_history(run_id, turns[: origin.seq + 1]))
        began, used = tuple(copied.spending.caps), tuple(copied.used)
        since = history.turns[origin.seq + 1 :]
        # Forks of earlier versions do not tell when they were wanted.
        resumed = (turn.at_ms for turn in since if isinstance(turn.arrival, ResumeRequested))
        at_ms = origin.at_ms or next(resumed, state.at_ms)
    spent = began if state.end.ending is None else _held_or_used(state)
    amounts = counted_by_quota([amount - before for amount, before in zip(spent, used, strict=True)])
    return Charge(run_id, manifest.request.tenant_id, at_ms, amounts, is_open=state.end.ending is None)


def _held_or_used(state: RunState) -> Caps:
    return tuple(cap - left for cap, left in zip(state.spending.caps, state.spending.left, strict=True))


def _manifest_in(data: bytes) -> Manifest:
    arrival = decode_turn(data).arrival
    assert isinstance(arrival, RunStarted), "the first turn of a run is its start"
    return arrival.manifest


def _needed(manifest: Manifest) -> Iterator[tuple[Dimension, int]]:
    """What a run cannot do anything without: a run that can do nothing is not begun."""
    graph = manifest.graph
    children = child_runs_needed(graph)
    yield Dimension.STEPS, steps_needed(graph) if children else 1
    yield Dimension.CHILD_RUNS, children
    if any(node.kind in MODEL_KINDS for node in graph.nodes):
        yield Dimension.INPUT_TOKENS, 1
        yield Dimension.OUTPUT_TOKENS, 1
        price = manifest.models[0].price if manifest.models else None
        if price is not None and (price.input_microusd_per_mtok or price.output_microusd_per_mtok):
            yield Dimension.INFERENCE_COST_MICROUSD, 1


def _exhausted(
    tenant_id: str, dimension: Dimension, needed: int, counts: Iterable[tuple[Limit, Committed]]
) -> RequestRejected:
    """The refusal that names, of the limits that leave too little, the one that lasts longest."""
    short = [
        (limit, count) for limit, count in counts if limit.dimension == dimension and left_of(limit, count) < needed
    ]
    limit, count = max(short, key=lambda pair: pair[0].until_ms)
    return quota_exhausted(standing(tenant_id, limit, count), needed)


# A store of more tenants than this wants their quotas made by a program.
QUOTAS_MAX = 10_000

_FILE_KEYS = ("quotas",)
_QUOTA_KEYS = ("tenant", "period", "caps")


def read_quotas(path: Path) -> tuple[Quota, ...]:
    """The quotas in a file; raises RequestRejected with the line of what is wrong."""
    document = read_yaml(path, open_regular)
    block = block_in(document, document.value, _FILE_KEYS, ())
    entries = list_in(document, block.get("quotas"), ("quotas",))
    if len(entries) > QUOTAS_MAX:
        message = f"quotas has {len(entries)} entries, more than quotas_max={QUOTAS_MAX}"
        document.reject(YamlFault.VALUE_INVALID, message, ("quotas",))
    quotas = [_quota(document, entry, ("quotas", number)) for number, entry in enumerate(entries)]
    for number in range(len(quotas)):
        # One quota more each time, so that the error names the line of the first one that conflicts with an earlier one.
        _expect_valid(document, quotas, number)
    return tuple(quotas)


def _expect_valid(document: YamlDocument, quotas: list[Quota], number: int) -> None:
    rivals = [quota for quota in quotas[:number] if quota.tenant == quotas[number].tenant]
    try:
        check_quotas([*rivals, quotas[number]])
    except RequestRejected as error:
        document.reject(YamlFault.VALUE_INVALID, error.message, ("quotas", number))


def _quota(document: YamlDocument, entry: Any, place: tuple[str | int, ...]) -> Quota:
    block = block_in(document, entry, _QUOTA_KEYS, place)
    tenant, period = block.get("tenant"), block.get("period")
    if not isinstance(tenant, str):
        message = f"{spelled_place((*place, 'tenant'))} must be a text in quotes, `'*'` for every tenant, not {value_in_error(tenant)}"
        document.reject(YamlFault.VALUE_INVALID, message, (*place, "tenant"))
    if not isinstance(period, str) or period not in set(Period):
        message = (
            f"{spelled_place((*place, 'period'))} must be one of {', '.join(Period)}, not {value_in_error(period)}"
        )
        document.reject(YamlFault.VALUE_INVALID, message, (*place, "period"))
    caps = block_in(document, block.get("caps"), FIELDS, (*place, "caps"))
    for name, amount in caps.items():
        if type(amount) is not int:
            message = f"{spelled_place((*place, 'caps', name))} must be a whole number, not {value_in_error(amount)}"
            document.reject(YamlFault.VALUE_INVALID, message, (*place, "caps", name))
    return Quota(tenant, Period(period), Budget(**caps))
