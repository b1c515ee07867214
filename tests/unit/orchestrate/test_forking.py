"""Forks by the facade: from any turn of any run, with what the run and its children changed since."""

import pytest

from remit.core.failure import Ending, RemitError
from remit.core.limits.budget import Budget
from remit.core.run.contract import SystemResponse
from remit.core.run.manifest import EarlierEffect
from remit.core.run.messages import Message
from remit.core.run.signals import Signal
from remit.kernel.state import pinned
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import approval, calls, helper, in_memory, request, scripted, signal
from tests.unit.orchestrate.stage import play


@tool(effect="write")
def keep(n: int) -> int:
    """Keep a number."""
    return n


def keeping() -> Kit:
    return scripted(calls("keep", n=1), {"text": "kept"}, tools=(keep,))


async def kept(system: System, kit: Kit) -> SystemResponse:
    """A run that has kept a number, with a person's consent."""
    waiting = await system.run(request(), kit)
    assert waiting.waiting_for is not None
    await system.signal(approval(waiting.waiting_for.packet_ids[0]), kit=kit)
    return await system.result(waiting.run_id)


def test_a_fork_from_before_an_effect_knows_it_and_asks_before_it_does_the_like() -> None:
    async def story() -> None:
        kit = keeping()
        async with in_memory() as system:
            ended = await kept(system, kit)
            heard = await system.fork(ended.run_id, by="dan", at=0, why="better", kit=kit)
            again = await system.result(heard.fork_id)
            fork = await system.state_of(heard.fork_id)
            (effect,) = pinned(fork).earlier
            assert (effect.run_id, effect.tool, effect.how) == (ended.run_id, "keep", "committed")
            assert any(isinstance(said, Message) and said.content == "better" for said in fork.talk.context)
            (asked,) = await system.archive.approvals()
            assert asked.reasons[0].endswith(f"in turn {effect.seq}: committed")
            assert again.terminal_code is None
            # A fork of the fork knows it as well, and what the fork did.
            await system.signal(approval(asked.id), kit=kit)
            await system.result(heard.fork_id)
            third = await system.fork(heard.fork_id, by="dan", at=0, kit=kit)
            await system.result(third.fork_id)
            known = pinned(await system.state_of(third.fork_id)).earlier
            assert [one.run_id for one in known] == [heard.fork_id, ended.run_id], "the nearest origin is told of first"

    play(story())


def test_a_fork_from_after_an_effect_goes_on_without_it() -> None:
    async def story() -> None:
        kit = keeping()
        async with in_memory() as system:
            ended = await kept(system, kit)
            heard = await system.fork(ended.run_id, by="dan", kit=kit)
            again = await system.result(heard.fork_id)
            assert (again.content, again.terminal_code) == ("kept", ended.terminal_code)
            fork = await system.state_of(heard.fork_id)
            assert (pinned(fork).earlier, fork.effects.count) == ((), 1)

    play(story())


def test_a_fork_of_an_open_run_leaves_it_alone_and_asks_before_any_change() -> None:
    async def story() -> None:
        kit = keeping()
        async with in_memory() as system:
            waiting = await system.run(request(), kit)
            heard = await system.fork(waiting.run_id, by="dan", at=0)
            await system.result(heard.fork_id)
            assert pinned(await system.state_of(heard.fork_id)).earlier == (EarlierEffect(waiting.run_id),)
            assert await system.result(waiting.run_id) == waiting
            assert {asked.run_id for asked in await system.archive.approvals()} == {waiting.run_id, heard.fork_id}

    play(story())


