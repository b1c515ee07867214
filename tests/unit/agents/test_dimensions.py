"""Every dimension that a caller may cap binds, as a caller sees it; what binds nothing is not offered."""

from collections.abc import Callable

import pytest

from remit import AgentLoop, Boundary, Budget, SystemRequest, SystemResponse, tool
from remit.assemble import system_in_memory
from remit.core.failure import Ending, RequestRejected
from remit.core.limits.authority import Authority
from remit.core.limits.budget import DIMENSION_UNCHARGED, FIELDS, UNCHARGED
from remit.core.limits.profiles import CODING_ASSISTANT, PROFILES, check_figures
from remit.core.limits.quota import QUOTA_INVALID, Period, Quota, check_quotas
from remit.core.limits.tools import TOOL_INVALID, Effect
from remit.core.record import JsonObject, replace
from remit.core.run.contract import CallStatus
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.manifest import make_manifest
from remit.core.run.messages import user_message
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.boundaries.boundary_file import boundary_of, boundary_said
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.tool.delegate import delegate
from tests.unit.orchestrate.house import calls
from tests.unit.orchestrate.stage import play

WROTE: list[str] = []


@tool(effect="read")
def look() -> str:
    """Look something up."""
    return "found"


@tool(effect="read", network=True)
def fetch() -> str:
    """Ask a service."""
    return "fetched"


@tool(effect="write")
def write(text: str) -> dict[str, str]:
    """Write something down."""
    WROTE.append(text)
    return {"text": text}


DESK = delegate("desk", description="hand a task on", lease={"input_tokens": 500, "output_tokens": 100, "steps": 9})
TWICE = (calls("look"), calls("look"), {"text": "done"})
DEAR = Price(10**9, 10**9)
# What changes something needs no person here, so that only the budget can object.
SILENT = Budget()
FREE = Boundary(name="free", approval_effects=(), approval_categories=())


def asked(
    *replies: JsonObject, budget: Budget = SILENT, price: Price | None = None, boundary: Boundary = FREE
) -> SystemResponse:
    loop = AgentLoop(
        ScriptedEngine(replies, price=price or Price(0, 0)),
        tools=[look, fetch, write, DESK],
        budget=budget,
        boundary=boundary,
        system=system_in_memory(),
    )
    WROTE.clear()
    return play(loop.chat("please"))


def _stops(said: SystemResponse, dimension: str) -> None:
    assert said.terminal_code is Ending.BUDGET_EXHAUSTED
    assert said.error is not None
    assert dimension in said.error.message


def _refuses(said: SystemResponse, dimension: str) -> None:
    """The call is not made; the run itself may go on."""
    assert [(call.status, call.result) for call in said.tool_calls_made] == [
        (CallStatus.REFUSED, "DEPTH_EXCEEDED" if dimension == "depth" else "BUDGET_EXHAUSTED")
    ]


def _waits(said: SystemResponse, dimension: str) -> None:
    assert said.waiting_for is not None
    assert (WROTE, said.terminal_code) == ([], None)


Seen = Callable[[SystemResponse, str], None]
CASES: dict[str, tuple[tuple[JsonObject, ...], int, Seen]] = {
    "input_tokens": (TWICE, 10, _stops),
    "output_tokens": (TWICE, 0, _stops),
    "context_tokens": (TWICE, 10, _stops),
    "steps": (TWICE, 2, _stops),
    "tool_calls": ((calls("look"), {"text": "done"}), 0, _refuses),
    "external_api_calls": ((calls("fetch"), {"text": "done"}), 0, _refuses),
    "child_runs": ((calls("desk", task="x"), {"text": "done"}), 0, _refuses),
    "depth": ((calls("desk", task="x"), {"text": "done"}), 0, _refuses),
    "side_effects": ((calls("write", text="x"), {"text": "done"}), 0, _waits),
}


@pytest.mark.req("4.22")
@pytest.mark.parametrize("dimension", CASES)
def test_a_cap_that_a_caller_sets_stops_the_run_or_the_call(dimension: str) -> None:
    replies, cap, seen = CASES[dimension]
    seen(asked(*replies, budget=Budget(**{dimension: cap})), dimension)


@pytest.mark.req("4.22")
@pytest.mark.parametrize("dimension", CASES)
def test_nothing_is_stopped_by_a_cap_that_nobody_set(dimension: str) -> None:
    said = asked(*CASES[dimension][0], boundary=replace(FREE, budget=Budget(side_effects=5), authority=Authority()))
    assert said.terminal_code is not Ending.BUDGET_EXHAUSTED
    assert CallStatus.REFUSED not in {call.status for call in said.tool_calls_made}


@pytest.mark.req("4.22")
def test_money_that_is_capped_stops_a_model_that_costs_more() -> None:
    _stops(asked(*TWICE, price=DEAR, budget=Budget(inference_cost_microusd=5)), "inference_cost_microusd")


@pytest.mark.req("4.22")
def test_a_clock_that_is_capped_ends_the_run_as_timeout() -> None:
    assert asked(*TWICE, budget=Budget(wall_clock_ms=0)).terminal_code is Ending.TIMEOUT


