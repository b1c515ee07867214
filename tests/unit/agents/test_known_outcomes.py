"""An outcome that is known is known: what happened is not called a failure and not done again, from the user's side."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from remit import AgentLoop, Budget, InferHandler, NotDone, PlanExecutor, Step, System, ToolHandler, tool
from remit.agents.plan_executor import PlanResult
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.journal.arrivals import ChildEnded, Happened
from remit.core.journal.commands import StartChild
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.run.manifest import EarlierEffect
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.results.notices import HAPPENED
from remit.kernel.state import pinned
from remit.orchestrate.history.replay import AuditVerdict
from remit.tool.call.outcomes import Reconciled
from remit.tool.declare.decorator import Tool

PAY: JsonObject = {"tool_calls": [{"name": "pay", "arguments": {"to": "A-1"}}]}
PAID: JsonObject = {"text": "Paid."}
YES = [True, Happened.YES, Reconciled(Happened.YES), Reconciled(Happened.YES, '{"of": "another kind"}')]


@dataclass
class Receipt:
    number: int


class Bank:
    """A bank whose answers get lost, and which is asked afterwards what became of a payment."""

    def __init__(self, account: Any, *, times: int = 99) -> None:
        self.account, self.times = account, times
        self.keys: list[str] = []

    def pay_with(self, returns: Any, **declared: Any) -> Tool:
        async def pay(to: str, idempotency_key: str) -> Any:
            """Pay a person."""
            self.keys.append(idempotency_key)
            if len(self.keys) <= self.times:
                raise ConnectionError("the answer was lost")
            return "paid"

        pay.__annotations__["return"] = returns
        options = {"effect": "external", "network": True, "reconcile": lambda key: self.account, **declared}
        return tool(**{"control_args": {"to": "id:acct"}, "asks": ["pay"], "repeat": "free", **options})(pay)


@pytest.mark.parametrize("account", YES, ids=["true", "yes", "bare", "misfit"])
@pytest.mark.parametrize("returns", [Literal["paid"], Receipt, int, None], ids=str)
@pytest.mark.parametrize("verify", [None, lambda arguments, result: True], ids=["", "verify"])
def test_a_yes_is_committed_whatever_the_tool_returns_and_the_like_asks_a_person(
    account: Any, returns: Any, verify: Any
) -> None:
    bank = Bank(account)

    async def play() -> None:
        system, engine = system_in_memory(), ScriptedEngine([PAY, PAY, PAID])
        pay = bank.pay_with(returns, verify=verify)
        async with AgentLoop(engine, tools=[pay], boundary="guarded", system=system) as agent:
            response = await agent.chat("Pay A-1.")
            (made,) = response.tool_calls_made
            assert (made.status, made.code, len(bank.keys)) == (CallStatus.COMMITTED, "", 1)
            assert str(made.result).startswith(HAPPENED)
            # The model wants the same again, and has not been told what came of it the first time.
            (asked,) = await system.archive.approvals(response.run_id)
            assert any("it happened, and its result is not known" in reason for reason in asked.reasons)
            assert response.waiting_for is not None
            response = await agent.reject(response.waiting_for.packet_ids[0], by="ada")
            assert (response.terminal_code, len(bank.keys)) == (Ending.PARTIAL_SUCCESS, 1)
            assert (await system.archive.replay(response.run_id)).verdict is AuditVerdict.SAME

    asyncio.run(play())


def test_a_yes_without_a_result_ends_in_success_where_nothing_else_is_wanted() -> None:
    bank = Bank(True)

    async def play() -> SystemResponse:
        pay = bank.pay_with(Literal["paid"])
        async with AgentLoop(
            ScriptedEngine([PAY, PAID]), tools=[pay], boundary="guarded", system=system_in_memory()
        ) as agent:
            return await agent.chat("Pay A-1.")

    assert asyncio.run(play()).terminal_code is Ending.SUCCESS


async def _approved(plan: PlanExecutor, *steps: Step) -> PlanResult:
    """A plan in which every call is approved."""
    done = await plan.execute(list(steps))
    while (waits := done.response.waiting_for) is not None:
        done = await plan.approve(waits.packet_ids[0], by="ada")
    return done


@pytest.mark.parametrize(("account", "calls"), [(True, 1), (False, 2)])
def test_a_step_that_is_tried_again_never_does_again_what_happened_and_keeps_its_key(account: Any, calls: int) -> None:
    bank = Bank(account, times=1)
    pay = bank.pay_with(Literal["paid"], idempotent=True)

    async def play() -> PlanResult:
        plan = PlanExecutor({"tool": ToolHandler([pay])}, system=system_in_memory())
        return await _approved(plan, Step("s", "tool", {"to": "A-1"}, tool="pay", retries=2))

    assert asyncio.run(play()).response.terminal_code is Ending.SUCCESS
    assert len(bank.keys) == calls
    assert len(set(bank.keys)) == 1


async def _tried_twice(system: System, pay: Tool, *broken: JsonObject) -> list[str]:
    """Why people were asked last, in a plan whose only step a model does: its first attempt breaks after the call."""
    engine = ScriptedEngine([PAY, *broken, PAY, PAID])
    plan = PlanExecutor({"infer": InferHandler(engine, tools=[pay])}, system=system, budget=Budget(retries=0))
    reasons: list[str] = []
    done = await plan.execute([Step("s", "infer", "Pay A-1.", retries=1)])
    while (waits := done.response.waiting_for) is not None:
        reasons = [reason for asked in await system.archive.approvals() for reason in asked.reasons]
        done = await plan.approve(waits.packet_ids[0], by="ada")
    return reasons


@pytest.mark.parametrize(
    ("times", "how"), [(0, "committed"), (1, "observed, OUTCOME_UNKNOWN")], ids=["done", "unknown"]
)
def test_what_a_failed_attempt_at_a_step_did_is_told_before_it_is_done_again_and_keeps_its_key(
    times: int, how: str
) -> None:
    bank = Bank(None, times=times)
    pay = bank.pay_with(Literal["paid"], idempotent=True, reconcile=None)
    broken = () if times else ({"error": "INFERENCE_ENGINE_ERROR"},)
    reasons = asyncio.run(_tried_twice(system_in_memory(), pay, *broken))
    assert any(f"called pay with the same arguments in turn 3: {how}" in reason for reason in reasons), reasons
    assert (bank.keys[0] == bank.keys[1]) is bool(times)
    # What is wanted once more after it was done is another payment.
    assert len(set(bank.keys)) == 2


def test_what_an_attempt_at_a_step_did_not_do_is_no_reason_to_ask() -> None:
    @tool(effect="external", network=True)
    def pay(to: str) -> Literal["paid"]:
        """Pay a person."""
        calls.append(to)
        if len(calls) == 1:
            raise NotDone("the bank is closed")
        return "paid"

    calls: list[str] = []
    reasons = asyncio.run(_tried_twice(system_in_memory(), pay))
    assert not any("called pay" in reason for reason in reasons)


def test_what_an_attempt_at_a_step_did_is_told_to_a_fork_that_tries_the_step_again() -> None:
    bank = Bank(None, times=0)
    pay = bank.pay_with(Literal["paid"], idempotent=True, reconcile=None)

    async def play() -> tuple[str, tuple[EarlierEffect, ...]]:
        system, engine = system_in_memory(), ScriptedEngine([PAY, {"error": "INFERENCE_ENGINE_ERROR"}, PAID])
        plan = PlanExecutor({"infer": InferHandler(engine, tools=[pay])}, system=system, budget=Budget(retries=0))
        plan_id = (await _approved(plan, Step("s", "infer", "Pay A-1.", retries=1))).response.run_id
        turns = (await system.archive.history(plan_id)).turns
        failed = next(turn for turn in turns if isinstance(turn.arrival, ChildEnded))
        (again,) = [command.id for command in failed.decisions if isinstance(command, StartChild)]
        kit, _ = PlanExecutor({"infer": InferHandler(engine, tools=[pay])}, system=system)._kit_for(system)
        fork = await system.state_of((await system.fork(plan_id, by="ada", at=failed.seq, kit=kit)).fork_id)
        first = (await system.state_of(plan_id)).children.runs["0.5"]
        return first, pinned(await system.state_of(fork.children.runs[again])).earlier

    first, earlier = asyncio.run(play())
    assert (first, "pay", "committed") in [(effect.run_id, effect.tool, effect.how) for effect in earlier]
