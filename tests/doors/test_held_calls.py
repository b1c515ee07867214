"""A call that is held is one question: under any id, in any spelling, however often, and after any number of restarts."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import Signal, System, UserSignal

Operation = dict[str, Any]

POLLS = 150
SEEDS = range(8)
_STORES = ("memory", "kept", "killed")
_WORDS = ("rent", "boiler", "Ödön", "a@b.example", "x" * 40, "7")


def tools(make: random.Random) -> list[Operation]:
    """Tools of which one changes something, under names and with arguments that no rule knows."""
    args = {f"arg{n}": make.choice(["string", "integer", "array"]) for n in range(make.randint(1, 4))}
    changing: Operation = {
        "name": make.choice(["transfer", "wipe_disk", "publish", "zz"]),
        "parameters": {"type": "object", "properties": {name: {"type": kind} for name, kind in args.items()}},
        "effect": make.choice(["write", "external"]),
    }
    return [changing, {"name": "look", "parameters": {"type": "object"}, "effect": "read"}]


def arguments(make: random.Random, tool: Operation) -> Operation:
    made: dict[str, Callable[[], Any]] = {
        "string": lambda: make.choice(_WORDS),
        "integer": lambda: make.randint(-9, 10**9),
        "array": lambda: [1, "b"],
    }
    return {name: made[one["type"]]() for name, one in tool["parameters"]["properties"].items()}


def respelt(make: random.Random, args: Operation) -> Operation:
    """The same arguments in another order, and whole numbers as another program writes them."""
    names = list(args)
    make.shuffle(names)
    return {
        name: float(args[name]) if isinstance(args[name], int) and make.random() < 0.5 else args[name] for name in names
    }


class Host:
    """An agent elsewhere, whose guard may be gone at any moment."""

    def __init__(self, make: random.Random, kind: str, path: Path) -> None:
        self.make, self.kind, self.path = make, kind, path
        self.tools = tools(make)
        self.args = arguments(make, self.tools[0])
        self.asked = 0
        self.system: System

    async def __aenter__(self) -> "Host":
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.system.close()

    async def _open(self) -> None:
        self.system = await (remit.open(memory=True) if self.kind == "memory" else remit.open(self.path)).__aenter__()
        self.guard = self.system.guard()
        assert (await self.say("start", prompt="Do what is due.", tools=self.tools))["ok"]
        self.run_id = self.guard.run_id_of("talk")

    async def say(self, op: str, **fields: Any) -> Operation:
        return await self.guard.answer({"op": op, "run": "talk", **fields}) or {}

    async def ask(self, call_id: str = "", args: Operation | None = None) -> Operation:
        """Propose the call once more, under an id that was never used."""
        if self.kind == "killed" and self.make.random() < 0.1:
            await self.system.close()
            await self._open()
        self.asked += 1
        said: Operation = {"id": call_id or f"c{self.asked}"} if call_id or self.make.random() < 0.9 else {}
        return await self.say("call", tool=self.tools[0]["name"], args=respelt(self.make, args or self.args), **said)

    async def packets(self) -> list[str]:
        waits = (await self.system.result(self.run_id)).waiting_for
        return [] if waits is None else list(waits.packet_ids)

    async def reviews(self) -> int:
        spent = (await self.system.archive.told(self.run_id)).explanation.spent
        return next(one.used for one in spent if one.dimension == "human_reviews")

    async def tell(self, kind: Signal, packet: str) -> None:
        """What a person says elsewhere."""
        await self.system.signal(UserSignal("s", kind, self.run_id, "ann", payload={"packet_id": packet}))
        await self.guard.hear()


@pytest.mark.parametrize("kind", _STORES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_held_call_is_one_question_however_it_is_asked_and_one_yes_is_one_call(
    seed: int, kind: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Host(random.Random(f"{seed}{kind}"), kind, tmp_path) as host:
            first = await host.ask()
            assert first["decision"] == "ask"
            for _ in range(POLLS):
                assert (await host.ask())["decision"] == "ask"
            (asked,) = await host.packets()
            await host.tell(Signal.APPROVE, asked)
            assert await host.reviews() == 1
            after = [await host.ask() for _ in range(5)]
            assert [one["decision"] for one in after].count("allow") == 1
            assert after[0]["decision"] == "allow"

    asyncio.run(scene())


@pytest.mark.parametrize("kind", _STORES)
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_id_asked_for_a_held_call_may_answer_it_and_report_its_result(
    seed: int, kind: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Host(make := random.Random(f"{seed}{kind}"), kind, tmp_path) as host:
            asked = [await host.ask(f"p{n}") for n in range(4)]
            # After a restart only the ids that ask again are known, and the first, which every verdict names.
            known = asked[-1]["id"] if kind == "killed" else make.choice(asked)["id"]
            known = make.choice([known, asked[-1].get("held_as", "p0")])
            if kind == "killed":
                await host.ask(known)
            assert await host.say("answer", id=known, approve=True, by="ann") == {"ok": True}
            for _ in range(2):  # A result that is told twice is one result.
                await host.say("result", id=known, tool=host.tools[0]["name"], content="done")
            run_id = host.run_id
            await host.say("end")
            assert (await host.system.result(run_id)).terminal_code != "UNSAFE_DETECTION"

    asyncio.run(scene())


@pytest.mark.parametrize("kind", _STORES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_call_that_was_allowed_elsewhere_is_named_by_every_id_that_it_was_proposed_under(
    seed: int, kind: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Host(make := random.Random(f"{seed}{kind}"), kind, tmp_path) as host:
            await host.ask("p0")
            polled = [f"p{n}" for n in range(1, make.randint(1, 4)) if await host.ask(f"p{n}")]
            (asked,) = await host.packets()
            await host.tell(Signal.APPROVE, asked)
            # The id of the verdict that allows it is one of those before, or a new one.
            last = make.choice(["p0", *polled, "again"])
            assert (await host.ask(last))["decision"] == "allow"
            # After a restart only the ids of turns are known.
            reported = make.choice(["p0", last] if kind == "killed" else ["p0", last, *polled])
            for _ in range(2):  # A result that is told twice is one result.
                assert await host.say("result", id=reported, tool=host.tools[0]["name"], content="done") == {}
            run_id = host.run_id
            await host.say("end")
            ended = await host.system.result(run_id)
            assert ended.terminal_code == "PARTIAL_SUCCESS"
            assert [call.result for call in ended.tool_calls_made] == ["done"]

    asyncio.run(scene())


def _other(host: Host) -> Operation:
    """Arguments of another call of the same tool."""
    return {**host.args, "arg0": {"string": "other", "integer": -77, "array": []}[_kind(host)]}


NOT_DONE: Operation = {"content": "closed", "error": True, "not_done": True}


@pytest.mark.parametrize("kind", _STORES)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("is_taken_up", [True, False])
def test_the_id_of_a_call_without_an_outcome_names_no_other_call(
    seed: int, kind: str, *, is_taken_up: bool, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Host(random.Random(f"{seed}{kind}"), kind, tmp_path) as host:
            await host.ask("p0")
            (asked,) = await host.packets()
            if is_taken_up:
                assert await host.say("answer", id="p0", approve=True, by="ann") == {"ok": True}
            else:
                await host.tell(Signal.APPROVE, asked)
            assert (await host.ask("p0", _other(host)))["code"] == "CALL_ID_HELD"
            assert (await host.ask("p1", _other(host)))["decision"] == "ask"
            # What another id polls with is refused as well where that id has a call under way.
            assert (await host.ask("p0", _other(host)))["code"] == "CALL_ID_HELD"
            if not is_taken_up:
                assert (await host.ask("p0"))["decision"] == "allow"
            await host.say("result", id="p0", tool=host.tools[0]["name"], content="done")
            # Its result is told, so the id may name another call.
            assert (await host.ask("p0", _other(host)))["held_as"] == "p1"
            told = (await host.system.result(host.run_id)).tool_calls_made
            assert [(call.arguments, call.result) for call in told] == [(host.args, "done")]

    asyncio.run(scene())


@pytest.mark.parametrize("kind", _STORES)
def test_what_was_allowed_elsewhere_is_not_taken_up_under_the_id_of_another_open_call(
    kind: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Host(random.Random(11), kind, tmp_path) as host:
            await host.ask("p0")
            assert await host.say("answer", id="p0", approve=True, by="ann") == {"ok": True}
            await host.ask("p1", _other(host))
            asked = (await host.packets())[-1]
            await host.tell(Signal.APPROVE, asked)
            assert (await host.ask("p0", _other(host)))["code"] == "CALL_ID_HELD"
            # A host that reports the refused call says nothing of the one that the id names.
            await host.say("result", id="p0", tool=host.tools[0]["name"], **NOT_DONE)
            told = (await host.system.result(host.run_id)).tool_calls_made
            assert told[0].status == "outcome_unknown"
            assert (await host.ask("p1", _other(host)))["decision"] == "allow"

    asyncio.run(scene())


@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("is_not_done", [True, False])
def test_a_result_under_the_id_of_two_calls_is_that_of_the_one_begun_since(
    *, is_not_done: bool, is_killed: bool, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Host(random.Random(13), "kept", tmp_path) as host:
            await host.ask("p0")
            assert await host.say("answer", id="p0", approve=True, by="ann") == {"ok": True}
            if is_killed:
                await host.system.close()
                await host._open()
            assert (await host.ask("p0"))["decision"] == "ask"
            changed = await host.say("answer", id="p0", approve=True, by="ann", arguments=_other(host))
            assert changed == {"ok": True, "arguments": _other(host)}
            result = NOT_DONE if is_not_done else {"content": "done"}
            await host.say("result", id="p0", tool=host.tools[0]["name"], **result)
            run_id = host.run_id
            await host.say("end")
            first, second = (await host.system.result(run_id)).tool_calls_made
            # Which of the two was not done is unknown.
            assert (first.status, second.status) == (
                "outcome_unknown",
                "outcome_unknown" if is_not_done else "observed",
            )
            assert second.arguments == _other(host)

    asyncio.run(scene())


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_result_without_an_id_says_nothing_of_what_an_earlier_host_had_under_way(
    *, is_killed: bool, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with Host(random.Random(3), "kept", tmp_path) as host:
            for args in (host.args, _other(host)):
                verdict = await host.say("call", tool=host.tools[0]["name"], args=args)
                assert await host.say("answer", id=verdict["id"], approve=True, by="ann") == {"ok": True}
                if is_killed and args is host.args:
                    await host.system.close()
                    await host._open()
            await host.say("result", tool=host.tools[0]["name"], **NOT_DONE)
            await host.say("end")
            first, second = (await host.system.result(host.run_id)).tool_calls_made
            assert first.status == "outcome_unknown"
            # Where both are open, it is unknown of each which was not done.
            assert second.status == ("failed" if is_killed else "outcome_unknown")

    asyncio.run(scene())


def test_a_late_result_is_none_of_a_repetition_that_was_never_taken_up(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Host(random.Random(17), "kept", tmp_path) as host:
            await host.ask("p0")
            assert await host.say("answer", id="p0", approve=True, by="ann") == {"ok": True}
            await host.system.close()
            await host._open()
            assert (await host.ask("p0"))["decision"] == "ask"
            asked = await host.system.archive.approvals(host.run_id)
            (repetition,) = [one for one in asked if one.purpose != "outcome"]
            await host.tell(Signal.APPROVE, repetition.id)
            await host.say("result", id="p0", tool=host.tools[0]["name"], content="done")
            first, *_ = (await host.system.result(host.run_id)).tool_calls_made
            assert (first.status, first.result) == ("observed", "done")
            assert (await host.ask("p0"))["decision"] == "allow"

    asyncio.run(scene())


@pytest.mark.parametrize("again", ["p0", "p1"])
def test_a_result_of_a_call_whose_doubt_a_person_settled_is_no_second_call(again: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with Host(random.Random(7), "kept", tmp_path) as host:
            await host.ask("p0")
            await host.say("answer", id="p0", approve=True, by="ann")
            await host.system.close()
            await host._open()
            assert (await host.ask(again))["decision"] == "ask"
            asked = await host.system.archive.approvals(host.run_id)
            (doubt,) = [one for one in asked if one.purpose == "outcome"]
            await host.tell(Signal.APPROVE, doubt.id)
            await host.say("result", id="p0", tool=host.tools[0]["name"], content="done")
            await host.say("end")
            ended = await host.system.result(host.run_id)
            assert ended.terminal_code == "PARTIAL_SUCCESS"
            assert "EFFECT_UNALLOWED" not in [call.code for call in ended.tool_calls_made]

    asyncio.run(scene())


def test_a_refused_call_is_told_with_its_arguments_whatever_is_proposed_after_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Host(random.Random(5), "kept", tmp_path) as host:
            await host.ask("p0")
            (asked,) = await host.packets()
            await host.tell(Signal.REJECT, asked)
            other = {**host.args, "arg0": {"string": "x" * 70_000, "integer": -77, "array": []}[_kind(host)]}
            await host.ask("p1", other)
            await host.say("answer", id="p1", approve=False, by="ann")
            await host.say("call", id="p2", tool=host.tools[0]["name"], args={"unknown": [1]})
            await host.say("call", id="p0", tool="look", args={})
            told = [call.arguments for call in (await host.system.result(host.run_id)).tool_calls_made]
            assert told[:2] == [host.args, other]

    asyncio.run(scene())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_no_to_a_held_call_is_a_no_under_every_id(seed: int, tmp_path: Path) -> None:
    async def scene() -> None:
        async with Host(random.Random(seed), "kept", tmp_path) as host:
            for n in range(5):
                await host.ask(f"p{n}")
            (asked,) = await host.packets()
            await host.tell(Signal.REJECT, asked)
            assert {(await host.ask(f"q{n}"))["code"] for n in range(3)} == {"APPROVAL_REJECTED"}
            assert await host.packets() == []

    asyncio.run(scene())


@pytest.mark.parametrize("seed", SEEDS)
def test_other_bytes_are_another_question_and_an_id_that_is_held_is_taken(seed: int, tmp_path: Path) -> None:
    async def scene() -> None:
        async with Host(random.Random(seed), "kept", tmp_path) as host:
            await host.ask("p0")
            await host.ask("p1")
            other = _other(host)
            assert (await host.ask("p1", other))["code"] == "CALL_ID_HELD"
            assert (await host.ask("p2", other))["decision"] == "ask"
            assert (await host.ask("p3", other))["held_as"] == "p2"
            assert len(await host.packets()) == 2

    asyncio.run(scene())


def _kind(host: Host) -> str:
    kind: str = host.tools[0]["parameters"]["properties"]["arg0"]["type"]
    return kind


def test_asking_again_costs_neither_calls_nor_bytes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Host(random.Random(1), "memory", tmp_path) as host:
            await host.ask()
            turns = len((await host.system.archive.told(host.run_id)).turns)
            for _ in range(11_000):  # More than a run may have calls.
                assert (await host.ask()).get("decision") == "ask"
            assert len((await host.system.archive.told(host.run_id)).turns) == turns

    asyncio.run(scene())
