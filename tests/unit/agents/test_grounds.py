"""What grounds an answer by what a call was given and returned: no error, and of an account one that names it."""

from typing import Any

import pytest

from remit import AgentLoop, SystemResponse, tool
from remit.core.failure import Ending
from remit.core.goal import Goal, TaskClass
from remit.core.record import JsonObject
from remit.core.tools import ToolCategory
from remit.inference.scripted import ScriptedEngine
from remit.tool.declare import Tool
from tests.unit.orchestrate.house import calls, in_memory
from tests.unit.orchestrate.stage import play

LONG = "x" * 20_000


def looking(result: Any, category: str | None) -> Tool:
    @tool(name="look", effect="read", category=category)
    def look(what: str = "", deep: dict[str, Any] | None = None, sure: bool = True) -> Any:
        """Look something up."""
        return result

    return look


def asked(
    tools: list[Tool],
    *replies: JsonObject,
    goal: Goal,
    words: str = "How does account 4711 of Ada stand?",
    user: str = "",
) -> SystemResponse:
    async def story() -> SystemResponse:
        async with in_memory() as system:
            engine = ScriptedEngine([*replies, *({"text": "It is fine."},) * 3])
            return await AgentLoop(engine, tools=tools, system=system, goal=goal, user_id=user).chat(words)

    return play(story())


ACCOUNT = Goal("tell", task_class=TaskClass.ACCOUNT_STATUS)
CASES: list[tuple[JsonObject, Any, str, bool]] = [
    ({}, "12:30", "", False),
    ({}, {"temperature": 7}, "", False),
    ({"what": "Oslo"}, {"temperature": 7}, "", False),
    ({"sure": True}, {"temperature": 7, "sunny": True, "rain": None}, "", False),
    ({"what": "4711"}, {"state": "fine"}, "", True),
    ({"what": "ada"}, {"state": "fine"}, "", True),
    ({"deep": {"of": ["Ada"]}}, "fine", "", True),
    ({}, {"account": "4711", "state": "fine"}, "", True),
    ({}, [{"owner": "u-9"}], "u-9", True),
    ({}, [{"owner": "u-8"}], "u-9", False),
    ({}, LONG, "", True),
]


@pytest.mark.req("4.35")
@pytest.mark.parametrize("category", ["read_only_lookup", "live_api", None])
@pytest.mark.parametrize(("arguments", "result", "user", "grounds"), CASES)
def test_a_look_up_tells_of_an_account_where_it_names_it(
    arguments: JsonObject, result: Any, user: str, grounds: bool, category: str | None
) -> None:
    said = asked([looking(result, category)], calls("look", **arguments), goal=ACCOUNT, user=user)
    assert (said.terminal_code is Ending.SUCCESS) is grounds, said


def test_a_database_and_grounds_that_the_caller_names_need_not_name_the_account() -> None:
    assert asked([looking("fine", "database")], calls("look"), goal=ACCOUNT).terminal_code is Ending.SUCCESS
    named = Goal("tell", task_class=TaskClass.ACCOUNT_STATUS, grounds=(ToolCategory.LIVE_API,))
    assert asked([looking("fine", "live_api")], calls("look"), goal=named).terminal_code is Ending.SUCCESS


@pytest.mark.req("4.35")
@pytest.mark.parametrize(
    ("result", "grounds"),
    [
        ({"error": "no such account"}, False),
        ({"errors": ["gone"], "data": None}, False),
        ({"error": None, "state": "fine"}, True),
        ({"error": "", "errors": [], "state": "fine"}, True),
        (["error"], True),
    ],
)
@pytest.mark.parametrize("task", [TaskClass.ACCOUNT_STATUS, TaskClass.CURRENT_FACT, TaskClass.TOOL_RESULT])
def test_a_result_that_is_an_error_grounds_nothing(task: TaskClass, result: Any, grounds: bool) -> None:
    said = asked([looking(result, "database")], calls("look"), goal=Goal("tell", task_class=task))
    assert (said.terminal_code is Ending.SUCCESS) is grounds, said
