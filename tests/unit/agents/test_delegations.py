"""What is delegated with side effects is a proposed effect, and what children are denied counts with their parent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import pytest

from remit import AgentLoop, Boundary, Budget, InferHandler, NotDone, PlanExecutor, RedundantLoop, Step, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.limits.boundary import Condition, Then
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.run.lifecycle import AgentRole
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.patterns.handlers import ToolHandler
from remit.tool.declare.decorator import Tool
from remit.tool.delegate import delegate

READS = {"input_tokens": 20_000, "output_tokens": 5_000, "tool_calls": 8, "steps": 30, "human_reviews": 8}
CHANGES = {**READS, "side_effects": 1}
# A boundary within which a lease of one side effect fits.
DESK = Boundary(name="desk", budget=Budget(side_effects=3))
ALL = Budget()
TASK: JsonObject = {"task": "refund bob"}
REFUNDED: JsonObject = {"text": "I have refunded bob."}


@tool(effect="write", network=False)
def refund(n: int) -> Literal["ok"]:
    """Refund."""
    return "ok"


payer = delegate("payer", description="Pay.", lease=CHANGES)
reader = delegate("reader", description="Read.", lease=READS)


def calls(name: str, **arguments: object) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


async def chat(
    *replies: JsonObject,
    tools: Sequence[Tool] = (payer,),
    budget: Budget = ALL,
    role: AgentRole = AgentRole.GENERAL,
) -> SystemResponse:
    engine = ScriptedEngine([*replies, REFUNDED])
    system = system_in_memory()
    async with AgentLoop(engine, tools=[*tools], system=system, boundary=DESK, budget=budget, role=role) as agent:
        response = await agent.chat("please refund bob")
        while response.waiting_for is not None:
            response = await agent.approve(response.waiting_for.packet_ids[0], by="ann")
        return response


def told(response: SystemResponse) -> str:
    """What a caller reads of a run that did not succeed."""
    return "; ".join([*response.warnings, "" if response.error is None else response.error.message])


@pytest.mark.parametrize(
    ("budget", "role", "arguments", "ending"),
    [
        (Budget(side_effects=0), AgentRole.GENERAL, TASK, Ending.BUDGET_EXHAUSTED),
        (Budget(depth=0), AgentRole.GENERAL, TASK, Ending.BUDGET_EXHAUSTED),
        (Budget(child_runs=0), AgentRole.GENERAL, TASK, Ending.BUDGET_EXHAUSTED),
        (ALL, AgentRole.EDITOR, TASK, Ending.PERMISSION_DENIED),
        (ALL, AgentRole.GENERAL, {"tusk": "refund bob"}, Ending.PARTIAL_SUCCESS),
    ],
)
@pytest.mark.req("4.11")
def test_a_delegation_that_is_refused_leaves_its_effect_undone(
    budget: Budget, role: AgentRole, arguments: JsonObject, ending: Ending
) -> None:
    response = asyncio.run(chat(calls("payer", **arguments), budget=budget, role=role))
    assert (response.terminal_code, "payer" in told(response)) == (ending, True)
    assert response.tool_calls_made[0].status is CallStatus.REFUSED


@pytest.mark.parametrize(
    "of_child",
    [
        {"when": '"task"', "error": "INFERENCE_ENGINE_ERROR"},
        {"when": '"task"', "text": ""},
        {"when": '"task"', **calls("payer", **TASK)},
    ],
    ids=["broken", "silent", "refused itself"],
)
@pytest.mark.slow
def test_a_delegation_whose_child_fails_leaves_its_effect_undone(of_child: JsonObject) -> None:
    response = asyncio.run(chat(calls("payer", **TASK), *[of_child] * 6))
    assert response.terminal_code is not Ending.SUCCESS
    assert "payer" in told(response)


@pytest.mark.parametrize("first", [{"tusk": "x"}, TASK])
@pytest.mark.parametrize("does_it", [True, False])
@pytest.mark.slow
def test_a_later_delegation_makes_it_good_by_what_it_does_and_not_by_what_it_says(
    first: JsonObject, *, does_it: bool
) -> None:
    failing = [{"when": '"refund bob"', "error": "INFERENCE_ENGINE_ERROR"}] * 4
    doing = [{"when": "once more", **calls("refund", n=1)}, {"when": "^.?ok", "text": "Done."}]
    replies = [
        calls("payer", **first),
        *(failing if first is TASK else []),
        calls("payer", task="once more: bob"),
        *(doing if does_it else [{"when": "once more", "text": "Done."}]),
    ]
    response = asyncio.run(chat(*replies, tools=[payer, refund]))
    assert (response.terminal_code is Ending.SUCCESS, "payer" in told(response)) == (does_it, not does_it)


@tool(effect="write", network=False)
def broken(n: int) -> Literal["ok"]:
    """Pay, which fails."""
    raise NotDone("the bank is closed")


OVER = Condition("over", 'tool == "refund"', Then.REFUSE, "no refunds")


# Enough for two children of its own.
outer = delegate(
    "outer",
    description="Ask.",
    lease={**{name: 2 * most for name, most in READS.items()}, "output_tokens": 20_000, "child_runs": 2},
)
COULD_NOT: JsonObject = {"when": "REJECTED|HELD|FOUND|INVALID|closed", "text": "I could not."}


async def laundered(of_child: JsonObject, *, says_no: bool, boundary: Boundary, is_deep: bool) -> SystemResponse:
    """A child leaves something, another one only says hello, and the parent claims all of it."""
    below: list[JsonObject] = [
        {"when": '"refund bob"', **of_child},
        COULD_NOT,
        {"when": '"say hello"', "text": "Hello!"},
    ]
    first, then = calls("reader", **TASK), calls("reader", task="say hello")
    if is_deep:
        parent = [calls("outer", task="wrap"), {"when": '"wrap"', **first}, {"when": "I could not", **then}]
        parent.append({"when": "Hello", "text": "Refunded."})
    else:
        parent = [{"text": "a", **first}, {"text": "b", **then}]
    engine = ScriptedEngine([*below, *parent, REFUNDED])
    tools = [reader, outer, refund, broken]
    async with AgentLoop(engine, tools=tools, system=system_in_memory(), boundary=boundary) as agent:
        response = await agent.chat("please")
        while response.waiting_for is not None:
            packet = response.waiting_for.packet_ids[0]
            answer = agent.reject(packet, by="ann", reason="no") if says_no else agent.approve(packet, by="ann")
            response = await answer
        return response


@pytest.mark.req("4.11")
@pytest.mark.parametrize(
    ("of_child", "says_no", "boundary"),
    [
        (calls("refund", n=20), True, DESK),
        (calls("refund", n=20), False, Boundary(name="b", budget=Budget(side_effects=3), conditions=(OVER,))),
        (calls("refunded", n=20), False, DESK),
        (calls("refund", n="many"), False, DESK),
        (calls("broken", n=20), False, DESK),
    ],
    ids=["rejected", "by a condition", "unknown", "invalid", "not done"],
)
@pytest.mark.parametrize("is_deep", [False, True])
def test_another_child_that_only_talks_makes_nothing_good(
    of_child: JsonObject, *, says_no: bool, boundary: Boundary, is_deep: bool
) -> None:
    response = asyncio.run(laundered(of_child, says_no=says_no, boundary=boundary, is_deep=is_deep))
    assert (response.terminal_code, response.content) == (Ending.PARTIAL_SUCCESS, REFUNDED["text"])
    assert "(in child" in told(response)


def test_what_a_child_left_undone_is_made_good_by_a_later_child_that_does_it() -> None:
    replies = [
        calls("payer", task="one"),
        {"when": '"one"', **calls("refund", n="many")},
        {"when": "CONSTRAINT_SCHEMA_INVALID", "text": "Refunded."},
        calls("payer", task="two"),
        {"when": '"two"', **calls("refund", n=1)},
        {"when": "^.?ok", "text": "Refunded now."},
    ]
    response = asyncio.run(chat(*replies, tools=[payer, refund]))
    assert (response.terminal_code, response.warnings) == (Ending.SUCCESS, ())


async def _in_a_plan_without_a_model() -> SystemResponse:
    plan = PlanExecutor({"t": ToolHandler([payer])}, system=system_in_memory(), boundary=DESK)
    return (await plan.execute([Step("a", "t", TASK, tool="payer")])).response


def test_a_delegation_that_no_model_could_take_is_refused_and_leaves_no_doubt() -> None:
    response = asyncio.run(_in_a_plan_without_a_model())
    assert [(call.status, call.code) for call in response.tool_calls_made] == [(CallStatus.REFUSED, "TOOL_UNAVAILABLE")]
    assert "this run has none; give it an engine" in told(response)
    assert "nobody knows" not in told(response)


def test_a_delegation_without_side_effects_is_a_read() -> None:
    response = asyncio.run(chat(calls("reader", **TASK), tools=[reader], budget=Budget(depth=0)))
    assert (response.terminal_code, response.warnings) == (Ending.SUCCESS, ())


async def _asked(engine: ScriptedEngine) -> tuple[int, SystemResponse, list[str]]:
    """How often a person who always says no is asked, how the run ends, and which queues have something."""
    system = system_in_memory()
    async with AgentLoop(engine, tools=[reader, refund], system=system) as agent:
        response, times = await agent.chat("x"), 0
        while response.waiting_for is not None:
            times += 1
            response = await agent.reject(response.waiting_for.packet_ids[0], by="ann", reason="no")
        return times, response, [queue.name for queue in await system.queues.overview() if queue.items]


@pytest.mark.req("4.36")
@pytest.mark.parametrize("noes_of_each", [1, 2])
def test_what_people_turn_away_of_children_counts_with_their_parent(noes_of_each: int) -> None:
    replies: list[JsonObject] = []
    for child in range(6):
        replies.append({"text": f"t{child}", **calls("reader", task=f"kid {child}")})
        replies += [{"when": f"kid {child}|no", **calls("refund", n=n)} for n in range(noes_of_each)]
        replies.append({"when": "rejected", "text": f"I could not, {child}"})
    times, response, queues = asyncio.run(_asked(ScriptedEngine([*replies, {"text": "ok"}])))
    assert (times, response.terminal_code, queues) == (3, Ending.PERMISSION_DENIED, ["compliance"])
    assert "denials_max=3" in told(response)


def test_calls_that_the_boundary_denies_to_children_count_with_their_parent() -> None:
    deep = delegate("deep", description="Deeper.", lease=READS)
    replies: list[JsonObject] = []
    for child in range(4):
        replies += [
            calls("deep", task=f"kid {child}"),
            {"when": f"kid {child}", **calls("deep", task="deeper")},
            {"when": "DEPTH_EXCEEDED", "text": "I may not"},
        ]
    response = asyncio.run(chat(*replies, tools=[deep], budget=Budget(depth=1)))
    assert response.terminal_code is Ending.PERMISSION_DENIED
    assert [call.code for call in response.tool_calls_made].count("DEPTH_EXCEEDED") == 3


WANTS_WHAT_NOBODY_HAS: list[JsonObject] = [calls("refund", n=1), {"text": "refunded"}]


async def _in_a_step() -> SystemResponse:
    plan = PlanExecutor({"i": InferHandler(ScriptedEngine(WANTS_WHAT_NOBODY_HAS))}, system=system_in_memory())
    return (await plan.execute([Step("a", "i", "go")])).response


async def _in_an_agent_that_is_a_step() -> SystemResponse:
    system = system_in_memory()
    agent = AgentLoop(ScriptedEngine(WANTS_WHAT_NOBODY_HAS), system=system)
    return (await PlanExecutor({"i": agent}, system=system).execute([Step("a", "i", "go")])).response


async def _in_a_vote() -> SystemResponse:
    answers = [calls("refund", n=1), {"text": '{"n": 1}'}]
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}}
    loop = RedundantLoop(ScriptedEngine(answers), schema=shape, n=3, system=system_in_memory())
    return (await loop.call("go")).response


@pytest.mark.parametrize("where", [_in_a_step, _in_an_agent_that_is_a_step, _in_a_vote])
def test_a_refused_call_of_a_child_without_tools_is_told(where: Callable[[], Awaitable[SystemResponse]]) -> None:
    async def story() -> SystemResponse:
        return await where()

    response = asyncio.run(story())
    assert {(call.name, call.status) for call in response.tool_calls_made} == {("refund", CallStatus.REFUSED)}
    assert {call.code for call in response.tool_calls_made} <= {"TOOL_NOT_FOUND", "NOT_OFFERED"}
