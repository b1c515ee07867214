"""A run that waited for what its child asks, once that child has ended: it goes on, or is shown as what it is."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from remit.core.failure import Ending, RunFailed
from remit.core.journal.arrivals import CancelRequested
from remit.core.run.contract import RUN_OPEN
from remit.core.run.halt import HALTED
from remit.core.run.signals import Signal
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.facade import System
from remit.orchestrate.loop.child_runs import halted_beneath, held_now
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry
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
    until,
)
from tests.unit.orchestrate.stage import play

ASKS = {"when": '"task"', **calls("keep", text="x")}


def house() -> Kit:
    """A model that has a helper do a task, who wants to change something."""
    return scripted(*[ASKS] * 3, calls("helper", task="keep it"), *[{"text": "thanks"}] * 4, tools=[keep, helper])


async def child_of(system: System, run_id: str) -> str:
    (child,) = await system.store.catalogue.entries(parent_id=run_id)
    return child.run_id


async def waiting(system: System, kit: Kit) -> tuple[str, str]:
    """A run whose child asks; gives both."""
    response = await system.run(request(), kit)
    assert response.waiting_for is not None
    return response.run_id, await child_of(system, response.run_id)


async def shown(system: System, run_id: str) -> dict[str, object]:
    """What a run waits for, at every place that tells."""
    told = await system.archive.told(run_id)
    every = {entry.run_id: entry.waiting_for for entry in await system.archive.runs()}
    first = {entry.run_id: entry.waiting_for for entry in await system.archive.runs(limit=1)}
    asking = {entry.run_id: entry.waiting_for for entry in await system.archive.runs(waiting_only=True)}
    answer = (await system.result(run_id)).waiting_for
    return {
        "listed": every[run_id],
        "listed first": first[run_id],
        "listed as waiting": asking.get(run_id, ""),
        "told": told.entry.waiting_for,
        "explained": told.explanation.standing.code,
        "answered": "" if answer is None else answer.ending.value,
    }


def all_say(code: str) -> dict[str, object]:
    return dict.fromkeys(("listed", "listed first", "listed as waiting", "told", "explained", "answered"), code)


@pytest.mark.parametrize("kind", STORES)
def test_a_run_goes_on_here_as_soon_as_the_child_it_waited_for_is_cancelled(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of(kind, tmp_path)) as (system,):
            run_id, child_id = await waiting(system, house())
            await system.signal(signal(Signal.CANCEL, child_id))
            await system.settle(run_id)
            assert (await system.result(run_id)).terminal_code is Ending.PARTIAL_SUCCESS

    play(story())


@pytest.mark.req("4.36")
def test_a_run_that_no_process_drives_is_open_once_another_process_cancelled_its_child(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        async with systems(store_of("embedded", home), store_of("embedded", home)) as (system, other):
            kit = house()
            run_id, child_id = await waiting(system, kit)
            assert await shown(other, run_id) == all_say("CONFIRM_REQUIRED")
            await other.signal(signal(Signal.CANCEL, child_id))
            await other.settle()
            assert len(await other.store.journal.read(run_id)) == 3, "to cancel loads nothing and asks no model"
            for one in (system, other):
                assert await shown(one, run_id) == all_say("")
            with pytest.raises(RunFailed, match=RUN_OPEN):
                (await other.result(run_id)).raise_for_error()
            assert (await system.archive.told(run_id)).explanation.standing.status == "open"
            assert (await system.resume(run_id, kit=kit)).raise_for_error().content == "thanks"

    play(story())


@pytest.mark.slow
def test_a_run_that_is_driven_hears_that_another_process_cancelled_its_child(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        async with systems(store_of("embedded", home), store_of("embedded", home)) as (system, other):
            done = False

            async def is_done() -> bool:
                return done

            @tool(effect="read", network=False)
            async def dig(at: str) -> str:
                """Dig, until the child beside it has ended."""
                await until(is_done)
                return at

            both = {"tool_calls": [*calls("helper", task="keep it")["tool_calls"], *calls("dig", at="x")["tool_calls"]]}
            kit = engine_kit(ScriptedEngine([ASKS, both, {"text": "thanks"}]), Registry([keep, helper, dig]))
            run_id = await system.submit(request(), kit)

            async def is_held() -> bool:
                return bool((await other._runner.load(run_id)).state.children.waiting)

            async def is_released() -> bool:
                return not await is_held()

            await until(is_held)
            await other.signal(signal(Signal.CANCEL, await child_of(other, run_id)))
            await until(is_released)
            done = True
            assert (await system.result(run_id)).terminal_code is Ending.PARTIAL_SUCCESS

    play(story())


async def rejected(system: System, child_id: str) -> str:
    """A no that loads nothing pauses the child."""
    asked = (await system.result(child_id)).waiting_for
    assert asked is not None
    assert (await system.signal(approval(asked.packet_ids[0], Signal.REJECT))).rests_because
    return "REVIEW_REQUIRED"


async def paused(system: System, child_id: str) -> str:
    """A child that is paused still asks."""
    await system.signal(signal(Signal.PAUSE, child_id))
    return "CONFIRM_REQUIRED"


@pytest.mark.parametrize("happens", [rejected, paused])
def test_what_is_above_a_child_that_rests_elsewhere_says_so_and_goes_on_with_it(
    happens: Callable[[System, str], Awaitable[str]], tmp_path: Path
) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        async with systems(store_of("embedded", home), store_of("embedded", home)) as (system, other):
            kit = house()
            run_id, child_id = await waiting(system, kit)
            code = await happens(other, child_id)
            assert await shown(other, run_id) == all_say(code)
            await system.signal(signal(Signal.CANCEL, child_id))
            await system.settle(run_id)
            assert (await system.result(run_id)).terminal_code is not None

    play(story())


def test_a_child_that_ends_where_nothing_is_loaded_leaves_its_parent_open(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        async with systems(store_of("embedded", home), store_of("embedded", home)) as (system, other):
            run_id, child_id = await waiting(system, house())
            await other._hub.note_and_rest(child_id, [CancelRequested("ada")])
            assert await shown(other, run_id) == all_say("")

    play(story())


def test_a_run_whose_child_stands_still_for_a_halt_is_listed_as_halted(tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(store_of("embedded", tmp_path)) as (system,):
            kit = house()
            run_id, child_id = await waiting(system, kit)
            asked = (await system.result(child_id)).waiting_for
            assert asked is not None
            await system.halt("smoke", by="ada", tool="keep")
            await system.signal(approval(asked.packet_ids[0]), kit=kit)
            await system.settle()
            assert await shown(system, run_id) == {**all_say(HALTED), "answered": ""}
            response = await system.result(run_id)
            assert response.halted is not None
            assert response.halted.why == "smoke"
            await system.lift(by="ada", tool="keep")
            assert (await system.resume(run_id, kit=kit)).terminal_code is Ending.SUCCESS

    play(story())


def test_the_child_of_a_fork_that_is_cancelled_lets_the_fork_go_on_and_not_its_origin(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        async with systems(store_of("embedded", home), store_of("embedded", home)) as (system, other):
            kit = house()
            run_id, _ = await waiting(system, kit)
            fork_id = (await system.fork(run_id, by="dan", kit=kit)).fork_id
            await system.settle(fork_id)
            fork_child = await child_of(system, fork_id)
            assert await shown(other, fork_id) == all_say("CONFIRM_REQUIRED")
            await other.signal(signal(Signal.CANCEL, fork_child))
            assert await shown(other, fork_id) == all_say("")
            assert (await other.archive.told(run_id)).entry.waiting_for == "CONFIRM_REQUIRED"
            assert (await system.resume(fork_id, kit=kit)).terminal_code is Ending.PARTIAL_SUCCESS
            assert (await system.result(run_id)).waiting_for is not None
            await system.signal(signal(Signal.CANCEL, run_id))
            await system.settle()

    play(story())


def test_a_page_of_runs_that_wait_is_filled_with_those_that_still_do(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        async with systems(store_of("embedded", home), store_of("embedded", home)) as (system, other):
            kit = scripted(*[ASKS] * 3, *[calls("helper", task="keep it")] * 3, tools=[keep, helper])
            first, _ = await waiting(system, kit)
            _, child_id = await waiting(system, kit)
            last, _ = await waiting(system, kit)
            await other.signal(signal(Signal.CANCEL, child_id))

            async def page(before: str, limit: int) -> list[str]:
                found = await other.archive.runs(waiting_only=True, before=before, limit=limit)
                return [entry.run_id for entry in found]

            assert await page("", 2) == [last, first]
            assert (await page(last, 1), await page(first, 1)) == ([first], [])

    play(story())


def test_a_child_without_a_turn_holds_nobody_up_and_one_that_cannot_be_read_does() -> None:
    async def story() -> None:
        state = RunState()
        state.children.waiting, state.children.runs = {"1.1": Ending.CONFIRM_REQUIRED}, {"1.1": "c"}

        async def gone(run_id: str) -> RunState:
            return RunState()

        async def unreadable(run_id: str) -> None:
            return None

        assert (await held_now(state, gone), await halted_beneath(state, gone)) == ({}, None)
        assert await held_now(state, unreadable) == state.children.waiting
        assert await halted_beneath(state, unreadable) is None

    play(story())
