"""What Retention of every store must do: remove exactly what it may, and leave everything else as it was.

A check is a coroutine function. It opens an empty store that has a key with the function it is given, whose argument is the
clock that the store shall go by, uses it, and raises AssertionError with a sentence when it does not do what is relied on. Run
each of RETENTION_CHECKS against yours, with any test runner. That nothing of what was removed can be read from a disk, and that
runs of other processes go on meanwhile, can only be seen with a disk and processes of your own.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from remit.core.failure import Ending
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import is_deletion_signed
from remit.core.journal.storage import (
    ANSWER_GRACE_MS,
    PARENT_OPEN,
    START,
    TEXT_GRACE_MS,
    Barrier,
    BlobMissing,
    Losses,
    Removed,
    RunListing,
)
from remit.core.limits.budget import Dimension
from remit.core.limits.queue import Receipt, ReceiptKind
from remit.core.limits.quota import NEVER_MS, Committed, Limit, Period, Reservation
from remit.core.record import digest_of
from remit.orchestrate.loop.signatures import signed_journal
from remit.orchestrate.ports import Store
from remit.testing.conformance.in_words import in_words, refusal_code
from remit.testing.conformance.sample_turns import OTHER, RUN, add, first_turn, last_turn

# Opens an empty store that has a key and goes by this clock, and closes it afterwards.
OpenStore = Callable[[Callable[[], int]], AbstractAsyncContextManager[Store]]
RetentionCheck = Callable[[OpenStore], Coroutine[Any, Any, None]]

START_MS = 1_000_000_000_000
HOUR_MS = 3_600_000
RIVALS = 5
_OWN, _SHARED, _STRAY = b"own" * 1000, b"shared" * 1000, b"stray" * 1000


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at_ms = START_MS

    def now_ms(self) -> int:
        """What it shows."""
        return self.at_ms


async def deleting_what_nobody_started_removes_nothing(open_store: OpenStore) -> None:
    """It is no error either, and the log says nothing of it."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN)
        removed = await store.retention.delete("unknown")
        assert removed == Removed(), f"the run was never started, and {removed} was removed"
        assert await store.log.deletion("unknown") is None, "a run that was never started was logged as deleted"


async def a_deleted_run_is_gone_with_all_that_was_kept_of_it(open_store: OpenStore) -> None:
    """Turns, entry, heads, snapshot, receipts, sealed values, what was left for it, and how much that was is told."""
    async with open_store(Time().now_ms) as store:
        for run_id in (RUN, OTHER):
            await _run(store, run_id)
            await store.snapshots.keep(run_id, 1, hash_turn(b""), b"state")
            await store.receipts.keep(Receipt(ReceiptKind.ACKNOWLEDGED, run_id, run_id, "ann", START_MS))
            store.seals.seal(run_id, "token", "value")
        waiting, settled = await store.inbox.put(RUN, b"waiting"), await store.inbox.put(RUN, b"settled")
        await store.inbox.settle(settled, "", "heard")
        other = await store.inbox.put(OTHER, b"for another")
        removed = await store.retention.delete(RUN)
        expected = Removed(runs=1, turns=2, inbox_entries=2)
        assert removed == expected, f"a run of two turns with two entries was deleted, and {removed} is told"
        told = {turn.run_id for turn in await store.feed.since(START, limit=9)}
        assert told == {OTHER}, f"a run was deleted, and the feed still tells of {told}"
        left = await _left_of(store, RUN)
        assert not left, f"of a run that was deleted there is still: {', '.join(left)}"
        pending = [entry.number for entry in await store.inbox.pending(after=0)]
        assert pending == [other], f"entry {waiting} was left for a run that is gone, and {pending} wait"
        assert await store.inbox.outcome(settled) is None, "the outcome of an entry outlived its run"
        left = await _left_of(store, OTHER)
        assert len(left) == len(_PARTS), f"another run was deleted, and of this one there is only: {', '.join(left)}"


