"""The queues of a store: what they hold, when they are full, and who takes note."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from remit.core.arrivals import ApprovalRefused
from remit.core.boundary import Boundary
from remit.core.budget import Budget
from remit.core.codec import decode_turn
from remit.core.escalation import Severity, Trigger
from remit.core.failure import Ending, RequestRejected
from remit.core.queue import QueueLimits, ReceiptKind
from remit.core.rulings import ToolCallRefused
from remit.core.tools import ToolCategory
from remit.observe.queues import What
from remit.orchestrate.facade import System
from remit.orchestrate.kit import Kit, Terms
from remit.orchestrate.ports import Store
from remit.orchestrate.queues import NOTHING_HANDED_ON, QUEUE_FULL
from remit.tool.declare import tool
from tests.unit.orchestrate.house import PATIENCE_S, STORES, approval, calls, keep, request, scripted, store_of

REACHES = [ReceiptKind]


@tool(effect="external", category=ToolCategory.EMAIL_CALENDAR)
def mail(to: str) -> str:
    """Write to somebody."""
    return f"sent to {to}"


def mailing(to: str = "bob") -> Kit:
    """A model that wants to write to somebody, which is of moderate severity."""
    return scripted(calls("mail", to=to), {"text": "Done."}, tools=[mail, keep])


def keeping() -> Kit:
    """A model that wants to change something, which is grave."""
    return scripted(calls("keep", text="x"), {"text": "Done."}, tools=[mail, keep])


@asynccontextmanager
async def opened(store: Store, *limits: QueueLimits) -> AsyncIterator[System]:
    """A system whose queues have these limits."""
    system = system_on(store, queues=limits)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield system
    finally:
        await system.close()


async def turns_of(system: System, run_id: str) -> list[object]:
    """Everything that arrived in a run."""
    return [decode_turn(data).arrival for data in await system.store.journal.read(run_id)]


@pytest.mark.parametrize("kind", STORES)
def test_a_queue_holds_what_runs_ask_and_lets_it_go_when_it_is_answered(kind: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with opened(store_of(kind, tmp_path)) as system:
            response = await system.run(request(), mailing())
            assert response.waiting_for is not None
            (item,) = await system.queues.items()
            assert (item.queue, item.what, item.severity) == ("user", What.APPROVAL, Severity.MODERATE)
            assert item.id == response.waiting_for.packet_ids[0]
            assert [queue.items for queue in await system.queues.overview() if queue.name == "user"] == [1]
            assert await system.queues.items("operator") == []
            await system.signal(approval(item.id))
            await system.settle()
            assert await system.queues.items() == []

    asyncio.run(play())


@pytest.mark.parametrize("kind", STORES)
def test_an_ending_stays_in_its_queue_until_somebody_acknowledges_it(kind: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with opened(store_of(kind, tmp_path)) as system:
            terms = Terms(Boundary(name="small"), Budget(output_tokens=0))
            response = await system.run(request(), scripted({"text": "Done."}), terms)
            assert response.terminal_code is Ending.BUDGET_EXHAUSTED
            (item,) = await system.queues.items()
            assert (item.id, item.queue, item.what) == (response.run_id, "budget", What.ENDING)
            assert item.trigger is Trigger.BUDGET_LIMIT
            receipt = await system.queues.acknowledge(response.run_id, "ann")
            assert (receipt.kind, receipt.by, receipt.item) == (ReceiptKind.ACKNOWLEDGED, "ann", response.run_id)
            assert await system.queues.items() == []
            # Whoever comes second learns who was first.
            assert (await system.queues.acknowledge(response.run_id, "bob")).by == "ann"

    asyncio.run(play())


def test_only_an_ending_that_hands_something_on_can_be_acknowledged_and_by_somebody() -> None:
    async def play() -> None:
        async with opened(MemoryStore()) as system:
            done = await system.run(request(), scripted({"text": "Done."}))
            waiting = await system.run(request(), mailing())
            for run_id, by in ((done.run_id, "ann"), (waiting.run_id, "ann"), ("nobody", "ann"), (done.run_id, " ")):
                with pytest.raises(RequestRejected) as refused:
                    await system.queues.acknowledge(run_id, by)
                assert refused.value.code == NOTHING_HANDED_ON

    asyncio.run(play())


@pytest.mark.parametrize("kind", STORES)
def test_a_full_queue_refuses_at_once_and_the_run_goes_on_without(kind: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with opened(store_of(kind, tmp_path), QueueLimits("user", load_max=2)) as system:
            first, second = [await system.run(request(), mailing(to)) for to in ("a", "b")]
            assert first.waiting_for is not None
            assert second.waiting_for is not None
            third = await system.run(request(), mailing("c"))
            assert third.waiting_for is None
            (refused,) = [one for one in await turns_of(system, third.run_id) if isinstance(one, ApprovalRefused)]
            assert refused.by == "queue:user"
            assert refused.reason.startswith(f"{QUEUE_FULL}: queue user holds 2 items of load_max=2")
            assert len(await system.queues.items("user")) == 2
            # Whoever takes up what was admitted does not turn it away now.
            await system.resume(first.run_id)
            await system.resume(second.run_id)
            assert len(await system.queues.items("user")) == 2

    asyncio.run(play())


def test_what_is_grave_is_always_admitted_and_other_queues_are_none_of_its_business() -> None:
    async def play() -> None:
        limits = [QueueLimits("operator", load_max=1), QueueLimits("user", load_max=5)]
        async with opened(MemoryStore(), *limits) as system:
            for _ in range(3):
                assert (await system.run(request(), keeping())).waiting_for is not None
            assert (await system.run(request(), mailing())).waiting_for is not None
            shown = {queue.name: queue for queue in await system.queues.overview()}
            assert (shown["operator"].items, shown["operator"].is_saturated, shown["user"].is_saturated) == (
                3,
                True,
                False,
            )

    asyncio.run(play())


def test_several_calls_of_one_turn_are_one_packet_and_take_one_place() -> None:
    async def play() -> None:
        wanted = {"tool_calls": [{"name": "mail", "arguments": {"to": to}} for to in ("a", "b", "c")]}
        kit = scripted(wanted, {"text": "Done."}, tools=[mail])
        async with opened(MemoryStore(), QueueLimits("user", load_max=1)) as system:
            response = await system.run(request(), kit)
            assert response.waiting_for is not None
            assert len(await system.queues.items("user")) == 3
            data = await system.store.journal.read(response.run_id)
            decided = [decision for turn in data for decision in decode_turn(turn).decisions]
            assert not any(isinstance(one, ToolCallRefused) for one in decided)
            later = await system.run(request(), scripted(wanted, {"text": "Done."}, tools=[mail]))
            assert later.waiting_for is None

    asyncio.run(play())


def test_a_run_that_cannot_be_read_is_passed_over_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    class Torn(MemoryStore):
        """A store in which somebody has damaged the turns of a run."""

        def damage(self, run_id: str) -> None:
            data = self.journal._runs[run_id]
            data[-1] = b"\x01 torn"

    async def play() -> None:
        store = Torn()
        async with opened(store) as system:
            waiting = await system.run(request(), mailing())
            ended = await system.run(
                request(), scripted({"text": "x"}), Terms(Boundary(name="s"), Budget(output_tokens=0))
            )
            assert len(await system.queues.items()) == 2
            store.damage(waiting.run_id)
            store.damage(ended.run_id)
            assert await system.queues.items() == []

    with caplog.at_level(logging.WARNING):
        asyncio.run(play())
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "what a run asks cannot be read",
        "how a run ended cannot be read",
    ]


def test_a_queue_that_cannot_be_counted_leaves_the_question_to_people(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        async with opened(MemoryStore(), QueueLimits("user", load_max=1)) as system:

            async def broken(name: str = "") -> list[object]:
                raise OSError(f"the disk of {name} is gone")

            monkeypatch.setattr(system.queues, "items", broken)
            assert (await system.run(request(), mailing())).waiting_for is not None

    asyncio.run(play())
    assert "whether a queue has room could not be told" in caplog.text
