"""An effect that was made and is proposed again: however the repeat ends, the ending tells of the one that was made."""

import asyncio
from pathlib import Path

import pytest

import remit
from remit import Ending, Registry, ScriptedEngine, SystemResponse, kit_of
from tests.unit.orchestrate.house import calls
from tests.unit.orchestrate.test_told_later import Host, play

RETURNED = "not verified: {} returned, and nothing could have refused it; declare `verify`"


def missing_once_more(response: SystemResponse, tool: str) -> bool:
    """Whether a response says that an effect was made, and was not made once more."""
    (warning,) = [one for one in response.warnings if one.startswith("not done")]
    repeat, _, made = warning.partition("; ")
    return repeat.startswith(f"not done: {tool}#") and repeat.endswith("(once more)") and made == RETURNED.format(tool)


@pytest.mark.parametrize("said", [None, False])
def test_a_guarded_effect_that_is_held_again_was_made_all_the_same(said: bool | None, tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.told("paid")
        assert (await host.pay("2"))["decision"] == "ask"
        if said is not None:
            await host.say("answer", id="2", approve=said, by="ann")
        response = await host.ended()
        assert response.terminal_code is Ending.PARTIAL_SUCCESS, response.error
        assert missing_once_more(response, "pay"), response.warnings
        first = response.tool_calls_made[0]
        assert (first.status.value, first.code) == ("observed", "EFFECT_UNVERIFIED")

    play(scene, tmp_path)


@pytest.mark.parametrize("is_held", [False, True])
def test_an_effect_that_returned_after_it_was_said_not_to_have_happened_was_observed(
    is_held: bool, tmp_path: Path
) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.told("nothing", error=True, not_done=True)
        await host.told("paid")
        if is_held:
            await host.pay("2")
        response = await host.ended()
        assert response.terminal_code is Ending.PARTIAL_SUCCESS, response.error
        assert any("returned after all" in one for one in response.warnings)
        assert is_held is ("once more" in response.warnings[0])
        assert response.warnings[0].endswith(RETURNED.format("pay"))

    play(scene, tmp_path)


def test_an_effect_that_never_came_to_pass_is_still_denied(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.start()
        await host.pay("1")
        await host.say("answer", id="1", approve=False, by="ann")
        assert (await host.ended()).terminal_code is Ending.PERMISSION_DENIED

    play(scene, tmp_path)


@remit.tool(effect="external", network=True, asks=["ring"])
def ring(bell: str) -> str:
    """Ring a bell."""
    return f"{bell} rung"


def test_a_run_whose_repeat_a_person_rejects_tells_of_the_effect_that_was_made() -> None:
    async def scene() -> SystemResponse:
        asked = calls("ring", bell="b")
        kit = kit_of(ScriptedEngine([asked, asked, {"text": "Done."}]), Registry([ring]))
        async with remit.open(memory=True) as system:
            run = await system.start("Ring the bell b.", kit)
            await run
            await run.approve(by="ann")
            return await run.reject(by="bo")

    response = asyncio.run(scene())
    assert response.terminal_code is Ending.PARTIAL_SUCCESS, response.error
    assert missing_once_more(response, "ring"), response.warnings
    assert [one.status.value for one in response.tool_calls_made] == ["observed", "refused"]


@pytest.mark.parametrize("is_repeat", [False, True])
def test_a_guarded_call_that_is_under_way_at_the_end_is_of_unknown_outcome(is_repeat: bool, tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        if is_repeat:
            await host.told("paid")
            assert (await host.pay("2"))["decision"] == "ask"
            await host.say("answer", id="2", approve=True, by="ann")
        response = await host.ended()
        assert response.terminal_code is Ending.REVIEW_REQUIRED, response.error
        assert response.error is not None
        assert response.error.message.startswith("nobody knows what became of pay#")
        assert not any("not done" in one for one in response.warnings)

    play(scene, tmp_path)


def test_a_repeat_that_a_person_knows_of_proves_nothing_of_the_effect_before_it() -> None:
    rung = []

    @remit.tool(effect="external", network=True, asks=["ring"])
    def ring(bell: str) -> str:
        """Ring a bell."""
        rung.append(bell)
        if len(rung) > 1:
            raise ValueError("the line broke")
        return "rung"

    async def scene() -> SystemResponse:
        asked = calls("ring", bell="b")
        kit = kit_of(ScriptedEngine([asked, asked, {"text": "Done."}]), Registry([ring]))
        async with remit.open(memory=True) as system:
            run = await system.start("Ring the bell b.", kit)
            await run
            await run.approve(by="ann")
            await run.approve(by="ann")
            return await run.approve(by="ann")

    response = asyncio.run(scene())
    assert [one.status.value for one in response.tool_calls_made] == ["observed", "committed"]
    assert response.terminal_code is Ending.PARTIAL_SUCCESS
    assert response.warnings == (RETURNED.format("ring"),)
