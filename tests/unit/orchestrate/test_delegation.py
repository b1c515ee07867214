"""Children through a whole system: delegated, waited for, approved, cancelled, wherever they are driven."""

import asyncio
from pathlib import Path

import pytest

from remit.core.failure import Ending, RequestRejected
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.run.lineage import derived_id
from remit.core.run.signals import Signal
from remit.kernel.state import pinned
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.setup.reloaded_kit import ENGINE_NOT_REOPENABLE
from remit.tool.delegate import delegate
from tests.unit.orchestrate.house import (
    LEASE,
    STORES,
    approval,
    calls,
    helper,
    in_memory,
    keep,
    request,
    scripted,
    signal,
    store_of,
    systems,
    until,
)
from tests.unit.orchestrate.stage import play

# A child is told its task as JSON; that is how the script tells who asks.
TO_CHILD = '"task"'
DELEGATES = calls("helper", task="look around")


def family(*of_child: JsonObject) -> Kit:
    """A kit whose model delegates once, and whose child says this."""
    return scripted(*of_child, DELEGATES, {"text": "thank you"}, tools=[keep, helper])


def asking() -> Kit:
    """A family whose child wants something approved."""
    return family({"when": TO_CHILD, **calls("keep", text="x")}, {"when": "^kept x", "text": "it is safe"})


def packet_of(response: SystemResponse) -> str:
    """The one question that a response waits for."""
    assert response.waiting_for is not None
    (packet_id,) = response.waiting_for.packet_ids
    return packet_id


