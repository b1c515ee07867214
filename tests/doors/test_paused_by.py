"""Who paused a run is told wherever it is told that the run is paused."""

import asyncio
from pathlib import Path

import pytest

import remit
from remit import Run, ScriptedEngine, System, SystemResponse, delegate, kit_of
from remit.adapters.cli.main import main
from remit.observe.views.sentence import sentence

LEASE = {"steps": 50, "tool_calls": 2, "input_tokens": 20_000, "output_tokens": 9_000, "human_reviews": 2}


async def paused(system: System) -> Run[SystemResponse]:
    """A run that bea paused while its model was asked."""
    run = await system.start("hello", kit_of(ScriptedEngine([{"text": "hi", "delay_ms": 60_000}])))
    await run.pause(by="bea")
    return run


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main([*words])
    told = capsys.readouterr()
    return told.out + told.err


def test_a_paused_run_names_who_paused_it_and_a_resumed_one_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story(home: Path | None) -> str:
        async with remit.open(home, memory=home is None) as system:
            run = await paused(system)
            explained = (await system.archive.told(run.id)).explanation
            assert (explained.standing.status, explained.standing.by) == ("paused", "bea")
            assert "it is paused at think by bea" in sentence(explained)
            if home is None:
                await run.resume(by="cy")
                standing = (await system.archive.told(run.id)).explanation.standing
                assert (standing.status, standing.by) == ("open", "")
            return run.id

    asyncio.run(story(None))
    run_id = asyncio.run(story(tmp_path))
    home = ("--home", str(tmp_path))
    assert "paused at think by bea\n" in shown(capsys, "show", run_id, *home)
    assert "it is paused at think by bea" in shown(capsys, "explain", run_id, *home)


def test_a_run_that_waits_for_a_paused_child_names_who_paused_the_child(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @remit.tool(effect="external")
    def send(to: str) -> str:
        """Send it."""
        return "sent"

    def call(name: str, **arguments: str) -> dict[str, object]:
        return {"tool_calls": [{"name": name, "arguments": arguments}]}

    async def story() -> tuple[str, str]:
        async with remit.open(tmp_path) as system:
            helper = delegate("helper", description="helps", lease={**LEASE, "external_api_calls": 1})
            engine = ScriptedEngine(
                [
                    {"when": "Hand it on", **call("helper", task="work")},
                    {"when": "work", **call("send", to="Ada")},
                    {"text": "done"},
                ]
            )
            run = await system.start("Hand it on", kit_of(engine, [helper, send]))
            await run
            (child,) = [name for name in await system.archive.family(run.id) if name != run.id]
            await (await system.find(child)).pause(by="bea")
            standing = (await system.archive.told(run.id)).explanation.standing
            return run.id, f"{standing.paused} {standing.paused_by} {child}"

    run_id, standing = asyncio.run(story())
    child = standing.rpartition(" ")[2]
    assert standing == f"('{child}',) ('bea',) {child}"
    home = ("--home", str(tmp_path))
    assert f"paused beneath it: {child} by bea" in shown(capsys, "show", run_id, *home)
    assert f"run {child}, which is paused by bea" in shown(capsys, "explain", run_id, *home)


@pytest.mark.parametrize("kind", ["system", "agent"])
def test_the_response_of_a_paused_run_says_who_paused_it_and_how_it_goes_on(kind: str) -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            engine = ScriptedEngine([{"text": "hi", "delay_ms": 60_000}])
            if kind == "system":
                run = await system.start("hello", kit_of(engine))
            else:
                run = await remit.AgentLoop(engine, system=system).start("hello")
            await run.pause(by="bea")
            for response in (await run, await run.result()):
                assert response.paused_by == "bea"
                (warning,) = response.warnings
                for said in ("is paused by bea", f"remit resume {run.id}"):
                    assert said in warning
                with pytest.raises(remit.RunFailed) as raised:
                    response.raise_for_error()
                assert raised.value.code == "RUN_OPEN"
                assert "is paused by bea" in raised.value.message
            await run.cancel(by="bea")
            assert (await run).paused_by is None

    asyncio.run(story())


def test_a_run_that_waits_and_was_paused_says_both() -> None:
    @remit.tool(effect="external")
    def send(to: str) -> str:
        """Send it."""
        return "sent"

    async def story() -> None:
        async with remit.open(memory=True) as system:
            asks = ScriptedEngine([{"tool_calls": [{"name": "send", "arguments": {"to": "ann"}}]}])
            run = await system.start("send", kit_of(asks, [send]))
            await run
            await run.pause(by="bea")
            response = await run
            assert response.waiting_for is not None
            with pytest.raises(remit.RunFailed, match=r"it waits for .*; it is paused by bea"):
                response.raise_for_error()

    asyncio.run(story())