async def a_run_goes_with_all_beneath_it(open_store: OpenStore) -> None:
    """Children and theirs, however they are named; the runs beside them stay."""
    async with open_store(Time().now_ms) as store:
        await _family(store, parent_ending="")
        await _run(store, "root2")
        await _run(store, "beside", listing=RunListing(1, parent_id="root2"))
        for run_id in ("grandchild", "beside"):
            await store.inbox.put(run_id, b"waiting")
        removed = await store.retention.delete("root")
        assert removed.runs == 3, f"a run with a child and a grandchild was deleted, and {removed.runs} runs are gone"
        pending = [entry.run_id for entry in await store.inbox.pending(after=0)]
        assert pending == ["beside"], f"of entries for a run that went and one that stayed wait those for {pending}"
        found = [entry.run_id for entry in await store.catalogue.entries()]
        assert found == ["beside", "root2"], f"another family was deleted, and there are {found}"
        silent = [run_id for run_id in ("root", "child", "grandchild") if await store.log.deletion(run_id) is None]
        assert not silent, f"runs {silent} were deleted, and the log does not say so"


async def a_child_whose_parent_is_open_stays(open_store: OpenStore) -> None:
    """Its parent still asks for it. Once that has ended, the child may go, and the parent stays."""
    async with open_store(Time().now_ms) as store:
        await _family(store, parent_ending="")
        code = await refusal_code(store.retention.delete("child"))
        assert code == PARENT_OPEN, f"a child whose parent is open was refused with {code!r}"
        assert len(await store.catalogue.entries()) == 3, "a child was refused, and some of its family is gone"
        await add(signed_journal(store.journal, store.key), "root", last_turn(START_MS), Barrier("SUCCESS"))
        removed = await store.retention.delete("child")
        assert removed.runs == 2, f"a child with one beneath it was deleted, and {removed.runs} runs are gone"
        assert await store.catalogue.entry("root") is not None, "a parent went with its child"


async def a_family_that_is_driven_stays_whole(open_store: OpenStore) -> None:
    """One that is held keeps all of them; no other run is held afterwards, and nothing is logged."""
    async with open_store(Time().now_ms) as store:
        await _family(store)
        token = await store.leases.take("grandchild") or 0
        code = await refusal_code(store.retention.delete("root"))
        assert code == "STORE_BUSY", f"a family of which one is driven was refused with {code!r}"
        assert len(await store.catalogue.entries()) == 3, "a family was refused, and some of it is gone"
        assert await store.log.deletion("root") is None, "a run that was not deleted is logged as deleted"
        assert not await store.leases.is_held("root"), "a deletion that was refused holds the run still"
        await store.leases.release("grandchild", token)
        assert (await store.retention.delete("root")).runs == 3, "a family without a driver cannot be deleted"


async def a_run_is_deleted_once(open_store: OpenStore) -> None:
    """Of many who ask at the same time one removes it; the others are told that it is busy, or that nothing was there."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN)
        asked = await asyncio.gather(*(store.retention.delete(RUN) for _ in range(RIVALS)), return_exceptions=True)
        wrong = [said for said in asked if not isinstance(said, Removed) and getattr(said, "code", "") != "STORE_BUSY"]
        assert not wrong, f"who came too late was told {wrong}"
        runs = sum(said.runs for said in asked if isinstance(said, Removed))
        assert runs == 1, f"one run was deleted, and {runs} are told"


async def texts_go_with_the_last_run_that_refers_to_them(open_store: OpenStore) -> None:
    """What another run refers to stays, byte for byte."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN, _OWN, _SHARED)
        await _run(store, OTHER, _SHARED, ending="")
        removed = await store.retention.delete(RUN)
        assert (removed.texts, removed.text_bytes) == (1, len(_OWN)), (
            f"one text went with its run, and {removed} is told"
        )
        assert await _kept(store, _OWN, _SHARED) == [_SHARED], "of an own and a shared text not the shared one is left"
        removed = await store.retention.delete(OTHER)
        assert removed.texts == 1, "a text without a reference stayed"


async def a_text_that_somebody_may_be_about_to_refer_to_is_spared(open_store: OpenStore) -> None:
    """While something is driven a text that was put lately stays, and is told; once it is old, a collection takes it."""
    time = Time()
    async with open_store(time.now_ms) as store:
        await _run(store, RUN, _OWN)
        token = await store.leases.take("driven") or 0
        removed = await store.retention.delete(RUN)
        assert (removed.texts, removed.texts_spared) == (0, 1), f"a text was to be spared, and {removed} is told"
        assert await _kept(store, _OWN) == [_OWN], "a text that a turn may be about to refer to is gone"
        time.at_ms += TEXT_GRACE_MS + 1
        removed = await store.retention.gc(ended_before_ms=0)
        assert removed.texts == 1, "a text without a reference that was put long ago stayed"
        await store.leases.release("driven", token)


