"""Views of one run tell one figure: usage and calls with those beneath it, and what was only set aside as such."""

import asyncio
from pathlib import Path

import pytest

from remit import AgentLoop, ScriptedEngine
from remit.adapters.cli.main import main
from remit.assemble import system_in_memory
from remit.core.run.contract import CallStatus
from tests.unit.orchestrate.house import calls, helper, look
from tests.unit.orchestrate.stage import play


def test_usage_and_calls_of_a_run_that_delegates_are_told_with_those_beneath_it() -> None:
    async def story() -> None:
        system = system_in_memory()
        model = ScriptedEngine(
            [
                {"when": '"task"', **calls("look", at="x")},
                {"when": "^saw", "text": "seen"},
                calls("helper", task="look"),
                {"text": "done"},
            ]
        )
        run = await AgentLoop(model, tools=[helper, look], system=system).start("q")
        response, told = await run, (await system.archive.told(run.id)).explanation
        spent = {one.dimension: one.used for one in told.spent}
        used = response.token_usage
        assert (used.prompt_tokens, used.completion_tokens) == (spent["input_tokens"], spent["output_tokens"])
        made = [call.name for call in response.tool_calls_made if call.status is not CallStatus.REFUSED]
        assert {one.tool: one.made for one in told.calls} == {name: made.count(name) for name in made}
        assert "look" in made

    play(story())


def test_what_was_set_aside_for_a_model_that_was_cut_off_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> str:
        async with AgentLoop(ScriptedEngine([{"text": "late", "delay_ms": 20_000}]), home=tmp_path) as agent:
            run = await agent.start("q")
            asked = asyncio.ensure_future(anext(run.events()))
            await asked
            await run.cancel(by="ada")
            await run
            return run.id

    run_id = play(story())
    monkeypatch.setenv("REMIT_HOME", str(tmp_path))
    assert main(["trace", run_id]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "model scripted" in line]
    assert "cut off" in line
    assert "charged as reserved: " in line