def test_what_children_of_a_run_changed_its_fork_knows_too() -> None:
    async def story() -> None:
        child = ({"when": "keep it", **calls("keep", n=1)}, {"when": "kept", "text": "safe"})
        kit = scripted(*child, calls("helper", task="keep it"), {"text": "thanks"}, tools=(keep, helper))
        async with in_memory() as system:
            ended = await kept(system, kit)
            await system.settle()
            assert (await system.result(ended.run_id)).terminal_code is not None
            heard = await system.fork(ended.run_id, by="dan", at=0, kit=kit)
            await system.result(heard.fork_id)
            fork = await system.state_of(heard.fork_id)
            assert [effect.tool for effect in pinned(fork).earlier] == ["keep"]
            assert pinned(fork).earlier[0].run_id != ended.run_id

    play(story())


def test_what_a_child_changed_is_known_to_a_fork_of_the_fork_that_copied_it() -> None:
    async def story() -> None:
        child = ({"when": "keep it", **calls("keep", n=1)}, {"when": "kept", "text": "safe"})
        kit = scripted(*child, calls("helper", task="keep it"), {"text": "thanks"}, tools=(keep, helper))
        async with in_memory() as system:
            ended = await kept(system, kit)
            await system.settle()
            first = await system.fork(ended.run_id, by="dan", kit=kit)
            await system.result(first.fork_id)
            assert pinned(await system.state_of(first.fork_id)).earlier == (), "its turns tell of the child"
            second = await system.fork(first.fork_id, by="dan", at=0, kit=kit)
            await system.result(second.fork_id)
            (effect,) = pinned(await system.state_of(second.fork_id)).earlier
            assert (effect.tool, effect.how) == ("keep", "committed")
            assert effect.run_id not in (ended.run_id, first.fork_id)
            # Once more removed, and where the origin was deleted, of whose children no turns are left either.
            third = await system.fork(second.fork_id, by="dan", at=0, kit=kit)
            await system.result(third.fork_id)
            assert effect in pinned(await system.state_of(third.fork_id)).earlier
            await system.store.retention.delete(ended.run_id)
            assert (await system.fork(first.fork_id, by="dan", at=0, kit=kit)).fork_id

    play(story())


@pytest.mark.parametrize("at", [-1, 99, True, 1.0, "0"])
def test_a_turn_that_a_run_does_not_have_is_refused(at: object) -> None:
    async def story() -> None:
        async with in_memory() as system:
            ended = await system.run(request(), scripted({"text": "hello"}))
            with pytest.raises(RemitError, match="FORK_INVALID"):
                await system.fork(ended.run_id, by="dan", at=at)  # type: ignore[arg-type]
            with pytest.raises(RemitError, match="RUN_NOT_FOUND"):
                await system.fork("nobody", by="dan")
            with pytest.raises(RemitError, match="PERSON_INVALID"):
                await system.fork(ended.run_id, by="")
            assert len(await system.store.catalogue.entries()) == 1

    play(story())


def test_a_run_that_ended_in_its_first_turn_cannot_be_forked() -> None:
    async def story() -> None:
        async with in_memory() as system:
            ended = await system.run(request(), scripted({"text": "hello"}), Terms(budget=Budget(steps=0)))
            assert ended.terminal_code is Ending.BUDGET_EXHAUSTED
            with pytest.raises(RemitError, match="FORK_INVALID"):
                await system.fork(ended.run_id, by="dan")
            with pytest.raises(RemitError, match="NOT_RETRYABLE"):
                await system.signal(signal(Signal.RETRY, ended.run_id))

    play(story())


def test_a_retry_of_a_retry_goes_on_and_its_model_was_told_both_reasons() -> None:
    async def story() -> None:
        async with in_memory() as system:
            kit = scripted({"text": "one"}, {"text": "two"})
            run_id = (await system.run(request(), kit)).run_id
            for reason in ("the first reason", "the second reason"):
                run_id = (await system.signal(signal(Signal.RETRY, run_id, reason=reason), kit=kit)).fork_id
                assert (await system.result(run_id)).terminal_code is Ending.SUCCESS
            said = [
                entry.content for entry in (await system.state_of(run_id)).talk.context if isinstance(entry, Message)
            ]
            assert said[-2:] == ["the first reason", "the second reason"]

    play(story())