async def a_deletion_is_signed_and_the_log_keeps_the_heads(open_store: OpenStore) -> None:
    """So that the run is not taken for lost, and a reader learns how it stood and when it went."""
    time = Time()
    async with open_store(time.now_ms) as store:
        assert store.key is not None, "the suite is played on a store that has a key"
        await _run(store, RUN)
        heads = list(await store.log.heads(RUN))
        time.at_ms += HOUR_MS
        await store.retention.delete(RUN)
        assert len(heads) == 2, f"two turns of a run were signed, and logged are {heads}"
        assert list(await store.log.heads(RUN)) == heads, "the heads of a run left the log with it"
        assert await store.log.last(RUN) == heads[-1], "the last head of a run left the log with it"
        deletion = await store.log.deletion(RUN)
        assert deletion is not None, "a run was deleted, and the log does not say so"
        assert is_deletion_signed(deletion), "the deletion of a run is not signed"
        told = (deletion.signer, deletion.seq, deletion.head, deletion.at_ms)
        expected = (store.key.signer.did, 1, hash_turn(last_turn(START_MS)), START_MS + HOUR_MS)
        assert told == expected, f"the log says of a deletion {told}, and it was {expected}"
        lost = await store.log.losses()
        assert lost == Losses(), f"a run was deleted on purpose, and lost is {lost}"


async def a_session_goes_on_after_its_newest_run_was_deleted(open_store: OpenStore) -> None:
    """Its place is free for the next one."""
    async with open_store(Time().now_ms) as store:
        for ordinal in (0, 1):
            await _run(store, f"run{ordinal}", listing=RunListing(1, session_id="session", ordinal=ordinal))
        await store.retention.delete("run1")
        left = [entry.run_id for entry in await store.catalogue.session("session")]
        assert left == ["run0"], f"the second run of a session was deleted, and it holds {left}"
        code = await refusal_code(_run(store, "rival", listing=RunListing(1, session_id="session", ordinal=0)))
        assert code, "a run was deleted, and the place of another is free"
        await _run(store, "again", listing=RunListing(1, session_id="session", ordinal=1))
        left = [entry.run_id for entry in await store.catalogue.session("session")]
        assert left == ["run0", "again"], f"a place was taken that a deletion had freed, and the session holds {left}"


async def a_deleted_run_is_like_no_other(open_store: OpenStore) -> None:
    """A search for runs that are alike finds those that are there."""
    async with open_store(Time().now_ms) as store:
        for run_id in ("a", "b"):
            await _run(store, run_id, listing=RunListing(1, likeness="like"))
        await store.retention.delete("b")
        found = [entry.run_id for entry in await store.catalogue.alike("like", limit=9)]
        assert found == ["a"], f"of two runs that are alike one was deleted, and {found} are found"


async def what_a_deleted_run_cost_stays_counted(open_store: OpenStore) -> None:
    """Deleting gives no quota back: what was reserved counts as spent, and the tenant is known."""
    async with open_store(Time().now_ms) as store:
        tokens = int(Dimension.OUTPUT_TOKENS)
        limit = Limit(Period.TOTAL, tokens, 100, 0, NEVER_MS)
        reserves = Reservation(START_MS, ((tokens, 60),), (limit,))
        await add(store.journal, RUN, b"turn", None, RunListing(START_MS, tenant_id="tenant", reserves=reserves))
        await store.retention.delete(RUN)
        (found,) = await store.ledger.committed("tenant", (limit,))
        assert found == Committed(60, 0), f"a run that had reserved 60 was deleted, and {found} counts"
        assert "tenant" in await store.ledger.tenants(), "a tenant is forgotten with its last run"


