"""Workplace: a system is opened when it is needed, once for each event loop, and closed by the caller that opened it."""

import asyncio
from functools import partial
from gc import collect
from pathlib import Path
from typing import Any

import pytest

from remit import System
from remit.agents.workplace import LOOP_RUNNING, Workplace, refuse_inside_a_loop
from remit.assemble import Opened, system_in_memory
from remit.core.failure import RemitError, RequestRejected
from remit.core.home import HOME_INVALID
from tests.unit.orchestrate.house import request, scripted, until
from tests.unit.orchestrate.stage import play


def test_nothing_is_opened_before_it_is_needed_and_then_only_once(tmp_path: Path) -> None:
    async def story() -> None:
        workplace = Workplace(None, tmp_path / "home")
        was_in_use = [workplace.is_in_use]
        assert not (tmp_path / "home").exists()
        system = await workplace.system()
        assert await workplace.system() is system
        was_in_use.append(workplace.is_in_use)
        await workplace.close()
        assert [*was_in_use, workplace.is_in_use] == [False, True, False]
        assert await workplace.system() is not system
        await workplace.close()

    play(story())


def test_a_home_is_where_it_was_when_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.chdir(tmp_path)
        workplace = Workplace(None, "home")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        await workplace.system()
        await workplace.close()

    play(story())
    assert (tmp_path / "home").is_dir()


def test_another_loop_gets_another_system(tmp_path: Path) -> None:
    workplace = Workplace(None, tmp_path)
    first = play(workplace.system())
    assert not workplace.is_in_use
    assert play(workplace.system()) is not first


def test_a_system_that_was_given_is_used_in_place_of_any_other_and_never_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        system = system_in_memory()
        monkeypatch.setenv("REMIT_HOME", str(tmp_path / "home"))
        workplace = Workplace(system, None)
        assert await workplace.system() is system
        await workplace.close()
        assert (await system.run(request(), scripted({"text": "hello"}))).content == "hello"

    play(story())
    assert not (tmp_path / "home").exists()


async def is_closed(system: System) -> bool:
    try:
        await system.submit(request(), scripted({"text": "hello"}))
    except RemitError:
        return True
    return False


@pytest.mark.slow
def test_what_nobody_holds_any_more_is_closed_while_its_loop_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        workplace = Workplace(None, tmp_path)
        system = await workplace.system()
        assert not await is_closed(system)
        del workplace
        collect()
        await until(partial(is_closed, system))

    play(story())


@pytest.mark.slow
def test_what_nobody_holds_any_more_is_closed_before_its_loop_ends_even_where_that_is_now(tmp_path: Path) -> None:
    async def hold(workplace: Workplace) -> None:
        await workplace.system()
        await asyncio.Event().wait()

    async def story() -> System:
        workplace = Workplace(None, tmp_path)
        system = await workplace.system()
        # It is let go when the loop cancels the task, which is when it ends.
        holding = asyncio.create_task(hold(workplace))
        await asyncio.sleep(0)
        holding.add_done_callback(lambda _: collect())
        return system

    complaints: list[Any] = []
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        system = runner.run(story())
    assert complaints == []
    assert play(is_closed(system))


def test_two_threads_have_a_system_each(tmp_path: Path) -> None:
    workplace = Workplace(None, tmp_path)

    async def story() -> None:
        system = await workplace.system()
        assert await asyncio.to_thread(lambda: play(workplace.system())) is not system
        assert await workplace.system() is system
        assert not await is_closed(system)

    play(story())


def test_a_method_for_programs_without_a_loop_is_refused_inside_one() -> None:
    async def story() -> None:
        with pytest.raises(RequestRejected) as refused:
            refuse_inside_a_loop("vote_sync", "vote")
        assert refused.value.code == LOOP_RUNNING
        assert refused.value.message == "vote_sync was called inside a running event loop; await vote() instead"

    refuse_inside_a_loop("vote_sync", "vote")
    play(story())


def test_two_who_come_at_once_get_one_system(tmp_path: Path) -> None:
    async def story() -> None:
        workplace = Workplace(None, tmp_path)
        first, second = await asyncio.gather(workplace.system(), workplace.system())
        assert first is second
        await workplace.close()

    play(story())


def test_nothing_that_was_never_opened_has_to_be_closed(tmp_path: Path) -> None:
    workplace = Workplace(None, tmp_path / "home")
    play(workplace.close())
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("home", [3, b"home", ["home"], object()])
def test_a_home_that_is_no_path_is_refused(home: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        Workplace(None, home)
    assert refused.value.code == HOME_INVALID
    assert "give its path" in refused.value.message


def test_what_a_caller_stops_waiting_for_is_closed_once_it_is_open() -> None:
    async def story() -> None:
        made: list[System] = []

        def make() -> System:
            made.append(system_in_memory())
            return made[0]

        opening = asyncio.create_task(Opened(make).__aenter__())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert await is_closed(made[0])

    play(story())
