"""Rates of a user: all of their runs together keep them, whichever processes drive them and however many there are."""

import asyncio
from collections import Counter

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.limits.boundary import Boundary, Rate, Whose
from remit.core.record import JsonObject
from remit.core.run.contract import SystemResponse
from remit.core.run.principal import Principal, Scope
from remit.orchestrate.setup.kit import Terms
from remit.orchestrate.tenants import rates
from remit.tool.declare.decorator import tool
from remit.tool.delegate import delegate
from tests.unit.orchestrate.house import LEASE, calls, request, scripted, systems

MINUTE_MS = 60_000
TWICE = Rate("peek", 2, MINUTE_MS, Whose.USER)


@tool(effect="read", network=False)
def peek(what: str) -> str:
    """Look."""
    return what


@tool(effect="read", network=False)
def glance(what: str) -> str:
    """Look less."""
    return what


def terms(*rates_said: Rate) -> Terms:
    """Terms with these rates."""
    return Terms(boundary=Boundary(rates=rates_said))


def made(response: SystemResponse) -> list[str]:
    """What became of the calls of a run."""
    return [call.code or "done" for call in response.tool_calls_made]


def peeks(*what: str) -> JsonObject:
    """One answer with so many calls."""
    return {"tool_calls": [{"name": "peek", "arguments": {"what": one}} for one in what]}


async def ran(user: str, *replies: JsonObject, said: Terms, many: int = 1) -> list[SystemResponse]:
    """Runs of a user, all at once."""
    async with systems(MemoryStore()) as (system,):
        acting = system.acting_for(Principal("acme", user, (Scope.START,)))
        tools = [peek, glance, delegate("helper", description="help", lease=LEASE)]
        started = [acting.run(request(), scripted(*replies, {"text": "ok"}, tools=tools), said) for _ in range(many)]
        return await asyncio.gather(*started)


def test_runs_side_by_side_keep_one_rate() -> None:
    responses = asyncio.run(ran("ada", peeks("a"), said=terms(TWICE), many=9))
    assert Counter(code for response in responses for code in made(response)) == {"done": 2, "RATE_LIMITED": 7}


def test_a_rate_of_a_run_is_each_runs_own() -> None:
    responses = asyncio.run(ran("ada", peeks("a", "b", "c"), said=terms(Rate("peek", 2, MINUTE_MS)), many=3))
    assert [made(response) for response in responses] == [["done", "done", "RATE_LIMITED"]] * 3


def test_calls_of_one_answer_and_of_other_runs_count_together() -> None:
    responses = asyncio.run(ran("ada", peeks("a", "b", "c"), said=terms(Rate("*", 4, MINUTE_MS, Whose.USER)), many=2))
    assert Counter(code for response in responses for code in made(response)) == {"done": 4, "RATE_LIMITED": 2}


def test_a_child_does_not_multiply_what_its_user_may() -> None:
    of_child = ({"when": '"task"', **peeks("a", "b")}, {"when": "^b$", "text": "looked"})
    replies = (*of_child, calls("helper", task="look"), peeks("c"))
    (response,) = asyncio.run(ran("ada", *replies, said=terms(TWICE)))
    assert Counter(call.code for call in response.tool_calls_made if call.name == "peek") == {"": 2, "RATE_LIMITED": 1}


def test_what_was_refused_for_another_reason_does_not_count() -> None:
    async def both() -> list[list[str]]:
        async with systems(MemoryStore()) as (system,):
            acting = system.acting_for(Principal("acme", "ada", (Scope.START,)))
            wrong = scripted(calls("peek", nothing="a"), {"text": "ok"}, tools=[peek])
            right = scripted(peeks("a", "b"), {"text": "ok"}, tools=[peek])
            return [made(await acting.run(request(), kit, terms(TWICE))) for kit in (wrong, right)]

    assert asyncio.run(both())[1] == ["done", "done"]


@pytest.mark.parametrize(("user", "tenant"), [("bob", "acme"), ("ada", "globex")])
def test_users_and_tenants_have_rates_of_their_own(user: str, tenant: str) -> None:
    async def both() -> list[str]:
        async with systems(MemoryStore()) as (system,):
            responses = [
                await system.acting_for(Principal(of, name, (Scope.START,))).run(
                    request(), scripted(peeks("a", "b"), {"text": "ok"}, tools=[peek]), terms(TWICE)
                )
                for name, of in (("ada", "acme"), (user, tenant))
            ]
            return made(responses[-1])

    assert asyncio.run(both()) == ["done", "done"]


def test_a_user_whose_calls_count_no_more_is_forgotten_before_another_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rates, "USERS_MAX", 1)
    now = iter(range(0, 10**9, 120_000))

    async def several() -> list[list[str]]:
        async with systems(MemoryStore()) as (system,):
            monkeypatch.setattr(system._runner.clock, "now_ms", lambda: next(now))
            found = []
            for user in ("ada", "bob", "ada"):
                acting = system.acting_for(Principal("acme", user, (Scope.START,)))
                kit = scripted(peeks("a", "b", "c"), {"text": "ok"}, tools=[peek])
                found.append(made(await acting.run(request(), kit, terms(TWICE))))
            return found

    assert asyncio.run(several()) == [["done", "done", "RATE_LIMITED"]] * 3