async def a_collection_removes_what_ended_before_a_time(open_store: OpenStore) -> None:
    """Not what ended later, nor what is open, however old that is."""
    time = Time()
    async with open_store(time.now_ms) as store:
        await _run(store, "old", _OWN)
        await _run(store, "open", ending="")
        time.at_ms += TEXT_GRACE_MS + 1
        await _run(store, "young", _SHARED)
        removed = await store.retention.gc(ended_before_ms=START_MS)
        assert removed == Removed(), f"no run ended before the time, and {removed} was collected"
        removed = await store.retention.gc(ended_before_ms=START_MS + 1)
        expected = Removed(runs=1, turns=2, texts=1, text_bytes=len(_OWN))
        assert removed == expected, f"one old run was to be collected, and {removed} was"
        found = [entry.run_id for entry in await store.catalogue.entries()]
        assert found == ["young", "open"], f"of an old, an open and a young run there are {found}"
        assert await _kept(store, _OWN, _SHARED) == [_SHARED], "the text of the old run is not the one that went"
        assert await store.log.deletion("old") is not None, "a run was collected, and the log does not say so"
        removed = await store.retention.gc(ended_before_ms=START_MS + 1)
        assert removed == Removed(), f"everything was collected, and again {removed} is"


async def a_dry_run_says_what_a_collection_would_remove(open_store: OpenStore) -> None:
    """Exactly that, and it removes and logs nothing."""
    time = Time()
    async with open_store(time.now_ms) as store:
        await _run(store, "old", _OWN)
        await store.blobs.put(digest_of(_STRAY), _STRAY)
        heard = [await store.inbox.put(run_id, b"heard") for run_id in ("old", "open")]
        for number in heard:
            await store.inbox.settle(number, "", "")
        await _run(store, "open", ending="")
        time.at_ms += TEXT_GRACE_MS + ANSWER_GRACE_MS
        told = await store.retention.gc(ended_before_ms=time.at_ms, dry_run=True)
        assert len(await store.catalogue.entries()) == 2, "a dry run removed a run"
        assert len(await _kept(store, _OWN, _STRAY)) == 2, "a dry run removed a text"
        assert await store.inbox.outcome(heard[0]) is not None, "a dry run removed an entry of the inbox"
        assert await store.log.deletion("old") is None, "a dry run logged a deletion"
        removed = await store.retention.gc(ended_before_ms=time.at_ms)
        expected = Removed(
            runs=1, turns=2, texts=2, text_bytes=len(_OWN) + len(_STRAY), texts_spared=0, inbox_entries=2
        )
        assert told == removed == expected, f"a dry run told of {told}, and then {removed} was removed"


async def a_collection_leaves_what_somebody_will_ask_for(open_store: OpenStore) -> None:
    """The newest run of a session of each tenant with all that came from it, and a child whose parent is open."""
    async with open_store(Time().now_ms) as store:
        for ordinal in (0, 1):
            await _run(store, f"run{ordinal}", listing=RunListing(1, session_id="session", ordinal=ordinal))
        await _run(store, OTHER, listing=RunListing(1, tenant_id="tenant", session_id="session"))
        await _run(store, "retry", listing=RunListing(1, lineage=("run1",)))
        await _run(store, "parent", ending="")
        await _run(store, "child", listing=RunListing(1, parent_id="parent", lineage=("parent",)))
        removed = await store.retention.gc(ended_before_ms=NEVER_MS)
        found = sorted(entry.run_id for entry in await store.catalogue.entries())
        expected = sorted(["child", OTHER, "parent", "retry", "run1"])
        assert found == expected, f"{expected} will be asked for, and after a collection there are {found}"
        assert removed.runs == 1, f"one run was collected, and {removed.runs} are told"


async def a_collection_leaves_what_only_the_list_calls_ended(open_store: OpenStore) -> None:
    """What is removed for good has ended by its own turns, addenda or not; the rest is named, and its children stay."""
    async with open_store(Time().now_ms) as store:
        for run_id, ends in (("ended", Ending.SUCCESS), ("open", None)):
            await add(store.journal, run_id, last_turn(START_MS, ends), Barrier("SUCCESS"), RunListing(1))
            await add(store.journal, run_id, last_turn(START_MS, None), Barrier("SUCCESS"))
        await add(store.journal, "late", last_turn(NEVER_MS), Barrier("SUCCESS"), RunListing(1))
        await add(store.journal, "torn", b"no turn", Barrier("SUCCESS"), RunListing(1))
        await _run(store, "child", listing=RunListing(1, parent_id="open", lineage=("open",)))
        told = await store.retention.gc(ended_before_ms=START_MS + 1, dry_run=True)
        removed = await store.retention.gc(ended_before_ms=START_MS + 1)
        assert told == removed, f"a dry run told of {told}, and then {removed} was removed"
        found = sorted(entry.run_id for entry in await store.catalogue.entries())
        assert found == ["child", "late", "open", "torn"], (
            f"turns end only one run, and after a collection there are {found}"
        )
        named = sorted(removed.ill_listed)
        assert named == ["late", "open", "torn"], f"three runs are listed as what they are not, and {named} are named"


