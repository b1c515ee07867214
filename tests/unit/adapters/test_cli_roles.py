"""Roles and loop states at the command line and in the public classes: set by the user, held by the boundary, and shown."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from remit import AgentLoop, PlanExecutor, RedundantLoop, SpecializedLoop, SystemRequest, tool
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.roles import ROLE_UNKNOWN, ROLES
from remit.core.limits.tools import TOOLS_DISALLOWED, ToolChoice, ToolChoiceMode
from remit.core.run.lifecycle import AgentRole, LoopState
from remit.core.run.messages import user_message
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.setup.kit import Terms, engine_kit
from remit.tool.registry import Registry
from tests.unit.adapters.desk import HELPER, Desk, calls
from tests.unit.orchestrate.house import Listening, in_memory, keep, look
from tests.unit.orchestrate.house import calls as proposes

DONE = {"text": "Done."}
READS_ONLY = [role for role in AgentRole if ROLES[role].is_reading]


@pytest.mark.req("3.16")
@pytest.mark.parametrize("role", AgentRole)
def test_a_role_is_told_to_the_model_and_decides_what_it_may_change(role: AgentRole, tmp_path: Path) -> None:
    async def scene() -> tuple[Listening, Any]:
        engine = Listening(proposes("keep", text="x"), DONE)
        agent = AgentLoop(engine, tools=[keep], role=role.value, system_prompt="Be brief.", home=tmp_path / "store")
        async with agent:
            return engine, await agent.chat("go")

    engine, response = asyncio.run(scene())
    told = str(engine.asked[0].messages[0].content)
    assert told == f"{ROLES[role].instructions}\n\nBe brief.".strip()
    assert (response.waiting_for is None) is (role in READS_ONLY)
    if role in READS_ONLY:
        assert response.terminal_code != "SUCCESS"


@pytest.mark.req("3.16")
def test_every_pattern_takes_a_role_and_refuses_one_that_nobody_knows() -> None:
    engine = ScriptedEngine([DONE])
    for made in (
        lambda: AgentLoop(engine, role="pilot"),
        lambda: SpecializedLoop(engine, schema={"type": "object"}, role="pilot"),
        lambda: RedundantLoop(engine, schema={"type": "object"}, role="pilot"),
        lambda: PlanExecutor({"say": lambda step: step}, role="pilot"),
    ):
        with pytest.raises(RequestRejected) as raised:
            made()
        assert raised.value.code == ROLE_UNKNOWN
    assert RedundantLoop(engine, schema={"type": "object"}, role="reviewer").terms.role is AgentRole.REVIEWER


def shown(desk: Desk, run_id: str) -> list[str]:
    found: list[str] = desk.say("show", run_id, "--json").values["loop_states"]
    return found


@pytest.mark.req("3.5")
def test_all_ten_loop_states_are_reached_and_shown(desk: Desk) -> None:
    plan = desk.file("plan.yaml", "steps:\n  - {name: say, type: infer, instruction: Say it.}\n")
    tools = desk.file("tools.py", TOOLS)
    runs = [
        ("--engine", desk.script("Fine."), "--role", "reviewer"),
        ("--engine", desk.script("Fine."), "--mode", "plan", "--plan", plan),
        ("--engine", desk.script("Fine."), "--mode", "plan", "--plan", plan, "--role", "architect"),
        ("--engine", desk.script({"error": "INFERENCE_ENGINE_ERROR"}), "--budget", "retries=0"),
        ("--engine", desk.script(calls("keep", text="x"), "Fine."), "--tools", tools),
    ]
    reached, run_id = set[str](), ""
    for options in runs:
        run_id = desk.say("run", "Hi", *options, "--json").values["run_id"]
        reached |= set(shown(desk, run_id))
    assert desk.say("signal", run_id, "pause").code == 0
    assert shown(desk, run_id)[-1] == "paused"
    listed = {row["run_id"]: row for row in desk.say("runs", "--json").rows}
    assert listed[run_id]["loop_state"] == "paused"
    reached |= {"paused"}
    assert desk.say("signal", run_id, "cancel").code == 0
    reached |= set(shown(desk, run_id))
    assert reached == {state.value for state in LoopState}


def test_role_and_loop_state_are_shown_to_people(desk: Desk) -> None:
    run_id = desk.say("run", "Hi", "--engine", desk.script("Fine."), "--role", "reviewer", "--json").values["run_id"]
    assert "reviewer: exploring > reviewing > complete" in desk.say("show", run_id).out
    assert "role reviewer: exploring > reviewing > complete" in desk.say("trace", run_id).out
    assert "complete  as reviewer" in desk.say("runs").out
    general = desk.say("run", "Hi", "--engine", desk.script("Fine."), "--json").values["run_id"]
    assert "general: exploring > executing" in desk.say("show", general).out


@pytest.mark.parametrize("command", [("run", "Hi"), ("chat",)])
def test_a_role_that_nobody_knows_is_wrong_usage_that_names_the_six(desk: Desk, command: tuple[str, ...]) -> None:
    said = desk.say(*command, "--engine", desk.script("Fine."), "--role", "pilot")
    assert said.code == 2
    assert ROLE_UNKNOWN in said.err
    assert "architect, editor, general, qualifier, developer, reviewer" in said.err


@pytest.mark.req("3.10")
@pytest.mark.parametrize(
    "named",
    [
        {"tools": ("look", "delete_file")},
        {"tool_choice": ToolChoice(ToolChoiceMode.FUNCTION, "delete_file")},
    ],
)
def test_a_request_that_names_a_tool_it_may_not_have_is_refused_where_the_run_is_made(named: dict[str, Any]) -> None:
    async def scene() -> RequestRejected:
        async with in_memory() as system:
            kit = engine_kit(ScriptedEngine([DONE]), Registry([look]))
            with pytest.raises(RequestRejected) as raised:
                await system.run(SystemRequest((user_message("go"),), **named), kit)
            assert list(await system.archive.runs()) == []
            return raised.value

    error = asyncio.run(scene())
    assert error.code == TOOLS_DISALLOWED
    assert error.message.startswith("disallowed tools: delete_file")


@tool(effect="read", permissions=["vault.read"])
def locked() -> str:
    """Look into the vault."""
    return "gold"


@pytest.mark.req("3.10")
@pytest.mark.parametrize(
    ("named", "role", "why"),
    [
        ({"tools": ("look", "keep")}, AgentRole.REVIEWER, "keep writes"),
        ({"tool_choice": ToolChoice(ToolChoiceMode.FUNCTION, "keep")}, AgentRole.ARCHITECT, "keep writes"),
        ({"tools": ("locked",)}, AgentRole.GENERAL, "needs permission vault.read"),
    ],
)
def test_a_tool_that_the_role_or_a_missing_permission_rules_out_cannot_be_named(
    named: dict[str, Any], role: AgentRole, why: str
) -> None:
    async def scene() -> None:
        async with in_memory() as system:
            kit = engine_kit(ScriptedEngine([DONE] * 2), Registry([look, keep, locked]))
            with pytest.raises(RequestRejected, match=why) as raised:
                await system.run(SystemRequest((user_message("go"),), **named), kit, Terms(role=role))
            assert raised.value.code == TOOLS_DISALLOWED
            # What was not named is there, and not selected.
            ended = await system.run(SystemRequest((user_message("go"),)), kit, Terms(role=role))
            assert "locked" not in (await system.execution(ended.run_id)).selected_tools

    asyncio.run(scene())


def test_a_tool_that_the_boundary_does_not_allow_cannot_be_named_either() -> None:
    async def scene() -> None:
        async with in_memory() as system:
            kit = engine_kit(ScriptedEngine([DONE]), Registry([look, keep]))
            terms = Terms(Boundary(allowed_tools=("look",)))
            with pytest.raises(RequestRejected) as raised:
                await system.run(SystemRequest((user_message("go"),), tools=("keep",)), kit, terms)
            assert raised.value.code == TOOLS_DISALLOWED
            assert json.dumps(raised.value.details)

    asyncio.run(scene())


TOOLS = '''
from remit import tool

@tool(effect="write")
def keep(text: str) -> str:
    """Keep a text."""
    return f"kept {text}"
'''


ASKING = """
from typing import Literal

