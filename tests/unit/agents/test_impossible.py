"""A required action that the budget forbids, that no person may approve, or that a condition always refuses."""

from typing import Any

import pytest

from remit import AgentLoop, Boundary, Budget, SystemResponse, tool
from remit.core.failure import Ending
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import BoundaryMode, Condition, Then
from remit.core.record import replace
from remit.core.work.goal import Goal, RequiredAction
from remit.inference.scripted.engine import ScriptedEngine
from remit.tool.builtin.ask_person import people_tools
from tests.unit.orchestrate.house import Listening, calls, in_memory
from tests.unit.orchestrate.stage import play


@tool(effect="read", network=True, reads="public")
def look() -> str:
    """Look at something."""
    return "seen 7"


@tool(effect="write", network=False, asks=("mark",), verify=lambda arguments, result: True)
def mark() -> dict[str, bool]:
    """Mark it."""
    return {"marked": True}


CHANGING = Budget(side_effects=2, human_reviews=0)


def refusing(when: str, then: Then = Then.REFUSE) -> Boundary:
    return Boundary(name="b", conditions=(Condition("never", when, then),))


def alone(**caps: int) -> Boundary:
    return Boundary(name="b", approval_effects=(), authority=Authority(), budget=Budget(**caps))


NEVER: dict[str, tuple[str, dict[str, Any], str]] = {
    "no calls": ("look", {"budget": Budget(tool_calls=0)}, "tool_calls_max=0 forbids it"),
    "no calls outside": ("look", {"budget": Budget(external_api_calls=0)}, "external_api_calls_max=0 forbids it"),
    "no changes": ("mark", {"boundary": alone(side_effects=0, human_reviews=0)}, "side_effects_max=0 forbids it"),
    "no approval": (
        "mark",
        {"boundary": Boundary(name="b", budget=CHANGING)},
        "human_reviews_max=0 lets nobody be asked",
    ),
    "no question": ("ask_user", {"budget": Budget(human_reviews=0)}, "it asks a person, and human_reviews_max=0"),
    "refused": ("mark", {"boundary": refusing('tool == "mark"')}, "condition never (refuses every call of it)"),
    "stopped": ("mark", {"boundary": refusing("changes && !network", Then.STOP)}, "(stops every call of it)"),
    "undecided": ("look", {"boundary": refusing('tool == "look" && cost_microusd / 0 > 0')}, "condition never"),
}


@pytest.mark.req("4.36")
@pytest.mark.parametrize("why", NEVER)
def test_what_the_budget_or_a_condition_always_forbids_is_impossible_before_a_model_is_paid(why: str) -> None:
    name, terms, message = NEVER[why]
    engine = Listening({"text": "done"})
    tools = [look, mark, *people_tools()]

    async def story() -> SystemResponse:
        async with in_memory() as system:
            goal = Goal("do it", required_actions=(RequiredAction(name),))
            return await AgentLoop(engine, tools=tools, system=system, goal=goal, **terms).chat("mark it")

    said = play(story())
    assert said.terminal_code is Ending.IMPOSSIBLE, said
    assert said.error is not None
    assert message in said.error.message
    assert engine.asked == []


AUDITED = replace(refusing("changes"), mode=BoundaryMode.AUDIT, budget=Budget(side_effects=0, human_reviews=0))
MAYBE: dict[str, tuple[str, dict[str, Any]]] = {
    "a person may lift it": ("mark", {"boundary": alone(side_effects=0)}),
    "nobody has to be asked": ("mark", {"boundary": alone(side_effects=2, human_reviews=0)}),
    "another tool": ("look", {"boundary": refusing('tool == "mark"')}),
    "it depends on the call": ("look", {"boundary": refusing('tool == "look" && size(args) > 0')}),
    "it only asks": ("look", {"boundary": refusing('tool == "look"', Then.ASK)}),
    "it only audits": ("mark", {"boundary": AUDITED}),
}


@pytest.mark.parametrize("why", MAYBE)
def test_what_may_still_be_done_is_left_to_the_run(why: str) -> None:
    name, terms = MAYBE[why]

    async def story() -> SystemResponse:
        async with in_memory() as system:
            goal = Goal("do it", required_actions=(RequiredAction(name),))
            engine = ScriptedEngine([calls(name), {"text": "done"}])
            return await AgentLoop(engine, tools=[look, mark], system=system, goal=goal, **terms).chat("mark it")

    said = play(story())
    assert said.terminal_code is Ending.SUCCESS or said.waiting_for is not None, said
