"""What two processes must see of each other on one store, whatever a store remembers of what it read.

A check is a coroutine function. It opens one store twice, as two processes have it open, lets each of them look at everything
before the other writes, and raises AssertionError with a sentence when one is told something that is over. Run each of
TWO_HANDLES_CHECKS against your backend, with any test runner. Snapshots are not asked for: they may be forgotten.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.failure import Ending, RemitError
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import sign_head
from remit.core.journal.storage import (
    START,
    AppendConflict,
    Barrier,
    BlobMissing,
    EntrySettled,
    QuotaConflict,
    RunListing,
    SessionConflict,
    Warrant,
)
from remit.core.limits.budget import Dimension
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import NEVER_MS, Charge, Limit, Period, Reservation
from remit.core.record import digest_of
from remit.core.run.halt import HALTS
from remit.orchestrate.loop.signatures import signed_journal
from remit.orchestrate.ports import Store
from remit.testing.conformance.in_words import in_words, refusal_code
from remit.testing.conformance.sample_turns import OTHER, RUN, add, first_turn, last_turn

# Opens one store twice, and closes both afterwards.
OpenTwice = Callable[[], AbstractAsyncContextManager[tuple[Store, Store]]]
TwoHandlesCheck = Callable[[OpenTwice], Coroutine[Any, Any, None]]
# What one handle does.
Step = Callable[[Store], Awaitable[object]]

_TOKENS = int(Dimension.OUTPUT_TOKENS)
_LIMIT = Limit(Period.TOTAL, _TOKENS, 100, 0, NEVER_MS)
_TEXT = b"text" * 100
_FIRST = RunListing(
    1,
    tenant_id="acme",
    session_id="talk",
    likeness="like",
    name="agent",
    reserves=Reservation(1, ((_TOKENS, 60),), (_LIMIT,)),
)
_CHILD = RunListing(2, tenant_id="acme", parent_id=RUN, lineage=(RUN,))
_RUNS = (RUN, "child")
# A store that keeps all has nothing to show of a deletion.
_KEEPS_ALL = "STORE_KEEPS_ALL"


async def _begin(store: Store, run_id: str, listing: RunListing) -> None:
    journal = signed_journal(store.journal, store.key)
    # The head of a turn without a barrier may be logged later.
    await add(journal, run_id, first_turn(run_id, listing), Barrier(), listing)


async def _go_on(store: Store, run_id: str, barrier: Barrier) -> None:
    ending = Ending(barrier.ending) if barrier.ending else None
    await add(signed_journal(store.journal, store.key), run_id, last_turn(3, ending), barrier)


async def _settle(store: Store) -> None:
    (entry,) = await store.inbox.pending(after=0)
    await store.inbox.settle(entry.number, "", "heard")


async def _delete(store: Store) -> None:
    try:
        await store.retention.delete("child")
    except RemitError as error:
        if error.code != _KEEPS_ALL:
            raise


async def _seal(store: Store, value: str) -> None:
    store.seals.seal(RUN, "password", value)


async def _forget(store: Store) -> None:
    store.seals.forget(RUN)


async def _halt(store: Store) -> None:
    head = None
    if store.key is not None:
        head = sign_head(store.key.signer, run_id=HALTS, seq=1, head=hash_turn(b"halt"), ending="")
    await store.halts.append(b"halt", after=0, head=head)


# What is done, in words, by one handle after the other.
_STEPS: dict[str, Step] = {
    "a run was begun": lambda store: _begin(store, RUN, _FIRST),
    "a run was left waiting": lambda store: _go_on(store, RUN, Barrier(waiting_for="CONFIRM_REQUIRED")),
    "a child was begun": lambda store: _begin(store, "child", _CHILD),
    "a run was begun that is not counted": lambda store: _begin(store, "free", RunListing(3, tenant_id="acme")),
    "that run was counted": lambda store: store.ledger.count(
        [Charge("free", "acme", 3, ((_TOKENS, 1),), is_open=True)]
    ),
    "a text was put": lambda store: store.blobs.put(digest_of(_TEXT), _TEXT),
    "a letter was left": lambda store: store.inbox.put(RUN, b"letter"),
    "the letter was settled": _settle,
    "everything was halted": _halt,
    "a value was sealed": lambda store: _seal(store, "secret"),
    "another value was sealed": lambda store: _seal(store, OTHER),
    "the values were forgotten": _forget,
    "a receipt was kept": lambda store: store.receipts.keep(Receipt(ReceiptKind.ACKNOWLEDGED, "item", RUN, "ann", 1)),
    "the child ended": lambda store: _go_on(store, "child", Barrier("SUCCESS")),
    "the run ended": lambda store: _go_on(
        store, RUN, Barrier("SUCCESS", charge=Charge(RUN, "acme", 1, ((_TOKENS, 25),)))
    ),
    "the child was deleted": _delete,
}


async def _kept(store: Store) -> bytes:
    try:
        return await store.blobs.get(digest_of(_TEXT))
    except BlobMissing:
        return b""


async def _halted(store: Store) -> object:
    await store.halts.refresh()
    return list(store.halts.since(0)), list(store.halts.news(0)), store.halts.signed()


async def _view(store: Store) -> dict[str, object]:
    """Everything that a handle tells of what is done here."""
    catalogue, log, ledger = store.catalogue, store.log, store.ledger
    told: dict[str, object] = {
        "the runs that there are": list(await catalogue.entries()),
        "the runs that are open": list(await catalogue.entries(open_only=True)),
        "the runs that wait": list(await catalogue.entries(waiting_only=True)),
        "the children of a run": list(await catalogue.entries(parent_id=RUN)),
        "the runs of a session": list(await catalogue.session("talk", tenant_id="acme")),
        "the runs of a name": list(await catalogue.named("agent", "acme")),
        "the runs that are alike": list(await catalogue.alike("like", limit=9)),
        "what counts for a tenant": list(await ledger.committed("acme", (_LIMIT,))),
        "the runs that are not counted": sorted(await ledger.uncounted("acme", 0)),
        "the tenants": list(await ledger.tenants()),
        "the letters that wait": list(await store.inbox.pending(after=0)),
        "the answers to letters": [await store.inbox.outcome(number) for number in range(5)],
        "the receipts": list(await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)),
        "the text": await _kept(store),
        "the sealed values": [dict(store.seals.values(scope)) for scope in _RUNS],
        "the halts": await _halted(store),
        "the journals": sorted(await store.index.names()),
        "the feed": [(turn.run_id, turn.seq, turn.data) for turn in await store.feed.since(START, limit=99)],
        "the end of the feed": await store.feed.end(),
    }
    for run_id in _RUNS:
        stretch = await store.journal.read(run_id)
        later = await store.journal.read(run_id, after=0)
        deletion = await log.deletion(run_id)
        told |= {
            f"the turns of the {run_id}": (list(stretch), stretch.place, list(later)),
            f"the entry of the {run_id}": await catalogue.entry(run_id),
            f"the heads of the {run_id}": (list(await catalogue.heads(run_id)), await catalogue.last_head(run_id)),
            f"the log of the {run_id}": (list(await log.heads(run_id)), await log.last(run_id), deletion),
            f"the holder of the {run_id}": await store.leases.is_held(run_id),
        }
    return told


async def what_one_handle_writes_the_other_is_told(open_twice: OpenTwice) -> None:
    """At once, in whatever way it asks, and however often it has asked before."""
    async with open_twice() as pair:
        before = await _view(pair[0])
        for number, (words, step) in enumerate(_STEPS.items()):
            writer, other = pair[number % 2], pair[1 - number % 2]
            await _view(other)
            await step(writer)
            now, told = await _view(writer), await _view(other)
            stale = [name for name, value in told.items() if value != now[name]]
            assert not stale, f"{words}, and the other handle is told something else of: {', '.join(stale)}"
            is_shown = now != before or words == "the child was deleted"
            assert is_shown, f"{words}, and nothing that a handle tells has changed"
            before = now


async def a_lease_of_one_handle_is_seen_by_the_other(open_twice: OpenTwice) -> None:
    """It is held for both; and once it went to the other, nothing is written under it."""
    async with open_twice() as (one, other):
        assert not await other.leases.is_held(RUN), "a run that was never taken is held"
        token = await one.leases.take(RUN)
        assert token is not None, "a run that no process holds cannot be taken"
        assert await other.leases.is_held(RUN), "a run was taken, and the other handle says that it is not held"
        assert await other.leases.take(RUN) is None, "two handles hold one run"
        place = await add(one.journal, RUN, b"turn", listing=RunListing(1), warrant=Warrant(token))
        await one.leases.release(RUN, token)
        assert not await other.leases.is_held(RUN), "a run was let go, and the other handle says that it is held"
        later = await other.leases.take(RUN)
        assert later is not None, "a run that was let go cannot be taken by the other handle"
        # A lease that cannot expire is fenced by its own process.
        assert later > token or not one.leases.lasts_ms, "the lease of the other handle has an older token"
        await add(other.journal, RUN, b"later", warrant=Warrant(later))
        code = await refusal_code(one.journal.append(RUN, b"stale", place, warrant=Warrant(token)))
        assert code, "a turn was written under a lease that went to the other handle"
        await other.leases.release(RUN, later)


async def who_has_read_before_the_other_wrote_is_refused(open_twice: OpenTwice) -> None:
    """A turn behind an old place, a place in a session, what a tenant may spend, and an entry that is settled."""
    async with open_twice() as (one, other):
        place = await one.journal.append(RUN, b"turn", START, listing=_FIRST)
        number = await one.inbox.put(RUN, b"letter")
        for store in (one, other):
            await _view(store)
        newer = await other.journal.append(RUN, b"heard", place, Barrier(heard=number))
        refused: list[tuple[type[Exception], Awaitable[object]]] = [
            (AppendConflict, one.journal.append(RUN, b"late", place)),
            (EntrySettled, one.journal.append(RUN, b"again", newer, Barrier(heard=number))),
            (SessionConflict, one.journal.append("rival", b"turn", START, listing=_listing(session_id="talk"))),
            (QuotaConflict, one.journal.append("greedy", b"turn", START, listing=_listing(reserves=_FIRST.reserves))),
        ]
        for kind, late in refused:
            try:
                await late
            except kind:
                continue
            raise AssertionError(f"the other handle was faster, and this one did not meet {kind.__name__}")
        turns = list(await one.journal.read(RUN))
        assert turns == [b"turn", b"heard"], f"two turns were written, and there are {turns}"


def _listing(session_id: str = "", reserves: Reservation | None = None) -> RunListing:
    return RunListing(1, tenant_id="acme", session_id=session_id, reserves=reserves)


TWO_HANDLES_CHECKS: Sequence[TwoHandlesCheck] = in_words(
    what_one_handle_writes_the_other_is_told,
    a_lease_of_one_handle_is_seen_by_the_other,
    who_has_read_before_the_other_wrote_is_refused,
)