@pytest.mark.req("4.22")
def test_retries_that_are_capped_give_a_failing_model_up() -> None:
    failing: JsonObject = {"error": "INFERENCE_ENGINE_ERROR"}
    said = asked(failing, {"text": "here I am again"}, budget=Budget(retries=0))
    assert (said.terminal_code, said.content) == (Ending.UNAVAILABLE_DEP, "")


@pytest.mark.req("4.22")
def test_reviews_that_are_capped_leave_nobody_to_be_asked() -> None:
    asking = replace(FREE, approval_effects=(Effect.WRITE,))
    replies: tuple[JsonObject, ...] = (calls("write", text="x"), {"text": "done"})
    assert asked(*replies, boundary=asking).waiting_for is not None
    said = asked(*replies, boundary=asking, budget=Budget(human_reviews=0))
    assert (said.waiting_for, WROTE) == (None, [])
    assert said.terminal_code is Ending.BUDGET_EXHAUSTED


def test_every_dimension_is_either_shown_to_bind_here_or_not_offered() -> None:
    elsewhere = {"inference_cost_microusd", "wall_clock_ms", "retries", "human_reviews"}
    assert {*CASES, *elsewhere} | {FIELDS[dimension] for dimension in UNCHARGED} == set(FIELDS)
    assert len({*CASES, *elsewhere}) == 13


@pytest.mark.req("4.22")
@pytest.mark.parametrize("dimension", [FIELDS[dimension] for dimension in UNCHARGED])
def test_a_cap_above_zero_that_nothing_charges_is_refused_wherever_a_caller_sets_it(dimension: str) -> None:
    cap = {dimension: 3}
    with pytest.raises(RequestRejected, match="not built yet") as refused:
        asked({"text": "hello"}, budget=Budget(**cap))
    assert (refused.value.code, refused.value.details) == (DIMENSION_UNCHARGED, {"dimension": dimension})
    with pytest.raises(RequestRejected, match=f"boundary mine sets {dimension} above 0") as refused:
        asked({"text": "hello"}, boundary=Boundary(name="mine", budget=Budget(**cap)))
    assert refused.value.code == DIMENSION_UNCHARGED
    with pytest.raises(RequestRejected, match=f"budget.{dimension}") as refused:
        boundary_of({"name": "mine", "budget": cap})
    assert (refused.value.code, refused.value.details["key"]) == (DIMENSION_UNCHARGED, f"budget.{dimension}")
    with pytest.raises(RequestRejected, match=f"lease has {dimension}") as refused:
        delegate("desk", description="hand on", lease=cap)
    assert refused.value.code == TOOL_INVALID
    with pytest.raises(RequestRejected, match=f"quota of {dimension}, which nothing charges") as refused:
        check_quotas([Quota("acme", Period.DAY, Budget(**cap))])
    assert refused.value.code == QUOTA_INVALID


@pytest.mark.parametrize("dimension", [FIELDS[dimension] for dimension in UNCHARGED])
def test_zero_of_what_nothing_charges_forbids_what_nobody_could_do_and_is_taken(dimension: str) -> None:
    assert asked({"text": "hello"}, budget=Budget(**{dimension: 0})).content == "hello"
    assert boundary_of({"name": "mine", "budget": {dimension: 0}}).name == "mine"


@pytest.mark.req("4.27")
@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_the_figures_of_a_profile_stay_for_a_user_who_takes_it_over(profile: Boundary) -> None:
    taken = replace(profile, name="mine", budget=replace(profile.budget, steps=9))
    check_figures(taken)
    assert boundary_of(boundary_said(taken)) == taken
    said = {"name": "mine", "extends": profile.name, "budget": {"memory_writes": profile.budget.memory_writes}}
    assert boundary_of(said).budget == profile.budget


def test_figures_of_two_profiles_do_not_mix() -> None:
    mixed = replace(CODING_ASSISTANT.budget, reflection_passes=PROFILES["incident_sre"].budget.reflection_passes)
    with pytest.raises(RequestRejected, match="boundary mine sets reflection_passes above 0"):
        check_figures(replace(CODING_ASSISTANT, name="mine", budget=mixed))
    # What no file could say is left out of one.
    assert "extends" not in boundary_said(replace(CODING_ASSISTANT, name="mine", budget=mixed))


def test_the_lease_of_a_node_names_nothing_that_nothing_charges() -> None:
    node = replace(chat_graph().nodes[0], lease=(("memory_writes", 1),))
    graph = replace(chat_graph(), nodes=(node, *chat_graph().nodes[1:]))
    with pytest.raises(RequestRejected, match=f"lease of node {node.name!r} sets memory_writes") as refused:
        make_manifest(
            run_id="r",
            request=SystemRequest((user_message("hello"),)),
            boundary=FREE,
            graph=graph,
            models=(ModelInfo("any"),),
        )
    assert refused.value.code == DIMENSION_UNCHARGED