def test_a_delegated_task_comes_back_as_the_result_of_the_call() -> None:
    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(request(), family({"when": TO_CHILD, "text": "all quiet"}))
            (call,) = response.tool_calls_made
            assert (response.content, call.result, call.status) == ("thank you", "all quiet", CallStatus.OBSERVED)
            child = await system.state_of(derived_id(response.run_id, "1.2"))
            parent = pinned(child).parent
            assert parent is not None
            assert (parent.run_id, child.end.ending) == (response.run_id, Ending.SUCCESS)
            assert pinned(child).caps[2] == LEASE["tool_calls"]

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_parent_names_what_its_child_asks_and_both_finish_once_it_is_approved(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            waiting = await system.run(request(), asking())
            packet_id = packet_of(waiting)
            assert packet_id == f"{derived_id(waiting.run_id, '1.2')}/1.2"
            assert waiting.terminal_code is None
            await system.signal(approval(packet_id))
            await system.settle(waiting.run_id)
            response = await system.result(waiting.run_id)
            assert (response.content, response.tool_calls_made[0].result) == ("thank you", "it is safe")

    play(story())


def test_a_child_that_is_refused_what_it_asks_ends_and_its_parent_goes_on() -> None:
    async def story() -> None:
        async with in_memory() as system:
            waiting = await system.run(request(), asking())
            await system.signal(approval(packet_of(waiting), Signal.REJECT))
            await system.settle()
            assert (await system.result(waiting.run_id)).terminal_code is Ending.PARTIAL_SUCCESS

    play(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_cancel_of_the_parent_ends_a_child_that_waits_for_a_person(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            waiting = await system.run(request(), asking())
            await system.signal(signal(Signal.CANCEL, waiting.run_id))
            child = await system.result(derived_id(waiting.run_id, "1.2"))
            assert child.terminal_code is Ending.USER_CANCEL

    play(story())


def test_a_cancel_of_the_parent_ends_a_child_in_the_middle_of_a_model_call() -> None:
    async def story() -> None:
        async with in_memory() as system:
            run_id = await system.submit(request(), family({"when": TO_CHILD, "text": "slow", "delay_ms": 20_000}))
            await until(lambda: _is_known(system, derived_id(run_id, "1.2")))
            await system.signal(signal(Signal.CANCEL, run_id))
            await system.settle(run_id)
            assert (await system.result(run_id)).terminal_code is Ending.USER_CANCEL
            assert (await system.result(derived_id(run_id, "1.2"))).terminal_code is Ending.USER_CANCEL

    play(story())


async def _is_known(system: System, run_id: str) -> bool:
    return await system.store.catalogue.entry(run_id) is not None


def test_a_person_who_cancels_the_child_alone_lets_its_parent_go_on() -> None:
    async def story() -> None:
        async with in_memory() as system:
            waiting = await system.run(request(), asking())
            await system.signal(signal(Signal.CANCEL, derived_id(waiting.run_id, "1.2")))
            await system.settle(waiting.run_id)
            response = await system.result(waiting.run_id)
            assert (response.terminal_code, response.content) == (Ending.PARTIAL_SUCCESS, "thank you")

    play(story())


def test_a_grandchild_that_waits_is_cancelled_with_its_grandparent() -> None:
    async def story() -> None:
        # No run can hand on all it was leased.
        half = delegate("half", description="Hand on.", lease={name: amount // 2 for name, amount in LEASE.items()})
        kit = scripted(
            {"when": "deeper", **calls("keep", text="x")},
            {"when": TO_CHILD, **calls("half", task="deeper")},
            DELEGATES,
            {"text": "thank you"},
            tools=[keep, helper, half],
        )
        async with in_memory() as system:
            waiting = await system.run(request(), kit)
            grandchild = derived_id(derived_id(waiting.run_id, "1.2"), "1.2")
            assert packet_of(waiting) == f"{grandchild}/1.2"
            await system.signal(signal(Signal.CANCEL, waiting.run_id))
            assert (await system.result(grandchild)).terminal_code is Ending.USER_CANCEL

    play(story())


def test_a_child_that_another_process_drives_is_waited_for_and_not_lost(tmp_path: Path) -> None:
    async def story() -> None:
        kit = family(
            {"when": TO_CHILD, **calls("keep", text="x")}, {"when": "^kept x", "text": "safe", "delay_ms": 300}
        )
        stores = [store_of("embedded", tmp_path) for _ in range(2)]
        async with systems(*stores) as (here, there):
            waiting = await here.run(request(), kit)
            await there.signal(approval(packet_of(waiting)), kit=kit)
            response = await here.resume(waiting.run_id, kit=kit)
            assert (response.content, response.tool_calls_made[0].result) == ("thank you", "safe")
            await there.settle()

    play(story())


def test_a_cancel_reaches_a_child_that_another_process_drives(tmp_path: Path) -> None:
    async def story() -> None:
        slow = {"when": "^kept x", "text": "safe", "delay_ms": 20_000}
        kit = family({"when": TO_CHILD, **calls("keep", text="x")}, slow)
        stores = [store_of("embedded", tmp_path) for _ in range(2)]
        async with systems(*stores) as (here, there):
            waiting = await here.run(request(), kit)
            await there.signal(approval(packet_of(waiting)), kit=kit)
            await here.signal(signal(Signal.CANCEL, waiting.run_id))
            await there.settle()
            child = await there.result(derived_id(waiting.run_id, "1.2"))
            assert child.terminal_code is Ending.USER_CANCEL

    play(story())


def test_a_child_of_another_process_is_answered_with_the_kit_that_is_lent(tmp_path: Path) -> None:
    async def story() -> None:
        kit = asking()
        async with systems(store_of("embedded", tmp_path)) as (first,):
            waiting = await first.run(request(), kit)
        async with systems(store_of("embedded", tmp_path)) as (second,):
            with pytest.raises(RequestRejected) as refused:
                await second.signal(approval(packet_of(waiting)))
            assert refused.value.code == ENGINE_NOT_REOPENABLE
            await second.signal(approval(packet_of(waiting)), kit=kit)
            await second.settle(waiting.run_id)
            assert (await second.result(waiting.run_id)).content == "thank you"

    play(story())


def test_a_whole_family_goes_on_in_another_process_with_the_kit_that_is_lent_once(tmp_path: Path) -> None:
    async def story() -> None:
        half = delegate("half", description="Hand on.", lease={name: amount // 2 for name, amount in LEASE.items()})
        kit = scripted(
            {"when": "deeper", **calls("keep", text="x")},
            {"when": "^kept x", "text": "safe"},
            {"when": "^safe", "text": "sound"},
            {"when": TO_CHILD, **calls("half", task="deeper")},
            DELEGATES,
            {"text": "thank you"},
            tools=[keep, helper, half],
        )
        async with systems(store_of("embedded", tmp_path)) as (first,):
            waiting = await first.run(request(), kit)
        async with systems(store_of("embedded", tmp_path)) as (second,):
            await second.signal(approval(packet_of(waiting)), kit=kit)
            await second.settle(waiting.run_id)
            assert (await second.result(waiting.run_id)).content == "thank you"

    play(story())


def test_settling_one_run_does_not_wait_for_another() -> None:
    async def story() -> None:
        async with in_memory() as system:
            slow = await system.submit(request(), scripted({"text": "late", "delay_ms": 20_000}))
            quick = await system.submit(request(), scripted({"text": "soon", "delay_ms": 10}))
            await asyncio.wait_for(system.settle(quick), 5)
            assert (await system.result(quick)).content == "soon"
            await system.signal(signal(Signal.CANCEL, slow))

    play(story())
