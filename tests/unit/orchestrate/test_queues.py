"""The queues of a store: what they hold, when they are full, and who takes note."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RemitError, RequestRejected
from remit.core.journal.codec import decode_turn
from remit.core.journal.rulings import ToolCallRefused
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.escalation import Gravity, Trigger
from remit.core.limits.profiles import GUARDED, STANDARD
from remit.core.limits.queue import QUEUE_INVALID, QueueLimits, ReceiptKind
from remit.core.limits.tools import ToolCategory
from remit.core.record import replace
from remit.core.run.approval import What
from remit.core.run.person import PERSON_INVALID
from remit.core.run.signals import Signal
from remit.core.schema.strict_yaml import YamlFault
from remit.orchestrate.facade import System
from remit.orchestrate.people.queues import NOTHING_HANDED_ON, QUEUE_FOREIGN, QUEUE_FULL, read_queues
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import (
    PATIENCE_S,
    STORES,
    approval,
    calls,
    in_memory,
    keep,
    request,
    scripted,
    store_of,
)

REACHES = [ReceiptKind]


@tool(effect="external", category=ToolCategory.EMAIL_CALENDAR)
def mail(to: str) -> str:
    """Write to a person."""
    return f"sent to {to}"


def mailing(to: str = "bob") -> Kit:
    """A model that wants to write to a person, which is of moderate severity."""
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


@pytest.mark.parametrize("kind", STORES)
def test_a_queue_holds_what_runs_ask_and_lets_it_go_when_it_is_answered(kind: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with opened(store_of(kind, tmp_path)) as system:
            response = await system.run(request(), mailing())
            assert response.waiting_for is not None
            (item,) = await system.queues.items()
            assert (item.queue, item.what, item.severity) == ("user", What.APPROVAL, Gravity.MODERATE)
            assert item.id == response.waiting_for.packet_ids[0]
            assert [queue.items for queue in await system.queues.overview() if queue.name == "user"] == [1]
            assert await system.queues.items("operator") == []
            await system.signal(approval(item.id))
            await system.settle()
            assert await system.queues.items() == []

    asyncio.run(play())


@pytest.mark.parametrize("kind", STORES)
def test_an_ending_stays_in_its_queue_until_a_person_acknowledges_it(kind: str, tmp_path: Path) -> None:
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
            # The second person learns who was first.
            assert (await system.queues.acknowledge(response.run_id, "bob")).by == "ann"

    asyncio.run(play())


def test_only_an_ending_that_hands_something_on_can_be_acknowledged_and_by_a_named_person() -> None:
    async def play() -> None:
        async with opened(MemoryStore()) as system:
            done = await system.run(request(), scripted({"text": "Done."}))
            waiting = await system.run(request(), mailing())
            for run_id, by in ((done.run_id, "ann"), (waiting.run_id, "ann"), (done.run_id, " ")):
                with pytest.raises(RequestRejected) as refused:
                    await system.queues.acknowledge(run_id, by)
                assert refused.value.code == (NOTHING_HANDED_ON if by.strip() else PERSON_INVALID)

    asyncio.run(play())


@pytest.mark.req("4.46")
@pytest.mark.parametrize("kind", STORES)
def test_what_a_full_queue_has_no_room_for_waits_outside_in_order_and_enters_when_there_is_room(
    kind: str, tmp_path: Path
) -> None:
    async def play() -> None:
        async with opened(store_of(kind, tmp_path), QueueLimits("user", load_max=1)) as system:
            runs = [(await system.run(request(), mailing(to))).run_id for to in ("a", "b", "c")]
            for run_id in runs:
                waiting = (await system.result(run_id)).waiting_for
                assert waiting is not None
                assert waiting.ending is Ending.CONFIRM_REQUIRED
            assert await standing(system) == [(runs[0], False), (runs[1], True), (runs[2], True)]
            (shown,) = [queue for queue in await system.queues.overview() if queue.name == "user"]
            assert (shown.items, shown.outside, shown.is_saturated) == (3, 2, True)
            first, second, third = [item.id for item in await system.queues.items("user")]
            with pytest.raises(RequestRejected, match=f"answer what is inside first, such as {first}") as refused:
                await system.signal(approval(second))
            assert refused.value.code == QUEUE_FULL
            await system.signal(approval(first))
            await system.settle()
            assert await standing(system) == [(runs[1], False), (runs[2], True)]
            # A no needs no room.
            await system.signal(approval(third, Signal.REJECT))
            await system.signal(approval(second))
            await system.settle()
            assert await standing(system) == []
            assert (await system.result(runs[1])).terminal_code in (Ending.SUCCESS, Ending.PARTIAL_SUCCESS)

    asyncio.run(play())


async def standing(system: System) -> list[tuple[str, bool]]:
    """Which runs wait in the queue of users, and whether outside."""
    return [(item.run_id, item.is_outside) for item in await system.queues.items("user")]


@pytest.mark.req("4.46")
def test_who_is_not_named_by_a_queue_answers_nothing_in_it() -> None:
    async def play() -> None:
        limits = [QueueLimits("user", answered_by=("Ann", "bob")), QueueLimits("budget", answered_by=("bob",))]
        async with opened(MemoryStore(), *limits) as system:
            await system.run(request(), mailing())
            (item,) = await system.queues.items("user")
            for kind in (Signal.APPROVE, Signal.REJECT):
                for by in ("ada", "b0b"):
                    with pytest.raises(RequestRejected) as refused:
                        await system.signal(replace(approval(item.id, kind), user_id=by))
                    assert refused.value.code == QUEUE_FOREIGN
                    assert ("read for 'bob'" in refused.value.message) == (by == "b0b")
            await system.signal(replace(approval(item.id), user_id="ANN"))
            await system.settle()
            assert await system.queues.items("user") == []
            ended = await system.run(request(), scripted({"text": "x"}), Terms(Boundary("s"), Budget(output_tokens=0)))
            with pytest.raises(RequestRejected) as refused:
                await system.queues.acknowledge(ended.run_id, "ann")
            assert refused.value.code == QUEUE_FOREIGN
            assert (await system.queues.acknowledge(ended.run_id, "bob")).by == "bob"

    asyncio.run(play())


def test_an_answer_to_nothing_is_none_of_a_queue_s_business() -> None:
    async def play() -> None:
        async with opened(MemoryStore(), QueueLimits("user", load_max=1, answered_by=("bob",))) as system:
            done = await system.run(request(), scripted({"text": "Done."}))
            with pytest.raises(RemitError) as refused:
                await system.signal(approval(f"{done.run_id}/1.1"))
            assert refused.value.code == "PACKET_UNKNOWN"
            waiting = await system.run(request(), keeping())
            assert waiting.waiting_for is not None
            await system.signal(approval(waiting.waiting_for.packet_ids[0]))

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
            outside = {item.run_id for item in await system.queues.items("user") if item.is_outside}
            assert outside == {later.run_id}

    asyncio.run(play())


def test_a_run_that_cannot_be_read_is_passed_over_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    class Torn(MemoryStore):
        """A store in which the turns of a run are damaged."""

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


@pytest.mark.req("4.37")
@pytest.mark.parametrize("boundary", [STANDARD, GUARDED])
def test_what_people_turn_away_again_and_again_ends_in_the_queue_of_compliance(boundary: Boundary) -> None:
    async def play() -> None:
        kit = scripted(*(calls("keep", text=f"note {n}") for n in range(12)), {"text": "Done."}, tools=[keep])
        async with in_memory() as system:
            response = await system.run(request(), kit, Terms(boundary=boundary))
            asked = 0
            while response.waiting_for is not None:
                asked += 1
                await system.signal(approval(response.waiting_for.packet_ids[0], Signal.REJECT), kit=kit)
                await system.settle()
                response = await system.result(response.run_id)
            (item,) = await system.queues.items("compliance")
        assert (asked, response.terminal_code) == (3, Ending.PERMISSION_DENIED)
        assert (item.id, item.what) == (response.run_id, What.ENDING)

    asyncio.run(play())


def test_a_file_and_python_name_the_same_queues(tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        "queues:\n  - name: user\n    load_max: 5\n    age_ms_max: 1000\n    webhook: https://example.org/\n  - name: sre\n    answered_by: [ann, bob]\n"
    )
    named = QueueLimits("sre", answered_by=("ann", "bob"))
    assert read_queues(path) == (QueueLimits("user", 5, 1000, "https://example.org/"), named)
    path.write_text("queues: []\n")
    assert read_queues(path) == ()


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("queues:\n  - {name: user, load: 5}", YamlFault.KEY_UNKNOWN, "did you mean 'load_max'?"),
        ("queues:\n  - {load_max: 5}", YamlFault.VALUE_INVALID, "queues[0] has no name"),
        (
            "queues:\n  - {name: user, load_max: many}",
            YamlFault.VALUE_INVALID,
            "queues[0].load_max must be a whole number",
        ),
        ("queues:\n  - {name: user, load_max: true}", YamlFault.VALUE_INVALID, "whole number, not True"),
        ("queues:\n  - {name: 5}", YamlFault.VALUE_INVALID, "queues[0].name must be a text"),
        ("queues: user", YamlFault.VALUE_INVALID, "must be a list"),
        ("- a", YamlFault.VALUE_INVALID, "must be a mapping"),
        ("queues:\n  - {name: user, load_max: -1}", QUEUE_INVALID, "queues.yaml: queue='user' has load_max=-1"),
        ("queues:\n  - {name: a}\n  - {name: a}", QUEUE_INVALID, "named twice"),
        ("queues:\n  - {name: a, answered_by: ann}", YamlFault.VALUE_INVALID, "must be a list"),
        ("queues:\n  - {name: a, answered_by: [5]}", YamlFault.VALUE_INVALID, "answered_by[0] must be a name"),
        ("queues:\n  - {name: a, answered_by: ['']}", QUEUE_INVALID, "answered_by='' is no name"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, text: str, code: str, says: str) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(text)
    with pytest.raises(RequestRejected) as refused:
        read_queues(path)
    assert refused.value.code == code
    assert says in refused.value.message
    assert "queues.yaml" in refused.value.message
