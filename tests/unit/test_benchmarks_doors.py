"""The figures of the door go through every public class, and each run in them succeeds."""

import asyncio
import sys
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks import peers
from benchmarks.doors import door_lines, doors_in_rounds
from benchmarks.peers import contest, worker
from benchmarks.peers.contest import TITLES
from tests.unit.test_benchmarks import TINY

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]


def test_each_class_has_a_figure_beside_its_floor() -> None:
    figures = doors_in_rounds(TINY)
    assert {figure.name.split(".")[0] for figure in figures} == {
        "System",
        "AgentLoop",
        "SpecializedLoop",
        "RedundantLoop",
    }
    assert all(figure.floor_micros > 0 for figure in figures)
    assert len(list(door_lines(figures))) == len(figures) + 3


def work_of_a_harness(flavour: str) -> Any:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    return SimpleNamespace(
        PROMPT="look it up",
        FINAL="done",
        FLAVOR=flavour,
        GOOD_JSON='{"n": 1}',
        BAD_JSON='{"n": "one"}',
        args_for=lambda turn: {"q": "item", "n": turn},
        do_lookup=lambda q, n: f"{q} {n}",
        schema=lambda: schema,
        ten_tools=lambda wrap: [],
    )


@pytest.fixture(params=["", "agent"])
def adapter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "common", work_of_a_harness(request.param))
    spec = util.spec_from_file_location("adapter_remit", Path(peers.__path__[0]) / "remit.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_adapter_does_the_work_of_a_harness(adapter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    async def play() -> None:
        assert await adapter.loop(2)() == "done"
        assert await adapter.structured()() == await adapter.vote()() == {"n": 1}
        assert await adapter.suspend()(0)
        adapter.agent()()
        written = adapter.durable(2, str(tmp_path / "one"), "sqlite_full")
        assert await written() == "done"
        await written.aclose()
        prepare, load, _ = adapter.resume(3, 2, str(tmp_path / "two"), "sqlite_full")
        await prepare()
        assert (await load(), await load()) == (2, 2)

    asyncio.run(play())


@pytest.mark.parametrize("contender", ["floor", "remit", "remit@agent"])
def test_a_contender_is_measured_in_all_that_it_can_do(contender: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOOPS", 2), ("MANY", 2), ("MANY_LOOPS", 1), ("WINDOW_S", 0.0), ("REPEATS", 1)):
        monkeypatch.setattr(worker, name, value)
    name, _, flavour = contender.partition("@")
    common: Any = worker.module_at(worker.HERE / "work.py", "common")
    common.FLAVOR = flavour
    try:
        adapter = worker.module_at(worker.HERE / f"{name}.py", f"adapter_of_{name}")
        figures = asyncio.run(worker.figures_of(adapter, common))
    finally:
        del sys.modules["common"], sys.modules[f"adapter_of_{name}"]
    assert set(figures) == set(TITLES)
    assert all(micros > 0 for micros in figures.values())


def test_peers_that_are_not_installed_are_named_with_the_way_to_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "FOLDER", Path("nowhere"))
    told = {"start": 1.0, "loop": 2.0, "many": 4.0}
    lines = list(contest.peer_lines({"floor": {**told, "structured": 1.0}, "remit": told}))
    assert "(1.0x)" in lines[3]
    assert lines[3].endswith("-")
    assert lines[4] == "  not installed: remit@agent, agno, pydantic_ai; `make peers` brings them"
