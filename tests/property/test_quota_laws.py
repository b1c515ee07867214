"""However submissions and endings are mixed, the runs of a tenant never hold and spend more than its quota."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.journal.storage import Barrier, QuotaConflict, RunListing
from remit.core.limits.budget import STANDARD, Budget, Dimension, assign
from remit.core.limits.quota import Charge, Period, Quota, Reservation, caps_under, counted_by_quota, quota_caps
from remit.orchestrate.ports import Store

HOUR_MS = 3_600_000
TENANTS = ("acme", "zoe")
QUOTAS = {
    "acme": [
        Quota("acme", Period.HOUR, Budget(output_tokens=100)),
        Quota("acme", Period.DAY, Budget(output_tokens=170)),
    ],
    "zoe": [Quota("zoe", Period.TOTAL, Budget(output_tokens=120, steps=9))],
}

# One step of the world. A submission has two halves, and anything may happen between them.
Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.integers(0, 3), st.integers(1, 90)),
        st.tuples(st.just("begin"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 9), st.integers(0, 100)),
        st.tuples(st.just("wait"), st.integers(1, 30), st.just(0)),
    ),
    max_size=40,
)


class World:
    """Four submitters and their runs, over a real store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.at_ms = 0
        self.looked: dict[int, tuple[str, tuple[int, ...]]] = {}
        self.open: list[tuple[str, str, int, tuple[tuple[int, int], ...]]] = []
        self.begun = 0

    async def take(self, step: Step) -> None:
        """Take one step, and see that the law holds after it."""
        what, who, amount = step
        await getattr(self, f"_{what}")(who, amount)
        for tenant in TENANTS:
            limits = quota_caps(QUOTAS[tenant], self.at_ms)
            for limit, counts in zip(limits, await self.store.ledger.committed(tenant, limits), strict=True):
                assert counts.spent + counts.reserved <= limit.amount, (limit, counts)

    async def _look(self, who: int, amount: int) -> None:
        tenant = TENANTS[who % 2]
        limits = quota_caps(QUOTAS[tenant], self.at_ms)
        wanted = assign(STANDARD, Budget(output_tokens=amount))
        self.looked[who] = tenant, caps_under(wanted, limits, await self.store.ledger.committed(tenant, limits))

    async def _begin(self, who: int, _: int) -> None:
        if who not in self.looked:
            return
        tenant, caps = self.looked.pop(who)
        amounts, limits = counted_by_quota(caps), quota_caps(QUOTAS[tenant], self.at_ms)
        run_id = f"run{self.begun}"
        listing = RunListing(self.at_ms, tenant_id=tenant, reserves=Reservation(self.at_ms, amounts, limits))
        try:
            await self.store.journal.append(run_id, b"turn", after=-1, listing=listing)
        except QuotaConflict:
            return
        self.begun += 1
        self.open.append((run_id, tenant, self.at_ms, amounts))

    async def _end(self, which: int, percent: int) -> None:
        if not self.open:
            return
        run_id, tenant, at_ms, amounts = self.open.pop(which % len(self.open))
        used = tuple((dimension, amount * percent // 100) for dimension, amount in amounts)
        charge = Charge(run_id, tenant, at_ms, tuple(part for part in used if part[1]))
        await self.store.journal.append(run_id, b"end", after=0, barrier=Barrier("SUCCESS", charge=charge))

    async def _wait(self, hours: int, _: int) -> None:
        self.at_ms += hours * HOUR_MS


async def play(store: Store, steps: Sequence[Step]) -> None:
    world = World(store)
    for step in steps:
        await world.take(step)
    # When all have ended and spent nothing more, what is left is what was not spent.
    while world.open:
        await world.take(("end", 0, 0))
    limits = quota_caps(QUOTAS["zoe"], world.at_ms)
    assert not any(counts.reserved for counts in await store.ledger.committed("zoe", limits))
    await store.close()


@given(steps=STEPS)
def test_no_order_of_submissions_and_endings_exceeds_a_quota_in_memory(steps: list[Step]) -> None:
    asyncio.run(play(MemoryStore(), steps))


@settings(max_examples=15)
@given(steps=STEPS)
def test_no_order_of_submissions_and_endings_exceeds_a_quota_on_disk(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(EmbeddedStore.open(Path(folder)), steps))


@given(amounts=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 4)), min_size=1, max_size=12))
def test_submitters_who_try_again_after_a_conflict_use_up_exactly_what_there_is(amounts: list[tuple[int, int]]) -> None:
    quota = [Quota("acme", Period.TOTAL, Budget(output_tokens=100))]

    async def submit(store: Store, number: int, amount: int, pauses: int) -> int:
        limits, tokens = quota_caps(quota, 1), int(Dimension.OUTPUT_TOKENS)
        while True:
            (counts,) = await store.ledger.committed("acme", limits)
            caps = caps_under(assign(STANDARD, Budget(output_tokens=amount)), limits, [counts])
            if not caps[tokens]:
                return 0
            for _ in range(pauses):
                await asyncio.sleep(0)
            listing = RunListing(1, tenant_id="acme", reserves=Reservation(1, counted_by_quota(caps), limits))
            try:
                await store.journal.append(f"run{number}", b"turn", after=-1, listing=listing)
            except QuotaConflict:
                continue
            return caps[tokens]

    async def scene() -> None:
        store = MemoryStore()
        got = await asyncio.gather(*(submit(store, n, amount, pauses) for n, (amount, pauses) in enumerate(amounts)))
        assert sum(got) == min(100, sum(amount for amount, _ in amounts))

    asyncio.run(scene())
