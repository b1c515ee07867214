"""A yes over the guard's protocol is to the packet that a verdict showed, and never to one that was asked anew since."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import System

Operation = dict[str, Any]
PAY = {
    "name": "pay",
    "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    "effect": "external",
    "control_args": {"to": "who:x"},
}


class Host:
    """An agent elsewhere that pays eve, and asks whether it may pay her once more."""

    def __init__(self, system: System) -> None:
        self.system, self.guard = system, system.guard()

    async def say(self, op: str, **fields: Any) -> Operation:
        return await self.guard.answer({"op": op, "run": "talk", **fields}) or {}

    async def start(self) -> Operation:
        return await self.say("start", prompt="Hello.", tools=[PAY])

    async def pay(self, call_id: str) -> Operation:
        return await self.say("call", id=call_id, tool="pay", args={"to": "eve"})

    async def paid(self, call_id: str, content: str = "paid", **more: Any) -> Operation:
        return await self.say("result", id=call_id, tool="pay", content=content, **more)

    async def yes(self, call_id: str, **more: Any) -> Operation:
        return await self.say("answer", id=call_id, approve=True, by="zoe", **more)

    async def second(self) -> Operation:
        """The verdict on a second call while the first is under way."""
        await self.start()
        await self.pay("1")
        assert await self.yes("1") == {"ok": True}
        return await self.pay("2")


def play(scene: Callable[[Host], Awaitable[None]], path: Path | None = None) -> None:
    async def whole() -> None:
        async with remit.open(memory=True) if path is None else remit.open(path) as system:
            await scene(Host(system))

    asyncio.run(whole())


@pytest.mark.parametrize("names_packet", [True, False])
def test_a_yes_to_a_question_that_was_asked_anew_is_refused_until_a_verdict_shows_it(names_packet: bool) -> None:
    async def scene(host: Host) -> None:
        shown = await host.second()
        assert "its outcome is not known" in shown["reasons"][-1]
        await host.paid("1")
        said = {"packet": shown["packet"]} if names_packet else {}
        refused = await host.yes("2", **said)
        assert refused["code"] == ("PACKET_CHANGED" if names_packet else "QUESTION_SETTLED"), refused
        assert "again" in refused["message"]
        anew = await host.pay("3")
        assert anew["packet"] != shown["packet"]
        assert await host.yes("2", **{key: anew[key] for key in said}) == {"ok": True}

    play(scene)


def test_a_yes_that_names_the_packet_counts_whatever_was_shown_last() -> None:
    async def scene(host: Host) -> None:
        await host.second()
        await host.paid("1")
        shown = await host.pay("2")
        assert (await host.yes("2", packet="0" * 64))["code"] == "PACKET_CHANGED"
        assert (await host.yes("2", packet=7))["code"] == "GUARD_OP_INVALID"
        assert await host.yes("2", packet=shown["packet"]) == {"ok": True}

    play(scene)


def test_a_no_that_names_no_packet_is_a_no_to_whatever_waits() -> None:
    async def scene(host: Host) -> None:
        await host.second()
        await host.paid("1")
        assert await host.say("answer", id="2", approve=False, by="zoe") == {"ok": True}
        assert (await host.pay("3"))["code"] == "APPROVAL_REJECTED"

    play(scene)


def test_a_host_that_starts_again_is_heard_about_what_it_was_shown_and_about_nothing_newer(tmp_path: Path) -> None:
    async def begin(host: Host) -> None:
        assert (await host.second())["decision"] == "ask"

    async def result(host: Host) -> None:
        await host.start()
        await host.paid("1")

    async def answer(host: Host) -> None:
        await host.start()
        assert (await host.yes("2"))["code"] == "QUESTION_SETTLED"
        await host.pay("2")
        assert await host.yes("2") == {"ok": True}

    for scene in (begin, result, answer):
        play(scene, tmp_path)
