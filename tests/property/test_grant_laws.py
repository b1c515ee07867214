"""Laws of standing grants: what they cover happens in its order, and never past a call that a person has to answer."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import remit
from remit import AgentLoop, ScriptedEngine, boundary_of, tool
from remit.backend.clock import WallClock

HOUR_MS = 3_600_000
# What an effect is called, and its argument with its kind: a domain each.
DOMAINS = (
    ("pay", "to", "id:person"),
    ("merge", "branch", "id:branch"),
    ("discharge", "patient", "id:patient"),
    ("drop_table", "table", "id:table"),
    ("invite", "guest", "email"),
    ("reboot", "host", "id:host"),
)
TARGETS = ("alpha-1", "beta-2", "gamma-3")


def acting(name: str, argument: str, kind: str, done: list[tuple[str, str]]) -> Callable[..., Any]:
    """A tool with one argument that acts on the world outside."""

    def act(target: str) -> str:
        done.append((name, target))
        return "done"

    source = f"def {name}({argument}: str) -> str:\n    'Act.'\n    return act({argument})\n"
    made: dict[str, Any] = {"act": act}
    exec(source, made)
    declare = tool(effect="external", control_args={argument: kind}, verify=lambda arguments, result: True)
    return declare(made[name])


CALLS = st.lists(
    st.tuples(st.sampled_from(DOMAINS), st.sampled_from(TARGETS), st.booleans()),
    min_size=1,
    max_size=5,
    unique_by=lambda one: (one[0][0], one[1]),
)


async def played(calls: list[Any], boundary: Any) -> tuple[list[tuple[str, str]], int]:
    """What was done of the calls of one turn, of which some are granted, and how many wait for a person."""
    done: list[tuple[str, str]] = []
    tools = [acting(*domain, done) for domain in DOMAINS]
    proposed = [{"name": domain[0], "arguments": {domain[1]: target}} for domain, target, _ in calls]
    with TemporaryDirectory() as home:
        async with remit.open(home) as system:
            for domain, target, is_granted in calls:
                if is_granted:
                    order = {"tool": domain[0], "args": {domain[1]: target}}
                    await system.grants.give(order, until_ms=system.grants.now_ms + HOUR_MS, times=1, by="ada")
            engine = ScriptedEngine([{"tool_calls": proposed}, {"text": "Done."}])
            async with AgentLoop(engine, tools=tools, boundary=boundary, system=system, user_id="bob") as agent:
                said = await agent.chat("Go through the list.")
                return done, 0 if said.waiting_for is None else len(said.waiting_for.packets)


@settings(max_examples=30, deadline=None)
@given(CALLS)
def test_nothing_that_is_granted_happens_behind_a_call_that_is_held(calls: list[Any]) -> None:
    done, waiting = asyncio.run(played(calls, "guarded"))
    places = [place for place, (_, _, is_granted) in enumerate(calls) if not is_granted]
    first = places[0] if places else len(calls)
    assert done == [(domain[0], target) for domain, target, _ in calls[:first]]
    assert waiting == len(calls) - first


@settings(max_examples=10, deadline=None)
@given(CALLS)
def test_without_a_tripwire_each_call_is_looked_at_by_itself(calls: list[Any]) -> None:
    loose = boundary_of({"name": "loose", "extends": "guarded", "authority": {"tripwire": False}})
    done, waiting = asyncio.run(played(calls, loose))
    assert sorted(done) == sorted((domain[0], target) for domain, target, is_granted in calls if is_granted)
    assert waiting == sum(not is_granted for _, _, is_granted in calls)


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_nobody_answered_in_time_still_stands_before_what_is_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domain: tuple[str, str, str]
) -> None:
    """Silence is a no to the held call, and no word about those that follow it."""
    name, argument, _ = domain
    done: list[tuple[str, str]] = []
    hasty = boundary_of({"name": "hasty", "extends": "guarded", "escalation": {"approval_wait": "1s"}})
    calls = [{"tool_calls": [{"name": name, "arguments": {argument: target}}]} for target in TARGETS[:2]]

    async def play() -> None:
        async with remit.open(tmp_path / "home") as system:
            order = {"tool": name, "args": {argument: TARGETS[1]}}
            await system.grants.give(order, until_ms=system.grants.now_ms + HOUR_MS, times=1, by="ada")
            tools, engine = [acting(*domain, done)], ScriptedEngine([*calls, {"text": "Done."}])
            async with AgentLoop(engine, tools=tools, boundary=hasty, system=system, user_id="bob") as agent:
                said = await agent.chat("Go through the list.")
                now_ms = WallClock().now_ms() + 10_000
                monkeypatch.setattr(WallClock, "now_ms", lambda clock: now_ms)
                await system.resume(said.run_id)
                (asked,) = await system.archive.approvals(said.run_id)
                assert asked.arguments == {argument: TARGETS[1]}

    asyncio.run(play())
    assert done == []
