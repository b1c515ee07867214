"""Runs whose parent ended and could not tell them: the process that meets one cancels it, and nothing more is done in it."""

from pathlib import Path

import pytest

from remit.backend.clock import WallClock
from remit.core.failure import Ending, RequestRejected
from remit.core.journal.arrivals import CancelRequested
from remit.core.journal.storage import Barrier, RunEntry, RunListing
from remit.core.run.contract import CallStatus
from remit.core.run.signals import Signal
from remit.orchestrate.facade import System
from remit.orchestrate.loop.child_runs import PARENT_ENDED, orphan_above, orphans
from remit.orchestrate.loop.in_process import InProcessDispatch
from remit.orchestrate.loop.runner import Runner
from remit.tool.delegate import delegate
from tests.unit.orchestrate.house import (
    STORES,
    approval,
    calls,
    helper,
    keep,
    request,
    scripted,
    signal,
    store_of,
    systems,
    unaudited,
)
from tests.unit.orchestrate.stage import play

# What the helper of a helper needs at most.
LESS = {"input_tokens": 20_000, "output_tokens": 4_000, "tool_calls": 2, "steps": 10, "human_reviews": 1}
clerk = delegate("clerk", description="Have a task of a task done.", lease=LESS)
KIT = scripted(
    {"when": '"task".*deep', **calls("clerk", task="write")},
    {"when": '"task"', **calls("keep", text="x")},
    {"when": "^deep", **calls("helper", task="go deep")},
    calls("helper", task="write"),
    {"text": "thanks"},
    tools=[keep, helper, clerk],
)


async def left_behind(system: System, text: str = "please") -> tuple[str, str]:
    """A run that ended and whose process died before it told its child; gives it and the question left open."""
    response = await system.run(request(text), KIT)
    assert response.waiting_for is not None
    (packet_id,) = response.waiting_for.packet_ids
    clock, store = WallClock(), system.store
    dead = Runner(journal=store.journal, blobs=store.blobs, clock=clock, dispatch=InProcessDispatch({}, clock))
    await dead.rule_on(await dead.load(response.run_id), CancelRequested("ada"))
    return response.run_id, packet_id


async def entry_of(system: System, run_id: str) -> RunEntry:
    entry = await system.store.catalogue.entry(run_id)
    assert entry is not None
    return entry


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("text", ["please", "deep please"])
@pytest.mark.parametrize("answer", [Signal.APPROVE, Signal.REJECT])
def test_an_answer_to_what_was_left_behind_is_refused_and_cancels_it(
    kind: str, text: str, answer: Signal, tmp_path: Path
) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            parent_id, packet_id = await left_behind(system, text)
            run_id = packet_id.partition("/")[0]
            assert await system.archive.approvals() == []
            assert (await system.archive.approval(parent_id)).id == packet_id
            with pytest.raises(RequestRejected, match=f"PARENT_ENDED: run {parent_id}, for which run {run_id} worked"):
                await system.signal(approval(packet_id, answer), kit=KIT)
            await system.settle()
            endings = [entry.ending for entry in await system.store.catalogue.entries()]
            assert endings == ["USER_CANCEL"] * (3 if text.startswith("deep") else 2)
            (never,) = (await system.result(run_id)).tool_calls_made
            assert (never.status, never.code) == (CallStatus.REFUSED, "CANCELLED_SIGNAL")

    play(story())


@pytest.mark.parametrize("text", ["please", "deep please"])
def test_a_process_that_resumes_what_was_left_behind_cancels_it(text: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of("embedded", tmp_path)) as (system,):
            _, packet_id = await left_behind(system, text)
            response = await system.resume(packet_id.partition("/")[0])
            assert response.terminal_code is Ending.USER_CANCEL
            assert response.error is not None
            assert response.error.message == "cancelled by parent"

    play(story())


@pytest.mark.parametrize("text", ["please", "deep please"])
def test_all_that_was_left_behind_is_ended_at_once_and_nothing_else(text: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of("embedded", tmp_path)) as (system,):
            parent_id, _ = await left_behind(system, text)
            other = await system.run(request(text), KIT)
            (ended,) = await system.end_orphans()
            assert (await entry_of(system, ended)).listing.parent_id == parent_id
            assert await system.end_orphans() == []
            still_open = await system.store.catalogue.entries(open_only=True)
            assert {await system.lineages.family(entry.run_id) for entry in still_open} == {other.run_id}

    play(story())


def test_what_was_left_behind_and_is_driven_elsewhere_finds_the_cancel_in_its_inbox(tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of("embedded", tmp_path), store_of("embedded", tmp_path)) as (system, other):
            _, packet_id = await left_behind(system)
            run_id = packet_id.partition("/")[0]
            assert await other.store.leases.take(run_id) is not None
            with pytest.raises(RequestRejected) as refused:
                await system.signal(signal(Signal.FEEDBACK, run_id, text="hello"))
            assert refused.value.code == PARENT_ENDED
            (left,) = await system.store.inbox.pending(after=0)
            assert left.run_id == run_id

    play(story())


def test_a_cancel_of_what_was_left_behind_is_heard_as_any_other(tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of("embedded", tmp_path)) as (system,):
            _, packet_id = await left_behind(system)
            run_id = packet_id.partition("/")[0]
            await system.signal(signal(Signal.CANCEL, run_id))
            response = await system.result(run_id)
            assert response.error is not None
            assert response.error.message == "cancelled by ada"

    play(story())


@pytest.mark.parametrize(
    ("run_id", "above"),
    [("a", None), ("a.1.2", None), ("b", None), ("b.1.2", "b.1.2"), ("b.1.2.1.2", "b.1.2"), ("c.1.2", "c.1.2")],
)
def test_a_run_was_left_behind_when_one_above_it_has_ended_or_is_gone(
    run_id: str, above: str | None, tmp_path: Path
) -> None:
    runs = (("a", "", ""), ("a.1.2", "a", ""), ("b", "", "TIMEOUT"), ("b.1.2", "b", ""), ("b.1.2.1.2", "b.1.2", ""))

    async def story() -> None:
        async with unaudited(store_of("embedded", tmp_path)) as (system,):
            for name, parent_id, ending in (*runs, ("c.1.2", "c", "")):
                listing = RunListing(0, parent_id=parent_id)
                await system.store.journal.append(name, b"", after=-1, listing=listing, barrier=Barrier(ending))
            found = await orphan_above(system.store.catalogue, await entry_of(system, run_id))
            assert (found and found.run_id) == above
            assert [entry.run_id for entry in await orphans(system.store.catalogue)] == ["c.1.2", "b.1.2"]

    play(story())