async def what_the_turns_say_of_a_run_counts_more_than_the_list(open_store: OpenStore) -> None:
    """Where the list is wrong, a collection leaves the newest run of a session, what came from it and children of open runs."""
    async with open_store(Time().now_ms) as store:
        session = RunListing(1, tenant_id="acme", session_id="talk", ordinal=1)
        await _told(store, "earlier", RunListing(1, tenant_id="acme", session_id="talk"), listed=RunListing(1))
        await _told(store, "newest", session, listed=RunListing(1))
        await _told(store, "retry", RunListing(1, lineage=("newest",)), listed=RunListing(1))
        await _told(store, "open", RunListing(1), listed=RunListing(1), ending="")
        beneath = RunListing(1, parent_id="open", lineage=("open",))
        await _told(store, "child", beneath, listed=RunListing(1))
        removed = await store.retention.gc(ended_before_ms=NEVER_MS)
        found = sorted(entry.run_id for entry in await store.catalogue.entries())
        expected = ["child", "newest", "open", "retry"]
        assert found == expected, (
            f"by their turns {expected} will be asked for, and after a collection there are {found}"
        )
        assert removed.runs == 1, f"one run was collected, and {removed.runs} are told"


async def only_what_is_beneath_a_run_by_its_turns_goes_with_it(open_store: OpenStore) -> None:
    """Not what the list alone calls its child; and a parent that the list alone calls ended keeps its child."""
    async with open_store(Time().now_ms) as store:
        await _told(store, "root", RunListing(1), listed=RunListing(1))
        await _told(store, "stranger", RunListing(1), listed=RunListing(1, parent_id="root", lineage=("root",)))
        removed = await store.retention.delete("root")
        assert removed.runs == 1, f"a run without children was deleted, and {removed.runs} runs are gone"
        assert await store.catalogue.entry("stranger") is not None, "a run went that only the list called a child"
        await _told(store, "open", RunListing(1), listed=RunListing(1), ending="", listed_ending="SUCCESS")
        beneath = RunListing(1, parent_id="open", lineage=("open",))
        await _told(store, "child", beneath, listed=RunListing(1))
        code = await refusal_code(store.retention.delete("child"))
        assert code == PARENT_OPEN, f"a child whose parent is open by its turns was refused with {code!r}"


async def a_collection_leaves_what_is_held(open_store: OpenStore) -> None:
    """A process may be adding to a run that has ended; it will be as old tomorrow."""
    async with open_store(Time().now_ms) as store:
        await _run(store, RUN)
        token = await store.leases.take(RUN) or 0
        removed = await store.retention.gc(ended_before_ms=NEVER_MS)
        assert removed.runs == 0, "a run that is held was collected"
        assert await store.leases.renew(RUN, token), "a collection took a run from its holder"
        await store.leases.release(RUN, token)
        removed = await store.retention.gc(ended_before_ms=NEVER_MS)
        assert removed.runs == 1, "a run that is no longer held was not collected"


async def a_collection_takes_texts_and_answers_that_nobody_needs(open_store: OpenStore) -> None:
    """Once they are old: until then a process may be about to refer to them, or to fetch them. Nothing unheard goes."""
    time = Time()
    async with open_store(time.now_ms) as store:
        await _run(store, RUN, _SHARED, ending="")
        await store.blobs.put(digest_of(_STRAY), _STRAY)
        heard, waiting = await store.inbox.put(RUN, b"1"), await store.inbox.put(RUN, b"2")
        await store.inbox.settle(heard, "", "")
        removed = await store.retention.gc(ended_before_ms=0)
        assert removed == Removed(), f"what was put and settled just now was removed: {removed}"
        assert await store.inbox.outcome(heard) is not None, "an answer was taken before its sender could fetch it"
        time.at_ms += max(TEXT_GRACE_MS, ANSWER_GRACE_MS) + 1
        removed = await store.retention.gc(ended_before_ms=0)
        expected = Removed(texts=1, text_bytes=len(_STRAY), inbox_entries=1)
        assert removed == expected, f"a text and an answer were old, and {removed} was removed"
        assert await _kept(store, _SHARED, _STRAY) == [_SHARED], "a text went that a turn refers to"
        pending = [entry.number for entry in await store.inbox.pending(after=0)]
        assert pending == [waiting], f"entry {waiting} was not heard, and {pending} wait"


