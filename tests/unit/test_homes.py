"""Which folder a store is made in: none that was named by accident, and one system for one door."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import remit
from remit import (
    AgentLoop,
    EmbeddedStore,
    PlanExecutor,
    RedundantLoop,
    RequestRejected,
    ScriptedEngine,
    SpecializedLoop,
)
from remit.adapters.cli.main import main
from remit.assemble import opened_system, settings_of
from remit.backend.cluster.store import ClusterStore

ENGINE = ScriptedEngine([{"text": "a"}])
EMPTY = ["", "  ", Path(), Path("./")]
DOORS: dict[str, Callable[[object], object]] = {
    "open": remit.open,  # type: ignore[dict-item]
    "agent": lambda home: AgentLoop(ENGINE, home=home),  # type: ignore[arg-type]
    "plan": lambda home: PlanExecutor({}, home=home),  # type: ignore[arg-type]
    "redundant": lambda home: RedundantLoop(ENGINE, schema={}, home=home),  # type: ignore[arg-type]
    "specialized": lambda home: SpecializedLoop(ENGINE, schema={}, home=home),  # type: ignore[arg-type]
    "settings": lambda home: settings_of({}, home=home),  # type: ignore[arg-type]
    "embedded": EmbeddedStore.open,  # type: ignore[dict-item]
    "cluster": lambda home: ClusterStore.open("nats://127.0.0.1:1", home),  # type: ignore[arg-type]
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def entered(door: Callable[[object], object], home: object) -> None:
    opened = door(home)
    if door is remit.open:
        async with opened:  # type: ignore[attr-defined]
            pass


def made_here() -> list[str]:
    return [path.name for path in Path.cwd().iterdir()]


@pytest.mark.parametrize("home", EMPTY, ids=repr)
@pytest.mark.parametrize("door", DOORS)
def test_what_was_left_empty_is_no_home(door: str, home: object) -> None:
    async def story() -> None:
        with pytest.raises(RequestRejected) as raised:
            await entered(DOORS[door], home)
        assert raised.value.code == "HOME_INVALID"

    asyncio.run(story())
    assert made_here() == []


@pytest.mark.parametrize("words", [("runs", "--home", ""), ("run", "hello", "--home", " "), ("trust", "")])
def test_an_empty_folder_on_the_command_line_is_none(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words]) != 0
    assert "HOME_INVALID" in capsys.readouterr().err
    assert made_here() == []


def test_the_current_folder_is_a_home_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with remit.open("."):
            assert "remit.db" in made_here()

    asyncio.run(story())
    assert main(["runs", "--home", "."]) == 0
    # An empty variable is one that is not set.
    assert settings_of({"REMIT_HOME": ""}).home == Path(".remit").absolute()


@pytest.mark.parametrize("home", [None, "store"])
def test_a_door_that_is_entered_twice_refuses_and_leaves_nothing_open(home: str | None) -> None:
    async def story() -> None:
        door = remit.open(home, memory=home is None)
        async with door as system:
            with pytest.raises(RequestRejected) as raised:
                async with door:
                    pass
            assert raised.value.code == "STORE_ENTERED"
            assert await system.archive.runs() == [], "the first is open as before"
        with pytest.raises(remit.RemitError) as closed:
            await system.archive.runs()
        assert closed.value.code == "SYSTEM_CLOSED"
        async with door as again:
            assert await again.archive.runs() == []

    asyncio.run(story())


def test_of_two_who_enter_at_once_one_does() -> None:
    async def story() -> None:
        door = remit.open(memory=True)
        entered = await asyncio.gather(door.__aenter__(), door.__aenter__(), return_exceptions=True)
        assert sum(isinstance(one, RequestRejected) and one.code == "STORE_ENTERED" for one in entered) == 1
        await door.__aexit__(None, None, None)
        opened = opened_system(settings_of({}, home="store"))
        async with opened:
            with pytest.raises(RequestRejected, match="entered already"):
                await opened.__aenter__()

    asyncio.run(story())


def test_a_door_that_could_not_be_entered_may_be_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "store").write_text("no folder")
        door = remit.open("store")
        for _ in range(2):
            with pytest.raises(remit.RemitError) as raised:
                await door.__aenter__()
            assert raised.value.code != "STORE_ENTERED"
        (tmp_path / "store").unlink()
        async with door as system:
            assert await system.archive.runs() == []

    asyncio.run(story())
