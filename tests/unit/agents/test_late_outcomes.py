"""What a call came to after its run had ended is told wherever the doubt was told, and the doubt no longer is."""

import asyncio
import threading
from collections.abc import Callable
from typing import Literal

import pytest

from remit import AgentLoop, System, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.record import JsonObject
from remit.core.run.approval import What
from remit.core.run.contract import CallStatus, SystemResponse
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.people.queue_items import QueueItem
from remit.observe.views.explain import Explanation
from remit.orchestrate.history.fork_run import effects_of
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import NotDone
from remit.tool.declare.decorator import Tool
from remit.tool.delegate import delegate

PAYS: JsonObject = {"tool_calls": [{"name": "pay", "arguments": {"n": 1}}]}
LEASE = {"input_tokens": 50_000, "output_tokens": 10_000, "tool_calls": 6, "steps": 20, "human_reviews": 8}


class Desk:
    """A payment that is under way when its run is cancelled, and says later what became of it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.over = threading.Event()

    def wait(self) -> None:
        self.loop.call_soon_threadsafe(self.begun.set)
        self.over.wait(20)

    def returns(self) -> Tool:
        @tool(effect="write", network=False)
        def pay(n: int) -> Literal["paid"]:
            """Pay."""
            self.wait()
            return "paid"

        return pay

    def returns_at_length(self) -> Tool:
        @tool(effect="write", network=False)
        def pay(n: int) -> str:
            """Pay."""
            self.wait()
            return "paid " * 100

        return pay

    def is_contradicted(self) -> Tool:
        @tool(effect="write", network=False, verify=lambda n, result: False)
        def pay(n: int) -> str:
            """Pay."""
            self.wait()
            return "paid"

        return pay

    def is_not_done(self) -> Tool:
        @tool(effect="write", network=False)
        def pay(n: int, token: CancelToken) -> str:
            """Pay."""
            self.wait()
            raise NotDone("told to stop")

        return pay

    def is_not_done_on_the_loop(self) -> Tool:
        @tool(effect="write", network=False)
        async def pay(n: int) -> str:
            """Pay."""
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise NotDone("told to stop") from None
            return "paid"

        return pay

    def returns_on_the_loop(self) -> Tool:
        @tool(effect="write", network=False)
        async def pay(n: int) -> str:
            """Pay."""
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "paid"
            return ""

        return pay


class Told:
    """Lines about a run, at every place that shows them."""

    def __init__(self, response: SystemResponse, explained: Explanation, held: list[QueueItem]) -> None:
        self.response = response
        self.explained = explained
        self.held = held


async def _told(system: System, run_id: str) -> Told:
    held = [item for item in await system.queues.items() if item.what is What.ENDING and item.run_id == run_id]
    return Told(await system.result(run_id), (await system.archive.told(run_id)).explanation, held)


async def _cut_off(system: System, desk: Desk, *tools: Tool, script: list[JsonObject]) -> tuple[str, Told, Told]:
    """A run that is cancelled over a payment, as it is told then, and once the payment has come back."""
    async with AgentLoop(ScriptedEngine(script), tools=list(tools), system=system) as agent:
        asked = await agent.chat("Pay.")
        assert asked.waiting_for is not None
        going = asyncio.create_task(agent.approve(asked.waiting_for.packet_ids[0], by="ada"))
        await desk.begun.wait()
        await agent.cancel(by="ada")
        await going
        before = await _told(system, asked.run_id)
        desk.over.set()
        async with asyncio.timeout(20):
            while not (await system.result(asked.run_id)).tool_calls_made[-1].is_late:  # noqa: ASYNC110  # no caller is told of it
                await asyncio.sleep(0.01)
        await system.settle()
        return asked.run_id, before, await _told(system, asked.run_id)


def _play(make: Callable[[Desk], Tool]) -> tuple[Told, Told]:
    async def play() -> tuple[Told, Told]:
        desk = Desk()
        _, *told = await _cut_off(system_in_memory(), desk, make(desk), script=[PAYS, {"text": "Paid."}])
        before, after = told
        return before, after

    return asyncio.run(play())


@pytest.mark.req("4.36")
@pytest.mark.parametrize("make", [Desk.returns, Desk.returns_on_the_loop], ids=["thread", "loop"])
def test_a_payment_that_returned_after_the_end_is_told_everywhere_with_its_result(make: Callable[[Desk], Tool]) -> None:
    _, after = _play(make)
    assert after.response.terminal_code is Ending.USER_CANCEL
    (made,) = after.response.tool_calls_made
    assert (made.status, made.result, made.is_late) == (CallStatus.OBSERVED, "paid", True)
    assert made.error == "it returned after the end (turn 4): paid"
    (warning,) = after.response.warnings
    assert warning.startswith("pay#")
    assert warning.endswith("was under way when the run ended; it returned after the end (turn 4): paid")
    assert after.explained.warnings == (warning,)
    (called,) = after.explained.calls
    assert (called.in_doubt, called.late) == (0, 1)
    assert after.explained.uncommitted == ("pay",), "nothing is committed after the ending"
    (item,) = after.held
    assert (item.doubted, item.found) == ((), (warning,))
    assert "nobody knows" not in item.summary


def test_until_it_comes_back_the_doubt_is_told_everywhere() -> None:
    before, _ = _play(Desk.returns)
    (made,) = before.response.tool_calls_made
    assert (made.status, made.is_late) == (CallStatus.OUTCOME_UNKNOWN, False)
    (warning,) = before.response.warnings
    assert warning.startswith("it is unknown what became of pay#")
    assert before.explained.warnings == (warning,)
    (item,) = before.held
    assert "it is unknown what became of pay#" in item.summary


@pytest.mark.parametrize("make", [Desk.is_not_done, Desk.is_not_done_on_the_loop], ids=["thread", "loop"])
def test_a_payment_that_says_it_was_not_done_is_no_doubt_and_leaves_the_queue(make: Callable[[Desk], Tool]) -> None:
    _, after = _play(make)
    (made,) = after.response.tool_calls_made
    assert (made.status, made.is_late) == (CallStatus.FAILED, True)
    (warning,) = after.response.warnings
    assert "it did not happen, as its tool said after the end (turn 4): NotDone: told to stop" in warning
    assert [(called.in_doubt, called.failed) for called in after.explained.calls] == [(0, 1)]
    assert after.held == []


def test_a_late_result_that_its_own_check_contradicts_is_told_as_contradicted() -> None:
    _, after = _play(Desk.is_contradicted)
    (made,) = after.response.tool_calls_made
    assert (made.status, made.result) == (CallStatus.FAILED, "paid")
    assert "and was contradicted: VALIDATION_RULE_FAILED: " in made.error
    assert len(after.held) == 1


def test_a_long_late_result_is_cut_where_it_is_told_and_whole_in_its_call() -> None:
    _, after = _play(Desk.returns_at_length)
    assert after.response.tool_calls_made[0].result == "paid " * 100
    assert after.response.warnings[0].endswith("paid ...")


@pytest.mark.parametrize("make", [Desk.returns, Desk.is_not_done], ids=["returned", "not done"])
def test_another_attempt_is_told_what_was_found_out_of_the_one_before(make: Callable[[Desk], Tool]) -> None:
    async def play() -> list[str]:
        system, desk = system_in_memory(), Desk()
        run_id, *_ = await _cut_off(system, desk, make(desk), script=[PAYS, {"text": "Paid."}])
        return [effect.how for effect in await effects_of(system.store.journal, run_id)]

    found = ["it returned after the end (turn 4): paid"] if make is Desk.returns else []
    assert asyncio.run(play()) == found


@pytest.mark.parametrize("levels", [1, 2])
def test_what_a_child_had_under_way_and_told_late_is_told_by_all_above_it(levels: int) -> None:
    async def play() -> tuple[Told, Told]:
        system, desk = system_in_memory(), Desk()
        words = ["^Pay[.]", "one", "two"][: levels + 1]
        hands: list[Tool] = []
        script: list[JsonObject] = []
        for place in range(levels):
            lease = {name: amount >> place for name, amount in LEASE.items()}
            lease |= {"child_runs": 1} if place < levels - 1 else {}
            hands.append(delegate(f"hand_{place}", description="help", lease=lease))
            call = {"name": f"hand_{place}", "arguments": {"task": words[place + 1]}}
            script.append({"when": words[place], "tool_calls": [call]})
        script += [{"when": words[-1], **PAYS}, {"text": "Paid."}]
        _, before, after = await _cut_off(system, desk, *hands, desk.returns(), script=script)
        return before, after

    before, after = asyncio.run(play())
    (doubt,) = before.response.warnings
    assert doubt.startswith("it is unknown what became of pay (in child ")
    (warning,) = after.response.warnings
    assert warning.startswith("pay (in child ")
    assert "it returned after the end (turn " in warning
    assert after.explained.warnings == (warning,)