RETENTION_CHECKS: Sequence[RetentionCheck] = in_words(
    deleting_what_nobody_started_removes_nothing,
    a_deleted_run_is_gone_with_all_that_was_kept_of_it,
    a_run_goes_with_all_beneath_it,
    a_child_whose_parent_is_open_stays,
    a_family_that_is_driven_stays_whole,
    a_run_is_deleted_once,
    texts_go_with_the_last_run_that_refers_to_them,
    a_text_that_somebody_may_be_about_to_refer_to_is_spared,
    a_deletion_is_signed_and_the_log_keeps_the_heads,
    a_session_goes_on_after_its_newest_run_was_deleted,
    a_deleted_run_is_like_no_other,
    what_a_deleted_run_cost_stays_counted,
    a_collection_removes_what_ended_before_a_time,
    a_dry_run_says_what_a_collection_would_remove,
    a_collection_leaves_what_somebody_will_ask_for,
    a_collection_leaves_what_only_the_list_calls_ended,
    what_the_turns_say_of_a_run_counts_more_than_the_list,
    only_what_is_beneath_a_run_by_its_turns_goes_with_it,
    a_collection_leaves_what_is_held,
    a_collection_takes_texts_and_answers_that_nobody_needs,
)

_PARTS = ("turns", "an entry", "heads", "a snapshot", "receipts", "sealed values")


async def _run(
    store: Store, run_id: str, *texts: bytes, ending: str = "SUCCESS", listing: RunListing | None = None
) -> None:
    """A run of two turns, the first of which refers to these texts as turns do."""
    for text in texts:
        await store.blobs.put(digest_of(text), text)
    # MessagePack writes 32 bytes so.
    data = b"turn" + b"".join(b"\xc4\x20" + digest_of(text) for text in texts)
    journal = signed_journal(store.journal, store.key)
    await add(journal, run_id, data, None, listing or RunListing(1))
    await add(journal, run_id, last_turn(START_MS, Ending(ending) if ending else None), Barrier(ending))


async def _told(
    store: Store,
    run_id: str,
    listing: RunListing,
    *,
    listed: RunListing,
    ending: str = "SUCCESS",
    listed_ending: str = "",
) -> None:
    """A run whose turns say one thing, and its entry in the list perhaps another."""
    journal = signed_journal(store.journal, store.key)
    await add(journal, run_id, first_turn(run_id, listing), None, listed)
    last = last_turn(START_MS, Ending(ending) if ending else None)
    await add(journal, run_id, last, Barrier(listed_ending or ending))


async def _family(store: Store, *, parent_ending: str = "SUCCESS") -> None:
    """A run with a child and a grandchild."""
    await _run(store, "root", ending=parent_ending)
    await _run(store, "child", listing=RunListing(1, parent_id="root", lineage=("root",)))
    await _run(store, "grandchild", listing=RunListing(1, parent_id="child", lineage=("root", "child")))


async def _left_of(store: Store, run_id: str) -> list[str]:
    """What is still kept of a run, in words."""
    receipts = await store.receipts.kept(ReceiptKind.ACKNOWLEDGED)
    found = (
        list(await store.journal.read(run_id)),
        await store.catalogue.entry(run_id),
        list(await store.catalogue.heads(run_id)),
        await store.snapshots.latest(run_id),
        [receipt for receipt in receipts if receipt.run_id == run_id],
        store.seals.values(run_id),
    )
    return [what for what, value in zip(_PARTS, found, strict=True) if value]


async def _kept(store: Store, *texts: bytes) -> list[bytes]:
    """The texts that are still there."""
    found = []
    for text in texts:
        try:
            found.append(await store.blobs.get(digest_of(text)))
        except BlobMissing:
            continue
    return found
