"""What always asks a person, whatever boundary a run has and whichever way the call comes."""

import asyncio
from typing import Any

import pytest

from remit import AgentLoop, Boundary, Budget, PlanExecutor, Step, SystemResponse, ToolHandler, tool
from remit.agents.guard_in_memory import GuardInMemory
from remit.assemble import system_in_memory
from remit.core.failure import Ending, RequestRejected
from remit.core.limits.authority import Authority
from remit.core.limits.boundary import BoundaryMode
from remit.core.limits.profiles import KNOWN
from remit.core.limits.tool_trust import Repeat
from remit.core.limits.tools import TOOL_INVALID, ToolCategory
from remit.core.record import JsonObject, replace
from remit.core.work.plan import StepType
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.boundaries.tool_findings import boundary_findings
from remit.tool.declare.decorator import Tool

# As wide as a boundary can be written: nothing asks for what it is, everything is preauthorized.
WIDEST = Boundary(
    "widest", approval_effects=(), approval_categories=(), budget=Budget(side_effects=5), authority=Authority()
)
BOUNDARIES = (*KNOWN.values(), WIDEST)
PROMPT = "Wipe /srv/old."


def wiping(done: list[str], **declared: Any) -> Tool:
    """A tool that destroys, and notes that it did."""
    said: Any = {
        "effect": "write",
        "destructive": True,
        "control_args": {"path": "path"},
        "asks": ("wipe",),
        "repeat": Repeat.FREE,
        "untrusted_output": False,
        **declared,
    }

    @tool(**said)
    def wipe(path: str) -> str:
        """Wipe a folder."""
        done.append(path)
        return "wiped"

    return wipe


def asked(boundary: Boundary, *tools: Tool, call: JsonObject | None = None) -> SystemResponse:
    """What a run comes to in which the model calls `wipe` on the folder that the user has named, then stops."""
    calls = [call or {"name": "wipe", "arguments": {"path": "/srv/old"}}]
    engine = ScriptedEngine([{"tool_calls": calls}, {"text": "Wiped."}])
    return AgentLoop(engine, tools=tools, boundary=boundary, system=system_in_memory()).chat_sync(PROMPT)


@pytest.mark.req("4.4")
@pytest.mark.parametrize("category", [None, *ToolCategory])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda one: one.name)
def test_what_destroys_is_never_done_without_a_person(boundary: Boundary, category: ToolCategory | None) -> None:
    done: list[str] = []
    response = asked(boundary, wiping(done, category=category))
    assert done == []
    assert response.terminal_code is not Ending.SUCCESS
    if boundary.name in ("standard", "guarded", "widest", "coding_assistant") and category is not (
        ToolCategory.INFRASTRUCTURE
    ):
        # The others may refuse a kind of state, or stop.
        expected = Ending.PERMISSION_DENIED if _is_refused(boundary, category) else Ending.CONFIRM_REQUIRED
        assert (response.terminal_code or _waits_for(response)) == expected


def _waits_for(response: SystemResponse) -> Ending | None:
    return None if response.waiting_for is None else response.waiting_for.ending


def _is_refused(boundary: Boundary, category: ToolCategory | None) -> bool:
    (report,) = boundary_findings(boundary, (wiping([], category=category).definition,)).tools
    return report.stance == "refuses"


@pytest.mark.parametrize("category", [None, *ToolCategory])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda one: one.name)
def test_a_check_of_a_boundary_never_says_that_what_destroys_passes(
    boundary: Boundary, category: ToolCategory | None
) -> None:
    (report,) = boundary_findings(boundary, (wiping([], category=category).definition,)).tools
    assert report.stance in ("asks", "refuses")
    if report.stance == "asks":
        assert "always needs a person" in report.why or "two people" in report.why


def test_the_same_call_passes_where_it_does_not_destroy() -> None:
    done: list[str] = []
    response = asked(WIDEST, wiping(done, destructive=False))
    assert (done, response.waiting_for) == (["/srv/old"], None)


def test_a_step_of_a_plan_asks_too() -> None:
    done: list[str] = []

    async def scene() -> None:
        handlers: dict[str, Any] = {StepType.TOOL: ToolHandler([wiping(done)])}
        executor = PlanExecutor(handlers, boundary=WIDEST, system=system_in_memory())
        step = Step("wipe", StepType.TOOL, {"path": "/srv/old"}, tool="wipe")
        result = await executor.execute([step], prompt=PROMPT)
        assert _waits_for(result.response) == Ending.CONFIRM_REQUIRED

    asyncio.run(scene())
    assert done == []


def test_the_guard_asks_too_where_every_value_is_bound() -> None:
    guard = GuardInMemory()
    wipe = {
        "name": "wipe",
        "description": "Wipe a folder.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        "effect": "write",
        "destructive": True,
        "control_args": {"path": "path"},
        "asks": ["wipe"],
    }
    guard.answer({"op": "start", "run": "r", "prompt": PROMPT, "tools": [wipe]})
    said = guard.answer({"op": "call", "run": "r", "tool": "wipe", "args": {"path": "/srv/old"}}) or {}
    assert (said["decision"], said["code"]) == ("ask", Ending.CONFIRM_REQUIRED)
    assert said["reasons"] == ["wipe declares that it destroys, and that always needs a person"]


def test_a_boundary_that_only_audits_lets_it_pass_and_says_what_it_would_have_asked() -> None:
    done: list[str] = []
    response = asked(replace(WIDEST, mode=BoundaryMode.AUDIT), wiping(done))
    assert done == ["/srv/old"]
    assert response.waiting_for is None


@pytest.mark.parametrize("effect", ["none", "read"])
def test_a_tool_that_destroys_and_says_that_it_changes_nothing_is_refused(effect: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        wiping([], effect=effect)
    assert refused.value.code == TOOL_INVALID
