"""A guarded call whose agent learns late what became of it: the doubt ends, and what contradicts an earlier word is told."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import Signal, System, SystemResponse, UserSignal

Operation = dict[str, Any]
PAY = {
    "name": "pay",
    "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    "effect": "external",
    "control_args": {"to": "who:x"},
}
RESTARTS = pytest.mark.parametrize("is_restarted", [False, True])


class Host:
    """An agent elsewhere that pays eve, and may pay her again."""

    def __init__(self, system: System) -> None:
        self.system, self.guard = system, system.guard()

    async def say(self, op: str, **fields: Any) -> Operation | None:
        return await self.guard.answer({"op": op, "run": "talk", **fields})

    async def start(self) -> None:
        assert (await self.say("start", prompt="Hello.", tools=[PAY]) or {})["ok"]

    async def pay(self, call_id: str) -> Operation:
        return await self.say("call", id=call_id, tool="pay", args={"to": "eve"}) or {}

    async def told(self, content: str, **more: Any) -> Operation | None:
        """What is answered to a result of the first payment."""
        return await self.say("result", **{"id": "1", "tool": "pay", "content": content, **more})

    async def paid(self) -> None:
        """The first payment is allowed."""
        await self.start()
        await self.pay("1")
        assert await self.say("answer", id="1", approve=True, by="ann") == {"ok": True}

    async def restart(self) -> None:
        await self.guard.close()
        self.guard = self.system.guard()
        await self.start()

    async def reasons(self) -> str:
        """What people are told with the question about the second payment."""
        run_id = self.guard.run_id_of("talk")
        asked = await self.system.archive.approvals(run_id=run_id)
        assert [one for one in asked if one.purpose.value == "approval"], asked
        return "; ".join(reason for one in asked for reason in one.reasons)

    async def ended(self) -> SystemResponse:
        run_id = self.guard.run_id_of("talk")
        await self.say("end")
        assert not (await self.system.archive.verify(run_id)).findings
        return await self.system.result(run_id)


def play(scene: Callable[[Host], Awaitable[None]], path: Path) -> None:
    async def whole() -> None:
        async with remit.open(path) as system:
            await scene(Host(system))

    asyncio.run(whole())


@RESTARTS
@pytest.mark.parametrize("has_id", [True, False])
def test_a_result_after_a_timeout_settles_the_doubt(has_id: bool, is_restarted: bool, tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.told("timeout", error=True)
        if is_restarted:
            await host.restart()
        first = await host.pay("2")
        assert "its outcome is not known" in first["reasons"][-1]
        assert await host.told("paid, receipt 77", **({} if has_id else {"id": None})) is None
        for told in (await host.reasons(), (await host.pay("3"))["reasons"][-1]):
            assert "returned and was not verified" in told
            assert "not known" not in told
        await host.say("answer", id="2", approve=False, by="ann")
        response = await host.ended()
        assert "receipt 77" in json.dumps([str(call.result) for call in response.tool_calls_made])
        assert not any("unknown" in warning for warning in response.warnings), response.warnings

    play(scene, tmp_path)


@RESTARTS
def test_not_done_after_a_timeout_settles_the_doubt(is_restarted: bool, tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.told("timeout", error=True)
        if is_restarted:
            await host.restart()
        await host.pay("2")
        assert await host.told("nothing happened", error=True, not_done=True) is None
        assert "failed with TOOL_EXECUTION_FAILED" in await host.reasons()
        assert "not known" not in (await host.pay("3"))["reasons"][-1]
        assert await host.say("answer", id="2", approve=True, by="ann") == {"ok": True}
        await host.told("paid", id="2")
        assert not any("unknown" in warning for warning in (await host.ended()).warnings)

    play(scene, tmp_path)


@RESTARTS
def test_an_effect_that_a_person_denied_and_that_returned_after_all_is_told_everywhere(
    is_restarted: bool, tmp_path: Path
) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.restart()
        run_id = host.guard.run_id_of("talk")
        (asked,) = await host.system.archive.approvals(run_id=run_id)
        no = UserSignal("s", Signal.REJECT, run_id, "bo", payload={"packet_id": asked.id})
        await host.system.signal(no)
        await host.guard.hear()
        if is_restarted:
            await host.restart()
        assert "failed with TOOL_EXECUTION_FAILED" in (await host.pay("2"))["reasons"][-1]
        assert await host.told("paid, receipt 99") is None
        for told in (await host.reasons(), (await host.pay("3"))["reasons"][-1]):
            assert "it was said not to have happened, and returned after all" in told
        await host.say("answer", id="2", approve=False, by="ann")
        response = await host.ended()
        assert any("returned after all" in warning and "receipt 99" in warning for warning in response.warnings)

    play(scene, tmp_path)


def test_a_result_that_says_no_more_of_a_doubt_leaves_it(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        for _ in range(2):
            await host.told("timeout", error=True)
        await host.pay("2")
        assert "its outcome is not known" in await host.reasons()

    play(scene, tmp_path)


def test_a_question_that_a_pause_keeps_from_being_asked_anew_says_so(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.pay("2")
        run_id = host.guard.run_id_of("talk")
        await host.system.signal(UserSignal("p", Signal.PAUSE, run_id, "ann"))
        await host.told("paid")
        standing = (await host.system.archive.told(run_id)).explanation.standing
        verdict = (await host.pay("3"))["reasons"]
        for told in (await host.reasons(), "; ".join(standing.questions[0].reasons), "; ".join(verdict)):
            assert "asked anew with it when the run is resumed" in told
        await host.system.signal(UserSignal("r", Signal.RESUME, run_id, "ann"))
        assert "asked anew" not in await host.reasons()

    play(scene, tmp_path)


def test_a_question_that_is_asked_anew_keeps_its_age(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        await host.paid()
        await host.pay("2")
        run_id = host.guard.run_id_of("talk")
        (before,) = await host.system.archive.approvals(run_id=run_id)
        await asyncio.sleep(0.02)
        for content, more in (("timeout", {"error": True}), ("paid", {})):
            await host.told(content, **more)
        (after,) = await host.system.archive.approvals(run_id=run_id)
        assert after.id != before.id
        assert after.asked_at_ms == before.asked_at_ms

    play(scene, tmp_path)