from remit import tool


@tool(effect="write", network=False)
def wire(q: str) -> Literal["ok"]:
    \"\"\"Wire money.\"\"\"
    raise ConnectionError("reset")


@tool(effect="none", asks_under="MISSING_INFO")
def ask(question: str) -> str:
    \"\"\"Ask the user.\"\"\"
    return ""
"""


@pytest.mark.req("3.5")
def test_a_run_that_waits_through_its_child_is_shown_under_what_is_asked_now(desk: Desk) -> None:
    script = desk.script(
        {"when": "^go", **calls("helper", task="wire it")},
        {"when": "wire it", **calls("ask", question="which?")},
        {"when": "^$", **calls("wire", q="1")},
        {"when": "", "text": "Wired."},
    )
    tools = desk.file("asking.py", HELPER + ASKING)
    run_id = desk.say("run", "go", "--tools", tools, "--engine", script, "--json").values["run_id"]
    for code, loop in [
        ("MISSING_INFO", "paused"),
        ("CONFIRM_REQUIRED", "awaiting_approval"),
        ("REVIEW_REQUIRED", "awaiting_approval"),
    ]:
        seen = desk.say("show", run_id, "--json").values
        assert seen["response"]["waiting_for"]["ending"] == seen["entry"]["waiting_for"] == code
        assert seen["response"]["waiting_for"]["expires_at_ms"] > 0
        assert seen["loop_states"][-1] == loop
        (listed,) = desk.say("runs", "--json").rows
        assert (listed["waiting_for"], listed["loop_state"]) == (code, loop)
        assert f"waits: {code}" in desk.say("show", run_id).out
        assert code in desk.say("explain", run_id).out
        (packet,) = seen["response"]["waiting_for"]["packet_ids"]
        desk.say("approve", packet, "--by", "ada")
