"""What a run did and left is told alike wherever it is told: in its explanation, its response, its lines, and above it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import (
    CallStatus,
    Explanation,
    Kit,
    Run,
    ScriptedEngine,
    System,
    SystemResponse,
    Told,
    ToolCallMade,
    delegate,
    kit_of,
    tool,
)
from remit.adapters.cli.main import main
from remit.observe.views.sentence import sentence

LEASE = {
    "steps": 50,
    "tool_calls": 4,
    "external_api_calls": 2,
    "input_tokens": 20_000,
    "output_tokens": 9_000,
    "human_reviews": 4,
}
ANSWER = {"text": "done"}


@tool(effect="external")
def send(to: str) -> str:
    """Send it."""
    return "sent"


@tool(effect="write")
def keep(what: str) -> str:
    """Keep it."""
    raise remit.NotDone("the shelf is full")


@tool(effect="read", network=False)
def look(what: str) -> str:
    """Look it up."""
    return "seen"


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def both(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [one for each in calls for one in each["tool_calls"]]}


def kit(*replies: dict[str, Any]) -> Kit:
    return kit_of(ScriptedEngine([*replies, ANSWER]), [send, keep, look])


def helping(*replies: dict[str, Any]) -> Kit:
    """A kit whose runs may hand work on."""
    helper = delegate("helper", description="helps", lease=LEASE)
    return kit_of(ScriptedEngine([*replies, ANSWER]), [helper, send, look])


def delegating(first: dict[str, Any], *then: dict[str, Any]) -> Kit:
    """A run whose child proposes calls."""
    begun = {"when": "Hand it on", **call("helper", task="work for Ada")}
    return helping(begun, {"when": "work for", **first}, *then)


async def approved(run: Run[SystemResponse]) -> None:
    await run.approve(by="bea")


async def rejected(run: Run[SystemResponse]) -> None:
    await run.reject(by="bea")


async def cancelled(run: Run[SystemResponse]) -> None:
    await run.cancel(by="bea")
    await run


async def left_alone(run: Run[SystemResponse]) -> None:
    """Nothing comes."""


Deed = Callable[[Run[SystemResponse]], Awaitable[None]]


async def told_of(system: System, run_id: str) -> tuple[Explanation, tuple[ToolCallMade, ...]]:
    return (await system.archive.told(run_id)).explanation, (await system.result(run_id)).tool_calls_made


async def child_of(system: System, run_id: str) -> str:
    (child,) = [name for name in await system.archive.family(run_id) if name != run_id]
    return child


@pytest.mark.parametrize("to", ["Ada", "Bob"])
@pytest.mark.parametrize("deed", [left_alone, rejected, cancelled])
def test_an_effect_that_was_made_is_unverified_whatever_comes_of_the_same_call_later(deed: Deed, to: str) -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            run = await system.start("Send it to Ada", kit(call("send", to="Ada"), call("send", to=to)))
            await run
            await run.approve(by="bea")
            await deed(run)
            explained, _ = await told_of(system, run.id)
            assert [(one.tool, one.made, one.unverified) for one in explained.calls] == [("send", 1, 1)]
            assert (explained.unverified, explained.uncommitted) == (("send",), ("send",))

    asyncio.run(story())


def test_a_second_attempt_that_fails_takes_nothing_back_of_the_first() -> None:
    attempts: list[str] = []

    @tool(effect="external")
    def wire(to: str) -> str:
        """Wire it."""
        attempts.append(to)
        if len(attempts) > 1:
            raise remit.NotDone("no line")
        return "wired"

    async def story() -> None:
        async with remit.open(memory=True) as system:
            twice = kit_of(ScriptedEngine([call("wire", to="Ada"), call("wire", to="Ada"), ANSWER]), [wire])
            run = await system.start("Wire it to Ada", twice)
            await run
            await run.approve(by="bea")
            await run.approve(by="bea")
            explained, _ = await told_of(system, run.id)
            assert (explained.unverified, explained.uncommitted) == (("wire",), ("wire",))

    asyncio.run(story())


def test_the_parent_of_a_child_that_acted_and_asked_again_is_told_that_nothing_verified_it() -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            inner = call("send", to="Ada")
            run = await system.start("Hand it on to Ada", delegating(inner, inner))
            await run
            await run.approve(by="bea")
            child = await child_of(system, run.id)
            await cancelled(await system.find(child))
            await run
            # Its own wish for the same is refused, which takes nothing back either.
            response = await run.reject(by="bea")
            assert any("not verified: send" in warning for warning in response.warnings)
            for name in (run.id, child):
                assert (await told_of(system, name))[0].unverified == ("send",)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("proposed", "left"),
    [
        (call("send", to="Ada"), ("send",)),
        (both(call("send", to="Ada"), call("send", to="Bob")), ("send",)),
        (both(call("keep", what="a"), call("send", to="Bob")), ("keep", "send")),
    ],
)
def test_a_call_that_was_held_when_its_run_was_cancelled_is_told_of_like_one_that_was_rejected(
    proposed: dict[str, Any], left: tuple[str, ...]
) -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            run = await system.start("Do it", kit(proposed))
            await run
            before, _ = await told_of(system, run.id)
            await cancelled(run)
            after, calls = await told_of(system, run.id)
            assert (before.uncommitted, after.uncommitted) == (left, left)
            assert [(one.name, one.status, one.code) for one in calls] == [
                (one["name"], CallStatus.REFUSED, "CANCELLED_SIGNAL") for one in proposed["tool_calls"]
            ]
            assert [one.arguments for one in calls] == [one["arguments"] for one in proposed["tool_calls"]]
            assert sum(one.refused for one in after.calls) == len(calls)
            assert all(one.made == 0 for one in after.calls)

    asyncio.run(story())


def test_every_line_of_the_terminal_tells_what_was_held_and_what_was_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> str:
        async with remit.open(tmp_path) as system:
            run = await system.start("Send it to Ada", kit(call("send", to="Ada"), call("send", to="Ada")))
            await run
            await run.approve(by="bea")
            await cancelled(run)
            return run.id

    run_id = asyncio.run(story())
    main(["show", run_id, "--home", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "uncommitted send\n" in shown
    assert "unverified  send\n" in shown
    main(["explain", run_id, "--home", str(tmp_path)])
    assert "leaving send uncommitted and send unverified" in capsys.readouterr().out


@pytest.mark.parametrize("whose", ["child", "parent"])
def test_a_parent_and_its_child_say_the_same_of_what_the_child_held(whose: str) -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            run = await system.start("Hand it on to Ada", delegating(call("send", to="Ada")))
            await run
            child = await child_of(system, run.id)
            waiting = [(await told_of(system, name))[0].uncommitted for name in (run.id, child)]
            await cancelled(await system.find(child if whose == "child" else run.id))
            await run
            await system.settle()
            explained = [(await told_of(system, name))[0] for name in (run.id, child)]
            assert waiting == [("send",), ("send",)]
            assert [one.uncommitted for one in explained] == [("send",), ("send",)]
            assert [[c.refused for c in one.calls if c.tool == "send"] for one in explained] == [[1], [1]]

    asyncio.run(story())


def test_a_fork_tells_of_what_the_child_of_its_origin_did_however_often_it_is_copied() -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            run = await system.start("Hand it on to Ada", delegating(call("send", to="Ada")))
            await run
            await run.approve(by="bea")
            names = [run.id]
            for _ in range(2):
                forked = await system.fork(names[-1], by="cy", kit=delegating(call("send", to="Ada")))
                await system.settle()
                names.append(forked.fork_id)
            said = [await told_of(system, name) for name in names]
            tools = [[(one.tool, one.made, one.unverified) for one in told.calls] for told, _ in said]
            assert tools == [[("helper", 1, 0), ("send", 1, 1)]] * 3
            assert [[one.name for one in calls] for _, calls in said] == [["helper", "send"]] * 3
            assert [told.unverified for told, _ in said] == [("send",)] * 3

    asyncio.run(story())


def test_a_fork_from_before_a_child_acted_tells_nothing_of_it() -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            run = await system.start("Hand it on to Ada", delegating(call("send", to="Ada")))
            await run
            await run.approve(by="bea")
            forked = await system.fork(run.id, by="cy", at=0, kit=helping())
            await system.settle()
            explained, calls = await told_of(system, forked.fork_id)
            assert (explained.calls, explained.unverified, calls) == ((), (), ())

    asyncio.run(story())


def test_what_a_child_observed_is_told_by_its_parent_with_the_run_that_observed_it() -> None:
    async def story() -> tuple[Told, Told]:
        async with remit.open(memory=True) as system:
            run = await system.start("Hand it on to Ada", delegating(call("look", what="it")))
            await run
            child = await child_of(system, run.id)
            return await system.archive.told(run.id), await system.archive.told(child)

    parent, child = asyncio.run(story())
    assert [(one.tool, one.run_id) for one in child.explanation.observations] == [("look", "")]
    (seen,) = parent.explanation.observations
    assert (seen.tool, seen.run_id) == ("look", child.entry.run_id)
    assert "updated its state from 1 observation (look)" in sentence(parent.explanation)


def test_a_guarded_call_that_returned_is_unverified_though_the_same_was_asked_again() -> None:
    pay = {
        "name": "pay",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        "effect": "external",
        "control_args": {"to": "email"},
        "asks": ["pay"],
    }
    ann = {"to": "ann@x.example"}

    async def story() -> None:
        async with remit.open(memory=True) as system:
            guard = system.guard()
            await guard.answer({"op": "start", "run": "a", "prompt": "Pay ann@x.example.", "tools": [pay]})
            decisions = [
                await guard.answer({"op": "call", "run": "a", "id": name, "tool": "pay", "args": ann})
                for name in ("1", "2")
            ]
            assert [said and said["decision"] for said in decisions] == ["allow", "ask"]
            await guard.answer({"op": "result", "run": "a", "id": "1", "tool": "pay", "content": "paid"})
            run_id = guard.run_id_of("a")
            await guard.answer({"op": "end", "run": "a"})
            explained, calls = await told_of(system, run_id)
            assert (explained.unverified, explained.uncommitted) == (("pay",), ("pay",))
            assert [one.code for one in calls] == ["EFFECT_UNVERIFIED", "CANCELLED_SIGNAL"]

    asyncio.run(story())
